// SPDX-License-Identifier: Apache-2.0
// A refused connection is explained: which group may use the socket, and whether this account
// can join it.
#include "client/socket.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool socket_denied(const char *path)
{
    return access(path, R_OK | W_OK) < 0 && errno == EACCES;
}

// Group of the socket, or of the first folder above it that can be looked at. False: it has no name
// or is the superuser's, so that joining it is no remedy.
static bool socket_group(const char *path, char *name, size_t room)
{
    struct stat st;
    char at[PATH_MAX];
    snprintf(at, sizeof at, "%s", path);
    while (stat(at, &st) < 0) {
        char *slash = strrchr(at, '/');
        if (!slash || slash == at)
            return false;
        *slash = '\0';
    }
    const struct group *g = getgrgid(st.st_gid);
    snprintf(name, room, "%s", g ? g->gr_name : "");
    return g && st.st_gid != 0;
}

int socket_set_denied(const char *path, struct err *err)
{
    char group[64];
    if (socket_group(path, group, sizeof group))
        return err_set(
            err, ERR_FORBIDDEN, "url",
            "permission denied on unix:%.120s: only members of the group %.60s may "
            "connect. Join it with: usermod -aG %.60s $USER (as root; then log in again)",
            path, group, group);
    return err_set(err, ERR_FORBIDDEN, "url",
                   "permission denied on unix:%.120s: run the command as root, or ask the "
                   "administrator to set run_group in numaprobed.conf",
                   path);
}

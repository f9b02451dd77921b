// SPDX-License-Identifier: Apache-2.0
// The parents are made one after the other, from the root. Another process may make one of them at
// the same time: EEXIST is no error.
#include "core/os/dirs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int dirs_make(const char *path, mode_t parents, mode_t mode, struct err *err)
{
    char part[512];
    if ((size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part)
        return err_set(err, ERR_USAGE, "", "%.60s…: the path is too long", path);
    for (char *p = part + 1;; p++) {
        if (*p && *p != '/')
            continue;
        const char kept = *p;
        *p = '\0';
        if (mkdir(part, kept ? parents : mode) < 0 && errno != EEXIST)
            return err_sys(err, "cannot make %s", part);
        *p = kept;
        if (!kept)
            return 0;
    }
}

int dirs_default(char *out, size_t room, const char *systemd, const char *system, const char *xdg,
                 const char *below_home, struct err *err)
{
    const char *given = getenv(systemd), *base = getenv(xdg), *home = getenv("HOME");
    const char *variable = "HOME";
    int n = 0;
    if (*out)
        return 0;
    if (given && *given) {
        variable = systemd;
        n = snprintf(out, room, "%.*s", (int)strcspn(given, ":"), given);
    } else if (geteuid() == 0) {
        n = snprintf(out, room, "%s", system);
    } else if (base && *base) {
        variable = xdg;
        n = snprintf(out, room, "%s%s", base, strrchr(system, '/'));
    } else if (below_home && home) {
        n = snprintf(out, room, "%s/%s", home, below_home);
    }
    return (size_t)n < room ? 0
                            : err_set(err, ERR_USAGE, "",
                                      "the directory that %s leads to has a path of more than %zu "
                                      "bytes",
                                      variable, room - 1);
}

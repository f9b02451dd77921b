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

void dirs_default(char *out, size_t room, const char *systemd, const char *system, const char *xdg,
                  const char *below_home)
{
    const char *given = getenv(systemd);
    const char *base = getenv(xdg);
    const char *home = getenv("HOME");
    if (*out)
        return;
    if (given && *given)
        snprintf(out, room, "%.*s", (int)strcspn(given, ":"), given);
    else if (geteuid() == 0)
        snprintf(out, room, "%s", system);
    else if (base && *base)
        snprintf(out, room, "%s/numaprobe", base);
    else if (below_home && home)
        snprintf(out, room, "%s/%s", home, below_home);
}

// SPDX-License-Identifier: Apache-2.0
// Only absolute directories of PATH count: what the working directory holds is no program of the
// system's.
#include "core/os/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool program_is_executable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

bool program_find(const char *name, char *out, size_t room)
{
    const char *path = getenv("PATH");
    for (const char *p = path && *path ? path : PROGRAM_PATH; *p;) {
        size_t n = strcspn(p, ":");
        if (n && *p == '/' && (size_t)snprintf(out, room, "%.*s/%s", (int)n, p, name) < room &&
            program_is_executable(out))
            return true;
        p += n + (p[n] == ':');
    }
    *out = 0;
    return false;
}

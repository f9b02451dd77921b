// SPDX-License-Identifier: Apache-2.0
// The parents are made one after the other, from the root. Another process may make one of them at
// the same time: EEXIST is no error.
#include "core/os/dirs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

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

int dirs_check_absolute(const char *name, const char *path, struct err *err)
{
    return *path == '/' ? 0
                        : err_set(err, ERR_INVALID, name,
                                  "%s: must be an absolute path, got \"%s\"", name, path);
}

int dirs_check(const char *name, const char *path, struct err *err)
{
    struct stat st;
    if (dirs_check_absolute(name, path, err) < 0)
        return -1;
    bool other = stat(path, &st) < 0 ? errno == ENOTDIR : !S_ISDIR(st.st_mode);
    return other ? err_set(err, ERR_INVALID, name, "%s: %s is not a directory", name, path) : 0;
}

// /var/run is /run by another name.
static const char *after_var(const char *path)
{
    return str_starts(path, "/var/run/") ? path + strlen("/var") : path;
}

// `folder` without a slash at its end.
static bool is_made(const char *folder, const char *const *made)
{
    const char *wanted = after_var(folder);
    for (size_t n = strlen(wanted); *made; made++) {
        const char *at = after_var(*made);
        if (str_starts(at, wanted) && strspn(at + n, "/") == strlen(at + n))
            return true;
    }
    return false;
}

int dirs_check_folder(const char *name, const char *path, const char *const *made, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char folder[512];
    struct stat st;
    size_t n = slash ? (size_t)(slash - path) : 0;
    while (n && path[n - 1] == '/')
        n--;
    snprintf(folder, sizeof folder, "%.*s", (int)n, path);
    if (!n || is_made(folder, made))
        return 0;
    errno = ENOTDIR; // of a file
    if (stat(folder, &st) < 0 ? errno == EACCES : S_ISDIR(st.st_mode))
        return 0;
    const char *more = str_starts(after_var(folder), "/run/") && errno == ENOENT
                           ? ". If RuntimeDirectory= of a unit makes it, set run_dir to it"
                           : "";
    return err_set(err, ERR_INVALID, name, "%s: there can be no %s in %s: %s%s", name, name, folder,
                   strerror(errno), more);
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

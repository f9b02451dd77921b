// SPDX-License-Identifier: Apache-2.0
// An empty log is none: a writer that ended leaves one at times.
#include "fleet/store/frozen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool has_log(const char *path)
{
    char log[FROZEN_PATH_MAX + 8];
    struct stat st;
    snprintf(log, sizeof log, "%s-wal", path);
    return stat(log, &st) == 0 ? st.st_size > 0 : errno != ENOENT;
}

static bool folder_is_writable(const char *path)
{
    char folder[FROZEN_PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    return access(slash ? folder : ".", W_OK) == 0 || (errno != EROFS && errno != EACCES);
}

bool frozen_has_log(const char *path)
{
    return !folder_is_writable(path) && has_log(path);
}

void frozen_find(struct frozen *out, const char *path)
{
    snprintf(out->path, sizeof out->path, "%s", path);
    out->is = stat(path, &out->file) == 0 && !folder_is_writable(path) && !has_log(path);
}

bool frozen_no_more(const struct frozen *f)
{
    struct frozen now;
    frozen_find(&now, f->path);
    return !now.is || now.file.st_ino != f->file.st_ino || now.file.st_dev != f->file.st_dev ||
           now.file.st_size != f->file.st_size ||
           now.file.st_mtim.tv_sec != f->file.st_mtim.tv_sec ||
           now.file.st_mtim.tv_nsec != f->file.st_mtim.tv_nsec;
}

void frozen_uri(const struct frozen *f, char out[FROZEN_URI_MAX])
{
    size_t n = (size_t)snprintf(out, FROZEN_URI_MAX, "file:");
    for (const char *at = f->path; *at; at++)
        n += (size_t)snprintf(out + n, FROZEN_URI_MAX - n, strchr("%?#", *at) ? "%%%02X" : "%c",
                              (unsigned char)*at);
    snprintf(out + n, FROZEN_URI_MAX - n, "?immutable=1");
}

// SPDX-License-Identifier: Apache-2.0
// Read in blocks: what is read may be a pipe, or endless.
#include "nodes/lines.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

static int mode_check(const char *path, mode_t mode, struct err *err)
{
    const struct {
        mode_t type;
        const char *name;
    } others[] = {{S_IFDIR, "a directory"},
                  {S_IFIFO, "a FIFO"},
                  {S_IFSOCK, "a socket"},
                  {S_IFCHR, "a device"},
                  {S_IFBLK, "a device"}};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if ((mode & S_IFMT) == others[i].type)
            return err_set(err, ERR_USAGE, "", "%.150s is %s; it must be a regular file", path,
                           others[i].name);
    return 0;
}

int list_check(const char *path, struct err *err)
{
    struct stat st;
    return stat(path, &st) == 0 ? mode_check(path, st.st_mode, err) : 0;
}

// Of a FIFO, opening waits for a writer where that is allowed.
static int list_open(const char *path, bool any, struct err *err)
{
    struct stat st;
    const int flags = O_RDONLY | O_CLOEXEC | (any ? 0 : O_NONBLOCK | O_NOCTTY);
    if (!any && list_check(path, err) < 0) // a socket cannot be opened
        return -1;
    CLEANUP_FD int fd = any && strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, flags);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, ERR_USAGE, "", "cannot read %.150s: %s", path, strerror(errno));
    return !any && mode_check(path, st.st_mode, err) < 0 ? -1 : steal_fd(&fd);
}

int list_read(const char *path, bool any, struct buf *out, struct err *err)
{
    char block[16384];
    CLEANUP_FD int fd = list_open(path, any, err);
    if (fd < 0)
        return -1;
    for (ssize_t n; (n = read(fd, block, sizeof block)) != 0;) {
        if (n < 0 && errno != EINTR)
            return err_set(err, ERR_USAGE, "", "cannot read %.150s: %s", path, strerror(errno));
        if (n > 0 && out->len + (size_t)n > LIST_MAX)
            return err_set(err, ERR_INVALID, "", "%.150s has more than %d bytes", path, LIST_MAX);
        if (n > 0)
            buf_add(out, block, (size_t)n);
    }
    buf_drop(out, str_mark(buf_text(out), out->len));
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for %.150s", path);
}

char *line_next(char **rest)
{
    char *line = strsep(rest, "\n");
    if (!line)
        return NULL;
    line[strcspn(line, "#")] = '\0';
    line += strspn(line, " \t\r");
    for (size_t n = strlen(line); n > 0 && isspace((unsigned char)line[n - 1]);)
        line[--n] = '\0';
    return line;
}

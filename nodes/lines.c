// SPDX-License-Identifier: Apache-2.0
// Read in blocks: what is read may be a pipe, or endless.
#include "nodes/lines.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

int list_read(const char *path, struct buf *out, struct err *err)
{
    char block[16384];
    const bool is_stdin = strcmp(path, "-") == 0;
    CLEANUP_FD int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, ERR_USAGE, "", "cannot read %.150s: %s", path, strerror(errno));
    for (ssize_t n; (n = read(fd, block, sizeof block)) != 0;) {
        if (n < 0 && errno != EINTR)
            return err_set(err, ERR_USAGE, "", "cannot read %.150s: %s", path, strerror(errno));
        if (n > 0 && out->len + (size_t)n > LIST_MAX)
            return err_set(err, ERR_INVALID, "", "%.150s has more than %d bytes", path, LIST_MAX);
        if (n > 0)
            buf_add(out, block, (size_t)n);
    }
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

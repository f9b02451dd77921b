// SPDX-License-Identifier: Apache-2.0
// The token that goes with every request: from the environment or from a file of our own. Never
// from the command line, which everybody on the machine can read.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/token.h"

static int token_check(const char *token, struct err *err)
{
    size_t n = strlen(token);
    for (const char *p = token; *p; p++)
        if (*p <= ' ' || *p >= 0x7f)
            n = 0;
    if (n < 1 || n >= TOKEN_ROOM)
        return err_set(err, ERR_USAGE, "", "the token must be one word of at most %d bytes",
                       TOKEN_ROOM - 1);
    return 0;
}

static int token_read_file(const char *path, char *out, struct err *err)
{
    struct stat st;
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, ERR_USAGE, "", "cannot read %.150s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_USAGE, "", "%.150s is not a file", path);
    if (st.st_mode & 077)
        return err_set(err, ERR_USAGE, "", "%.150s may be used by others: chmod 0600 it", path);
    ssize_t n = read(fd, out, TOKEN_ROOM - 1);
    if (n < 0)
        return err_set(err, ERR_USAGE, "", "cannot read %.150s: %s", path, strerror(errno));
    out[n] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    return token_check(out, err);
}

// The first n characters: "localhost:7780", "127.0.0.2", "[::1]:7780".
static bool is_near(const char *host, size_t n)
{
    static const char *const names[] = {"localhost", "[::1]"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t name = strlen(names[i]);
        if (str_starts(host, names[i]) && (n == name || (n > name && host[name] == ':')))
            return true;
    }
    return str_starts(host, "127.") && strspn(host, "0123456789.:") >= n;
}

// Where what is sent can be read on the way. An address without a scheme is one of http.
static bool in_clear(const char *url)
{
    const char *host = str_starts(url, "http://") ? url + strlen("http://") : url;
    if (str_starts(url, "https://") || str_starts(url, "unix:"))
        return false;
    return str_url_has_user(url) || !is_near(host, strcspn(host, "/?#"));
}

int token_find(const struct cli *c, char token[TOKEN_ROOM], struct err *err)
{
    const char *given = c->ignores_token_variable ? NULL : getenv("NUMAPROBE_TOKEN");
    *token = '\0';
    if ((!given || !*given) && !*c->token_file)
        return 0;
    if (given && *given) {
        if (token_check(given, err) < 0)
            return err_prefix(err, "NUMAPROBE_TOKEN");
        memcpy(token, given, strlen(given) + 1);
    } else if (token_read_file(c->token_file, token, err) < 0) {
        return -1;
    }
    if (c->url_assumed)
        return err_set(err, ERR_USAGE, "",
                       "the socket of the daemon cannot be used, and any account may listen on %s "
                       "while the daemon does not: a token is sent there only with --url=%s",
                       c->url, c->url);
    if (in_clear(c->url))
        return err_set(err, ERR_USAGE, "",
                       "%.100s: a token is not sent in clear over a network; use https://, or "
                       "ssh -L",
                       c->url);
    return 0;
}

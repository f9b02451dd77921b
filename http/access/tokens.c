// SPDX-License-Identifier: Apache-2.0
// The file is read again when its inode, size, mode or times have changed. A file with a wrong line
// has no tokens at all.
#include "http/access/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

// A line has at most 63 + 5 + 64 + 24 bytes and the nodes, four blanks and a newline.
enum { LINE_MAX_BYTES = 161 + TOKEN_NODES_MAX, FILE_MAX_BYTES = TOKENS_MAX * LINE_MAX_BYTES };

struct tokens {
    char path[256];
    bool any_owner;
    struct stat seen; // of the file that was read
    int n;
    struct token list[TOKENS_MAX];
    struct log_budget spared;
};

static int check_file(const char *path, const struct stat *st, bool any_owner, struct err *err)
{
    if (!S_ISREG(st->st_mode))
        return err_set(err, ERR_INVALID, "token_file", "%.150s is not a file", path);
    if (!any_owner && st->st_uid != geteuid() && st->st_uid != 0)
        return err_set(err, ERR_INVALID, "token_file", "%.150s belongs to another account", path);
    if (st->st_mode & 077)
        return err_set(err, ERR_INVALID, "token_file",
                       "%.150s is accessible to other accounts; chmod 0600 it", path);
    if (st->st_size > FILE_MAX_BYTES)
        return err_set(err, ERR_INVALID, "token_file", "%.150s has more than %d bytes", path,
                       FILE_MAX_BYTES);
    return 0;
}

static int run_tokens_find(const struct token *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return i;
    return -1;
}

static int tokens_read_lines(struct tokens *t, char *text, struct err *err)
{
    int n = 0, number = 1;
    for (char *line = text, *end; *line; line = end, number++) {
        end = line + strcspn(line, "\n");
        end += *end ? (*end = '\0', 1) : 0;
        if (!*line || *line == '#')
            continue;
        if (n == TOKENS_MAX)
            return err_set(err, ERR_INVALID, "token_file", "more than %d tokens", TOKENS_MAX);
        if (token_read_line(&t->list[n], line, err) < 0)
            return err_prefix(err, "%.100s:%d", t->path, number);
        if (run_tokens_find(t->list, n, t->list[n].name) >= 0) // revoking it would leave the other
            return err_set(err, ERR_INVALID, "token_file", "%.100s:%d: a second \"%s\"", t->path,
                           number, t->list[n].name);
        n++;
    }
    t->n = n;
    return 0;
}

static int tokens_read_all(struct tokens *t, struct err *err)
{
    char text[FILE_MAX_BYTES + 1];
    struct stat st;
    t->n = 0;
    CLEANUP_FD int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        t->seen = (struct stat){0};
        return 0;
    }
    if (fd < 0 && errno == ELOOP)
        return err_set(err, ERR_INVALID, "token_file", "%.150s is a link", t->path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, "cannot read %.150s", t->path);
    if (check_file(t->path, &st, t->any_owner, err) < 0)
        return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    if (n < 0)
        return err_sys(err, "cannot read %.150s", t->path);
    text[n] = '\0';
    if (n != st.st_size || strlen(text) != (size_t)n)
        return err_set(err, ERR_INVALID, "token_file", "%.150s %s", t->path,
                       n == st.st_size ? "has a NUL byte" : "cannot be read to its end");
    if (tokens_read_lines(t, text, err) < 0) {
        t->n = 0;
        return -1;
    }
    t->seen = st;
    return 0;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int refresh(struct tokens *t, struct err *err)
{
    struct stat now = {0};
    if (lstat(t->path, &now) < 0 && errno != ENOENT)
        return err_sys(err, "cannot stat %.150s", t->path);
    if (now.st_ino == t->seen.st_ino && now.st_size == t->seen.st_size &&
        now.st_mode == t->seen.st_mode && same_time(now.st_mtim, t->seen.st_mtim) &&
        same_time(now.st_ctim, t->seen.st_ctim))
        return 0;
    return tokens_read_all(t, err);
}

static struct tokens *tokens_open_for(const char *path, bool any_owner, struct err *err)
{
    struct tokens *t = calloc(1, sizeof *t);
    if (!t) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for tokens");
        return NULL;
    }
    t->any_owner = any_owner;
    if (snprintf(t->path, sizeof t->path, "%s", path) >= (int)sizeof t->path - 8)
        err_set(err, ERR_INVALID, "token_file", "the path is too long");
    else if (tokens_read_all(t, err) == 0)
        return t;
    tokens_free(t);
    return NULL;
}

struct tokens *tokens_open(const char *path, struct err *err)
{
    return tokens_open_for(path, false, err);
}

int tokens_check(const char *path, struct err *err)
{
    struct tokens *t = tokens_open_for(path, geteuid() == 0, err);
    tokens_free(t);
    return t ? 0 : -1;
}

void tokens_free(struct tokens *t)
{
    free(t);
}

// All are compared, whichever it is.
const struct token *tokens_find(struct tokens *t, const char *text)
{
    struct err err;
    char hash[TOKEN_HASH_SIZE];
    const struct token *found = NULL;
    if (refresh(t, &err) < 0) {
        if (log_may(&t->spared, clock_mono_ms())) // each request that shows a token gets here
            log_error("tokens", &err);
        return NULL; // a file that cannot be trusted opens nothing
    }
    token_hash(text, hash);
    for (int i = 0; i < t->n; i++)
        if (token_same_hash(hash, t->list[i].hash) && (!found || t->list[i].scope > found->scope))
            found = &t->list[i];
    return found;
}

int tokens_list(struct tokens *t, const struct token **list, int *n, struct err *err)
{
    if (refresh(t, err) < 0)
        return -1;
    *list = t->list;
    *n = t->n;
    return 0;
}

static int write_durably(const char *path, const struct buf *text, struct err *err)
{
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_sys(err, "cannot make %.150s", path);
    errno = ENOSPC; // of a part that has no room, the call says nothing
    if (write(fd, buf_text(text), text->len) != (ssize_t)text->len || fsync(fd) < 0)
        return err_set(err, ERR_STORAGE, "", "cannot write %.150s: %s", path, strerror(errno));
    return 0;
}

static void tokens_sync_folder(const char *path)
{
    char folder[256];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    CLEANUP_FD int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        log_event(LOG_LVL_WARN, "tokens", "text=\"cannot sync the folder: %s\"",
                  log_quote(strerror(errno)).text);
}

// A new file in place of the old one: whole before and after a crash.
static int tokens_save(struct tokens *t, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    char part[sizeof t->path + 8];
    snprintf(part, sizeof part, "%s.new", t->path);
    for (int i = 0; i < t->n; i++)
        token_write_line(&t->list[i], &text);
    if (!buf_ok(&text))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for tokens");
    unlink(part); // of a daemon that was killed in the middle
    if (write_durably(part, &text, err) < 0) {
        unlink(part);
        return -1;
    }
    if (rename(part, t->path) < 0)
        return err_sys(err, "cannot replace %.150s", t->path);
    tokens_sync_folder(t->path);
    return tokens_read_all(t, err);
}

int tokens_create(struct tokens *t, const char *name, enum scope scope, const char *nodes,
                  struct token *made, char text[TOKEN_TEXT_SIZE], struct err *err)
{
    unsigned char random[TOKEN_RANDOM];
    struct token token = {.scope = scope, .created_ms = clock_wall_ms()};
    if (token_check_name(name, err) < 0 || refresh(t, err) < 0)
        return -1;
    if (run_tokens_find(t->list, t->n, name) >= 0)
        return err_set(err, ERR_CONFLICT, "name",
                       "there is a token \"%s\" already; revoke it first", name);
    if (t->n == TOKENS_MAX)
        return err_set(err, ERR_CONFLICT, "", "there are %d tokens already; revoke one first",
                       t->n);
    if (scope == SCOPE_PUSH && token_check_room(t->list, t->n, nodes, err) < 0)
        return -1;
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return err_sys(err, "no random numbers");
    snprintf(token.name, sizeof token.name, "%s", name);
    snprintf(token.nodes, sizeof token.nodes, "%s", nodes);
    token_text(random, text);
    explicit_bzero(random, sizeof random);
    token_hash(text, token.hash);
    t->list[t->n++] = token;
    if (tokens_save(t, err) < 0) {
        t->seen = (struct stat){.st_ino = 1}; // read it again
        return -1;
    }
    *made = token;
    return 0;
}

int tokens_revoke(struct tokens *t, const char *name, struct err *err)
{
    if (refresh(t, err) < 0)
        return -1;
    int at = run_tokens_find(t->list, t->n, name);
    if (at < 0)
        return err_set(err, ERR_NOT_FOUND, "name", "there is no token \"%.63s\"", name);
    memmove(&t->list[at], &t->list[at + 1], sizeof t->list[0] * (size_t)(t->n - at - 1));
    t->n--;
    if (tokens_save(t, err) == 0)
        return 0;
    t->seen = (struct stat){.st_ino = 1};
    return -1;
}

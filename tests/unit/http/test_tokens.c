// SPDX-License-Identifier: Apache-2.0
// The file of tokens: what cannot be trusted opens nothing and is named; a change that does not
// reach the disk has not happened.
#include "http/access/tokens.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

static char dir[64], path[100];

static enum scope scope_of(struct tokens *t, const char *text)
{
    const struct token *one = tokens_find(t, text);
    return one ? one->scope : SCOPE_NONE;
}

static void put(const char *text, mode_t mode)
{
    dir_write(dir, "tokens", text);
    chmod(path, mode);
}

static void refused(const char *says)
{
    struct err err = {0};
    struct tokens *t = tokens_open(path, &err);
    CHECK(!t && strcmp(err.member, "token_file") == 0 && strstr(err.text, says), "refused: %s",
          err.text);
    tokens_free(t);
}

static void test_files_that_cannot_be_trusted(void)
{
    static char long_text[120000];
    put("", 0640);
    refused("chmod 0600");
    put("", 0602);
    refused("chmod 0600");
    put("admin\n", 0600);
    refused("tokens:1: ");
    put("# a comment\n\nme read 12 2026-11-21T04:05:06Z\n", 0600);
    refused("tokens:3: ");
    memset(long_text, '#', sizeof long_text - 1);
    put(long_text, 0600);
    refused("bytes");
    if (geteuid() == 0) {
        put("", 0600);
        CHECK(chown(path, 65534, 65534) == 0, "given away");
        refused("belongs to another account");
    }
    unlink(path);
    CHECK(symlink("/dev/null", path) == 0, "a link");
    refused("is a link");
    unlink(path);
    mkdir(path, 0700);
    refused("is not a file");
    rmdir(path);
    struct err err = {0};
    memset(long_text, 'x', 300);
    long_text[300] = '\0';
    CHECK(!tokens_open(long_text, &err) && strstr(err.text, "too long"), "%s", err.text);
}

// What follows a NUL would be no token any more, and nobody would know.
static void test_not_to_its_end(void)
{
    static const char text[] = "# mine\n\0me read 12 2026-11-21T04:05:06Z\n";
    FILE *f = fopen(path, "we");
    fwrite(text, 1, sizeof text - 1, f);
    fclose(f);
    chmod(path, 0600);
    refused("has a NUL byte");
    unlink(path);
}

static void test_made_and_revoked(void)
{
    struct err err = {0};
    struct token made = {0};
    char text[TOKEN_TEXT_SIZE], other[TOKEN_TEXT_SIZE];
    const struct token *list;
    int n = -1;
    struct tokens *t = tokens_open(path, &err);
    CHECK(t && tokens_list(t, &list, &n, &err) == 0 && n == 0, "no file, no tokens");
    CHECK(tokens_create(t, "me", SCOPE_RUN, "", &made, text, &err) == 0 &&
              scope_of(t, text) == SCOPE_RUN,
          "made, and it opens what it may");
    CHECK(tokens_create(t, "me", SCOPE_ADMIN, "", &made, other, &err) < 0 &&
              err.code == ERR_CONFLICT,
          "not twice: %s", err.text);
    CHECK(tokens_create(t, "a b", SCOPE_READ, "", &made, other, &err) < 0 &&
              err.code == ERR_INVALID,
          "a bad name: %s", err.text);
    CHECK(tokens_revoke(t, "nobody", &err) < 0 && err.code == ERR_NOT_FOUND, "%s", err.text);
    chmod(path, 0644);
    CHECK(scope_of(t, text) == SCOPE_NONE, "readable by others: it opens nothing from then on");
    CHECK(tokens_list(t, &list, &n, &err) < 0 && tokens_revoke(t, "me", &err) < 0 &&
              tokens_create(t, "new", SCOPE_READ, "", &made, other, &err) < 0,
          "and nothing is made or revoked: %s", err.text);
    chmod(path, 0600);
    CHECK(scope_of(t, text) == SCOPE_RUN, "until it is private again");
    CHECK(tokens_revoke(t, "me", &err) == 0 && scope_of(t, text) == SCOPE_NONE, "revoked");
    tokens_free(t);
}

// As on a full disk: no file may grow.
static void test_what_does_not_reach_the_disk(void)
{
    struct err err = {0};
    struct token made = {0};
    char text[TOKEN_TEXT_SIZE], other[TOKEN_TEXT_SIZE];
    struct rlimit was, none;
    const struct token *list;
    int n = -1;
    struct tokens *t = tokens_open(path, &err);
    CHECK(tokens_create(t, "kept", SCOPE_READ, "", &made, text, &err) == 0 &&
              tokens_create(t, "other", SCOPE_READ, "", &made, other, &err) == 0,
          "two on disk");
    getrlimit(RLIMIT_FSIZE, &was);
    none = (struct rlimit){0, was.rlim_max};
    fflush(stdout); // which may be a file
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    int create = tokens_create(t, "lost", SCOPE_ADMIN, "", &made, other, &err);
    struct err why = err, partly = {0};
    int scope = scope_of(t, other);
    none.rlim_cur = 150; // the first line, and a part of the next one
    setrlimit(RLIMIT_FSIZE, &none);
    int part = tokens_create(t, "lost", SCOPE_ADMIN, "", &made, other, &partly);
    none.rlim_cur = 0;
    setrlimit(RLIMIT_FSIZE, &none);
    int revoke = tokens_revoke(t, "kept", &err);
    setrlimit(RLIMIT_FSIZE, &was);
    CHECK(create < 0 && why.code == ERR_STORAGE && scope == SCOPE_NONE,
          "one that was not written opens nothing: %s", why.text);
    CHECK(part < 0 && partly.code == ERR_STORAGE && strstr(partly.text, strerror(ENOSPC)),
          "nor does one that was written in part: %s", partly.text);
    CHECK(revoke < 0 && scope_of(t, text) == SCOPE_READ && tokens_list(t, &list, &n, &err) == 0 &&
              n == 2,
          "and the file is as it was");
    tokens_free(t);
}

static void test_as_many_as_there_may_be(void)
{
    struct err err = {0};
    struct token made = {0};
    char text[TOKEN_TEXT_SIZE], name[32], line[200];
    CLEANUP_BUF struct buf all = BUF_INIT;
    for (int i = 0; i < TOKENS_MAX; i++) {
        snprintf(line, sizeof line, "t%d read %064d 2026-11-21T04:05:06Z\n", i, i);
        buf_str(&all, line);
    }
    put(buf_text(&all), 0600);
    struct tokens *t = tokens_open(path, &err);
    snprintf(name, sizeof name, "t%d", TOKENS_MAX);
    CHECK(t && tokens_create(t, name, SCOPE_READ, "", &made, text, &err) < 0 &&
              err.code == ERR_CONFLICT,
          "no more than there is room for: %s", err.text);
    CHECK(t && tokens_revoke(t, "t7", &err) == 0 &&
              tokens_create(t, name, SCOPE_READ, "", &made, text, &err) == 0,
          "one gone, one more");
    tokens_free(t);
    buf_str(&all, line);
    put(buf_text(&all), 0600);
    refused("more than");
}

// All tokens of scope push together have no more nodes than a collector can.
static void test_room_for_nodes(void)
{
    struct err err = {0};
    struct token made = {0};
    char text[TOKEN_TEXT_SIZE];
    put("", 0600);
    struct tokens *t = tokens_open(path, &err);
    CHECK(t && tokens_create(t, "n", SCOPE_PUSH, "n[1-40000]", &made, text, &err) == 0 &&
              tokens_create(t, "n2", SCOPE_PUSH, "n[1-40000]", &made, text, &err) == 0 &&
              tokens_create(t, "m", SCOPE_PUSH, "m[1-25536]", &made, text, &err) == 0,
          "what two tokens name counts once: %s", err.text);
    CHECK(t && tokens_create(t, "x", SCOPE_PUSH, "x[1-2]", &made, text, &err) < 0 &&
              err.code == ERR_CONFLICT && strcmp(err.member, "nodes") == 0,
          "beyond that a token is refused");
    CHECK_STR(err.text,
              "has 2 nodes, and the other tokens name 65536: a collector can have 65536 together. "
              "Name fewer, or revoke a token first",
              "with both numbers");
    CHECK(t && tokens_create(t, "reader", SCOPE_READ, "", &made, text, &err) == 0 &&
              tokens_create(t, "m2", SCOPE_PUSH, "m[1-25536],n7", &made, text, &err) == 0,
          "one that names none, or none besides, is not: %s", err.text);
    CHECK(t && tokens_revoke(t, "m", &err) == 0 && tokens_revoke(t, "m2", &err) == 0 &&
              tokens_create(t, "x", SCOPE_PUSH, "x[1-2]", &made, text, &err) == 0,
          "revoking makes room: %s", err.text);
    tokens_free(t);
    put("a push 0000000000000000000000000000000000000000000000000000000000000000 "
        "2026-11-21T04:05:06Z n[1-40000]\n"
        "b push 0000000000000000000000000000000000000000000000000000000000000000 "
        "2026-11-21T04:05:06Z m[1-40000]\n",
        0600);
    t = tokens_open(path, &err);
    CHECK(t && tokens_create(t, "x", SCOPE_PUSH, "x1", &made, text, &err) < 0 &&
              strstr(err.text, "the tokens that there are name more than 65536 nodes"),
          "a file that names more already: %s", err.text);
    CHECK(t && tokens_revoke(t, "a", &err) == 0, "one can be revoked");
    tokens_free(t);
}

int main(void)
{
    dir_make(dir);
    snprintf(path, sizeof path, "%s/tokens", dir);
    test_files_that_cannot_be_trusted();
    test_not_to_its_end();
    test_made_and_revoked();
    test_what_does_not_reach_the_disk();
    test_as_many_as_there_may_be();
    test_room_for_nodes();
    dir_remove(dir);
    return tap_done();
}

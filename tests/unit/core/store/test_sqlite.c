// SPDX-License-Identifier: Apache-2.0
// How long a statement waits: for another program, as long as it was told; for locks that cannot be
// had at all, hardly. The calls that SQLite makes for it are ours here.
#include "tests/unit/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/store/sqlite.h"
#include "tests/unit/core/dir.h"

static char dir[64], path[96];
static bool no_locks;
static int unlocks_until_fault; // 0: none fails
static sqlite3 *other;          // it gives up its lock when it was waited for often enough
static int patience, polls;

static int fcntl_here(int fd, int what, void *arg)
{
    const struct flock *lock = arg;
    bool unlocks = what == F_SETLK && lock->l_type == F_UNLCK;
    if ((no_locks && what == F_SETLK) || (unlocks && unlocks_until_fault-- == 1)) {
        errno = ENOLCK;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, what, arg);
}

#define OURS(name)                                                                                 \
    int name(int fd, int what, ...)                                                                \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, what);                                                                        \
        void *arg = va_arg(ap, void *);                                                            \
        va_end(ap);                                                                                \
        return fcntl_here(fd, what, arg);                                                          \
    }
int fcntl64(int fd, int what, ...);
OURS(fcntl64)

int poll(struct pollfd *fds, nfds_t n, int ms)
{
    (void)fds, (void)n, (void)ms;
    if (++polls == patience)
        sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
    return 0;
}

static void test_busy(sqlite3 *db)
{
    struct err err = {0};
    CHECK(sqlite3_open(path, &other) == SQLITE_OK &&
              sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK,
          "another program has it locked");
    patience = 100;
    CHECK(sq_exec(db, "INSERT INTO t VALUES (2)", &err) == 0 && polls == patience,
          "it was waited for");
    sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    polls = 0;
    patience = -1;
    CHECK(sq_exec(db, "INSERT INTO t VALUES (3)", &err) < 0 && err.code == ERR_STORAGE &&
              strstr(err.text, "another program"),
          "not for ever: %s", err.text);
    CHECK(polls >= 900 && polls <= 1100, "5 s in steps of 5 ms: %d", polls);
    sqlite3_close(other);
}

static void test_no_locks(sqlite3 *db)
{
    struct err err = {0};
    int64_t n = 0, begun = clock_mono_ms();
    no_locks = true;
    CHECK(sq_number(db, "SELECT count(*) FROM t", &n, &err) < 0 && err.code == ERR_STORAGE,
          "no locks: %s", err.text);
    int64_t ms = clock_mono_ms() - begun;
    CHECK(ms < 9000, "known soon, not after 10 s: %lld ms", (long long)ms);
    no_locks = false;
    CHECK(sq_number(db, "SELECT count(*) FROM t", &n, &err) == 0 && n == 2, "it was for a moment");
}

// Each lock that a write and a read give back stays once. Never more than one statement suffers.
static void test_lock_stays(sqlite3 *db)
{
    struct err err = {0};
    int64_t n = 0, begun = clock_mono_ms();
    int failed = 0, lost = 0;
    for (int i = 1; i <= 12; i++) {
        unlocks_until_fault = i;
        failed += sq_exec(db, "INSERT INTO t VALUES (4)", &err) < 0;
        failed += sq_number(db, "SELECT count(*) FROM t", &n, &err) < 0;
        unlocks_until_fault = 0;
        lost += sq_number(db, "SELECT count(*) FROM t", &n, &err) < 0;
        lost += sq_exec(db, "INSERT INTO t VALUES (5)", &err) < 0;
    }
    CHECK_INT(lost, 0, "locks that stayed are in nobody's way afterwards: %d, %s", lost, err.text);
    printf("# in %lld ms, %d failed\n", (long long)(clock_mono_ms() - begun), failed);
}

// A number becomes a text when it is asked for as one, which takes memory.
static void test_text_without_memory(sqlite3 *db)
{
    struct err err = {0};
    sqlite3_stmt *q = NULL;
    CHECK(sqlite3_prepare_v2(db, "SELECT n FROM s", -1, &q, NULL) == SQLITE_OK &&
              sq_step(q, &err) == 1,
          "a row");
    sqlite3_hard_heap_limit64(1);
    CHECK_STR(sq_text(q, 0), "", "there is no memory for its text");
    sqlite3_hard_heap_limit64(0);
    CHECK(sq_row_whole(q, &err) < 0 && err.code == ERR_NO_MEMORY, "who asks is told: %s", err.text);
    CHECK_INT(sq_row_whole(q, &err), 0, "once");
    sqlite3_hard_heap_limit64(1);
    sq_text(q, 0);
    sqlite3_hard_heap_limit64(0);
    err = (struct err){0};
    CHECK(sq_step(q, &err) < 0 && err.code == ERR_NO_MEMORY, "who goes on is told too");
    sq_reset(q);
    CHECK(sq_step(q, &err) == 1 && strcmp(sq_text(q, 0), "7") == 0 && sq_step(q, &err) == 1 &&
              strcmp(sq_text(q, 0), "") == 0 && sq_row_whole(q, &err) == 0 && sq_step(q, &err) == 0,
          "the next time it is there; NULL is no lack of memory");
    sq_finalize_cleanup(&q);
}

int main(void)
{
    struct err err = {0};
    sqlite3 *db = NULL;
    // No memory set apart for small things: some builds of SQLite do, and then a text never fails.
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
    dir_make(dir);
    snprintf(path, sizeof path, "%s/t.db", dir);
    CHECK(sq_open(&db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &err) == 0 &&
              sq_exec(db, "PRAGMA journal_mode=WAL", &err) == 0 &&
              sq_exec(db, "CREATE TABLE t (n INTEGER) STRICT", &err) == 0 &&
              sq_exec(db, "INSERT INTO t VALUES (1)", &err) == 0 &&
              sq_exec(db, "CREATE TABLE s (n INTEGER) STRICT", &err) == 0 &&
              sq_exec(db, "INSERT INTO s VALUES (7), (NULL)", &err) == 0,
          "a database");
    test_busy(db);
    test_no_locks(db);
    test_lock_stays(db);
    test_text_without_memory(db);
    sqlite3_close(db);
    dir_remove(dir);
    return tap_done();
}

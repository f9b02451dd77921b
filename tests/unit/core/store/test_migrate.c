// SPDX-License-Identifier: Apache-2.0
#include "core/store/damage.h"
#include "core/store/store.h"
#include "tests/unit/tap.h"

#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/store/migrate.h"
#include "core/store/retention.h"
#include "tests/unit/core/dir.h"

#define STEP(n, text)                                                                              \
    {                                                                                              \
        n, text, sizeof(text) - 1                                                                  \
    }
static const struct embedded one[] = {STEP("0001-a.sql", "CREATE TABLE a (x INTEGER) STRICT;"),
                                      {0}};
static const struct embedded two[] = {
    STEP("0001-a.sql", "CREATE TABLE a (x INTEGER) STRICT;"),
    STEP("0002-b.sql", "ALTER TABLE a ADD COLUMN y INTEGER; INSERT INTO a VALUES (1, 2);"),
    {0}};
static const struct embedded broken[] = {
    STEP("0001-a.sql", "CREATE TABLE a (x INTEGER) STRICT;"),
    STEP("0002-bad.sql", "CREATE TABLE c (x INTEGER) STRICT; CREATE TABLE a (x INTEGER) STRICT;"),
    {0}};

#define FOR(list) (&(struct migration){STORE_APPLICATION_ID, list, "--state-dir"})

static char dir[64], path[128];

static sqlite3 *open_db(void)
{
    sqlite3 *db = NULL;
    sqlite3_open(path, &db);
    return db;
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    struct err err;
    int64_t n = -1;
    return sq_number(db, sql, &n, &err) < 0 ? -1 : n;
}

static void test_steps(void)
{
    struct err err = {0};
    char copy[160];
    mode_t mask = umask(022);
    sqlite3 *db = open_db();
    sq_exec(db, "PRAGMA application_id=1853189473", &err);
    CHECK(migrate_run(db, path, FOR(one), &err) == 0 && ask(db, "PRAGMA user_version") == 1,
          "an empty database becomes version 1: %s", err.text);
    snprintf(copy, sizeof copy, "%s.v1.bak", path);
    CHECK(access(copy, F_OK) < 0, "an empty one needs no copy");
    CHECK(migrate_run(db, path, FOR(broken), &err) < 0 && ask(db, "PRAGMA user_version") == 1,
          "a step that fails leaves the version: %s", err.text);
    CHECK(ask(db, "SELECT count(*) FROM sqlite_schema WHERE name='c'") == 0,
          "and nothing half done");
    CHECK(migrate_run(db, path, FOR(two), &err) == 0 && ask(db, "SELECT y FROM a") == 2,
          "an old one goes forward: %s", err.text);
    struct stat st;
    CHECK(stat(copy, &st) == 0 && (st.st_mode & 07777) == 0640 && st.st_size > 0,
          "after a copy was made, for our group at most");
    CHECK(migrate_run(db, path, FOR(two), &err) == 0 && ask(db, "SELECT count(*) FROM a") == 1,
          "nothing happens twice");
    CHECK(migrate_run(db, path, FOR(one), &err) < 0 && err.code == ERR_STORAGE &&
              strstr(err.text, "newer"),
          "never back: %s", err.text);
    sqlite3_close(db);
    CHECK(migrate_check_file(path, FOR(one), &err) < 0 && strstr(err.text, "newer"),
          "seen in the file alone too");
    CHECK_INT(migrate_check_file(path, FOR(two), &err), 0, "the right version passes");
    unlink(copy);
    umask(mask);
}

static void write_file(const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (write(fd, bytes, n) != (ssize_t)n)
        abort();
    close(fd);
}

static void test_foreign(void)
{
    struct err err = {0};
    char text[64], aside[600] = "";
    unlink(path);
    CHECK_INT(migrate_check_file(path, FOR(one), &err), 0, "no file is fine");
    write_file("", 0);
    CHECK_INT(migrate_check_file(path, FOR(one), &err), 0, "an empty file is fine");
    write_file("my diary", 8);
    CHECK(migrate_check_file(path, FOR(one), &err) < 0 && err.code == ERR_DAMAGED,
          "no database: %s", err.text);
    CHECK(file_read_text(path, text, sizeof text) >= 0 && strcmp(text, "my diary") == 0,
          "and it is untouched");
    struct store *s = store_open(dir, &err);
    CHECK(s, "it makes room for one: %s", err.text);
    snprintf(aside, sizeof aside, "%s", s ? store_damage(s)->file : "");
    CHECK(file_read_text(aside, text, sizeof text) >= 0 && strcmp(text, "my diary") == 0,
          "and is kept as %s", aside);
    store_close(s);
    unlink(path);
    sqlite3 *db = open_db();
    sq_exec(db, "CREATE TABLE theirs (x)", &err);
    sqlite3_close(db);
    CHECK(!store_open(dir, &err) && strstr(err.text, "another program"), "foreign: %s", err.text);
    db = open_db();
    CHECK(ask(db, "SELECT count(*) FROM sqlite_schema") == 1, "and untouched");
    sq_exec(db, "PRAGMA application_id=1853189473; PRAGMA user_version=4000", &err);
    sqlite3_close(db);
    CHECK(!store_open(dir, &err) && err.code == ERR_STORAGE && strstr(err.text, "newer"),
          "newer: %s", err.text);
    unlink(path);
    CHECK(mkfifo(path, 0600) == 0 && migrate_check_file(path, FOR(one), &err) < 0 &&
              err.code == ERR_STORAGE && strstr(err.text, "is not a regular file"),
          "a pipe is not waited for: %s", err.text);
    unlink(path);
}

// The first start was killed, or a call failed, between making the file and the first table.
static void test_begun(void)
{
    struct err err = {0};
    unlink(path);
    sqlite3 *db = open_db();
    sq_exec(db, "PRAGMA page_size=8192", &err);
    sq_exec(db, "PRAGMA auto_vacuum=INCREMENTAL", &err);
    CHECK_INT(sq_exec(db, "PRAGMA journal_mode=WAL", &err), 0, "a file with nothing in it");
    sqlite3_close(db);
    CHECK(access(path, F_OK) == 0 && migrate_check_file(path, FOR(one), &err) == 0,
          "is no other program's: %s", err.text);
    struct store *s = store_open(dir, &err);
    CHECK(s, "and the next start goes on with it: %s", err.text);
    store_close(s);
    s = store_open(dir, &err);
    CHECK(s, "and the one after that: %s", err.text);
    store_close(s);
}

int main(void)
{
    dir_make(dir);
    snprintf(path, sizeof path, "%s/numaprobe.db", dir);
    test_steps();
    test_foreign();
    test_begun();
    dir_remove(dir);
    return tap_done();
}

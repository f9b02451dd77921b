// SPDX-License-Identifier: Apache-2.0
// Somebody deletes, replaces or truncates the files of an open database: what each look answers,
// and what is there afterwards.
#include "core/store/damage.h"
#include "core/store/files.h"
#include "core/store/store.h"
#include "tests/unit/tap.h"

#include "base/cleanup.h"
#include "core/store/db.h"
#include "tests/unit/core/dir.h"

enum { RUNS = 3 };

static char dir[64];
static int told;

static void on_damage(void *ctx)
{
    (void)ctx;
    told++;
}

static int64_t submit(struct store *s, struct err *err)
{
    struct spec spec;
    int64_t id = 0;
    bool again;
    spec_init(&spec, BENCHMARK_LATENCY);
    return store_run_insert(s, &spec, "n", NULL, &id, &again, err) < 0 ? -1 : id;
}

static int64_t count(struct store *s)
{
    int64_t n = -1;
    return sq_number(s->db, "SELECT count(*) FROM run", &n, NULL) < 0 ? -1 : n;
}

// Half of what was written is in the file, half in the log.
static struct store *begin(void)
{
    struct err err = {0};
    dir_make(dir);
    struct store *s = store_open(dir, &err);
    if (!s || submit(s, &err) < 0 ||
        sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) != SQLITE_OK)
        abort();
    for (int i = 1; i < RUNS; i++)
        if (submit(s, &err) < 0)
            abort();
    told = 0;
    store_on_damage(s, on_damage, NULL);
    CHECK(store_files_look(s) == FILES_SAME && store_files_check(s, &err) == 0,
          "nobody did anything");
    return s;
}

static const char *beside(const struct store *s, const char *suffix)
{
    static char path[600];
    snprintf(path, sizeof path, "%s%s", s->path, suffix);
    return path;
}

static int damaged_files(const struct store *s)
{
    struct store_damaged_file files[2];
    return store_damaged_list(s, files, 2);
}

// And nothing that was acknowledged is missing when it is opened again.
static void end(struct store *s, int64_t runs, const char *what)
{
    struct err err = {0};
    CHECK(store_files_look(s) == FILES_SAME, "%s: the files are ours", what);
    CHECK(submit(s, &err) > 0 && count(s) == runs + 1, "%s: writes go on: %s", what, err.text);
    CHECK(store_dir_is_locked(s), "%s: the directory is locked", what);
    store_close(s);
    s = store_open(dir, &err);
    CHECK(s && count(s) == runs + 1 && !store_damage(s)->when_ms, "%s: opened again: %s", what,
          err.text);
    store_close(s);
    dir_remove(dir);
}

static void refuses_writes(struct store *s, enum store_files found, const char *word)
{
    struct err err = {0};
    CHECK(store_files_look(s) == found, "is seen: %s", word);
    CHECK(store_damage_is_plain(s) && store_files_check(s, &err) < 0 && err.code == ERR_DAMAGED &&
              strstr(err.text, word),
          "is told: %s", err.text);
    told = 0;
    CHECK(submit(s, &err) < 0 && err.code == ERR_DAMAGED && told == 1,
          "nothing is acknowledged any more: %s", err.text);
}

static void is_rewritten(struct store *s, int kept, const char *what)
{
    struct err err = {0};
    refuses_writes(s, FILES_MOVED, "deleted or replaced");
    CHECK(count(s) == RUNS, "%s: what is open can be read", what);
    CHECK_INT(store_set_aside(s, "test", &err), 1, "%s: written anew: %s", what, err.text);
    CHECK(count(s) == RUNS && damaged_files(s) == kept && !store_damage(s)->when_ms,
          "%s: nothing is lost", what);
    CHECK(access(beside(s, ".new"), F_OK) < 0, "%s: the copy has the name", what);
    end(s, RUNS, what);
}

static void test_deleted(void)
{
    static const char *const suffixes[] = {"", "-wal"};
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        struct store *s = begin();
        unlink(beside(s, suffixes[i]));
        is_rewritten(s, 0, i ? "the log deleted" : "the database deleted");
    }
    struct store *s = begin();
    unlink(s->path);
    unlink(beside(s, "-wal"));
    unlink(beside(s, "-shm"));
    is_rewritten(s, 0, "all deleted");
}

// SQLite makes it anew from the log, so it is nobody's loss.
static void test_index_of_log_deleted(void)
{
    struct err err = {0};
    struct store *s = begin();
    unlink(beside(s, "-shm"));
    CHECK(store_files_look(s) == FILES_SAME && store_files_check(s, &err) == 0 && told == 0,
          "-shm is not missed");
    end(s, RUNS, "-shm deleted");
}

static void test_directory_gone(void)
{
    char away[80];
    struct store *s = begin();
    snprintf(away, sizeof away, "%s.away", dir);
    CHECK_INT(rename(dir, away), 0, "the whole directory is renamed");
    is_rewritten(s, 0, "the directory gone");
    dir_remove(away);
}

static void test_replaced(void)
{
    struct store *s = begin();
    unlink(s->path);
    dir_write(dir, "numaprobe.db", "somebody's notes");
    is_rewritten(s, 1, "the database replaced"); // what took its place is kept
    s = begin();
    unlink(beside(s, "-wal"));
    dir_write(dir, "numaprobe.db-wal", "notes");
    is_rewritten(s, 0, "the log replaced");
}

static void test_file_cut(void)
{
    struct store_feed before, after;
    struct err err = {0};
    struct store *s = begin();
    CHECK(store_feed(s, &before, &err) == 0, "%s", err.text);
    CHECK_INT(truncate(s->path, 100), 0, "the database is cut below its first page");
    refuses_writes(s, FILES_CUT, "truncated");
    CHECK(store_set_aside(s, "cut", &err) == 0 && damaged_files(s) == 1 &&
              store_damage(s)->when_ms > 0,
          "it is set aside: %s", err.text);
    CHECK(store_feed(s, &after, &err) == 0 && strcmp(before.history_id, after.history_id) != 0 &&
              after.last == before.last,
          "the fresh one has another history");
    CHECK(count(s) == RUNS, "with what waited taken over");
    end(s, RUNS, "the database cut");
}

static void test_log_cut(void)
{
    struct err err = {0};
    struct store *s = begin();
    CHECK(truncate(beside(s, "-wal"), 40) == 0, "the log is cut");
    refuses_writes(s, FILES_CUT, "truncated");
    CHECK(store_set_aside(s, "cut", &err) == 0 && damaged_files(s) == 1, "it is set aside: %s",
          err.text);
    CHECK(count(s) == RUNS, "with what waited taken over");
    end(s, RUNS, "the log cut");
}

// What a shell beside us does when it checkpoints: all of it is in the file then.
static void test_log_emptied(void)
{
    struct err err = {0};
    struct store *s = begin();
    sqlite3 *shell = NULL;
    CHECK(sqlite3_open(s->path, &shell) == SQLITE_OK &&
              sqlite3_exec(shell, "SELECT count(*) FROM run; PRAGMA wal_checkpoint(TRUNCATE)", NULL,
                           NULL, NULL) == SQLITE_OK,
          "another connection empties the log");
    sqlite3_close(shell);
    CHECK(store_files_look(s) == FILES_CUT, "it looks as if it were cut");
    CHECK(!store_damage_is_plain(s) && store_files_check(s, &err) == 0 && told == 0,
          "and nothing is missing: %s", err.text);
    end(s, RUNS, "the log emptied");
}

static void test_no_answer(void)
{
    struct err err = {0};
    char path[sizeof((struct store *)0)->path];
    struct store *s = begin();
    memcpy(path, s->path, sizeof path);
    memset(s->path + strlen(dir) + 1, 'x', 300); // a name longer than any file may have
    CHECK(store_files_look(s) == FILES_UNKNOWN, "the system does not say what is there");
    CHECK(store_files_check(s, &err) < 0 && err.code == ERR_STORAGE && told == 0,
          "which is no damage: %s", err.text);
    CHECK(!store_damage_is_plain(s) && submit(s, &err) < 0 && err.code == ERR_STORAGE,
          "but nothing is acknowledged");
    memcpy(s->path, path, sizeof path);
    end(s, RUNS, "no result");
}

static void test_no_room_for_a_copy(void)
{
    struct err err = {0};
    struct store *s = begin();
    unlink(s->path);
    CHECK(mkdir(beside(s, ".new"), 0700) == 0, "something is in the way of the copy");
    CHECK(store_set_aside(s, "test", &err) < 0 && err.code != ERR_DAMAGED, "it fails: %s",
          err.text);
    CHECK(count(s) == RUNS && damaged_files(s) == 0, "what is open stays open");
    CHECK(rmdir(beside(s, ".new")) == 0, "the way is free");
    is_rewritten(s, 0, "the second time");
}

// Damage that one connection sees and nobody else.
static void test_fresh_connection(void)
{
    struct err err = {0};
    struct store *s = begin();
    int64_t openings = s->openings;
    store_doubt(s);
    told = 0;
    CHECK(submit(s, &err) < 0 && err.code == ERR_DAMAGED && told == 0,
          "in doubt nothing is written: %s", err.text);
    CHECK(count(s) == RUNS && !store_writable(s, &err), "what can be read is read");
    CHECK(store_reopen(s, &err) == 0 && s->openings == openings + 1, "a fresh connection: %s",
          err.text);
    CHECK(count(s) == RUNS && damaged_files(s) == 0, "to the same database");
    unlink(s->path);
    refuses_writes(s, FILES_MOVED, "deleted or replaced"); // it is watched too
    CHECK_INT(store_set_aside(s, "test", &err), 1, "and mended: %s", err.text);
    CHECK(truncate(s->path, 100) == 0 && store_reopen(s, &err) < 0 && err.code == ERR_DAMAGED,
          "one that is damaged is not opened: %s", err.text);
    CHECK(submit(s, &err) < 0 && err.code == ERR_STORAGE, "until then there is none: %s", err.text);
    CHECK(store_set_aside(s, "test", &err) == 0 && count(s) == RUNS,
          "but set aside, and what waited is taken over: %s", err.text);
    end(s, RUNS, "a fresh connection");
}

int main(void)
{
    test_deleted();
    test_index_of_log_deleted();
    test_directory_gone();
    test_replaced();
    test_file_cut();
    test_log_cut();
    test_log_emptied();
    test_no_answer();
    test_no_room_for_a_copy();
    test_fresh_connection();
    return tap_done();
}

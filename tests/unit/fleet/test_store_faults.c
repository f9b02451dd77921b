// SPDX-License-Identifier: Apache-2.0
// Databases that are full, read-only, newer, damaged or of another program; and what a person sees
// who reads them without this program.
#include "fleet/store/store.h"
#include "tests/unit/tap.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "core/store/sqlite.h"
#include "fleet/store/pg.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/fleet/cluster.h"
#include "tests/unit/fleet/pages.h"

static char dir[64], path[128];
static struct err err;

// A statement by another program.
static void lite_exec(const char *sql)
{
    sqlite3 *db = NULL;
    struct err own = {0};
    if (sq_open(&db, path, SQLITE_OPEN_READWRITE, &own) < 0 || sq_exec(db, sql, &own) < 0)
        printf("# %s: %s\n", sql, own.text);
    sqlite3_close(db);
}

// What later steps have added, taken away again.
#define FIRST_SCHEMA "ALTER TABLE setup DROP COLUMN good; ALTER TABLE archive DROP COLUMN refused; "

static int64_t lite_count(const char *sql)
{
    sqlite3 *db = NULL;
    struct err own = {0};
    int64_t n = -1;
    CHECK(sq_open(&db, path, SQLITE_OPEN_READWRITE, &own) == 0 && sq_number(db, sql, &n, &own) == 0,
          "%s: %s", sql, own.text);
    sqlite3_close(db);
    return n;
}

static int lite_version(void)
{
    return (int)lite_count("PRAGMA user_version");
}

// A file system without locks.
static int lock_errno;
int flock(int fd, int operation)
{
    errno = lock_errno;
    return lock_errno ? -1 : (int)syscall(SYS_flock, fd, operation);
}

static void test_no_locks(void)
{
    lock_errno = ENOLCK;
    CHECK(!fleet_store_open(path, FLEET_STORE_WRITE, &err) && err.code == ERR_STORAGE &&
              strstr(err.text, "cannot be locked"),
          "a disk without locks is no other process: %s", err.text);
    lock_errno = 0;
}

static void limit_files(rlim_t bytes)
{
    struct rlimit l;
    getrlimit(RLIMIT_FSIZE, &l);
    l.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &l);
}

static struct maker page_after(int64_t after, int64_t last)
{
    struct maker m = MAKER("f1");
    m.history = "f1";
    m.after = after;
    m.last = last;
    return m;
}

static struct fleet_ack put_after(struct fleet_store *s, int64_t after, int64_t last)
{
    struct maker m = page_after(after, last);
    return made_page_put(s, &m, &err);
}

static void test_full(void)
{
    struct fleet_store *s = fleet_store_open(path, FLEET_STORE_WRITE, &err);
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(put_after(s, 0, 20).outcome, FLEET_STORED, "a page");
    limit_files(32 << 10);
    CHECK(put_after(s, 20, 900).outcome == FLEET_OUTCOMES && err.code == ERR_STORAGE,
          "a full disk is said: %s", err.text);
    limit_files(RLIM_INFINITY);
    struct fleet_ack ack = put_after(s, 20, 900);
    CHECK(ack.outcome == FLEET_STORED && ack.next == 900, "with room it is stored: %s", err.text);
    ack = put_after(s, 20, 900);
    CHECK(ack.outcome == FLEET_BEHIND && ack.next == 900, "once");
    fleet_store_close(s);
}

// As root no file is read-only: then another account tries.
static void test_read_only(void)
{
    chmod(path, 0444);
    chmod(dir, 0555);
    bool root = geteuid() == 0;
    if (root && seteuid(CLUSTER_ACCOUNT) < 0)
        return;
    struct fleet_store *s = fleet_store_open(path, FLEET_STORE_WRITE, &err);
    CHECK(!s && err.code == ERR_STORAGE, "a place that cannot be written to: %s", err.text);
    fleet_store_close(s);
    if (root && seteuid(0) < 0)
        abort();
    chmod(dir, 0755);
    chmod(path, 0640);
}

static void check_refused(const char *where, const char *what)
{
    for (int use = FLEET_STORE_READ; use <= FLEET_STORE_WRITE; use++) {
        struct fleet_store *s = fleet_store_open(where, use, &err);
        CHECK(!s && err.code == ERR_STORAGE, "%s, %s: %s", what, use ? "to write" : "to read",
              err.text);
        fleet_store_close(s);
    }
}

static void test_versions(void)
{
    char back[60];
    snprintf(back, sizeof back, "PRAGMA user_version = %d", lite_version());
    lite_exec("PRAGMA user_version = 999");
    check_refused(path, "a newer schema");
    lite_exec(back);
    lite_exec("PRAGMA application_id = 7");
    check_refused(path, "another program's database");
    lite_exec("PRAGMA application_id = 1852861556");
    struct fleet_store *s = fleet_store_open(path, FLEET_STORE_READ, &err);
    CHECK(s != NULL, "both were left alone: %s", err.text);
    fleet_store_close(s);
    check_refused("/nonexistent/fleet.db", "a place that is not there");
}

// A store of the first schema. Its readers wait for the process that writes.
static void check_migrated(const char *where)
{
    struct fleet_store *s = fleet_store_open(where, FLEET_STORE_READ, &err);
    CHECK(!s && strstr(err.text, "the process that writes migrates it"), "to read: %s", err.text);
    s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(s != NULL, "to write, it is migrated: %s", err.text);
    fleet_store_close(s);
    s = fleet_store_open(where, FLEET_STORE_READ, &err);
    CHECK(s != NULL, "and read then: %s", err.text);
    fleet_store_close(s);
}

// What stands by names which of the two programs is to be updated.
static void check_other_writer(const char *where, const char *says)
{
    struct fleet_store *other = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(!other && err.code == ERR_CONFLICT && strstr(err.text, "another process") &&
              !strstr(err.text, "(schema") == !*says && strstr(err.text, says),
          "the writer is of a schema %s: %s", *says ? "that is not ours" : "of ours", err.text);
    CHECK(strlen(err.text) < 200, "it fits a report");
    fleet_store_close(other);
}

static void test_other_writer(void)
{
    char back[60];
    struct fleet_store *s = fleet_store_open(path, FLEET_STORE_WRITE, &err);
    snprintf(back, sizeof back, "PRAGMA user_version = %d", lite_version());
    check_other_writer(path, "");
    lite_exec("PRAGMA user_version = 1");
    check_other_writer(path, "; it upgrades the store (schema 1, ");
    struct fleet_store *r = fleet_store_open(path, FLEET_STORE_READ, &err);
    CHECK(!r && strstr(err.text, "if it is of an older numaprobe, update that one"),
          "readers say so too: %s", err.text);
    lite_exec("PRAGMA user_version = 999");
    check_other_writer(path, "; it is a newer numaprobe (schema 999, ");
    lite_exec(back);
    fleet_store_close(s);
}

// Made by a program from before the first release, whose first schema had fewer tables.
static void check_unreleased(const char *where)
{
    for (int use = 0; use < 2; use++) {
        struct fleet_store *s =
            fleet_store_open(where, use ? FLEET_STORE_WRITE : FLEET_STORE_READ, &err);
        CHECK(!s && err.code == ERR_STORAGE && strstr(err.text, "before the first release"),
              "a store of an unreleased program: %s", err.text);
        fleet_store_close(s);
    }
}

static void test_unreleased(void)
{
    char copy[160];
    snprintf(copy, sizeof copy, "%s.v1.bak", path);
    unlink(copy);
    lite_exec(FIRST_SCHEMA "ALTER TABLE note RENAME TO absent;"
                           "PRAGMA user_version = 1");
    check_unreleased(path);
    CHECK(lite_version() == 1 && access(copy, F_OK) < 0, "it is left alone, and not copied");
    lite_exec("ALTER TABLE absent RENAME TO note");
    check_migrated(path);
}

static int take_any(void *ctx, const struct summary_page *p, struct err *e)
{
    (void)p;
    (void)e;
    ++*(int *)ctx;
    return 0;
}

static void test_damaged(void)
{
    static const char *const harm[] = {
        "UPDATE run SET v = x'0000' WHERE seq = 5",
        "UPDATE run SET v = substr(v, 5), w = substr(w, 5) WHERE seq = 5",
        "UPDATE run SET kind = 77 WHERE seq = 5",
        "UPDATE run SET state = -1 WHERE seq = 5",
        "UPDATE layout SET metrics = '[[\"other\",\"ns\"]]'",
        "UPDATE feed SET node = 44",
    };
    char keep[160];
    snprintf(keep, sizeof keep, "VACUUM INTO '%s.good'", path);
    lite_exec(keep);
    for (size_t i = 0; i < COUNT_OF(harm); i++) {
        int n = 0;
        lite_exec(harm[i]);
        struct fleet_store *s = fleet_store_open(path, FLEET_STORE_WRITE, &err);
        CHECK(s && fleet_store_window(s, &(struct fleet_window){0}, take_any, &n, &err) < 0 &&
                  err.code == ERR_DAMAGED,
              "%s: %s", harm[i], err.text);
        fleet_store_close(s);
        snprintf(keep, sizeof keep, "%s.good", path);
        CLEANUP_FILE FILE *from = fopen(keep, "r");
        CLEANUP_FILE FILE *to = fopen(path, "w");
        char bytes[4096];
        for (size_t k; from && to && (k = fread(bytes, 1, sizeof bytes, from)) > 0;)
            fwrite(bytes, 1, k, to);
    }
}

// ---- Read by a person

#if FLEET_POSTGRESQL
static int say_cells(void *ctx, const struct fleet_cell *row, struct err *e)
{
    (void)e;
    buf_fmt(ctx, "%s %s %s %.6g\n", row[0].t, row[1].t, row[2].t, row[3].d);
    return 0;
}

#endif

static int lite_said(void *ctx, int n, char **value, char **name)
{
    double d = 0;
    (void)n;
    (void)name;
    str_to_double(value[3], &d);
    buf_fmt(ctx, "%s %s %s %.6g\n", value[0], value[1], value[2], d);
    return 0;
}

static const char sql_view[] = "SELECT node, metric, unit, value FROM history "
                               "WHERE seq <= 20 ORDER BY seq, metric";

static void say_expected(struct buf *out)
{
    struct metric list[PAGE_METRICS];
    for (int seq = 1; seq <= 20; seq++) {
        made_page_metrics(list, PAGE_METRICS, seq); // names are in order
        for (int i = 0; i < PAGE_METRICS; i++)
            buf_fmt(out, "f1 %s %s %.6g\n", list[i].name, list[i].unit, list[i].value);
    }
}

static void test_view(void)
{
    CLEANUP_BUF struct buf want = BUF_INIT, lite = BUF_INIT;
    sqlite3 *db = NULL;
    say_expected(&want);
    sqlite3_open(path, &db);
    sqlite3_exec(db, sql_view, lite_said, &lite, NULL);
    sqlite3_close(db);
    CHECK_STR(buf_text(&lite), buf_text(&want), "a shell shows SQLite's values");
}

#if FLEET_POSTGRESQL
static void pg_change(const struct cluster *c, const char *sql)
{
    struct pg *conn = pg_open(c->uri, &err);
    if (!conn || pg_exec(conn, sql, &err) < 0)
        printf("# %s: %s\n", sql, err.text);
    pg_close(conn);
}

static void test_postgresql(const struct cluster *c)
{
    struct fleet_store *s =
        fleet_store_open("postgresql:///x?host=/nonexistent", FLEET_STORE_READ, &err);
    CHECK(!s && err.code == ERR_UNAVAILABLE, "no server: %s", err.text);
    s = fleet_store_open(c->uri, FLEET_STORE_READ, &err);
    CHECK(!s && err.code == ERR_STORAGE, "a reader makes no tables: %s", err.text);
    s = fleet_store_open(c->uri, FLEET_STORE_WRITE, &err);
    CHECK(s && put_after(s, 0, 20).outcome == FLEET_STORED, "a page: %s", err.text);
    fleet_store_close(s);
    pg_change(c, "UPDATE schema_version SET version = version + 900");
    check_refused(c->uri, "a newer schema");
    pg_change(c, "UPDATE schema_version SET version = version - 900");
    struct fleet_store *w = fleet_store_open(c->uri, FLEET_STORE_WRITE, &err);
    check_other_writer(c->uri, "");
    pg_change(c, "UPDATE schema_version SET version = version + 900");
    check_other_writer(c->uri, "; it is a newer numaprobe (schema 9");
    pg_change(c, "UPDATE schema_version SET version = version - 901");
    check_other_writer(c->uri, "; it upgrades the store (schema ");
    pg_change(c, "UPDATE schema_version SET version = version + 1");
    fleet_store_close(w);
    pg_change(c, FIRST_SCHEMA "UPDATE schema_version SET version = 1");
    check_migrated(c->uri);
    pg_change(c, "ALTER TABLE note RENAME TO absent");
    check_unreleased(c->uri);
    pg_change(c, "ALTER TABLE absent RENAME TO note");
    s = fleet_store_open(c->uri, FLEET_STORE_WRITE, &err);
    pg_change(c, "ALTER SYSTEM SET default_transaction_read_only = on");
    pg_change(c, "SELECT pg_reload_conf(), pg_terminate_backend(pid) FROM pg_stat_activity "
                 "WHERE application_name = 'numaprobe-fleetd' AND pid <> pg_backend_pid()");
    CHECK(s && put_after(s, 20, 21).outcome == FLEET_OUTCOMES && err.code == ERR_STORAGE,
          "a server that only reads: %s", err.text);
    fleet_store_close(s);
}

static void test_pg_view(const struct cluster *c)
{
    CLEANUP_BUF struct buf want = BUF_INIT, pg = BUF_INIT;
    say_expected(&want);
    struct pg *conn = pg_open(c->uri, &err);
    CHECK(conn && pg_query(conn, sql_view, NULL, 0, say_cells, &pg, NULL, &err) == 0,
          "PostgreSQL has the view: %s", err.text);
    CHECK_STR(buf_text(&pg), buf_text(&want), "and shows the same");
    pg_close(conn);
}
#endif

int main(void)
{
    struct cluster c CLEANUP(cluster_stop) = {0};
    dir_make(dir);
    snprintf(path, sizeof path, "%s/fleet.db", dir);
    test_no_locks();
    test_full();
    test_read_only();
    test_versions();
    test_other_writer();
    lite_exec(FIRST_SCHEMA "INSERT INTO archive (node, feed, seq, run, state, tries, due_ms, "
                           "bytes, why) VALUES (1, 1, 999, 999, 0, 5, 0, 3, '');"
                           "PRAGMA user_version = 1");
    check_migrated(path);
    CHECK_INT(lite_count("SELECT count(*) FROM archive WHERE refused = 3 AND NOT bytes"), 1,
              "refusals have a column of their own");
    lite_exec("DELETE FROM archive WHERE seq = 999");
    test_unreleased();
    test_damaged();
    test_view();
#if FLEET_POSTGRESQL
    if (cluster_start(&c)) {
        test_postgresql(&c);
        test_pg_view(&c);
    } else
#endif
        SKIP("no PostgreSQL on this machine, or the program was built without it");
    dir_remove(dir);
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// A database of each released version comes forward with all that is in it, also when the process
// is killed at any of its writes.
#include "core/store/damage.h"
#include "core/store/store.h"
#include "tests/unit/tap.h"

#include <math.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/store/db.h"
#include "core/store/history.h"
#include "core/store/migrate.h"
#include "formats/earlier.h"
#include "schema/schema.h"
#include "tests/unit/core/dir.h"

enum { RANKS = 3, SIZES = 4, RUNS = 3, LATEST = 12 };

static char dir[64], path[128], copy[160];

// Conditions as versions 1 to 4 stored them.
static const char *const sentences[] = {
    "a note",
    "FORCED, busy_cpus: CPU 0 is busy",
    "DISTURBED: a backup of the database was made meanwhile",
    "PLACEMENT: rank 3 ran on CPU 1 instead of 0",
    "rank 17 moved between CPUs 4 times",
    "rank 0: only 95.0 % of the pages asked for on node 1 are there",
    "rank 1: the kernel moved pages while measuring: \"x\"",
    "load: load is 3.92 on 2 CPUs: somebody else is computing",
    "steal: while it ran, the hypervisor took 7 %",
    "no control group of its own: \xc3\xa9",
    "its control group cannot limit its memory: the controller is not there",
    "ranks run as root",
    "ranks run",
    "launcher: ranks were started without MPI: no mpirun",
    "mpirun did not end by itself: it was ended 10 s after all results had come",
    "the host took the CPU for more than 1 % of the time in 1 of 4 cells: 2.0 % (x)",
    "pair 0-1 (core): CPU 0 and CPU 1",
    "date: not known; when it was imported stands for it",
    "date: from the lines around the table",
    "node: not known",
    "cells hold one value: how sure it is is not known",
    "other: x",
    "rank x",
    "",
};

// The array as it was stored, or (`now`) as it is read from an old export.
static void write_conditions(struct buf *out, bool now)
{
    struct jsonw w = jsonw_to(out);
    jsonw_array(&w, NULL);
    for (size_t i = 0; i < COUNT_OF(sentences); i++) {
        struct condition c;
        if (!now)
            jsonw_text(&w, NULL, sentences[i]);
        else if (earlier_condition(&c, sentences[i], NULL) == 0)
            condition_write_json(&c, &w, NULL);
    }
    jsonw_end(&w);
}

static void run_sql(sqlite3 *db, const char *sql)
{
    struct err err;
    if (sq_exec(db, sql, &err) < 0) {
        fprintf(stderr, "%s: %s\n", sql, err.text);
        abort();
    }
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    struct err err;
    int64_t n = -1;
    return sq_number(db, sql, &n, &err) < 0 ? -1 : n;
}

static void make_rank(struct rank_info *r, int run, int rank)
{
    *r = (struct rank_info){.rank = rank,
                            .pid = 4000 + rank,
                            .cpu_wanted = 8 + rank,
                            .cpu = rank == 2 ? -1 : 9 + rank,
                            .cpu_node = 1,
                            .mem_wanted = 1,
                            .mem_node = 0,
                            .mem_share = run == 2 ? NAN : 0.25 * rank,
                            .pages_checked = 100 + rank,
                            .pages_total = 200 + rank,
                            .mem_method = "move_pages",
                            .n_nodes = rank,
                            .nodes = {{0, 512, 77}, {1, 12, 0}},
                            .pages_wanted = "thp",
                            .pages_got = "mixed",
                            .huge_share = rank ? 0.5 : NAN,
                            .address = 0x7fabcdef0000 + (uint64_t)rank * 4096,
                            .seed = 12345678901,
                            .migrations = rank,
                            .arena_bytes = 1 << 20,
                            .off_cpu_share = NAN,
                            .clock_ghz = NAN,
                            .load_cycles = NAN};
}

// As version 1 stored it: all of a rank as JSON in `info`.
static void put_rank(sqlite3 *db, int run, int rank)
{
    struct rank_info r;
    CLEANUP_BUF struct buf info = BUF_INIT, share = BUF_INIT;
    make_rank(&r, run, rank);
    struct jsonw w = jsonw_to(&info);
    rank_write_json(&r, &w, NULL);
    if (isfinite(r.mem_share))
        buf_fmt(&share, "%g", r.mem_share);
    else
        buf_str(&share, "NULL");
    char *sql = sqlite3_mprintf("INSERT INTO rank VALUES (%d,%d,%lld,%lld,%lld,%s,%Q)", run, rank,
                                (long long)r.cpu, (long long)r.cpu_node, (long long)r.mem_node,
                                buf_text(&share), buf_text(&info));
    run_sql(db, sql);
    sqlite3_free(sql);
}

static void put_run(sqlite3 *db, int run)
{
    char sql[6000];
    CLEANUP_BUF struct buf conditions = BUF_INIT;
    write_conditions(&conditions, false);
    snprintf(
        sql, sizeof sql,
        "INSERT INTO run (id,seq,state,benchmark,node,created_ms,started_ms,finished_ms,method,"
        "n_ranks,n_cells,class_hash,config_hash,topology_hash,idempotency_key,spec,plan,"
        "conditions,phases) VALUES (%d,%d,'succeeded','latency','node%d',%lld,%lld,%lld,"
        "'prp4-v1',%d,%d,'c1','f1','t1','key-%d',"
        "'{\"benchmark\":\"latency\",\"note\":\"run %d\"}','{\"ranks\":[]}','%s',"
        "'{\"populate\":1.5}')",
        run * 2, run, run, 1700000000000LL + run, 1700000001000LL + run, 1700000002000LL + run,
        RANKS, RANKS * SIZES, run, run, buf_text(&conditions));
    run_sql(db, sql);
    snprintf(sql, sizeof sql,
             "INSERT INTO matrix VALUES (%d,0,'concurrent','latency','ns',"
             "'{\"name\":\"rank\",\"unit\":\"\",\"values\":[0,1,2]}',"
             "'{\"name\":\"working_set\",\"unit\":\"bytes\",\"values\":[1024,2048,4096,8192]}');"
             "INSERT INTO log VALUES (%d,'printed by %d\n')",
             run * 2, run * 2, run);
    run_sql(db, sql);
    for (int i = 0; i < RANKS * SIZES; i++) {
        snprintf(sql, sizeof sql,
                 "INSERT INTO cell VALUES (%d,0,%d,%d,11,1,%d,97000,99000,96000,97500,98500,99900,"
                 "98200,400,%s,1)",
                 run * 2, i / SIZES, i % SIZES, 98000 + 100 * run + i, i ? "9876" : "NULL");
        run_sql(db, sql);
    }
    for (int i = 0; i < RANKS; i++)
        put_rank(db, run * 2, i);
}

// What numaprobe 0.1 left behind after three runs, one that waits, and one deleted in between.
// The database brought to version `n`, without the copies of older ones; the caller closes it.
static sqlite3 *at_version(int n)
{
    struct embedded first[8] = {0};
    struct err err;
    sqlite3 *db = NULL;
    memcpy(first, schema_sql, (size_t)n * sizeof *first);
    sqlite3_open(path, &db);
    if (n == 1)
        run_sql(db, "PRAGMA page_size=8192; PRAGMA auto_vacuum=INCREMENTAL;"
                    "PRAGMA application_id=1853189473; PRAGMA journal_mode=WAL;"
                    "PRAGMA synchronous=OFF");
    if (migrate_run(db, path, &(struct migration){STORE_APPLICATION_ID, first, ""}, &err) < 0)
        abort();
    for (int version = 1; version < n; version++) {
        char kept[160];
        snprintf(kept, sizeof kept, "%s.v%d.bak", path, version);
        unlink(kept);
    }
    return db;
}

static void make_version_1(void)
{
    sqlite3 *db = at_version(1);
    run_sql(db, "BEGIN");
    run_sql(db, "INSERT INTO fingerprint VALUES ('c1','class','{\"hash\":\"c1\",\"facts\":{}}'),"
                "('f1','config','{\"hash\":\"f1\",\"facts\":{\"thp\":\"never\"}}');"
                "INSERT INTO topology VALUES ('t1','<topology/>'),('t2','<unused/>');"
                "INSERT INTO fingerprint VALUES ('f2','config','{\"hash\":\"f2\",\"facts\":{}}');"
                "UPDATE counter SET value = 4 WHERE name = 'seq'");
    for (int i = 1; i <= RUNS; i++)
        put_run(db, i);
    run_sql(db,
            "INSERT INTO run (id,state,benchmark,node,created_ms,spec) VALUES "
            "(9,'queued','latency','node9',1700000009000,'{\"benchmark\":\"latency\"}');COMMIT");
    sqlite3_close(db);
}

static bool same_rank(const struct rank_info *a, const struct rank_info *b)
{
    bool same = a->address == b->address && a->n_nodes == b->n_nodes;
    for (int i = 0; i < RECORD_RANK_SLOTS; i++) {
        const struct record_slot *s = &record_rank_slots[i];
        const char *x = (const char *)a + s->offset, *y = (const char *)b + s->offset;
        if (s->kind == SLOT_TEXT)
            same = same && strcmp(x, y) == 0;
        else if (s->kind != SLOT_I64 && isnan(*(const double *)x))
            same = same && isnan(*(const double *)y);
        else
            same = same && memcmp(x, y, 8) == 0;
    }
    for (int i = 0; i < a->n_nodes && same; i++)
        same = a->nodes[i].node == b->nodes[i].node && a->nodes[i].pages == b->nodes[i].pages &&
               a->nodes[i].process_kib == b->nodes[i].process_kib;
    return same;
}

// True: run `run` has everything that put_run wrote.
static bool run_is_whole(struct store *s, int run)
{
    struct err err;
    struct run r CLEANUP(run_fini) = {0};
    struct rank_info *ranks = NULL, want;
    struct matrix *list = NULL;
    CLEANUP_MEM char *log = NULL, *xml = NULL;
    int n = 0, n_ranks = 0;
    char text[32], node[16];
    CLEANUP_BUF struct buf conditions = BUF_INIT;
    write_conditions(&conditions, true);
    snprintf(text, sizeof text, "printed by %d\n", run);
    snprintf(node, sizeof node, "node%d", run);
    bool whole = store_run_get(s, run * 2, &r, &err) == 0 && r.seq == run &&
                 r.state == RUN_SUCCEEDED && strcmp(r.node, node) == 0 &&
                 r.measured_ms == 1700000001000LL + run && !r.imported && !*r.label &&
                 r.finished_ms == 1700000002000LL + run && r.phase_ms[0] == 1.5 &&
                 strcmp(r.conditions_json, buf_text(&conditions)) == 0 &&
                 strncmp(r.spec.note, "run ", 4) == 0 && strcmp(r.class_hash, "c1") == 0;
    whole = whole && store_log_get(s, run * 2, &log, &err) == 0 && strcmp(log, text) == 0 &&
            store_topology_xml(s, run * 2, &xml, &err) == 0 && strcmp(xml, "<topology/>") == 0;
    whole = whole && store_matrices_get(s, run * 2, &list, &n, &err) == 0 && n == 1;
    for (int i = 0; whole && i < RANKS * SIZES; i++)
        whole = fabs(list[0].cells[i].v[CELL_MEDIAN] - (98000 + 100 * run + i) / 1000.0) < 1e-9 &&
                list[0].cells[i].v[CELL_N] == 11 &&
                isnan(list[0].cells[i].v[CELL_OVERLAP]) == (i == 0) &&
                isnan(list[0].cells[i].v[CELL_MISSES]) && isnan(list[0].cells[i].v[CELL_CONFIRMED]);
    whole = whole && store_ranks_get(s, run * 2, &ranks, &n_ranks, &err) == 0 && n_ranks == RANKS;
    for (int i = 0; whole && i < RANKS; i++) {
        make_rank(&want, run * 2, i);
        whole = same_rank(&want, &ranks[i]);
    }
    store_matrices_free(list, n);
    free(ranks);
    return whole;
}

static bool all_is_whole(struct store *s)
{
    struct err err;
    int64_t id = 0;
    bool whole = ask(s->db, "PRAGMA user_version") == LATEST &&
                 ask(s->db, "SELECT count(*) FROM run") == RUNS + 1 &&
                 ask(s->db, "SELECT value FROM counter WHERE name = 'seq'") == 4 &&
                 ask(s->db, "SELECT count(*) FROM cell") == RUNS * RANKS * SIZES &&
                 ask(s->db, "SELECT sum(metrics_version) FROM run") == 0 &&
                 ask(s->db, "SELECT value FROM counter WHERE name = 'clock_steps'") == 0 &&
                 ask(s->db, "SELECT value FROM counter WHERE name = 'runs.succeeded'") == RUNS &&
                 ask(s->db, "SELECT value FROM counter WHERE name = 'runs.queued'") == 1 &&
                 ask(s->db, "SELECT count(*) FROM pragma_foreign_key_check") == 0 &&
                 ask(s->db, "SELECT count(*) FROM topology") == 1 && // the one that is used
                 ask(s->db, "SELECT count(*) FROM fingerprint") == 2 &&
                 store_run_next_queued(s, 0, &id, &err) == 1 && id == 9 &&
                 sq_check(s->db, false, &err) == 0;
    for (int run = 1; run <= RUNS; run++)
        whole = run_is_whole(s, run) && whole;
    return whole;
}

// The copy is a database of version 1 with all runs.
static bool copy_is_good(void)
{
    sqlite3 *db = NULL;
    struct err err;
    bool good = sqlite3_open_v2(copy, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                ask(db, "PRAGMA user_version") == 1 && sq_check(db, false, &err) == 0 &&
                ask(db, "SELECT count(*) FROM run") == RUNS + 1 &&
                ask(db, "SELECT count(*) FROM rank WHERE info LIKE '%move_pages%'") == RUNS * RANKS;
    sqlite3_close(db);
    return good;
}

static void start_over(void)
{
    const char *const all[] = {
        "numaprobe.db",        "numaprobe.db-wal",         "numaprobe.db-shm",
        "numaprobe.db.v1.bak", "numaprobe.db.v1.bak.part", "numaprobe.db.v1.bak.part-journal",
        "numaprobe.db.v2.bak", "numaprobe.db.v2.bak.part", "numaprobe.db.v2.bak.part-journal",
        "numaprobe.db.v3.bak", "numaprobe.db.v3.bak.part", "numaprobe.db.v3.bak.part-journal",
        "numaprobe.db.v4.bak", "numaprobe.db.v4.bak.part", "numaprobe.db.v4.bak.part-journal",
        "numaprobe.db.v5.bak", "numaprobe.db.v5.bak.part", "numaprobe.db.v5.bak.part-journal",
        "numaprobe.db.v6.bak", "numaprobe.db.v6.bak.part", "numaprobe.db.v6.bak.part-journal"};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        char full[160];
        snprintf(full, sizeof full, "%s/%s", dir, all[i]);
        unlink(full);
    }
    make_version_1();
}

static void test_upgrade(void)
{
    struct err err = {0};
    start_over();
    struct store *s = store_open(dir, &err);
    CHECK(s, "opened: %s", err.text);
    if (!s)
        return;
    for (int run = 1; run <= RUNS; run++)
        CHECK(run_is_whole(s, run), "run %d has all that it had", run);
    CHECK(all_is_whole(s), "so has the database");
    CHECK(copy_is_good(), "a copy of version 1 is beside it");
    CHECK(store_damage(s)->when_ms == 0, "nothing was taken for damage");
    store_close(s);
}

// As version 2 left it: metrics of two runs, series whose runs were deleted.
static void make_version_2(void)
{
    start_over();
    sqlite3 *db = at_version(2);
    run_sql(db, "INSERT INTO series VALUES (1,'a','node1','','ns'),(2,'a','node2','','ns'),"
                "(3,'gone','node1','','ns'),(4,'b','node1','v','ns'),(5,'gone','node8','','ns');"
                "INSERT INTO metric VALUES (1,1700000001001,2,98123,97000,NULL),"
                "(2,1700000001002,4,98124,NULL,NULL),(4,1700000001001,2,1,2,3)");
    sqlite3_close(db);
}

static int64_t metrics_sum(sqlite3 *db)
{
    return ask(db,
               "SELECT sum(run_id * value_milli * 3 + coalesce(lo_milli, 5) + series) "
               "FROM metric WHERE measured_ms = (SELECT measured_ms FROM run WHERE id = run_id)");
}

static void test_from_version_2(void)
{
    struct err err = {0};
    char kept[160];
    sqlite3 *db = NULL;
    make_version_2();
    snprintf(kept, sizeof kept, "%s.v2.bak", path);
    struct store *s = store_open(dir, &err);
    CHECK(s, "version 2 opened: %s", err.text);
    if (!s)
        return;
    CHECK(all_is_whole(s), "it has all that it had");
    CHECK(ask(s->db, "SELECT count(*) FROM series") == 3 &&
              ask(s->db, "SELECT count(*) FROM series WHERE metric = 'gone'") == 0,
          "but series without points");
    sqlite3_open_v2(kept, &db, SQLITE_OPEN_READONLY, NULL);
    CHECK(ask(db, "PRAGMA user_version") == 2 && ask(db, "SELECT count(*) FROM series") == 5 &&
              sq_check(db, true, &err) == 0,
          "a copy of version 2 is beside it");
    CHECK(metrics_sum(s->db) > 0 && metrics_sum(s->db) == metrics_sum(db), "metrics are the same");
    sqlite3_close(db);
    CHECK_INT(sq_check(s->db, true, &err), 0, "indexes fit their tables: %s", err.text);
    CHECK(store_run_delete(s, 2, &err) == 0 && ask(s->db, "SELECT count(*) FROM metric") == 1 &&
              ask(s->db, "SELECT count(*) FROM series") == 1,
          "old metrics and series go with their run");
    store_close(s);
}

// As version 3 left it: measured runs and imports, the clock set back in between.
static void make_version_3(void)
{
    start_over();
    sqlite3 *db = at_version(3);
    run_sql(db, "UPDATE run SET node = 'n'; UPDATE run SET source = 'imported' WHERE id = 6;"
                "INSERT INTO series VALUES (1,'a','n','','ns'),(2,'a','n','imported=true','ns');"
                "INSERT INTO metric VALUES (1,1800000000000,2,1,NULL,NULL),"
                "(1,1700000001002,4,1,NULL,NULL),(2,1700000001003,6,1,NULL,NULL)");
    sqlite3_close(db);
}

static void test_from_version_3(void)
{
    struct err err = {0};
    int64_t n = 0;
    make_version_3();
    struct store *s = store_open(dir, &err);
    CHECK(s, "version 3 opened: %s", err.text);
    if (!s)
        return;
    CHECK_INT(ask(s->db, "SELECT newest_run FROM series WHERE id = 1"), 4,
              "the newest run of a series is the one with the highest number");
    CHECK_INT(ask(s->db, "SELECT newest_run FROM series WHERE id = 2"), 0, "imports have none");
    CHECK_INT(sq_check(s->db, true, &err), 0, "indexes fit their tables: %s", err.text);
    CHECK(store_run_latest(s, "n", &n, &err) == 1 && n == 9, "the newest measured run is known");
    CHECK(store_runs_pending(s, 1, "n", 9, &n, &err) == 0 && n == RUNS,
          "so is how many have no metrics");
    CHECK(store_run_delete(s, 4, &err) == 0 &&
              ask(s->db, "SELECT newest_run FROM series WHERE id = 1") == 2,
          "when it is deleted another takes its place");
    CHECK(store_run_delete(s, 2, &err) == 0 && ask(s->db, "SELECT count(*) FROM series") == 1,
          "a series goes with its last run");
    store_close(s);
}

// ---- killed at every write

static int writes_left;

// Half of a write is what a kill in the middle leaves.
static ssize_t dying_pwrite(int fd, const void *data, size_t n, off_t at)
{
    if (--writes_left < 0) {
        if (pwrite(fd, data, n / 2, at) < 0)
            _exit(8);
        _exit(9);
    }
    return pwrite(fd, data, n, at);
}

static int dying_truncate(int fd, off_t n)
{
    if (--writes_left < 0)
        _exit(9);
    return ftruncate(fd, n);
}

static int dying_unlink(const char *name)
{
    if (--writes_left < 0)
        _exit(9);
    return unlink(name);
}

static void arm(int writes)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    writes_left = writes;
    const struct {
        const char *name;
        sqlite3_syscall_ptr fn;
    } calls[] = {{"pwrite", (sqlite3_syscall_ptr)dying_pwrite},
                 {"pwrite64", (sqlite3_syscall_ptr)dying_pwrite},
                 {"ftruncate", (sqlite3_syscall_ptr)dying_truncate},
                 {"unlink", (sqlite3_syscall_ptr)dying_unlink}};
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        if (vfs->xSetSystemCall(vfs, calls[i].name, calls[i].fn) != SQLITE_OK && i != 0 && i != 1)
            _exit(7);
}

// How a process ended that upgrades and may do so many writes.
static int upgrade_and_die(int writes)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct err err;
        arm(writes);
        struct store *s = store_open(dir, &err);
        store_close(s);
        _exit(s ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_kills(void)
{
    struct err err = {0};
    int lost = 0, odd = 0, writes = 0, by_version[LATEST + 1] = {0}, how = 9;
    for (; how == 9 && writes < 2000; writes++) {
        start_over();
        how = upgrade_and_die(writes);
        odd += how != 9 && how != 0;
        sqlite3 *db = NULL;
        sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL);
        int64_t version = ask(db, "PRAGMA user_version");
        odd += version < 1 || version > LATEST;
        odd += ask(db, "SELECT count(*) FROM cell") != RUNS * RANKS * SIZES;
        sqlite3_close(db);
        by_version[version >= 1 && version <= LATEST ? version : 0]++;
        if (version > 1 && !copy_is_good())
            odd++;
        struct store *s = store_open(dir, &err);
        if (!s || !all_is_whole(s) || store_damage(s)->when_ms || !copy_is_good()) {
            printf("# killed at write %d: %s\n", writes, s ? "not whole" : err.text);
            lost++;
        }
        store_close(s);
    }
    CHECK(how == 0 && writes > 20, "killed at each of %d writes", writes - 1);
    for (int v = 1; v <= LATEST; v++)
        CHECK(by_version[v] > 3, "%d times it was left at version %d", by_version[v], v);
    CHECK_INT(odd, 0, "what is left is one version or another, and whole");
    CHECK_INT(lost, 0, "the next start brings it forward with all that it had");
}

// Labels and baselines from before there were notes are in the feed once.
static void test_labels_of_before(void)
{
    struct err err = {0};
    struct store_change list[9];
    sqlite3 *db = NULL;
    int n = 0;
    make_version_2();
    sqlite3_open(path, &db);
    run_sql(db, "UPDATE run SET label = 'before' WHERE id = 2; INSERT INTO baseline VALUES ('b',1);"
                "INSERT INTO baseline_run VALUES ('b',2),('b',6)");
    sqlite3_close(db);
    struct store *s = store_open(dir, &err);
    CHECK(s, "opened: %s", err.text);
    if (!s)
        return;
    CHECK(store_run_changes(s, 4, list, COUNT_OF(list), &n, &err) == 0 && n == 2 && list[0].note &&
              list[0].seq == 5 && list[0].id == 2 && list[1].note && list[1].seq == 6 &&
              list[1].id == 6 && store_last_seq(s) == 6,
          "they have the next numbers");
    store_close(s);
}

int main(void)
{
    dir_make(dir);
    snprintf(path, sizeof path, "%s/numaprobe.db", dir);
    snprintf(copy, sizeof copy, "%s.v1.bak", path);
    test_upgrade();
    test_from_version_2();
    test_from_version_3();
    test_labels_of_before();
    test_kills();
    dir_remove(dir);
    return tap_done();
}

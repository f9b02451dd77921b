// SPDX-License-Identifier: Apache-2.0
// Retention step by step, and what a fresh database takes over from a damaged one.
#include "core/store/damage.h"
#include "core/store/store.h"
#include "tests/unit/tap.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/store/db.h"
#include "core/store/retention.h"
#include "tests/unit/core/dir.h"

static char dir[64];

static int64_t ask(struct store *s, const char *sql)
{
    struct err err;
    int64_t n = -1;
    return sq_number(s->db, sql, &n, &err) < 0 ? -1 : n;
}

static int64_t submit(struct store *s, const char *key)
{
    struct err err;
    struct spec spec;
    int64_t id = 0;
    bool again;
    spec_init(&spec, BENCHMARK_LATENCY);
    return store_run_insert(s, &spec, "it's node1", key, &id, &again, &err) < 0 ? -1 : id;
}

static void finish(struct store *s, int64_t id)
{
    struct err err = {0};
    const struct run_result r = {.state = RUN_CANCELED, .error = ERR_CONFLICT, .log = "text"};
    CHECK_INT(store_run_finished(s, id, &r, &err), 0, "run %lld is over: %s", (long long)id,
              err.text);
}

// Steps of no time at all: one run each. Returns how many steps there were.
static int sweep(struct store *s, const struct store_limits *l, int64_t now_ms,
                 struct store_sweep *w)
{
    struct err err = {0};
    int more, steps = 0;
    *w = (struct store_sweep){0};
    do {
        int64_t before = w->deleted;
        more = store_sweep_step(s, l, now_ms, 0, w, &err);
        CHECK(more >= 0 && w->deleted - before <= 1, "a step without time deletes one at most: %s",
              err.text);
        steps++;
    } while (more > 0 && steps < 100);
    return steps;
}

static void test_sweep(struct store *s)
{
    struct err err;
    struct store_sweep w;
    const int64_t now = clock_wall_ms(), day = 86400000;
    for (int i = 1; i <= 8; i++)
        finish(s, submit(s, NULL));
    submit(s, NULL); // 9 waits
    store_run_label(s, 2, "kept", &err);
    sq_exec(s->db,
            "INSERT INTO baseline (name,created_ms) VALUES ('b',1);"
            "INSERT INTO baseline_run VALUES ('b',3)",
            &err);
    CHECK(sweep(s, &(struct store_limits){0}, now + 1000 * day, &w) == 1 && !w.deleted,
          "without limits nothing goes");
    CHECK(sweep(s, &(struct store_limits){.keep_days = 2}, now + day, &w) == 1 && !w.deleted,
          "nothing is too old");
    sweep(s, &(struct store_limits){.keep_runs = 5}, now, &w);
    CHECK(w.deleted == 2 && ask(s, "SELECT count(*) FROM run WHERE id IN (1, 4)") == 0,
          "the oldest two go; pinned ones are not counted");
    sweep(s, &(struct store_limits){.keep_days = 2}, now + 3 * day, &w);
    CHECK(w.deleted == 3 && ask(s, "SELECT count(*) FROM run") == 4 &&
              ask(s, "SELECT count(*) FROM run WHERE id IN (2, 3, 8, 9)") == 4,
          "of old ones stay: with a label, in a baseline, the newest, and what is not over");
    CHECK(!w.short_of, "age is no limit on the whole");
    sweep(s, &(struct store_limits){.keep_bytes = 4096}, now, &w);
    CHECK(w.deleted == 0 && w.short_of, "a limit that pinned runs pass is told");
    CHECK(ask(s, "SELECT count(*) FROM log") == 3, "what belongs to a run went with it");
}

// A run with this configuration and topology, and a class that other such runs have too.
static int64_t import(struct store *s, const char *hash, const char *topology)
{
    struct err err = {0};
    struct spec spec;
    int64_t id = 0;
    const struct run_result r = {.state = RUN_SUCCEEDED};
    const struct run_import i = {.spec = &spec,
                                 .node = "node1",
                                 .measured_ms = 1700000000000,
                                 .label = "",
                                 .result = &r,
                                 .class_hash = "class",
                                 .class_json = "{}",
                                 .config_hash = hash,
                                 .config_json = "{}",
                                 .topology_hash = hash,
                                 .topology_xml = topology};
    spec_init(&spec, BENCHMARK_LATENCY);
    bool again;
    CHECK_INT(store_runs_import(s, &i, 1, &id, &again, &err), 0, "imported: %s", err.text);
    return id;
}

// keep_bytes counts what these take, so they must not stay behind.
static void test_unused(struct store *s)
{
    enum { BYTES = 1 << 20 };
    struct err err = {0};
    struct store_usage before, after;
    char *topology = malloc(BYTES + 1);
    memset(topology, 'x', BYTES);
    topology[BYTES] = '\0';
    store_usage(s, &before, &err);
    int64_t a = import(s, "a", topology), b = import(s, "b", topology);
    CHECK(store_run_delete(s, a, &err) == 0 && ask(s, "SELECT count(*) FROM topology") == 1 &&
              ask(s, "SELECT count(*) FROM fingerprint") == 2,
          "what no other run has goes with it, the rest stays: %s", err.text);
    CHECK(store_run_delete(s, b, &err) == 0 && ask(s, "SELECT count(*) FROM topology") == 0 &&
              ask(s, "SELECT count(*) FROM fingerprint") == 0,
          "with the last one all: %s", err.text);
    CHECK(store_usage(s, &after, &err) == 0 && after.used_bytes < before.used_bytes + 64 * 1024,
          "and so do the bytes");
    free(topology);
}

static void test_shrink(struct store *s)
{
    struct err err;
    struct store_usage before, after;
    int more, steps = 0;
    sq_exec(s->db, "CREATE TABLE ballast AS SELECT zeroblob(3000000) AS x", &err);
    sqlite3_exec(s->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    store_usage(s, &before, &err);
    sq_exec(s->db, "DROP TABLE ballast", &err);
    while ((more = store_shrink_step(s, 64, &err)) > 0)
        steps++;
    CHECK(more == 0 && steps >= 4, "the file shrinks in %d steps", steps);
    CHECK(store_usage(s, &after, &err) == 0 && after.file_bytes <= before.file_bytes - 2900000,
          "by what was free");
    CHECK(after.runs == 4 && after.pinned == 2 && after.oldest_ms > 0 && after.disk_free_bytes > 0,
          "usage");
}

static void on_damage(void *ctx)
{
    ++*(int *)ctx;
}

// Another hand writes nonsense into the file below us.
static void hurt(struct store *s)
{
    char junk[4096];
    struct stat st;
    sqlite3_exec(s->db, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA cache_size=1", NULL, NULL, NULL);
    sqlite3_db_release_memory(s->db);
    int fd = open(store_path(s), O_RDWR);
    memset(junk, 0xee, sizeof junk);
    for (off_t at = 8192; fstat(fd, &st) == 0 && at < st.st_size; at += 8192)
        if (pwrite(fd, junk, sizeof junk, at) < 0)
            abort();
    close(fd);
}

static void test_set_aside(struct store *s)
{
    struct err err = {0};
    struct run r CLEANUP(run_fini) = {0};
    int told = 0;
    int64_t waiting = submit(s, "a 'key'"), again_id = 0;
    int64_t last_seq = ask(s, "SELECT value FROM counter WHERE name = 'seq'");
    store_on_damage(s, on_damage, &told);
    hurt(s);
    CHECK(store_run_get(s, waiting, &r, &err) < 0 && err.code == ERR_DAMAGED && told > 0,
          "damage is told: %s", err.text);
    CHECK_INT(store_set_aside(s, err.text, &err), 0, "set aside: %s", err.text);
    CHECK(access(store_damage(s)->file, F_OK) == 0 && store_damage(s)->carried == 2, "as %s",
          store_damage(s)->file);
    CHECK(store_run_get(s, waiting, &r, &err) == 0 && r.state == RUN_QUEUED, "what waited waits");
    CHECK_STR(r.node, "it's node1", "as it was");
    CHECK(ask(s, "SELECT count(*) FROM run") == 2 &&
              ask(s, "SELECT count(*) FROM run WHERE idempotency_key = 'a ''key'''") == 1,
          "with its key, and nothing else is there");
    CHECK((again_id = submit(s, NULL)) == waiting + 1, "ids go on");
    finish(s, again_id);
    CHECK(ask(s, "SELECT value FROM counter WHERE name = 'seq'") == last_seq + 1, "so does seq");
    told = 0;
    hurt(s);
    CHECK(store_run_get(s, 1, &r, &err) < 0 && told > 0, "the fresh one is watched too");
    CHECK(store_set_aside(s, "again", &err) == 0 && ask(s, "SELECT count(*) FROM run") == 2,
          "and goes the same way");
    struct store_damaged_file list[4];
    CHECK(store_damaged_list(s, list, 4) == 2 && strcmp(list[0].name, list[1].name) > 0,
          "both are listed, the newest first");
    static const char *const later[] = {"20990101T000000Z", "20990101T000000Z.2",
                                        "20990101T000000Z.10", "20990101T000000Z.9"};
    for (size_t i = 0; i < COUNT_OF(later); i++) {
        char name[80];
        snprintf(name, sizeof name, "numaprobe.db.damaged-%s", later[i]);
        dir_write(s->dir, name, "");
    }
    CHECK(store_damaged_list(s, list, 1) == 6 && strstr(list[0].name, "Z.10"),
          "the last one, of a second that has ten: %s", list[0].name);
    CHECK(store_damaged_list(s, list, 4) == 6 && strstr(list[1].name, "Z.9") &&
              strstr(list[2].name, "Z.2") && list[3].name[strlen(list[3].name) - 1] == 'Z',
          "and those before it");
}

static void test_restore(struct store *s)
{
    struct err err = {0};
    struct spec spec;
    struct run r CLEANUP(run_fini) = {0};
    static struct fingerprint f;
    spec_init(&spec, BENCHMARK_LATENCY);
    facts_seal(&f.machine_class);
    facts_seal(&f.config);
    const struct run_restore row = {.id = 5000,
                                    .created_ms = 1700000000000,
                                    .started_ms = 1700000001000,
                                    .spec = &spec,
                                    .node = "n",
                                    .plan_json = "{}",
                                    .conditions_json = "[]",
                                    .fingerprint = &f,
                                    .topology_xml = "<t/>"};
    CHECK(store_run_restore(s, &row, &err) == 0 && store_run_restore(s, &row, &err) == 0,
          "a run that goes on is put back, once: %s", err.text);
    CHECK(store_run_get(s, 5000, &r, &err) == 0 && r.state == RUN_RUNNING &&
              r.created_ms == row.created_ms && r.started_ms == row.started_ms,
          "as it was");
    finish(s, 5000);
}

int main(void)
{
    struct err err = {0};
    dir_make(dir);
    struct store *s = store_open(dir, &err);
    CHECK(s, "opened: %s", err.text);
    if (s) {
        test_sweep(s);
        test_unused(s);
        test_shrink(s);
        test_set_aside(s);
        test_restore(s);
    }
    store_close(s);
    dir_remove(dir);
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// No statement of the store looks through a large table: all that it prepares is explained, and
// what it does for one request is counted in a database where each condition alone fits many rows.
#include <math.h>

#include "core/store/retention.h"
#include "core/store/store.h"
#include "tests/unit/tap.h"

#include "base/cleanup.h"
#include "core/store/db.h"
#include "core/store/history.h"
#include "core/store/summaries.h"
#include "tests/unit/core/dir.h"

enum {
    MANY = 2000,
    STEPS_MOST = 1200, // of SQLite's machine for one request; a look at each of MANY is 3 * MANY
    TEXTS_MAX = 600,
    FILTERS = 7,
};

// Plans that read a whole table or sort, and why they may: part of the statement, of the line.
static const struct exception {
    const char *statement, *line, *why;
} exceptions[] = {
    {"phases,measured_ms,source,label,topology_hash,benchmark FROM run ORDER BY id DESC LIMIT",
     "SCAN run", "the newest runs, no more than the page has"},
    {"FROM series AS s CROSS JOIN metric AS m ON m.series = s.id AND (m.measured_ms,m.run_id) = "
     "(SELECT measured_ms,run_id FROM metric WHERE series = s.id AND measured_ms <= ?5 "
     "ORDER BY measured_ms DESC, run_id DESC LIMIT 1) ORDER BY",
     "SCAN s USING INDEX", "the first series, no more than the list has"},
    {"SELECT count(*) FROM (SELECT 1 FROM", "SCAN (subquery", "no further than asked"},
    {"SELECT count(*) FROM run", "SCAN run USING COVERING INDEX",
     "counts all runs, in the index alone: 1 ms in ten years"},
    {"SELECT created_ms FROM run ORDER BY id LIMIT 1", "SCAN", "the first run"},
    {"AND id < (SELECT id FROM run WHERE seq IS NOT NULL ORDER BY id DESC", "SCAN run",
     "the newest that is over: behind it is at most the queue"},
    {"FROM run WHERE label <> '' UNION", "", "pinned runs, in the index alone"},
    {"SELECT name, (SELECT value FROM counter WHERE counter.name = 'seq') FROM identity",
     "SCAN identity", "one row"},
    {"FROM baseline AS b", "", "100 baselines at most"},
    {"AND state = 'succeeded' ORDER BY id DESC LIMIT ?6) AS r", "SCAN r", "16 runs at most"},
    {"AND state = 'succeeded' ORDER BY id DESC LIMIT ?6) AS r", "USE TEMP B-TREE FOR ORDER BY",
     "these, or values of them"},
};

static char dir[64];
static struct store *s;
static char *texts[TEXTS_MAX];
static int n_texts;
static int64_t steps;

static void run_sql(const char *sql)
{
    struct err err;
    if (sq_exec(s->db, sql, &err) < 0) {
        fprintf(stderr, "%s: %s\n", sql, err.text);
        abort();
    }
}

static int64_t ask(const char *sql)
{
    struct err err;
    int64_t n = -1;
    return sq_number(s->db, sql, &n, &err) < 0 ? -1 : n;
}

static void note_text(const char *text)
{
    for (int i = 0; i < n_texts; i++)
        if (strcmp(texts[i], text) == 0)
            return;
    if (n_texts == TEXTS_MAX)
        abort();
    texts[n_texts++] = strdup(text);
}

static int watch(unsigned what, void *ctx, void *stmt, void *more)
{
    (void)ctx;
    (void)more;
    if (what == SQLITE_TRACE_STMT)
        note_text(sqlite3_sql(stmt));
    else
        steps += sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    return 0;
}

// ---- plans

static const char *why_not(const char *statement, const char *line)
{
    bool looks = strncmp(line, "SCAN ", 5) == 0 && strcmp(line, "SCAN CONSTANT ROW") != 0;
    bool sorts = strncmp(line, "USE TEMP B-TREE", 15) == 0;
    bool makes = strstr(line, "AUTOMATIC") != NULL; // an index for this once
    if (!looks && !sorts && !makes)
        return NULL;
    for (size_t i = 0; i < COUNT_OF(exceptions); i++)
        if (strstr(statement, exceptions[i].statement) &&
            strncmp(line, exceptions[i].line, strlen(exceptions[i].line)) == 0)
            return NULL;
    return line;
}

// How many lines of its plan are no good.
static int explain(const char *statement)
{
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    CLEANUP_BUF struct buf text = BUF_INIT;
    int bad = 0;
    buf_fmt(&text, "EXPLAIN QUERY PLAN %s", statement);
    if (sqlite3_prepare_v2(s->db, buf_text(&text), -1, &q, NULL) != SQLITE_OK)
        return 1;
    while (sqlite3_step(q) == SQLITE_ROW) {
        const char *line = sq_text(q, 3);
        if (getenv("PLANS"))
            printf("#   %s\n", line);
        if (why_not(statement, line)) {
            printf("# %s: %s\n", statement, line);
            bad++;
        }
    }
    return bad;
}

static void one_run(void *ctx, const struct run *r)
{
    *(int64_t *)ctx = r->id;
}

static void one_series(void *ctx, const struct series_info *i)
{
    *(int64_t *)ctx = i->id;
}

static int list_runs(struct run_filter f)
{
    struct err err;
    int64_t id = 0;
    bool more;
    f.limit = 3;
    return store_run_list(s, &f, one_run, &id, &more, &err) < 0 ? -1 : id > 0;
}

static int list_series(const char *metric, const char *node, const char *variant)
{
    struct err err;
    int64_t id = 0;
    bool more;
    const struct series_filter f = {metric, node, variant, 3, 0};
    return store_series_list(s, &f, one_series, &id, &more, &err) < 0 ? -1 : id > 0;
}

static struct run_filter filter_of(int bits)
{
    return (struct run_filter){.state = bits & 1 ? RUN_FAILED : -1,
                               .benchmark = bits & 2 ? "latency" : NULL,
                               .node = bits & 4 ? "n" : NULL,
                               .label = bits & 8 ? "l" : NULL,
                               .before_id = bits & 16 ? 77 : 0,
                               .since_ms = bits & 32 ? 1 : 0,
                               .until_ms = bits & 64 ? 99 : 0};
}

static void test_plans(void)
{
    struct err err;
    struct store_usage usage;
    int bad = 0, failed = 0, prepared = 0;
    sqlite3_trace_v2(s->db, SQLITE_TRACE_STMT, watch, NULL);
    for (int bits = 0; bits < 1 << FILTERS; bits++)
        failed += list_runs(filter_of(bits)) < 0;
    for (int bits = 0; bits < 8; bits++)
        failed += list_series(bits & 1 ? "m" : NULL, bits & 2 ? "n" : NULL, bits & 4 ? "v" : NULL);
    failed += store_usage(s, &usage, &err) < 0;
    sqlite3_trace_v2(s->db, 0, NULL, NULL);
    CHECK(failed == 0 && n_texts > (1 << FILTERS) + 8, "%d statements are made when asked for",
          n_texts);
    for (int q = 0; q < STORE_QUERIES; q++) {
        note_text(sqlite3_sql(s->queries[q]));
        prepared++;
    }
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRIGGER_EQP, 1, NULL);
    for (int i = 0; i < n_texts; i++)
        if (strncmp(texts[i], "PRAGMA", 6) != 0)
            bad += explain(texts[i]);
    CHECK_INT(bad, 0, "none of these and of %d prepared ones looks through a table", prepared);
    CHECK(explain("DELETE FROM metric WHERE value_milli = 1") > 0 &&
              explain("SELECT id FROM run WHERE spec = ''") > 0,
          "one that does would be seen");
}

// ---- work

// Each of the triples MANY times: two of its conditions fit many runs, both together none, as do
// the three of the second half.
static void put_runs(void)
{
    static const char *const triples[][3] = {
        {"succeeded", "pingpong", "a"}, {"failed", "latency", "a"}, {"succeeded", "latency", "b"},
        {"canceled", "matrix", "d"},    {"canceled", "c2c", "c"},   {"interrupted", "matrix", "c"}};
    run_sql("BEGIN");
    for (size_t i = 0; i < COUNT_OF(triples); i++) {
        char sql[600];
        snprintf(sql, sizeof sql,
                 "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < %d) "
                 "INSERT INTO run (seq,state,benchmark,node,created_ms,started_ms,finished_ms,"
                 "measured_ms,metrics_version,source,spec) SELECT %d + n,'%s','%s','%s',%d + n,"
                 "%d + n,%d + n,%d + n,1,iif(n %% 2,'imported','measured'),"
                 "'{\"benchmark\":\"latency\"}' FROM i",
                 MANY, (int)i * MANY, triples[i][0], triples[i][1], triples[i][2], (int)i * MANY,
                 (int)i * MANY, (int)i * MANY, (int)i * MANY);
        run_sql(sql);
    }
    run_sql("UPDATE run SET source = 'imported' WHERE benchmark = 'pingpong';"
            "INSERT INTO run (seq,state,benchmark,node,created_ms,source,spec) SELECT 100000 + id,"
            "'failed','loaded','imports',100000 + id,'imported',spec FROM run LIMIT 2000; COMMIT");
}

// One run of a series each: of one node, of one variant, of one metric; and MANY of one series.
static void put_series(void)
{
    static const char *const names[] = {
        "'m' || n, 'many', 'v' || n", "'m' || n, 'node' || n, 'same'", "'same', 'n' || n, 'v' || n",
        "'same', 'many', 'w' || n", "'m' || n, 'imports', 'v' || n"};
    run_sql("BEGIN");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char sql[300];
        snprintf(sql, sizeof sql,
                 "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < %d) "
                 "INSERT INTO series (metric,node,variant,unit) SELECT %s,'ns' FROM i",
                 MANY, names[i]);
        run_sql(sql);
    }
    run_sql("INSERT INTO metric SELECT id, id, id, 1, 1, 1 FROM series;"
            "INSERT INTO metric SELECT 1, id, id, 1, 1, 1 FROM run WHERE id > 1;"
            "UPDATE series SET newest_run = id WHERE node = 'many'; COMMIT");
}

// What `call` gives, with few steps.
#define FEW(want, call, ...)                                                                       \
    do {                                                                                           \
        steps = 0;                                                                                 \
        int few_got_ = (call);                                                                     \
        CHECK(few_got_ == (want) && steps > 0 && steps < STEPS_MOST, __VA_ARGS__);                 \
        if (few_got_ != (want) || steps >= STEPS_MOST)                                             \
            printf("# got %d in %lld steps\n", few_got_, (long long)steps);                        \
    } while (0)

static void test_list_work(void)
{
    const int64_t last = 6 * MANY;
    const struct run_filter none[] = {
        {.state = RUN_FAILED, .benchmark = "pingpong"},
        {.state = RUN_FAILED, .node = "b"},
        {.state = -1, .benchmark = "pingpong", .node = "b"},
        {.state = RUN_CANCELED, .benchmark = "matrix", .node = "c"},
        {.state = RUN_CANCELED, .benchmark = "matrix", .node = "c", .since_ms = 1},
        {.state = RUN_CANCELED, .benchmark = "matrix", .node = "c", .until_ms = last},
        {.state = RUN_CANCELED, .benchmark = "matrix", .node = "c", .before_id = last},
        {.state = RUN_SUCCEEDED, .label = "none"},
        {.state = RUN_SUCCEEDED, .benchmark = "latency", .node = "b", .label = "none"},
        {.state = RUN_SUCCEEDED, .since_ms = last},
        {.state = -1, .benchmark = "c2c", .until_ms = MANY},
        {.state = -1, .node = "c", .until_ms = MANY}};
    const struct run_filter some[] = {
        {.state = -1},
        {.state = RUN_SUCCEEDED},
        {.state = -1, .benchmark = "latency"},
        {.state = -1, .node = "a"},
        {.state = RUN_SUCCEEDED, .benchmark = "latency"},
        {.state = RUN_FAILED, .node = "a"},
        {.state = -1, .benchmark = "latency", .node = "a"},
        {.state = RUN_FAILED, .benchmark = "latency", .node = "a", .until_ms = last},
        {.state = RUN_SUCCEEDED, .since_ms = 1, .until_ms = MANY}};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        FEW(0, list_runs(none[i]), "no run fits filters %zu, which is seen at once", i);
    for (size_t i = 0; i < COUNT_OF(some); i++)
        FEW(1, list_runs(some[i]), "a page of runs with filters %zu", i);
}

static int latest(const char *node)
{
    struct err err;
    int64_t id;
    return store_run_latest(s, node, &id, &err);
}

static int newest_like(const char *node, enum benchmark_id benchmark, const char *hash)
{
    struct err err;
    int64_t id;
    return store_run_newest_like(s, node, benchmark, hash, &id, &err);
}

static int pending(const char *node, int version)
{
    struct err err;
    int64_t n = -1;
    return store_runs_pending(s, version, node, 100, &n, &err) < 0 ? -1 : (int)n;
}

static void one_value(void *ctx, const struct newest_value *v)
{
    *(int64_t *)ctx = v->run_id;
}

static int values(const char *node)
{
    struct err err;
    int64_t id = 0;
    return store_newest_values(s, node, 3, one_value, &id, &err) < 0 ? -1 : id > 0;
}

static int count_values(const char *node, int most)
{
    struct err err;
    int64_t n = -1;
    return store_newest_count(s, node, most, &n, &err) < 0 ? -1 : (int)n;
}

static int failed(void)
{
    struct err err;
    int64_t count[RUN_STATES];
    return store_run_states(s, count, &err) < 0 ? -1 : (int)count[RUN_FAILED];
}

static int before(int64_t series, int64_t at_ms)
{
    struct err err;
    int64_t ms;
    return store_series_before(s, series, at_ms, &ms, &err);
}

static int twin(const char *node, int64_t started_ms)
{
    struct err err;
    int64_t id;
    const struct run_result r = {.finished_ms = started_ms};
    const struct run_import i = {.node = node, .started_ms = started_ms, .result = &r};
    return store_import_find(s, &i, &id, &err);
}

static int list_ids(struct run_filter f)
{
    struct err err;
    int64_t ids[3];
    int n = 0;
    bool more;
    f.limit = 3;
    return store_run_list_ids(s, &f, ids, &n, &more, &err) < 0 ? -1 : n;
}

static int summarize(int64_t id)
{
    struct summary_values v CLEANUP(summary_values_fini) = {0};
    struct summary got;
    struct err err;
    return store_summary_get(s, id, &got, &v, &err) < 0 ? -1 : v.n;
}

static int count_metrics(int64_t id)
{
    struct err err;
    int64_t n;
    return store_summary_count(s, id, &n, &err) < 0 ? -1 : (int)n;
}

static void test_other_work(void)
{
    struct err err;
    int64_t id;
    FEW(1, latest("b"), "the newest run that was measured here");
    FEW(0, latest("imports"), "there is none of a node that has imports only");
    FEW(0, latest("z"), "nor of one without runs");
    FEW(0, newest_like("b", BENCHMARK_HIERARCHY, "h"), "no run of a benchmark is seen at once");
    FEW(100, pending(NULL, 2), "runs without metrics, no more than are counted");
    FEW(100, pending("b", 2), "of a node");
    FEW(0, pending("b", 1), "none of this version");
    FEW(100, pending(NULL, 0), "those of a later version");
    FEW(100, pending("b", 0), "of a node");
    FEW(0, pending("z", 2), "none of another node");
    FEW(1, values("many"), "newest values of a node with many series");
    FEW(0, values("imports"), "none of one that has imports only");
    FEW(100, count_values("many", 100), "how many series, no more than are counted");
    FEW(0, count_values("imports", 100), "none of imports");
    FEW(2 * MANY, failed(), "how many runs are in a state");
    FEW(1, before(1, 3 * MANY), "when a series was measured before");
    FEW(0, before(1, -1), "never so early");
    FEW(3, list_ids((struct run_filter){.state = RUN_SUCCEEDED, .benchmark = "latency"}),
        "the newest of a benchmark");
    FEW(2, summarize(5), "a run and its metrics");
    FEW(2, count_metrics(5), "how many it has");
    FEW(1, twin("b", 2 * MANY + 2), "a run that was measured here is known");
    FEW(0, twin("b", 2 * MANY + 1), "an imported one is none");
    FEW(0, twin("a", 2 * MANY + 2), "nor is one of another node");
    FEW(0, twin("a", 7 * MANY), "nor one of another time");
    FEW(1, list_series(NULL, NULL, NULL), "series");
    FEW(1, list_series("same", NULL, NULL), "of a metric");
    FEW(1, list_series(NULL, "many", NULL), "of a node");
    FEW(1, list_series(NULL, NULL, "same"), "of a variant");
    FEW(1, list_series("same", "many", NULL), "of a metric and node");
    FEW(0, list_series("same", NULL, "same"), "of a metric and variant");
    FEW(0, list_series(NULL, "many", "same"), "of a node and variant");
    FEW(0, list_series("same", "many", "same"), "of all three");
    FEW(0, store_run_without_metrics(s, 1, &id, &err), "all have metrics");
    FEW(1, store_run_without_metrics(s, 2, &id, &err), "none of the next version");
    FEW(1, store_run_without_metrics(s, 0, &id, &err), "nor of the version before");
    const struct metric m = {"other", "ns", 1, 1, 1};
    const struct run_metrics put = {1, "", &m, 1};
    FEW(0, store_run_metrics(s, 3, &put, &err), "metrics are replaced");
    FEW(0, store_run_delete(s, 3, &err), "a run is deleted");
}

// ---- the newest value of a metric, of runs like those to come

static int metric_like(const char *node, const char *class, const char *config, const char *without,
                       int64_t *run)
{
    struct err err;
    double value = 0;
    const struct metric_wanted w = {
        {node, BENCHMARK_PAGEFAULT, class, config, benchmarks[BENCHMARK_PAGEFAULT].method},
        "pagefault.4k.single_ns",
        without};
    int found = store_metric_newest_like(s, &w, run, &value, &err);
    return found > 0 ? (int)value : found;
}

// A run of node `q` whose page took so many ns.
static int64_t put_fault(const char *config, const char *variant, const char *kind, double ns)
{
    struct err err;
    const struct metric m = {"pagefault.4k.single_ns", "ns", ns, NAN, NAN};
    const struct run_metrics put = {1, variant, &m, 1};
    char sql[700];
    snprintf(sql, sizeof sql,
             "INSERT OR IGNORE INTO fingerprint VALUES ('h','class','{}'),('%s','config','{}');"
             "INSERT INTO run (seq,state,benchmark,node,created_ms,started_ms,finished_ms,"
             "measured_ms,source,spec,method,class_hash,config_hash,conditions) SELECT "
             "1 + max(seq),'succeeded','pagefault','q',1,1,1,1,'measured','{}','%s','h','%s',"
             "'[{\"kind\":\"%s\"}]' FROM run",
             config, benchmarks[BENCHMARK_PAGEFAULT].method, config, kind);
    run_sql(sql);
    int64_t id = ask("SELECT max(id) FROM run");
    return store_run_metrics(s, id, &put, &err) < 0 ? -1 : id;
}

static void test_metric_like(void)
{
    int64_t run = 0, first = put_fault("c", "", "load", 2000);
    CHECK(metric_like("q", "h", "c", "", &run) == 2000 && run == first, "the value of a run");
    int64_t second = put_fault("c", "size=4M", "load", 3000);
    CHECK(metric_like("q", "h", "c", "", &run) == 3000 && run == second, "of the newest");
    CHECK(metric_like("q", "h", "c", "size=", &run) == 2000 && run == first,
          "whose variant is not another metric's");
    put_fault("c", "", "time_limit", 9000);
    put_fault("c", "", "disturbed", 9000);
    put_fault("c", "", "few_samples", 9000);
    CHECK(metric_like("q", "h", "c", "", &run) == 3000,
          "a run that was cut or disturbed does not count, nor few samples beside better ones");
    run_sql("UPDATE run SET conditions = '[{\"kind\":\"few_samples\"}]' WHERE node = 'q' AND "
            "instr(conditions, 'load')");
    CHECK(metric_like("q", "h", "c", "", &run) == 9000, "which do where there are no others");
    run_sql(
        "UPDATE run SET conditions = NULL WHERE node = 'q' AND id < (SELECT max(id) FROM run) - 2");
    CHECK(metric_like("q", "h", "d", "", &run) == 0 && metric_like("q", "i", "c", "", &run) == 0 &&
              metric_like("r", "h", "c", "", &run) == 0,
          "nor one of another set-up, hardware or node");
    for (int i = 0; i < RUNS_LIKE; i++)
        put_fault("d", "", "load", 4000 + i);
    FEW(0, metric_like("q", "h", "c", "", &run), "nor one that many others followed");
    FEW(4000 + RUNS_LIKE - 1, metric_like("q", "h", "d", "", &run), "the newest of many");
}

// ---- how long such runs took

struct took {
    int n, most;
    struct run_took list[RUNS_LIKE]; // their texts are gone
};

static bool take_took(void *ctx, const struct run_took *r)
{
    struct took *t = ctx;
    t->list[t->n] = *r;
    return ++t->n < t->most && r->spec && *r->spec;
}

static struct took runs_like(const char *config, const char *method, int most)
{
    struct err err;
    struct took t = {.most = most};
    const struct run_like like = {"q", BENCHMARK_PAGEFAULT, "h", config, method};
    CHECK(store_runs_like(s, &like, take_took, &t, &err) == 0, "runs like that are read");
    return t;
}

static void test_runs_like(void)
{
    const char *method = benchmarks[BENCHMARK_PAGEFAULT].method;
    int64_t plain = put_fault("t", "", "load", 1), disturbed = put_fault("t", "", "disturbed", 1);
    put_fault("t", "", "time_limit", 1);
    put_fault("t", "", "budget", 1);
    int64_t newest = put_fault("t", "", "launcher", 1);
    run_sql("UPDATE run SET n_ranks = 2, started_ms = 1000, finished_ms = 2500 WHERE id = "
            "(SELECT max(id) FROM run)");
    struct took t = runs_like("t", method, RUNS_LIKE);
    CHECK(t.n == 3 && t.list[0].id == newest && t.list[1].id == plain && t.list[2].id == disturbed,
          "the newest first, disturbed ones last, those cut or with a budget not");
    CHECK(t.list[0].n_ranks == 2 && t.list[0].started_ms == 1000 && t.list[0].finished_ms == 2500 &&
              t.list[0].without_mpi && !t.list[1].without_mpi,
          "what is known of one");
    CHECK(runs_like("t", method, 1).n == 1, "no more than are wanted");
    CHECK(runs_like("u", method, 9).n == 0 && runs_like("t", "other-v1", 9).n == 0,
          "none of another set-up or method");
}

// ---- series go with their last point

static void test_series_go(void)
{
    struct err err;
    const char *const count = "SELECT count(*) FROM series";
    const struct metric two[] = {{"x", "ns", 1, 1, 1}, {"y", "ns", 2, 2, 2}};
    struct run_metrics m = {1, "", two, 2};
    const int64_t before = ask(count);
    CHECK(store_run_metrics(s, 11, &m, &err) == 0 && store_run_metrics(s, 12, &m, &err) == 0 &&
              ask(count) == before + 2 - 2,
          "two runs stand in the same series; those that each had before alone are gone");
    m.n = 1;
    CHECK(store_run_metrics(s, 12, &m, &err) == 0 && ask(count) == before,
          "one of them keeps a series");
    CHECK(store_run_delete(s, 11, &err) == 0 && ask(count) == before - 1 &&
              ask("SELECT count(*) FROM series WHERE metric = 'x'") == 1,
          "a series without points goes, one with a point stays");
    CHECK(store_run_delete(s, 12, &err) == 0 && ask(count) == before - 2, "and goes with the last");
    CHECK(ask("SELECT count(*) FROM series WHERE NOT EXISTS (SELECT 1 FROM metric WHERE series = "
              "series.id)") == 0 &&
              ask("SELECT count(*) FROM pragma_foreign_key_check") == 0,
          "no series is empty, no point without its series");
}

int main(void)
{
    struct err err = {0};
    dir_make(dir);
    s = store_open(dir, &err);
    CHECK(s, "opened: %s", err.text);
    if (!s)
        return tap_done();
    test_plans();
    put_runs();
    put_series();
    sqlite3_trace_v2(s->db, SQLITE_TRACE_PROFILE, watch, NULL);
    test_list_work();
    test_other_work();
    test_metric_like();
    test_runs_like();
    sqlite3_trace_v2(s->db, 0, NULL, NULL);
    test_series_go();
    for (int i = 0; i < n_texts; i++)
        free(texts[i]);
    store_close(s);
    dir_remove(dir);
    return tap_done();
}

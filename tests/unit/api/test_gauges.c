// SPDX-License-Identifier: Apache-2.0
// What GET /metrics shows: the newest run of each series that this node measured, whatever was
// deleted, imported, labelled or measured with a clock that is wrong; and which are left out.
#include "analysis/metrics/metrics.h"
#include "api/resources/gauges.h"

#include <stdlib.h>

#include "analysis/metrics/metrics.h"
#include "analysis/stats/distributions.h"
#include "core/store/db.h"
#include "core/store/history.h"
#include "core/store/store.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

enum { HOUR_MS = 3600 * 1000, DAY_MS = 24 * HOUR_MS, OPERATIONS = 500 };
static const int64_t begin_ms = 1700000000000;

static char dir[64];
static struct machine machine = {.hostname = "here"};
static struct api_services api = {.machine = &machine};
static struct store *s;

static const char *const names[] = {"latency.dram.median_ns", "latency.serial.dram.median_ns",
                                    "contention.max_ratio", "matrix.n0.n1.median_ns"};

static int64_t ask(const char *sql)
{
    struct err err;
    int64_t n = -1;
    return sq_number(s->db, sql, &n, &err) < 0 ? -1 : n;
}

static void run_sql(const char *sql)
{
    struct err err;
    if (sq_exec(s->db, sql, &err) < 0) {
        printf("# %s: %s\n", sql, err.text);
        abort();
    }
}

// A run at that time with the metrics of `which` (bits); value is its number.
static int64_t add(const char *node, bool imported, const char *variant, int which, int64_t at_ms)
{
    struct err err = {0};
    static struct spec spec;
    struct metric list[4];
    int64_t id = 0;
    bool again;
    char sql[200];
    spec_init(&spec, BENCHMARK_LATENCY);
    if (store_run_insert(s, &spec, node, NULL, &id, &again, &err) < 0)
        abort();
    snprintf(sql, sizeof sql,
             "UPDATE run SET state = 'running', started_ms = %lld, source = '%s' WHERE id = %lld",
             (long long)at_ms, imported ? "imported" : "measured", (long long)id);
    run_sql(sql);
    struct run_result r = {.state = RUN_SUCCEEDED, .metrics = {METRICS_VERSION, variant, list, 0}};
    for (int i = 0; i < 4; i++)
        if (which >> i & 1) {
            list[r.metrics.n] =
                (struct metric){.unit = "ns", .value = (double)id, .lo = 1, .hi = 1e6};
            snprintf(list[r.metrics.n++].name, sizeof list->name, "%s", names[i]);
        }
    if (store_run_finished(s, id, &r, &err) < 0) {
        printf("# %s\n", err.text);
        abort();
    }
    return id;
}

static const struct gauges *get(void)
{
    struct err err = {0};
    const struct gauges *g = gauges_get(&api, &err);
    if (!g) {
        printf("# %s\n", err.text);
        abort();
    }
    return g;
}

static const struct gauge *find(const char *family, const char *mode, const char *variant)
{
    const struct gauges *g = get();
    for (int i = 0; i < g->n; i++)
        if (strcmp(g->list[i].rule->family, family) == 0 &&
            strcmp(g->list[i].variant, variant) == 0 &&
            (!mode || strcmp(g->list[i].labels.list[0].value, mode) == 0))
            return &g->list[i];
    return NULL;
}

static int64_t run_of(const char *family, const char *mode, const char *variant)
{
    const struct gauge *g = find(family, mode, variant);
    return g ? g->run_id : 0;
}

static void test_another_way_hides_nothing(void)
{
    struct err err;
    int64_t night = add("here", false, "size=64M", 1, begin_ms);
    int64_t other = add("here", false, "size=1", 4, begin_ms + 1);
    int64_t serial = add("here", false, "size=64M", 2, begin_ms + 2);
    CHECK(run_of("latency_memory_seconds", "concurrent", "size=64M") == night &&
              run_of("contention_max_ratio", NULL, "size=1") == other &&
              run_of("latency_memory_seconds", "serial", "size=64M") == serial,
          "a run in another way, or of one mode, takes nothing away");
    add("there", false, "size=64M", 15, begin_ms + 3);
    add("here", true, "imported=true", 15, begin_ms + 4);
    CHECK(get()->n == 3 && get()->newest_run == serial, "other nodes and imports are not shown");
    CHECK(find("latency_memory_seconds", "concurrent", "size=64M")->value == (double)night * 1e-9,
          "in the base unit");
    CHECK(store_run_label(s, night, "night", &err) == 0 && get()->n == 3,
          "a label changes nothing");
    int64_t newer = add("here", false, "size=64M", 1, begin_ms - DAY_MS);
    CHECK(run_of("latency_memory_seconds", "concurrent", "size=64M") == newer,
          "a clock that was set back makes no run old");
    CHECK(store_run_delete(s, newer, &err) == 0 &&
              run_of("latency_memory_seconds", "concurrent", "size=64M") == night,
          "when the newest is deleted the one before is shown");
    CHECK(store_run_delete(s, night, &err) == 0 && store_run_delete(s, serial, &err) == 0 &&
              store_run_delete(s, other, &err) == 0 && get()->n == 0 && get()->n_variants == 0,
          "and none at the end");
}

// ---- any order of things

#define OURS                                                                                       \
    "(SELECT m.run_id FROM metric AS m JOIN run AS r ON r.id = m.run_id WHERE m.series = s.id "    \
    "AND r.node = s.node AND r.source = 'measured')"

static void delete_one(unsigned long long *seed)
{
    struct err err;
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT id FROM run ORDER BY id DESC LIMIT 1 OFFSET %d",
             (int)dist_below(seed, 6));
    int64_t id = ask(sql);
    if (id > 0 && store_run_delete(s, id, &err) < 0)
        abort();
}

static void compute_anew(unsigned long long *seed)
{
    struct err err;
    const struct metric m = {"contention.max_ratio", "", 2, 1, 3};
    const struct run_metrics put = {METRICS_VERSION, "v1", &m, 1};
    char sql[100];
    snprintf(sql, sizeof sql,
             "SELECT id FROM run WHERE source = 'measured' ORDER BY id DESC LIMIT 1 OFFSET %d",
             (int)dist_below(seed, 6));
    int64_t id = ask(sql);
    if (id > 0 && store_run_metrics(s, id, &put, &err) < 0)
        abort();
}

// How often something was shown that is not so.
static int wrong_after_many(bool clock_is_right)
{
    unsigned long long seed = clock_is_right ? 3 : 4;
    int wrong = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        char variant[8];
        int what = (int)dist_below(&seed, 10);
        bool imported = what == 8;
        snprintf(variant, sizeof variant, imported ? "i%d" : "v%d", (int)dist_below(&seed, 3));
        int64_t at = clock_is_right ? begin_ms + i * (int64_t)HOUR_MS
                                    : begin_ms + (int64_t)dist_below(&seed, 1000) * HOUR_MS;
        if (what < 3)
            delete_one(&seed);
        else if (what == 3)
            compute_anew(&seed);
        else
            add(what == 9 ? "there" : "here", imported, variant, 1 + (int)dist_below(&seed, 15),
                at);
        wrong += ask("SELECT count(*) FROM series AS s WHERE newest_run > 0 AND newest_run NOT "
                     "IN " OURS) != 0;
        wrong += ask("SELECT count(*) FROM series AS s WHERE newest_run = 0 AND EXISTS " OURS) != 0;
        if (clock_is_right)
            wrong += ask("SELECT count(*) FROM series AS s WHERE newest_run < (SELECT max(run_id) "
                         "FROM metric WHERE series = s.id) AND newest_run > 0") != 0;
        wrong += ask("SELECT count(*) FROM counter WHERE name LIKE 'runs.%' AND value <> (SELECT "
                     "count(*) FROM run WHERE 'runs.' || state = counter.name)") != 0;
        wrong += get()->n != ask("SELECT count(*) FROM series WHERE node = 'here' AND newest_run");
    }
    return wrong;
}

static bool in_order(void)
{
    const struct gauges *g = get();
    bool good = true;
    for (int i = 1; i < g->n; i++) {
        const struct gauge *a = &g->list[i - 1], *b = &g->list[i];
        int variant = strcmp(a->variant, b->variant);
        good = good &&
               (a->rule < b->rule ||
                (a->rule == b->rule && (variant < 0 || (variant == 0 && a->series < b->series))));
    }
    return good;
}

static void test_any_order(void)
{
    CHECK(wrong_after_many(true) == 0, "%d times what is shown is the newest", OPERATIONS);
    CHECK(get()->n > 4 && in_order(), "%d series in their order, none twice", get()->n);
    CHECK(wrong_after_many(false) == 0, "with a wrong clock it is one that is there");
    run_sql("DELETE FROM run");
    CHECK(ask("SELECT count(*) FROM series") == 0 && get()->n == 0, "all is gone");
}

// ---- too many

static void add_many(int n, const char *metric, const char *variant, int64_t after_run)
{
    char sql[700];
    snprintf(sql, sizeof sql,
             "BEGIN; INSERT INTO series (metric,node,variant,unit,newest_run) "
             "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < %d) "
             "SELECT %s,'here',%s,'ns',%lld + n FROM i;"
             "INSERT INTO metric SELECT id,%lld + newest_run,newest_run,1,1,1 FROM series "
             "WHERE newest_run > %lld; COMMIT",
             n, metric, variant, (long long)after_run, (long long)begin_ms, (long long)after_run);
    run_sql(sql);
}

static void clear(void)
{
    run_sql("DELETE FROM metric; DELETE FROM series; DELETE FROM run");
}

static void test_limits(void)
{
    static const int more = 100;
    int64_t first = add("here", false, "first", 1, begin_ms);
    add_many(GAUGE_VARIANTS_MAX + more - 1, "'latency.dram.median_ns'", "'w' || n", first);
    const struct gauges *g = get();
    CHECK(g->n == GAUGE_VARIANTS_MAX && g->n_variants == g->n && g->omitted == more,
          "%d variants are shown, series of %lld left out", g->n, (long long)g->omitted);
    CHECK(!find("latency_memory_seconds", NULL, "first") &&
              !find("latency_memory_seconds", NULL, "w99") &&
              find("latency_memory_seconds", NULL, "w100"),
          "those of the oldest runs");
    clear();
    first = add("here", false, "first", 1, begin_ms);
    add_many(GAUGES_MAX + more - 1, "'matrix.n' || n || '.n0.median_ns'", "'w'", first);
    g = get();
    CHECK(g->n == GAUGES_MAX && g->n_variants == 1 && g->omitted == more,
          "%d series are shown, %lld left out", g->n, (long long)g->omitted);
    run_sql("INSERT INTO series (metric,node,variant,unit) "
            "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 3000) "
            "SELECT 'latency.dram.median_ns','here','imported=true ' || n,'ns' FROM i;"
            "UPDATE counter SET value = value WHERE name = 'seq'");
    CHECK(get()->omitted == more, "imports take nobody's place");
    clear();
    add_many(30, "'of.another.version.' || n", "'w'", 0);
    CHECK(get()->n == 0 && get()->omitted == 0, "what another version stored is not shown");
    clear();
}

// ---- how regular

static int64_t interval(const int64_t *at, int n)
{
    for (int i = 0; i < n; i++)
        add("here", false, "x", 1, begin_ms + at[i] * HOUR_MS);
    const struct gauges *g = get();
    int64_t got = g->n_variants == 1 ? g->variants[0].interval_ms / HOUR_MS : -1;
    run_sql("DELETE FROM run");
    return got;
}

#define INTERVAL(want, what, ...)                                                                  \
    do {                                                                                           \
        const int64_t at_[] = {__VA_ARGS__};                                                       \
        int64_t got_ = interval(at_, (int)(sizeof at_ / sizeof *at_));                             \
        CHECK(got_ == (want), "%s: %lld h", what, (long long)got_);                                \
    } while (0)

static void test_intervals(void)
{
    INTERVAL(0, "one run is no rhythm", 0);
    INTERVAL(0, "nor are four", 0, 24, 48, 72);
    INTERVAL(24, "every night", 0, 24, 48, 72, 96);
    INTERVAL(25, "a timer that is late", 0, 24, 49, 73, 97);
    INTERVAL(72, "from Monday to Friday", 0, 24, 96, 120, 144);
    INTERVAL(168, "every week", 0, 168, 336, 504, 672);
    INTERVAL(0, "an afternoon", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    INTERVAL(0, "now and then", 0, 24, 30, 300, 320, 500);
    INTERVAL(24, "two a night", 0, 1, 24, 25, 48, 49, 72, 73, 96, 97);
    for (int i = 0; i < 6; i++)
        add("here", false, "x", i < 5 ? 1 : 2, begin_ms + (int64_t)i * DAY_MS);
    const struct gauges *g = get();
    CHECK(g->n_variants == 2 && g->variants[0].interval_ms == DAY_MS &&
              g->variants[0].measured_ms == begin_ms + 4 * (int64_t)DAY_MS &&
              strcmp(g->variants[0].mode, "concurrent") == 0 && !g->variants[1].interval_ms,
          "a run of the other mode makes no night late or early");
    run_sql("DELETE FROM run");
    INTERVAL(24, "the clock was set back, then right", 500, 0, 24, 48, 72, 96);
    int64_t hourly[60];
    for (int i = 0; i < 60; i++)
        hourly[i] = i;
    int64_t got = interval(hourly, 60);
    CHECK(got == 12, "every hour counts as twice a day: %lld h", (long long)got);
}

int main(void)
{
    struct err err = {0};
    dir_make(dir);
    s = api.store = store_open(dir, &err);
    CHECK(s, "opened: %s", err.text);
    if (!s)
        return tap_done();
    run_sql("PRAGMA synchronous=OFF");
    test_another_way_hides_nothing();
    run_sql("DELETE FROM run");
    test_any_order();
    test_limits();
    test_intervals();
    store_close(s);
    dir_remove(dir);
    return tap_done();
}

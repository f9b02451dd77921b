// SPDX-License-Identifier: Apache-2.0
// History over a store of made-up runs: change points carry what changed on the machine, in time;
// baselines keep their runs.
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "analysis/metrics/metrics.h"
#include "analysis/stats/distributions.h"
#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "core/store/baselines.h"
#include "core/store/db.h"
#include "core/store/history.h"
#include "core/store/store.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/tap.h"

static char dir[64];
static struct machine machine = {.hostname = "node1"};
static struct api_services services = {.machine = &machine};
static const struct http_service service = {.context = &services};

static void make_print(struct fingerprint *f, const char *thp, const char *kernel)
{
    *f = (struct fingerprint){0};
    facts_add(&f->machine_class, "cpu_model", "Test CPU");
    facts_add(&f->config, "thp_enabled", "%s", thp);
    facts_add(&f->config, "kernel_release", "%s", kernel);
    facts_seal(&f->machine_class);
    facts_seal(&f->config);
}

// A run on a machine with that print, whose one metric has that value.
static int64_t add_run_on(struct store *s, const char *node, const struct fingerprint *f,
                          double value)
{
    struct err err = {0};
    static struct spec spec;
    int64_t id = 0;
    bool again;
    spec_init(&spec, BENCHMARK_LATENCY);
    struct metric m = {"latency.dram.median_ns", "ns", value, value - 1, value + 1};
    struct run_result r = {.state = RUN_SUCCEEDED,
                           .metrics = {METRICS_VERSION, "n_ranks=4", &m, 1}};
    bool ok = store_run_insert(s, &spec, node, NULL, &id, &again, &err) == 0 &&
              store_run_started(s, id, "{}", "[]", f, NULL, &err) == 0 &&
              store_run_finished(s, id, &r, &err) == 0;
    if (!ok)
        printf("# %s\n", err.text);
    return ok ? id : -1;
}

static int64_t add_run(struct store *s, const struct fingerprint *f, double value)
{
    return add_run_on(s, "node1", f, value);
}

static struct json *ask_node(const char *node, struct err *err)
{
    struct request q = {.service = &service,
                        .n_query = 2,
                        .query = {{"metric", "latency.dram.median_ns"}, {"node", node}}};
    struct reply r = {0};
    struct json *answer = NULL;
    if (history_get(&q, &r, err) == 0)
        answer = json_parse(buf_text(&r.body), r.body.len, err);
    reply_fini(&r);
    return answer;
}

static struct json *ask(handler_fn *handler, const char *name, const char *value, struct err *err)
{
    struct request q = {.service = &service, .n_query = name != NULL, .query = {{name, value}}};
    struct reply r = {0};
    struct json *answer = NULL;
    if (handler(&q, &r, err) == 0)
        answer = json_parse(buf_text(&r.body), r.body.len, err);
    reply_fini(&r);
    return answer;
}

static void test_changes(struct store *s)
{
    struct fingerprint before, after;
    unsigned long long seed = 7;
    int64_t first_after = 0;
    make_print(&before, "madvise", "6.1.0-1");
    make_print(&after, "never", "6.1.0-2");
    for (int i = 0; i < 40; i++) {
        double value = (i < 20 ? 100 : 110) + dist_below(&seed, 1000) / 1000.0;
        int64_t id = add_run(s, i < 20 ? &before : &after, value);
        first_after = i == 20 ? id : first_after;
    }
    struct err err = {0};
    CLEANUP_JSON struct json *answer = ask(history_get, "metric", "latency.dram.median_ns", &err);
    CHECK(answer && json_count(json_get(answer, "points")) == 40, "forty points: %s", err.text);
    const struct json *list = json_get(answer, "change_points"), *c = json_first(list);
    CHECK(json_count(list) == 1 && json_get_i64(c, "run", 0) == first_after, "one change, at 20");
    CHECK(fabs(json_get_number(c, "percent", 0) - 10) < 1, "of 10 %%");
    const struct json *what = json_get(c, "fact_changes"), *most = json_first(what);
    CHECK(json_count(what) == 2, "two facts changed there");
    CHECK_STR(json_get_text(most, "name", ""), "thp_enabled", "the most suspicious first");
    CHECK_STR(json_get_text(most, "before", ""), "madvise", "from");
    CHECK_STR(json_get_text(most, "after", ""), "never", "to");
    CHECK_STR(json_get_text(json_next(most), "name", ""), "kernel_release", "then the kernel");
    CLEANUP_JSON struct json *again = ask(history_get, "metric", "latency.dram.median_ns", &err);
    CHECK(json_count(json_get(again, "change_points")) == 1, "asked again, the same");
    CHECK(store_run_delete(s, first_after, &err) == 0, "the first run after is deleted");
    CLEANUP_JSON struct json *less = ask(history_get, "metric", "latency.dram.median_ns", &err);
    CHECK(json_count(json_get(less, "points")) == 39 &&
              json_get_i64(json_first(json_get(less, "change_points")), "run", 0) ==
                  first_after + 1,
          "its point is gone, the next one begins the change");
}

// The set-up changed a run before the values, and on another node two runs after them.
static void test_cause_nearby(struct store *s)
{
    static const struct {
        const char *node;
        int first, runs;
        bool found;
    } cases[] = {{"node2", 19, -1, true}, {"node3", 22, 2, true}, {"node4", 17, 0, false}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct fingerprint before, after;
        struct err err = {0};
        unsigned long long seed = 7;
        make_print(&before, "madvise", "6.1.0-1");
        make_print(&after, "never", "6.1.0-1");
        for (int i = 0; i < 40; i++)
            add_run_on(s, cases[c].node, i < cases[c].first ? &before : &after,
                       (i < 20 ? 100 : 110) + dist_below(&seed, 1000) / 1000.0);
        CLEANUP_JSON struct json *answer = ask_node(cases[c].node, &err);
        const struct json *list = json_get(answer, "change_points"), *change = json_first(list);
        const struct json *what = json_get(change, "fact_changes");
        CHECK(json_count(list) == 1, "%s: one change: %s", cases[c].node, err.text);
        CHECK_INT(json_get_i64(change, "run", 0) - json_get_i64(change, "run_before", 0), 1,
                  "its runs are those of the values");
        CHECK(json_is_null(json_get(change, "setup_runs")) == !cases[c].found &&
                  json_get_i64(change, "setup_runs", 0) == cases[c].runs,
              "the set-up changed %d runs later", cases[c].runs);
        CHECK_INT(json_count(what), cases[c].found, "with its fact, if it is near");
        CHECK(!cases[c].found ||
                  strcmp(json_get_text(json_first(what), "name", ""), "thp_enabled") == 0,
              "which is this");
    }
}

static void test_list(void)
{
    struct err err = {0};
    CLEANUP_JSON struct json *all = ask(history_get, NULL, NULL, &err);
    const struct json *s = json_first(json_get(all, "series"));
    CHECK(s && json_get_i64(s, "count", 0) == 39, "one series of 39");
    CHECK_STR(json_get_text(s, "variant", ""), "n_ranks=4", "its variant");
    CHECK(!ask(history_get, "metric", "latency.dram", &err) && err.code == ERR_INVALID,
          "no such metric");
    CHECK(!ask(history_get, "metric", "latency.l1.median_ns", &err) && err.code == ERR_NOT_FOUND,
          "a metric that no run has");
    CHECK(!ask(history_get, "limit", "5", &err) && err.code == ERR_INVALID, "a limit of no metric");
}

static void test_window(struct store *s)
{
    struct history_point *p = NULL;
    struct err err = {0};
    int n = 0;
    bool more = false;
    CHECK(store_history(s, 1, 0, 0, 5, &p, &n, &more, &err) == 0 && n == 5 && more,
          "the newest five of more");
    CHECK(n == 5 && p[0].run_id < p[4].run_id && p[4].value > 100, "in order of time");
    int64_t last = n == 5 ? p[4].measured_ms : 0;
    free(p);
    p = NULL;
    CHECK(store_history(s, 1, last + 1, 0, 5, &p, &n, &more, &err) == 0 && n == 0 && !more,
          "none after the last");
    free(p);
    p = NULL;
    CHECK(store_history(s, 1, 0, 1, 5, &p, &n, &more, &err) == 0 && n == 0,
          "none before the first");
    free(p);
}

static void test_baselines(struct store *s)
{
    struct fingerprint f;
    struct err err = {0};
    make_print(&f, "madvise", "6.1.0-1");
    struct baseline b = {.name = "default", .n = 2}, got;
    b.runs[0] = add_run(s, &f, 100);
    b.runs[1] = add_run(s, &f, 101);
    int64_t version = store_version(s);
    CHECK(store_baseline_put(s, &b, &err) == 0, "a baseline of two runs: %s", err.text);
    CHECK(store_version(s) > version, "writing makes another version");
    CHECK(store_baseline_get(s, "default", &got, &err) == 0 && got.n == 2 &&
              got.runs[1] == b.runs[1] && got.created_ms > 0,
          "is read back");
    CHECK(store_run_delete(s, b.runs[0], &err) < 0 && err.code == ERR_CONFLICT &&
              strstr(err.text, "default"),
          "its runs stay: %s", err.text);
    b.n = 1;
    CHECK(store_baseline_put(s, &b, &err) == 0 &&
              store_baseline_get(s, "default", &got, &err) == 0 && got.n == 1,
          "it is replaced");
    CHECK(store_run_delete(s, b.runs[1], &err) == 0, "a run that it has no more may go");
    b.runs[0] = 999;
    CHECK(store_baseline_put(s, &b, &err) < 0 && err.code == ERR_NOT_FOUND, "no run 999");
    CHECK(store_baseline_get(s, "default", &got, &err) == 0 && got.runs[0] != 999,
          "and the old one stays");
    CHECK(store_baseline_delete(s, "default", &err) == 0, "deleted");
    CHECK(store_baseline_delete(s, "default", &err) < 0 && err.code == ERR_NOT_FOUND, "once");
    CHECK(baseline_name_check("a/b", &err) < 0 && baseline_name_check("", &err) < 0 &&
              baseline_name_check("a.B-9_", &err) == 0,
          "names");
    b.runs[0] = got.runs[0];
    for (int i = 0; i < BASELINES_MAX; i++) {
        snprintf(b.name, sizeof b.name, "b%d", i);
        if (store_baseline_put(s, &b, &err) < 0)
            break;
    }
    snprintf(b.name, sizeof b.name, "one-more");
    CHECK(store_baseline_put(s, &b, &err) < 0 && err.code == ERR_CONFLICT, "%s", err.text);
    snprintf(b.name, sizeof b.name, "b5");
    CHECK(store_baseline_put(s, &b, &err) == 0, "replacing goes on");
}

// 90 days of hourly runs must come in 5 ms; a busy machine gets ten times that here, and a build
// that watches each access as much again.
#ifdef __SANITIZE_THREAD__
static const double SPEED_MS_MAX = 500;
#else
static const double SPEED_MS_MAX = 50;
#endif

static void test_speed(struct store *s)
{
    struct err err = {0};
    sq_exec(
        s->db,
        "INSERT INTO series (metric,node,variant,unit) VALUES ('matrix.median_ns','node1','','ns')",
        &err);
    sq_exec(s->db,
            "WITH RECURSIVE i (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n < 2159) "
            "INSERT INTO metric SELECT (SELECT id FROM series WHERE metric = 'matrix.median_ns'), "
            "1790000000000 + n * 3600000, 100000 + n, 100000 + n % 7 * 100, 99000, 101000 FROM i",
            &err);
    CLEANUP_JSON struct json *first = ask(history_get, "metric", "matrix.median_ns", &err);
    CHECK(json_count(json_get(first, "points")) == 2160 &&
              json_get_i64(first, "searched", 0) == 2000,
          "90 days of hours; the newest 2,000 are searched: %s", err.text);
    struct request q = {
        .service = &service, .n_query = 1, .query = {{"metric", "matrix.median_ns"}}};
    double least_ms = INFINITY;
    int rc = 0;
    for (int i = 0; i < 5; i++) { // of CPU time, whatever else has the CPU meanwhile
        struct reply r = {0};
        clock_t start = clock();
        rc |= history_get(&q, &r, &err);
        least_ms = fmin(least_ms, (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC);
        reply_fini(&r);
    }
    CHECK(rc == 0 && least_ms < SPEED_MS_MAX, "again in %.1f ms (5 on a quiet machine)", least_ms);
}

int main(void)
{
    struct err err = {0};
    dir_make(dir);
    struct store *s = services.store = store_open(dir, &err);
    CHECK(s, "opened: %s", err.text);
    if (!s)
        return tap_done();
    test_changes(s);
    test_list();
    test_window(s);
    test_speed(s);
    test_cause_nearby(s);
    test_baselines(s);
    store_close(s);
    dir_remove(dir);
    return tap_done();
}

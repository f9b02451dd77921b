// SPDX-License-Identifier: Apache-2.0
// Figures, not assertions: a database of ten years of hourly runs, made through the store's own
// functions, and how long it takes to use. `ten_years DIR` makes DIR/numaprobe.db (minutes; kept,
// and only measured when it is there already) and prints each figure with its goal; `ten_years DIR
// RUNS` makes fewer. Exit status 1: a goal was missed.
//
// The clock is ours (linked with --wrap=clock_wall_ms), so that the runs are an hour apart. Nothing
// is synced while it is made; what is measured afterwards has the daemon's settings.
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "analysis/compare/compare.h"
#include "analysis/stats/change_points.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/store/db.h"
#include "core/store/history.h"
#include "core/store/store.h"
#include "model/plan.h"
#include "tests/unit/analysis/simulate.h"

enum {
    RUNS = 87600, // ten years, hourly
    RANKS = 8,
    SIZES = 15,
    METRICS = 10,
    SAMPLES_LEAST = 16, // of a cell
    SAMPLES_MOST = 128,
    POINTS = 2000,
    REPETITIONS = 41,
    WARM_UP = 3,
};
static const int64_t hour_ms = 3600000, first_ms = 1480000000000, day_ms = 86400000;
static int64_t now_ms;
static int missed;

int64_t __wrap_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void)
{
    return now_ms;
}

static void must(int rc, const struct err *err)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "ten_years: %s\n", err->text);
    exit(2);
}

// ---- making it

static void make_plan(struct buf *text)
{
    struct plan_rank ranks[RANKS];
    const struct plan p = {.n_ranks = RANKS, .ranks = ranks, .bytes_per_rank = 17179869184};
    for (int i = 0; i < RANKS; i++)
        ranks[i] = (struct plan_rank){.cpu = 1 + 8 * i, .cpu_node = i / 2, .mem_node = i / 2};
    struct jsonw w = jsonw_to(text);
    plan_write_json(&p, &w, NULL);
}

static void make_ranks(struct rank_info *ranks, int64_t run)
{
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (struct rank_info){.rank = i,
                                      .pid = 4000 + run % 60000 + i,
                                      .cpu_wanted = 1 + 8 * i,
                                      .cpu = 1 + 8 * i,
                                      .cpu_node = i / 2,
                                      .mem_wanted = i / 2,
                                      .mem_node = i / 2,
                                      .mem_share = 1,
                                      .pages_checked = 4096,
                                      .pages_total = 4194304,
                                      .mem_method = "move_pages",
                                      .pages_wanted = "thp",
                                      .pages_got = "thp",
                                      .huge_share = 1,
                                      .n_nodes = 4,
                                      .address = 0x7f0000000000 + (uint64_t)run * 4096,
                                      .seed = 1,
                                      .arena_bytes = 17179869184};
        for (int n = 0; n < 4; n++)
            ranks[i].nodes[n].node = n;
        ranks[i].nodes[i / 2].pages = 4096;
        ranks[i].nodes[i / 2].process_kib = 16779000 + run % 977;
    }
}

// As many samples as cells have by default on a quiet machine and a busy one. One cell in eight has
// two levels, one in eight a tail.
static void make_sketch(struct cell *c, unsigned long long *seed)
{
    double v[SAMPLES_MOST];
    int n = SAMPLES_LEAST + dist_below(seed, SAMPLES_MOST - SAMPLES_LEAST + 1);
    int form = dist_below(seed, 8);
    for (int i = 0; i < n; i++) {
        bool beyond = form < 2 && dist_below(seed, 4) == 0;
        double at = beyond ? form == 0 ? 1.4 : 1 + 0.01 * dist_below(seed, 100) : 1;
        v[i] = c->v[CELL_MEDIAN] * at * (1 + 0.01 * sim_normal(seed));
        c->v[CELL_MIN] = i && c->v[CELL_MIN] < v[i] ? c->v[CELL_MIN] : v[i];
    }
    c->v[CELL_N] = n;
    sketch_of(&c->sketch, v, n);
}

// As the bench fills them: every member of a cell is known.
static void complete(struct cell *c, unsigned long long *seed)
{
    const double median = c->v[CELL_MEDIAN], sd = c->v[CELL_SD];
    c->v[CELL_DISTURBED] = (int)(median * 1000) % 3;
    make_sketch(c, seed);
    c->v[CELL_P10] = median - sd;
    c->v[CELL_P90] = median + sd;
    c->v[CELL_P99] = median + 2 * sd;
    c->v[CELL_MEAN] = median + 0.1 * sd;
    c->v[CELL_OVERLAP] = 1;
    c->v[CELL_CONVERGED] = 1;
}

static void make_metrics(struct metric *m, const struct matrix *x)
{
    for (int i = 0; i < METRICS; i++) {
        const struct cell *c = matrix_at(x, i % RANKS, SIZES - 1 - i / RANKS);
        m[i] = (struct metric){
            .unit = "ns", .value = c->v[CELL_MEDIAN], .lo = c->v[CELL_LO], .hi = c->v[CELL_HI]};
        snprintf(m[i].name, sizeof m[i].name, "latency.n%d.n%d.median_ns", i % RANKS, i / RANKS);
    }
}

// Set up anew twice a year.
static void make_fingerprint(struct fingerprint *f, int64_t run)
{
    *f = (struct fingerprint){0};
    for (int i = 0; i < 20; i++)
        facts_add(&f->machine_class, "cpu_model", "Some CPU %d with 64 cores", i);
    for (int i = 0; i < 40; i++)
        facts_add(&f->config, "kernel", "5.14.%d fact %d", (int)(run / 4380), i);
    facts_seal(&f->machine_class);
    facts_seal(&f->config);
}

static void make_one(struct store *s, int64_t run, const char *plan, unsigned long long *seed)
{
    static const char conditions[] =
        "[{\"kind\":\"governor\",\"severity\":\"notice\",\"rank\":null,\"text\":\"the frequency "
        "governor is \\\"schedutil\\\": clocks change while the run measures\"},{\"kind\":\"swap\","
        "\"severity\":\"warning\",\"rank\":null,\"text\":\"swap is on: a page that is swapped out "
        "costs a millisecond\"}]";
    struct err err;
    struct spec spec;
    struct matrix m = {0};
    struct rank_info ranks[RANKS];
    struct metric metrics[METRICS];
    struct fingerprint f;
    const double phases[PHASES] = {812.5, 95.25, 40, 52000.5, 18};
    int64_t id;
    bool again;
    spec_init(&spec, BENCHMARK_LATENCY);
    make_ranks(ranks, run);
    make_fingerprint(&f, run);
    must(sim_matrix(&m, RANKS, SIZES, 0.01, run > RUNS / 2 ? 1.04 : 1, seed), &err);
    for (int i = 0; i < RANKS * SIZES; i++)
        complete(&m.cells[i], seed);
    snprintf(m.row.name, sizeof m.row.name, "rank");
    snprintf(m.col.name, sizeof m.col.name, "working_set");
    snprintf(m.col.unit, sizeof m.col.unit, "bytes");
    make_metrics(metrics, &m);
    const bool well = run % 1000 != 999;
    const struct run_result result = {
        .state = well ? RUN_SUCCEEDED : RUN_FAILED,
        .error = well ? ERR_NONE : ERR_TIMEOUT,
        .error_text = well ? NULL : "the deadline of 900 s passed",
        .method = "prp4-v1",
        .phase_ms = phases,
        .matrices = &m,
        .n_matrices = well,
        .ranks = ranks,
        .n_ranks = well ? RANKS : 0,
        .metrics = {well, "", metrics, METRICS},
        .log = "numa_bench: 8 ranks, 15 working sets of 1 MiB to 16 GiB, concurrent\n",
    };
    must(store_run_insert(s, &spec, run % 5 ? "node1" : "node2", NULL, &id, &again, &err), &err);
    must(store_run_started(s, id, plan, conditions, &f, "<topology/>", &err), &err);
    now_ms += 60000;
    must(store_run_finished(s, id, &result, &err), &err);
    if (run % 500 == 7)
        must(store_run_label(s, id, run % 1000 == 7 ? "before BIOS update" : "reference", &err),
             &err);
    matrix_fini(&m);
}

static void make_all(const char *dir, int64_t runs)
{
    struct err err;
    CLEANUP_BUF struct buf plan = BUF_INIT;
    unsigned long long seed = 42;
    struct store *s = store_open(dir, &err);
    must(s ? 0 : -1, &err);
    must(sq_exec(s->db, "PRAGMA synchronous=OFF", &err), &err);
    make_plan(&plan);
    uint64_t start = clock_mono_ns();
    for (int64_t i = 0; i < runs; i++) {
        now_ms = first_ms + i * hour_ms;
        make_one(s, i, buf_text(&plan), &seed);
    }
    printf("made %" PRId64 " runs in %.0f s\n", runs, (double)(clock_mono_ns() - start) / 1e9);
    store_close(s);
}

// ---- measuring it

struct bench {
    const char *dir;
    struct store *s;
    int64_t runs, step;
    struct run_filter filter;
};

static double since_ms(uint64_t start)
{
    return (double)(clock_mono_ns() - start) / 1e6;
}

static void say(const char *what, double got, double goal, const char *unit)
{
    printf("%-44s %9.3f %-4s goal %g%s\n", what, got, unit, goal, got > goal ? "   MISSED" : "");
    missed += got > goal;
}

typedef void work(struct bench *b);

static void time_it(struct bench *b, const char *what, double goal_ms, work *fn)
{
    double took[REPETITIONS];
    for (b->step = 0; b->step < WARM_UP; b->step++)
        fn(b);
    for (int i = 0; i < REPETITIONS; i++, b->step++) {
        uint64_t start = clock_mono_ns();
        fn(b);
        took[i] = since_ms(start);
    }
    say(what, middle_of(took, REPETITIONS), goal_ms, "ms");
}

// Another run each time, all over the file.
static int64_t some_run(const struct bench *b)
{
    int64_t at = 1 + (b->step * 7919 * 11) % b->runs;
    return at % 1000 == 0 ? at - 1 : at; // those failed
}

static void ignore(void *ctx, const struct run *r)
{
    *(int64_t *)ctx = r->id;
}

static void list_page(struct bench *b)
{
    struct err err;
    int64_t last;
    bool more;
    must(store_run_list(b->s, &b->filter, ignore, &last, &more, &err), &err);
}

static void time_lists(struct bench *b)
{
    const int64_t end = first_ms + b->runs * hour_ms, middle = first_ms + b->runs / 2 * hour_ms;
    const struct {
        const char *what;
        struct run_filter f;
    } pages[] = {
        {"runs, no filter", {.state = -1}},
        {"runs, from the middle on", {.state = -1, .before_id = b->runs / 2}},
        {"runs, state=succeeded", {.state = RUN_SUCCEEDED}},
        {"runs, state=failed", {.state = RUN_FAILED}},
        {"runs, state=queued (none)", {.state = RUN_QUEUED}},
        {"runs, benchmark=latency", {.state = -1, .benchmark = "latency"}},
        {"runs, benchmark=pingpong (none)", {.state = -1, .benchmark = "pingpong"}},
        {"runs, node=node2", {.state = -1, .node = "node2"}},
        {"runs, node=node9 (none)", {.state = -1, .node = "node9"}},
        {"runs, label", {.state = -1, .label = "before BIOS update"}},
        {"runs, since the middle", {.state = -1, .since_ms = middle}},
        {"runs, since the last day", {.state = -1, .since_ms = end - day_ms}},
        {"runs, since the future (none)", {.state = -1, .since_ms = end + day_ms}},
        {"runs, until the middle", {.state = -1, .until_ms = middle}},
        {"runs, until the first day", {.state = -1, .until_ms = first_ms + day_ms}},
        {"runs, until the past (none)", {.state = -1, .until_ms = first_ms - day_ms}},
        {"runs, a day in the middle",
         {.state = -1, .since_ms = middle, .until_ms = middle + day_ms}},
        {"runs, all filters",
         {.state = RUN_SUCCEEDED,
          .benchmark = "latency",
          .node = "node2",
          .label = "reference",
          .since_ms = first_ms,
          .until_ms = middle,
          .before_id = b->runs}},
        {"runs, state=canceled of node1 (none)", {.state = RUN_CANCELED, .node = "node1"}},
        {"runs, state=failed of node2", {.state = RUN_FAILED, .node = "node2"}},
        {"runs, state=failed benchmark=latency", {.state = RUN_FAILED, .benchmark = "latency"}},
        {"runs, canceled latency of node1 (none)",
         {.state = RUN_CANCELED, .benchmark = "latency", .node = "node1"}},
        {"runs, failed until the first day", {.state = RUN_FAILED, .until_ms = first_ms + day_ms}},
        {"runs, node2 until the first day",
         {.state = -1, .node = "node2", .until_ms = first_ms + day_ms}},
    };
    for (size_t i = 0; i < COUNT_OF(pages); i++) {
        b->filter = pages[i].f;
        b->filter.limit = 50;
        time_it(b, pages[i].what, 5, list_page);
    }
}

static void latest(struct bench *b)
{
    struct err err;
    int64_t id;
    must(store_run_latest(b->s, "node1", &id, &err), &err);
}

static void count_value(void *ctx, const struct newest_value *v)
{
    *(double *)ctx += v->value;
}

static void newest_values(struct bench *b)
{
    struct err err;
    double sum = 0;
    must(store_newest_values(b->s, "node1", 2048, count_value, &sum, &err), &err);
    if (!(sum > 0))
        must(err_set(&err, ERR_INTERNAL, "", "no newest values"), &err);
}

static void pending(struct bench *b)
{
    struct err err;
    int64_t n;
    must(store_runs_pending(b->s, 1, "node1", 10000, &n, &err), &err);
}

static void states(struct bench *b)
{
    struct err err;
    int64_t count[RUN_STATES];
    must(store_run_states(b->s, count, &err), &err);
}

static void known_import(struct bench *b)
{
    struct err err;
    int64_t id;
    const struct run_result r = {.finished_ms = now_ms};
    const struct run_import i = {.node = "node1", .started_ms = now_ms - b->step, .result = &r};
    must(store_import_find(b->s, &i, &id, &err), &err);
}

static void without_metrics(struct bench *b)
{
    struct err err;
    int64_t id;
    must(store_run_without_metrics(b->s, 1, &id, &err), &err);
}

static void history_90_days(struct bench *b)
{
    struct err err;
    sqlite3_stmt *q;
    const int64_t days = 90 * day_ms;
    const int64_t from = first_ms + (b->step * 7919) % (b->runs * hour_ms / days + 1) * days;
    sqlite3_prepare_v2(b->s->db,
                       "SELECT measured_ms, run_id, value_milli, lo_milli, hi_milli FROM metric "
                       "WHERE series = (SELECT id FROM series WHERE metric = ?1 AND node = ?2 AND "
                       "variant = '') AND measured_ms BETWEEN ?3 AND ?4",
                       -1, &q, NULL);
    must(sq_bind(q, &err, "ttii", "latency.n3.n0.median_ns", "node1", from, from + days), &err);
    int64_t rows = 0;
    int row;
    while ((row = sq_step(q, &err)) > 0)
        rows += sqlite3_column_int64(q, 2) != 0;
    must(row, &err);
    sqlite3_finalize(q);
}

static void load(struct bench *b, int64_t id, struct matrix **list, int *n,
                 struct rank_info **ranks, int *n_ranks)
{
    struct err err;
    struct run run CLEANUP(run_fini) = {0};
    must(store_run_get(b->s, id, &run, &err), &err);
    must(store_matrices_get(b->s, id, list, n, &err), &err);
    must(store_ranks_get(b->s, id, ranks, n_ranks, &err), &err);
}

static void compare_two(struct bench *b)
{
    struct matrix *list[2];
    struct rank_info *ranks[2];
    int n[2], n_ranks[2];
    struct comparison c = {0};
    struct err err;
    const struct compare_options options = COMPARE_DEFAULTS;
    struct compare_side side[2];
    for (int i = 0; i < 2; i++) {
        load(b, i ? some_run(b) : 1 + b->step, &list[i], &n[i], &ranks[i], &n_ranks[i]);
        side[i] = (struct compare_side){
            .matrix = &list[i][0], .method = "prp4-v1", .ranks = ranks[i], .n_ranks = n_ranks[i]};
    }
    must(compare(&c, &side[0], &side[1], &options, &err), &err);
    comparison_fini(&c);
    for (int i = 0; i < 2; i++) {
        store_matrices_free(list[i], n[i]);
        free(ranks[i]);
    }
}

static void changes(struct bench *b)
{
    static double v[POINTS];
    unsigned long long seed = 7;
    struct err err;
    struct change_point *found = NULL;
    int searched;
    const struct series_options options = SERIES_DEFAULTS;
    for (int i = 0; i < POINTS; i++)
        v[i] = 100 * (i > POINTS / 2 ? 1.04 : 1) * (1 + 0.01 * sim_normal(&seed));
    (void)b;
    must(series_changes(&found, &searched, v, POINTS, &options, &err), &err);
    free(found);
}

static void get_run(struct bench *b)
{
    struct err err;
    struct run run CLEANUP(run_fini) = {0};
    must(store_run_get(b->s, some_run(b), &run, &err), &err);
}

static void get_matrix(struct bench *b)
{
    struct err err;
    struct matrix *list;
    int n;
    must(store_matrices_get(b->s, some_run(b), &list, &n, &err), &err);
    store_matrices_free(list, n);
}

// As a person with a shell reads it, on a connection of its own.
static void view(struct bench *b)
{
    struct err err;
    char text[160];
    int64_t n = 0;
    sqlite3 *db;
    snprintf(text, sizeof text,
             "SELECT count(median_ns) FROM measurement WHERE run = %" PRId64 " AND rank >= 0",
             some_run(b));
    must(sqlite3_open_v2(store_path(b->s), &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK ? 0 : -1,
         &err);
    must(sq_number(db, text, &n, &err), &err);
    sqlite3_close(db);
    if (n != RANKS * SIZES)
        must(err_set(&err, ERR_INTERNAL, "", "the view gives %" PRId64 " cells", n), &err);
}

static void insert(struct bench *b)
{
    struct err err;
    struct spec spec;
    int64_t id;
    bool again;
    spec_init(&spec, BENCHMARK_LATENCY);
    must(store_run_insert(b->s, &spec, "node1", NULL, &id, &again, &err), &err);
    const struct run_result canceled = {.state = RUN_CANCELED, .error = ERR_CONFLICT};
    must(store_run_finished(b->s, id, &canceled, &err), &err);
    must(store_run_delete(b->s, id, &err), &err);
}

static void reopen(struct bench *b)
{
    struct err err;
    store_close(b->s);
    b->s = store_open(b->dir, &err);
    must(b->s ? 0 : -1, &err);
}

static void measure(const char *dir)
{
    struct bench b = {.dir = dir};
    struct err err;
    struct stat st;
    uint64_t start = clock_mono_ns();
    b.s = store_open(dir, &err);
    must(b.s ? 0 : -1, &err);
    say("the first start", since_ms(start), 300, "ms");
    must(sq_number(b.s->db, "SELECT max(id) FROM run", &b.runs, &err), &err);
    must(stat(store_path(b.s), &st), &err);
    say("file of that many runs, for ten years", (double)st.st_size / 1e9 * RUNS / b.runs, 1.2,
        "GB");
    now_ms = first_ms + b.runs * hour_ms;
    time_it(&b, "start (and a stop)", 300, reopen);
    time_lists(&b);
    time_it(&b, "the newest run measured here", 5, latest);
    time_it(&b, "the newest value of each series", 5, newest_values);
    time_it(&b, "how many runs have no metrics", 5, pending);
    time_it(&b, "how many runs are in each state", 5, states);
    time_it(&b, "is a run to be imported known", 5, known_import);
    time_it(&b, "is there a run without metrics", 5, without_metrics);
    time_it(&b, "90 days of a metric", 5, history_90_days);
    time_it(&b, "compare of two runs", 20, compare_two);
    time_it(&b, "change points in 2,000 points", 50, changes);
    time_it(&b, "one run", 5, get_run);
    time_it(&b, "its matrix", 10, get_matrix);
    time_it(&b, "its matrix by the view", 10, view);
    time_it(&b, "insert, finish and delete, synced", 100, insert);
    store_close(b.s);
}

int main(int argc, char **argv)
{
    int64_t runs = RUNS;
    char path[600];
    if (argc < 2 || (argc > 2 && !str_to_i64(argv[2], &runs)) || runs < 2000) {
        fputs("usage: ten_years DIR [RUNS from 2000]\n", stderr);
        return 2;
    }
    snprintf(path, sizeof path, "%s/numaprobe.db", argv[1]);
    if (access(path, F_OK) < 0)
        make_all(argv[1], runs);
    measure(argv[1]);
    return missed > 0;
}

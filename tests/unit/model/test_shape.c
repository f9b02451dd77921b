// SPDX-License-Identifier: Apache-2.0
// The matrices of every benchmark, what of them is refused, and how they look.
#include "model/shape.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "formats/result_print.h"
#include "model/hierarchy_parts.h"
#include "model/spec_values.h"
#include "tests/unit/tap.h"

static struct plan_rank places[] = {{0, 0, 0}, {1, 0, 0}, {8, 2, 2}};
static const struct plan plan = {.n_ranks = 3, .ranks = places, .n_targets = 2, .targets = {0, 2}};
static const struct plan own = {.n_ranks = 3, .ranks = places};

static int count_of(const struct spec *s, const char *axis)
{
    return strcmp(axis, "target") == 0        ? s->sweep == SWEEP_OWN ? 1 : 2
           : strcmp(axis, "load") == 0        ? (int)s->steps + 1
           : strcmp(axis, "working_set") == 0 ? 1
           : strcmp(axis, "initiator") == 0   ? 2
           : strcmp(axis, "source") == 0      ? 2
           : strcmp(axis, "line") == 0        ? (int)s->lines
                                              : 3;
}

static void fill_axis(const struct spec *s, struct axis *a)
{
    for (int i = 0; i < a->n; i++) {
        a->values[i] = i;
        if (strcmp(a->name, "target") == 0)
            a->values[i] = s->sweep == SWEEP_OWN ? -1 : plan.targets[i];
        if (strcmp(a->name, "initiator") == 0 || strcmp(a->name, "source") == 0)
            a->values[i] = 2 * i;
        if (strcmp(a->name, "threads") == 0 || strcmp(a->name, "line") == 0)
            a->values[i] = i + 1;
        if (strcmp(a->name, "pair") == 0)
            a->values[i] = axis_pair(i / 2, 2 - (i == 0));
        if (strcmp(a->name, "working_set") == 0)
            a->values[i] = 1 << 29;
    }
}

static int make(struct matrix *m, const struct spec *s, const struct shape *shape)
{
    struct err err = {0};
    int rows = count_of(s, shape->rows), cols = count_of(s, shape->cols);
    if (shape_make(m, shape, rows, cols, &err) < 0)
        return -1;
    fill_axis(s, &m->row);
    fill_axis(s, &m->col);
    return 0;
}

static const struct plan *plan_of(const struct spec *s)
{
    return spec_has_targets(s) ? &plan : &own;
}

static void check_all(struct spec *s, const char *what)
{
    struct shape list[SHAPES_MAX];
    int n = shape_list(s, list);
    CHECK(n >= 1, "%s has %d matrices", what, n);
    for (int i = 0; i < n; i++) {
        struct matrix m CLEANUP(matrix_fini) = {0};
        struct err err = {0};
        if (make(&m, s, &list[i]) < 0) {
            CHECK(0, "%s: %s cannot be made", what, list[i].name);
            continue;
        }
        CHECK(shape_check(&m, s, plan_of(s), &err) == 0, "%s: %s is taken %s", what, list[i].name,
              err.text);
        CHECK(!shape_complete(&m), "empty it is not complete");
        for (int r = 0; r < m.row.n; r++)
            for (int c = 0; c < m.col.n; c++)
                if (shape_has_cell(&m, r, c))
                    matrix_at(&m, r, c)->v[CELL_MEDIAN] = 5;
        CHECK(shape_complete(&m), "full it is");
        snprintf(m.unit, sizeof m.unit, "furlong");
        CHECK(shape_check(&m, s, plan_of(s), &err) < 0, "another unit is refused: %s", err.text);
    }
}

// Of all pairs a run may measure fewer; then it is complete with exactly so many.
static void some_pairs(void)
{
    enum { RANKS = 6, MOST = 7 };
    struct shape list[SHAPES_MAX];
    struct spec s, all;
    struct matrix m CLEANUP(matrix_fini) = {0};
    struct err err = {0};
    spec_init(&all, BENCHMARK_C2C);
    s = all;
    s.pairs_most = MOST;
    shape_list(&s, list);
    CHECK(shape_make(&m, &list[0], RANKS, RANKS, &err) == 0 &&
              shape_cells_measured(&m, &all) == 15 && shape_cells_measured(&m, &s) == MOST,
          "15 pairs of six ranks, or 7");
    for (int k = 0, n = 0; k < RANKS * RANKS; k++) {
        if (!shape_has_cell(&m, k / RANKS, k % RANKS))
            continue;
        m.cells[k].v[CELL_MEDIAN] = 5;
        n++;
        CHECK(shape_measured(&m, &s) == (n == MOST) && shape_measured(&m, &all) == (n == 15),
              "%d pairs have a value", n);
    }
}

// The same of a rank and a target.
static void some_targets(void)
{
    enum { NODES = 4, MOST = 9 };
    struct shape list[SHAPES_MAX];
    struct spec s;
    struct matrix m CLEANUP(matrix_fini) = {0};
    struct err err = {0};
    spec_init(&s, BENCHMARK_MATRIX);
    shape_list(&s, list);
    CHECK(shape_make(&m, &list[0], NODES, NODES, &err) == 0 &&
              shape_cells_measured(&m, &s) == NODES * NODES,
          "all cells");
    s.pairs_most = MOST;
    for (int k = 0; k < MOST; k++)
        m.cells[k].v[CELL_MEDIAN] = 5;
    CHECK(shape_cells_measured(&m, &s) == MOST && shape_measured(&m, &s), "nine of them");
}

static void every_benchmark(void)
{
    for (int k = 0; k < BENCHMARKS; k++) {
        struct spec s;
        spec_init(&s, (enum benchmark_id)k);
        check_all(&s, benchmarks[k].name);
    }
    struct spec s;
    spec_init(&s, BENCHMARK_LATENCY);
    s.mode = MODE_BOTH;
    check_all(&s, "latency, both modes");
    spec_init(&s, BENCHMARK_PINGPONG);
    snprintf(s.pairs, sizeof s.pairs, "all");
    check_all(&s, "pingpong, all pairs");
    struct shape list[SHAPES_MAX];
    s.message_max = 0;
    check_all(&s, "pingpong, all pairs, messages of nothing");
    CHECK(shape_list(&s, list) == 1 && strcmp(list[0].name, "latency") == 0, "they have no rate");
    spec_init(&s, BENCHMARK_C2C);
    s.definition = C2C_EVERY;
    snprintf(s.pairs, sizeof s.pairs, "classes");
    check_all(&s, "c2c, a pair of each class");
    spec_init(&s, BENCHMARK_BANDWIDTH);
    s.sweep = SWEEP_OWN;
    check_all(&s, "bandwidth, own memory");
    s.sweep = SWEEP_MEMCPY;
    check_all(&s, "bandwidth, copies");
    s.sweep = SWEEP_SIZES;
    check_all(&s, "bandwidth, working sets");
    s.sweep = SWEEP_THREADS;
    s.kernel = 4;
    check_all(&s, "bandwidth, triad by threads");
}

static void refused_matrix(const char *what, const char *why, int benchmark, const char *matrix,
                           const char *axis, int at, int64_t value)
{
    struct spec s;
    struct shape list[SHAPES_MAX];
    struct matrix m CLEANUP(matrix_fini) = {0};
    struct err err = {0};
    spec_init(&s, (enum benchmark_id)benchmark);
    int n = shape_list(&s, list);
    if (make(&m, &s, matrix ? shape_find(list, n, matrix) : &list[0]) < 0)
        abort();
    struct axis *a = strcmp(m.row.name, axis) == 0 ? &m.row : &m.col;
    a->values[at] = value;
    CHECK(shape_check(&m, &s, plan_of(&s), &err) < 0 && strstr(err.text, why), "%s: %s", what,
          err.text);
}

static void refused(const char *what, const char *why, int benchmark, const char *axis, int at,
                    int64_t value)
{
    refused_matrix(what, why, benchmark, NULL, axis, at, value);
}

static void refusals(void)
{
    refused("a rank that is not there", "not of this run", BENCHMARK_LATENCY, "rank", 2, 3);
    refused("a rank twice", "rank 1 twice", BENCHMARK_LATENCY, "rank", 2, 1);
    refused("a rank twice, others between", "rank 0 twice", BENCHMARK_LATENCY, "rank", 2, 0);
    refused("a target twice", "target 0 twice", BENCHMARK_MATRIX, "target", 1, 0);
    refused("ranks that do not rise", "do not rise", BENCHMARK_C2C, "rank", 0, 2);
    refused("a target that was not asked for", "not of this run", BENCHMARK_MATRIX, "target", 1, 1);
    refused("an initiator without ranks", "not of this run", BENCHMARK_BANDWIDTH, "initiator", 0,
            1);
    refused("a pair with itself", "not of this run", BENCHMARK_PINGPONG, "pair", 0,
            axis_pair(1, 1));
    refused("a pair with nobody", "not of this run", BENCHMARK_PINGPONG, "pair", 0,
            axis_pair(1, 3));
    refused("an access without a name", "not of this run", BENCHMARK_FIRSTTOUCH, "access", 2, 3);
    refused_matrix("an operation without a name", "not of this run", BENCHMARK_ATOMICS, "time",
                   "operation", 2, AXIS_OPERATIONS);
    refused_matrix("a line 0", "not of this run", BENCHMARK_C2C, "cas_lines", "line", 0, 0);
    refused("more than full load", "not of this run", BENCHMARK_LOADED, "load", 10, 101);
}

static void labels(void)
{
    int64_t values[] = {axis_pair(3, 1000)};
    struct axis a = {.name = "pair", .n = 1, .values = values};
    char text[32];
    int first, second;
    axis_label(&a, 0, text, sizeof text);
    CHECK_STR(text, "3-1000", "a pair");
    axis_unpair(values[0], &first, &second);
    CHECK(first == 3 && second == 1000, "and back");
    snprintf(a.name, sizeof a.name, "access");
    values[0] = ACCESS_CROSSED;
    axis_label(&a, 0, text, sizeof text);
    CHECK_STR(text, "crossed", "an access");
    CHECK(axis_is_named(&a), "which is no plain number");
    snprintf(a.name, sizeof a.name, "operation");
    values[0] = OPERATION_TICKET;
    axis_label(&a, 0, text, sizeof text);
    CHECK(!strcmp(text, "ticket") && axis_is_named(&a), "an operation: %s", text);
    values[0] = 2;
    snprintf(a.name, sizeof a.name, "rank");
    axis_label(&a, 0, text, sizeof text);
    CHECK_STR(text, "2", "a rank is its number");
    CHECK(!axis_is_named(&a), "and nothing else");
}

// Each benchmark in the form of its field.
static void printed_pairs(int benchmark, const char *pairs, const char *const *wanted)
{
    struct spec s;
    struct shape list[SHAPES_MAX];
    struct matrix m[SHAPES_MAX] = {0};
    struct rank_info ranks[3] = {
        {.rank = 0}, {.rank = 1, .cpu = 1}, {.rank = 2, .cpu = 8, .cpu_node = 2}};
    CLEANUP_BUF struct buf out = BUF_INIT;
    spec_init(&s, (enum benchmark_id)benchmark);
    if (pairs)
        snprintf(s.pairs, sizeof s.pairs, "%s", pairs);
    int n = shape_list(&s, list);
    for (int i = 0; i < n; i++) {
        if (make(&m[i], &s, &list[i]) < 0)
            abort();
        for (int k = 0; k < m[i].row.n * m[i].col.n; k++)
            m[i].cells[k].v[CELL_MEDIAN] = k + 0.25;
    }
    result_tables_write(m, n, ranks, 3, 0, &out);
    for (; *wanted; wanted++)
        CHECK(strstr(buf_text(&out), *wanted), "%s prints: %s", benchmarks[benchmark].name,
              *wanted);
    for (int i = 0; i < n; i++)
        matrix_fini(&m[i]);
}

static void printed(int benchmark, const char *const *wanted)
{
    printed_pairs(benchmark, NULL, wanted);
}

// One row and one column, and one sample: no interval to print.
static void lone_bandwidth(void)
{
    const struct shape shape = {"triad", "bandwidth", "MB/s", "threads", "target"};
    struct matrix m CLEANUP(matrix_fini) = {0};
    struct err err = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    if (shape_make(&m, &shape, 1, 1, &err) < 0)
        abort();
    m.cells[0].v[CELL_MEDIAN] = m.cells[0].v[CELL_P99] = 12345.67;
    result_tables_write(&m, 1, NULL, 0, 0, &out);
    CHECK_STR(buf_text(&out),
              "Function    Median MB/s          Low         High          p99\n"
              "triad           12345.7            -            -      12345.7\n",
              "one sample of one cell");
}

static void prints(void)
{
    lone_bandwidth();
    printed(BENCHMARK_LATENCY,
            (const char *const[]){"| Ranks | Cores ", "512MB", "|  002  |", NULL});
    printed(BENCHMARK_MATRIX,
            (const char *const[]){"Idle latencies (in ns)", "Numa node", "          2 (8)", NULL});
    printed(BENCHMARK_BANDWIDTH,
            (const char *const[]){"triad: bandwidth (MB/s)", "initiator \\ target", NULL});
    printed(BENCHMARK_PINGPONG,
            (const char *const[]){"# Pair 0-1", "       #bytes", "t[usec]    Mbytes/sec",
                                  "maximum bandwidth", NULL});
    printed(BENCHMARK_C2C, (const char *const[]){"cas: round_trip (ns)", "2 CPU 8 node 2", NULL});
    printed_pairs(BENCHMARK_C2C, "0-1,0-2,1-2",
                  (const char *const[]){"cas: round_trip (ns)", "pair \\ message", "\n0-2 ", NULL});
    printed(BENCHMARK_FIRSTTOUCH, (const char *const[]){"own", "x 5.00", NULL});
    printed(BENCHMARK_LOADED, (const char *const[]){"MB/s", "       10%", NULL});
}

// The matrices of each definition of c2c, in their order.
static void definitions(void)
{
    static const char *const want[] = {"cas load cas_lines load_lines",
                                       "cas cas_lines",
                                       "load load_lines",
                                       "hitm",
                                       "hit",
                                       "hitm hit",
                                       "cas load hitm hit cas_lines load_lines"};
    struct shape list[SHAPES_MAX];
    struct spec s;
    spec_init(&s, BENCHMARK_C2C);
    for (s.definition = 0; s.definition < COUNT_OF(want); s.definition++) {
        CLEANUP_BUF struct buf got = BUF_INIT;
        int n = shape_list(&s, list);
        for (int i = 0; i < n; i++)
            buf_fmt(&got, "%s%s", i ? " " : "", list[i].name);
        CHECK_STR(buf_text(&got), want[s.definition], "definition %d", s.definition);
    }
    s.definition = C2C_ONLY_LOAD;
    s.lines = 1;
    CHECK(shape_list(&s, list) == 1, "one line is not measured by itself as well");
}

// The columns and matrices of each choice of operations.
static void operations(void)
{
    static const char *const want[] = {"fetch_add cas exchange tas ticket mcs 5",
                                       "fetch_add cas exchange 4",
                                       "tas ticket mcs 5",
                                       "fetch_add 4",
                                       "cas 4",
                                       "exchange 4",
                                       "tas 5",
                                       "ticket 5",
                                       "mcs 5"};
    struct shape list[SHAPES_MAX];
    struct spec s;
    spec_init(&s, BENCHMARK_ATOMICS);
    for (s.operation = 0; s.operation < COUNT_OF(want); s.operation++) {
        CLEANUP_BUF struct buf got = BUF_INIT;
        int64_t columns[AXIS_OPERATIONS];
        int n = spec_operations(&s, columns);
        for (int i = 0; i < n; i++)
            buf_fmt(&got, "%s ", operation_names[columns[i]]);
        buf_fmt(&got, "%d", shape_list(&s, list));
        CHECK_STR(buf_text(&got), want[s.operation], "choice %d", s.operation);
    }
    struct matrix m = {.quantity = "rate"}, t = {.quantity = "operation_time"};
    CHECK(shape_more_is_better(&m) && !shape_more_is_better(&t), "a rate, but no time");
}

// The columns of hierarchy's parts rise, begin and end where they should, and have whole lines.
static void hierarchy_parts(void)
{
    struct hierarchy_columns c;
    hierarchy_columns_make(&c, 512 << 20, 64, 4096, 2 << 20);
    int wrong = 0;
    for (int part = 0; part < HIERARCHY_PARTS; part++)
        for (int i = 0; i < c.n[part]; i++)
            wrong += (i && c.value[part][i] <= c.value[part][i - 1]) ||
                     (part == PART_CURVE && c.value[part][i] % 64);
    CHECK_INT(wrong, 0, "columns rise, and a curve has whole lines");
    CHECK(c.n[PART_CURVE] == 4 * 17 + 1 && c.value[PART_CURVE][0] == 4096 &&
              c.value[PART_CURVE][68] == 512 << 20,
          "four an octave from 4 KiB to 512 MiB: %d", c.n[PART_CURVE]);
    CHECK(c.n[PART_BASE_PAGES] == c.n[PART_PACKED] &&
              c.value[PART_PACKED][c.n[PART_PACKED] - 1] == 16384,
          "the control has as many lines: %d", c.n[PART_PACKED]);
    CHECK(c.value[PART_HUGE_PAGES][c.n[PART_HUGE_PAGES] - 1] == 255 && c.n[PART_PARALLEL] == 20 &&
              c.n[PART_STRIDE] == 7 && c.n[PART_CYCLE] == 1 && c.n[PART_NODES] == 0,
          "huge pages with a line between them, chains, strides, a cycle; nodes are the plan's");
    for (uint64_t half_gib = 1; half_gib <= 4; half_gib++) { // base pages have 64 KiB
        hierarchy_columns_make(&c, half_gib << 29, 64, 65536, 512 << 20);
        int n = c.n[PART_HUGE_PAGES], want = half_gib > 1 ? (int)half_gib - 1 : 1;
        CHECK(n == want && c.value[PART_HUGE_PAGES][0] == 1 &&
                  c.value[PART_HUGE_PAGES][n - 1] == want,
              "%d huge pages of 512 MiB: %d columns", (int)half_gib, n);
    }
}

int main(void)
{
    hierarchy_parts();
    operations();
    every_benchmark();
    some_pairs();
    some_targets();
    refusals();
    labels();
    prints();
    definitions();
    return tap_done();
}

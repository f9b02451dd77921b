// SPDX-License-Identifier: Apache-2.0
// One verdict on two runs, and the part that is named: what a mean over the table hides, and what
// chance makes. Each shape is simulated several times; seeds are printed.
#include "analysis/compare/compare.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "model/shape.h"

#include "tests/unit/analysis/alarms.h"
#include "tests/unit/analysis/simulate.h"
#include "tests/unit/tap.h"

enum { TRIES = 20 };

// A table, and by which factor each cell of B differs from that of A.
typedef double shape_fn(int row, int col, int rows, int cols);
struct table {
    enum benchmark_id id;
    const char *matrix;
    int rows, cols;
    int node_size; // ranks a node
    double spread, drift;
    bool single; // one value a cell
};

static const struct table latency = {BENCHMARK_LATENCY, "concurrent", 8, 15, 2, 0.01, 0.01, false};
static const struct table idle = {BENCHMARK_MATRIX, "idle", 8, 8, 1, 0.01, 0.01, false};
static const struct table atomics = {BENCHMARK_ATOMICS, "time", 8, 6, 8, 0.01, 0.01, false};
static const struct table pairs = {BENCHMARK_C2C, "cas", 16, 16, 4, 0.01, 0.01, false};

static int make(struct matrix *m, const struct table *t, shape_fn *factor, unsigned long long *seed)
{
    struct spec s;
    struct shape list[SHAPES_MAX];
    spec_init(&s, t->id);
    const struct shape *found = shape_find(list, shape_list(&s, list), t->matrix);
    if (!found || shape_make(m, found, t->rows, t->cols, NULL) < 0)
        return -1;
    for (int j = 0; j < t->cols; j++)
        m->col.values[j] = t->id == BENCHMARK_LATENCY ? (int64_t)1 << (20 + j) : j;
    for (int k = 0; k < t->rows * t->cols; k++) {
        int i = k / t->cols, j = k % t->cols;
        double level = (100 + 5 * j + i) * (factor ? factor(i, j, t->rows, t->cols) : 1);
        if (!shape_has_cell(m, i, j) || isnan(level))
            continue;
        sim_visits(&m->cells[k], level, t->spread, t->drift, seed);
        for (int f = 0; t->single && f < CELL_FIELDS; f++)
            if (f != CELL_MEDIAN)
                m->cells[k].v[f] = NAN;
    }
    return 0;
}

// A beside B, as one comparison; the ranks of a node are neighbours.
static int run(struct comparison *c, const struct table *t, shape_fn *a, shape_fn *b,
               const struct compare_options *o, unsigned long long *seed)
{
    static struct rank_info ranks[SPEC_RANKS_MAX];
    struct matrix m[2] = {0};
    struct spec spec;
    spec_init(&spec, t->id);
    spec.visits = SIM_VISITS;
    for (int i = 0; i < t->rows; i++)
        ranks[i] = (struct rank_info){
            .rank = i, .cpu = i, .cpu_node = i / t->node_size, .mem_node = i / t->node_size};
    int rc = make(&m[0], t, a, seed) < 0 || make(&m[1], t, b, seed) < 0 ? -1 : 0;
    const struct compare_side x = {
        .matrix = &m[0], .spec = &spec, .ranks = ranks, .n_ranks = t->rows};
    const struct compare_side y = {
        .matrix = &m[1], .spec = &spec, .ranks = ranks, .n_ranks = t->rows};
    rc = rc < 0 ? rc : compare(c, &x, &y, o, NULL);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
    return rc;
}

static const struct compare_options defaults = COMPARE_DEFAULTS;

// ---- What may hide ------------------------------------------------------------------------------

static double slow_column(int i, int j, int rows, int cols)
{
    (void)i, (void)rows, (void)cols;
    return j == 3 ? 1.182 : 1;
}

static double two_columns(int i, int j, int rows, int cols)
{
    (void)i, (void)rows, (void)cols;
    return j == 2 || j == 5 ? 1.1 : 1;
}

static double slow_row(int i, int j, int rows, int cols)
{
    (void)j, (void)rows, (void)cols;
    return i == 5 ? 1.1 : 1;
}

static double row_from(int i, int j, int rows, int cols)
{
    (void)rows;
    return i == 5 && j >= cols / 2 ? 1.1 : 1;
}

static double node_from(int i, int j, int rows, int cols)
{
    (void)rows;
    return i / 2 == 1 && j >= 2 * cols / 3 ? 1.1 : 1;
}

static double one_thread(int i, int j, int rows, int cols)
{
    (void)j, (void)rows, (void)cols;
    return i == 1 ? 1.1 : 1;
}

static double small_sizes(int i, int j, int rows, int cols)
{
    (void)i, (void)rows, (void)cols;
    return j <= 3 ? 1.1 : 1;
}

static double one_cell(int i, int j, int rows, int cols)
{
    (void)rows, (void)cols;
    return i == 2 && j == 6 ? 1.3 : 1;
}

static double more_everywhere(int i, int j, int rows, int cols)
{
    (void)i, (void)rows, (void)cols;
    return j == 3 ? 1.2 : 1.1;
}

static double fast_column(int i, int j, int rows, int cols)
{
    (void)i, (void)rows, (void)cols;
    return j == 3 ? 0.8 : 1.02;
}

static double both_ways(int i, int j, int rows, int cols)
{
    (void)i, (void)rows, (void)cols;
    return j == 3 ? 1.2 : j == 4 ? 0.8 : 1;
}

static double half(int i, int j, int rows, int cols)
{
    (void)j, (void)cols;
    return i >= rows / 2 ? 1.1 : 1;
}

static double most(int i, int j, int rows, int cols)
{
    (void)i, (void)rows, (void)cols;
    return j == 3 ? 1 : 1.1;
}

static double pair_of_rank(int i, int j, int rows, int cols)
{
    (void)rows, (void)cols;
    return i == 5 || j == 5 ? 1.2 : 1;
}

static double node_to_node(int i, int j, int rows, int cols)
{
    (void)rows, (void)cols;
    return i / 4 == 1 && j / 4 == 3 ? 1.2 : 1;
}

static double within_node(int i, int j, int rows, int cols)
{
    (void)rows, (void)cols;
    return i / 4 == 2 && j / 4 == 2 ? 1.2 : 1;
}

static double remote(int i, int j, int rows, int cols)
{
    (void)rows, (void)cols;
    return i == j ? 1 : 1.1;
}

static double one_link(int i, int j, int rows, int cols)
{
    (void)rows, (void)cols;
    return i == 2 && j == 9 ? 1.5 : 1;
}

static double everything(int i, int j, int rows, int cols)
{
    (void)i, (void)j, (void)rows, (void)cols;
    return 1.03;
}

static double a_little(int i, int j, int rows, int cols)
{
    (void)i, (void)j, (void)rows, (void)cols;
    return 1.005;
}

static double holes(int i, int j, int rows, int cols)
{
    (void)rows, (void)cols;
    return (i + j) % 3 == 0 ? NAN : j == 3 ? 1.182 : 1;
}

static bool names(const struct comparison *c, const char *name)
{
    bool found = false;
    for (int i = 0; i < c->n_parts; i++)
        found = found || strcmp(c->parts[i].name, name) == 0;
    return found;
}

static void test_shapes(void)
{
    static const struct {
        const struct table *table;
        shape_fn *shape;
        enum verdict verdict;
        const char *says[3]; // the first parts' names
    } cases[] = {
        {&idle, slow_column, VERDICT_SLOWER, {"memory of node 3"}},
        {&idle, two_columns, VERDICT_SLOWER, {"memory of node 2", "memory of node 5"}},
        {&idle, slow_row, VERDICT_SLOWER, {"rank 5"}},
        {&idle, one_cell, VERDICT_SLOWER, {"rank 2 on memory of node 6"}},
        {&idle, fast_column, VERDICT_FASTER, {"memory of node 3"}},
        {&idle, both_ways, VERDICT_SLOWER, {"memory of node 3", "memory of node 4"}},
        {&idle, remote, VERDICT_SLOWER, {"remote memory"}},
        {&idle, holes, VERDICT_SLOWER, {"memory of node 3"}},
        {&idle, most, VERDICT_SLOWER, {"memory of node 3"}},
        {&idle, more_everywhere, VERDICT_SLOWER, {"memory of node 3"}},
        {&idle, everything, VERDICT_SLOWER, {NULL}},
        {&idle, a_little, VERDICT_SAME, {NULL}},
        {&latency, slow_row, VERDICT_SLOWER, {"rank 5"}},
        {&latency, slow_column, VERDICT_SLOWER, {"size 8M"}},
        {&latency, row_from, VERDICT_SLOWER, {"rank 5 from 128M on"}},
        {&latency, node_from, VERDICT_SLOWER, {"ranks of node 1 from 1G on"}},
        {&latency, small_sizes, VERDICT_SLOWER, {"up to 8M"}},
        {&latency, one_cell, VERDICT_SLOWER, {"rank 2 at 64M"}},
        {&latency, half, VERDICT_SLOWER, {"ranks of node 2", "ranks of node 3"}},
        {&latency, everything, VERDICT_SLOWER, {NULL}},
        {&atomics, one_thread, VERDICT_SLOWER, {"1 thread"}},
        {&atomics, slow_row, VERDICT_SLOWER, {"5 threads"}},
        {&pairs, pair_of_rank, VERDICT_SLOWER, {"rank 5"}},
        {&pairs, node_to_node, VERDICT_SLOWER, {"pairs of nodes 1 and 3"}},
        {&pairs, within_node, VERDICT_SLOWER, {"pairs on node 2"}},
        {&pairs, one_link, VERDICT_SLOWER, {"rank 2 with rank 9"}},
        {&pairs, everything, VERDICT_SLOWER, {NULL}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned long long seed = 301 + i;
        int right = 0, named = 0;
        char text[400] = "", first[400] = "";
        for (int k = 0; k < TRIES; k++) {
            struct comparison c CLEANUP(comparison_fini) = {0};
            if (run(&c, cases[i].table, NULL, cases[i].shape, &defaults, &seed) < 0)
                continue;
            bool all = c.verdict == cases[i].verdict;
            right += all;
            for (int n = 0; n < 3 && cases[i].says[n]; n++)
                all = all && names(&c, cases[i].says[n]);
            named += all;
            comparison_text(&c, text, sizeof text);
            if (!k || !all)
                snprintf(first, sizeof first, "%s: %s", verdict_names[c.verdict], text);
        }
        printf("# seed %zu: %d right, %d named of %d: %s\n", 301 + i, right, named, TRIES, first);
        CHECK(right >= TRIES - 1 && named >= TRIES - 2, "%s: %s is %s", cases[i].table->matrix,
              cases[i].says[0] ? cases[i].says[0] : "nothing", verdict_names[cases[i].verdict]);
    }
}

// ---- What chance makes --------------------------------------------------------------------------

// Noise that errors of cells do not know: of each rank, of each size, or visits that go wrong.
enum noise { PLAIN, RANKS_DRIFT, SIZES_DRIFT, BAD_VISITS, NOISES };
static const char *const noise_names[NOISES] = {"plain", "ranks drift by 2 %", "sizes drift by 2 %",
                                                "12 % of visits are 1.2 to 2.8 times too slow"};

static void spoil_visits(struct cell *c, double level, unsigned long long *seed)
{
    double v[SIM_VISITS * SIM_EACH];
    int visit[SIM_VISITS * SIM_EACH];
    for (int i = 0, k = 0; i < SIM_VISITS; i++) {
        bool bad = dist_below(seed, 100) < 12;
        double here = level * (bad ? 1.2 + 1.6 * dist_below(seed, 1000) / 1000 : 1);
        for (int n = 0; n < SIM_EACH; n++, k++) {
            v[k] = here * (1 + 0.01 * sim_normal(seed));
            visit[k] = i;
        }
    }
    cell_clear(c);
    stats_cell(c, v, visit, SIM_VISITS * SIM_EACH, NULL);
}

static void disturb(struct matrix *m, enum noise noise, unsigned long long *seed)
{
    double rank[64], size[64];
    for (int i = 0; i < 64; i++) {
        rank[i] = noise == RANKS_DRIFT ? exp(0.02 * sim_normal(seed)) : 1;
        size[i] = noise == SIZES_DRIFT ? exp(0.02 * sim_normal(seed)) : 1;
        if (strcmp(m->row.name, m->col.name) == 0) // a rank is in rows and columns
            size[i] = rank[i];
    }
    for (int k = 0; k < m->row.n * m->col.n; k++) {
        double by = rank[k / m->col.n] * size[k % m->col.n];
        if (noise == BAD_VISITS)
            spoil_visits(&m->cells[k], 100, seed);
        for (int f = CELL_MEDIAN; f <= CELL_HI; f++)
            m->cells[k].v[f] *= by;
    }
}

struct alarms {
    int slower, faster, inconclusive, parts;
};

static struct alarms count_alarms(const struct table *t, enum noise noise, int tries,
                                  unsigned long long seed)
{
    struct alarms n = {0};
    static struct rank_info ranks[64];
    struct spec spec;
    spec_init(&spec, t->id);
    for (int i = 0; i < t->rows; i++)
        ranks[i] = (struct rank_info){
            .rank = i, .cpu = i, .cpu_node = i / t->node_size, .mem_node = i / t->node_size};
    for (int k = 0; k < tries; k++) {
        struct matrix m[2] = {0};
        struct comparison c CLEANUP(comparison_fini) = {0};
        for (int i = 0; i < 2; i++) {
            make(&m[i], t, NULL, &seed);
            disturb(&m[i], noise, &seed);
        }
        const struct compare_side x = {
            .matrix = &m[0], .spec = &spec, .ranks = ranks, .n_ranks = t->rows};
        const struct compare_side y = {
            .matrix = &m[1], .spec = &spec, .ranks = ranks, .n_ranks = t->rows};
        compare(&c, &x, &y, &defaults, NULL);
        n.slower += c.verdict == VERDICT_SLOWER;
        n.faster += c.verdict == VERDICT_FASTER;
        n.inconclusive += c.verdict == VERDICT_INCONCLUSIVE;
        n.parts += c.n_parts > 0;
        if ((c.verdict == VERDICT_SLOWER || c.verdict == VERDICT_FASTER) && getenv("SHOW")) {
            char text[400];
            comparison_text(&c, text, sizeof text);
            printf("#   %s\n", text);
        }
        matrix_fini(&m[0]);
        matrix_fini(&m[1]);
    }
    return n;
}

// The limits are those that docs/VERDICTS.md states, with room for another seed. Drift of whole
// ranks or sizes is no chance to a single pair of runs, so a few alarms remain.
static void test_chance(void)
{
    static const struct table single = {
        BENCHMARK_LATENCY, "concurrent", 8, 15, 2, 0.03, 0.01, true};
    static const struct table *const tables[] = {&latency, &idle, &pairs, &single};
    static const int per_mille[NOISES] = {2, 80, 80, 30};
    enum { CHANCE_TRIES = 300 };
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (int noise = PLAIN; noise < NOISES; noise++) {
            const struct table *table = tables[t];
            struct alarms n = count_alarms(table, (enum noise)noise, CHANCE_TRIES,
                                           501 + 10 * (unsigned long long)t + noise);
            printf("# %s%s, %s: of %d slower %d, faster %d, inconclusive %d; with parts %d\n",
                   table->matrix, table->single ? " (single values)" : "", noise_names[noise],
                   CHANCE_TRIES, n.slower, n.faster, n.inconclusive, n.parts);
            CHECK((n.slower + n.faster) * 1000 <= per_mille[noise] * CHANCE_TRIES,
                  "%s%s, %s: alarms at most %d of 1000", table->matrix,
                  table->single ? " (single values)" : "", noise_names[noise], per_mille[noise]);
        }
}

// ---- Small and odd tables -----------------------------------------------------------------------

static double slow_all(int i, int j, int rows, int cols)
{
    (void)i, (void)j, (void)rows, (void)cols;
    return 1.2;
}

static double nothing(int i, int j, int rows, int cols)
{
    (void)i, (void)j, (void)rows, (void)cols;
    return NAN;
}

static void test_small(void)
{
    unsigned long long seed = 401;
    static const struct table one = {BENCHMARK_LATENCY, "concurrent", 1, 1, 1, 0.01, 0.01, false};
    static const struct table row = {BENCHMARK_LATENCY, "concurrent", 1, 15, 1, 0.01, 0.01, false};
    static const struct table two = {BENCHMARK_MATRIX, "idle", 2, 2, 1, 0.005, 0, false};
    static const struct table bare = {BENCHMARK_LATENCY, "concurrent", 1, 1, 1, 0.01, 0.01, true};
    static const struct {
        const struct table *table;
        shape_fn *shape;
        enum verdict verdict;
        const char *what;
    } cases[] = {
        {&one, slow_all, VERDICT_SLOWER, "one rank at one size, a fifth slower"},
        {&row, slow_all, VERDICT_SLOWER, "one rank, a fifth slower"},
        {&row, slow_column, VERDICT_SLOWER, "one rank, one size slower"},
        {&two, slow_all, VERDICT_SLOWER, "two nodes, a fifth slower"},
        {&two, NULL, VERDICT_SAME, "two nodes, as before"},
        {&bare, slow_all, VERDICT_INCONCLUSIVE, "one value beside another"},
        {&idle, nothing, VERDICT_INCONCLUSIVE, "no value in B"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct comparison c CLEANUP(comparison_fini) = {0};
        char text[400];
        CHECK(run(&c, cases[i].table, NULL, cases[i].shape, &defaults, &seed) == 0 &&
                  c.verdict == cases[i].verdict,
              "%s: %s", cases[i].what, verdict_names[cases[i].verdict]);
        comparison_text(&c, text, sizeof text);
        CHECK(strlen(text) > 0 && !strstr(text, "nan") && !strstr(text, "inf"), "says: %s", text);
    }
}

// A beside itself, and beside what an export and an import in another form make of it.
static void test_identical(void)
{
    static const struct table *const tables[] = {&latency, &idle, &pairs};
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (int bare = 0; bare < 2; bare++) {
            unsigned long long seed = 402;
            struct comparison c CLEANUP(comparison_fini) = {0};
            struct matrix m[2] = {0};
            struct table table = *tables[t];
            table.drift = 0.3; // intervals as wide as can be
            make(&m[0], &table, NULL, &seed);
            seed = 402;
            table.single = bare;
            make(&m[1], &table, NULL, &seed);
            const struct compare_side x = {.matrix = &m[0]}, y = {.matrix = &m[1]};
            CHECK(compare(&c, &x, &y, &defaults, NULL) == 0 && c.identical &&
                      c.verdict == VERDICT_SAME && !comparison_alarms(&c),
                  "%s beside itself%s is the same", table.matrix, bare ? " without errors" : "");
            bool zero = true;
            for (int i = 0; i < c.n_groups; i++)
                zero = zero && c.groups[i].d.verdict == VERDICT_SAME &&
                       fabs(c.groups[i].d.percent) <= 0 && fabs(c.groups[i].d.hi) <= 0;
            for (int k = 0; k < c.rows * c.cols; k++)
                zero = zero && (!c.cells[k].exists || c.cells[k].verdict == VERDICT_SAME);
            CHECK(zero, "by nothing at all, in each group and cell");
            matrix_fini(&m[0]);
            matrix_fini(&m[1]);
        }
}

// What is left out, and what the machine disturbed, is said.
static void test_notes(void)
{
    unsigned long long seed = 403;
    struct comparison c CLEANUP(comparison_fini) = {0};
    struct matrix m[2] = {0};
    make(&m[0], &idle, NULL, &seed);
    make(&m[1], &idle, holes, &seed);
    for (int k = 0; k < 64; k++)
        m[1].cells[k].v[CELL_DISTURBED] = 2 * m[1].cells[k].v[CELL_N];
    const struct compare_side x = {.matrix = &m[0]}, y = {.matrix = &m[1]};
    CHECK(compare(&c, &x, &y, &defaults, NULL) == 0 && c.n_notes >= 2 &&
              strstr(c.notes[0], "21 of 64 cells have no value") &&
              strstr(c.notes[1], "67 % of the samples of B were disturbed"),
          "notes: %s; %s", c.notes[0], c.notes[1]);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
}

// A baseline's own runs differ by more: that is no news; nor does a group say otherwise.
static void test_noise(void)
{
    unsigned long long seed = 404;
    struct compare_options o = defaults;
    struct comparison c CLEANUP(comparison_fini) = {0}, d CLEANUP(comparison_fini) = {0};
    o.noise_percent = 6;
    CHECK(run(&c, &latency, NULL, everything, &o, &seed) == 0 && c.verdict == VERDICT_SAME &&
              c.groups[0].d.within_noise,
          "3 %% slower where runs differ by 6 %% is the same");
    CHECK(run(&d, &latency, NULL, slow_row, &o, &seed) == 0 && d.verdict == VERDICT_SLOWER,
          "10 %% slower is not");
}

// Nothing in an answer contradicts its verdict.
static bool contradicts(const struct comparison *c)
{
    bool found = false;
    for (int i = 0; i < c->n_groups; i++)
        found = found || (c->groups[i].d.verdict == VERDICT_SLOWER && c->verdict != VERDICT_SLOWER);
    for (int i = 0; i < c->n_parts; i++)
        found = found || (c->parts[i].d.verdict == VERDICT_SLOWER && c->verdict != VERDICT_SLOWER);
    return found || (c->rest.verdict == VERDICT_SLOWER && c->verdict != VERDICT_SLOWER);
}

// Several matrices: the worst decides, and its name stands before what it says.
static void test_conclusion(void)
{
    unsigned long long seed = 405;
    static shape_fn *const shapes[] = {a_little, fast_column, slow_column, everything};
    static const enum verdict after[] = {VERDICT_SAME, VERDICT_FASTER, VERDICT_SLOWER,
                                         VERDICT_SLOWER};
    struct conclusion k = {0};
    struct matrix m = {.name = "idle", .unit = "ns"};
    char text[500];
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        struct comparison c CLEANUP(comparison_fini) = {0};
        run(&c, &idle, NULL, shapes[i], &defaults, &seed);
        conclusion_add(&k, &c, &m);
        CHECK(k.verdict == after[i] && k.matrices == (int)i + 1, "after %d: %s", (int)i + 1,
              verdict_names[k.verdict]);
        CHECK(!contradicts(&c), "and no group says otherwise");
    }
    conclusion_text(&k, text, sizeof text);
    CHECK(strstr(text, "idle memory of node 3 +1") && strstr(text, "; 1 other matrix is slower"),
          "says: %s", text);
    CHECK_STR(k.worst.part.name, "memory of node 3", "the worst part is named");
}

// Values that no clock gives, of any shape: an answer, without contradiction, in plain numbers.
static double strange(unsigned long long *seed)
{
    static const double values[] = {0, 1e-300, 1e300, 1e-3, 100, 100, 101, 99, 1e6};
    int at = dist_below(seed, (int)COUNT_OF(values) + 2);
    return at < (int)COUNT_OF(values) ? values[at] : NAN;
}

static void test_strange(void)
{
    static const struct table *const tables[] = {&latency, &idle, &pairs};
    unsigned long long seed = 406;
    int bad = 0, tries = 1500;
    for (int k = 0; k < tries; k++) {
        struct comparison c CLEANUP(comparison_fini) = {0};
        static struct rank_info ranks[64];
        struct matrix m[2] = {0};
        struct table t = *tables[k % 3];
        char text[400];
        t.rows = 1 + dist_below(&seed, 9);
        t.cols = t.id == BENCHMARK_C2C ? t.rows : 1 + dist_below(&seed, 9);
        for (int i = 0; i < 2; i++) {
            make(&m[i], &t, NULL, &seed);
            for (int n = 0; n < t.rows * t.cols; n++)
                if (dist_below(&seed, 3) == 0)
                    for (int f = CELL_MEDIAN; f < CELL_FIELDS; f++)
                        m[i].cells[n].v[f] = strange(&seed);
        }
        for (int i = 0; i < t.rows; i++)
            ranks[i] = (struct rank_info){.rank = i,
                                          .cpu = i,
                                          .cpu_node = dist_below(&seed, 3) - 1,
                                          .mem_node = dist_below(&seed, 3) - 1};
        const struct compare_side x = {.matrix = &m[0], .ranks = ranks, .n_ranks = t.rows};
        const struct compare_side y = {.matrix = &m[1], .ranks = ranks, .n_ranks = t.rows};
        if (compare(&c, &x, &y, &defaults, NULL) == 0) {
            comparison_text(&c, text, sizeof text);
            bad += contradicts(&c) || !*text || strstr(text, "nan") || strstr(text, "inf");
        }
        matrix_fini(&m[0]);
        matrix_fini(&m[1]);
    }
    CHECK(bad == 0, "%d of %d strange tables have a strange answer", bad, tries);
}

int main(void)
{
    test_strange();
    test_shapes();
    test_chance();
    test_small();
    test_identical();
    test_notes();
    test_noise();
    test_conclusion();
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/baseline.h"
#include "analysis/compare/compare.h"
#include "analysis/compare/cycles.h"
#include "analysis/compare/parts.h"

#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "model/shape.h"

#include "tests/unit/analysis/alarms.h"
#include "tests/unit/analysis/simulate.h"
#include "tests/unit/tap.h"

static const struct compare_options defaults = COMPARE_DEFAULTS;

// Of `runs` simulated comparisons: how many alarm, how many call B slower overall; cells slower.
struct tally {
    int alarms, slower, cells;
    int parts; // groups besides overall that say slower
};

static void test_cycles(void)
{
    unsigned long long seed = 5;
    struct matrix m = {0};
    struct rank_info ranks[2] = {{.rank = 1, .clock_ghz = 2}, {.rank = 0, .clock_ghz = 3}};
    struct err err = {0};
    sim_matrix(&m, 2, 3, 0.01, 1, &seed);
    double first = m.cells[0].v[CELL_MEDIAN], last = matrix_at(&m, 1, 2)->v[CELL_HI];
    double n = m.cells[0].v[CELL_N];
    CHECK(ranks_clock(ranks, 2) == 2.5 && isnan(ranks_clock(NULL, 0)), "the median clock");
    ranks[0].clock_ghz = NAN;
    CHECK(matrix_to_cycles(&m, ranks, 2, &err) < 0 && err.code == ERR_CONFLICT &&
              strstr(err.text, "rank 1") && m.cells[0].v[CELL_MEDIAN] == first,
          "a clock is missing: %s", err.text);
    ranks[0].clock_ghz = 2;
    CHECK(matrix_to_cycles(&m, ranks, 2, &err) == 0, "ns are cycles by the clock of the rank");
    CHECK(m.cells[0].v[CELL_MEDIAN] == 3 * first && matrix_at(&m, 1, 2)->v[CELL_HI] == 2 * last &&
              m.cells[0].v[CELL_N] == n,
          "values are converted, counts are not");
    CHECK_STR(m.unit, "cycles", "unit");
    CHECK(matrix_to_cycles(&m, ranks, 2, &err) < 0 && strstr(err.text, "no times"), "only once");
    matrix_fini(&m);
}

static void one_visit(struct spec *s)
{
    spec_init(s, BENCHMARK_LATENCY);
    s->visits = 1;
}

static void count(struct tally *t, const struct matrix *a, const struct matrix *b,
                  const struct spec *spec)
{
    struct comparison c = {0};
    struct compare_side x = {.matrix = a, .spec = spec}, y = {.matrix = b, .spec = spec};
    if (compare(&c, &x, &y, &defaults, NULL) == 0) {
        t->alarms += comparison_alarms(&c);
        t->slower += c.groups[0].d.verdict == VERDICT_SLOWER;
        t->cells += c.groups[0].d.slower;
        for (int i = 1; i < c.n_groups; i++)
            t->parts += c.groups[i].d.verdict == VERDICT_SLOWER;
    }
    comparison_fini(&c);
}

static void tell(const struct tally *t, int runs)
{
    printf("# alarms %d, overall slower %d, sizes and ranks slower %.1f %%, cells %.1f %%\n",
           t->alarms, t->slower, 100.0 * t->parts / (runs * 23.0),
           100.0 * t->cells / (runs * 120.0));
}

static struct tally simulate(int runs, double spread, double shift, unsigned long long seed)
{
    struct tally t = {0};
    struct spec spec;
    one_visit(&spec);
    printf("# seed %llu, %d comparisons of 8 x 15 cells, spread %.3f, shift %.3f\n", seed, runs,
           spread, shift);
    for (int i = 0; i < runs; i++) {
        struct matrix a = {0}, b = {0};
        sim_matrix(&a, 8, 15, spread, 1, &seed);
        sim_matrix(&b, 8, 15, spread, shift, &seed);
        count(&t, &a, &b, &spec);
        matrix_fini(&a);
        matrix_fini(&b);
    }
    tell(&t, runs);
    return t;
}

// The same as runs are by default: eight visits, `drift` apart; `mixed`: each cell drifts by its
// own measure, from nothing to three times that.
static struct tally simulate_visits(int runs, double spread, double drift, double shift, bool mixed,
                                    unsigned long long seed)
{
    struct tally t = {0};
    struct matrix m[2] = {0};
    struct spec spec;
    spec_init(&spec, BENCHMARK_LATENCY);
    printf("# seed %llu, %d comparisons of 8 x 15 cells, 8 visits, spread %.3f, drift %.3f%s, "
           "shift %.3f\n",
           seed, runs, spread, drift, mixed ? " (mixed)" : "", shift);
    sim_matrix(&m[0], 8, 15, 0.01, 1, &seed);
    sim_matrix(&m[1], 8, 15, 0.01, 1, &seed);
    for (int i = 0; i < runs; i++) {
        for (int k = 0; k < 240; k++)
            sim_visits(&m[k % 2].cells[k / 2], 100 * (k % 2 ? shift : 1), spread,
                       mixed ? drift * 3 * (k / 2) / 119 : drift, &seed);
        count(&t, &m[0], &m[1], &spec);
    }
    tell(&t, runs);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
    return t;
}

static void test_false_alarms(void)
{
    static const double spreads[] = {0.01, 0.03, 0.10};
    for (int i = 0; i < 3; i++)
        CHECK(simulate(2000, spreads[i], 1, 41 + i).alarms <= 20,
              "false alarms at most 1 %% at a spread of %.0f %%", 100 * spreads[i]);
}

static void test_false_alarms_of_visits(void)
{
    static const struct {
        double spread, drift;
        bool mixed;
    } cases[] = {{0.01, 0, false}, {0.05, 0.10, false}, {0.01, 0.02, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        CHECK(simulate_visits(2000, cases[i].spread, cases[i].drift, 1, cases[i].mixed, 141 + i)
                      .alarms <= 4,
              "eight visits: false alarms at most 0.2 %% at a spread of %.0f %% and a drift of "
              "%.0f %%%s",
              100 * cases[i].spread, 100 * cases[i].drift, cases[i].mixed ? ", mixed" : "");
}

// Three runs against three, each side the cell-wise median of its runs: `cv` is what whole runs
// differ by in each cell.
static struct tally simulate_runs(int tries, double cv, double shift, unsigned long long seed)
{
    enum { SIDE_RUNS = 3, SIDE_ROWS = 4, SIDE_COLS = 8 };
    struct tally t = {0};
    struct spec spec;
    spec_init(&spec, BENCHMARK_LATENCY);
    printf("# seed %llu, %d times 3 against 3 runs of %d cells, run to run %.1f %%, shift %.2f\n",
           seed, tries, SIDE_ROWS * SIDE_COLS, 100 * cv, shift);
    for (int i = 0; i < tries; i++) {
        struct matrix run[2][SIDE_RUNS] = {0}, side[2] = {0};
        for (int s = 0; s < 2; s++) {
            const struct matrix *list[SIDE_RUNS];
            for (int r = 0; r < SIDE_RUNS; r++) {
                list[r] = &run[s][r];
                sim_matrix(&run[s][r], SIDE_ROWS, SIDE_COLS, 0.01, 1, &seed);
                for (int k = 0; k < SIDE_ROWS * SIDE_COLS; k++)
                    sim_visits(&run[s][r].cells[k],
                               100 * (s ? shift : 1) * (1 + cv * sim_normal(&seed)), 0.01, cv,
                               &seed);
            }
            if (baseline_middle(&side[s], list, SIDE_RUNS, NULL) < 0)
                abort();
        }
        count(&t, &side[0], &side[1], &spec);
        for (int s = 0; s < 2; s++) {
            matrix_fini(&side[s]);
            for (int r = 0; r < SIDE_RUNS; r++)
                matrix_fini(&run[s][r]);
        }
    }
    tell(&t, tries);
    return t;
}

static void test_three_runs(void)
{
    CHECK(simulate_runs(100, 0.015, 1.05, 161).slower >= 90,
          "three runs against three that differ by 1.5 %%: a shift of 5 %% is found");
    CHECK(simulate_runs(400, 0.015, 1, 162).alarms <= 4, "and no more false alarms than 1 %%");
}

// Values from Abramowitz and Stegun, tables 6.1 and 6.2.
static void test_functions(void)
{
    static const double euler = 0.57721566490153286, pi = 3.14159265358979323846;
    CHECK(fabs(dist_digamma(1) + euler) < 1e-11, "digamma(1) is minus Euler's constant");
    CHECK(fabs(dist_digamma(0.5) + euler + 2 * log(2)) < 1e-11, "digamma(1/2)");
    CHECK(fabs(dist_trigamma(1) - pi * pi / 6) < 1e-11, "trigamma(1)");
    CHECK(fabs(dist_trigamma(0.5) - pi * pi / 2) < 1e-10, "trigamma(1/2)");
    for (double x = 0.01; x < 1e4; x *= 3)
        CHECK(fabs(dist_trigamma_inverse(dist_trigamma(x)) / x - 1) < 1e-9, "there and back: %g",
              x);
}

// Comparisons of small tables whose visits drift, `shift` apart: how many of B are called slower.
// *detectable: the median of what they say that they can show.
static int simulate_small(int tries, double drift, double shift, unsigned long long seed,
                          double *detectable)
{
    int slower = 0;
    double *room = calloc((size_t)tries, sizeof *room);
    struct spec spec;
    spec_init(&spec, BENCHMARK_LATENCY);
    printf("# seed %llu, %d comparisons of 2 x 6 cells, drift %.2f, shift %.4f\n", seed, tries,
           drift, shift);
    for (int i = 0; i < tries; i++) {
        struct matrix m[2] = {0};
        struct comparison c = {0};
        sim_matrix(&m[0], 2, 6, 0.01, 1, &seed);
        sim_matrix(&m[1], 2, 6, 0.01, 1, &seed);
        for (int k = 0; k < 24; k++)
            sim_visits(&m[k % 2].cells[k / 2], k % 2 ? 100 * shift : 100, 0.01, drift, &seed);
        struct compare_side x = {.matrix = &m[0], .spec = &spec},
                            y = {.matrix = &m[1], .spec = &spec};
        if (compare(&c, &x, &y, &defaults, NULL) < 0)
            abort();
        slower += c.groups[0].d.verdict == VERDICT_SLOWER;
        room[i] = c.detectable;
        comparison_fini(&c);
        matrix_fini(&m[0]);
        matrix_fini(&m[1]);
    }
    *detectable = middle_of(room, tries);
    free(room);
    return slower;
}

static void test_detectable(void)
{
    static const double drifts[] = {0.005, 0.03, 0.08};
    for (size_t i = 0; i < COUNT_OF(drifts); i++) {
        double shift, other;
        int alarms = simulate_small(400, drifts[i], 1, 171 + i, &shift);
        int found = simulate_small(400, drifts[i], 1 + shift / 100, 181 + i, &other);
        CHECK(shift > 1.5 && alarms <= 4 && found >= 240 && found <= 392,
              "a drift of %.1f %%: a shift of %.2f %% is found in %d of 400, none in %d of 400",
              100 * drifts[i], shift, found, alarms);
    }
}

static enum verdict judge_beside(double factor, double error, bool more_is_better, double noise)
{
    struct compare_options o = defaults;
    struct difference d = {.cells = 1};
    o.noise_percent = noise;
    difference_set(&d, log(factor), error, 6);
    difference_judge(&d, more_is_better, &o);
    return d.verdict;
}

// What a baseline's runs differ by counts as a factor, so that a bandwidth can be beyond it, and
// what is nearer to the baseline is no less the same.
static void test_noise_is_a_factor(void)
{
    for (int more = 0; more < 2; more++) {
        double sign = more ? -1 : 1;
        CHECK(judge_beside(pow(10, sign), 0.01, more, 150) == VERDICT_SLOWER &&
                  judge_beside(pow(2.6, sign), 0.01, more, 150) == VERDICT_SLOWER &&
                  judge_beside(pow(2.4, sign), 0.01, more, 150) == VERDICT_SAME,
              "runs differ by a factor of 2.5: %s", more ? "bandwidth" : "time");
        CHECK(judge_beside(pow(1.04, sign), 0.008, more, 10) == VERDICT_SAME &&
                  judge_beside(pow(1.02, sign), 0.008, more, 10) == VERDICT_SAME &&
                  judge_beside(1, 0.02, more, 10) == VERDICT_SAME,
              "significant or not, within 10 %% is the same");
        CHECK(judge_beside(1, 0.02, more, NAN) == VERDICT_INCONCLUSIVE &&
                  judge_beside(1, 0.02, more, 4) == VERDICT_INCONCLUSIVE,
              "a difference whose error is as large says nothing");
        for (double error = 0.002; error < 0.1; error *= 1.3) {
            bool left = false, back = false; // what is the same
            for (int i = 0; i < 40; i++) {
                bool same = judge_beside(exp(sign * i / 200), error, more, 10) == VERDICT_SAME;
                back = back || (left && same);
                left = left || !same;
            }
            CHECK(left && !back, "error %.3f: nothing farther away is the same again", error);
        }
    }
}

// A shift is a factor, and less bandwidth is never more than 100 % less.
static void test_detectable_ways(void)
{
    const struct difference d = {.known = true, .error = 0.1, .df = 6},
                            wide = {.known = true, .error = 3, .df = 1}, none = {.known = false};
    double less = difference_detectable(&d, false, 4, &defaults),
           more = difference_detectable(&d, true, 4, &defaults);
    CHECK(less > 40 && less < 200 && fabs((1 + less / 100) * (1 - more / 100) - 1) < 1e-9,
          "of times +%.1f %%, of bandwidths -%.1f %%", less, more);
    CHECK(isinf(difference_detectable(&wide, false, 4, &defaults)) &&
              isinf(difference_detectable(&wide, true, 4, &defaults)) &&
              isnan(difference_detectable(&none, true, 4, &defaults)),
          "a factor of ten is no shift to look for");
    struct compare_options coarse = defaults;
    coarse.threshold_percent = 120;
    CHECK(isinf(difference_detectable(&d, true, 4, &coarse)), "nor is a bandwidth below zero");
    coarse.threshold_percent = 3;
    coarse.noise_percent = 150;
    less = difference_detectable(&d, false, 4, &coarse);
    more = difference_detectable(&d, true, 4, &coarse);
    CHECK(less > 150 && fabs((1 + less / 100) * (1 - more / 100) - 1) < 1e-9,
          "beside a noise of 150 %%: times +%.1f %%, bandwidths -%.1f %%", less, more);
    struct matrix m[2] = {0};
    struct comparison c = {0};
    unsigned long long seed = 191;
    sim_matrix(&m[0], 1, 2, 0.01, 1, &seed);
    sim_matrix(&m[1], 1, 2, 0.01, 1, &seed);
    for (int k = 0; k < 4; k++) {
        double *v = m[k % 2].cells[k / 2].v;
        v[CELL_MEDIAN] *= k == 1 ? 40 : 1;
        v[CELL_LO] = 0.1 * v[CELL_MEDIAN];
        v[CELL_HI] = 9 * v[CELL_MEDIAN];
    }
    struct compare_side x = {.matrix = &m[0]}, y = {.matrix = &m[1]};
    CHECK(compare(&c, &x, &y, &defaults, NULL) == 0 && isnan(c.detectable) && c.n_notes == 1 &&
              strstr(c.notes[0], "by a factor of ten or more"),
          "two runs that scatter show nothing: %d notes, %.1f", c.n_notes, c.detectable);
    comparison_fini(&c);
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
}

static void test_power(void)
{
    struct tally t = simulate(200, 0.01, 1.03, 51);
    CHECK(t.slower >= 190, "a shift of 3 %% is found in at least 95 %%");
    CHECK(t.cells >= 0.9 * 200 * 120, "nine of ten cells say so by themselves");
    t = simulate(200, 0.01, 1.01, 52);
    CHECK(t.slower == 0, "a shift of 1 %% does not matter");
    t = simulate_visits(200, 0.01, 0, 1.03, false, 151);
    CHECK(t.slower >= 190, "eight visits: a shift of 3 %% is found in at least 95 %%");
    CHECK(t.parts >= 0.95 * 200 * 23, "and of each size and each rank by itself");
    CHECK(t.cells >= 0.9 * 200 * 120, "nine of ten single cells say so: their errors are shared");
    t = simulate_visits(200, 0.01, 0.01, 1.03, false, 152);
    CHECK(t.slower >= 190, "with a drift of 1 %%, too");
    t = simulate_visits(200, 0.01, 0, 1.06, false, 153);
    CHECK(t.cells >= 0.99 * 200 * 120, "a shift of 6 %% is found in every cell");
    t = simulate_visits(200, 0.01, 0.01, 1.01, false, 154);
    CHECK(t.slower == 0, "a shift of 1 %% does not matter");
}

static void test_single_values(void)
{
    unsigned long long seed = 61;
    struct matrix a = {0}, b = {0};
    struct comparison c = {0};
    sim_matrix(&a, 8, 15, 0.01, 1, &seed);
    sim_matrix(&b, 8, 15, 0.01, 1.1, &seed);
    for (int k = 0; k < 120; k++)
        for (int f = 0; f < CELL_FIELDS; f++)
            if (f != CELL_MEDIAN)
                a.cells[k].v[f] = b.cells[k].v[f] = NAN;
    struct compare_side x = {.matrix = &a}, y = {.matrix = &b};
    CHECK(compare(&c, &x, &y, &defaults, NULL) == 0 && c.single_values,
          "single values are noticed");
    CHECK(c.cells[0].verdict == VERDICT_INCONCLUSIVE && !c.cells[0].known,
          "a cell cannot be known");
    CHECK(c.groups[0].d.verdict == VERDICT_SLOWER, "but all together can");
    CHECK(c.n_notes == 1 && strstr(c.notes[0], "cannot be known") != NULL, "and it says so");
    comparison_fini(&c);
    matrix_fini(&a);
    matrix_fini(&b);
}

static void test_refusals(void)
{
    unsigned long long seed = 71;
    struct matrix a = {0}, b = {0};
    struct comparison c = {0};
    struct err err = {0};
    sim_matrix(&a, 2, 3, 0.01, 1, &seed);
    sim_matrix(&b, 2, 4, 0.01, 1, &seed);
    struct compare_side x = {.matrix = &a, .method = "prp4-v1"};
    struct compare_side y = {.matrix = &b, .method = "classic"};
    CHECK(compare(&c, &x, &y, &defaults, &err) < 0 && err.code == ERR_CONFLICT, "methods differ");
    CHECK_STR(err.text, "the method differs: A has prp4-v1, B has classic", "says how");
    CHECK(c.cells == NULL, "nothing half done");
    struct compare_options anyway = defaults;
    anyway.allow_different = true;
    CHECK(compare(&c, &x, &y, &anyway, &err) == 0 && c.n_notes == 2, "warns if told to go on");
    CHECK(c.cols == 3 && c.rows == 2, "common sizes are aligned");
    comparison_fini(&c);
    matrix_fini(&a);
    matrix_fini(&b);
}

static void test_alignment(void)
{
    unsigned long long seed = 81;
    struct matrix a = {0}, b = {0};
    struct comparison c = {0};
    sim_matrix(&a, 2, 3, 0.01, 1, &seed);
    sim_matrix(&b, 2, 3, 0.01, 1, &seed);
    static struct rank_info here[2], there[2];
    for (int i = 0; i < 2; i++) {
        here[i] = (struct rank_info){.rank = i, .cpu = 8 * i};
        there[i] = (struct rank_info){.rank = i, .cpu = 8 * (1 - i)};
    }
    struct compare_side x = {.matrix = &a, .ranks = here, .n_ranks = 2};
    struct compare_side y = {.matrix = &b, .ranks = there, .n_ranks = 2};
    CHECK(compare(&c, &x, &y, &defaults, NULL) == 0 && c.row_b[0] == 1 && c.row_b[1] == 0,
          "ranks are matched by their CPU and memory node");
    CHECK(c.n_notes == 1 && strstr(c.notes[0], "rank 0 of A is compared with rank 1 of B") != NULL,
          "and it says so");
    comparison_fini(&c);
    there[1].cpu = 24;
    CHECK(compare(&c, &x, &y, &defaults, NULL) == 0 && c.n_notes > 0, "one rank is elsewhere");
    CHECK(strstr(c.notes[0], "A has 2 ranks, B has 2, 1 is in both") != NULL, "%s", c.notes[0]);
    comparison_fini(&c);
    matrix_fini(&a);
    matrix_fini(&b);
}

// As many ranks as there may be, numbered from 1 and from 2000, at the same places the other way
// round; two of each side have no place in common, of these one number is in both.
static void test_many_ranks(void)
{
    enum { MANY = SPEC_RANKS_MAX };
    unsigned long long seed = 82;
    struct matrix a = {0}, b = {0};
    struct comparison c = {0};
    static struct rank_info here[MANY], there[MANY];
    sim_matrix(&a, MANY, 3, 0.01, 1, &seed);
    sim_matrix(&b, MANY, 3, 0.01, 1, &seed);
    for (int i = 0; i < MANY; i++) {
        int k = MANY - 1 - i;
        here[i] = (struct rank_info){.rank = i + 1, .cpu = i, .mem_node = i};
        there[k] = (struct rank_info){.rank = 2000 + 2 * k, .cpu = i, .mem_node = i};
        a.row.values[i] = here[i].rank;
        b.row.values[k] = there[k].rank;
    }
    here[0].cpu = here[1].cpu = 5000;
    there[0].cpu = there[1].cpu = 6000;
    here[1].rank = there[1].rank = a.row.values[1] = b.row.values[1] = 1500;
    struct compare_side x = {.matrix = &a, .ranks = here, .n_ranks = MANY};
    struct compare_side y = {.matrix = &b, .ranks = there, .n_ranks = MANY};
    struct compare_options anyway = defaults;
    anyway.allow_different = true;
    CHECK(compare(&c, &x, &y, &anyway, NULL) == 0 && c.rows == MANY - 3, "%d ranks go together",
          c.rows);
    bool reversed = c.row_a[0] == 1 && c.row_b[0] == 1;
    for (int i = 1; i < c.rows; i++)
        reversed = reversed && c.row_a[i] == i + 1 && c.row_b[i] == MANY - 2 - i;
    CHECK(reversed, "those at one place, and those of one number that are left");
    comparison_fini(&c);
    matrix_fini(&a);
    matrix_fini(&b);
}

// ---- Matrices of other benchmarks ---------------------------------------------------------------

static int shaped(struct matrix *m, enum benchmark_id id, const char *member, const char *value,
                  const char *name, int rows, int cols, double level)
{
    struct spec s;
    struct shape list[SHAPES_MAX];
    unsigned long long seed = 7;
    spec_init(&s, id);
    if (member)
        param_set_text(spec_param(&s, member), &s, value, NULL);
    const struct shape *shape = shape_find(list, shape_list(&s, list), name);
    if (!shape || shape_make(m, shape, rows, cols, NULL) < 0)
        return -1;
    for (int i = 0; i < rows * cols; i++)
        if (shape_has_cell(m, i / cols, i % cols))
            sim_visits(&m->cells[i], level, 0.005, 0, &seed);
    return 0;
}

static const struct compare_group *group(const struct comparison *c, enum compare_by by,
                                         int64_t value)
{
    for (int i = 0; i < c->n_groups; i++)
        if (c->groups[i].by == by && c->groups[i].value == value)
            return &c->groups[i];
    return NULL;
}

static int cells_of(const struct comparison *c, enum compare_by by, int64_t value)
{
    const struct compare_group *g = group(c, by, value);
    return g ? g->d.cells : -1;
}

static enum verdict verdict_of(const struct comparison *c, enum compare_by by, int64_t value)
{
    const struct compare_group *g = group(c, by, value);
    return g ? g->d.verdict : VERDICTS;
}

static void test_bandwidth(void)
{
    struct matrix a = {0}, b = {0};
    struct comparison c = {0};
    struct spec spec;
    spec_init(&spec, BENCHMARK_BANDWIDTH);
    shaped(&a, BENCHMARK_BANDWIDTH, NULL, NULL, "triad", 2, 2, 20000);
    shaped(&b, BENCHMARK_BANDWIDTH, NULL, NULL, "triad", 2, 2, 18000);
    a.row.values[1] = a.col.values[1] = b.row.values[1] = b.col.values[1] = 1;
    struct compare_side x = {.matrix = &a, .spec = &spec}, y = {.matrix = &b, .spec = &spec};
    CHECK(compare(&c, &x, &y, &defaults, NULL) == 0 && c.more_is_better, "bandwidth compares");
    CHECK(c.groups[0].d.percent < -9 && c.groups[0].d.verdict == VERDICT_SLOWER,
          "10 %% less of it is slower (%.1f %%)", c.groups[0].d.percent);
    CHECK(verdict_of(&c, COMPARE_LOCALITY, 0) == VERDICT_SLOWER &&
              verdict_of(&c, COMPARE_LOCALITY, 1) == VERDICT_SLOWER &&
              verdict_of(&c, COMPARE_INITIATOR, 1) == VERDICT_SLOWER &&
              verdict_of(&c, COMPARE_TARGET, 0) == VERDICT_SLOWER,
          "groups of two cells are judged by the cells' own errors");
    comparison_fini(&c);
    CHECK(compare(&c, &y, &x, &defaults, NULL) == 0 && c.groups[0].d.verdict == VERDICT_FASTER,
          "and more of it is faster");
    comparison_fini(&c);
    matrix_fini(&a);
    matrix_fini(&b);
}

// Ranks 0, 1 on node 0 and 2, 3 on node 1; in B numbered the other way round. The pair of CPUs 0
// and 24 is slower there.
static void test_pairs_of_ranks(void)
{
    struct matrix a = {0}, b = {0};
    struct comparison c = {0};
    struct spec spec;
    static struct rank_info here[4], there[4];
    for (int i = 0; i < 4; i++) {
        here[i] = (struct rank_info){.rank = i, .cpu = 8 * i, .mem_node = i / 2};
        there[i] = (struct rank_info){.rank = i, .cpu = 8 * (3 - i), .mem_node = (3 - i) / 2};
    }
    spec_init(&spec, BENCHMARK_C2C);
    shaped(&a, BENCHMARK_C2C, NULL, NULL, "cas", 4, 4, 100);
    shaped(&b, BENCHMARK_C2C, NULL, NULL, "cas", 4, 4, 100);
    unsigned long long seed = 8;
    sim_visits(matrix_at(&b, 0, 3), 150, 0.005, 0, &seed);
    struct compare_side x = {.matrix = &a, .spec = &spec, .ranks = here, .n_ranks = 4};
    struct compare_side y = {.matrix = &b, .spec = &spec, .ranks = there, .n_ranks = 4};
    CHECK(compare(&c, &x, &y, &defaults, NULL) == 0 && c.groups[0].d.cells == 6,
          "six pairs of four ranks take part (%d)", c.groups[0].d.cells);
    CHECK(!c.cells[1 * 4 + 0].exists && c.cells[0 * 4 + 3].exists &&
              c.cells[0 * 4 + 3].percent > 45 && fabs(c.cells[0 * 4 + 1].percent) < 1,
          "the pair at the same places is found, whatever its numbers are");
    CHECK(cells_of(&c, COMPARE_RANK, 3) == 3 && cells_of(&c, COMPARE_NODE, 1) == 1 &&
              cells_of(&c, COMPARE_LOCALITY, 1) == 4,
          "groups: pairs that a rank is in, on a node, between nodes");
    CLEANUP_BUF struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    comparison_write_json(&c, &x, &w, NULL);
    CLEANUP_JSON struct json *root = json_parse(buf_text(&out), out.len, NULL);
    CHECK(json_count(json_get(root, "cells")) == 6 &&
              json_get_i64(json_first(json_get(root, "cells")), "other_rank", -1) == 1,
          "cells that do not exist are not told");
    comparison_fini(&c);
    matrix_fini(&a);
    matrix_fini(&b);
}

// Every shape that a benchmark can make compares with itself, and each axis has its groups.
static void test_every_shape(void)
{
    static const struct {
        enum benchmark_id id;
        const char *member, *value, *name;
        enum compare_by rows, cols;
    } cases[] = {
        {BENCHMARK_MATRIX, NULL, NULL, "idle", COMPARE_RANK, COMPARE_TARGET},
        {BENCHMARK_BANDWIDTH, "sweep", "threads", "copy", COMPARE_THREADS, COMPARE_TARGET},
        {BENCHMARK_PINGPONG, NULL, NULL, "pingpong", COMPARE_PAIR, COMPARE_MESSAGE},
        {BENCHMARK_PINGPONG, "pairs", "all", "bandwidth", COMPARE_RANK, COMPARE_RANK},
        {BENCHMARK_ATOMICS, NULL, NULL, "rate", COMPARE_THREADS, COMPARE_OPERATION},
        {BENCHMARK_C2C, NULL, NULL, "cas_lines", COMPARE_PAIR, COMPARE_LINE},
        {BENCHMARK_C2C, "pairs", "classes", "load", COMPARE_PAIR, COMPARE_MESSAGE},
        {BENCHMARK_FIRSTTOUCH, NULL, NULL, "access", COMPARE_RANK, COMPARE_ACCESS},
        {BENCHMARK_LOADED, NULL, NULL, "latency", COMPARE_RANK, COMPARE_LOAD},
        {BENCHMARK_LOADED, "targets", "all", "latency", COMPARE_PATH, COMPARE_LOAD},
        {BENCHMARK_LOADED, "mix", "all", "latency_nt", COMPARE_RANK, COMPARE_LOAD},
        {BENCHMARK_LATENCY, NULL, NULL, "concurrent", COMPARE_RANK, COMPARE_SIZE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct matrix m = {0};
        struct comparison c = {0};
        struct spec spec;
        spec_init(&spec, cases[i].id);
        shaped(&m, cases[i].id, cases[i].member, cases[i].value, cases[i].name, 3, 3, 50);
        for (int k = 0; k < 3; k++) {
            bool pair = cases[i].rows == COMPARE_PAIR || cases[i].rows == COMPARE_PATH;
            m.row.values[k] = pair ? axis_pair(k, k + 1) : k;
            m.col.values[k] = k;
        }
        struct compare_side x = {.matrix = &m, .spec = &spec};
        CHECK(compare(&c, &x, &x, &defaults, NULL) == 0 && !comparison_alarms(&c) &&
                  group(&c, cases[i].rows, m.row.values[1]) && group(&c, cases[i].cols, 1),
              "%s: %s with itself, by %s and %s", benchmarks[cases[i].id].name, m.name, m.row.name,
              m.col.name);
        comparison_fini(&c);
        matrix_fini(&m);
    }
}

// Two nodes of two cores: rank 0 of A measures on CPU 0, and that of B on CPU 1. The same CPUs make
// the load of the node.
static void test_other_measuring_core(void)
{
    static const struct {
        enum benchmark_id id;
        const char *member, *value, *name;
    } cases[] = {{BENCHMARK_LOADED, NULL, NULL, "latency"},
                 {BENCHMARK_BANDWIDTH, "sweep", "threads", "copy"}};
    struct rank_info first[] = {{.rank = 0, .cpu = 0},
                                {.rank = 1, .cpu = 1},
                                {.rank = 2, .cpu = 2, .cpu_node = 1, .mem_node = 1},
                                {.rank = 3, .cpu = 3, .cpu_node = 1, .mem_node = 1}};
    struct rank_info second[] = {first[0], first[1], first[2], first[3]};
    second[0].cpu = 1;
    second[1].cpu = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct matrix m = {0};
        struct comparison c = {0}, same = {0};
        struct spec spec;
        spec_init(&spec, cases[i].id);
        shaped(&m, cases[i].id, cases[i].member, cases[i].value, cases[i].name, 2, 2, 50);
        m.row.values[0] = cases[i].id == BENCHMARK_BANDWIDTH;
        m.row.values[1] = 2;
        m.col.values[1] = 1;
        struct compare_side x = {.matrix = &m, .spec = &spec, .ranks = first, .n_ranks = 4};
        struct compare_side y = x;
        CHECK(compare(&same, &x, &y, &defaults, NULL) == 0 && same.n_notes == 1 && same.rows == 2,
              "%s: the same cores need no note but that of copies", benchmarks[cases[i].id].name);
        y.ranks = second;
        CHECK(compare(&c, &x, &y, &defaults, NULL) == 0 && c.rows == 2 && c.row_b[0] == 0 &&
                  c.n_notes == 2,
              "%s: each row has its partner", benchmarks[cases[i].id].name);
        CHECK_STR(c.notes[0],
                  "the core that measures alone differs: CPU 0 in A, CPU 1 in B (node 0)", "note");
        comparison_fini(&c);
        comparison_fini(&same);
        matrix_fini(&m);
    }
}

// ---- Other questions ----------------------------------------------------------------------------

static int compare_specs(enum benchmark_id id, const char *name, const char *member,
                         const char *value, bool anyway, struct comparison *c, struct err *err)
{
    struct matrix m = {0};
    struct spec s, t;
    struct compare_options o = defaults;
    o.allow_different = anyway;
    spec_init(&s, id);
    spec_init(&t, id);
    param_set_text(spec_param(&t, member), &t, value, NULL);
    shaped(&m, id, NULL, NULL, name, 2, 2, 50);
    m.col.values[1] = 1;
    struct compare_side x = {.matrix = &m, .spec = &s}, y = {.matrix = &m, .spec = &t};
    int outcome = compare(c, &x, &y, &o, err);
    matrix_fini(&m);
    return outcome;
}

static void test_other_questions(void)
{
    static const struct {
        enum benchmark_id id;
        const char *name, *member, *value;
        bool refused;
    } cases[] = {
        {BENCHMARK_LATENCY, "concurrent", "stride", "128", true},
        {BENCHMARK_LATENCY, "concurrent", "locality", "1M", true},
        {BENCHMARK_LATENCY, "concurrent", "load", "read", true},
        {BENCHMARK_LATENCY, "concurrent", "numa", "1", true},
        {BENCHMARK_LATENCY, "concurrent", "pages", "4k", true},
        {BENCHMARK_LATENCY, "concurrent", "cpus", "0,1", true},
        {BENCHMARK_LATENCY, "concurrent", "size", "1-64", false},
        {BENCHMARK_LATENCY, "concurrent", "mode", "both", false},
        {BENCHMARK_LATENCY, "concurrent", "visits", "5", false},
        {BENCHMARK_LATENCY, "concurrent", "precision", "5", false},
        {BENCHMARK_LATENCY, "concurrent", "note", "x", false},
        {BENCHMARK_LATENCY, "concurrent", "launcher", "mpi", false},
        {BENCHMARK_MATRIX, "idle", "size", "64", true},
        {BENCHMARK_MATRIX, "idle", "targets", "0", false},
        {BENCHMARK_C2C, "cas", "lines", "1", true},
        {BENCHMARK_C2C, "cas", "definition", "cas", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct comparison c = {0};
        struct err err = {0};
        int outcome = compare_specs(cases[i].id, cases[i].name, cases[i].member, cases[i].value,
                                    false, &c, &err);
        CHECK((outcome < 0) == cases[i].refused && (outcome == 0 || err.code == ERR_CONFLICT),
              "%s %s=%s is %s: %s", cases[i].name, cases[i].member, cases[i].value,
              cases[i].refused ? "refused" : "no other question", err.text);
        comparison_fini(&c);
        if (outcome == 0)
            continue;
        CHECK(!strcmp(err.member, cases[i].member) && strstr(err.text, cases[i].value) != NULL,
              "and named with its value");
        CHECK(compare_specs(cases[i].id, cases[i].name, cases[i].member, cases[i].value, true, &c,
                            &err) == 0 &&
                  c.n_notes > 0 && strstr(c.notes[0], cases[i].member) != NULL,
              "or a warning, if told to go on");
        comparison_fini(&c);
    }
}

// The same CPUs with memory elsewhere; the same question where the words differ only.
static void test_placement(void)
{
    struct matrix m = {0};
    struct comparison c = {0};
    struct err err = {0};
    struct spec s, t;
    static struct rank_info here[2], there[2];
    for (int i = 0; i < 2; i++)
        here[i] = there[i] = (struct rank_info){.rank = i, .cpu = i};
    spec_init(&s, BENCHMARK_LATENCY);
    t = s;
    snprintf(t.cpus, sizeof t.cpus, "0,1");
    shaped(&m, BENCHMARK_LATENCY, NULL, NULL, "concurrent", 2, 2, 50);
    m.col.values[1] = 1;
    struct compare_side x = {.matrix = &m, .spec = &s, .ranks = here, .n_ranks = 2};
    struct compare_side y = {.matrix = &m, .spec = &t, .ranks = there, .n_ranks = 2};
    x.launcher = "mpi";
    y.launcher = "processes";
    x.node = "n1";
    y.node = "n2";
    CHECK(compare(&c, &x, &y, &defaults, &err) == 0 && c.n_notes == 3,
          "other words for the same places are no difference");
    CHECK(strstr(c.notes[0], "launcher") != NULL, "another launcher is worth a note");
    CHECK(strstr(c.notes[1], "A is of node n1, B of n2") != NULL, "and another machine");
    comparison_fini(&c);
    there[1].mem_node = 1;
    CHECK(compare(&c, &x, &y, &defaults, &err) < 0 && !strcmp(err.member, "placement") &&
              strstr(err.text, "memory of rank 1 is on node 0 in A, on node 1 in B") != NULL,
          "memory on another node is refused: %s", err.text);
    matrix_fini(&m);
}

int main(void)
{
    test_functions();
    test_cycles();
    test_false_alarms();
    test_false_alarms_of_visits();
    test_three_runs();
    test_power();
    test_detectable();
    test_noise_is_a_factor();
    test_detectable_ways();
    test_single_values();
    test_refusals();
    test_alignment();
    test_many_ranks();
    test_bandwidth();
    test_pairs_of_ranks();
    test_every_shape();
    test_other_measuring_core();
    test_other_questions();
    test_placement();
    return tap_done();
}

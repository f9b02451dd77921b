// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare.h"

#include "tests/unit/analysis/simulate.h"
#include "tests/unit/tap.h"

static const struct compare_options defaults = COMPARE_DEFAULTS;

// Of `runs` simulated comparisons: how many alarm, how many call B slower overall; cells slower.
struct tally {
    int alarms, slower, cells;
};

static struct tally simulate(int runs, double spread, double shift, unsigned long long seed)
{
    struct tally t = {0};
    printf("# seed %llu, %d comparisons of 8 x 15 cells, spread %.3f, shift %.3f\n", seed, runs,
           spread, shift);
    for (int i = 0; i < runs; i++) {
        struct matrix a = {0}, b = {0};
        struct comparison c = {0};
        sim_matrix(&a, 8, 15, spread, 1, &seed);
        sim_matrix(&b, 8, 15, spread, shift, &seed);
        struct compare_side x = {.matrix = &a}, y = {.matrix = &b};
        if (compare(&c, &x, &y, &defaults, NULL) == 0) {
            t.alarms += comparison_alarms(&c);
            t.slower += c.groups[0].d.verdict == VERDICT_SLOWER;
            t.cells += c.groups[0].d.slower;
        }
        comparison_fini(&c);
        matrix_fini(&a);
        matrix_fini(&b);
    }
    printf("# alarms %d, overall slower %d, cells slower %.1f %%\n", t.alarms, t.slower,
           100.0 * t.cells / (runs * 120.0));
    return t;
}

static void test_false_alarms(void)
{
    static const double spreads[] = {0.01, 0.03, 0.10};
    for (int i = 0; i < 3; i++)
        CHECK(simulate(2000, spreads[i], 1, 41 + i).alarms <= 20,
              "false alarms at most 1 %% at a spread of %.0f %%", 100 * spreads[i]);
}

static void test_power(void)
{
    struct tally t = simulate(500, 0.01, 1.03, 51);
    CHECK(t.slower >= 475, "a shift of 3 %% is found in at least 95 %%");
    CHECK(t.cells >= 0.9 * 500 * 120, "nine of ten cells say so by themselves");
    t = simulate(500, 0.01, 1.01, 52);
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
    anyway.anyway = true;
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
    CHECK(c.n_notes == 2 && strstr(c.notes[0], "rank 0 of A is compared with rank 1 of B") != NULL,
          "and it says so");
    comparison_fini(&c);
    matrix_fini(&a);
    matrix_fini(&b);
}

int main(void)
{
    test_false_alarms();
    test_power();
    test_single_values();
    test_refusals();
    test_alignment();
    return tap_done();
}

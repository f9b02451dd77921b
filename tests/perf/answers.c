// SPDX-License-Identifier: Apache-2.0
// Figures, not assertions: change points on 2,000 points (goal 50 ms), a comparison of 8 × 15 cells
// (goal 20 ms, storage included), and of the largest latency run
// (1,024 ranks x 48 sizes), and reports of the same. Medians of 21 runs on this machine, in time of
// the CPU: whatever else runs there does not count.
#include <stdio.h>
#include <time.h>

#include "analysis/compare/compare.h"
#include "analysis/report/report.h"
#include "analysis/stats/change_points.h"
#include "analysis/stats/median.h"
#include "tests/unit/analysis/simulate.h"

enum { RUNS = 21, POINTS = 2000 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void time_series(int changes)
{
    static double v[POINTS];
    double took[RUNS];
    unsigned long long seed = 7;
    const struct series_options options = SERIES_DEFAULTS;
    for (int i = 0; i < POINTS; i++)
        v[i] = 100 * pow(1.04, i * (changes + 1) / POINTS) * (1 + 0.01 * sim_normal(&seed));
    for (int k = 0; k < RUNS; k++) {
        struct change_point *points = NULL;
        double start = now_ms();
        int searched;
        series_changes(&points, &searched, v, POINTS, &options, NULL);
        took[k] = now_ms() - start;
        free(points);
    }
    printf("change points, %d points, %d changes: %.1f ms\n", POINTS, changes,
           middle_of(took, RUNS));
}

// What differs: nothing, a rank, a node's ranks at the larger sizes, or as many ranks as are named.
enum shape_of { ALIKE, ONE_RANK, ONE_BLOCK, MANY_RANKS, SHAPES };

static void spoil(struct matrix *m, enum shape_of shape)
{
    for (int k = 0; k < m->row.n * m->col.n; k++) {
        bool rank = k / m->col.n == m->row.n / 3;
        bool many = shape == MANY_RANKS && k / m->col.n < 8;
        bool block = k / m->col.n >= m->row.n * 7 / 8 && k % m->col.n >= m->col.n / 2;
        for (int f = CELL_MEDIAN; f <= CELL_HI; f++)
            m->cells[k].v[f] *=
                many || (shape == ONE_RANK && rank) || (shape == ONE_BLOCK && block) ? 1.2 : 1;
    }
}

static void time_compare(int rows, int cols, enum shape_of shape)
{
    static const char *const shapes[] = {"alike", "a slow rank", "a slow block", "8 slow ranks"};
    static struct rank_info ranks[SPEC_RANKS_MAX];
    struct matrix a = {0}, b = {0};
    double took[RUNS];
    unsigned long long seed = 7;
    const struct compare_options options = COMPARE_DEFAULTS;
    for (int i = 0; i < rows; i++)
        ranks[i] = (struct rank_info){.rank = i, .cpu = i, .mem_node = i * 8 / rows};
    sim_matrix(&a, rows, cols, 0.01, 1, &seed);
    sim_matrix(&b, rows, cols, 0.01, 1, &seed);
    spoil(&b, shape);
    struct compare_side x = {.matrix = &a, .ranks = ranks, .n_ranks = rows};
    struct compare_side y = {.matrix = &b, .ranks = ranks, .n_ranks = rows};
    for (int k = 0; k < RUNS; k++) {
        struct comparison c = {0};
        double start = now_ms();
        compare(&c, &x, &y, &options, NULL);
        took[k] = now_ms() - start;
        comparison_fini(&c);
    }
    printf("compare, %d x %d cells, %s: %.2f ms\n", rows, cols, shapes[shape],
           middle_of(took, RUNS));
    matrix_fini(&a);
    matrix_fini(&b);
}

static void time_report(int rows, int cols)
{
    static struct rank_info ranks[SPEC_RANKS_MAX];
    struct matrix m[2] = {0};
    double took[RUNS];
    unsigned long long seed = 7;
    for (int i = 0; i < rows; i++)
        ranks[i] = (struct rank_info){.rank = i, .cpu = i, .mem_node = i * 8 / rows};
    sim_matrix(&m[0], rows, cols, 0.05, 1, &seed);
    sim_matrix(&m[1], rows, cols, 0.05, 1.2, &seed);
    snprintf(m[1].name, sizeof m[1].name, "serial");
    const struct report_source s = {
        .benchmark = BENCHMARK_LATENCY, .matrices = m, .n = 2, .ranks = ranks, .n_ranks = rows};
    for (int k = 0; k < RUNS; k++) {
        double start = now_ms();
        report_free(report_new(&s, NULL, NULL));
        took[k] = now_ms() - start;
    }
    printf("report, %d x %d cells, both modes: %.2f ms\n", rows, cols, middle_of(took, RUNS));
    matrix_fini(&m[0]);
    matrix_fini(&m[1]);
}

int main(void)
{
    time_series(0);
    time_series(1);
    time_series(9);
    for (int shape = ALIKE; shape < SHAPES; shape++) {
        time_compare(8, 15, (enum shape_of)shape);
        time_compare(SPEC_RANKS_MAX, 48, (enum shape_of)shape);
    }
    time_report(8, 15);
    time_report(SPEC_RANKS_MAX, 48);
    return 0;
}

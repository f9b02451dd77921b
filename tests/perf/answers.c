// SPDX-License-Identifier: Apache-2.0
// Figures, not assertions: change points on 2,000 points (goal 50 ms), a comparison of 8 × 15 cells
// (goal 20 ms, storage included). Medians of 21 runs on this machine.
#include <stdio.h>
#include <time.h>

#include "analysis/compare.h"
#include "analysis/middle.h"
#include "analysis/series.h"
#include "tests/unit/analysis/simulate.h"

enum { RUNS = 21, POINTS = 2000 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
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

static void time_compare(void)
{
    struct matrix a = {0}, b = {0};
    double took[RUNS];
    unsigned long long seed = 7;
    const struct compare_options options = COMPARE_DEFAULTS;
    sim_matrix(&a, 8, 15, 0.01, 1, &seed);
    sim_matrix(&b, 8, 15, 0.01, 1.03, &seed);
    struct compare_side x = {.matrix = &a}, y = {.matrix = &b};
    for (int k = 0; k < RUNS; k++) {
        struct comparison c = {0};
        double start = now_ms();
        compare(&c, &x, &y, &options, NULL);
        took[k] = now_ms() - start;
        comparison_fini(&c);
    }
    printf("compare, 8 x 15 cells: %.2f ms\n", middle_of(took, RUNS));
    matrix_fini(&a);
    matrix_fini(&b);
}

int main(void)
{
    time_series(0);
    time_series(1);
    time_series(9);
    time_compare();
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Figures: how long the bench takes to make the sketch of a cell, which is after its samples, and
// how large it is: by number of samples, with one level, two, and a tail. `sketches [ROUNDS]`.
#include <stdio.h>

#include "analysis/stats/median.h"
#include "base/clock.h"
#include "base/str.h"
#include "tests/unit/analysis/simulate.h"

enum { SAMPLES_MOST = 10000, ROUNDS_MOST = 10000, ROUNDS = 2000 };

static void fill(double *v, int n, int form, unsigned long long *seed)
{
    for (int i = 0; i < n; i++) {
        bool beyond = form && dist_below(seed, 4) == 0;
        double at = beyond ? form == 1 ? 3 : 1 + 0.01 * dist_below(seed, 100) : 1;
        v[i] = 100 * at * (1 + 0.01 * sim_normal(seed));
    }
}

static void measure(double *v, int n, int form, int rounds)
{
    static const char *const names[] = {"one level", "two levels", "a tail"};
    unsigned long long seed = 1;
    static double took[ROUNDS_MOST]; // us
    double bytes = 0, bins = 0;
    for (int i = 0; i < rounds; i++) {
        struct cell c = {.v[CELL_N] = n};
        struct histogram h;
        fill(v, n, form, &seed);
        uint64_t begin = clock_mono_ns();
        sketch_of(&c.sketch, v, n);
        took[i] = (double)(clock_mono_ns() - begin) / 1000;
        bytes += c.sketch.size;
        stats_sort(v, n);
        c.v[CELL_MIN] = v[0];
        bins += cell_histogram(&c, &h) ? h.n_bins : 0;
    }
    printf("%-10s %6d samples: %8.2f us, %5.1f bytes, %4.1f bins\n", names[form], n,
           middle_of(took, rounds), bytes / rounds, bins / rounds);
}

int main(int argc, char **argv)
{
    static const int samples[] = {8, 16, 32, 64, 128, 256, 1000, 10000};
    static double v[SAMPLES_MOST];
    int64_t rounds = ROUNDS;
    if (argc > 1 && (!str_to_i64(argv[1], &rounds) || rounds < 1 || rounds > ROUNDS_MOST))
        return 2;
    for (int form = 0; form < 3; form++)
        for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
            measure(v, samples[i], form, (int)rounds);
    return 0;
}

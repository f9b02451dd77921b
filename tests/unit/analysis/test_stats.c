// SPDX-License-Identifier: Apache-2.0
#include "analysis/stats/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/tap.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

// By the definition of type 7: position 4q between the order statistics, counted from 0.
static void quantiles(void)
{
    const double v[] = {15, 20, 35, 40, 50};
    static const double q[] = {0, 0.1, 0.25, 0.4, 0.5, 0.9, 0.99, 1};
    static const double want[] = {15, 17, 20, 29, 35, 46, 49.6, 50};
    for (int i = 0; i < 8; i++)
        CHECK(near(stats_quantile(v, 5, q[i]), want[i]), "quantile %.2f is %.2f", q[i], want[i]);
    CHECK(stats_quantile(v, 1, 0.99) == 15, "a single value is every quantile");
}

// Tables of the sign test: largest r with P(Binomial(n, 1/2) < r) <= 2.5 %.
static void ranks(void)
{
    static const int n[] = {5, 6, 7, 9, 10, 15, 20, 25, 50, 100, 1000, 100000};
    static const int want[] = {0, 1, 1, 2, 2, 4, 6, 8, 18, 40, 469, 49690};
    for (int i = 0; i < 12; i++)
        CHECK(stats_median_rank(n[i]) == want[i], "n = %d: order statistic %d", n[i], want[i]);
}

static void summary(void)
{
    struct cell c;
    struct err err = {0};
    const double v[] = {4, 1, 3, 2, 5, 7, 6};
    cell_clear(&c);
    CHECK(stats_cell(&c, v, NULL, 7, &err) == 0, "seven samples are summed up");
    CHECK(c.v[CELL_N] == 7 && c.v[CELL_MEDIAN] == 4 && c.v[CELL_MIN] == 1, "n, median, min");
    CHECK(c.v[CELL_MEAN] == 4 && near(c.v[CELL_SD], sqrt(28 / 6.0)), "mean, sd");
    CHECK(near(c.v[CELL_P10], 1.6) && near(c.v[CELL_P90], 6.4), "p10, p90");
    CHECK(c.v[CELL_LO] >= 0 && c.v[CELL_LO] < 1 && c.v[CELL_HI] > 7,
          "the interval for a repeat run is wider than seven samples");
    CHECK(isnan(c.v[CELL_OVERLAP]) && isnan(c.v[CELL_CONVERGED]), "others' fields are left alone");
    CHECK(stats_cell(&c, v, NULL, 1, &err) == 0 && c.v[CELL_MEDIAN] == 4 && isnan(c.v[CELL_LO]) &&
              isnan(c.v[CELL_HI]) && isnan(c.v[CELL_SD]),
          "one sample has no interval: it would look as if it were sure");
}

static void precision(void)
{
    struct stats s;
    struct err err = {0};
    double v[64];
    for (int i = 0; i < 64; i++)
        v[i] = 100 + (i * 29 % 64) / 64.0; // spread evenly, not in order
    stats_of(&s, v, 15, &err);
    CHECK(isinf(stats_precision(&s)), "15 samples are not enough to be called precise");
    stats_of(&s, v, 64, &err);
    CHECK(stats_precision(&s) < 0.3, "64 samples within 1 %% are precise: %.2f %%",
          stats_precision(&s));
    for (int i = 0; i < 64; i++)
        v[i] = 100 + i / 64.0; // the same values drifting upwards
    stats_of(&s, v, 64, &err);
    CHECK(isinf(stats_precision(&s)), "the same values in order are few independent ones (%.1f)",
          64 / s.correlation_time);
}

// --- Simulation: does the interval cover the median of a repeat run? ---------------------------

static uint64_t state;

static double uniform(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

struct process {
    const char *name;
    double sd, correlation; // of neighbours
    double outliers;        // share that reads half as much again
};
static double last;

static double next_value(const struct process *p)
{
    last = p->correlation * last + sqrt(1 - p->correlation * p->correlation) * normal();
    double v = 100 + p->sd * last;
    return uniform() < p->outliers ? v * 1.5 : v;
}

enum { LIMIT = 250 }; // samples of 2 ms in the default 500 ms

// A run as the sampler makes it: stops as soon as it looks precise.
static struct stats one_run(const struct process *p, int at_most)
{
    struct err err = {0};
    struct stats s = {0};
    double v[LIMIT];
    last = normal();
    for (int n = 0, check = STATS_INDEPENDENT_MIN; n < at_most;) {
        v[n++] = next_value(p);
        if (n < check && n < at_most)
            continue;
        check = n + 1 + n / 8;
        stats_of(&s, v, n, &err);
        if (stats_precision(&s) <= 1)
            break;
    }
    return s;
}

static void coverage(const struct process *p, int at_most)
{
    enum { RUNS = 2000 };
    int covered = 0;
    double samples = 0;
    state = 4242;
    for (int i = 0; i < RUNS; i++) {
        struct stats one = one_run(p, at_most), two = one_run(p, at_most);
        covered += two.median >= one.repeat.lo && two.median <= one.repeat.hi;
        samples += one.n;
    }
    CHECK(covered >= 0.93 * RUNS,
          "%s, up to %d samples: covers %.1f of 100 repeats (seed 4242, "
          "mean of %.0f samples)",
          p->name, at_most, 100.0 * covered / RUNS, samples / RUNS);
}

// A machine that drifts: every visit sits elsewhere, for longer than its samples can tell. The
// median of a repeat that drifts as much must be covered, too.
static double drifting_run(double drift, struct cell *c)
{
    enum { VISITS = 3, EACH = 40 };
    struct err err = {0};
    double v[VISITS * EACH];
    int visit[VISITS * EACH];
    for (int i = 0, k = 0; i < VISITS; i++) {
        double level = 100 + drift * normal();
        for (int n = 0; n < EACH; n++, k++) {
            v[k] = level + normal();
            visit[k] = i;
        }
    }
    cell_clear(c);
    if (stats_cell(c, v, visit, VISITS * EACH, &err) < 0)
        abort();
    return c->v[CELL_MEDIAN];
}

static void drift(void)
{
    enum { RUNS = 2000 };
    static const double sizes[] = {0, 0.3, 1, 3, 10};
    for (int k = 0; k < 5; k++) {
        int covered = 0;
        state = 99;
        for (int i = 0; i < RUNS; i++) {
            struct cell one, two;
            drifting_run(sizes[k], &one);
            double again = drifting_run(sizes[k], &two);
            covered += again >= one.v[CELL_LO] && again <= one.v[CELL_HI];
        }
        CHECK(covered >= 0.93 * RUNS, "visits that drift by %.1f %%: covers %.1f of 100 repeats",
              sizes[k], 100.0 * covered / RUNS);
    }
    double half = -1;
    const double v[] = {1, 2, 3};
    const int once[] = {0, 0, 0}, thrice[] = {0, 1, 2};
    struct err err = {0};
    CHECK(stats_between_visits(v, once, 3, &half, &err) == 0 && half == 0,
          "one visit tells nothing");
    CHECK(stats_between_visits(v, thrice, 3, &half, &err) == 0 && near(half, 4.303 * sqrt(2.0 / 3)),
          "three visits with sd 1: t(2) sqrt(2/3) = %.3f", half);
}

int main(void)
{
    static const struct process processes[] = {
        {"quiet", 1, 0, 0},
        {"noisy", 8, 0, 0},
        {"with outliers", 2, 0, 0.1},
        {"neighbours alike (0.5)", 3, 0.5, 0},
        {"neighbours alike (0.8)", 3, 0.8, 0},
        {"neighbours very alike (0.9), outliers", 3, 0.9, 0.05},
    };
    quantiles();
    ranks();
    summary();
    precision();
    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++)
        coverage(&processes[i], LIMIT);
    for (size_t i = 0; i < 3; i++)
        coverage(&processes[i], 7);
    drift();
    return tap_done();
}

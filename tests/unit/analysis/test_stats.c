// SPDX-License-Identifier: Apache-2.0
#include "analysis/stats/distributions.h"
#include "analysis/stats/modes.h"
#include "analysis/stats/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"

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

// --- What the interval between visits is worth ---------------------------------------------------

// The logs of the squared half-width vary as those of a chi square with that many degrees of
// freedom.
static void test_visits_freedom(void)
{
    enum { FREEDOM_TRIES = 40000 };
    static const int visits[] = {3, 4, 5, 6, 7, 8, 12, 24};
    state = 19;
    for (size_t c = 0; c < COUNT_OF(visits); c++) {
        double v[24], sum = 0, squares = 0;
        for (int t = 0; t < FREEDOM_TRIES; t++) {
            for (int i = 0; i < visits[c]; i++)
                v[i] = 100 + normal();
            double half = stats_between_visits(v, visits[c]), e = 2 * log(half);
            sum += e;
            squares += e * e;
        }
        double varies = squares / FREEDOM_TRIES - sum * sum / FREEDOM_TRIES / FREEDOM_TRIES;
        double seen = 2 * dist_trigamma_inverse(varies), says = stats_visits_freedom(visits[c]);
        CHECK(fabs(seen / says - 1) < 0.05, "%d visits: %.2f degrees of freedom, says %.2f",
              visits[c], seen, says);
    }
}

// --- Two levels --------------------------------------------------------------------------------

enum { MODES_TRIES = 20000 };

// Medians of k repetitions, by kind.
static double repetition(char kind, int i, int k)
{
    switch (kind) {
    case 'n': // normal, 1 %
        return exp(0.01 * normal());
    case 'w': // normal, 10 %
        return exp(0.1 * normal());
    case 'd': // drift by 10 %
        return exp(0.1 * i / (k - 1) + 0.01 * normal());
    case 'h': // heavy tail: 12 % are 1.2 to 2.8 times too slow
        return (uniform() < 0.12 ? 1.2 + 1.6 * uniform() : 1) * exp(0.01 * normal());
    case 'e': // a tail to one side
        return exp(-0.2 * log(uniform()));
    default: // two levels, half of the time each
        return (uniform() < 0.5 ? 20 : 59) * exp(0.02 * normal());
    }
}

static double share_of_two(char kind, int k)
{
    int two = 0;
    for (int t = 0; t < MODES_TRIES; t++) {
        double v[24];
        for (int i = 0; i < k; i++)
            v[i] = repetition(kind, i, k);
        two += modes_find(v, k).two;
    }
    return 100.0 * two / MODES_TRIES;
}

static void test_modes(void)
{
    static const struct {
        int k;
        double power; // per cent, at least
    } cases[] = {{6, 30}, {8, 65}, {12, 90}, {24, 99}};
    state = 9;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        int k = cases[c].k;
        for (const char *kind = "nwdhe"; *kind; kind++) {
            double share = share_of_two(*kind, k);
            CHECK(share <= 1, "%d repetitions, one level (%c): %.2f %% said to have two", k, *kind,
                  share);
        }
        double power = share_of_two('2', k);
        CHECK(power >= cases[c].power, "%d repetitions of 20 and 59: %.1f %% found", k, power);
    }
    double v[] = {59, 20, 20.2, 58, 20.1, 60, 20, 20.3};
    struct modes m = modes_find(v, 8);
    CHECK(m.two && m.low == 20.1 && m.high == 59 && m.high_share == 0.375,
          "both levels: %g, %g, %g", m.low, m.high, m.high_share);
    double same[] = {20, 20, 20, 20, 20.5, 20.5, 20.5, 20.5};
    CHECK(!modes_find(same, 8).two, "levels below 5 %% are no news");
    double few[] = {20, 20, 20, 59, 59};
    CHECK(!modes_find(few, 5).two && !modes_find(few, 0).two, "five repetitions show nothing");
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

// --- The same for visits, by three models of what changes between them --------------------------

struct model {
    const char *name;
    double drift;     // sd of a visit, relative
    double bad_share; // of the visits, each 1.2 to 2.8 times too slow
};

enum { EACH = 15, VISITS_MOST = 12, PAIRS = 2000 };

// Fills `c` from samples with 0.5 % of noise, and *by_sd with the half-width of Student's t and the
// visits' standard deviation, which one odd visit of eight makes useless.
static void visited(const struct model *m, int visits, struct cell *c, double *by_sd)
{
    struct err err = {0};
    double v[VISITS_MOST * EACH], medians[VISITS_MOST], mean = 0, squares = 0;
    int visit[VISITS_MOST * EACH];
    for (int i = 0; i < visits; i++) {
        double level = 100 * (1 + m->drift * normal());
        level *= uniform() < m->bad_share ? 1.2 + 1.6 * uniform() : 1;
        for (int n = i * EACH; n < (i + 1) * EACH; n++) {
            v[n] = level * (1 + 0.005 * normal());
            visit[n] = i;
        }
        medians[i] = level;
        mean += level / visits;
    }
    for (int i = 0; i < visits; i++)
        squares += (medians[i] - mean) * (medians[i] - mean);
    *by_sd = dist_t_975(visits - 1) * sqrt(squares / (visits - 1)) * sqrt(2.0 / visits);
    cell_clear(c);
    if (stats_cell(c, v, visit, visits * EACH, &err) < 0)
        abort();
}

static double middle(double *v, int n)
{
    stats_sort(v, n);
    return stats_quantile(v, n, 0.5);
}

static void coverage_of_visits(const struct model *m, int visits, int least)
{
    int covered = 0, by_sd_covers = 0;
    static double half[PAIRS], by_sd[PAIRS];
    state = 99;
    for (int i = 0; i < PAIRS; i++) {
        struct cell one, two;
        double ignored;
        visited(m, visits, &one, &by_sd[i]);
        visited(m, visits, &two, &ignored);
        double again = two.v[CELL_MEDIAN];
        covered += again >= one.v[CELL_LO] && again <= one.v[CELL_HI];
        by_sd_covers += fabs(again - one.v[CELL_MEDIAN]) <= by_sd[i];
        half[i] = (one.v[CELL_HI] - one.v[CELL_LO]) / 2;
    }
    double percent = 100.0 * covered / PAIRS;
    CHECK(percent >= least && percent <= 97.5,
          "%d visits, %s: covers %.1f of 100 repeats, half-width %.1f %%; by standard deviation "
          "%.1f and %.1f %% (seed 99)",
          visits, m->name, percent, middle(half, PAIRS), 100.0 * by_sd_covers / PAIRS,
          middle(by_sd, PAIRS));
}

static void between_visits(void)
{
    static const struct model models[] = {
        {"1 % normal", 0.01, 0}, {"drift of 3 %", 0.03, 0}, {"12 % of the visits bad", 0.01, 0.12}};
    static const int visits[] = {5, 6, 8, 12};
    for (int m = 0; m < 3; m++)
        for (int k = 0; k < 4; k++)
            coverage_of_visits(&models[m], visits[k], visits[k] == 8 ? 93 : 92);
    for (int m = 0; m < 2; m++) // two bad visits of four cannot be told from two good ones
        for (int k = 2; k <= 4; k++)
            coverage_of_visits(&models[m], k, 93);
    double once[] = {7}, twice[] = {1, 2}, alike[] = {3, 3, 3, 3, 3, 3, 9, 1};
    double odd[] = {100, 101, 99, 100.5, 99.5, 180, 100};
    CHECK(stats_between_visits(once, 1) == 0, "one visit says nothing");
    CHECK(near(stats_between_visits(twice, 2), 12.71 * 1.1 * sqrt(0.5)), "two visits: t(1) and sd");
    CHECK(stats_between_visits(alike, 8) == 0, "most visits alike: the samples' interval remains");
    double half = stats_between_visits(odd, 7);
    CHECK(half > 1 && half < 3, "one bad visit of seven: plus or minus %.2f, not 60", half);
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
    test_visits_freedom();
    test_modes();
    precision();
    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++)
        coverage(&processes[i], LIMIT);
    for (size_t i = 0; i < 3; i++)
        coverage(&processes[i], 7);
    between_visits();
    return tap_done();
}

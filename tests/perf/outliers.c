// SPDX-License-Identifier: Apache-2.0
// outliers [SHARE]: what the rules for outliers, own past and rollouts find in simulated fleets
// (docs/VERDICTS.md has the table), beside mean + 3 sigma. SHARE of the fleets of the full table;
// default 1, some minutes. `outliers time` prints only what 10,000 nodes take of time and memory,
// `outliers quiet` how often quiet fleets alarm, and what is found by few runs.
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "analysis/peers/fleet_findings.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "tests/unit/analysis/fleet_sim.h"

#define T10K .nodes = 10000, .metrics = 1, .bad_metrics = 1
#define T30 .nodes = 10000, .metrics = 30

static const struct {
    struct scenario s;
    int fleets;
    const char *prototype; // recall, precision of the first program with this rule
} table[] = {
    {{.name = "A nothing wrong, 1 metric", T10K, .seed = 1}, 100, "0.04 false a fleet"},
    {{.name = "A nothing wrong, 30 metrics", T30, .seed = 2}, 20, "0.05 false a fleet"},
    {{.name = "B 1 % bad from birth, +4 %", T10K, .shift = 0.04, .share = 0.01, .seed = 3},
     60,
     "61.8, 95"},
    {{.name = "B +5 % (bound for any rule 92.1)", T10K, .shift = 0.05, .share = 0.01, .seed = 4},
     60,
     "91.0, 95"},
    {{.name = "B +6 % (bound for any rule 99.0)", T10K, .shift = 0.06, .share = 0.01, .seed = 5},
     60,
     "98.7, 95"},
    {{.name = "B +8 %", T10K, .shift = 0.08, .share = 0.01, .seed = 6}, 60, "100, 95"},
    {{.name = "B 1 of 30 metrics, +5 %",
      T30,
      .bad_metrics = 1,
      .shift = 0.05,
      .share = 0.01,
      .seed = 7},
     12,
     "62.7, 95"},
    {{.name = "B 1 of 30 metrics, +7 %",
      T30,
      .bad_metrics = 1,
      .shift = 0.07,
      .share = 0.01,
      .seed = 8},
     12,
     "98.1, 95"},
    {{.name = "C 4 of 30 metrics, +5 %",
      T30,
      .bad_metrics = 4,
      .shift = 0.05,
      .share = 0.01,
      .seed = 9},
     12,
     "93.3, 95"},
    {{.name = "C all 30 metrics, +4 %",
      T30,
      .bad_metrics = 30,
      .shift = 0.04,
      .share = 0.01,
      .seed = 10},
     12,
     "98.2, 95"},
    {{.name = "C all 30 metrics, +5 %",
      T30,
      .bad_metrics = 30,
      .shift = 0.05,
      .share = 0.01,
      .seed = 11},
     12,
     "100, 95"},
    {{.name = "B2 nodes 0.5 %, runs 1 %, +5 %",
      T10K,
      .shift = 0.05,
      .share = 0.01,
      .node = 0.005,
      .run = 0.01,
      .seed = 12},
     60,
     "99.6, 99.8"},
    {{.name = "D own past, +2 %", T10K, .shift = 0.02, .share = 0.01, .past = 20, .seed = 13},
     20,
     "99.5, 99.5"},
    {{.name = "D own past, +3 %", T10K, .shift = 0.03, .share = 0.01, .past = 20, .seed = 14},
     20,
     "100, 99.5"},
    {{.name = "E 10 % of 1,000 bad, +5 %",
      .nodes = 1000,
      .metrics = 1,
      .bad_metrics = 1,
      .shift = 0.05,
      .share = 0.1,
      .groups = true,
      .seed = 15},
     60,
     "98.1, 96"},
    {{.name = "E 30 % of 1,000 bad, +5 %",
      .nodes = 1000,
      .metrics = 1,
      .bad_metrics = 1,
      .shift = 0.05,
      .share = 0.3,
      .groups = true,
      .seed = 16},
     60,
     "98.7, 99"},
    {{.name = "E 40 % of 1,000 bad, +5 %",
      .nodes = 1000,
      .metrics = 1,
      .bad_metrics = 1,
      .shift = 0.05,
      .share = 0.4,
      .groups = true,
      .seed = 17},
     60,
     "98.9, 99"},
    {{.name = "F kinds 70:30 5 % apart, 1 % bad +25 %",
      .nodes = 1000,
      .metrics = 1,
      .bad_metrics = 1,
      .shift = 0.25,
      .share = 0.01,
      .apart = 0.05,
      .second = 0.3,
      .seed = 18},
     40,
     "100, 99.8"},
    {{.name = "F kinds 70:30 12 % apart, 1 % bad +25 %",
      .nodes = 1000,
      .metrics = 1,
      .bad_metrics = 1,
      .shift = 0.25,
      .share = 0.01,
      .apart = 0.12,
      .second = 0.3,
      .seed = 19},
     40,
     "100, 97.6"},
    {{.name = "F the same, one centre for both kinds",
      .nodes = 1000,
      .metrics = 1,
      .bad_metrics = 1,
      .shift = 0.25,
      .share = 0.01,
      .apart = 0.12,
      .second = 0.3,
      .one_kind = true,
      .seed = 20},
     40,
     "100, 3"},
    {{.name = "G class of 8, nothing wrong", .nodes = 8, .metrics = 1, .seed = 21},
     2000,
     "1-4 % of classes"},
    {{.name = "G class of 8, one bad +8 %",
      .nodes = 8,
      .metrics = 1,
      .bad_metrics = 1,
      .shift = 0.08,
      .share = 0.125,
      .seed = 22},
     1000,
     "67, 95"},
    {{.name = "G class of 16, nothing wrong", .nodes = 16, .metrics = 1, .seed = 23},
     2000,
     "1-4 % of classes"},
    {{.name = "G class of 16, one bad +8 %",
      .nodes = 16,
      .metrics = 1,
      .bad_metrics = 1,
      .shift = 0.08,
      .share = 0.0625,
      .seed = 24},
     1000,
     "96, 95"},
    {{.name = "G class of 64, one bad +8 %",
      .nodes = 64,
      .metrics = 1,
      .bad_metrics = 1,
      .shift = 0.08,
      .share = 0.015625,
      .seed = 25},
     1000,
     "100, 95"},
    {{.name = "P 2 % of runs are 10 % slow", T10K, .spike = 0.02, .seed = 26},
     60,
     "0.8 false a fleet"},
    {{.name = "H t4 tails, nothing wrong", T10K, .tail = 4, .seed = 27},
     60,
     "74 false a fleet, all suspect"},
    {{.name = "W measured over 3 weeks, drift 0.2 % a day, +6 %",
      T10K,
      .shift = 0.06,
      .share = 0.01,
      .drift = 0.002,
      .seed = 28},
     20,
     "100 (28.8 with days left in)"},
};

// Fleets in which nothing is wrong, though nodes scatter unlike or values are on a grid; and what
// is found of slow nodes.
#define NOISY(times) .noisy = 0.1, .louder = times
#define HUNDRED .nodes = 100, .metrics = 1, .node = 0.005, .run = 0.01
#define THOUSAND .nodes = 1000, .metrics = 1, .node = 0.005, .run = 0.01
#define TEN(alike) .nodes = 1000, .metrics = 10, .node = 0.005, .run = 0.01, .together = alike
#define STEPS(part) .metrics = 1, .step = 0.2, .stepped = part
static const struct {
    struct scenario s;
    int fleets;
} quiet[] = {
    {{.name = "N peers, all alike, 25 runs", HUNDRED, .history = 20, .seed = 41}, 1000},
    {{.name = "N peers, 10 % x3, 25 runs", HUNDRED, .history = 20, NOISY(3), .seed = 42}, 1000},
    {{.name = "N peers, 10 % x10, 25 runs", HUNDRED, .history = 20, NOISY(10), .seed = 43}, 1000},
    {{.name = "N peers, 10 % x3, 5 runs", HUNDRED, NOISY(3), .seed = 44}, 1000},
    {{.name = "N peers, 10 % x10, 5 runs", HUNDRED, NOISY(10), .seed = 45}, 1000},
    {{.name = "N past, all alike", HUNDRED, .past = 20, .seed = 46}, 1000},
    {{.name = "N past, 10 % x3", HUNDRED, .past = 20, NOISY(3), .seed = 47}, 1000},
    {{.name = "N past, 10 % x10", HUNDRED, .past = 20, NOISY(10), .seed = 48}, 1000},
    {{.name = "N peers of 1,000, 10 % x3, 25 runs", THOUSAND, .history = 20, NOISY(3), .seed = 49},
     200},
    {{.name = "N peers of 1,000, 10 % x10, 25 runs",
      THOUSAND,
      .history = 20,
      NOISY(10),
      .seed = 50},
     200},
    {{.name = "N peers of 1,000, 10 % x3, 5 runs", THOUSAND, NOISY(3), .seed = 51}, 200},
    {{.name = "N peers of 1,000, 10 % x10, 5 runs", THOUSAND, NOISY(10), .seed = 52}, 200},
    {{.name = "N peers of 1,000, 10 % x3, 3 runs", THOUSAND, .newest = 3, NOISY(3), .seed = 51},
     200},
    {{.name = "N peers of 1,000, 10 % x10, 3 runs", THOUSAND, .newest = 3, NOISY(10), .seed = 51},
     200},
    {{.name = "N peers of 1,000, 10 % x3, 5 runs, 10 metrics", TEN(false), NOISY(3), .seed = 71},
     100},
    {{.name = "N peers of 1,000, 10 % x10, 5 runs, 10 metrics", TEN(false), NOISY(10), .seed = 71},
     100},
    {{.name = "N the same, metrics alike, x3", TEN(true), NOISY(3), .seed = 71}, 100},
    {{.name = "N the same, metrics alike, x10", TEN(true), NOISY(10), .seed = 71}, 100},
    {{.name = "N peers of 1,000, 9 % x3 and 1 % x30, 25 runs",
      THOUSAND,
      .history = 20,
      NOISY(3),
      .loudest = 30,
      .seed = 72},
     200},
    {{.name = "N peers of 1,000, 9 % x3 and 1 % x30, 5 runs",
      THOUSAND,
      NOISY(3),
      .loudest = 30,
      .seed = 72},
     200},
    {{.name = "N past of 1,000, 10 % x10", THOUSAND, .past = 20, NOISY(10), .seed = 53}, 200},
    {{.name = "S peers, 10 % of runs a step worse", .nodes = 100, STEPS(0.1), .seed = 54}, 200},
    {{.name = "S peers, 20 %", .nodes = 100, STEPS(0.2), .seed = 55}, 200},
    {{.name = "S past, 10 %", .nodes = 100, STEPS(0.1), .past = 20, .seed = 56}, 200},
    {{.name = "S past, 20 %", .nodes = 100, STEPS(0.2), .past = 20, .seed = 57}, 200},
};

static void print_quiet(double share)
{
    for (size_t i = 0; i < COUNT_OF(quiet); i++) {
        struct outcome o = sim_judge(&quiet[i].s, (int)fmax(3, quiet[i].fleets * share));
        printf(
            "# %-52s seed %-4llu fleets with a false node %5.1f %%, a sure one %5.1f %%, a group "
            "%5.1f %%\n",
            quiet[i].s.name, quiet[i].s.seed, 100.0 * o.alarmed / o.fleets,
            100.0 * o.sure_alarmed / o.fleets, 100.0 * o.grouped / o.fleets);
    }
}

// Slow nodes, of which few or many runs are known.
static void print_slow(int nodes, double noisy, double shift, int fleets)
{
    static const int runs[] = {3, 5, 10, 25};
    for (size_t r = 0; r < COUNT_OF(runs); r++) {
        char name[64];
        int newest = runs[r] < NEWEST_RUNS ? runs[r] : NEWEST_RUNS;
        struct scenario s = {.name = name,
                             .nodes = nodes,
                             .metrics = 1,
                             .bad_metrics = 1,
                             .shift = shift,
                             .share = 0.01,
                             .node = 0.005,
                             .run = 0.01,
                             .newest = newest,
                             .history = runs[r] - newest,
                             .noisy = noisy,
                             .louder = 10,
                             .seed = nodes < 1000 ? 60 : 61};
        snprintf(name, sizeof name, "L %d nodes%s, %d runs, +%g %%", nodes,
                 noisy > 0 ? ", 10 % x10" : "", runs[r], 100 * shift);
        struct outcome o = sim_judge(&s, fleets);
        outcome_print(&s, &o);
    }
}

static void print_runs(double share)
{
    static const double shifts[] = {0.05, 0.08, 0.1}, among_noisy[] = {0.05, 0.08, 0.12};
    for (int k = 0; k < 3; k++)
        print_slow(100, 0, shifts[k], (int)fmax(3, share * 600));
    for (int k = 0; k < 3; k++)
        print_slow(1000, 0, shifts[k], (int)fmax(3, share * 60));
    for (int k = 0; k < 3; k++)
        print_slow(1000, 0.1, among_noisy[k], (int)fmax(3, share * 60));
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The others' rules, on the same fleets: mean + 3 sigma, and 5 % above the mean.
static void print_others(void)
{
    static const double shares[] = {0.01, 0.1, 0.3};
    for (int k = 0; k < 3; k++) {
        long found[2] = {0}, bad = 0;
        struct scenario s = {.nodes = 1000,
                             .metrics = 1,
                             .bad_metrics = 1,
                             .shift = 0.05,
                             .share = shares[k],
                             .seed = 29};
        unsigned long long seed = s.seed;
        for (int fleet = 0; fleet < 60; fleet++) {
            struct sim_fleet f;
            double y[1000], sum = 0, squares = 0;
            sim_fleet_make(&f, &s, &seed);
            for (int i = 0; i < s.nodes; i++) {
                double five[5];
                for (int r = 0; r < 5; r++)
                    five[r] = log(f.v[i * 5 + r]);
                qsort(five, 5, sizeof *five, by_size);
                sum += y[i] = five[2];
            }
            for (int i = 0; i < s.nodes; i++)
                squares += (y[i] - sum / s.nodes) * (y[i] - sum / s.nodes);
            for (int i = 0; i < s.nodes; i++) {
                double above = y[i] - sum / s.nodes;
                found[0] += f.bad[i] && above > 3 * sqrt(squares / s.nodes);
                found[1] += f.bad[i] && above > log(1.05);
                bad += f.bad[i];
            }
            sim_fleet_free(&f);
        }
        printf(
            "# J %2.0f %% of 1,000 bad +5 %%: mean + 3 sigma recalls %.0f %%, 5 %% above the mean "
            "%.0f %%\n",
            100 * shares[k], 100.0 * found[0] / bad, 100.0 * found[1] / bad);
    }
}

static void print_rollouts(double share)
{
    static const struct rollout list[] = {{1000, 50, 8, 0, 0.2, 30},
                                          {1000, 50, 8, 0.005, 0.2, 31},
                                          {1000, 50, 8, 0.01, 0.2, 32},
                                          {1000, 50, 1, 0.01, 0.2, 33}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct rollouts r = sim_rollouts(&list[i], (int)(300 * share) + 3);
        printf(
            "# R rollout %+.1f %% in %d waves, seed %llu: estimate %+.3f %% sd %.3f %%, interval "
            "covers %.1f %%, called an effect %.1f %%\n",
            100 * list[i].effect, list[i].waves, list[i].seed, r.mean, r.deviation,
            100.0 * r.covered / r.n, 100.0 * r.called / r.n);
    }
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static int ascending_ms(const void *a, const void *b)
{
    return by_size(a, b);
}

static void print_time(void)
{
    double ms[9], past_ms[9];
    struct scenario s = {T30, .bad_metrics = 4, .shift = 0.05, .share = 0.01, .seed = 34};
    unsigned long long seed = s.seed;
    struct peers_options options = PEERS_DEFAULTS;
    struct sim_fleet f;
    sim_fleet_make(&f, &s, &seed);
    for (int k = 0; k < 9; k++) {
        struct newest newest;
        struct peers p;
        double start = cpu_ms();
        if (newest_find(&newest, &f.in, false, NULL) < 0)
            abort();
        struct peers_table t = sim_table(&newest);
        past_ms[k] = cpu_ms() - start;
        if (peers_judge(&p, &t, 1, &options, NULL) < 0)
            abort();
        ms[k] = cpu_ms() - start;
        peers_fini(&p);
        newest_fini(&newest);
    }
    qsort(ms, 9, sizeof *ms, ascending_ms);
    qsort(past_ms, 9, sizeof *past_ms, ascending_ms);
    printf(
        "# 10,000 nodes x 30 metrics x 5 runs on 5 days: %.0f ms (days and medians %.0f), median "
        "of 9\n",
        ms[4], past_ms[4]);
    sim_fleet_free(&f);
}

// Pages of 25 runs of 30 metrics, as nodes send them, and the findings.
static void print_fleet(void)
{
    enum { NODES = 10000, METRICS = 30, RUNS = 25 };
    static struct summary runs[RUNS];
    static struct summary_metric names[METRICS];
    static float v[RUNS][METRICS], widths[METRICS];
    struct summary_layout layout = {METRICS, names};
    struct summary_page page = {.n_layouts = 1, .n_runs = RUNS, .layouts = &layout, .runs = runs};
    struct fleet_options o = FLEET_DEFAULTS;
    struct fleet_findings list;
    struct rusage usage;
    unsigned long long seed = 35;
    double add = 0;
    o.now_ms = INT64_C(20500) * 86400000;
    struct fleet *f = fleet_new(&o, NULL);
    for (int m = 0; m < METRICS; m++)
        snprintf(names[m].name, sizeof names[m].name, "latency.n%d.n%d.median_ns", m / 6, m % 6);
    for (int i = 0; i < NODES && f; i++) {
        double level = 0.01 * sim_normal(&seed);
        for (int r = 0; r < RUNS; r++) {
            runs[r] = (struct summary){.id = r + 1,
                                       .state = RUN_SUCCEEDED,
                                       .benchmark = "latency",
                                       .class_hash = "c",
                                       .config_hash = "s",
                                       .measured_ms = o.now_ms - (RUNS - r) * INT64_C(86400000),
                                       .values = v[r],
                                       .lo = widths,
                                       .hi = widths};
            snprintf(runs[r].node, sizeof runs[r].node, "node%05d", i);
            double x = level + 0.005 * sim_normal(&seed) + (i % 100 == 0 ? 0.08 : 0);
            for (int m = 0; m < METRICS; m++)
                v[r][m] = (float)(90 * exp(x) * (1 + 0.002 * (m % 5)));
        }
        double start = cpu_ms();
        if (fleet_add_page(f, &page, NULL) < 0)
            abort();
        add += cpu_ms() - start;
    }
    double start = cpu_ms();
    if (!f || fleet_findings_find(&list, f, NULL) < 0)
        abort();
    double find = cpu_ms() - start;
    getrusage(RUSAGE_SELF, &usage);
    printf("# 10,000 nodes x 30 metrics x 25 runs, seed 35: taken in %.0f ms (%.1f us a run), %d "
           "findings in %.0f ms, at most %ld MB of memory\n",
           add, 1000 * add / NODES / RUNS, list.n, find, usage.ru_maxrss / 1024);
    fleet_findings_fini(&list);
    fleet_cleanup(&f);
}

int main(int argc, char **argv)
{
    double share = 1;
    if (argc > 1 && strcmp(argv[1], "quiet") == 0) {
        print_quiet(share);
        print_runs(share);
        return 0;
    }
    print_fleet();
    print_time();
    if (argc > 1 && strcmp(argv[1], "time") == 0)
        return 0;
    if (argc > 1 && !str_to_double(argv[1], &share))
        return 2;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct outcome o = sim_judge(&table[i].s, (int)fmax(3, table[i].fleets * share));
        outcome_print(&table[i].s, &o);
        printf("#     prototype: %s\n", table[i].prototype);
    }
    print_quiet(share);
    print_runs(share);
    print_others();
    print_rollouts(share);
    return 0;
}

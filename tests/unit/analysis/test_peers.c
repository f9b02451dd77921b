// SPDX-License-Identifier: Apache-2.0
// Nodes against their peers and against their own past, on simulated fleets whose truth is known
// (tests/perf/outliers.c has the full table), and by hand.
#include "analysis/peers/peers.h"
#include "analysis/peers/spread.h"

#include "base/cleanup.h"
#include "tests/unit/analysis/fleet_sim.h"
#include "tests/unit/analysis/spread_levels.h"
#include "tests/unit/tap.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_spread(void)
{
    const double few[] = {1, 2, 3, 4, 100};
    struct spread s = spread_of(few, 5, 0);
    CHECK(s.centre == 2.5 && s.n == 5, "one far value of five does not count: %g", s.centre);
    const double same[] = {7, 7, 7, 7};
    s = spread_of(same, 4, 0.25);
    CHECK(s.centre == 7 && s.scale == 0.25, "equal values have the smallest spread");
    const double one[] = {3};
    s = spread_of(one, 1, 0.1);
    CHECK(s.centre == 3 && s.scale == 0.1, "one value");
    double v[1000];
    unsigned long long seed = 201;
    for (int i = 0; i < 1000; i++)
        v[i] = sim_normal(&seed) + (i < 400 ? 20 : 0);
    qsort(v, 1000, sizeof *v, ascending);
    s = spread_of(v, 1000, 0);
    printf("# seed 201: centre %.3f, scale %.3f\n", s.centre, s.scale);
    CHECK(fabs(s.centre) < 0.2 && fabs(s.scale - 1) < 0.1, "400 of 1,000 far away do not count");
}

// Cutting again and again would end at the five values around 0.
static void test_near_by_chance(void)
{
    const double v[] = {-2, -1.8, -1.6, -1.5, -0.3, -0.2, -0.02, -0.01,
                        0,  0.01, 0.02, 0.2,  0.3,  1.5,  1.6,   1.8};
    struct spread s = spread_of(v, COUNT_OF(v), 0);
    CHECK(fabs(s.centre) < 0.1 && s.scale > 0.4 && s.scale < 1.3,
          "values that are near each other by chance do not make a scale: %g", s.scale);
}

// tests/perf/spread_tail has more sizes and values.
static void test_levels(void)
{
    enum { VALUES = 600000 };
    static const int sizes[] = {8, 9, 16, 24, 64};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int n = sizes[i];
        struct spread_levels l = levels_find(n, VALUES / n, 251 + n);
        double member[LEVELS];
        for (int k = 0; k < LEVELS; k++)
            member[k] = levels_rate(&l.member, k);
        printf("# %d nodes, seed %d: member x%.2f x%.2f x%.2f, further x%.2f x%.2f x%.2f\n", n,
               251 + n, member[0], member[1], member[2], levels_rate(&l.further, 0),
               levels_rate(&l.further, 1), levels_rate(&l.further, 2));
        CHECK(member[0] > 0.5 && member[0] < 1.1 && member[1] > 0.5 && member[1] < 1.15,
              "a class of %d: as many nodes beyond a limit of 5 %% as should be", n);
        CHECK(member[2] < 2, "beyond one of 0.1 %% for all of them too");
        CHECK(levels_rate(&l.further, 0) < 1.1 && levels_rate(&l.further, 1) < 1.3,
              "and of nodes that are compared with the class");
    }
    struct spread_levels l = levels_find(3, VALUES / 3, 254);
    CHECK(levels_rate(&l.further, 0) < 1.1 && levels_rate(&l.further, 1) < 1.1,
          "of three nodes next to nothing is known");
}

static void test_kinds(void)
{
    static double v[3000];
    struct kinds k;
    unsigned long long seed = 202;
    for (int i = 0; i < 3000; i++)
        v[i] = 0.01 * sim_normal(&seed) + (i < 500 ? 0.2 : i < 1500 ? 0.1 : 0);
    qsort(v, 3000, sizeof *v, ascending);
    kinds_find(&k, v, 3000, 0.03, 0);
    CHECK_INT(k.n, 3, "three kinds are found");
    CHECK(k.list[0].end == 1500 && k.list[1].end == 2500, "with their members");
    CHECK(kinds_of(&k, -1) == 0 && kinds_of(&k, 0.1) == 1 && kinds_of(&k, 9) == 2,
          "a value's kind");
    CHECK_INT(kinds_largest(&k), 0, "the largest");
    kinds_find(&k, v, 1500, 0.03, 0);
    CHECK_INT(k.n, 1, "a normal distribution is one kind");
    for (int i = 0; i < 1500; i++)
        v[i] = sim_tail(4, &seed) * 0.01;
    qsort(v, 1500, sizeof *v, ascending);
    kinds_find(&k, v, 1500, 0.03, 0);
    CHECK_INT(k.n, 1, "so is one with long tails");
    for (int i = 0; i < 100; i++)
        v[i] = i < 93 ? 0 : 1;
    kinds_find(&k, v, 100, 0.03, 0);
    CHECK_INT(k.n, 1, "seven of 100 equal values are single nodes, not a kind");
    for (int i = 0; i < 100; i++)
        v[i] = i < 90 ? 0 : 1;
    kinds_find(&k, v, 100, 0.03, 0);
    CHECK(k.n == 2 && k.list[0].end == 90, "ten are one");
}

// 24 nodes with one run a day: node 5 is bad, node 6 has two runs, metric 1 is a bandwidth.
static void test_by_hand(void)
{
    enum { NODES = 24, RUNS = 5 };
    static float v[NODES][2][RUNS];
    static int32_t day[NODES][1][RUNS];
    const int probe[2] = {0, 0};
    const bool more[2] = {false, true};
    struct peers_input in = {NODES, 2, RUNS, 1, &v[0][0][0], &day[0][0][0], probe, more};
    struct newest n;
    struct peers p;
    unsigned long long seed = 203;
    for (int i = 0; i < NODES; i++)
        for (int r = 0; r < RUNS; r++) {
            bool there = i != 6 || r < 2;
            day[i][0][r] = there ? 20000 - r : -1;
            v[i][0][r] = there ? (float)(140 * exp(0.003 * sim_normal(&seed) + 0.01 * r)) : NAN;
            v[i][1][r] = there ? (float)(200 * exp(0.003 * sim_normal(&seed))) : NAN;
            v[i][1][r] *= i == 5 ? 0.9F : 1;
        }
    CHECK(newest_find(&n, &in, false, NULL) == 0, "levels");
    CHECK(fabs(n.now[0] - log(140)) < 0.006, "days are taken out: the newest day counts");
    CHECK(isnan(n.now[6]) && n.runs[6] == 2 && n.days[5] == 5, "two runs are too few");
    CHECK(n.now[NODES] < 0, "of a bandwidth less is worse");
    const struct peers_options o = PEERS_DEFAULTS;
    struct peers_table t = sim_table(&n);
    CHECK(peers_judge(&p, &t, 1, &o, NULL) == 0, "judged");
    const struct peers_class *c = &p.list[0];
    CHECK(c->found == 1 && c->node[5].grade == PEERS_SURE, "the bad node is found, surely");
    CHECK(c->node[5].worst == 1 && c->node[5].worse == 1 && c->node[5].tested == 2,
          "by its metric");
    CHECK(isnan(c->node[6].p) && p.tested == NODES - 1, "a node with too few runs is not tested");
    struct peers_place at = peers_place_of(&p, 0, &t, 5, 1, &o);
    CHECK(at.peers == NODES - 1 && fabs(exp(-at.centre) - 200) < 1, "its peers");
    CHECK(at.limit > at.centre + 0.029 && at.x > at.limit, "it is beyond the limit");
    CHECK(fabs(at.x - at.centre + log(0.9)) < 0.01, "by as much as it is");
    peers_fini(&p);
    for (int i = 0; i < 2 * NODES; i++)
        n.days[i] = 1;
    CHECK(peers_judge(&p, &t, 1, &o, NULL) == 0 && p.list[0].node[5].grade == PEERS_SUSPECT,
          "from the runs of one day it is a suspect at most");
    peers_fini(&p);
    newest_fini(&n);
    v[5][1][1] = v[5][1][3] = NAN;
    CHECK(newest_find(&n, &in, false, NULL) == 0 && n.runs[5] == 5 && n.runs[NODES + 5] == 3 &&
              n.days[NODES + 5] == 3,
          "three of its five runs have the metric");
    t = sim_table(&n);
    CHECK(peers_judge(&p, &t, 1, &o, NULL) == 0 && p.list[0].node[5].grade == PEERS_SUSPECT,
          "so it is a suspect at most, though the other metric has five");
    peers_fini(&p);
    newest_fini(&n);
    in.nodes = 7;
    CHECK(newest_find(&n, &in, false, NULL) == 0, "a class of seven");
    t = sim_table(&n);
    CHECK(peers_judge(&p, &t, 1, &o, NULL) == 0 && p.tested == 0, "has no verdict");
    CHECK(isnan(peers_place_of(&p, 0, &t, 5, 1, &o).centre), "nor peers");
    peers_fini(&p);
    newest_fini(&n);
}

// A node in a small class, against itself alone.
static void test_small_class(void)
{
    struct scenario s = {.nodes = 3,
                         .metrics = 4,
                         .bad_metrics = 4,
                         .shift = 0.08,
                         .share = 0.34,
                         .past = 20,
                         .seed = 204};
    unsigned long long seed = s.seed;
    struct sim_fleet f;
    struct newest n;
    struct peers p;
    struct newest_column c;
    int good = 0, bad = 0;
    sim_fleet_make(&f, &s, &seed);
    CHECK(newest_find(&n, &f.in, true, NULL) == 0 && past_judge(&p, &f.in, &n, 1, NULL) == 0,
          "three nodes with 25 runs");
    CHECK(newest_column_init(&c, &f.in, NULL) == 0, "a column");
    newest_column_fill(&c, 0);
    for (int i = 0; i < 3; i++) {
        bool suspect = p.list[0].node[i].grade == PEERS_SUSPECT;
        bad += f.bad[i] && suspect && p.list[0].node[i].worse == 4;
        good += !f.bad[i] && p.list[0].node[i].grade == PEERS_FINE;
        CHECK_INT(past_since(&c, i, NULL), NEWEST_RUNS - 1, "since the fifth newest run");
    }
    CHECK(bad == 1 && good == 2, "the one that became 10 %% slower is a suspect, 2 %% are not");
    for (int i = 0; i < f.in.nodes * f.in.metrics * f.in.runs; i++)
        f.v[i] = 90;
    newest_column_fill(&c, 0);
    CHECK_INT(past_since(&c, 0, NULL), -1, "where nothing changed there is no change");
    newest_column_fini(&c);
    peers_fini(&p);
    newest_fini(&n);
    sim_fleet_free(&f);
}

static struct outcome judged(const struct scenario *s, int fleets)
{
    struct outcome o = sim_judge(s, fleets);
    outcome_print(s, &o);
    return o;
}

#define LARGE .nodes = 10000, .metrics = 1, .bad_metrics = 1
#define CLASS .nodes = 1000, .metrics = 1, .bad_metrics = 1

static void test_from_birth(void)
{
    struct outcome o =
        judged(&(struct scenario){.name = "A nothing wrong", LARGE, .seed = 211}, 25);
    CHECK(o.alarmed <= 2, "a fleet without faults: alarms in at most 8 %% of evaluations");
    o = judged(
        &(struct scenario){
            .name = "A nothing wrong, 30 metrics", .nodes = 3000, .metrics = 30, .seed = 212},
        4);
    CHECK(o.alarmed <= 1 && o.sure_wrong == 0, "nor with many metrics");
    o = judged(
        &(struct scenario){.name = "B +5 %", LARGE, .shift = 0.05, .share = 0.01, .seed = 213}, 10);
    CHECK(outcome_recall(&o) >= 0.89 && outcome_precision(&o) >= 0.93,
          "within 3 points of the bound");
    o = judged(
        &(struct scenario){.name = "B +6 %", LARGE, .shift = 0.06, .share = 0.01, .seed = 214}, 10);
    CHECK(outcome_recall(&o) >= 0.97 && outcome_precision(&o) >= 0.93, "6 %% slower");
    o = judged(
        &(struct scenario){.name = "B +8 %", LARGE, .shift = 0.08, .share = 0.01, .seed = 215}, 10);
    CHECK(outcome_recall(&o) >= 0.999, "8 %% slower");
    CHECK((double)o.sure / (o.sure + o.sure_wrong) >= 0.995, "what is sure is true");
    o = judged(&(struct scenario){.name = "C all 30 metrics, +5 %",
                                  .nodes = 3000,
                                  .metrics = 30,
                                  .bad_metrics = 30,
                                  .shift = 0.05,
                                  .share = 0.01,
                                  .seed = 216},
               4);
    CHECK(outcome_recall(&o) >= 0.99 && outcome_precision(&o) >= 0.9, "slower in all metrics");
}

static void test_shapes(void)
{
    struct outcome o = judged(&(struct scenario){.name = "E 30 % bad, +5 %",
                                                 CLASS,
                                                 .shift = 0.05,
                                                 .share = 0.3,
                                                 .groups = true,
                                                 .seed = 221},
                              20);
    CHECK(outcome_recall(&o) >= 0.97, "many bad nodes do not hide each other");
    o = judged(&(struct scenario){.name = "F kinds 70:30, 12 % apart",
                                  CLASS,
                                  .shift = 0.25,
                                  .share = 0.01,
                                  .apart = 0.12,
                                  .second = 0.3,
                                  .seed = 222},
               20);
    CHECK(outcome_recall(&o) == 1 && o.wrong <= o.fleets, "two kinds are no outliers");
    o = judged(&(struct scenario){.name = "F one centre for both",
                                  CLASS,
                                  .shift = 0.25,
                                  .share = 0.01,
                                  .apart = 0.12,
                                  .second = 0.3,
                                  .one_kind = true,
                                  .seed = 223},
               3);
    CHECK(o.wrong > 100 * o.fleets, "they would be, without a search for kinds");
    o = judged(&(struct scenario){.name = "H t4 tails", LARGE, .tail = 4, .seed = 224}, 4);
    CHECK(o.sure_wrong == 0 && o.mirror / o.fleets > 0.5, "of long tails no finding is sure");
    o = judged(&(struct scenario){.name = "W measured over 3 weeks, +8 %",
                                  LARGE,
                                  .shift = 0.08,
                                  .share = 0.01,
                                  .drift = 0.002,
                                  .seed = 225},
               4);
    CHECK(outcome_recall(&o) >= 0.99 && outcome_precision(&o) >= 0.93, "days are taken out");
    o = judged(&(struct scenario){.name = "G class of 8", .nodes = 8, .metrics = 1, .seed = 226},
               1000);
    CHECK(o.alarmed <= 40, "small classes: alarms in at most 4 %%");
    o = judged(&(struct scenario){.name = "G class of 8, one +8 %",
                                  .nodes = 8,
                                  .metrics = 1,
                                  .bad_metrics = 1,
                                  .shift = 0.08,
                                  .share = 0.125,
                                  .seed = 228},
               500);
    CHECK(outcome_recall(&o) >= 0.75 && outcome_precision(&o) >= 0.95, "one of eight");
    o = judged(&(struct scenario){.name = "G class of 16, one +8 %",
                                  .nodes = 16,
                                  .metrics = 1,
                                  .bad_metrics = 1,
                                  .shift = 0.08,
                                  .share = 0.0625,
                                  .seed = 227},
               500);
    CHECK(outcome_recall(&o) >= 0.92 && outcome_precision(&o) >= 0.93, "one of sixteen");
}

static void test_past(void)
{
    struct outcome o = judged(&(struct scenario){.name = "D own past, +3 %",
                                                 LARGE,
                                                 .shift = 0.03,
                                                 .share = 0.01,
                                                 .past = 20,
                                                 .seed = 231},
                              3);
    CHECK(outcome_recall(&o) >= 0.995 && outcome_precision(&o) >= 0.98, "3 %% slower than before");
    CHECK((double)o.sure / (o.sure + o.sure_wrong) >= 0.99, "surely");
}

// Nothing is wrong in these fleets, but a tenth of the nodes scatters more.
static void test_noisy_nodes(void)
{
    static const struct {
        const char *name;
        int past, history, metrics, most; // most: alarmed of FLEETS
        double louder;
        bool together;
    } list[] = {
        {"N own past, x3", 20, 0, 1, 16, 3, false},
        {"N own past, x10", 20, 0, 1, 16, 10, false},
        {"N own past, x10, 8 metrics alike", 20, 0, 8, 16, 10, true},
        {"N peers, 25 runs, x3", 0, 20, 1, 16, 3, false},
        {"N peers, 25 runs, x10", 0, 20, 1, 16, 10, false},
        {"N peers, 25 runs, x10, 8 metrics", 0, 20, 8, 16, 10, false},
        {"N peers, 5 runs, x10", 0, 0, 1, 16, 10, false},
    };
    enum { FLEETS = 200 };
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        struct scenario s = {.name = list[i].name,
                             .nodes = 100,
                             .metrics = list[i].metrics,
                             .past = list[i].past,
                             .history = list[i].history,
                             .node = 0.005,
                             .run = 0.01,
                             .noisy = 0.1,
                             .louder = list[i].louder,
                             .together = list[i].together,
                             .seed = 261 + i};
        struct outcome o = judged(&s, FLEETS);
        CHECK(o.alarmed <= list[i].most && o.sure_alarmed <= 4,
              "%s: noisy nodes are no alarms: %d, sure %d", s.name, o.alarmed, o.sure_alarmed);
    }
    struct outcome o = judged(&(struct scenario){.name = "N the same, 1 % +8 %",
                                                 CLASS,
                                                 .shift = 0.08,
                                                 .share = 0.01,
                                                 .history = 20,
                                                 .noisy = 0.1,
                                                 .louder = 10,
                                                 .seed = 268},
                              10);
    CHECK(outcome_recall(&o) >= 0.99 && outcome_precision(&o) >= 0.9,
          "slow nodes among them are found, and few others");
}

// Few runs do not show which nodes are the noisy ones.
static void test_noisy_nodes_of_few_runs(void)
{
    static const struct {
        const char *name;
        int metrics, runs;
        double louder;
        bool together;
    } list[] = {
        {"N peers of 1,000, 5 runs, x3", 1, 5, 3, false},
        {"N peers of 1,000, 5 runs, x10", 1, 5, 10, false},
        {"N peers of 1,000, 3 runs, x10", 1, 3, 10, false},
        {"N peers of 1,000, 5 runs, x3, 8 metrics", 8, 5, 3, false},
        {"N peers of 1,000, 5 runs, x3, 8 metrics alike", 8, 5, 3, true},
    };
    enum { FLEETS = 60, MOST = 3, MOST_SURE = 1 };
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        struct scenario s = {.name = list[i].name,
                             .nodes = 1000,
                             .metrics = list[i].metrics,
                             .newest = list[i].runs,
                             .node = 0.005,
                             .run = 0.01,
                             .noisy = 0.1,
                             .louder = list[i].louder,
                             .together = list[i].together,
                             .seed = 291 + i};
        struct outcome o = judged(&s, list[i].metrics > 1 ? FLEETS / 3 : FLEETS);
        CHECK(o.alarmed <= MOST && o.sure_alarmed <= MOST_SURE,
              "%s: noisy nodes are no alarms: %d, sure %d", s.name, o.alarmed, o.sure_alarmed);
    }
    struct outcome o = judged(&(struct scenario){.name = "N 8 metrics, 5 runs, x3, 1 % +3 %",
                                                 .nodes = 1000,
                                                 .metrics = 8,
                                                 .bad_metrics = 8,
                                                 .shift = 0.03,
                                                 .share = 0.01,
                                                 .node = 0.005,
                                                 .run = 0.01,
                                                 .noisy = 0.1,
                                                 .louder = 3,
                                                 .seed = 296},
                              5);
    CHECK(outcome_recall(&o) >= 0.95 && outcome_precision(&o) >= 0.9,
          "means over metrics that err apart tell slow nodes from noisy ones");
}

// Values on a grid, of which runs take the next one now and then.
static void test_coarse(void)
{
    static const int sizes[] = {16, 100, 1000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (int part = 1; part <= 3; part++)
            for (int past = 0; past < 2; past++) {
                struct outcome o =
                    judged(&(struct scenario){.name = past ? "S coarse, own past" : "S coarse",
                                              .nodes = sizes[i],
                                              .metrics = 6,
                                              .past = past ? 20 : 0,
                                              .step = 0.2,
                                              .stepped = 0.1 * part,
                                              .together = part == 2,
                                              .seed = 271 + i},
                           10);
                CHECK(o.alarmed == 0 && o.grouped == 0, "a step that runs take is no finding");
            }
}

// Nodes with 25 runs of which all have 90: the grade of node 2 where its first runs are `x` more,
// and runs of other nodes are a step of 0.2 more now and then.
static enum peers_grade coarse_grade(int nodes, double x, int first, double stepped, bool past)
{
    enum { NODES = 40, RUNS = NEWEST_RUNS + BEFORE_RUNS };
    static float v[NODES][RUNS];
    static int32_t day[NODES][RUNS];
    const int probe[1] = {0};
    const bool more[1] = {false};
    struct peers_input in = {nodes, 1, RUNS, 1, &v[0][0], &day[0][0], probe, more};
    const struct peers_options o = PEERS_DEFAULTS;
    unsigned long long seed = 281;
    struct newest n;
    struct peers p;
    for (int i = 0; i < nodes; i++)
        for (int r = 0; r < RUNS; r++) {
            double more_now = sim_share(&seed) < stepped ? 0.2 : 0;
            v[i][r] = (float)(90 * exp(i == 2 && r < first ? x : more_now));
            day[i][r] = 20000 - r;
        }
    CHECK(newest_find(&n, &in, true, NULL) == 0, "medians");
    struct peers_table t = sim_table(&n);
    CHECK((past ? past_judge(&p, &in, &n, 1, NULL) : peers_judge(&p, &t, 1, &o, NULL)) == 0,
          "judged");
    enum peers_grade grade = p.list[0].node[2].grade;
    for (int i = 0; i < nodes; i++)
        CHECK(i == 2 || p.list[0].node[i].grade == PEERS_FINE, "the others are fine");
    peers_fini(&p);
    newest_fini(&n);
    return grade;
}

static void test_coarse_by_hand(void)
{
    CHECK(coarse_grade(40, 0.2, 25, 0, false) == PEERS_SURE, "a level that no run of a peer has");
    CHECK(coarse_grade(40, 0.2, 5, 0, true) == PEERS_SURE, "nor an earlier one of the node");
    CHECK(coarse_grade(40, 0.8, 25, 0.1, false) == PEERS_SURE,
          "four steps are a finding in any case");
    CHECK(coarse_grade(40, 0.2, 25, 0.1, false) == PEERS_FINE, "one step that others take is none");
    CHECK(coarse_grade(40, 0.2, 5, 0.1, true) == PEERS_FINE, "neither against its own past");
    CHECK(coarse_grade(5, 0.2, 3, 0.2, true) == PEERS_FINE, "nor in a class of five");
    CHECK(coarse_grade(5, 0.2, 5, 0, true) == PEERS_SUSPECT, "where a step of no other run is one");
}

// A change of 8 %, in the newest three of 25 runs or earlier, is no scatter.
static void test_change_is_no_scatter(void)
{
    enum { NODES = 40, RUNS = NEWEST_RUNS + BEFORE_RUNS };
    static float v[NODES][RUNS];
    static int32_t day[NODES][RUNS];
    const int probe[1] = {0};
    const bool more[1] = {false};
    const struct peers_options o = PEERS_DEFAULTS;
    struct peers_input in = {NODES, 1, RUNS, 1, &v[0][0], &day[0][0], probe, more};
    for (int slow = 3; slow <= 15; slow += 3) {
        unsigned long long seed = 291;
        struct newest n;
        struct peers p;
        for (int i = 0; i < NODES; i++) {
            double level = 0.01 * sim_normal(&seed);
            for (int r = 0; r < RUNS; r++) {
                double x = (i == 7 ? 0 : level) + 0.005 * sim_normal(&seed);
                v[i][r] = (float)(90 * exp(x + (i == 7 && r < slow ? 0.08 : 0)));
                day[i][r] = 20000 - r;
            }
        }
        CHECK(newest_find(&n, &in, false, NULL) == 0, "medians");
        struct peers_table t = sim_table(&n);
        CHECK(peers_judge(&p, &t, 1, &o, NULL) == 0 && p.list[0].node[7].q < 0.01,
              "slow since %d runs: %g", slow, p.list[0].node[7].q);
        peers_fini(&p);
        newest_fini(&n);
    }
}

static void test_rollouts(void)
{
    static const struct rollout list[] = {{1000, 50, 8, 0, 0.2, 241},
                                          {1000, 50, 8, 0.005, 0.2, 242}};
    for (int i = 0; i < 2; i++) {
        struct rollouts r = sim_rollouts(&list[i], 60);
        printf("# seed %llu: %+.1f %%: estimate %+.3f %% sd %.3f %%, covered %d, called %d of %d\n",
               list[i].seed, 100 * list[i].effect, r.mean, r.deviation, r.covered, r.called, r.n);
        CHECK(r.covered >= 0.93 * r.n, "the interval covers the truth");
        CHECK(i ? r.called == r.n : r.called <= 0.07 * r.n,
              "an effect is called one, and only that");
    }
    struct effect e;
    unsigned long long seed = 243;
    struct rollout all = {100, 50, 1, 0.05, 0, 243};
    CHECK(sim_rollout(&e, &all, &seed) == 0 && e.verdict == EFFECT_NO_CONTROLS, "no controls");
    CHECK(e.treated == 100 && fabs(e.percent - 5) < 2 && isnan(e.lo), "before and after are shown");
    struct rollout few = {100, 22, 1, 0.05, 0.5, 244};
    CHECK(sim_rollout(&e, &few, &seed) == 0 && e.verdict == EFFECT_FEW_RUNS && isnan(e.percent),
          "two runs after it are too few");
}

int main(void)
{
    test_spread();
    test_near_by_chance();
    test_levels();
    test_kinds();
    test_by_hand();
    test_small_class();
    test_from_birth();
    test_shapes();
    test_past();
    test_noisy_nodes();
    test_noisy_nodes_of_few_runs();
    test_coarse();
    test_coarse_by_hand();
    test_change_is_no_scatter();
    test_rollouts();
    return tap_done();
}

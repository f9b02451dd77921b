// SPDX-License-Identifier: Apache-2.0
// The scan on simulated machines, which have a time for everything, noise and disturbances: what is
// slow is found, on machines where nothing is slow nothing is, and the budget is kept.
#include "bench/session/scan_course.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/odd.h"
#include "base/cleanup.h"
#include "bench/session/pair_choice.h"
#include "model/scan.h"
#include "model/topology.h"
#include "tests/unit/analysis/simulate.h"
#include "tests/unit/tap.h"

enum { RANKS_MAX = 1024, PAIRS_MOST = 4096, VISITS = 9 };

static const double NOISE = 0.01, LEAST = 1.05;

// --- The machine ---------------------------------------------------------------------------------

struct machine {
    const char *name;
    int sockets, nodes, caches, cores; // of each: nodes a socket, caches a node, cores a cache
    int weak;                          // of the cores of a cache, that are another kind
};

struct sick {
    int rank, llc, node, pair; // that is slow; -1: none
    double times;
    enum aspect aspect;
};

struct world {
    const struct machine *machine;
    int ranks;
    struct scan_place places[RANKS_MAX];
    struct pair_rounds rounds; // owned
    struct sick sick, other;   // what is slow; other: a second thing
    unsigned long long seed;
    double noise, disturbed, drift, apart; // drift: over the run; apart: what alike cores differ by
    double of_rank[RANKS_MAX];             // by which they do
    double speed;                          // of the machine, for the time that things take
    double now_s;
    int visits, faults; // faults: how many things are slow
};

static void world_fini(struct world *w)
{
    pair_rounds_fini(&w->rounds);
}

static int world_make(struct world *w, const struct machine *m, int pairs, unsigned long long seed)
{
    int llc_of[RANKS_MAX], core_of[RANKS_MAX];
    struct err err = {0};
    *w = (struct world){.machine = m,
                        .seed = seed,
                        .noise = NOISE,
                        .disturbed = 0.12,
                        .speed = 1,
                        .faults = 1,
                        .sick = {-1, -1, -1, -1, 1, ASPECT_L2},
                        .other = {-1, -1, -1, -1, 1, ASPECT_L2}};
    w->ranks = m->sockets * m->nodes * m->caches * m->cores;
    for (int r = 0; r < w->ranks; r++) {
        int llc = r / m->cores, node = llc / m->caches;
        w->places[r] = (struct scan_place){r, llc, node, node / m->nodes, r % m->cores < m->weak};
        llc_of[r] = llc;
        core_of[r] = r;
    }
    return pair_choice_make(&w->rounds, llc_of, core_of, w->ranks, pairs, &err);
}

// Alike cores are a little apart, as on any machine.
static void world_set_apart(struct world *w, double apart)
{
    for (int r = 0; r < w->ranks; r++)
        w->of_rank[r] = apart * sim_normal(&w->seed);
}

// Nine of ten samples are near what they should be, some are much too slow, none too fast.
static double world_noise(struct world *w)
{
    double u = (double)(dist_next(&w->seed) >> 11) / 9007199254740992.0;
    double x = 1 + w->noise * sim_normal(&w->seed);
    if (u < w->disturbed)
        x *= 1.2 + 1.6 * (double)(dist_next(&w->seed) >> 11) / 9007199254740992.0;
    return x * (1 + w->drift * w->now_s / 60);
}

static double sick_times(const struct sick *s, const struct scan_place *p, int rank,
                         enum aspect aspect)
{
    bool is = s->rank == rank || s->llc == p->llc || s->node == p->node;
    return is && aspect == s->aspect ? s->times : 1;
}

static double world_sickness(const struct world *w, int rank, enum aspect aspect)
{
    const struct scan_place *p = &w->places[rank];
    return sick_times(&w->sick, p, rank, aspect) * sick_times(&w->other, p, rank, aspect);
}

static int world_take_ranks(void *context, enum aspect aspect, int times, double *values,
                            struct err *err)
{
    static const double usual[] = {4.2, 110, 2000};
    struct world *w = context;
    (void)err;
    for (int r = 0; r < w->ranks; r++) {
        double x = world_noise(w) * world_sickness(w, r, aspect) * (1 + w->of_rank[r]) *
                   (w->places[r].kind ? 1.3 : 1);
        values[r] = aspect == ASPECT_BANDWIDTH ? usual[aspect] / x : usual[aspect] * x;
    }
    w->now_s += w->speed * (0.05 + 0.1 * times + 4e-6 * w->ranks);
    return 0;
}

static enum pair_class world_class(const struct world *w, int a, int b)
{
    const struct scan_place *x = &w->places[a], *y = &w->places[b];
    return x->llc == y->llc           ? PAIR_L3
           : x->node == y->node       ? PAIR_NODE
           : x->package == y->package ? PAIR_SOCKET
                                      : PAIR_REMOTE;
}

static int world_take_pairs(void *context, int round, int times, double *values, struct err *err)
{
    static const double usual[PAIR_CLASSES] = {30, 45, 110, 140, 320};
    struct world *w = context;
    (void)err;
    for (int p = w->rounds.begin[round]; p < w->rounds.begin[round + 1]; p++) {
        int a = w->rounds.pairs[p][0], b = w->rounds.pairs[p][1];
        double way = 1 + 0.03 * sin(w->places[a].llc * 7.0 + w->places[b].llc * 3.0);
        double x = usual[world_class(w, a, b)] * way * world_noise(w);
        x *= world_sickness(w, a, ASPECT_TRANSFER) * world_sickness(w, b, ASPECT_TRANSFER);
        x *= w->sick.pair == p ? w->sick.times : 1;
        *values++ = w->other.pair == p ? x * w->other.times : x;
    }
    w->now_s += w->speed * (0.002 * times + 4e-6 * w->ranks);
    return 0;
}

static double world_elapsed_s(void *context)
{
    return ((struct world *)context)->now_s;
}

static int world_progress(void *context, double share, struct err *err)
{
    (void)err;
    ((struct world *)context)->visits += share > 0;
    return 0;
}

static bool world_stopped(void *context)
{
    (void)context;
    return false;
}

// --- What is found -------------------------------------------------------------------------------

struct found {
    int all;      // odd units
    int right;    // that are the sick one
    double ratio; // of the sick one
    int broad, confirmed;
    bool doubtful; // candidates are left that there was no time to confirm
    double took_s;
};

static void found_count(struct found *f, const struct odd_units *u, int right, int other)
{
    for (int i = 0; i < u->n; i++) {
        f->all += u->list[i].odd;
        f->right += u->list[i].odd && (i == right || i == other);
        if (i == right && u->list[i].odd)
            f->ratio = u->list[i].ratio;
    }
}

// The unit of a level that is slow; -1: none is.
static int sick_unit(const struct scan_course *c, const struct machine *m, const struct sick *s,
                     enum scan_level_id level, int aspect)
{
    int rank = level == SCAN_NODE ? s->node * m->caches * m->cores
               : level == SCAN_L3 ? s->llc * m->cores
                                  : s->rank;
    return rank < 0 || aspect != (int)s->aspect ? -1 : c->levels[level].unit[rank];
}

static struct found scan_world(struct world *w, double budget_s)
{
    struct found f = {0};
    struct err err = {0};
    const struct machine *m = w->machine;
    const struct scan_machine measured = {
        w, world_take_ranks, world_take_pairs, world_elapsed_s, world_progress, world_stopped};
    struct scan_course c = {.ranks = w->ranks,
                            .places = w->places,
                            .rounds = &w->rounds,
                            .visits = VISITS,
                            .budget_s = budget_s,
                            .least = LEAST};
    if (scan_course_init(&c, &err) < 0 || scan_course_run(&c, &measured, &err) < 0)
        return (struct found){.all = -1};
    for (int a = 0; a < AXIS_ASPECTS; a++)
        for (int k = 0; k < SCAN_LEVELS; k++)
            found_count(&f, &c.found[k][a], sick_unit(&c, m, &w->sick, (enum scan_level_id)k, a),
                        sick_unit(&c, m, &w->other, (enum scan_level_id)k, a));
    found_count(&f, &c.pairs, w->sick.pair, w->other.pair);
    f.broad = c.broad;
    f.confirmed = c.confirmed;
    f.doubtful = c.open > 0;
    f.took_s = w->now_s;
    scan_course_fini(&c);
    return f;
}

// --- Machines with something slow ----------------------------------------------------------------

// 24 nodes of eight cores behind a cache each; 512 CPUs in eight nodes; sixteen sockets.
static const struct machine large[] = {
    {"2 sockets, 24 nodes, 192 cores", 2, 12, 1, 8, 0},
    {"8 nodes, 512 CPUs", 2, 4, 4, 16, 0},
    {"16 sockets, 448 cores", 16, 1, 1, 28, 0},
};
static const struct machine small = {"2 sockets, 8 caches, 32 cores", 2, 1, 4, 4, 0};

struct tally {
    int runs, found, alarms; // found: of the sick one; alarms: runs with anything else
    double ratio;            // mean
};

typedef void sicken(struct world *w);

static struct tally try_machine(const struct machine *m, int pairs, int runs,
                                unsigned long long seed, sicken *make_sick)
{
    struct tally t = {.runs = runs};
    for (int i = 0; i < runs; i++) {
        struct world w CLEANUP(world_fini) = {0};
        if (world_make(&w, m, pairs, seed + (unsigned long long)i) < 0)
            return (struct tally){0};
        make_sick(&w);
        struct found f = scan_world(&w, 60);
        t.found += f.right == w.faults;
        t.alarms += f.all != f.right;
        t.ratio += f.ratio / runs;
    }
    return t;
}

static void healthy(struct world *w)
{
    (void)w;
}

static void slow_core_l2(struct world *w)
{
    w->sick.rank = dist_below(&w->seed, w->ranks);
    w->sick.times = 1.1;
}

static void slow_core_memory(struct world *w)
{
    slow_core_l2(w);
    w->sick.aspect = ASPECT_MEMORY;
}

static void slow_core_bandwidth(struct world *w)
{
    slow_core_l2(w);
    w->sick.aspect = ASPECT_BANDWIDTH;
}

static void slow_core_transfer(struct world *w)
{
    slow_core_l2(w);
    w->sick.aspect = ASPECT_TRANSFER;
}

static void slow_cache(struct world *w)
{
    w->sick.llc = dist_below(&w->seed, w->ranks / w->machine->cores);
    w->sick.times = 1.1;
}

static void slow_node(struct world *w)
{
    w->sick.node = dist_below(&w->seed, w->machine->sockets * w->machine->nodes);
    w->sick.times = 1.1;
    w->sick.aspect = ASPECT_BANDWIDTH;
}

static void slow_pair(struct world *w)
{
    w->sick.pair = dist_below(&w->seed, w->rounds.n_pairs);
    w->sick.times = 1.1;
    w->sick.aspect = ASPECT_TRANSFER;
}

// Below the limit: nothing to name.
static void slightly_slow_core(struct world *w)
{
    slow_core_l2(w);
    w->sick.times = 1.035;
}

static void slightly_slow_node(struct world *w)
{
    slow_node(w);
    w->sick.times = 1.035;
}

static void slightly_slow_pair(struct world *w)
{
    slow_pair(w);
    w->sick.times = 1.035;
}

static void add_core(struct world *w, int rank, enum aspect aspect)
{
    w->other = (struct sick){rank, -1, -1, -1, 1.1, aspect};
    w->faults = 2;
}

// Half of a cache of four: it is slow itself as often as a third core is disturbed.
static void two_cores_of_a_cache(struct world *w)
{
    slow_core_l2(w);
    w->sick.rank -= w->sick.rank % w->machine->cores;
    add_core(w, w->sick.rank + 1, ASPECT_L2);
}

static void two_aspects_of_a_core(struct world *w)
{
    slow_core_l2(w);
    add_core(w, w->sick.rank, ASPECT_MEMORY);
}

static void node_and_its_core(struct world *w)
{
    slow_node(w);
    add_core(w, w->sick.node * w->machine->caches * w->machine->cores + 1, ASPECT_BANDWIDTH);
}

static void two_nodes(struct world *w)
{
    slow_node(w);
    w->other = w->sick;
    w->other.node = (w->sick.node + 1) % (w->machine->sockets * w->machine->nodes);
    w->faults = 2;
}

static void pair_and_core(struct world *w)
{
    slow_pair(w);
    add_core(w, dist_below(&w->seed, w->ranks), ASPECT_TRANSFER);
}

static void two_kinds(struct world *w)
{
    (void)w;
}

static void drifting(struct world *w)
{
    w->drift = 0.5;
}

static void quiet(struct world *w)
{
    w->disturbed = 0;
}

// Alike cores differ by as much for good: none of them is odd.
static void apart(struct world *w)
{
    world_set_apart(w, 0.02);
}

static void expect_found(const struct machine *m, int pairs, int runs, unsigned long long seed,
                         sicken *how, const char *what)
{
    struct tally t = try_machine(m, pairs, runs, seed, how);
    int found_least = runs * 95 / 100, alarms_most = (runs + 99) / 100;
    CHECK(t.runs == runs && t.found >= found_least && t.alarms <= alarms_most,
          "%s, %s: found in %d of %d, ratio %.3f; something else in %d (seeds from %llu)", m->name,
          what, t.found, runs, t.ratio, t.alarms, seed);
}

static void expect_nothing(const struct machine *m, int pairs, int runs, unsigned long long seed,
                           sicken *how, const char *what)
{
    struct tally t = try_machine(m, pairs, runs, seed, how);
    CHECK(t.runs == runs && t.alarms <= (runs + 99) / 100,
          "%s, %s: something in %d of %d (seeds from %llu)", m->name, what, t.alarms, runs, seed);
}

static void test_small(void)
{
    static const struct machine hybrid = {"8 strong and 8 weak cores", 1, 1, 2, 8, 4};
    enum { RUNS = 1000, FEWER = 200, PAIR_RUNS = 50 };
    expect_nothing(&small, 0, RUNS, 1, healthy, "nothing slow");
    expect_nothing(&small, 0, FEWER, 10001, quiet, "nothing slow, nothing disturbed");
    expect_found(&small, 0, RUNS, 20001, slow_core_l2, "a core, L2 10 % slower");
    expect_found(&small, 0, FEWER, 30001, slow_cache, "an L3's cores 10 % slower");
    expect_nothing(&small, 0, FEWER, 50001, drifting, "times that drift by half");
    expect_nothing(&hybrid, 0, FEWER, 60001, two_kinds, "two kinds, 30 % apart");
    expect_nothing(&small, 0, FEWER, 70001, apart, "cores that differ by 2 %");
    expect_nothing(&small, PAIRS_MOST, PAIR_RUNS, 80001, healthy, "nothing slow, with pairs");
    expect_found(&small, PAIRS_MOST, PAIR_RUNS, 40001, slow_core_transfer, "a core's transfers");
    expect_found(&small, PAIRS_MOST, PAIR_RUNS, 90001, slow_pair, "a pair 10 % slower");
    expect_nothing(&small, PAIRS_MOST, PAIR_RUNS, 95001, slightly_slow_pair, "a pair 3.5 %");
    expect_found(&small, 0, RUNS, 700001, two_cores_of_a_cache, "two cores of a cache of four");
    expect_nothing(&small, 0, FEWER, 710001, slightly_slow_core, "a core 3.5 %");
}

static void test_large(void)
{
    enum { RUNS = 100, FEWER = 20, PAIR_RUNS = 3 };
    for (int i = 0; i < COUNT_OF(large); i++) {
        const struct machine *m = &large[i];
        unsigned long long seed = 100001 + 10000 * (unsigned long long)i;
        expect_nothing(m, 0, RUNS, seed, healthy, "nothing slow");
        expect_found(m, 0, RUNS, seed + 1000, slow_core_l2, "a core, L2 10 % slower");
        expect_found(m, 0, RUNS, seed + 2000, slow_core_memory, "a core, memory");
        expect_found(m, 0, RUNS, seed + 3000, slow_core_bandwidth, "a core, bandwidth");
        expect_found(m, 0, RUNS, seed + 4000, slow_node, "a node, bandwidth 10 %");
        expect_found(m, 0, FEWER, seed + 5000, two_aspects_of_a_core, "a core in two aspects");
        expect_found(m, 0, FEWER, seed + 5200, node_and_its_core, "a node and a core of it");
        expect_found(m, 0, FEWER, seed + 5400, two_nodes, "two nodes");
        expect_found(m, PAIRS_MOST, PAIR_RUNS, seed + 5600, pair_and_core, "a pair and a core");
        expect_nothing(m, 0, FEWER, seed + 5700, slightly_slow_core, "a core 3.5 %");
        expect_nothing(m, 0, FEWER, seed + 5800, slightly_slow_node, "a node 3.5 %");
        expect_nothing(m, PAIRS_MOST, PAIR_RUNS, seed + 6000, healthy, "nothing slow, with pairs");
    }
}

// --- Time ----------------------------------------------------------------------------------------

// Machines of a third to five times the speed that was assumed, with and without something slow.
static void test_budget(void)
{
    enum { PLANS = 100 };
    int kept = 0, found = 0;
    double worst = 0;
    for (int i = 0; i < PLANS; i++) {
        struct world w CLEANUP(world_fini) = {0};
        double budget = 10 + 3 * (i % 30);
        world_make(&w, &large[i % COUNT_OF(large)], i % 10 ? 0 : PAIRS_MOST,
                   200001 + (unsigned long long)i);
        w.speed = exp(log(5) * (2.0 * dist_below(&w.seed, 1000) / 1000 - 1));
        w.now_s = 2; // what starting the ranks took
        if (i % 2)
            slow_core_l2(&w);
        struct found f = scan_world(&w, budget);
        kept += f.took_s <= 1.1 * budget;
        found += f.right;
        worst = fmax(worst, f.took_s / budget);
    }
    CHECK(kept == PLANS, "budget kept within 10 %% by %d of %d plans, at most %.2f of it", kept,
          PLANS, worst);
    CHECK(found > PLANS / 4, "the slow core was found in %d of %d", found, PLANS / 2);
}

// Two broad visits, or four, and no time to confirm: what is slow is not silently alike.
static void test_tiny_budget(void)
{
    enum { RUNS = 60 };
    int seen = 0, broad_least = VISITS, broad_most = 0;
    for (int i = 0; i < RUNS; i++) {
        struct world w CLEANUP(world_fini) = {0};
        world_make(&w, &large[i % COUNT_OF(large)], 0, 400001 + (unsigned long long)i);
        slow_core_l2(&w);
        struct found f = scan_world(&w, i % 2 ? 1 : 2.1);
        seen += f.right || f.doubtful;
        broad_least = f.broad < broad_least ? f.broad : broad_least;
        broad_most = f.broad > broad_most ? f.broad : broad_most;
    }
    CHECK(seen == RUNS && broad_least == 2 && broad_most == 4,
          "a core 10 %% slower is odd or in doubt in %d of %d runs with %d to %d broad visits",
          seen, RUNS, broad_least, broad_most);
}

static void test_pairs_time(void)
{
    enum { SECONDS_MOST = 120 };
    struct world w CLEANUP(world_fini) = {0};
    world_make(&w, &large[1], PAIRS_MOST, 300001);
    double v[RANKS_MAX];
    for (int visit = 0; visit < 2 * VISITS; visit++)
        for (int k = 0; k < w.rounds.n_rounds; k++)
            world_take_pairs(&w, k, visit < VISITS ? 1 : SCAN_LONGER, v, NULL);
    CHECK(w.now_s <= SECONDS_MOST, "pairs of %d CPUs: %d in %d rounds, %d visits in %.1f s",
          w.ranks, w.rounds.n_pairs, w.rounds.n_rounds, 2 * VISITS, w.now_s);
}

// --- Pairs ---------------------------------------------------------------------------------------

static void check_choice(const struct machine *m)
{
    struct world w CLEANUP(world_fini) = {0};
    int of_rank[RANKS_MAX] = {0}, links = 0, few = RANKS_MAX, wrong = 0;
    world_make(&w, m, PAIRS_MOST, 1);
    int caches = w.ranks / m->cores;
    CLEANUP_MEM int *of_link = calloc((size_t)caches * (size_t)caches, sizeof *of_link);
    CLEANUP_MEM char *seen = calloc((size_t)w.ranks, (size_t)w.ranks);
    for (int k = 0; k < w.rounds.n_rounds; k++) {
        bool busy[RANKS_MAX] = {false};
        for (int p = w.rounds.begin[k]; p < w.rounds.begin[k + 1]; p++) {
            int a = w.rounds.pairs[p][0], b = w.rounds.pairs[p][1];
            wrong += a >= b || seen[a * w.ranks + b]++ || busy[a] || busy[b];
            busy[a] = busy[b] = true;
            of_rank[a]++;
            of_rank[b]++;
            of_link[w.places[a].llc * caches + w.places[b].llc]++;
        }
    }
    for (int r = 0; r < w.ranks; r++)
        few = of_rank[r] < few ? of_rank[r] : few;
    int least = PAIRS_MOST;
    for (int a = 0; a < caches; a++)
        for (int b = a; b < caches; b++, links++) {
            int n = of_link[a * caches + b] + (a == b ? 0 : of_link[b * caches + a]);
            least = n < least ? n : least;
        }
    CHECK(!wrong && w.rounds.n_pairs <= PAIRS_MOST && few >= 3 && least >= 1,
          "%s: %d pairs in %d rounds; each core in %d at least, each of %d links in %d", m->name,
          w.rounds.n_pairs, w.rounds.n_rounds, few, links, least);
}

// More links than pairs: each core has some pairs, and each cache has some inside.
static void check_small_caches(const struct machine *m)
{
    struct world w CLEANUP(world_fini) = {0};
    int of_rank[RANKS_MAX] = {0}, inside[RANKS_MAX] = {0}, few = RANKS_MAX, none = 0;
    world_make(&w, m, PAIRS_MOST, 1);
    for (int p = 0; p < w.rounds.n_pairs; p++) {
        int a = w.rounds.pairs[p][0], b = w.rounds.pairs[p][1];
        of_rank[a]++;
        of_rank[b]++;
        inside[w.places[a].llc] += w.places[a].llc == w.places[b].llc;
    }
    for (int r = 0; r < w.ranks; r++) {
        few = of_rank[r] < few ? of_rank[r] : few;
        none += !inside[w.places[r].llc];
    }
    CHECK(few >= 4 && !none, "%s: each core in %d pairs at least; %d without one in their cache",
          m->name, few, none);
}

static void test_choice(void)
{
    static const struct machine of_small[] = {{"128 caches of 4 cores", 2, 4, 16, 4, 0},
                                              {"256 caches of 2 cores", 4, 4, 16, 2, 0},
                                              {"128 caches of 8 cores", 4, 4, 8, 8, 0}};
    for (int i = 0; i < COUNT_OF(of_small); i++)
        check_small_caches(&of_small[i]);

    static const int group[] = {0, 0, 1, 1, 1, 2}, core[] = {0, 0, 1, 2, 3, -1}, one[] = {0, 0};
    struct pair_rounds r CLEANUP(pair_rounds_fini) = {0}, two CLEANUP(pair_rounds_fini) = {0};
    struct err err = {0};
    for (int i = 0; i < COUNT_OF(large); i++)
        check_choice(&large[i]);
    check_choice(&small);
    CHECK(pair_choice_make(&r, group, core, 6, 100, &err) == 0 && r.n_pairs == 15,
          "all pairs of six ranks, two of which share a core: %d", r.n_pairs);
    CHECK(pair_choice_make(&two, one, core + 1, 2, 100, &err) == 0 && two.n_pairs == 1,
          "two ranks are a pair");
}

int main(void)
{
    struct odd_unit u = {.candidate = true, .visits = SCAN_VISITS_LEAST, .above = 3};
    CHECK(!odd_is_open(&u, 1) && odd_is_open(&u, 1000), "as few visits as confirm one candidate");
    u.visits--;
    CHECK(odd_is_open(&u, 1), "one visit less does not");
    u.above = 1;
    CHECK(!odd_is_open(&u, 1), "most visits that confirm are within the limit");
    test_choice();
    test_tiny_budget();
    test_pairs_time();
    test_budget();
    test_small();
    test_large();
    return tap_done();
}

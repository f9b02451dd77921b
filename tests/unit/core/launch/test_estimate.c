// SPDX-License-Identifier: Apache-2.0
// Time estimates of plans on synthetic machines: what must grow grows, and what quick saves is
// saved. That they are near the truth is shown by tests/perf/estimates.py.
#include <math.h>

#include "base/cleanup.h"
#include "core/launch/planner.h"
#include "model/budget.h"
#include "model/estimate.h"
#include "model/workload.h"
#include "tests/unit/core/node/synthetic.h"
#include "tests/unit/tap.h"

// Two sockets, each a node of eight cores with one last-level cache; and twelve such nodes.
static const char two_nodes[] = "pack:2 [numa(memory=68719476736)] l3:1(size=33554432) core:8 pu:1";
static const char twelve_nodes[] =
    "pack:12 [numa(memory=68719476736)] l3:1(size=33554432) core:8 pu:1";

// A plan with its estimate; 0 on failure.
static double planned_s(struct plan *p, struct workload *w, const struct spec *s,
                        const struct topology *t, struct err *err)
{
    if (plan_make(p, s, t, err) < 0 || workload_make(w, s, p, t, err) < 0)
        return 0;
    return estimate_s(s, w);
}

static double seconds(const struct topology *t, const char *request)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct workload w CLEANUP(workload_fini) = {0};
    struct spec s;
    struct err err = {0};
    CLEANUP_JSON struct json *j = json_parse(request, strlen(request), &err);
    bool read = j && spec_from_json(&s, j, NULL, &err) == 0;
    double took = read ? planned_s(&p, &w, &s, t, &err) : 0;
    if (took <= 0)
        CHECK(false, "%s: %s", request, err.text);
    return took;
}

static void expect_more(const struct topology *t, const char *less, const char *more, double times)
{
    double a = seconds(t, less), b = seconds(t, more);
    CHECK(b > times * a, "%s: %.1f s, more than %.1f times %s: %.1f s", more, b, times, less, a);
}

static void every_benchmark(const struct topology *t, const struct topology *larger)
{
    for (int i = 0; i < BENCHMARKS; i++) {
        char request[120], quick[140];
        snprintf(request, sizeof request, "{\"benchmark\":\"%s\"}", benchmarks[i].name);
        snprintf(quick, sizeof quick, "{\"benchmark\":\"%s\",\"quick\":true}", benchmarks[i].name);
        double usual = seconds(t, request), soon = seconds(t, quick);
        CHECK(isfinite(usual) && usual > 0.1 && soon > 0.1 && soon < usual,
              "%s: %.1f s, quick %.1f s", benchmarks[i].name, usual, soon);
        CHECK(seconds(larger, request) >= usual, "%s on six times the nodes: %.1f s",
              benchmarks[i].name, seconds(larger, request));
    }
}

// Fewer pages fit the same memory, so there are fewer numbers of pages to measure.
static void large_pages(void)
{
    static const char request[] = "{\"benchmark\":\"hierarchy\",\"size\":\"512M\"}";
    struct topology t CLEANUP(topology_fini) = synthetic(two_nodes);
    t.pages = (struct page_sizes){4096, 2 << 20, 2 << 20};
    double usual = seconds(&t, request);
    t.pages = (struct page_sizes){65536, 512 << 20, 512 << 20};
    double large = seconds(&t, request);
    CHECK(large < 0.85 * usual, "hierarchy with pages of 64 KiB and 512 MiB: %.1f s, not %.1f",
          large, usual);
    t.pages = (struct page_sizes){0};
    CHECK(seconds(&t, request) == usual, "pages that are not known are the usual ones");
}

// Every benchmark fits a budget between its least and its usual time, by effort and fewer pairs
// alone.
static void budgets(const struct topology *t)
{
    for (int i = 0; i < BENCHMARKS; i++) {
        struct plan p CLEANUP(plan_fini) = {0};
        struct workload w CLEANUP(workload_fini) = {0};
        struct spec s, measured;
        struct err err = {0};
        CLEANUP_BUF struct buf text = BUF_INIT;
        spec_init(&s, (enum benchmark_id)i);
        double usual = planned_s(&p, &w, &s, t, &err);
        if (usual <= 0)
            CHECK(false, "%s: %s", benchmarks[i].name, err.text);
        int fitted = 0;
        for (s.budget_s = 1; (double)s.budget_s < usual; s.budget_s++) {
            measured = s;
            bool fits = budget_fit(&p, &s, &w, &err) == 0;
            budget_apply(&p, &measured);
            bool kept =
                !fits || (estimate_s(&measured, &w) <= (double)s.budget_s && p.n_shortened &&
                          spec_difference(&s, &measured, NULL, 0) == (measured.pairs_most > 0));
            bool refused = fits || (err.code == ERR_INVALID && !strcmp(err.member, "budget_s"));
            fitted += fits;
            if (!kept || !refused)
                CHECK(false, "%s in %lld s: %s", benchmarks[i].name, (long long)s.budget_s,
                      err.text);
        }
        budget_describe(&p, &text);
        CHECK(usual < 3 || fitted, "%s: %d budgets below %.1f s fit; the last: %s",
              benchmarks[i].name, fitted, usual, buf_text(&text));
    }
}

// A scan of a large machine fits most budgets, by lower effort where they are small, and refuses
// the others. Its default is a minute.
static void scans(void)
{
    enum { BUDGETS = 100 };
    for (size_t m = 0; m < COUNT_OF(servers); m++) {
        struct topology t CLEANUP(topology_fini) = synthetic(servers[m].text);
        struct plan p CLEANUP(plan_fini) = {0};
        struct workload w CLEANUP(workload_fini) = {0};
        struct spec s;
        struct err err = {0};
        int kept = 0, refused = 0, least = 0;
        spec_init(&s, BENCHMARK_SCAN);
        int64_t usual = s.budget_s;
        double whole = planned_s(&p, &w, &s, &t, &err);
        for (s.budget_s = 1; s.budget_s <= BUDGETS; s.budget_s++) {
            struct spec measured = s;
            if (budget_fit(&p, &s, &w, &err) < 0) {
                refused += strcmp(err.member, "budget_s") == 0;
                continue;
            }
            budget_apply(&p, &measured);
            least = least ? least : (int)s.budget_s;
            kept += estimate_s(&measured, &w) <= (double)s.budget_s &&
                    estimate_most_s(&measured, &w) <= (double)s.budget_s;
        }
        s.budget_s = 0;
        double most = estimate_most_s(&s, &w);
        CHECK(most > 1.5 * whole && most < 4 * whole,
              "%s: it takes %.0f s, and %.0f with all aspects confirmed", servers[m].name, whole,
              most);
        CHECK(whole > 0 && kept + refused == BUDGETS && least && least < usual / 2 && refused,
              "%s: a scan of %.0f s fits %d budgets, the least %d s; %d are refused",
              servers[m].name, whole, kept, least, refused);
    }
}

struct pairs_fit {
    bool fits, kept;
    int64_t most; // pairs; 0: all
    struct spec measured;
};

// What a budget makes of all pairs, and of the same plan when it is read back.
static struct pairs_fit pairs_fit(struct spec *s, const struct topology *t, int64_t budget_s)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct workload w CLEANUP(workload_fini) = {0};
    struct err err = {0};
    CLEANUP_BUF struct buf json = BUF_INIT, pairs = BUF_INIT;
    struct jsonw out = jsonw_to(&json);
    s->budget_s = budget_s;
    struct pairs_fit f = {.measured = *s};
    struct spec stored = *s;
    if (planned_s(&p, &w, s, t, &err) <= 0)
        CHECK(false, "a plan: %s", err.text);
    f.fits = budget_fit(&p, s, &w, &err) == 0;
    if (!f.fits)
        return f;
    budget_apply(&p, &f.measured);
    f.most = f.measured.pairs_most;
    plan_write_json(&p, &out, NULL);
    budget_apply_stored(buf_text(&json), &stored);
    budget_describe_pairs(&p, budget_s, &pairs);
    char sentence[100] = "";
    if (f.most)
        snprintf(sentence, sizeof sentence, "the budget of %lld s has room for %lld of %lld pairs",
                 (long long)budget_s, (long long)f.most, (long long)w.choice);
    bool told = strcmp(buf_text(&pairs), sentence) == 0;
    f.kept = told && estimate_s(&f.measured, &w) <= (double)budget_s &&
             memcmp(&stored, &f.measured, sizeof stored) == 0 &&
             (!f.most || (f.most >= w.choice_least && f.most < w.choice));
    return f;
}

// Of a large machine all pairs do not fit a minute: the budget chooses some, more of them the
// longer it is, and always the same ones. It is another series of results then.
static void pairs_of(const char *name, const struct topology *t, enum benchmark_id benchmark)
{
    enum { LONGEST = 3600 };
    struct spec s;
    int64_t before = 1, of_a_minute = -1;
    int kept = 0, fewer = 0, all = 0, some = 0, refused = 0, n = 0;
    spec_init(&s, benchmark);
    if (benchmark != BENCHMARK_MATRIX)
        snprintf(s.pairs, sizeof s.pairs, "all");
    s.concurrent_pairs = benchmark == BENCHMARK_C2C ? CONCURRENT_PAIRS_ONE : s.concurrent_pairs;
    for (int64_t budget = 10; budget <= LONGEST; budget += budget / 10, n++) {
        struct pairs_fit f = pairs_fit(&s, t, budget);
        fewer += f.fits && f.most && f.most < before;
        before = f.most ? f.most : before;
        all += f.fits && !f.most;
        some += f.fits && f.most;
        kept += f.fits && f.kept;
        refused += !f.fits;
        of_a_minute = budget >= 60 && of_a_minute < 0 && f.fits ? f.most : of_a_minute;
        if (f.fits && spec_difference(&s, &f.measured, NULL, 0) != (f.most != 0))
            CHECK(false, "%s, %s: the choice of pairs is another question", name,
                  benchmarks[benchmark].name);
    }
    CHECK(kept + refused == n && !fewer && all && some &&
              (of_a_minute > 0 || benchmark == BENCHMARK_MATRIX),
          "%s, %s: of %d budgets %d are refused, %d have all pairs; a minute has %d pairs", name,
          benchmarks[benchmark].name, n, refused, all, (int)of_a_minute);
}

static void pairs_chosen(void)
{
    static const struct server_machine more = {
        "2 sockets, 384 cores",
        "pack:2 group:12 [numa(memory=34359738368)] l3:2(size=33554432) core:8 pu:1"};
    for (size_t m = 0; m <= COUNT_OF(servers); m++) {
        const struct server_machine *machine = m < COUNT_OF(servers) ? &servers[m] : &more;
        struct topology t CLEANUP(topology_fini) = synthetic(machine->text);
        pairs_of(machine->name, &t, BENCHMARK_PINGPONG);
        pairs_of(machine->name, &t, BENCHMARK_C2C);
        pairs_of(machine->name, &t, BENCHMARK_MATRIX);
    }
}

// By hand: a number that a budget lowers further, and leaves alone where it fits.
static void pairs_by_hand(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic(servers[0].text);
    struct spec s;
    spec_init(&s, BENCHMARK_C2C);
    s.concurrent_pairs = CONCURRENT_PAIRS_ONE;
    s.pairs_most = 3000;
    struct pairs_fit enough = pairs_fit(&s, &t, 3600), few = pairs_fit(&s, &t, 10);
    CHECK(enough.fits && enough.most == 3000 && few.fits && few.most < 3000 && few.most >= 192,
          "3000 pairs requested: %d in an hour, %d in 10 s", (int)enough.most, (int)few.most);
    CHECK(seconds(&t, "{\"benchmark\":\"c2c\",\"concurrent_pairs\":\"one\",\"pairs_most\":3000}") <
              0.3 * seconds(&t, "{\"benchmark\":\"c2c\",\"concurrent_pairs\":\"one\"}"),
          "fewer pairs take less time");
    CHECK(seconds(&t, "{\"benchmark\":\"matrix\",\"pairs_most\":64}") <
              0.2 * seconds(&t, "{\"benchmark\":\"matrix\"}"),
          "64 of 576 cells take less time");
}

// More than there are is as many as there are, whatever text tells of it.
static void pairs_beyond_all(enum benchmark_id benchmark)
{
    struct topology t CLEANUP(topology_fini) = synthetic(servers[0].text);
    struct plan p CLEANUP(plan_fini) = {0};
    struct workload w CLEANUP(workload_fini) = {0};
    struct spec s;
    struct err err = {0};
    int from = 0;
    spec_init(&s, benchmark);
    s.concurrent_pairs = benchmark == BENCHMARK_C2C ? CONCURRENT_PAIRS_ONE : s.concurrent_pairs;
    s.pairs_most = SPEC_RANKS_MAX * (SPEC_RANKS_MAX - 1) / 2;
    s.budget_s = 60;
    bool fits = planned_s(&p, &w, &s, &t, &err) > 0 && budget_fit(&p, &s, &w, &err) == 0;
    for (int k = 0; k < p.n_shortened; k++)
        if (strcmp(p.shortened[k].name, "pairs_most") == 0)
            from = (int)p.shortened[k].from;
    CHECK(fits && from == w.choice, "%s has room for some of %d pairs, not of %d: %s",
          benchmarks[benchmark].name, w.choice, from, err.text);
    bool noted = false;
    for (int i = 0; i < p.n_notes; i++)
        noted |= strstr(p.notes[i], "pairs: pairs_most (523776) leaves none out") != NULL;
    CHECK(noted, "and the plan says so");
}

// Of a rank and a target there must be as many as have each of them.
static void too_few_targets(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic(servers[0].text);
    struct plan p CLEANUP(plan_fini) = {0};
    struct spec s;
    struct err err = {0};
    spec_init(&s, BENCHMARK_MATRIX);
    s.pairs_most = 47;
    CHECK(plan_make(&p, &s, &t, &err) < 0 && strcmp(err.member, "pairs_most") == 0 &&
              strstr(err.text, "48 at least"),
          "47 cells: %s", err.text);
    s.pairs_most = 48;
    CHECK(plan_make(&p, &s, &t, &err) == 0, "48 cells");
}

// What fits no choice is refused with the time of the smallest one, which then is not.
static void refused_pairs(enum benchmark_id benchmark)
{
    struct topology t CLEANUP(topology_fini) = synthetic(servers[0].text);
    struct plan p CLEANUP(plan_fini) = {0};
    struct workload w CLEANUP(workload_fini) = {0};
    struct spec s;
    struct err err = {0};
    int pairs = 0, of = 0, seconds = 0;
    spec_init(&s, benchmark);
    s.concurrent_pairs = benchmark == BENCHMARK_C2C ? CONCURRENT_PAIRS_ONE : s.concurrent_pairs;
    s.budget_s = 1;
    bool planned = planned_s(&p, &w, &s, &t, &err) > 0;
    bool refused = planned && budget_fit(&p, &s, &w, &err) < 0;
    const char *text = strstr(err.text, "effort and ");
    bool read = text && sscanf(text, "effort and %d of %d pairs takes about %d s", &pairs, &of,
                               &seconds) == 3;
    s.budget_s = seconds;
    CHECK(refused && read && of == w.choice && budget_fit(&p, &s, &w, &err) == 0, "%s: %s",
          benchmarks[benchmark].name, err.text);
}

// A plan that was imported may have anything; the member counts that the plan itself has, and only
// values that a request may have.
static void stored_plans(void)
{
    static const struct {
        const char *plan;
        int64_t visits, pairs;
    } plans[] = {
        {"{\"shortened\":[{\"name\":\"visits\",\"from\":8,\"to\":4}]}", 4, 0},
        {"{\"notes\":[\"\\\"shortened\\\":[\"],\"x\":{\"shortened\":[{\"name\":\"visits\",\"to\":2}"
         "]},"
         "\"shortened\":[{\"name\":\"]\",\"to\":3},{\"name\":\"pairs_most\",\"to\":64}]}",
         8, 64},
        {"{\"shortened\":[{\"name\":\"visits\",\"to\":4},{\"name\":\"pairs_most\",\"to\":2}]}", 8,
         0},
        {"{\"shortened\":{\"name\":\"visits\"}}", 8, 0},
        {"[]", 8, 0},
    };
    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        struct spec s;
        spec_init(&s, BENCHMARK_C2C);
        s.budget_s = 60;
        budget_apply_stored(plans[i].plan, &s);
        CHECK(s.visits == plans[i].visits && s.pairs_most == plans[i].pairs,
              "%s: %d visits, %d pairs", plans[i].plan, (int)s.visits, (int)s.pairs_most);
    }
    CHECK(plan_read_found("{\"found_cache_bytes\":100663296}") == 96 << 20 &&
              plan_read_found("{\"found_cache_bytes\":-5}") == 0 && plan_read_found("{}") == 0 &&
              plan_read_found(NULL) == 0,
          "the cache of a plan");
}

static void in_turn(void)
{
    for (size_t m = 0; m < COUNT_OF(servers); m++) {
        struct topology t CLEANUP(topology_fini) = synthetic(servers[m].text);
        CHECK(seconds(&t, "{\"benchmark\":\"latency\",\"mode\":\"serial\"}") >
                  10 * seconds(&t, "{\"benchmark\":\"latency\"}"),
              "%s: one rank after the other takes longer", servers[m].name);
    }
}

// The workload counts ranks group by group; here each rank and each pair is counted.
static void workloads(const char *machine, const char *request)
{
    struct topology t CLEANUP(topology_fini) = synthetic(machine);
    struct plan p CLEANUP(plan_fini) = {0};
    struct workload w CLEANUP(workload_fini) = {0};
    struct spec s;
    struct err err = {0};
    CLEANUP_JSON struct json *j = json_parse(request, strlen(request), &err);
    bool seen[PAIR_CLASSES + 1] = {false};
    int far = 0, cpus = 0, nodes = 0, llcs = 0, classes = 0;
    if (!j || spec_from_json(&s, j, NULL, &err) < 0 || planned_s(&p, &w, &s, &t, &err) <= 0)
        CHECK(false, "%s: %s", request, err.text);
    for (int i = 0; i < p.n_ranks; i++) {
        const struct topo_cpu *a = topology_cpu(&t, p.ranks[i].cpu);
        bool cpu = true, node = true, llc = true;
        for (int k = 0; k < i; k++) {
            const struct topo_cpu *b = topology_cpu(&t, p.ranks[k].cpu);
            enum pair_class class = topology_pair_class(a, b);
            seen[class] = true;
            far += class > PAIR_L3;
            cpu &= a != b;
            node &= a->node != b->node;
            llc &= a->l3 != b->l3;
        }
        cpus += cpu, nodes += node, llcs += llc;
    }
    for (int k = 0; k < PAIR_CLASSES; k++)
        classes += seen[k];
    CHECK(w.cpus == cpus && w.nodes == nodes && w.llcs == llcs && w.classes == classes &&
              fabs(w.share_of_far * w.pairs - far) < 1e-6,
          "%s on %s: %d CPUs, %d nodes, %d caches, %d classes, %d far pairs; got %d, %d, %d, %d, "
          "%.1f",
          request, machine, cpus, nodes, llcs, classes, far, w.cpus, w.nodes, w.llcs, w.classes,
          w.share_of_far * w.pairs);
}

static void all_workloads(void)
{
    static const char *const machines[] = {
        two_nodes, "pack:2 group:2 [numa(memory=1073741824)] l3:2(size=33554432) core:3 pu:2",
        "pack:2 l3:1(size=33554432) group:2 [numa(memory=1073741824)] core:2 pu:2",
        "pack:1 [numa(memory=1073741824)] core:3 pu:2"};
    static const char *const requests[] = {
        "{\"benchmark\":\"c2c\"}", "{\"benchmark\":\"c2c\",\"hyperthreads\":true}",
        "{\"benchmark\":\"c2c\",\"cpus\":\"0,1,1,0,2\",\"oversubscribe\":true}"};
    for (size_t m = 0; m < COUNT_OF(machines); m++)
        for (size_t r = 0; r < COUNT_OF(requests); r++)
            workloads(machines[m], requests[r]);
}

// The largest recorded machine by nodes: 576 cells.
// What a run measured stands for what is assumed, in what takes longer by it, and in nothing else.
static void measured_speeds(void)
{
    static const struct {
        enum speed speed;
        const char *longer, *same;
        double by; // at least, where the speed is halved
    } all[] = {
        {SPEED_LOAD, "{\"benchmark\":\"hierarchy\"}", "{\"benchmark\":\"bandwidth\"}", 1.2},
        {SPEED_BASE_PAGE, "{\"benchmark\":\"pagefault\",\"cost\":\"migrate\"}",
         "{\"benchmark\":\"none\"}", 1.9},
        {SPEED_HUGE_PAGE, "{\"benchmark\":\"pagefault\"}", "{\"benchmark\":\"pingpong\"}", 1.05},
        {SPEED_MESSAGE, "{\"benchmark\":\"pingpong\",\"message_max\":0,\"repetitions\":1000000}",
         "{\"benchmark\":\"pagefault\"}", 1.2},
        {SPEED_MESSAGE_BYTE, "{\"benchmark\":\"pingpong\"}", "{\"benchmark\":\"c2c\"}", 1.4},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct topology t CLEANUP(topology_fini) = synthetic(two_nodes);
        const char *name = speed_infos[all[i].speed].name;
        bool has_same = !strstr(all[i].same, "none");
        double assumed = seconds(&t, all[i].longer),
               other = has_same ? seconds(&t, all[i].same) : 0;
        t.speeds[all[i].speed] = (struct found_speed){.run = 1, .times = 1};
        CHECK(seconds(&t, all[i].longer) == assumed, "%s: as it was assumed", name);
        t.speeds[all[i].speed].times = 2;
        CHECK(seconds(&t, all[i].longer) > all[i].by * assumed &&
                  (!has_same || seconds(&t, all[i].same) == other),
              "%s takes twice as long: %.2f s instead of %.2f", name, seconds(&t, all[i].longer),
              assumed);
    }
}

// A value is bounded, and one that is none counts for nothing.
static void speed_bounds(void)
{
    CHECK(speed_times(SPEED_LOAD, 140) == 1 && speed_times(SPEED_LOAD, 280) == 2 &&
              speed_times(SPEED_MESSAGE_BYTE, 5) == 0.5,
          "a time and a rate");
    CHECK(speed_times(SPEED_LOAD, 1e6) == SPEED_TIMES_MOST &&
              speed_times(SPEED_LOAD, 1e-3) == 1 / SPEED_TIMES_MOST &&
              speed_times(SPEED_MESSAGE_BYTE, 1e-3) == SPEED_TIMES_MOST,
          "it moves an estimate no further than four times");
    CHECK(speed_times(SPEED_LOAD, 0) == 0 && speed_times(SPEED_LOAD, NAN) == 0, "no value");
}

// Runs of a request, of so many ranks each, that took so many times their estimate.
static struct past_runs past_of(const struct spec *s, const struct workload *w, const double *times,
                                const int *ranks, int n)
{
    struct past_runs past = {.n = n};
    for (int i = 0; i < n; i++)
        past.list[i] = (struct past_run){
            .run = i + 1, .n_ranks = ranks[i], .seconds = times[i] * estimate_s(s, w), .spec = *s};
    return past;
}

// What runs of the same request took stands for all that speeds do not know, also with less effort.
static void past_runs(void)
{
    static const struct {
        double times[PAST_RUNS_MAX];
        int ranks[PAST_RUNS_MAX], n;
        int64_t run;
        double by;
    } cases[] = {{{0}, {0}, 0, 0, 0},
                 {{1.5}, {16}, 1, 1, 1.5},
                 {{3, 1.5}, {16, 16}, 2, 2, 1.5},
                 {{1.2, 3}, {16, 16}, 2, 1, 1.2},
                 {{3, 1.1, 1.4}, {16, 16, 16}, 3, 3, 1.4},
                 {{3, 1.1, 1.4}, {8, 16, 8}, 3, 2, 1.1},
                 {{100}, {16}, 1, 1, SPEED_TIMES_MOST},
                 {{0.01}, {16}, 1, 1, 1 / SPEED_TIMES_MOST},
                 {{2}, {8}, 1, 0, 0}};
    struct topology t CLEANUP(topology_fini) = synthetic(two_nodes);
    struct plan p CLEANUP(plan_fini) = {0};
    struct workload w CLEANUP(workload_fini) = {0};
    struct spec usual, quick;
    struct err err = {0};
    spec_init(&usual, BENCHMARK_BANDWIDTH);
    quick = usual;
    spec_quick(&quick);
    CHECK(planned_s(&p, &w, &usual, &t, &err) > 0 && w.ranks == 16, "a plan: %s", err.text);
    const double without[] = {estimate_s(&usual, &w), estimate_s(&quick, &w)};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        w.past = (struct found_speed){0};
        struct past_runs past = past_of(&usual, &w, cases[i].times, cases[i].ranks, cases[i].n);
        estimate_learn(&w, &past);
        double by = cases[i].run ? cases[i].by : 1;
        CHECK(w.past.run == cases[i].run && fabs(w.past.times - cases[i].by) < 1e-9 &&
                  fabs(estimate_s(&usual, &w) - by * without[0]) < 1e-6 &&
                  fabs(estimate_s(&quick, &w) - by * without[1]) < 1e-6,
              "%d runs: %.2f times, by run %lld", cases[i].n, w.past.times, (long long)w.past.run);
    }
    struct past_runs past = past_of(&usual, &w, (const double[]){1}, (const int[]){16}, 1);
    w.past = (struct found_speed){0};
    past.list[0] = (struct past_run){.run = 1, .n_ranks = 16, .seconds = without[0], .spec = usual};
    w.processes = true; // which start faster than MPI's, as that run did
    estimate_learn(&w, &past);
    CHECK(w.past.times == 1, "a run is compared as it was started");
    w.processes = false;
    past.list[0] =
        (struct past_run){.run = 1, .n_ranks = 16, .seconds = 3 * without[1], .spec = quick};
    estimate_learn(&w, &past);
    CHECK(fabs(estimate_s(&quick, &w) - 3 * without[1]) < 1e-6 &&
              fabs(estimate_s(&usual, &w) - without[0] - 2 * without[1]) < 1e-6,
          "a longer run loses no more than the shorter one did: %.2f s", estimate_s(&usual, &w));
}

static void many_nodes(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic(servers[0].text);
    double usual = seconds(&t, "{\"benchmark\":\"bandwidth\"}"),
           quick = seconds(&t, "{\"benchmark\":\"bandwidth\",\"quick\":true}");
    CHECK(usual <= 600 && quick <= 100, "bandwidth of %s: %.0f s, quick %.0f s", servers[0].name,
          usual, quick);
}

int main(void)
{
    many_nodes();
    large_pages();
    struct topology t CLEANUP(topology_fini) = synthetic(two_nodes);
    struct topology larger CLEANUP(topology_fini) = synthetic(twelve_nodes);
    all_workloads();
    measured_speeds();
    past_runs();
    speed_bounds();
    every_benchmark(&t, &larger);
    budgets(&t);
    budgets(&larger);
    scans();
    pairs_chosen();
    pairs_by_hand();
    pairs_beyond_all(BENCHMARK_C2C);
    pairs_beyond_all(BENCHMARK_MATRIX);
    too_few_targets();
    stored_plans();
    refused_pairs(BENCHMARK_C2C);
    refused_pairs(BENCHMARK_MATRIX);
    in_turn();
    expect_more(&t, "{\"benchmark\":\"latency\"}",
                "{\"benchmark\":\"latency\",\"mode\":\"serial\"}", 4);
    expect_more(&t, "{\"benchmark\":\"latency\",\"size\":\"1\"}",
                "{\"benchmark\":\"latency\",\"size\":\"1-1024\"}", 3);
    expect_more(&t, "{\"benchmark\":\"matrix\",\"targets\":\"0\"}", "{\"benchmark\":\"matrix\"}",
                1.5);
    expect_more(&t, "{\"benchmark\":\"bandwidth\",\"kernel\":\"triad\"}",
                "{\"benchmark\":\"bandwidth\"}", 1.5);
    expect_more(&t, "{\"benchmark\":\"bandwidth\",\"sweep\":\"sizes\",\"size\":\"1\"}",
                "{\"benchmark\":\"bandwidth\",\"sweep\":\"sizes\",\"size\":\"1-1024\"}", 5);
    expect_more(&t, "{\"benchmark\":\"bandwidth\",\"sweep\":\"memcpy\",\"targets\":\"0\"}",
                "{\"benchmark\":\"bandwidth\",\"sweep\":\"memcpy\"}", 3);
    expect_more(&t, "{\"benchmark\":\"loaded\"}", "{\"benchmark\":\"loaded\",\"mix\":\"all\"}", 4);
    expect_more(&t, "{\"benchmark\":\"loaded\"}", "{\"benchmark\":\"loaded\",\"targets\":\"all\"}",
                3);
    expect_more(&t, "{\"benchmark\":\"pagefault\"}",
                "{\"benchmark\":\"pagefault\",\"cost\":\"migrate\"}", 1);
    expect_more(&t, "{\"benchmark\":\"pingpong\"}",
                "{\"benchmark\":\"pingpong\",\"pairs\":\"all\",\"ranks\":8}", 2);
    expect_more(&t, "{\"benchmark\":\"atomics\",\"operation\":\"cas\"}",
                "{\"benchmark\":\"atomics\",\"sample_us\":20000}", 10);
    expect_more(&t, "{\"benchmark\":\"atomics\",\"threads\":\"2\"}",
                "{\"benchmark\":\"atomics\",\"threads\":\"all\"}", 2);
    expect_more(&t, "{\"benchmark\":\"c2c\"}",
                "{\"benchmark\":\"c2c\",\"concurrent_pairs\":\"one\"}", 2);
    expect_more(&t, "{\"benchmark\":\"c2c\",\"cpus\":\"0,1\"}",
                "{\"benchmark\":\"c2c\",\"cpus\":\"0,0\",\"oversubscribe\":true}", 1000);
    expect_more(&t, "{\"benchmark\":\"c2c\",\"pairs\":\"0-1\"}",
                "{\"benchmark\":\"c2c\",\"pairs\":\"0-1,0-2,0-3,0-4,0-5,0-6,0-7,1-2\"}", 1.5);
    expect_more(&t, "{\"benchmark\":\"latency\",\"launcher\":\"processes\",\"size\":\"1\"}",
                "{\"benchmark\":\"latency\",\"launcher\":\"mpi\",\"size\":\"1\"}", 1);
    return tap_done();
}

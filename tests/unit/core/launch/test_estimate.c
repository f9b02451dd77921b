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

// Every benchmark fits a budget between its least and its usual time, by effort alone.
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
            bool kept = !fits || (estimate_s(&measured, &w) <= (double)s.budget_s &&
                                  p.n_shortened && spec_difference(&s, &measured, NULL, 0) == 0);
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
            kept += estimate_s(&measured, &w) <= (double)s.budget_s;
        }
        CHECK(whole > 0 && kept + refused == BUDGETS && least && least < usual / 2 && refused,
              "%s: a scan of %.0f s fits %d budgets, the least %d s; %d are refused",
              servers[m].name, whole, kept, least, refused);
    }
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
    struct topology t CLEANUP(topology_fini) = synthetic(two_nodes);
    struct topology larger CLEANUP(topology_fini) = synthetic(twelve_nodes);
    all_workloads();
    every_benchmark(&t, &larger);
    budgets(&t);
    budgets(&larger);
    scans();
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
    expect_more(&t, "{\"benchmark\":\"c2c\",\"pairs\":\"0-1\"}",
                "{\"benchmark\":\"c2c\",\"pairs\":\"0-1,0-2,0-3,0-4,0-5,0-6,0-7,1-2\"}", 1.5);
    expect_more(&t, "{\"benchmark\":\"latency\",\"launcher\":\"processes\",\"size\":\"1\"}",
                "{\"benchmark\":\"latency\",\"launcher\":\"mpi\",\"size\":\"1\"}", 1);
    return tap_done();
}

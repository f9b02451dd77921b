// SPDX-License-Identifier: Apache-2.0
// Time estimates of plans on synthetic machines: what must grow grows, and what quick saves is
// saved. That they are near the truth is shown by tests/perf/estimates.py.
#include <math.h>

#include "base/cleanup.h"
#include "core/launch/planner.h"
#include "model/budget.h"
#include "model/workload.h"
#include "tests/unit/core/node/synthetic.h"
#include "tests/unit/tap.h"

// Two sockets, each a node of eight cores with one last-level cache; and twelve such nodes.
static const char two_nodes[] = "pack:2 [numa(memory=68719476736)] l3:1(size=33554432) core:8 pu:1";
static const char twelve_nodes[] =
    "pack:12 [numa(memory=68719476736)] l3:1(size=33554432) core:8 pu:1";

static double seconds(const struct topology *t, const char *request)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct spec s;
    struct err err = {0};
    CLEANUP_JSON struct json *j = json_parse(request, strlen(request), &err);
    if (!j || spec_from_json(&s, j, NULL, &err) < 0 || plan_make(&p, &s, t, &err) < 0) {
        CHECK(false, "%s: %s", request, err.text);
        return 0;
    }
    return p.estimate_s;
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
        struct spec s, measured;
        struct err err = {0};
        CLEANUP_BUF struct buf text = BUF_INIT;
        spec_init(&s, (enum benchmark_id)i);
        if (plan_make(&p, &s, t, &err) < 0)
            CHECK(false, "%s: %s", benchmarks[i].name, err.text);
        double usual = p.estimate_s;
        int fitted = 0;
        for (s.budget_s = 1; s.budget_s < (int64_t)usual; s.budget_s++) {
            measured = s;
            bool fits = budget_fit(&p, &s, t, &err) == 0;
            budget_apply(&p, &measured);
            double now = 0;
            bool kept = !fits || (estimate_s(&measured, &p, t, &now, &err) == 0 &&
                                  now <= (double)s.budget_s && p.n_shortened &&
                                  spec_difference(&s, &measured, NULL, 0) == 0);
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

// Times as planned for large machines, default and quick: a table to read.
static void large_machines(void)
{
    static const struct {
        const char *name, *text;
    } machines[] = {
        {"2 sockets, 24 nodes, 192 cores",
         "pack:2 group:12 [numa(memory=34359738368)] l3:1(size=33554432) core:8 pu:1"},
        {"512 CPUs, 8 nodes",
         "pack:2 group:4 [numa(memory=68719476736)] l3:4(size=33554432) core:16 pu:1"},
        {"16 sockets, 16 nodes, 448 cores",
         "pack:16 [numa(memory=68719476736)] l3:1(size=40370176) core:28 pu:1"},
    };
    for (size_t m = 0; m < COUNT_OF(machines); m++) {
        struct topology t CLEANUP(topology_fini) = synthetic(machines[m].text);
        printf("# %s\n", machines[m].name);
        for (int i = 0; i < BENCHMARKS; i++) {
            char request[120], quick[140];
            const char *name = benchmarks[i].name;
            snprintf(request, sizeof request, "{\"benchmark\":\"%s\"}", name);
            snprintf(quick, sizeof quick, "{\"benchmark\":\"%s\",\"quick\":true}", name);
            printf("#   %-12s %8.0f s, quick %8.0f s\n", name, seconds(&t, request),
                   seconds(&t, quick));
        }
        CHECK(seconds(&t, "{\"benchmark\":\"latency\",\"mode\":\"serial\"}") >
                  10 * seconds(&t, "{\"benchmark\":\"latency\"}"),
              "%s: one rank after the other takes longer", machines[m].name);
    }
}

int main(void)
{
    struct topology t CLEANUP(topology_fini) = synthetic(two_nodes);
    struct topology larger CLEANUP(topology_fini) = synthetic(twelve_nodes);
    every_benchmark(&t, &larger);
    budgets(&t);
    budgets(&larger);
    large_machines();
    expect_more(&t, "{\"benchmark\":\"latency\"}",
                "{\"benchmark\":\"latency\",\"mode\":\"serial\"}", 4);
    expect_more(&t, "{\"benchmark\":\"latency\",\"size\":\"1\"}",
                "{\"benchmark\":\"latency\",\"size\":\"1-1024\"}", 3);
    expect_more(&t, "{\"benchmark\":\"matrix\",\"targets\":\"0\"}", "{\"benchmark\":\"matrix\"}",
                1.5);
    expect_more(&t, "{\"benchmark\":\"bandwidth\",\"kernel\":\"triad\"}",
                "{\"benchmark\":\"bandwidth\"}", 2);
    expect_more(&t, "{\"benchmark\":\"pingpong\"}",
                "{\"benchmark\":\"pingpong\",\"pairs\":\"all\",\"ranks\":8}", 2);
    expect_more(&t, "{\"benchmark\":\"c2c\"}",
                "{\"benchmark\":\"c2c\",\"concurrent_pairs\":\"one\"}", 2);
    expect_more(&t, "{\"benchmark\":\"latency\",\"launcher\":\"processes\",\"size\":\"1\"}",
                "{\"benchmark\":\"latency\",\"launcher\":\"mpi\",\"size\":\"1\"}", 1);
    return tap_done();
}

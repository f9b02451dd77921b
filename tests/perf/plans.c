// SPDX-License-Identifier: Apache-2.0
// What plans say of large machines, and what planning takes. Prints the estimated time of each
// benchmark, default and quick, on three machines. Then, for 1,024 ranks, the time of a plan, of
// its workload and of a budget: the daemon does all of it in its loop, which has 10 ms.
//
//   plans
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/launch/planner.h"
#include "model/budget.h"
#include "model/estimate.h"
#include "tests/unit/core/node/synthetic.h"

struct planned {
    double seconds;
    double plan_ms, workload_ms, budget_ms;
};

static double ms_since(uint64_t *begin)
{
    uint64_t now = clock_cpu_ns();
    double ms = (double)(now - *begin) / 1e6;
    *begin = now;
    return ms;
}

// False: refused, and `err` says why. Half of the time is a budget that takes all steps to find.
static bool measure(struct spec *s, const struct topology *t, struct planned *out, struct err *err)
{
    struct plan p CLEANUP(plan_fini) = {0};
    struct workload w CLEANUP(workload_fini) = {0};
    uint64_t at = clock_cpu_ns();
    if (plan_make(&p, s, t, err) < 0)
        return false;
    out->plan_ms = ms_since(&at);
    if (workload_make(&w, s, &p, t, err) < 0)
        return false;
    out->workload_ms = ms_since(&at);
    out->seconds = estimate_s(s, &w);
    s->budget_s = 1 + (int64_t)(out->seconds / 2);
    (void)ms_since(&at);
    budget_fit(&p, s, &w, err);
    out->budget_ms = ms_since(&at);
    return true;
}

static void print_time(const struct topology *t, int benchmark, bool quick)
{
    struct spec s;
    struct planned got;
    struct err err;
    spec_init(&s, (enum benchmark_id)benchmark);
    if (quick)
        spec_quick(&s);
    if (measure(&s, t, &got, &err))
        printf("  %s%6.0f s", quick ? "quick " : "", got.seconds);
    else
        printf("  %s", err.text);
}

static void print_cost(const struct topology *t, int benchmark)
{
    struct spec s;
    struct planned got;
    struct err err;
    spec_init(&s, (enum benchmark_id)benchmark);
    snprintf(s.ranks, sizeof s.ranks, "all-cores");
    if (benchmark == BENCHMARK_BANDWIDTH) { // the most teams
        s.sweep = SWEEP_THREADS;
        snprintf(s.threads, sizeof s.threads, "all");
    }
    if (measure(&s, t, &got, &err))
        printf("  %-12s plan %5.2f ms, workload %5.2f ms, budget %5.2f ms\n",
               benchmarks[benchmark].name, got.plan_ms, got.workload_ms, got.budget_ms);
    else
        printf("  %-12s %s\n", benchmarks[benchmark].name, err.text);
}

int main(void)
{
    struct topology large CLEANUP(topology_fini) =
        synthetic("pack:2 group:8 [numa(memory=68719476736)] l3:4(size=33554432) core:16 pu:1");
    for (size_t m = 0; m < COUNT_OF(servers); m++) {
        struct topology t CLEANUP(topology_fini) = synthetic(servers[m].text);
        printf("%s\n", servers[m].name);
        for (int i = 0; i < BENCHMARKS; i++) {
            printf("  %-12s", benchmarks[i].name);
            print_time(&t, i, false);
            print_time(&t, i, true);
            printf("\n");
        }
    }
    printf("1,024 ranks on 16 nodes\n");
    for (int i = 0; i < BENCHMARKS; i++)
        print_cost(&large, i);
    return 0;
}

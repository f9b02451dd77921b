// SPDX-License-Identifier: Apache-2.0
// The plan in the numbers that an estimate needs, and what all runs have: starting their ranks.
#include "model/workload.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

// Ranks are started one after the other by one process, and come up on their own CPUs.
static const double START_MPI_S = 0.35, START_PROCESSES_S = 0.15; // of the first rank
static const double RANK_MPI_S = 0.12, RANK_PROCESSES_S = 0.02;   // of each rank on one CPU
static const double RANK_LEAST_S = 0.008; // launching is not parallel without limit

// SLIT, as a multiple of the local distance.
static double times_far(const struct topology *t, int from, int to)
{
    static const double local = 10, unknown = 20;
    int a = topology_node_index(t, from), b = topology_node_index(t, to);
    if (from == to || a < 0 || b < 0)
        return 1;
    int d = t->distance ? t->distance[a * t->n_nodes + b] : 0;
    return (d > 0 && d < 255 ? d : unknown) / local;
}

static double mean_far(const struct plan *p, const struct topology *t)
{
    double sum = 0;
    for (int r = 0; r < p->n_ranks; r++) {
        const struct plan_rank *at = &p->ranks[r];
        for (int k = 0; k < p->n_targets; k++)
            sum += times_far(t, at->cpu_node, p->targets[k]) / p->n_targets;
        if (!p->n_targets)
            sum += at->mem_node < 0 ? 1 : times_far(t, at->cpu_node, at->mem_node);
    }
    return sum / p->n_ranks;
}

// Cores and nodes that appear for the first time, in the order of the ranks.
static void count_places(struct workload *w, const struct plan *p)
{
    for (int i = 0; i < p->n_ranks; i++) {
        bool cpu = true, node = true;
        for (int k = 0; k < i; k++) {
            cpu &= p->ranks[k].cpu != p->ranks[i].cpu;
            node &= p->ranks[k].cpu_node != p->ranks[i].cpu_node;
        }
        w->cpus += cpu;
        w->nodes += node;
    }
    w->per_node = (double)p->n_ranks / w->nodes;
}

static void count_pairs(struct workload *w, const struct plan *p, const struct topology *t)
{
    CLEANUP_MEM const struct topo_cpu **cpus = calloc((size_t)p->n_ranks, sizeof *cpus);
    bool seen[PAIR_CLASSES + 1] = {false};
    double far = 0;
    for (int i = 0; cpus && i < p->n_ranks; i++) {
        cpus[i] = topology_cpu(t, p->ranks[i].cpu);
        for (int k = 0; k < i; k++) {
            enum pair_class class = topology_pair_class(cpus[k], cpus[i]);
            seen[class] = true;
            far += class > PAIR_L3;
        }
    }
    for (int k = 0; k < PAIR_CLASSES; k++)
        w->classes += seen[k];
    w->pairs = p->n_ranks * (p->n_ranks - 1) / 2;
    w->share_of_far = w->pairs ? far / w->pairs : 0;
}

static double workload_start_s(const struct plan *p, const struct workload *w)
{
    double once = p->processes ? START_PROCESSES_S : START_MPI_S;
    double each = (p->processes ? RANK_PROCESSES_S : RANK_MPI_S) / w->cpus;
    return once + w->ranks * fmax(each, p->processes ? 0 : RANK_LEAST_S);
}

struct rank_cache *workload_caches(const struct plan *p, const struct topology *t, struct err *err)
{
    int64_t largest = topology_llc_bytes(t);
    struct rank_cache *caches = calloc((size_t)p->n_ranks + 1, sizeof *caches);
    if (!caches) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a plan");
        return NULL;
    }
    for (int i = 0; i < p->n_ranks; i++) {
        int llc = topology_cpu(t, p->ranks[i].cpu)->l3;
        int64_t bytes = llc >= 0 ? t->caches[llc].bytes : largest;
        caches[i] = (struct rank_cache){p->ranks[i].cpu_node, llc,
                                        bytes > 0 ? (uint64_t)bytes : SPEC_LLC_DEFAULT};
    }
    return caches;
}

int estimate_s(const struct spec *s, const struct plan *p, const struct topology *t,
               double *seconds, struct err *err)
{
    enum { LINE_USUAL = 64 };
    CLEANUP_MEM struct rank_cache *caches = workload_caches(p, t, err);
    if (!caches)
        return -1;
    struct workload w = {.ranks = p->n_ranks,
                         .targets = p->n_targets,
                         .caches = caches,
                         .far = mean_far(p, t),
                         .line = t->line_bytes > 0 ? (uint64_t)t->line_bytes : LINE_USUAL};
    for (int i = 0; i < w.ranks; i++)
        w.llc = caches[i].llc_bytes > w.llc ? caches[i].llc_bytes : w.llc;
    count_places(&w, p);
    count_pairs(&w, p, t);
    *seconds = workload_start_s(p, &w) + benchmarks[s->benchmark].estimate(s, &w);
    return 0;
}

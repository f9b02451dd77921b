// SPDX-License-Identifier: Apache-2.0
// The plan in the numbers that an estimate needs.
#include "model/workload.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/scan.h"
#include "model/spec_values.h"
#include "model/target.h"

// SLIT, as a multiple of the local distance. `from` and `to` are indices; -1: not known.
static double times_far(const struct topology *t, int from, int to)
{
    static const double local = 10, unknown = 20;
    if (from == to || from < 0 || to < 0)
        return 1;
    int d = t->distance ? t->distance[from * t->n_nodes + to] : 0;
    return (d > 0 && d < 255 ? d : unknown) / local;
}

// Of interleaved memory the mean of its nodes.
static double times_spread(const struct topology *t, int from, int target)
{
    double sum = 0;
    int n = 0;
    for (int node = 0; node < TARGET_NODES; node++)
        if (target_has(target, node)) {
            sum += times_far(t, from, topology_node_index(t, node));
            n++;
        }
    return n ? sum / n : 1;
}

// 1 where no node is named: the first touch chooses.
static double times_target(const struct topology *t, int from, int target)
{
    return target_is_interleaved(target) ? times_spread(t, from, target)
                                         : times_far(t, from, topology_node_index(t, target));
}

static double mean_far(const struct plan *p, const struct topology *t)
{
    double sum = 0;
    for (int r = 0; r < p->n_ranks; r++) {
        int from = topology_node_index(t, p->ranks[r].cpu_node);
        for (int k = 0; k < p->n_targets; k++)
            sum += times_target(t, from, p->targets[k]) / p->n_targets;
        if (!p->n_targets)
            sum += times_target(t, from, p->ranks[r].mem_node);
    }
    return sum / p->n_ranks;
}

// The first target counts where a rank's own node is none of them.
static double home_far(const struct plan *p, const struct topology *t)
{
    double sum = 0;
    for (int r = 0; r < p->n_ranks; r++) {
        int own = p->ranks[r].cpu_node, home = p->n_targets ? p->targets[0] : own;
        for (int k = 1; k < p->n_targets; k++)
            home = p->targets[k] == own ? own : home;
        sum += times_target(t, topology_node_index(t, own), home);
    }
    return sum / p->n_ranks;
}

// --- Ranks by what they share
// ---------------------------------------------------------------------

// By last-level cache, then node and socket, then core: ranks that share all but the core are
// neighbours. There are far fewer such groups than ranks, so pairs are counted group by group.
static int by_sharing(const void *a, const void *b)
{
    const struct topo_cpu *x = *(const struct topo_cpu *const *)a,
                          *y = *(const struct topo_cpu *const *)b;
    int order[] = {x->l3 - y->l3, x->node - y->node, x->package - y->package, x->core - y->core,
                   x->os - y->os};
    for (size_t i = 0; i < COUNT_OF(order); i++)
        if (order[i])
            return order[i];
    return 0;
}

static bool in_one_group(const struct topo_cpu *a, const struct topo_cpu *b)
{
    return a->l3 == b->l3 && a->node == b->node && a->package == b->package;
}

struct group {
    const struct topo_cpu *first;
    int ranks;
    double siblings; // pairs on one core
};

static void add_pairs(struct workload *w, bool *seen, enum pair_class class, double pairs)
{
    if (pairs <= 0)
        return;
    seen[class] = true;
    w->share_of_far += class > PAIR_L3 ? pairs : 0;
}

// What two CPUs of a group share beside the core.
static enum pair_class class_within(const struct topo_cpu *c)
{
    struct topo_cpu neighbour = *c;
    neighbour.core = -1;
    return topology_pair_class(c, &neighbour);
}

static void count_pairs(struct workload *w, const struct group *groups, int n)
{
    bool seen[PAIR_CLASSES] = {false};
    for (int i = 0; i < n; i++) {
        const struct group *g = &groups[i];
        add_pairs(w, seen, PAIR_SIBLINGS, g->siblings);
        add_pairs(w, seen, class_within(g->first), g->ranks * (g->ranks - 1) / 2.0 - g->siblings);
        for (int k = 0; k < i; k++)
            add_pairs(w, seen, topology_pair_class(groups[k].first, g->first),
                      (double)g->ranks * groups[k].ranks);
    }
    for (int k = 0; k < PAIR_CLASSES; k++)
        w->classes += seen[k];
    w->pairs = w->ranks * (w->ranks - 1) / 2;
    w->share_of_far = w->pairs ? w->share_of_far / w->pairs : 0;
    w->share_of_cpu = w->pairs ? w->share_of_cpu / w->pairs : 0;
}

static bool node_is_new(const struct group *groups, int n)
{
    for (int i = 0; i < n; i++)
        if (groups[i].first->node == groups[n].first->node)
            return false;
    return true;
}

// `cpus` in the order of by_sharing.
static int find_groups(struct workload *w, const struct topo_cpu *const *cpus, struct group *groups)
{
    int n = 0, on_core = 0, on_cpu = 0;
    for (int i = 0; i < w->ranks; i++) {
        const struct topo_cpu *c = cpus[i], *before = i ? cpus[i - 1] : NULL;
        bool fresh = !before || !in_one_group(before, c);
        on_core = fresh || before->core != c->core ? 0 : on_core + 1;
        if (fresh) {
            groups[n++] = (struct group){.first = c};
            w->nodes += node_is_new(groups, n - 1);
        }
        groups[n - 1].ranks++;
        groups[n - 1].siblings += on_core;
        on_cpu = before == c ? on_cpu + 1 : 0;
        w->share_of_cpu += on_cpu;
        w->cpus += before != c;
        w->llcs += !before || before->l3 != c->l3;
    }
    return n;
}

static int count_places(struct workload *w, const struct plan *p, const struct topology *t,
                        struct err *err)
{
    CLEANUP_MEM const struct topo_cpu **cpus = calloc((size_t)p->n_ranks, sizeof *cpus);
    CLEANUP_MEM struct group *groups = calloc((size_t)p->n_ranks, sizeof *groups);
    if (!cpus || !groups)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a plan");
    for (int i = 0; i < p->n_ranks; i++)
        cpus[i] = topology_cpu(t, p->ranks[i].cpu);
    qsort(cpus, (size_t)p->n_ranks, sizeof *cpus, by_sharing);
    count_pairs(w, groups, find_groups(w, cpus, groups));
    w->per_node = (double)p->n_ranks / w->nodes;
    return 0;
}

// --- The whole -----------------------------------------------------------------------------------

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
                                        bytes > 0 ? (uint64_t)bytes : SPEC_LLC_DEFAULT,
                                        (uint64_t)p->found_bytes};
    }
    return caches;
}

// Each rank is compared with each other, so that an estimate may not do it again and again.
static uint64_t workload_scan_bytes(const struct workload *w, const struct spec *s)
{
    return s->benchmark == BENCHMARK_SCAN ? scan_memory_bytes(w->caches, w->ranks) : 0;
}

// Of the benchmark matrix pairs of a rank and a target, of others pairs of ranks.
static void workload_choice(struct workload *w, const struct spec *s)
{
    bool targets = s->benchmark == BENCHMARK_MATRIX;
    w->choice = targets ? w->ranks * w->targets : w->pairs;
    w->choice_least = (int)spec_fewest_pairs(targets ? w->ranks + w->targets : w->ranks);
}

static int workload_teams(struct workload *w, const struct spec *s, struct err *err)
{
    if (s->benchmark != BENCHMARK_BANDWIDTH)
        return 0;
    w->teams = calloc((size_t)w->ranks, sizeof *w->teams);
    if (!w->teams)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a plan");
    w->n_teams = stream_teams(s, w->caches, w->ranks, w->teams, err);
    return w->n_teams < 0 ? -1 : 0;
}

int workload_make(struct workload *w, const struct spec *s, const struct plan *p,
                  const struct topology *t, struct err *err)
{
    enum { LINE_USUAL = 64 };
    struct workload made CLEANUP(workload_fini) = {
        .ranks = p->n_ranks,
        .targets = p->n_targets,
        .caches = workload_caches(p, t, err),
        .far = mean_far(p, t),
        .home_far = home_far(p, t),
        .line = t->line_bytes > 0 ? (uint64_t)t->line_bytes : LINE_USUAL,
        .pages = *topology_pages(t),
        .processes = p->processes,
    };
    if (!made.caches || count_places(&made, p, t, err) < 0 || workload_teams(&made, s, err) < 0)
        return -1;
    for (int i = 0; i < made.ranks; i++)
        made.llc = rank_cache_bytes(&made.caches[i]) > made.llc ? rank_cache_bytes(&made.caches[i])
                                                                : made.llc;
    memcpy(made.speeds, t->speeds, sizeof made.speeds);
    workload_choice(&made, s);
    made.scan_bytes = workload_scan_bytes(&made, s);
    *w = made;
    made = (struct workload){0};
    return 0;
}

void workload_fini(struct workload *w)
{
    free(w->caches);
    free(w->teams);
    *w = (struct workload){0};
}

// SPDX-License-Identifier: Apache-2.0
// Ranks are numbered by node, then core, then hardware thread, so that rank 0…k-1 of a plan sit on
// the first node, and neighbours in the table are neighbours in the machine. With `cpus` the user's
// order stands.
#include "core/planner.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

enum choice { ALL_CORES, ONE_PER_NUMA, ONE_PER_LLC, PER_NODE };

__attribute__((format(printf, 2, 3))) static void note(struct plan *p, const char *fmt, ...)
{
    if (p->n_notes == PLAN_NOTES_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->notes[p->n_notes++], sizeof p->notes[0], fmt, ap);
    va_end(ap);
}

static int by_place(const void *a, const void *b)
{
    const struct topo_cpu *x = *(const struct topo_cpu *const *)a,
                          *y = *(const struct topo_cpu *const *)b;
    int order[] = {x->node - y->node, x->core - y->core, x->thread - y->thread, x->os - y->os};
    for (size_t i = 0; i < COUNT_OF(order); i++)
        if (order[i])
            return order[i];
    return 0;
}

// Allowed CPUs in rank order. Owned array of borrowed pointers.
static const struct topo_cpu **candidates(const struct topology *t, bool hyperthreads, int *n,
                                          struct err *err)
{
    const struct topo_cpu **list = calloc((size_t)t->n_cpus + 1, sizeof *list);
    if (!list) {
        err_set(err, ERR_NO_MEMORY, "ranks", "no memory for %d CPUs", t->n_cpus);
        return NULL;
    }
    *n = 0;
    for (int i = 0; i < t->n_cpus; i++)
        if (t->cpus[i].allowed && (hyperthreads || t->cpus[i].thread == 0))
            list[(*n)++] = &t->cpus[i];
    qsort(list, (size_t)*n, sizeof *list, by_place);
    return list;
}

static int add_rank(struct plan *p, const struct topo_cpu *cpu, struct err *err)
{
    if (p->n_ranks == SPEC_RANKS_MAX)
        return err_set(err, ERR_INVALID, "ranks", "gives more than %d ranks", SPEC_RANKS_MAX);
    p->ranks[p->n_ranks++] =
        (struct plan_rank){.cpu = cpu->os, .cpu_node = cpu->node, .mem_node = -1};
    return 0;
}

static enum choice read_choice(const char *text, int64_t *per_node)
{
    static const char *const words[] = {"all-cores", "one-per-numa", "one-per-l3"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, words[i]) == 0)
            return (enum choice)i;
    str_to_i64(text, per_node);
    return PER_NODE;
}

// Which candidates become ranks: all, the first of each group, or the first N of each node.
static int choose(struct plan *p, const struct spec *s, const struct topology *t, struct err *err)
{
    int n;
    CLEANUP_MEM const struct topo_cpu **list = candidates(t, s->hyperthreads, &n, err);
    if (!list)
        return -1;
    int64_t per_node = 1;
    enum choice which = read_choice(s->ranks, &per_node);
    int64_t in_group = 0;
    for (int i = 0; i < n; i++) {
        bool same = i > 0 && (which == ONE_PER_LLC ? list[i]->l3 == list[i - 1]->l3 &&
                                                         list[i]->node == list[i - 1]->node
                                                   : list[i]->node == list[i - 1]->node);
        in_group = same ? in_group + 1 : 1;
        int64_t most = which == ALL_CORES ? INT64_MAX : which == PER_NODE ? per_node : 1;
        if (in_group <= most && add_rank(p, list[i], err) < 0)
            return -1;
        bool last = i + 1 == n || list[i + 1]->node != list[i]->node;
        if (which == PER_NODE && last && in_group < per_node)
            return err_set(err, ERR_INVALID, "ranks",
                           "asks for %lld a node, but node %d has %lld %s for ranks",
                           (long long)per_node, list[i]->node, (long long)in_group,
                           s->hyperthreads ? "CPUs" : "cores");
    }
    if (!p->n_ranks)
        return err_set(err, ERR_INVALID, "ranks", "there is no CPU that this daemon may use");
    return 0;
}

static int refuse_cpu(const struct topology *t, int os, bool there, struct err *err)
{
    CLEANUP_MEM int *ids = calloc((size_t)t->n_cpus + 1, sizeof *ids);
    char list[120] = "";
    int n = 0;
    for (int i = 0; ids && i < t->n_cpus; i++)
        if (t->cpus[i].allowed)
            ids[n++] = t->cpus[i].os;
    if (ids)
        str_from_ids(ids, n, list, sizeof list);
    return err_set(err, ERR_INVALID, "cpus", "CPU %d is %s; CPUs are %s", os,
                   there ? "outside the cpuset of the daemon" : "not there or offline", list);
}

static int take_listed(struct plan *p, const struct spec *s, const struct topology *t,
                       struct err *err)
{
    CLEANUP_MEM int *ids = NULL;
    int n;
    if (str_to_ids(s->cpus, s->oversubscribe, SPEC_RANKS_MAX, "cpus", &ids, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        const struct topo_cpu *cpu = topology_cpu(t, ids[i]);
        if (!cpu || !cpu->allowed)
            return refuse_cpu(t, ids[i], cpu != NULL, err);
        if (add_rank(p, cpu, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_target(const struct topo_node *n)
{
    return n && n->allowed && n->memory_bytes > 0;
}

static int refuse_node(const struct topology *t, int os, struct err *err)
{
    const struct topo_node *node = topology_node(t, os);
    int ids[TOPOLOGY_NODES_MAX], n = 0;
    char list[100];
    for (int i = 0; i < t->n_nodes && n < TOPOLOGY_NODES_MAX; i++)
        if (is_target(&t->nodes[i]))
            ids[n++] = t->nodes[i].os;
    str_from_ids(ids, n, list, sizeof list);
    return err_set(err, ERR_INVALID, "numa", "node %d %s; nodes with memory are %s", os,
                   !node            ? "is not there"
                   : !node->allowed ? "is outside the mems of the daemon"
                                    : "has no memory",
                   list);
}

// The target nearest to `node` by distance (lowest number wins a tie); -1: there is none.
static int nearest_target(const struct topology *t, int node)
{
    int from = topology_node_index(t, node), best = -1, best_distance = 0;
    for (int i = 0; i < t->n_nodes; i++) {
        int d = t->distance && from >= 0 ? t->distance[from * t->n_nodes + i] : i == from ? 10 : 20;
        if (is_target(&t->nodes[i]) && (best < 0 || d < best_distance)) {
            best = t->nodes[i].os;
            best_distance = d;
        }
    }
    return best;
}

static int place_local(struct plan *p, const struct topology *t, struct err *err)
{
    bool told = false;
    for (int i = 0; i < p->n_ranks; i++) {
        struct plan_rank *r = &p->ranks[i];
        r->mem_node =
            is_target(topology_node(t, r->cpu_node)) ? r->cpu_node : nearest_target(t, r->cpu_node);
        if (r->mem_node < 0)
            return err_set(err, ERR_INVALID, "numa", "no node has memory that this daemon may use");
        if (r->mem_node != r->cpu_node && !told) {
            note(p, "CPU %d has no memory of its own: the nearest node that has some, %d, is used",
                 r->cpu, r->mem_node);
            told = true;
        }
    }
    return 0;
}

static int place_round_robin(struct plan *p, const struct topology *t, struct err *err)
{
    int targets[TOPOLOGY_NODES_MAX], n = 0;
    for (int i = 0; i < t->n_nodes && n < TOPOLOGY_NODES_MAX; i++)
        if (is_target(&t->nodes[i]))
            targets[n++] = t->nodes[i].os;
    if (!n)
        return err_set(err, ERR_INVALID, "numa", "no node has memory that this daemon may use");
    for (int i = 0; i < p->n_ranks; i++)
        p->ranks[i].mem_node = targets[i % n];
    return 0;
}

static int place_listed(struct plan *p, const struct spec *s, const struct topology *t,
                        struct err *err)
{
    CLEANUP_MEM int *ids = NULL;
    int n;
    if (str_to_ids(s->numa, true, SPEC_RANKS_MAX, "numa", &ids, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (!is_target(topology_node(t, ids[i])))
            return refuse_node(t, ids[i], err);
    if (n != 1 && n != p->n_ranks)
        return err_set(err, ERR_INVALID, "numa",
                       "lists %d nodes for %d ranks: give one, or one a rank", n, p->n_ranks);
    for (int i = 0; i < p->n_ranks; i++)
        p->ranks[i].mem_node = ids[n == 1 ? 0 : i];
    return 0;
}

static int place(struct plan *p, const struct spec *s, const struct topology *t, struct err *err)
{
    if (strcmp(s->numa, "local") == 0)
        return place_local(p, t, err);
    if (strcmp(s->numa, "auto") == 0)
        return place_round_robin(p, t, err);
    return place_listed(p, s, t, err);
}

// Pairs of ranks that share a core, or a CPU: their numbers are of that situation.
static void note_sharing(struct plan *p, const struct topology *t)
{
    for (int i = 0; i < p->n_ranks; i++)
        for (int j = 0; j < i; j++) {
            const struct topo_cpu *a = topology_cpu(t, p->ranks[i].cpu),
                                  *b = topology_cpu(t, p->ranks[j].cpu);
            if (a == b)
                note(p, "ranks %d and %d share CPU %d: they take turns", j, i, a->os);
            else if (a->core == b->core)
                note(p, "ranks %d and %d share a core (CPUs %d and %d)", j, i, b->os, a->os);
            if (p->n_notes == PLAN_NOTES_MAX)
                return;
        }
}

static int64_t largest(const struct spec *s)
{
    CLEANUP_MEM uint64_t *sizes = NULL;
    int n;
    if (str_to_sizes(s->latency.size, SPEC_SIZES_MAX, "size", &sizes, &n, NULL) < 0)
        return 0;
    uint64_t page = s->latency.pages == PAGES_4K ? 4096 : 2 << 20;
    return (int64_t)((sizes[n - 1] + page - 1) / page * page);
}

int plan_make(struct plan *p, const struct spec *s, const struct topology *t, struct err *err)
{
    struct plan made CLEANUP(plan_fini) = {.ranks = calloc(SPEC_RANKS_MAX, sizeof *made.ranks)};
    if (!made.ranks)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a plan");
    if ((*s->cpus ? take_listed(&made, s, t, err) : choose(&made, s, t, err)) < 0 ||
        place(&made, s, t, err) < 0)
        return -1;
    note_sharing(&made, t);
    made.bytes_per_rank = largest(s);
    *p = made;
    made = (struct plan){0};
    return 0;
}

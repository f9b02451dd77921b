// SPDX-License-Identifier: Apache-2.0
// Ranks are numbered by node, then core, then hardware thread, so that rank 0…k-1 of a plan sit on
// the first node, and neighbours in the table are neighbours in the machine. With `cpus` the user's
// order stands.
#include "core/launch/planner.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/shape.h"
#include "model/spec_values.h"
#include "model/stream_team.h"
#include "model/target.h"
#include "model/workload.h"

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

// Allowed CPUs in rank order; without `hyperthreads` the first of each core that is allowed, be it
// the core's first thread or not. Owned array of borrowed pointers.
static const struct topo_cpu **candidates(const struct topology *t, bool hyperthreads, int *n,
                                          struct err *err)
{
    const struct topo_cpu **list = calloc((size_t)t->n_cpus + 1, sizeof *list);
    if (!list) {
        err_set(err, ERR_NO_MEMORY, "ranks", "no memory for %d CPUs", t->n_cpus);
        return NULL;
    }
    int found = 0, kept = 0;
    for (int i = 0; i < t->n_cpus; i++)
        if (t->cpus[i].allowed)
            list[found++] = &t->cpus[i];
    qsort(list, (size_t)found, sizeof *list, by_place);
    for (int i = 0; i < found; i++)
        if (hyperthreads || !kept || list[kept - 1]->core != list[i]->core)
            list[kept++] = list[i];
    *n = kept;
    return list;
}

static int planner_add_rank(struct plan *p, const struct topo_cpu *cpu, struct err *err)
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

// How strong a core is, of those that can be compared.
static int strength(const struct topology *t, const struct topo_cpu *c)
{
    return t->n_kinds > 1 && c->kind >= 0 ? t->kinds[c->kind].efficiency : 0;
}

// Whether `a` is to be taken before `b`, which stands before it in the list: the stronger one, and
// of equals the last core, because CPU 0 has the timers and interrupts of most machines.
static bool planner_prefers(const struct topology *t, const struct topo_cpu *a,
                            const struct topo_cpu *b)
{
    int more = strength(t, a) - strength(t, b);
    return more > 0 || (more == 0 && a->core != b->core);
}

// Of the `n` candidates of a group that are not taken, of which there is one.
static int strongest_left(const struct topology *t, const struct topo_cpu **group, int n,
                          const bool *taken)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (!taken[i] && (best < 0 || planner_prefers(t, group[i], group[best])))
            best = i;
    return best;
}

// Marks `most` of the `n` candidates of a group.
static void mark_strongest(const struct topology *t, const struct topo_cpu **group, int n,
                           int64_t most, bool *taken)
{
    for (int64_t k = 0; k < most && k < n; k++)
        taken[strongest_left(t, group, n, taken)] = true;
}

static int refuse_few(const struct spec *s, int64_t want, int node, int there, struct err *err)
{
    char where[32] = "the CPUs of no node have";
    const char *what = s->hyperthreads ? "CPU" : "core";
    if (node >= 0)
        snprintf(where, sizeof where, "node %d has", node);
    return err_set(
        err, ERR_INVALID, "ranks",
        "is %lld per node, but %s %d %s%s for ranks: request %d at most, or oversubscribe: "
        "then ranks take turns on a CPU",
        (long long)want, where, there, what, str_plural(there), there);
}

// More ranks than a group has CPUs: neighbours take turns on one.
static int share_cpus(struct plan *p, const struct topo_cpu **group, int n, int64_t ranks,
                      struct err *err)
{
    for (int64_t k = 0; k < ranks; k++)
        if (planner_add_rank(p, group[k * n / ranks], err) < 0)
            return -1;
    return n;
}

// One core is the first of its group, where that measures alone: by the same rule as one of a node.
static void put_first(const struct topo_cpu **group, int best)
{
    const struct topo_cpu *first = group[best];
    memmove(group + 1, group, (size_t)best * sizeof(const struct topo_cpu *));
    group[0] = first;
}

// Of the first group in the list. Returns how many candidates it has; -1.
static int choose_group(struct plan *p, const struct spec *s, const struct topology *t,
                        const struct topo_cpu **list, int n, enum choice which, int64_t most,
                        struct err *err)
{
    int size = 1;
    while (size < n && list[size]->node == list[0]->node &&
           (which != ONE_PER_LLC || list[size]->l3 == list[0]->l3))
        size++;
    bool few = which == PER_NODE && size < most;
    if (few && !s->oversubscribe)
        return refuse_few(s, most, list[0]->node, size, err);
    CLEANUP_MEM bool *taken = calloc((size_t)size, sizeof *taken);
    if (!taken)
        return err_set(err, ERR_NO_MEMORY, "ranks", "no memory for %d CPUs", size);
    bool all = which == ALL_CORES || most >= size;
    if (all && benchmarks[s->benchmark].first_measures)
        put_first(list, strongest_left(t, list, size, taken));
    if (few)
        return share_cpus(p, list, size, most, err);
    if (!all)
        mark_strongest(t, list, size, most, taken);
    for (int i = 0; i < size; i++)
        if ((all || taken[i]) && planner_add_rank(p, list[i], err) < 0)
            return -1;
    return size;
}

// Which candidates become ranks: all, or of each group (a node, a last-level cache) the strongest.
static int planner_choose(struct plan *p, const struct spec *s, const struct topology *t,
                          struct err *err)
{
    int n;
    CLEANUP_MEM const struct topo_cpu **list = candidates(t, s->hyperthreads, &n, err);
    if (!list)
        return -1;
    int64_t most = 1;
    enum choice which = read_choice(s->ranks, &most);
    for (int i = 0, size; i < n; i += size)
        if ((size = choose_group(p, s, t, list + i, n - i, which, most, err)) < 0)
            return -1;
    if (!p->n_ranks)
        return err_set(err, ERR_INVALID, "ranks", "there is no CPU that this daemon may use");
    if (which == ONE_PER_LLC && list[0]->l3 < 0)
        note(p, "which CPUs share a last-level cache is not known here: one rank per node instead");
    return 0;
}

static int refuse_cpu(const struct topology *t, int os, bool there, const char *member,
                      struct err *err)
{
    CLEANUP_MEM int *ids = calloc((size_t)t->n_cpus + 1, sizeof *ids);
    char list[120] = "";
    int n = 0;
    for (int i = 0; ids && i < t->n_cpus; i++)
        if (t->cpus[i].allowed)
            ids[n++] = t->cpus[i].os;
    if (ids)
        str_from_ids(ids, n, list, sizeof list);
    return err_set(err, ERR_INVALID, member, "CPU %d is %s; CPUs are %s", os,
                   there ? "outside the cpuset of the daemon or of the requesting job"
                         : "not there or offline",
                   list);
}

static int take_listed(struct plan *p, const struct spec *s, const struct topology *t,
                       struct err *err)
{
    CLEANUP_MEM int *ids = NULL;
    int n;
    if (spec_cpus(s, &ids, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        const struct topo_cpu *cpu = topology_cpu(t, ids[i]);
        if (!cpu || !cpu->allowed)
            return refuse_cpu(t, ids[i], cpu != NULL, "cpus", err);
        if (planner_add_rank(p, cpu, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_target(const struct topo_node *n)
{
    return n && n->allowed && n->memory_bytes > 0;
}

// One that is taken without being named.
static bool is_default_target(const struct topo_node *n)
{
    return is_target(n) && !topology_node_is_special(n);
}

static int no_target(const struct topology *t, const char *member, struct err *err)
{
    bool special = false;
    for (int i = 0; i < t->n_nodes; i++)
        special |= is_target(&t->nodes[i]);
    return err_set(err, ERR_INVALID, member, "no node has memory that this daemon may use%s",
                   special ? " without being named" : "");
}

static int refuse_node(const struct topology *t, int os, const char *member, struct err *err)
{
    const struct topo_node *node = topology_node(t, os);
    int ids[TOPOLOGY_NODES_MAX], n = 0;
    char list[100];
    for (int i = 0; i < t->n_nodes && n < TOPOLOGY_NODES_MAX; i++)
        if (is_target(&t->nodes[i]))
            ids[n++] = t->nodes[i].os;
    str_from_ids(ids, n, list, sizeof list);
    return err_set(err, ERR_INVALID, member, "node %d %s; nodes with memory are %s", os,
                   !node ? "is not there"
                   : node->memory_bytes <= 0
                       ? "has no memory" // and so is in no process's mems
                       : "is outside the mems of the daemon or of the requesting job",
                   list);
}

// SLIT: 10 is itself, 255 means out of reach; 0 is our "not known".
static int distance(const struct topology *t, int from, int to)
{
    if (!t->distance || from < 0)
        return from == to ? 10 : 20;
    int d = t->distance[from * t->n_nodes + to];
    return d > 0 ? d : 255;
}

// The target nearest to `node` by distance (lowest number wins a tie); -1: there is none.
static int nearest_target(const struct topology *t, int node)
{
    int from = topology_node_index(t, node), best = -1, best_distance = 0;
    for (int i = 0; i < t->n_nodes; i++) {
        int d = distance(t, from, i);
        if (is_default_target(&t->nodes[i]) && (best < 0 || d < best_distance)) {
            best = t->nodes[i].os;
            best_distance = d;
        }
    }
    return best;
}

// The fewest ranks that have a pair of each class that the machine has: the first CPU, and for each
// thing to share with it (or not) the first CPU that does.
static int choose_classes(struct plan *p, const struct topology *t, struct err *err)
{
    int n;
    CLEANUP_MEM const struct topo_cpu **list = candidates(t, true, &n, err);
    if (!list)
        return -1;
    const struct topo_cpu *first = n ? list[0] : NULL;
    bool seen[PAIR_CLASSES] = {false};
    for (int i = 0; i < n; i++) {
        const struct topo_cpu *c = list[i];
        enum pair_class class = topology_pair_class(c, first);
        if (i > 0 && seen[class])
            continue;
        seen[class] = i > 0;
        if (planner_add_rank(p, c, err) < 0)
            return -1;
    }
    return 0;
}

static int choose_ranks(struct plan *p, const struct spec *s, const struct topology *t,
                        struct err *err)
{
    if (*s->cpus)
        return take_listed(p, s, t, err);
    if (spec_param(s, "pairs") && strcmp(s->pairs, "classes") == 0 &&
        strcmp(s->ranks, "all-cores") == 0 && !s->hyperthreads)
        return choose_classes(p, t, err);
    return planner_choose(p, s, t, err);
}

// Of `n` ranks, `r` the first: their own node has no memory, or none that is taken unnamed.
static void note_bare(struct plan *p, const struct topology *t, const struct plan_rank *r, int n)
{
    const struct topo_node *own = topology_node(t, r->cpu_node);
    char why[60] = "has no memory";
    if (own && own->memory_bytes > 0 && !own->allowed)
        snprintf(why, sizeof why, "is outside the mems of the daemon");
    else if (own && own->memory_bytes > 0)
        snprintf(why, sizeof why, "has memory of the kind %s only", own->kind);
    note(p,
         "%d rank%s on CPUs whose node has no memory for them, such as CPU %d: node %d %s. The "
         "nearest node that has some is used, %d for this CPU",
         n, n == 1 ? " is" : "s are", r->cpu, r->cpu_node, why, r->mem_node);
}

static int place_local(struct plan *p, const struct topology *t, struct err *err)
{
    int lost = 0, first = -1, node = -1; // CPUs of no node
    int bare = 0, bare_at = -1;          // whose node has no memory for them; the first of them
    for (int i = 0; i < p->n_ranks; i++) {
        struct plan_rank *r = &p->ranks[i];
        r->mem_node = is_default_target(topology_node(t, r->cpu_node))
                          ? r->cpu_node
                          : nearest_target(t, r->cpu_node);
        if (r->mem_node < 0)
            return no_target(t, "numa", err);
        if (r->cpu_node < 0 && lost++ == 0) {
            first = r->cpu;
            node = r->mem_node;
        }
        if (r->mem_node != r->cpu_node && r->cpu_node >= 0 && bare++ == 0)
            bare_at = i;
    }
    if (bare)
        note_bare(p, t, &p->ranks[bare_at], bare);
    if (lost)
        note(p, "%d rank%s on CPUs of no NUMA node, such as CPU %d: memory of node %d is used",
             lost, lost == 1 ? " is" : "s are", first, node);
    return 0;
}

static int planner_check_node(const void *ctx, int node, const char *member, struct err *err)
{
    const struct topology *t = ctx;
    if (node < 0)
        return no_target(t, member, err);
    return is_target(topology_node(t, node)) ? 0 : refuse_node(t, node, member, err);
}

// `nodes` has TOPOLOGY_NODES_MAX places.
static struct target_machine targets_of(const struct topology *t, int *nodes)
{
    struct target_machine m = {
        .nodes = nodes, .weights = t->weights, .check = planner_check_node, .ctx = t};
    for (int i = 0; i < t->n_nodes && m.n < TOPOLOGY_NODES_MAX; i++)
        if (is_default_target(&t->nodes[i]))
            nodes[m.n++] = t->nodes[i].os;
    return m;
}

static int place_round_robin(struct plan *p, const struct topology *t, struct err *err)
{
    int nodes[TOPOLOGY_NODES_MAX];
    struct target_machine m = targets_of(t, nodes);
    if (!m.n)
        return no_target(t, "numa", err);
    for (int i = 0; i < p->n_ranks; i++)
        p->ranks[i].mem_node = nodes[i % m.n];
    return 0;
}

// Nodes that were left out of `numa=auto` or `targets=all`.
static void note_special(struct plan *p, const struct topology *t, const char *member)
{
    int ids[TOPOLOGY_NODES_MAX] = {0}, n = 0;
    char list[60];
    const char *kind = "";
    for (int i = 0; i < t->n_nodes && n < TOPOLOGY_NODES_MAX; i++)
        if (is_target(&t->nodes[i]) && topology_node_is_special(&t->nodes[i])) {
            ids[n++] = t->nodes[i].os;
            kind = t->nodes[i].kind;
        }
    str_from_ids(ids, n, list, sizeof list);
    if (n)
        note(p, "node%s %s (memory of the kind %s) %s left out: name %s in %s to measure %s",
             str_plural(n), list, kind, n == 1 ? "is" : "are", n == 1 ? "it" : "them", member,
             n == 1 ? "it" : "them");
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
            return refuse_node(t, ids[i], "numa", err);
    if (n != 1 && n != p->n_ranks)
        return err_set(err, ERR_INVALID, "numa",
                       "lists %d nodes for %d ranks: give one, or one per rank", n, p->n_ranks);
    for (int i = 0; i < p->n_ranks; i++)
        p->ranks[i].mem_node = ids[n == 1 ? 0 : i];
    return 0;
}

static int place_interleaved(struct plan *p, const struct spec *s, const struct topology *t,
                             struct err *err)
{
    struct target_list list;
    int nodes[TOPOLOGY_NODES_MAX];
    struct target_machine m = targets_of(t, nodes);
    if (targets_read(&list, s->numa, "numa", err) < 0)
        return -1;
    int target = list.list[0];
    if (target_settle(&target, &list, &m, "numa", err) < 0)
        return -1;
    for (int i = 0; i < p->n_ranks; i++)
        p->ranks[i].mem_node = target;
    return 0;
}

static int place(struct plan *p, const struct spec *s, const struct topology *t, struct err *err)
{
    if (strcmp(s->numa, "local") == 0)
        return place_local(p, t, err);
    if (strcmp(s->numa, "auto") == 0) {
        note_special(p, t, "numa");
        return place_round_robin(p, t, err);
    }
    return target_is_policy(s->numa) ? place_interleaved(p, s, t, err) : place_listed(p, s, t, err);
}

// What ranks share, counted over all pairs; the first pair stands for the others.
struct sharing {
    int cpu_pairs, core_pairs, most_on_cache;
    int cpu_first[2], core_first[2]; // ranks
};

static void count_sharing(struct sharing *s, const struct topo_cpu *const *cpus, int n)
{
    for (int i = 0; i < n; i++) {
        int mates = 0, near = 0; // behind the same cache, and of those on the same core
        for (int j = 0; j < i; j++) {
            bool behind = cpus[i]->l3 >= 0 && cpus[i]->l3 == cpus[j]->l3;
            mates += behind;
            near += behind && cpus[i]->core == cpus[j]->core;
            if (cpus[i] == cpus[j]) {
                if (!s->cpu_pairs++)
                    s->cpu_first[0] = j, s->cpu_first[1] = i;
            } else if (cpus[i]->core == cpus[j]->core) {
                if (!s->core_pairs++)
                    s->core_first[0] = j, s->core_first[1] = i;
            }
        }
        if (mates > near && mates + 1 > s->most_on_cache)
            s->most_on_cache = mates + 1;
    }
}

static void others(int pairs, char *out, size_t room)
{
    if (pairs > 1)
        snprintf(out, room, ", and so do%s %d other pair%s", pairs == 2 ? "es" : "", pairs - 1,
                 str_plural(pairs - 1));
    else
        *out = '\0';
}

// Numbers of ranks that share something are numbers of that situation.
static int note_sharing(struct plan *p, const struct spec *s, const struct topology *t,
                        struct err *err)
{
    CLEANUP_MEM const struct topo_cpu **cpus = calloc((size_t)p->n_ranks + 1, sizeof *cpus);
    if (!cpus)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a plan");
    for (int i = 0; i < p->n_ranks; i++)
        cpus[i] = topology_cpu(t, p->ranks[i].cpu);
    struct sharing all = {0};
    count_sharing(&all, cpus, p->n_ranks);
    char more[48];
    others(all.cpu_pairs, more, sizeof more);
    if (all.cpu_pairs)
        note(p, "ranks %d and %d share CPU %d%s: they take turns", all.cpu_first[0],
             all.cpu_first[1], cpus[all.cpu_first[0]]->os, more);
    others(all.core_pairs, more, sizeof more);
    if (all.core_pairs)
        note(p, "ranks %d and %d share a core (CPUs %d and %d)%s", all.core_first[0],
             all.core_first[1], cpus[all.core_first[0]]->os, cpus[all.core_first[1]]->os, more);
    bool together = benchmarks[s->benchmark].fills_caches && s->mode != MODE_SERIAL;
    if (all.most_on_cache > 1 && together)
        note(p,
             "up to %d ranks share one last-level cache: each has only a part of it while all "
             "measure",
             all.most_on_cache);
    return 0;
}

// Ranks on cores of different strength: their numbers differ by that.
static void note_kinds(struct plan *p, const struct topology *t)
{
    int ranks[TOPOLOGY_KINDS_MAX] = {0}, first[TOPOLOGY_KINDS_MAX], kinds = 0;
    char text[120] = "";
    for (int i = 0; t->n_kinds > 1 && i < p->n_ranks; i++) {
        int kind = topology_cpu(t, p->ranks[i].cpu)->kind;
        if (kind >= 0 && ranks[kind]++ == 0) {
            first[kind] = p->ranks[i].cpu;
            kinds++;
        }
    }
    for (int k = t->n_kinds - 1; kinds > 1 && k >= 0; k--) {
        size_t used = strlen(text);
        if (ranks[k])
            snprintf(text + used, sizeof text - used, "%s%d of kind %d (CPU %d)", used ? ", " : "",
                     ranks[k], k, first[k]);
    }
    if (kinds > 1)
        note(p, "ranks are on %d kinds of cores, which differ in speed: %s", kinds, text);
}

// Nodes of which a rank chases, and none is left to make load.
static void planner_note_unloaded(struct plan *p, const struct spec *s)
{
    int ids[TOPOLOGY_NODES_MAX], n = 0;
    char list[60];
    for (int i = 0; benchmarks[s->benchmark].loads_by_ranks && i < p->n_ranks; i++) {
        int on_node = 0;
        for (int k = 0; k < p->n_ranks; k++)
            on_node += p->ranks[k].cpu_node == p->ranks[i].cpu_node;
        if (on_node == 1 && n < TOPOLOGY_NODES_MAX)
            ids[n++] = p->ranks[i].cpu_node;
    }
    str_from_ids(ids, n, list, sizeof list);
    if (n)
        note(p, "node%s %s %s one rank, which chases: nothing loads %s memory", str_plural(n), list,
             n == 1 ? "has" : "have", n == 1 ? "its" : "their");
}

// Sizes follow from the last-level cache. Where a run of `hierarchy` found a larger one than the
// kernel lists, they follow from that; its own sizes do not, so that its runs stay comparable.
static void planner_take_found(struct plan *p, const struct spec *s, const struct topology *t)
{
    bool by_size = strcmp(s->size, "auto") == 0 || s->benchmark == BENCHMARK_SCAN;
    const struct found_memory *f = &t->found;
    memcpy(p->speeds, t->speeds, sizeof p->speeds);
    p->benchmark = (enum benchmark_id)s->benchmark;
    int64_t listed = topology_llc_bytes(t) >> 20;
    if (!f->found || s->benchmark == BENCHMARK_HIERARCHY || (!by_size && !f->bytes))
        return;
    p->found_run = f->run;
    p->found_bytes = f->bytes;
    if (f->bytes)
        note(p,
             "sizes from run %" PRId64 " (hierarchy): it found a cache of %" PRId64
             " MiB, the kernel lists %" PRId64 " MiB",
             f->run, f->found >> 20, listed);
    else
        note(p,
             "sizes from run %" PRId64 " (hierarchy): it found no cache beyond the %" PRId64
             " MiB that the kernel lists",
             f->run, listed);
}

// A number of pairs that a smaller machine does not have.
static void planner_note_all_pairs(struct plan *p, const struct spec *s)
{
    int64_t n = p->n_ranks, all = spec_param(s, "pairs") ? n * (n - 1) / 2 : n * p->n_targets;
    if (s->pairs_most && s->pairs_most >= all)
        note(p, "there %s %" PRId64 " pair%s: pairs_most (%" PRId64 ") leaves none out",
             all == 1 ? "is" : "are", all, str_plural(all), s->pairs_most);
}

// What was requested and changes nothing, but is no error.
static void note_unused(struct plan *p, const struct spec *s)
{
    struct spec usual;
    uint64_t huge = 2 << 20, bytes = spec_bytes_per_rank(s, huge);
    spec_init(&usual, (enum benchmark_id)s->benchmark);
    if (*s->cpus && strcmp(s->ranks, usual.ranks) != 0)
        note(p, "cpus names the CPUs of the ranks: ranks (%s) is not used", s->ranks);
    if (s->quick && s->method == METHOD_CLASSIC)
        note(p, "method classic times each cell once: quick changes nothing");
    if (s->benchmark == BENCHMARK_PAGEFAULT && bytes % huge)
        note(p, "size is rounded up to whole huge pages: %" PRIu64 " MiB",
             (bytes + huge - 1) / huge * (huge >> 20));
}

// --- What benchmarks need besides ranks --------------------------------------------------------

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int planner_find_targets(struct plan *p, const struct spec *s, const struct topology *t,
                                struct err *err)
{
    struct target_list list;
    int nodes[TOPOLOGY_NODES_MAX];
    struct target_machine m = targets_of(t, nodes);
    if (!spec_has_targets(s))
        return 0;
    if (targets_read(&list, s->targets, "targets", err) < 0)
        return -1;
    if (list.all)
        note_special(p, t, "targets");
    if (targets_settle(p->targets, &p->n_targets, &list, &m, "targets", err) < 0)
        return -1;
    if (s->cost == COST_MIGRATE && p->n_targets < 2)
        return err_set(err, ERR_INVALID, "cost",
                       "is migrate, which needs two nodes with memory; targets has node %d only",
                       p->targets[0]);
    return 0;
}

static int planner_check_third(const struct plan *p, struct err *err)
{
    char targets[60];
    str_from_ids(p->targets, p->n_targets, targets, sizeof targets);
    for (int i = 0; i < p->n_ranks; i++)
        for (int j = i + 1; j < p->n_ranks; j++) {
            int first = p->ranks[i].cpu_node, second = p->ranks[j].cpu_node;
            if (spec_third_node(p->targets, p->n_targets, first, second) < 0)
                return err_set(err, ERR_INVALID, "home",
                               "is third, but no node of targets (%s) is neither that of rank %d "
                               "(%d) nor that of rank %d (%d)",
                               targets, i, first, j, second);
        }
    return 0;
}

// Where a pair's lines are to be elsewhere than with its first rank, there must be such a node.
static int planner_check_home(const struct plan *p, const struct spec *s, struct err *err)
{
    if (!spec_param(s, "home") || s->home == C2C_HOME_FIRST)
        return 0;
    if (s->home == C2C_HOME_THIRD)
        return planner_check_third(p, err);
    for (int i = 1; i < p->n_ranks; i++)
        if (p->ranks[i].cpu_node != p->ranks[0].cpu_node)
            return 0;
    return err_set(err, ERR_INVALID, "home",
                   "is second, but all ranks are on node %d: use first, or choose ranks on two "
                   "nodes",
                   p->ranks[0].cpu_node);
}

static int planner_check_load_cpus(struct plan *p, const struct spec *s, const struct topology *t,
                                   struct err *err)
{
    CLEANUP_MEM int *ids = NULL, *ranks = calloc((size_t)p->n_ranks + 1, sizeof *ranks);
    int n;
    if (!ranks)
        return err_set(err, ERR_NO_MEMORY, "load_cpus", "no memory for %d CPUs", p->n_ranks);
    for (int r = 0; r < p->n_ranks; r++)
        ranks[r] = p->ranks[r].cpu;
    if (spec_load_cpus(s, ranks, p->n_ranks, &ids, &n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        const struct topo_cpu *cpu = topology_cpu(t, ids[i]);
        if (!cpu || !cpu->allowed)
            return refuse_cpu(t, ids[i], cpu != NULL, "load_cpus", err);
    }
    return 0;
}

// One thread of each core that has no rank, or those requested.
static int find_load_cpus(struct plan *p, const struct spec *s, const struct topology *t,
                          struct err *err)
{
    int n = 0, kept = 0;
    if (!spec_param(s, "load_cpus") || s->load == LOAD_NONE)
        return 0;
    if (*s->load_cpus) {
        snprintf(p->load_cpus, sizeof p->load_cpus, "%s", s->load_cpus);
        return planner_check_load_cpus(p, s, t, err);
    }
    CLEANUP_MEM const struct topo_cpu **list = candidates(t, false, &n, err);
    CLEANUP_MEM int *ids = calloc((size_t)n + 1, sizeof *ids);
    if (!list || !ids)
        return err_set(err, ERR_NO_MEMORY, "load_cpus", "no memory for %d CPUs", n);
    for (int i = 0; i < n; i++) {
        bool taken = false;
        for (int r = 0; r < p->n_ranks; r++)
            taken |= topology_cpu(t, p->ranks[r].cpu)->core == list[i]->core;
        if (!taken)
            ids[kept++] = list[i]->os;
    }
    if (!kept)
        return err_set(err, ERR_INVALID, "load",
                       "every core has a rank, so none is left to generate load: request fewer "
                       "ranks (ranks=1) or name load_cpus");
    qsort(ids, (size_t)kept, sizeof *ids, by_number);
    str_from_ids(ids, kept, p->load_cpus, sizeof p->load_cpus);
    return 0;
}

// Of those that make the load: how many share a last-level cache.
static int planner_load_sharing(const struct plan *p, const struct topology *t)
{
    CLEANUP_MEM int *ids = NULL;
    CLEANUP_MEM int *llc = calloc((size_t)p->n_ranks + SPEC_RANKS_MAX, sizeof *llc);
    int n = 0, kept = 0;
    if (!llc)
        return 1;
    if (*p->load_cpus)
        str_to_ids(p->load_cpus, false, SPEC_RANKS_MAX, "load_cpus", &ids, &n, NULL);
    for (int i = 0; i < n; i++)
        llc[kept++] = topology_cpu(t, ids[i])->l3;
    for (int r = 0; r < p->n_ranks; r++)
        if (p->ranks[r].loads)
            llc[kept++] = topology_cpu(t, p->ranks[r].cpu)->l3;
    return spec_load_sharing(llc, kept);
}

// The largest of the machine: loaders on cores of another kind may need less.
static uint64_t planner_private_bytes(const struct topology *t)
{
    int64_t l2 = 0;
    for (int i = 0; i < t->n_caches; i++)
        if (t->caches[i].level == 2 && t->caches[i].bytes > l2)
            l2 = t->caches[i].bytes;
    return spec_private_bytes((uint64_t)l2, (uint64_t)topology_llc_bytes(t));
}

static int64_t planner_loader_bytes(const struct plan *p, const struct spec *s,
                                    const struct topology *t, const struct page_sizes *sizes,
                                    uint64_t one, uint64_t usual)
{
    bool ranks = benchmarks[s->benchmark].loads_by_ranks;
    uint64_t together = ranks ? one : usual;
    if (!ranks && !*p->load_cpus)
        return 0;
    return (int64_t)spec_page_round(
        ranks ? (enum pages)s->pages : PAGES_THP, sizes,
        spec_loader_bytes(together, planner_load_sharing(p, t), planner_private_bytes(t)));
}

// Of the ranks that work on a target at once: those of one node where they make the load.
static int64_t planner_target_bytes(const struct plan *p, const struct benchmark *b, uint64_t one)
{
    int64_t most = 0;
    if (!b->loads_by_ranks)
        return (int64_t)(b->bytes_of == BYTES_OF_EACH ? one * (uint64_t)p->n_ranks : one);
    for (int i = 0; i < p->n_ranks; i++) {
        int64_t bytes = 0;
        for (int k = 0; !p->ranks[i].loads && k < p->n_ranks; k++)
            if (p->ranks[k].cpu_node == p->ranks[i].cpu_node)
                bytes += p->ranks[k].loads ? p->bytes_per_loader : (int64_t)one;
        most = bytes > most ? bytes : most;
    }
    return most;
}

// Of memory that ranks have together, each its part in whole pages: of the ranks that work at once,
// which are those of a node or all.
static uint64_t planner_round_shared(const struct plan *p, const struct spec *s, uint64_t page,
                                     uint64_t bytes)
{
    bool by_node = s->sweep == SWEEP_NODES || s->sweep == SWEEP_MEMCPY;
    uint64_t most = 0;
    for (int i = 0; i < p->n_ranks; i++) {
        uint64_t at_once = 0;
        for (int k = 0; k < p->n_ranks; k++)
            at_once += !by_node || p->ranks[k].cpu_node == p->ranks[i].cpu_node;
        most = at_once > most ? at_once : most;
    }
    return (bytes + most * page - 1) / (most * page) * most * page;
}

// Nodes that have CPUs of ranks.
static int cpu_nodes(const struct plan *p)
{
    int n = 0;
    for (int i = 0; i < p->n_ranks; i++) {
        int k = 0;
        while (p->ranks[k].cpu_node != p->ranks[i].cpu_node)
            k++;
        n += k == i;
    }
    return n;
}

// How much each rank and each target has to hold; the same arithmetic as the benchmarks'.
static int count_bytes(struct plan *p, const struct spec *s, const struct topology *t,
                       struct err *err)
{
    const struct benchmark *b = &benchmarks[s->benchmark];
    const struct page_sizes *sizes = topology_pages(t);
    uint64_t ranks = (uint64_t)p->n_ranks;
    CLEANUP_MEM struct rank_cache *caches = workload_caches(p, t, err);
    if (!caches)
        return -1;
    uint64_t usual = spec_auto_bytes_of(caches, p->n_ranks), one = spec_bytes_per_rank(s, usual);
    if (b->bytes && b->bytes(s, caches, p->n_ranks, sizes, &one, err) < 0)
        return -1;
    if (spec_pages_reserved((enum pages)s->pages))
        p->reserved_page_bytes = (int64_t)spec_page_bytes((enum pages)s->pages, sizes, one);
    if (b->bytes_of != BYTES_OF_ALL)
        one = b->whole_pages ? one : spec_page_round((enum pages)s->pages, sizes, one);
    else if (p->reserved_page_bytes)
        one = planner_round_shared(p, s, (uint64_t)p->reserved_page_bytes, one);
    p->bytes_per_loader = planner_loader_bytes(p, s, t, sizes, one, usual);
    if (p->n_targets) {
        p->bytes_per_target = planner_target_bytes(p, b, one);
        p->targets_at_once = stream_at_once(s, cpu_nodes(p), p->n_targets);
    } else if (b->bytes_of == BYTES_OF_ALL)
        p->bytes_per_rank = (int64_t)((one + ranks - 1) / ranks);
    else
        p->bytes_per_rank = (int64_t)one;
    if (p->n_targets && b->loads_by_ranks)
        p->bytes_per_loader = 0; // what they have is on the targets
    return 0;
}

static bool planner_takes_node(const struct plan *p, int node)
{
    bool takes = false;
    for (int i = 0; i < p->n_targets; i++)
        takes |= p->targets[i] == node;
    for (int i = 0; !p->n_targets && i < p->n_ranks; i++) {
        const struct plan_rank *r = &p->ranks[i];
        takes |= (r->mem_node == -1 ? r->cpu_node : r->mem_node) == node;
    }
    return takes;
}

// What is larger than the CPU's caches is called memory, and a memory-side cache is a part of that:
// programs cannot leave it out.
static void planner_note_side_caches(struct plan *p, const struct topology *t)
{
    int64_t bytes = 0, together = p->bytes_per_rank * p->n_ranks;
    together = p->bytes_per_target > together ? p->bytes_per_target : together;
    int ids[TOPOLOGY_NODES_MAX] = {0}, n = 0;
    char list[60], size[24];
    for (int i = 0; i < t->n_nodes && n < TOPOLOGY_NODES_MAX; i++)
        if (t->nodes[i].cache_bytes > 0 && planner_takes_node(p, t->nodes[i].os)) {
            ids[n++] = t->nodes[i].os;
            bytes = t->nodes[i].cache_bytes > bytes ? t->nodes[i].cache_bytes : bytes;
        }
    if (!n || together <= topology_llc_bytes(t)) // such as lines that are handed over
        return;
    str_from_ids(ids, n, list, sizeof list);
    str_from_bytes((uint64_t)bytes, size, sizeof size);
    note(p,
         "memory of node%s %s is behind a memory-side cache of %s: what is smaller is measured in "
         "that cache, and counts as memory",
         str_plural(n), list, size);
}

static int first_touch_everywhere(struct plan *p, const struct spec *s)
{
    for (int i = 0; benchmarks[s->benchmark].no_policy && i < p->n_ranks; i++)
        p->ranks[i].mem_node = -1;
    return 0;
}

// The first rank of each node measures. False: no other is left.
static bool planner_mark_loaders(struct plan *p)
{
    bool any = false;
    for (int i = 0; i < p->n_ranks; i++) {
        for (int k = 0; k < i; k++)
            p->ranks[i].loads |= p->ranks[k].cpu_node == p->ranks[i].cpu_node;
        any |= p->ranks[i].loads;
    }
    return any;
}

static int needs_ranks(struct plan *p, const struct spec *s, struct err *err)
{
    const struct benchmark *b = &benchmarks[s->benchmark];
    const char *member = *s->cpus ? "cpus" : "ranks";
    if (p->n_ranks < b->least_ranks)
        return err_set(err, ERR_INVALID, member, "%s needs two ranks at least, the plan has one",
                       b->name);
    if (shape_check_ranks(s, p->n_ranks, err) < 0)
        return -1;
    if (!b->loads_by_ranks || planner_mark_loaders(p))
        return 0;
    return err_set(
        err, ERR_INVALID, member,
        "no rank is left to generate load: each of the %d is the first of its node, which chases",
        p->n_ranks);
}

// A choice of a parameter, and what a CPU needs for it; scalar code and auto need nothing.
struct needed {
    int choice;
    unsigned bit; // enum cpu_instructions
    const char *name;
};

static const struct needed sets_needed[] = {
    {INSTRUCTIONS_SSE2, CPU_SSE2, "sse2"},       {INSTRUCTIONS_AVX2, CPU_AVX2, "avx2"},
    {INSTRUCTIONS_AVX512, CPU_AVX512, "avx512"}, {INSTRUCTIONS_NEON, CPU_NEON, "neon"},
    {INSTRUCTIONS_SVE, CPU_SVE, "sve"},
};

static const struct needed forms_needed[] = {
    {FORM_LSE, CPU_LSE, "lse"},
    {FORM_LLSC, CPU_LLSC, "llsc"},
};

// `always`: what every CPU has.
static int planner_check_needed(const struct needed *list, size_t n, int choice, unsigned has,
                                const char *member, const char *always, struct err *err)
{
    char there[80];
    const char *wanted = NULL;
    snprintf(there, sizeof there, "%s", always);
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(there);
        if (has & list[i].bit)
            snprintf(there + used, sizeof there - used, ", %s", list[i].name);
        else if (list[i].choice == choice)
            wanted = list[i].name;
    }
    if (!wanted || !(has & CPU_KNOWN))
        return 0;
    return err_set(err, ERR_INVALID, member, "must be %s%s on this CPU, which has no other; got %s",
                   strchr(there, ',') ? "one of " : "", there, wanted);
}

static int check_instructions(const struct spec *s, const struct topology *t, struct err *err)
{
    if (spec_param(s, "instructions") &&
        planner_check_needed(sets_needed, COUNT_OF(sets_needed), s->instructions, t->instructions,
                             "instructions", "auto, scalar", err) < 0)
        return -1;
    if (!spec_param(s, "form"))
        return 0;
    return planner_check_needed(forms_needed, COUNT_OF(forms_needed), s->form, t->instructions,
                                "form", "auto", err);
}

// Its method counts pages of these sizes.
static int planner_check_pages(const struct spec *s, const struct topology *t, struct err *err)
{
    uint64_t thp = spec_page_bytes(PAGES_THP, &t->pages, 1);
    if (s->benchmark != BENCHMARK_PAGEFAULT || !t->pages.base ||
        (t->pages.base == page_sizes_usual.base && thp == page_sizes_usual.thp))
        return 0;
    return err_set(err, ERR_INVALID, "benchmark",
                   "is pagefault, which needs base pages of 4 KiB and huge pages of 2 MiB; this "
                   "kernel has %llu and %llu KiB",
                   (unsigned long long)(t->pages.base >> 10),
                   (unsigned long long)(t->pages.thp >> 10));
}

// A request is checked without the machine, whose lines may have more than 64 bytes.
static int planner_check_lines(const struct spec *s, const struct topology *t, struct err *err)
{
    CLEANUP_MEM uint64_t *sizes = NULL;
    int n;
    if (t->line_bytes <= 0 || !spec_param(s, "size") || s->method == METHOD_CLASSIC)
        return 0; // the links of the classic method are words
    if (s->stride && (int64_t)s->stride < t->line_bytes)
        return err_set(err, ERR_INVALID, "stride",
                       "must be 0 or at least the cache line of %d bytes, because several links "
                       "would share one; got %llu",
                       t->line_bytes, (unsigned long long)s->stride);
    if (strcmp(s->size, "auto") == 0)
        return spec_check_links(s, UINT64_MAX, (uint64_t)t->line_bytes, err);
    if (str_to_sizes(s->size, SPEC_SIZES_MAX, "size", &sizes, &n, err) < 0)
        return -1;
    return spec_check_links(s, sizes[0], (uint64_t)t->line_bytes, err);
}

// What the ranks would refuse after their start.
static int check_limits(const struct plan *p, const struct spec *s, const struct topology *t,
                        struct err *err)
{
    if (planner_check_lines(s, t, err) < 0 || check_instructions(s, t, err) < 0 ||
        planner_check_pages(s, t, err) < 0)
        return -1;
    if (s->benchmark != BENCHMARK_ATOMICS) // of bandwidth the working sets follow from it
        return 0;
    CLEANUP_MEM int *counts = calloc(SPEC_RANKS_MAX, sizeof *counts);
    if (!counts)
        return err_set(err, ERR_NO_MEMORY, "threads", "no memory for %d ranks", p->n_ranks);
    return stream_thread_counts(s, p->n_ranks, counts, err) < 0 ? -1 : 0;
}

int plan_make(struct plan *p, const struct spec *s, const struct topology *t, struct err *err)
{
    struct plan made CLEANUP(plan_fini) = {.ranks = calloc(SPEC_RANKS_MAX, sizeof *made.ranks)};
    if (!made.ranks)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a plan");
    if (choose_ranks(&made, s, t, err) < 0 || needs_ranks(&made, s, err) < 0 ||
        check_limits(&made, s, t, err) < 0 || place(&made, s, t, err) < 0 ||
        first_touch_everywhere(&made, s) < 0 || planner_find_targets(&made, s, t, err) < 0 ||
        shape_check_pairs(s, made.n_ranks, made.n_targets, err) < 0 ||
        planner_check_home(&made, s, err) < 0 || find_load_cpus(&made, s, t, err) < 0 ||
        note_sharing(&made, s, t, err) < 0)
        return -1;
    note_kinds(&made, t);
    planner_note_unloaded(&made, s);
    note_unused(&made, s);
    planner_note_all_pairs(&made, s);
    planner_take_found(&made, s, t);
    if (count_bytes(&made, s, t, err) < 0)
        return -1;
    planner_note_side_caches(&made, t);
    made.processes = s->launcher == LAUNCHER_PROCESSES; // auto: not known before launch_choose
    *p = made;
    made = (struct plan){0};
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// The ranks are sorted by number once. Looking one up is then a bisection instead of a walk
// over a thousand ranks for each cell.
#include "analysis/stats/rank_places.h"

#include <stdlib.h>
#include <string.h>

static int rank_places_by_rank(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->info > y->info) - (x->info < y->info);
}

int places_init(struct places *p, const struct rank_info *ranks, int n,
                const struct topology *topology, struct err *err)
{
    n = ranks ? n : 0;
    *p = (struct places){.list = calloc((size_t)n + 1, sizeof *p->list)};
    if (!p->list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the places of %d ranks", n);
    for (int i = 0; i < n; i++) {
        bool known = topology && ranks[i].cpu >= 0;
        p->list[i] =
            (struct place){.rank = ranks[i].rank,
                           .info = &ranks[i],
                           .cpu = known ? topology_cpu(topology, (int)ranks[i].cpu) : NULL};
    }
    qsort(p->list, (size_t)n, sizeof *p->list, rank_places_by_rank);
    for (int i = 0; i < n; i++)
        if (!p->n || p->list[p->n - 1].rank != p->list[i].rank)
            p->list[p->n++] = p->list[i];
    return 0;
}

void places_fini(struct places *p)
{
    free(p->list);
}

// NULL: none.
static const struct place *places_at(const struct places *p, int64_t rank)
{
    int lo = 0, hi = p->n;
    if (!p->n || rank < p->list[0].rank || rank > p->list[p->n - 1].rank)
        return NULL;
    // Where no number is left out, that is the place.
    int64_t at = rank - p->list[0].rank;
    if (at < p->n && p->list[at].rank == rank)
        return &p->list[at];
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (p->list[middle].rank < rank)
            lo = middle + 1;
        else
            hi = middle;
    }
    return p->list[lo].rank == rank ? &p->list[lo] : NULL;
}

const struct rank_info *places_info(const struct places *p, int64_t rank)
{
    const struct place *at = places_at(p, rank);
    return at ? at->info : NULL;
}

const struct topo_cpu *places_cpu(const struct places *p, int64_t rank)
{
    const struct place *at = places_at(p, rank);
    return at ? at->cpu : NULL;
}

int64_t places_node(const struct places *p, int64_t rank)
{
    const struct rank_info *r = places_info(p, rank);
    return !r ? -1 : r->mem_node >= 0 ? r->mem_node : r->cpu_node;
}

int places_kind(const struct places *p, int64_t rank)
{
    const struct topo_cpu *cpu = places_cpu(p, rank);
    return cpu ? cpu->kind : -1;
}

int places_strongest(const struct places *p, const struct axis *rows, bool *several)
{
    int best = -1, first = rows->n ? places_kind(p, rows->values[0]) : -1;
    *several = false;
    for (int i = 0; i < rows->n; i++) {
        int kind = places_kind(p, rows->values[i]);
        *several |= kind != first;
        best = kind > best ? kind : best;
    }
    return best;
}

int places_sharers(const struct places *p, const struct axis *rows, int n_caches, int *counts)
{
    int found = 0;
    memset(counts, 0, (size_t)n_caches * sizeof *counts);
    for (int i = 0; i < rows->n; i++) {
        const struct topo_cpu *cpu = places_cpu(p, rows->values[i]);
        if (!cpu || cpu->l3 < 0)
            return 1;
        counts[cpu->l3]++;
    }
    for (int i = 0; i < n_caches; i++)
        if (counts[i] && (!found || counts[i] < found))
            found = counts[i];
    return found ? found : 1;
}

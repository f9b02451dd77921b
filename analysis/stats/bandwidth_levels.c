// SPDX-License-Identifier: Apache-2.0
// A level's columns follow from the machine's caches and from how many ranks share them; its value
// is their median. Columns between two levels, where both serve a part, belong to none.
#include "analysis/stats/bandwidth_levels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/stats/median.h"

// A working set that fills its cache shares it with the stack, the kernel and the other way of
// counting sets; one of twice the cache before it finds little of itself there.
static const double FILLS = 0.75;
static const int64_t OUTGROWS = 2, OUTGROWS_LAST = 4;

static int threads_a_core(const struct topology *t)
{
    int most = 1;
    for (int i = 0; i < t->n_cpus; i++)
        most = t->cpus[i].thread + 1 > most ? t->cpus[i].thread + 1 : most;
    return most;
}

// Where the ranks' CPUs are not known: one rank a core.
static int64_t usual_sharers(const struct topology *t, int level, int64_t ranks)
{
    int cpus = 1;
    for (int i = 0; i < t->n_caches; i++)
        if (t->caches[i].level == level && t->caches[i].n_cpus > cpus)
            cpus = t->caches[i].n_cpus;
    int64_t cores = cpus / threads_a_core(t);
    return ranks < cores ? ranks : cores;
}

// Bytes of a cache of this level that each of `ranks` ranks has at least; 0: no such level.
static int64_t share_of_rank(const struct cache_users *users, int level, int64_t ranks)
{
    int64_t known = cache_sharers(users, level, ranks),
            sharers = known ? known : usual_sharers(users->topology, level, ranks);
    return topology_cache_bytes(users->topology, level) / (sharers > 0 ? sharers : 1);
}

// From the columns whose working sets are within [from, to].
static bool bandwidth_level_of(const struct matrix *m, int row, int64_t from, int64_t to,
                               struct bandwidth_level *out)
{
    double v[SPEC_SIZES_MAX], lo[SPEC_SIZES_MAX], hi[SPEC_SIZES_MAX];
    int n = 0;
    for (int c = 0; c < m->col.n && n < SPEC_SIZES_MAX; c++) {
        const struct cell *cell = matrix_at(m, row, c);
        if (m->col.values[c] < from || m->col.values[c] > to || !(cell->v[CELL_MEDIAN] > 0))
            continue;
        out->first = n ? out->first : c;
        out->last = c;
        v[n] = cell->v[CELL_MEDIAN];
        lo[n] = cell->v[CELL_LO];
        hi[n++] = cell->v[CELL_HI];
    }
    out->median = middle_of(v, n);
    out->lo = middle_if_known(lo, n);
    out->hi = middle_if_known(hi, n);
    return n > 0;
}

static bool stores_around(const struct matrix *m, enum stores stores)
{
    return strcmp(m->name, "write") == 0 ||
           (stores == STORES_STREAMING && strcmp(m->name, "read") != 0);
}

int bandwidth_levels(const struct matrix *m, int row, const struct cache_users *users,
                     enum stores stores, struct bandwidth_level *out)
{
    const struct topology *t = users->topology;
    bool caches = t && !stores_around(m, stores);
    int n = 0;
    int64_t before = 0, ranks = m->row.values[row];
    for (int level = 1; caches && level <= TOPOLOGY_LEVELS_MAX; level++) {
        int64_t bytes = share_of_rank(users, level, ranks);
        if (bytes <= 0)
            continue;
        if (bandwidth_level_of(m, row, OUTGROWS * before, (int64_t)(FILLS * (double)bytes),
                               &out[n]))
            snprintf(out[n++].name, sizeof out->name, "L%d", level);
        before = bytes;
    }
    int64_t last = t ? topology_llc_bytes(t) : 0;
    last = last > 0 && users->found_bytes > last ? users->found_bytes : last;
    if (last > 0 && bandwidth_level_of(m, row, OUTGROWS_LAST * last, INT64_MAX, &out[n]))
        snprintf(out[n++].name, sizeof out->name, "memory");
    return n;
}

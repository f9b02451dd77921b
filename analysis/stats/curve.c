// SPDX-License-Identifier: Apache-2.0
// Each size becomes a column with its median, extremes and climbers. Steps are found between
// neighbouring columns first, and the cache that explains a step afterwards.
#include "analysis/stats/curve.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats/cache_sharers.h"
#include "analysis/stats/median.h"
#include "analysis/stats/rank_places.h"
#include "base/cleanup.h"

enum { LEVEL_NUMBERS = TOPOLOGY_LEVELS_MAX + 1 }; // 0: of no cache

struct column {
    double lo, hi, typical; // over ranks; with one rank its interval, if known
};

static struct column column_of(const struct matrix *m, int col, double *scratch)
{
    struct column c = {.lo = INFINITY, .hi = -INFINITY};
    int n = 0;
    for (int i = 0; i < m->row.n; i++) {
        const struct cell *cell = matrix_at(m, i, col);
        double v = cell->v[CELL_MEDIAN];
        if (isnan(v))
            continue;
        scratch[n++] = v;
        c.lo = fmin(c.lo, v);
        c.hi = fmax(c.hi, v);
        if (m->row.n == 1) { // fmin and fmax pass over NaN
            c.lo = fmin(c.lo, cell->v[CELL_LO]);
            c.hi = fmax(c.hi, cell->v[CELL_HI]);
        }
    }
    c.typical = middle_of(scratch, n);
    return c;
}

// Ranks that climb to the next size, and those that have both. A few ranks in a shuffled table
// climb by chance, so of them each must leave all others behind.
static int climbers(const struct matrix *m, const struct column *c, int at, int *ranks)
{
    int n = 0;
    *ranks = 0;
    for (int i = 0; i < m->row.n; i++) {
        double from = matrix_at(m, i, at)->v[CELL_MEDIAN];
        double to = matrix_at(m, i, at + 1)->v[CELL_MEDIAN];
        if (isnan(from) || isnan(to))
            continue;
        ++*ranks;
        bool many = m->row.n >= CURVE_MANY;
        n += (many && to >= CURVE_CLIMB * from) || to > c[at].hi;
    }
    return n;
}

static bool is_step(const struct matrix *m, const struct column *c, int at,
                    const struct curve_step *s)
{
    if (!(s->factor >= CURVE_FACTOR) || !s->ranks || s->climbing < CURVE_CLIMBERS * s->ranks ||
        (m->row.n == 1 && c[at + 1].lo <= c[at].hi))
        return false;
    for (int i = 0; i < m->col.n; i++)
        if (i <= at ? c[i].typical >= c[at + 1].typical : c[i].typical <= c[at].typical)
            return false;
    return true;
}

static int last_level(const struct topology *t)
{
    int level = 0;
    for (int i = 0; i < t->n_caches; i++)
        level = t->caches[i].level > level ? t->caches[i].level : level;
    return level;
}

static int level_at(int level)
{
    return level >= 0 && level < LEVEL_NUMBERS ? level : 0;
}

// Of each level; of the last one the cache that is the least crowded.
static void find_sharers(int sharers[LEVEL_NUMBERS], const struct curve_machine *machine, int last)
{
    const struct cache_users users = {machine->topology, machine->ranks, machine->n_ranks};
    for (int level = 0; level < LEVEL_NUMBERS; level++) {
        int most = machine->together ? cache_sharers(&users, level, INT64_MAX) : 0;
        sharers[level] = most ? most : 1;
    }
    if (machine->topology)
        sharers[level_at(last_level(machine->topology))] = last;
}

// The cache that explains the step best: the smallest share in (from, to], else at `from`.
static void match_cache(struct curve_step *s, const struct topology *t, const int *sharers)
{
    int64_t best = 0;
    for (int i = 0; t != NULL && i < t->n_caches; i++) {
        int ranks = sharers[level_at(t->caches[i].level)];
        int64_t bytes = t->caches[i].bytes / ranks;
        enum curve_match match = CURVE_UNKNOWN;
        if (bytes > s->from_bytes && bytes <= s->to_bytes)
            match = CURVE_CACHE_FULL;
        else if (bytes <= s->from_bytes && 2 * bytes > s->from_bytes)
            match = CURVE_CACHE_EXCEEDED;
        bool first = match == CURVE_CACHE_FULL
                         ? s->match != CURVE_CACHE_FULL
                         : match != CURVE_UNKNOWN && s->match == CURVE_UNKNOWN;
        if (!first && !(match == s->match && match != CURVE_UNKNOWN && bytes < best))
            continue;
        best = bytes;
        s->match = match;
        s->level = t->caches[i].level;
        s->cache_bytes = t->caches[i].bytes;
        s->sharers = ranks;
    }
}

int curve_find(struct curve *out, const struct matrix *m, const struct curve_machine *machine,
               struct err *err)
{
    int n = m->col.n, caches = machine->topology ? machine->topology->n_caches : 0;
    CLEANUP_MEM struct column *columns = calloc((size_t)n + 1, sizeof *columns);
    CLEANUP_MEM double *scratch = calloc((size_t)m->row.n + 1, sizeof *scratch);
    CLEANUP_MEM int *counts = calloc((size_t)caches + 1, sizeof *counts);
    if (columns == NULL || scratch == NULL || counts == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the curve");
    struct places places CLEANUP(places_fini) = {0};
    if (places_init(&places, machine->ranks, machine->n_ranks, machine->topology, err) < 0)
        return -1;
    struct curve found = {.largest = {.factor = NAN}};
    int sharers[LEVEL_NUMBERS];
    find_sharers(sharers, machine,
                 machine->together ? places_sharers(&places, &m->row, caches, counts) : 1);
    for (int j = 0; j < n; j++)
        columns[j] = column_of(m, j, scratch);
    for (int j = 0; j + 1 < n && found.n < CURVE_STEPS_MAX; j++) {
        struct curve_step s = {.col = j,
                               .from_bytes = m->col.values[j],
                               .to_bytes = m->col.values[j + 1],
                               .from = columns[j].typical,
                               .to = columns[j + 1].typical};
        s.factor = s.to / s.from;
        s.climbing = climbers(m, columns, j, &s.ranks);
        if (isnan(found.largest.factor) || s.factor > found.largest.factor)
            found.largest = s;
        if (!is_step(m, columns, j, &s))
            continue;
        match_cache(&s, machine->topology, sharers);
        found.steps[found.n++] = s;
    }
    *out = found;
    return 0;
}

int curve_plateau(const struct curve *c)
{
    return c->n == 0 ? 0 : c->steps[c->n - 1].col + 1;
}

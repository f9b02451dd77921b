// SPDX-License-Identifier: Apache-2.0
// Each matrix of the run becomes a line of medians over ranks. The terms follow from the lines,
// each by a function of its own: levels, TLB, loads at once, nodes, strides.
#include "analysis/stats/hierarchy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/memory.h"

static const double ENOUGH = 0.95;
static const double MEMORY_FACTOR = 1.35; // beyond a cache memory takes more; page walks take less

enum { CURVE, BASE_PAGES, PACKED, HUGE_PAGES, CYCLE, PARALLEL, STRIDE, LINES };
static const char *const names[LINES] = {"latency", "base_pages", "packed", "huge_pages",
                                         "cycle",   "parallel",   "stride"};

// Values of several ranks, and the ends of their intervals.
struct rank_values {
    int n;
    double *v, *lo, *hi; // v owned, others inside
};

static void rank_values_fini(struct rank_values *p)
{
    free(p->v);
}

static int rank_values_init(struct rank_values *p, int room, struct err *err)
{
    *p = (struct rank_values){.v = calloc(3 * ((size_t)room + 1), sizeof *p->v)};
    if (!p->v)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the values of %d ranks", room);
    p->lo = p->v + room;
    p->hi = p->lo + room;
    return 0;
}

static bool cell_known(const struct cell *c)
{
    return isfinite(c->v[CELL_MEDIAN]) && c->v[CELL_MEDIAN] > 0;
}

static void rank_values_add(struct rank_values *p, const struct cell *c)
{
    if (!cell_known(c))
        return;
    p->v[p->n] = c->v[CELL_MEDIAN];
    p->lo[p->n] = c->v[CELL_LO];
    p->hi[p->n++] = c->v[CELL_HI];
}

// Their median, and empties them.
static double rank_values_middle(struct rank_values *p, struct hierarchy_ends *ends)
{
    int n = p->n;
    p->n = 0;
    *ends = (struct hierarchy_ends){middle_if_known(p->lo, n), middle_if_known(p->hi, n)};
    return middle_of(p->v, n);
}

// One row of a matrix, or the medians of all rows.
struct line {
    int n;
    const int64_t *x;            // borrowed
    double *y;                   // owned; NaN: not known
    struct hierarchy_ends *ends; // of y; owned
};

static void line_fini(struct line *l)
{
    free(l->y);
    free(l->ends);
}

static const struct matrix *hierarchy_matrix(const struct matrix *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

// The ranks that count: of one row, or those of a list.
struct rank_choice {
    int row;          // -1: the list
    const bool *rows; // NULL: all
};

static bool is_chosen(const struct rank_choice *c, int row)
{
    return c->row >= 0 ? row == c->row : !c->rows || c->rows[row];
}

static int line_of(struct line *l, const struct matrix *list, int n, const char *name,
                   const struct rank_choice *chosen, struct err *err)
{
    const struct matrix *m = hierarchy_matrix(list, n, name);
    int rows = m ? m->row.n : 0;
    struct rank_values values CLEANUP(rank_values_fini) = {0};
    *l = (struct line){.n = m ? m->col.n : 0, .x = m ? m->col.values : NULL};
    l->y = calloc((size_t)l->n + 1, sizeof *l->y);
    l->ends = calloc((size_t)l->n + 1, sizeof *l->ends);
    if (!l->y || !l->ends)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the curve");
    if (rank_values_init(&values, rows, err) < 0)
        return -1;
    for (int c = 0; c < l->n; c++) {
        for (int r = 0; r < rows; r++)
            if (is_chosen(chosen, r))
                rank_values_add(&values, matrix_at(m, r, c));
        l->y[c] = rank_values_middle(&values, &l->ends[c]);
    }
    return 0;
}

static const struct hierarchy_ends ends_unknown = {NAN, NAN};

static double first_cell_of(const struct line *l, struct hierarchy_ends *ends)
{
    *ends = l->n ? l->ends[0] : ends_unknown;
    return l->n ? l->y[0] : NAN;
}

// --- Translations ------------------------------------------------------------------------------

// What the lines themselves take at so many: the largest number of the control that is not above.
static double packed_at(const struct line *packed, int64_t lines)
{
    double ns = NAN;
    for (int i = 0; i < packed->n && packed->x[i] <= lines; i++)
        ns = packed->y[i];
    return ns;
}

// The levels of what is left when the caches' part is taken off: a load that hits everywhere, and
// what the translations cost.
static int hierarchy_find_reach(struct reach *out, const struct line *pages,
                                const struct line *packed, struct err *err)
{
    struct levels levels;
    CLEANUP_MEM double *cost = calloc((size_t)pages->n + 1, sizeof *cost);
    double hit = packed->n ? packed->y[0] : NAN;
    if (!cost)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the curve");
    for (int i = 0; i < pages->n; i++)
        cost[i] = fmax(hit, hit + pages->y[i] - packed_at(packed, pages->x[i]));
    if (levels_find(&levels, pages->x, cost, pages->n, err) < 0)
        return -1;
    *out = (struct reach){0};
    for (int k = 0; k + 1 < levels.n && k < 2; k++) {
        out->pages[k] = levels.list[k].bytes;
        out->miss_ns[k] = levels.list[k + 1].ns - levels.list[0].ns;
        out->n++;
    }
    return 0;
}

// --- Levels ------------------------------------------------------------------------------------

// Page tables outgrow the caches too: a last step of little height is memory's own.
static int hierarchy_find_levels(struct hierarchy *out, const struct line *curve, struct err *err)
{
    struct levels *l = &out->levels;
    if (levels_find(l, curve->x, curve->y, curve->n, err) < 0)
        return -1;
    if (l->n < 2 || l->list[l->n - 1].ns >= MEMORY_FACTOR * l->list[l->n - 2].ns)
        return 0;
    out->rise_ns = l->list[--l->n].ns;
    out->rise_bytes = l->list[l->n - 1].bytes;
    l->list[l->n - 1].bytes = 0;
    return 0;
}

// --- The rest ----------------------------------------------------------------------------------

static void hierarchy_find_misses(struct hierarchy *out, const struct line *parallel)
{
    double one = first_cell_of(parallel, &out->access_ends);
    out->access_ns = one;
    for (int i = 1; i < parallel->n; i++)
        if (isnan(out->access_ns) || parallel->y[i] < out->access_ns) {
            out->access_ns = parallel->y[i];
            out->access_ends = parallel->ends[i];
        }
    out->misses = one / out->access_ns;
    for (int i = parallel->n - 1; i >= 0; i--)
        if (one / parallel->y[i] >= ENOUGH * out->misses)
            out->misses_chains = (int)parallel->x[i];
}

// The column whose memory takes the rank of this row least; -1: none is known.
static int nearest_node(const struct matrix *nodes, int row)
{
    int home = -1;
    for (int c = 0; c < nodes->col.n; c++) {
        const struct cell *cell = matrix_at(nodes, row, c);
        if (cell_known(cell) &&
            (home < 0 || cell->v[CELL_MEDIAN] < matrix_at(nodes, row, home)->v[CELL_MEDIAN]))
            home = c;
    }
    return home;
}

// Adds what the other nodes' memory takes more than the nearest; returns how many there are now.
static int add_hops(const struct matrix *nodes, int row, int home, double *hops, int n)
{
    double near = matrix_at(nodes, row, home)->v[CELL_MEDIAN];
    for (int c = 0; c < nodes->col.n; c++)
        if (c != home && cell_known(matrix_at(nodes, row, c)))
            hops[n++] = matrix_at(nodes, row, c)->v[CELL_MEDIAN] - near;
    return n;
}

// Ranks on different nodes have different nearest ones, so a median over ranks is not that of a
// column.
static int hierarchy_find_nodes(struct hierarchy *out, const struct matrix *nodes,
                                const struct rank_choice *chosen, struct err *err)
{
    int rows = nodes ? nodes->row.n : 0, n = 0;
    size_t cells = nodes ? (size_t)rows * (size_t)nodes->col.n : 0;
    CLEANUP_MEM double *hops = calloc(cells + 1, sizeof *hops);
    struct rank_values near CLEANUP(rank_values_fini) = {0};
    if (!hops)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the nodes");
    if (rank_values_init(&near, rows, err) < 0)
        return -1;
    for (int r = 0; r < rows; r++) {
        int home = is_chosen(chosen, r) ? nearest_node(nodes, r) : -1;
        if (home < 0)
            continue;
        rank_values_add(&near, matrix_at(nodes, r, home));
        n = add_hops(nodes, r, home, hops, n);
    }
    out->memory_ns = rank_values_middle(&near, &out->memory_ends);
    out->hop_ns = middle_of(hops, n);
    return 0;
}

static void hierarchy_find_strides(struct hierarchy *out, const struct line *strides)
{
    out->n_strides = strides->n < HIERARCHY_STRIDES_MAX ? strides->n : HIERARCHY_STRIDES_MAX;
    for (int i = 0; i < out->n_strides; i++) {
        out->strides[i].bytes = strides->x[i];
        out->strides[i].ns = strides->y[i];
        out->strides[i].ends = strides->ends[i];
        out->strides[i].gain = out->memory_ns / strides->y[i];
    }
}

static double latency_at(const struct line *curve, int64_t bytes)
{
    int i = 0;
    while (i + 1 < curve->n && curve->x[i] < bytes)
        i++;
    return curve->n ? curve->y[i] : NAN;
}

static void hierarchy_find_largest(struct hierarchy *out, const struct line *curve)
{
    double last[8];
    int n = 0, enough = curve->n;
    for (int i = curve->n - 1; i >= 0 && n < 8 && 2 * curve->x[i] > curve->x[curve->n - 1]; i--)
        if (isfinite(curve->y[i]))
            last[n++] = curve->y[i];
    out->largest_ns = middle_of(last, n);
    while (enough > 0 && curve->y[enough - 1] >= ENOUGH * out->largest_ns)
        enough--;
    if (!curve->n)
        return;
    out->largest_bytes = curve->x[curve->n - 1];
    out->enough_bytes = curve->x[enough < curve->n ? enough : curve->n - 1];
}

static int hierarchy_fill_from(struct hierarchy *out, const struct line *l, struct err *err)
{
    out->usual_share = NAN;
    out->cycle_ns = first_cell_of(&l[CYCLE], &out->cycle_ends);
    hierarchy_find_misses(out, &l[PARALLEL]);
    hierarchy_find_largest(out, &l[CURVE]);
    if (hierarchy_find_levels(out, &l[CURVE], err) < 0 ||
        hierarchy_find_reach(&out->base, &l[BASE_PAGES], &l[PACKED], err) < 0 ||
        hierarchy_find_reach(&out->huge, &l[HUGE_PAGES], &l[PACKED], err) < 0)
        return -1;
    return 0;
}

static int hierarchy_find_chosen(struct hierarchy *out, const struct matrix *list, int n,
                                 const struct rank_choice *chosen, struct err *err)
{
    struct line l[LINES] = {0};
    int outcome = 0;
    *out = (struct hierarchy){0};
    for (int i = 0; outcome == 0 && i < LINES; i++)
        outcome = line_of(&l[i], list, n, names[i], chosen, err);
    outcome = outcome == 0 ? hierarchy_fill_from(out, l, err) : outcome;
    if (outcome == 0)
        outcome = hierarchy_find_nodes(out, hierarchy_matrix(list, n, "nodes"), chosen, err);
    if (outcome == 0)
        hierarchy_find_strides(out, &l[STRIDE]); // beside memory
    for (int i = 0; i < LINES; i++)
        line_fini(&l[i]);
    return outcome;
}

int hierarchy_find(struct hierarchy *out, const struct matrix *list, int n, int row,
                   struct err *err)
{
    return hierarchy_find_chosen(out, list, n, &(struct rank_choice){row, NULL}, err);
}

int hierarchy_find_of(struct hierarchy *out, const struct matrix *list, int n, const bool *rows,
                      struct err *err)
{
    return hierarchy_find_chosen(out, list, n, &(struct rank_choice){-1, rows}, err);
}

int hierarchy_rows(bool **rows, const struct matrix *list, int n, const struct places *places,
                   struct err *err)
{
    bool several = false;
    const struct axis *ranks = n ? &list[0].row : NULL;
    int strongest = ranks ? places_strongest(places, ranks, &several) : -1;
    *rows = NULL;
    if (!several)
        return 0;
    *rows = calloc((size_t)ranks->n + 1, sizeof **rows);
    if (!*rows)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks->n);
    for (int i = 0; i < ranks->n; i++)
        (*rows)[i] = places_kind(places, ranks->values[i]) == strongest;
    return 0;
}

int hierarchy_find_usual(struct hierarchy *h, const struct matrix *list, int n, const bool *rows,
                         int64_t usual, struct err *err)
{
    struct line curve CLEANUP(line_fini) = {0};
    const struct rank_choice chosen = {-1, rows};
    if (line_of(&curve, list, n, names[CURVE], &chosen, err) < 0)
        return -1;
    h->usual_share = usual > 0 ? latency_at(&curve, usual) / h->largest_ns : NAN;
    return 0;
}

// --- The last cache ----------------------------------------------------------------------------

bool hierarchy_is_reach(const struct hierarchy *h, int64_t bytes, uint64_t base_page)
{
    double page = (double)(base_page ? base_page : page_sizes_usual.base);
    for (int i = 0; i < h->base.n; i++) {
        double over = (double)bytes / ((double)h->base.pages[i] * page);
        if (over < HIERARCHY_SAME && over > 1 / HIERARCHY_SAME)
            return true;
    }
    return false;
}

int64_t hierarchy_cache_bytes(const struct hierarchy *h, int64_t listed, uint64_t base_page)
{
    enum { BEYOND = 4 };
    int64_t most = 0;
    for (int k = 0; k < h->levels.n; k++)
        if (!hierarchy_is_reach(h, h->levels.list[k].bytes, base_page))
            most = h->levels.list[k].bytes > most ? h->levels.list[k].bytes : most;
    return h->largest_bytes >= BEYOND * most && h->largest_bytes >= BEYOND * listed ? most : 0;
}

int64_t hierarchy_beyond_bytes(const struct hierarchy *h, int64_t listed, uint64_t base_page)
{
    int64_t bytes = hierarchy_cache_bytes(h, listed, base_page), up = 1 << 20;
    if (!bytes || (double)bytes <= HIERARCHY_SAME * (double)listed)
        return 0;
    while (up < bytes)
        up = 3 * up / 2 >= bytes ? 3 * up / 2 : 2 * up;
    return up;
}

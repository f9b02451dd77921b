// SPDX-License-Identifier: Apache-2.0
// What deviates is looked for from the largest to the smallest: nodes, last-level caches, cores. A
// slow node's cores are compared with each other, less what the node deviates by. Pairs are
// compared with those between the same two caches, as far as there are some, because the way
// between two caches is a matter of distance; then each core by its pairs, then each pair.
#include "bench/session/scan_course.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/stats.h"
#include "base/cleanup.h"
#include "model/topology.h"

enum {
    BROAD_LEAST = 4, // visits, if there is time
    LINK_PAIRS = 4,  // between two caches, to be compared with each other
    CORE_PAIRS = 3,  // of a core, to judge it by them
};

static const double BROAD_SHARE = 0.4; // of the budget, unless that is fewer visits

// --- Who belongs together ------------------------------------------------------------------------

static int scan_group_of(const struct scan_place *p, enum scan_level_id level)
{
    return level == SCAN_NODE ? p->node : p->llc >= 0 ? p->llc : -1 - p->node;
}

static bool scan_together(const struct scan_course *c, enum scan_level_id level, int a, int b)
{
    const struct scan_place *x = &c->places[a], *y = &c->places[b];
    return level == SCAN_CORE ? a == b : scan_group_of(x, level) == scan_group_of(y, level);
}

// How many ranks a unit has.
static int scan_unit_size(const struct scan_course *c, enum scan_level_id level, int unit)
{
    int n = 0;
    for (int r = 0; r < c->ranks; r++)
        n += c->levels[level].unit[r] == unit;
    return n;
}

static int scan_make_units(struct scan_course *c, enum scan_level_id level, struct err *err)
{
    struct scan_level *l = &c->levels[level];
    l->unit = calloc((size_t)c->ranks + 1, sizeof *l->unit);
    l->kind = calloc((size_t)c->ranks + 1, sizeof *l->kind);
    l->first = calloc((size_t)c->ranks + 1, sizeof *l->first);
    if (!l->unit || !l->kind || !l->first)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", c->ranks);
    for (int r = 0; r < c->ranks; r++) {
        int unit = 0;
        while (unit < l->units && !scan_together(c, level, l->first[unit], r))
            unit++;
        if (unit == l->units)
            l->first[l->units++] = r;
        l->unit[r] = unit;
    }
    return 0;
}

// Units are peers if they have as many cores of the same kind, in surroundings of the same size.
static bool scan_alike(const struct scan_course *c, const int (*sizes)[SCAN_LEVELS],
                       enum scan_level_id level, int a, int b)
{
    const struct scan_level *l = &c->levels[level];
    int x = l->first[a], y = l->first[b];
    return c->places[x].kind == c->places[y].kind &&
           memcmp(sizes[x], sizes[y], sizeof sizes[x]) == 0;
}

static void scan_make_kinds(struct scan_course *c, const int (*sizes)[SCAN_LEVELS],
                            enum scan_level_id level)
{
    struct scan_level *l = &c->levels[level];
    int n = 0;
    for (int i = 0; i < l->units; i++) {
        int k = 0;
        while (k < i && !scan_alike(c, sizes, level, k, i))
            k++;
        l->kind[i] = k < i ? l->kind[k] : n++;
    }
}

static int scan_make_levels(struct scan_course *c, struct err *err)
{
    CLEANUP_MEM int(*sizes)[SCAN_LEVELS] = calloc((size_t)c->ranks + 1, sizeof *sizes);
    if (!sizes)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", c->ranks);
    for (int k = 0; k < SCAN_LEVELS; k++)
        if (scan_make_units(c, (enum scan_level_id)k, err) < 0)
            return -1;
    for (int k = 0; k < SCAN_LEVELS; k++)
        for (int r = 0; r < c->ranks; r++)
            sizes[r][k] = scan_unit_size(c, (enum scan_level_id)k, c->levels[k].unit[r]);
    for (int k = 0; k < SCAN_LEVELS; k++)
        scan_make_kinds(c, (const int(*)[SCAN_LEVELS])sizes, (enum scan_level_id)k);
    int nodes = c->levels[SCAN_NODE].units, caches = c->levels[SCAN_L3].units;
    c->levels[SCAN_L3].skipped = caches == c->ranks || caches == nodes;
    c->levels[SCAN_NODE].skipped = nodes == c->ranks;
    return 0;
}

// --- Begin and end -------------------------------------------------------------------------------

int scan_course_init(struct scan_course *c, struct err *err)
{
    int outcome = scan_make_levels(c, err);
    for (int a = 0; a < AXIS_ASPECTS && outcome == 0; a++)
        outcome =
            odd_table_init(&c->tables[a], a == ASPECT_TRANSFER ? c->rounds->n_pairs : c->ranks,
                           2 * c->visits, err);
    if (outcome < 0)
        scan_course_fini(c);
    return outcome;
}

static void scan_forget(struct scan_course *c)
{
    for (int k = 0; k < SCAN_LEVELS; k++)
        for (int a = 0; a < AXIS_ASPECTS; a++)
            odd_units_fini(&c->found[k][a]);
    odd_units_fini(&c->pairs);
}

void scan_course_fini(struct scan_course *c)
{
    scan_forget(c);
    for (int a = 0; a < AXIS_ASPECTS; a++)
        odd_table_fini(&c->tables[a]);
    for (int k = 0; k < SCAN_LEVELS; k++) {
        free(c->levels[k].unit);
        free(c->levels[k].kind);
        free(c->levels[k].first);
        c->levels[k] = (struct scan_level){0};
    }
}

// --- Judging -------------------------------------------------------------------------------------

static int scan_judge_ranks(struct scan_course *c, enum aspect aspect, struct err *err)
{
    struct odd_table t CLEANUP(odd_table_fini) = {0};
    if (odd_table_copy(&t, &c->tables[aspect], err) < 0)
        return -1;
    for (int k = 0; k < SCAN_LEVELS; k++) {
        const struct scan_level *l = &c->levels[k];
        const struct odd_level level = {l->units, l->unit, l->kind};
        struct odd_units *u = &c->found[k][aspect];
        if (odd_judge(u, &t, &level, c->least, err) < 0)
            return -1;
        for (int i = 0; l->skipped && i < u->n; i++) {
            u->list[i].candidate = false;
            u->list[i].peers = 0;
        }
        odd_explain(&t, &level, u);
    }
    return 0;
}

static int scan_pair_class(const struct scan_course *c, int pair)
{
    const struct scan_place *a = &c->places[c->rounds->pairs[pair][0]],
                            *b = &c->places[c->rounds->pairs[pair][1]];
    const struct topo_cpu
        x = {.core = a->core, .l3 = a->llc, .node = a->node, .package = a->package},
        y = {.core = b->core, .l3 = b->llc, .node = b->node, .package = b->package};
    return (int)topology_pair_class(&x, &y);
}

// The two caches of a pair are one number, and the classes and kinds of cores another.
static int scan_link(const struct scan_course *c, int pair)
{
    const struct scan_level *l = &c->levels[SCAN_L3];
    int a = l->unit[c->rounds->pairs[pair][0]], b = l->unit[c->rounds->pairs[pair][1]];
    return a < b ? a * l->units + b : b * l->units + a;
}

static int scan_class_and_kinds(const struct scan_course *c, int pair)
{
    const struct scan_level *l = &c->levels[SCAN_CORE];
    int a = l->kind[c->rounds->pairs[pair][0]], b = l->kind[c->rounds->pairs[pair][1]];
    int kinds = l->units;
    return (scan_pair_class(c, pair) * kinds + (a < b ? a : b)) * kinds + (a < b ? b : a);
}

// Numbers without gaps, in the order of their first pair; returns how many. `first` of each.
static int scan_number(const struct scan_course *c, int (*of)(const struct scan_course *, int),
                       int *number, int *first)
{
    int n = 0, before = -1;
    for (int p = 0; p < c->rounds->n_pairs; p++) {
        int key = of(c, p), k = 0;
        // Neighbours in a list are often alike.
        if (before >= 0 && of(c, first[before]) == key)
            k = before;
        while (k < n && of(c, first[k]) != key)
            k++;
        if (k == n)
            first[n++] = p;
        number[p] = before = k;
    }
    return n;
}

// Room for numbers of pairs.
struct scan_numbers {
    int *link, *kind, *link_kind, *first; // owned
};

static void scan_numbers_fini(struct scan_numbers *n)
{
    free(n->link);
    free(n->kind);
    free(n->link_kind);
    free(n->first);
}

static int scan_level_links(const struct scan_course *c, struct odd_table *t,
                            struct scan_numbers *n, struct err *err)
{
    struct odd_units u CLEANUP(odd_units_fini) = {0};
    int links = scan_number(c, scan_link, n->link, n->first);
    for (int k = 0; k < links; k++)
        n->link_kind[k] = n->kind[n->first[k]];
    const struct odd_level level = {links, n->link, n->link_kind};
    if (odd_judge(&u, t, &level, c->least, err) < 0)
        return -1;
    return odd_level_out(t, &level, &u, LINK_PAIRS, err);
}

// What a list of pairs typically takes at a visit; NaN: fewer than `least` of them were measured.
static double scan_typical(const struct odd_table *t, const int *pairs, int n, int visit, int least,
                           double *scratch)
{
    int got = 0;
    for (int i = 0; i < n; i++) {
        double x = t->logs[(size_t)pairs[i] * t->room + visit];
        if (isfinite(x))
            scratch[got++] = x;
    }
    stats_sort(scratch, got);
    return got && got >= least ? scratch[(got - 1) / 2] : NAN;
}

// Off all pairs of a kind what they typically take: then those of all kinds compare.
static int scan_level_kinds(struct odd_table *t, const int *kind, int n, struct err *err)
{
    struct odd_lists lists CLEANUP(odd_lists_fini) = {0};
    CLEANUP_MEM double *scratch = calloc((size_t)t->items + 1, sizeof *scratch);
    if (!scratch)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", t->items);
    if (odd_lists_make(&lists, kind, t->items, n, err) < 0)
        return -1;
    for (int k = 0; k < n; k++)
        for (int visit = 0; visit < t->visits; visit++) {
            const int *pairs = lists.members + lists.begin[k];
            int size = lists.begin[k + 1] - lists.begin[k];
            double typical = scan_typical(t, pairs, size, visit, 1, scratch);
            for (int i = 0; isfinite(typical) && i < size; i++)
                t->logs[(size_t)pairs[i] * t->room + visit] -= typical;
        }
    return 0;
}

// A core's pairs, less what their kinds have in common: a table of ranks.
static int scan_cores_by_pairs(const struct scan_course *c, const struct odd_table *pairs,
                               struct odd_table *out, struct err *err)
{
    struct odd_lists ends CLEANUP(odd_lists_fini) = {0};
    CLEANUP_MEM double *scratch = calloc((size_t)pairs->items + 1, sizeof *scratch);
    if (!scratch)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", pairs->items);
    if (odd_lists_make(&ends, c->rounds->pairs[0], 2 * pairs->items, c->ranks, err) < 0)
        return -1;
    for (int i = 0; i < ends.begin[c->ranks]; i++)
        ends.members[i] /= 2; // from ends to pairs
    out->visits = pairs->visits;
    out->broad = pairs->broad;
    for (int r = 0; r < c->ranks; r++)
        for (int visit = 0; visit < pairs->visits; visit++)
            out->logs[(size_t)r * out->room + visit] =
                scan_typical(pairs, ends.members + ends.begin[r], ends.begin[r + 1] - ends.begin[r],
                             visit, CORE_PAIRS, scratch);
    return 0;
}

static void scan_explain_pairs(const struct scan_course *c, struct odd_table *t,
                               const struct odd_units *cores)
{
    for (int p = 0; p < t->items; p++)
        for (int end = 0; end < 2; end++) {
            int r = c->rounds->pairs[p][end];
            for (int v = 0; odd_explains(&cores->list[r]) && v < t->visits; v++) {
                double by = cores->ratios[(size_t)r * t->room + v];
                t->logs[(size_t)p * t->room + v] -= isfinite(by) ? by : 0;
            }
        }
}

static int scan_judge_by_pairs(struct scan_course *c, struct odd_table *t,
                               const struct scan_numbers *n, int kinds, struct err *err)
{
    struct odd_table cores CLEANUP(odd_table_fini) = {0};
    const struct scan_level *l = &c->levels[SCAN_CORE];
    const struct odd_level by_core = {l->units, l->unit, l->kind},
                           by_pair = {t->items, NULL, n->kind};
    struct odd_units *found = &c->found[SCAN_CORE][ASPECT_TRANSFER];
    if (scan_level_kinds(t, n->kind, kinds, err) < 0 ||
        odd_table_init(&cores, c->ranks, t->room, err) < 0 ||
        scan_cores_by_pairs(c, t, &cores, err) < 0 ||
        odd_judge(found, &cores, &by_core, c->least, err) < 0)
        return -1;
    scan_explain_pairs(c, t, found);
    return odd_judge(&c->pairs, t, &by_pair, c->least, err);
}

static int scan_judge_pairs(struct scan_course *c, struct err *err)
{
    size_t room = (size_t)c->rounds->n_pairs + 1;
    struct odd_table t CLEANUP(odd_table_fini) = {0};
    struct scan_numbers n CLEANUP(scan_numbers_fini) = {
        calloc(room, sizeof(int)), calloc(room, sizeof(int)), calloc(room, sizeof(int)),
        calloc(room, sizeof(int))};
    if (!n.link || !n.kind || !n.link_kind || !n.first)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", c->rounds->n_pairs);
    if (odd_table_copy(&t, &c->tables[ASPECT_TRANSFER], err) < 0)
        return -1;
    int kinds = scan_number(c, scan_class_and_kinds, n.kind, n.first);
    if (scan_level_links(c, &t, &n, err) < 0)
        return -1;
    return scan_judge_by_pairs(c, &t, &n, kinds, err);
}

static int scan_judge(struct scan_course *c, struct err *err)
{
    struct odd_units *groups[SCAN_LEVELS * AXIS_ASPECTS + 1];
    int n = 0;
    scan_forget(c);
    for (int a = 0; a < ASPECT_TRANSFER; a++)
        if (scan_judge_ranks(c, (enum aspect)a, err) < 0)
            return -1;
    if (c->rounds->n_pairs && scan_judge_pairs(c, err) < 0)
        return -1;
    for (int k = 0; k < SCAN_LEVELS; k++)
        for (int a = 0; a < AXIS_ASPECTS; a++)
            groups[n++] = &c->found[k][a];
    groups[n++] = &c->pairs;
    c->candidates = 0;
    for (int i = 0; i < n; i++)
        c->candidates += odd_candidates(groups[i]);
    if (odd_confirm(groups, n, err) < 0)
        return -1;
    c->open = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < groups[i]->n; k++)
            c->open += odd_is_open(&groups[i]->list[k], c->candidates);
    return 0;
}

// --- Measuring -----------------------------------------------------------------------------------

static int scan_measure(struct scan_course *c, const struct scan_machine *m, enum aspect aspect,
                        int visit, int times, struct err *err)
{
    struct odd_table *t = &c->tables[aspect];
    CLEANUP_MEM double *v = calloc((size_t)t->items + 1, sizeof *v);
    if (!v)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d values", t->items);
    for (int k = 0; aspect == ASPECT_TRANSFER && k < c->rounds->n_rounds; k++)
        if (m->pairs(m->context, k, times, v + c->rounds->begin[k], err) < 0)
            return -1;
    if (aspect != ASPECT_TRANSFER && m->ranks(m->context, aspect, times, v, err) < 0)
        return -1;
    for (int i = 0; i < t->items; i++)
        odd_table_set(t, i, visit, aspect == ASPECT_BANDWIDTH ? 1 / v[i] : v[i]);
    return 0;
}

// Something of the aspect is to be confirmed.
static bool scan_doubtful(const struct scan_course *c, enum aspect aspect)
{
    int n = aspect == ASPECT_TRANSFER ? odd_candidates(&c->pairs) : 0;
    for (int k = 0; k < SCAN_LEVELS; k++)
        n += odd_candidates(&c->found[k][aspect]);
    return n;
}

static bool scan_fits(const struct scan_course *c, const struct scan_machine *m, double seconds,
                      double share)
{
    return !c->budget_s || m->elapsed_s(m->context) + seconds <= share * c->budget_s;
}

// A visit of the aspects chosen; returns the seconds that it took, or -1.
static double scan_visit(struct scan_course *c, const struct scan_machine *m, const bool *chosen,
                         int visit, int times, struct err *err)
{
    double begin = m->elapsed_s(m->context);
    for (int a = 0; a < AXIS_ASPECTS; a++)
        if (chosen[a] && c->tables[a].items &&
            scan_measure(c, m, (enum aspect)a, visit, times, err) < 0)
            return -1;
    return m->elapsed_s(m->context) - begin;
}

static int scan_broad(struct scan_course *c, const struct scan_machine *m, double *longest,
                      struct err *err)
{
    static const bool all[AXIS_ASPECTS] = {true, true, true, true};
    for (; c->broad < c->visits; c->broad++) {
        double share = c->broad < BROAD_LEAST ? 1 : BROAD_SHARE;
        if (c->broad && (m->stopped(m->context) || !scan_fits(c, m, *longest, share)))
            break;
        double took = scan_visit(c, m, all, c->broad, 1, err);
        if (took < 0)
            return -1;
        *longest = fmax(*longest, took);
        if (m->progress(m->context, 0.5 * (c->broad + 1) / c->visits, err) < 0)
            return -1;
    }
    for (int a = 0; a < AXIS_ASPECTS; a++)
        c->tables[a].broad = c->broad;
    return 0;
}

static int scan_confirm(struct scan_course *c, const struct scan_machine *m, double longest,
                        struct err *err)
{
    bool chosen[AXIS_ASPECTS];
    double next = SCAN_LONGER * longest;
    for (int a = 0; a < AXIS_ASPECTS; a++)
        chosen[a] = scan_doubtful(c, (enum aspect)a);
    for (; c->confirmed < c->visits; c->confirmed++) {
        if (m->stopped(m->context) || !scan_fits(c, m, next, 1))
            break;
        double took = scan_visit(c, m, chosen, c->broad + c->confirmed, SCAN_LONGER, err);
        if (took < 0)
            return -1;
        next = c->confirmed ? fmax(next, took) : took;
        if (m->progress(m->context, 0.5 + 0.5 * (c->confirmed + 1) / c->visits, err) < 0)
            return -1;
    }
    return 0;
}

int scan_course_run(struct scan_course *c, const struct scan_machine *m, struct err *err)
{
    double longest = 0;
    if (scan_broad(c, m, &longest, err) < 0 || scan_judge(c, err) < 0)
        return -1;
    if (c->candidates && (scan_confirm(c, m, longest, err) < 0 || scan_judge(c, err) < 0))
        return -1;
    return m->progress(m->context, 1, err);
}

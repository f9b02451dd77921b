// SPDX-License-Identifier: Apache-2.0
// Groups of a comparison: the values of its axes, memory nodes, local and remote. Each is the mean
// of its cells' differences; what such a mean is worth is decided here too.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/compare.h"
#include "analysis/compare/parts.h"
#include "analysis/stats/distributions.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/target.h"

const char *const verdict_names[VERDICTS] = {"same", "slower", "faster", "inconclusive"};

// Groups, and the axis whose values make them; locality and node follow from ranks and nodes.
static const struct {
    const char *name, *axis;
} bys[COMPARE_BYS] = {
    [COMPARE_OVERALL] = {"overall", NULL},
    [COMPARE_SIZE] = {"size", "working_set"},
    [COMPARE_RANK] = {"rank", "rank"},
    [COMPARE_NODE] = {"node", NULL},
    [COMPARE_LOCALITY] = {"locality", NULL},
    [COMPARE_TARGET] = {"target", "target"},
    [COMPARE_INITIATOR] = {"initiator", "initiator"},
    [COMPARE_SOURCE] = {"source", "source"},
    [COMPARE_THREADS] = {"threads", "threads"},
    [COMPARE_PAIR] = {"pair", "pair"},
    [COMPARE_MESSAGE] = {"message", "message"},
    [COMPARE_OPERATION] = {"operation", "operation"},
    [COMPARE_LINE] = {"line", "line"},
    [COMPARE_ACCESS] = {"access", "access"},
    [COMPARE_LOAD] = {"load", "load"},
    [COMPARE_PATH] = {"path", "path"},
    [COMPARE_PART] = {"part", NULL},
};

enum { GROUP_CELLS_MIN = 4 }; // fewer scattered single values say nothing

const char *compare_by_name(enum compare_by by)
{
    return bys[by].name;
}

void compare_group_label(const struct compare_group *g, char *out, size_t room)
{
    int64_t value = g->value;
    struct axis a = {.n = 1, .values = &value};
    snprintf(a.name, sizeof a.name, "%s", bys[g->by].axis ? bys[g->by].axis : "");
    if (g->by == COMPARE_OVERALL)
        snprintf(out, room, "all");
    else if (g->by == COMPARE_LOCALITY)
        snprintf(out, room, "%s", value ? "remote" : "local");
    else if (g->by == COMPARE_SIZE || g->by == COMPARE_MESSAGE)
        str_from_bytes((uint64_t)value, out, room);
    else
        axis_label(&a, 0, out, room);
}

void difference_set(struct difference *d, double log_ratio, double error, double df)
{
    double reach = isnan(error) ? NAN : dist_t_975(df) * error;
    d->percent = 100 * expm1(log_ratio);
    d->lo = 100 * expm1(log_ratio - reach);
    d->hi = 100 * expm1(log_ratio + reach);
    d->error = error;
    d->df = df;
    d->known = !isnan(error);
    d->p = d->known ? dist_t_two_sided(log_ratio / error, df) : NAN;
}

// Of so many per cent more, or of so many less where more is better.
static double log_of_worse(double percent, bool more_is_better)
{
    static const double less_most = 99;
    return more_is_better ? -log1p(-fmin(percent, less_most) / 100) : log1p(percent / 100);
}

// What whole runs differ by anyway, as a log: as much to either side. 0: not known.
static double noise_log(const struct compare_options *o)
{
    return o->noise_percent > 0 ? log1p(o->noise_percent / 100) : 0;
}

// A shift must be seen at this level, alone among the groups, beyond what is called the same, and
// be worth the name. Its estimate is lower than the shift by a chance error in half of the cases,
// by `often` in 20 of 100.
double difference_detectable(const struct difference *d, bool more_is_better, int groups,
                             const struct compare_options *o)
{
    static const double shift_most = 10;
    if (!d->known || !(d->df >= 1))
        return NAN;
    double often = dist_t_quantile(0.8, d->df) * d->error;
    double seen = dist_t_quantile(1 - o->level / groups / 2, d->df) * d->error;
    double named = fmax(log_of_worse(o->threshold_percent / 2, more_is_better), noise_log(o));
    double apart =
        log_of_worse(0.9 * o->threshold_percent, more_is_better) - dist_t_975(d->df) * d->error;
    double shift = fmax(fmax(seen, named), apart) + often;
    if (!(shift < log(shift_most)))
        return INFINITY;
    return more_is_better ? -100 * expm1(-shift) : 100 * expm1(shift);
}

// Of the difference of two logs: what runs differ by may be as much less as it may be more, or no
// loss of bandwidth would ever be beyond a noise of 100 %. The difference itself decides, whether
// it is significant or not, so that no run near the baseline is less sure than one farther away.
// One whose error is as large as the noise says nothing about it.
static bool is_within_noise(const struct difference *d, const struct compare_options *o)
{
    double noise = noise_log(o);
    return fabs(log1p(d->percent / 100)) < noise && 2 * d->error <= noise;
}

// A difference counts if it is significant and not significantly below the threshold. `same` is a
// claim too: the whole interval lies inside the threshold, by a tenth of it, so that however sure
// we are, a difference as large as the threshold is not the same. What a baseline's own runs differ
// by is the same as well.
void difference_judge(struct difference *d, bool more_is_better, const struct compare_options *o)
{
    double t = o->threshold_percent, worse = more_is_better ? -d->percent : d->percent;
    bool sure = d->p <= o->level && fabs(worse) >= t / 2;
    d->verdict = VERDICT_INCONCLUSIVE;
    d->within_noise = false;
    if (!d->known || isnan(d->percent))
        return;
    if (d->lo > -0.9 * t && d->hi < 0.9 * t)
        d->verdict = VERDICT_SAME;
    else if ((d->within_noise = is_within_noise(d, o)))
        d->verdict = VERDICT_SAME;
    else if (sure)
        d->verdict = worse > 0 ? VERDICT_SLOWER : VERDICT_FASTER;
}

// ---- Groups -------------------------------------------------------------------------------------

void grouping_fini(struct grouping *g)
{
    places_fini(&g->places);
    free(g->row_of_col);
    free(g->row_group);
    free(g->row_node);
    free(g->col_node);
    free(g->sums);
}

static const struct axis *rows_of(const struct grouping *g)
{
    return &g->s->a->matrix->row;
}

static const struct axis *cols_of(const struct grouping *g)
{
    return &g->s->a->matrix->col;
}

bool grouping_axis_is(enum compare_by by, const struct axis *a)
{
    return bys[by].axis && strcmp(a->name, bys[by].axis) == 0;
}

bool grouping_between_ranks(const struct grouping *g)
{
    return grouping_axis_is(COMPARE_RANK, rows_of(g)) && grouping_axis_is(COMPARE_RANK, cols_of(g));
}

static int64_t groups_node_of(const struct grouping *g, const struct axis *a, int64_t value)
{
    if (grouping_axis_is(COMPARE_RANK, a))
        return places_node(&g->places, value);
    if (target_is_interleaved(value))
        return -1;
    return grouping_axis_is(COMPARE_TARGET, a) || grouping_axis_is(COMPARE_INITIATOR, a) ||
                   grouping_axis_is(COMPARE_SOURCE, a)
               ? value
               : -1;
}

int grouping_locality(const struct grouping *g, int i, int j)
{
    int64_t p = g->row_node[i], q = g->col_node[j];
    int first, second;
    if (grouping_axis_is(COMPARE_PATH, rows_of(g))) {
        axis_unpair(rows_of(g)->values[g->c->row_a[i]], &first, &second);
        return target_is_interleaved(second) ? -1 : first != second;
    }
    if (grouping_axis_is(COMPARE_PAIR, rows_of(g))) {
        axis_unpair(rows_of(g)->values[g->c->row_a[i]], &first, &second);
        p = places_node(&g->places, first);
        q = places_node(&g->places, second);
    }
    return p < 0 || q < 0 ? -1 : p != q;
}

static int groups_find_group(const struct grouping *g, enum compare_by by, int64_t value)
{
    for (int k = 0; k < g->n[by]; k++)
        if (g->c->groups[g->first[by] + k].value == value)
            return g->first[by] + k;
    return -1;
}

// The group of a cell's node as far as it has one: both ranks', or the rank's.
static int group_of_node(const struct grouping *g, int i, int j)
{
    if (grouping_between_ranks(g))
        return g->row_node[i] == g->col_node[j] ? g->row_group[i] : -1;
    return grouping_axis_is(COMPARE_RANK, rows_of(g)) ? g->row_group[i] : -1;
}

// The groups that a cell is in; at most two of a kind, -1 for none.
static void grouping_of_cell(const struct grouping *g, enum compare_by by, int i, int j, int two[2])
{
    two[0] = two[1] = -1;
    if (!g->n[by])
        return;
    if (by == COMPARE_OVERALL)
        two[0] = g->first[by];
    else if (by == COMPARE_NODE)
        two[0] = group_of_node(g, i, j);
    else if (by == COMPARE_LOCALITY)
        two[0] = groups_find_group(g, by, grouping_locality(g, i, j));
    else if (grouping_axis_is(by, rows_of(g)))
        two[0] = g->first[by] + i;
    else if (grouping_axis_is(by, cols_of(g)))
        two[0] = g->first[by] + j;
    if (by == COMPARE_RANK && grouping_between_ranks(g) && g->row_of_col[j] >= 0)
        two[1] = g->first[by] + g->row_of_col[j];
}

void sums_add(struct sums *s, const struct difference *d, const struct log_value *apart)
{
    if (isnan(d->percent))
        return;
    s->a += log(d->a);
    s->b += log(d->b);
    s->d += apart->log;
    s->dd += apart->log * apart->log;
    s->n++;
    if (isnan(apart->var))
        return;
    s->var += apart->var;
    s->var_df += apart->var * apart->var / apart->df;
    s->known++;
}

// The scatter of the cells gives the error even where each holds one value; the cells' own errors
// guard against cells that agree by chance, and speak alone where cells are few. Where whole rows
// or columns moved together, there are only so many of them.
void sums_finish(struct difference *d, const struct sums *s)
{
    int n = s->n;
    *d = (struct difference){.exists = true, .cells = n, .slower = d->slower, .faster = d->faster};
    double mean = n > 0 ? s->d / n : NAN;
    double scatter = n > 1 ? fmax(0, (s->dd - n * mean * mean) / (n - 1)) / n : NAN;
    double own = s->known == n && n > 0 ? s->var / n / n : 0;
    bool enough = n >= GROUP_CELLS_MIN || own > 0;
    double var = fmax(scatter, own), df = fmax(1, n - 1);
    if (n < GROUP_CELLS_MIN && own > 0 && (s->few || !(scatter > own)))
        df = s->var * s->var / s->var_df;
    if (s->clustered > var) {
        var = s->clustered;
        df = s->clustered_df;
    }
    double error = enough ? fmax(sqrt(var), COMPARE_ERROR_FLOOR / sqrt(n)) : NAN;
    difference_set(d, mean, error, df);
    d->a = exp(s->a / n);
    d->b = exp(s->b / n);
}

static void groups_add_group(struct grouping *g, enum compare_by by, int64_t value)
{
    g->c->groups[g->c->n_groups++] = (struct compare_group){.by = by, .value = value};
    g->n[by]++;
}

// An axis of one value says nothing that overall does not.
static void add_axis(struct grouping *g, enum compare_by by)
{
    bool down = grouping_axis_is(by, rows_of(g));
    const struct axis *a = down ? rows_of(g) : cols_of(g);
    const int *aligned = down ? g->c->row_a : g->c->col_a;
    int n = down ? g->c->rows : g->c->cols;
    for (int i = 0; grouping_axis_is(by, a) && n > 1 && i < n; i++)
        groups_add_group(g, by, a->values[aligned[i]]);
}

static void groups_add_nodes(struct grouping *g)
{
    for (int i = 0; grouping_axis_is(COMPARE_RANK, rows_of(g)) && i < g->c->rows; i++)
        if (g->row_node[i] >= 0 && groups_find_group(g, COMPARE_NODE, g->row_node[i]) < 0)
            groups_add_group(g, COMPARE_NODE, g->row_node[i]);
}

static void add_localities(struct grouping *g)
{
    bool seen[2] = {false};
    for (int k = 0; k < g->c->rows * g->c->cols; k++) {
        int at = grouping_locality(g, k / g->c->cols, k % g->c->cols);
        if (g->c->cells[k].exists && at >= 0)
            seen[at] = true;
    }
    for (int at = 0; at < 2 && seen[0] && seen[1]; at++)
        groups_add_group(g, COMPARE_LOCALITY, at);
}

static void list_groups(struct grouping *g)
{
    for (int by = 0; by < COMPARE_BYS; by++) {
        g->first[by] = g->c->n_groups;
        if (by == COMPARE_OVERALL)
            groups_add_group(g, COMPARE_OVERALL, 0);
        else if (by == COMPARE_NODE)
            groups_add_nodes(g);
        else if (by == COMPARE_LOCALITY)
            add_localities(g);
        else
            add_axis(g, (enum compare_by)by);
    }
}

static int grouping_alloc(struct grouping *g, struct err *err)
{
    struct comparison *c = g->c;
    size_t most = 3 + 2 * (size_t)c->rows + (size_t)c->cols;
    c->groups = calloc(most, sizeof *c->groups);
    g->sums = calloc(most, sizeof *g->sums);
    g->row_of_col = calloc((size_t)c->cols, sizeof *g->row_of_col);
    g->row_node = calloc((size_t)c->rows, sizeof *g->row_node);
    g->row_group = calloc((size_t)c->rows, sizeof *g->row_group);
    g->col_node = calloc((size_t)c->cols, sizeof *g->col_node);
    if (!c->groups || !g->sums || !g->row_of_col || !g->row_node || !g->row_group || !g->col_node)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    return places_init(&g->places, g->s->a->ranks, g->s->a->n_ranks, NULL, err);
}

int grouping_init(struct grouping *g, struct comparison *c, const struct sides *s, struct err *err)
{
    *g = (struct grouping){.c = c, .s = s};
    if (grouping_alloc(g, err) < 0)
        return -1;
    for (int i = 0; i < c->rows; i++)
        g->row_node[i] = groups_node_of(g, rows_of(g), rows_of(g)->values[c->row_a[i]]);
    for (int j = 0; j < c->cols; j++) {
        int64_t value = cols_of(g)->values[c->col_a[j]];
        g->col_node[j] = groups_node_of(g, cols_of(g), value);
        g->row_of_col[j] = -1;
        for (int i = 0; grouping_between_ranks(g) && i < c->rows; i++)
            if (rows_of(g)->values[c->row_a[i]] == value)
                g->row_of_col[j] = i;
    }
    list_groups(g);
    for (int i = 0; i < c->rows; i++)
        g->row_group[i] = groups_find_group(g, COMPARE_NODE, g->row_node[i]);
    return 0;
}

static void sort_cell(struct grouping *g, int k)
{
    const struct difference *d = &g->c->cells[k];
    for (int by = 0; by < COMPARE_BYS; by++) {
        int two[2];
        grouping_of_cell(g, (enum compare_by)by, k / g->c->cols, k % g->c->cols, two);
        for (int t = 0; t < 2; t++) {
            if (two[t] < 0)
                continue;
            sums_add(&g->sums[two[t]], d, &g->s->apart[k]);
            g->c->groups[two[t]].d.slower += d->verdict == VERDICT_SLOWER;
            g->c->groups[two[t]].d.faster += d->verdict == VERDICT_FASTER;
        }
    }
}

int compare_groups(struct grouping *g, const struct compare_options *o, struct err *err)
{
    struct comparison *c = g->c;
    CLEANUP_MEM double *p = calloc((size_t)c->n_groups, sizeof *p);
    CLEANUP_MEM int *scratch = calloc((size_t)c->n_groups, sizeof *scratch);
    if (p == NULL || scratch == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    for (int k = 0; k < c->rows * c->cols; k++)
        if (c->cells[k].exists)
            sort_cell(g, k);
    for (int i = 0; i < c->n_groups; i++) {
        sums_finish(&c->groups[i].d, &g->sums[i]);
        p[i] = c->groups[i].d.p;
    }
    dist_fdr(p, c->n_groups, scratch);
    for (int i = 0; i < c->n_groups; i++) {
        c->groups[i].d.p = p[i];
        difference_judge(&c->groups[i].d, c->more_is_better, o);
    }
    return 0;
}

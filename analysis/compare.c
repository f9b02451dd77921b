// SPDX-License-Identifier: Apache-2.0
// First what may be compared and how rows and columns belong together (analysis/compare_align.c),
// then cells are tested, then groups; verdicts last, when every p value is corrected.
#include "analysis/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare_align.h"
#include "analysis/dist.h"
#include "analysis/places.h"
#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/shape.h"

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
    [COMPARE_THREADS] = {"threads", "threads"},
    [COMPARE_PAIR] = {"pair", "pair"},
    [COMPARE_MESSAGE] = {"message", "message"},
    [COMPARE_ACCESS] = {"access", "access"},
    [COMPARE_LOAD] = {"load", "load"},
};

// No clock is better than this: a cell whose samples are all equal is not infinitely sure.
static const double error_floor = 0.0005;
enum {
    GROUP_CELLS_MIN = 4,  // fewer scattered single values say nothing
    SHARED_CELLS_MIN = 8, // fewer do not tell what they have in common
    PRIOR_DF_MAX = 100,   // Student's t is normal by then
    VISITS_ASSUMED = 3,   // of an interval of unknown origin: the default of latency runs
};

struct log_value {
    double log, var, df; // var NaN: one value only
};

void comparison_fini(struct comparison *c)
{
    free(c->row_a);
    free(c->row_b);
    free(c->col_a);
    free(c->col_b);
    free(c->cells);
    free(c->groups);
    *c = (struct comparison){0};
}

// ---- Cells --------------------------------------------------------------------------------------

// Moments at which each cell was measured.
static int64_t visits_of(const struct compare_side *s)
{
    if (!s->spec)
        return VISITS_ASSUMED;
    return spec_param(s->spec, "visits") ? s->spec->visits : 1;
}

// How many standard errors of the median the stored interval is wide on one side. It is for a
// repeat, so sqrt(2) wider than a confidence interval. With several visits it is at least Student's
// t of their medians; read so, an interval that the samples made wider still errs on the safe side.
// With one visit the samples alone made it, and at few samples it covers more than 95 %.
static double interval_errors(double n, double visits)
{
    return sqrt(2) * (visits > 1 ? stats_student((int)visits - 1) : 1.96 + 5 / n);
}

static struct log_value log_of(const struct cell *cell, int64_t visits)
{
    double median = cell->v[CELL_MEDIAN], n = cell->v[CELL_N], sd = cell->v[CELL_SD];
    double half = (cell->v[CELL_HI] - cell->v[CELL_LO]) / 2, moments = fmin((double)visits, n);
    struct log_value v = {.log = median > 0 ? log(median) : NAN, .var = NAN, .df = NAN};
    if (isnan(n) || n < 2 || (isnan(sd) && isnan(half)))
        return v;
    double by_spread = isnan(sd) ? 0 : 1.2533 * sd / sqrt(n) / median;
    double by_interval = isnan(half) ? 0 : half / interval_errors(n, moments) / median;
    double error = fmax(fmax(by_spread, by_interval), error_floor);
    v.var = error * error;
    v.df = (isnan(half) || moments < 2 ? n : moments) - 1;
    return v;
}

// Two degrees of freedom a cell say little about its error. What the errors of all cells of a side
// have in common says more: each variance is drawn towards their typical one, the more, the less
// they differ beyond what chance explains, and gains the degrees of freedom that this is worth
// (Smyth, 2004: a scaled inverse chi square as prior, fitted to the logs of the variances). Where
// cells really differ, hardly anything is gained.
static void share_errors(struct log_value *cells, int n)
{
    double sum = 0, squares = 0, noise = 0;
    int known = 0;
    for (int k = 0; k < n; k++) {
        if (isnan(cells[k].var))
            continue;
        double half = cells[k].df / 2, e = log(cells[k].var) - dist_digamma(half) + log(half);
        sum += e;
        squares += e * e;
        noise += dist_trigamma(half);
        known++;
    }
    if (known < SHARED_CELLS_MIN)
        return;
    double mean = sum / known, beyond = (squares - sum * mean) / (known - 1) - noise / known;
    double half = beyond > 0 ? dist_trigamma_inverse(beyond) : INFINITY;
    double prior_df = fmin(2 * half, PRIOR_DF_MAX);
    double prior = exp(mean + dist_digamma(prior_df / 2) - log(prior_df / 2));
    for (int k = 0; k < n; k++)
        if (!isnan(cells[k].var)) {
            double df = cells[k].df + prior_df;
            cells[k].var = (prior_df * prior + cells[k].df * cells[k].var) / df;
            cells[k].df = df;
        }
}

static void set_interval(struct difference *d, double log_ratio, double error, double df)
{
    double reach = isnan(error) ? NAN : dist_t_quantile(0.975, df) * error;
    d->percent = 100 * expm1(log_ratio);
    d->lo = 100 * expm1(log_ratio - reach);
    d->hi = 100 * expm1(log_ratio + reach);
    d->known = !isnan(error);
    d->p = d->known ? dist_t_two_sided(log_ratio / error, df) : NAN;
}

// Variance of a difference and its degrees of freedom (Welch, Satterthwaite).
static struct log_value apart(struct log_value x, struct log_value y)
{
    double var = x.var + y.var;
    double df = var * var / (x.var * x.var / x.df + y.var * y.var / y.df);
    return (struct log_value){y.log - x.log, var, df};
}

// A pair of ranks is stored once, and places may have changed sides.
static const struct cell *cell_b(const struct comparison *c, const struct matrix *b, int i, int j)
{
    int row = c->row_b[i], col = c->col_b[j];
    return shape_has_cell(b, row, col) ? matrix_at(b, row, col) : matrix_at(b, col, row);
}

struct sides {
    const struct compare_side *a, *b;
    int64_t visits_a, visits_b;
    struct log_value *apart; // of each cell; owned by compare()
};

// The logs of both sides of every cell.
static void read_cells(struct comparison *c, const struct sides *s, struct log_value *x,
                       struct log_value *y)
{
    for (int k = 0; k < c->rows * c->cols; k++) {
        int i = k / c->cols, j = k % c->cols;
        struct difference *d = &c->cells[k];
        *d = (struct difference){.exists = shape_has_cell(s->a->matrix, c->row_a[i], c->col_a[j])};
        x[k] = y[k] = (struct log_value){NAN, NAN, NAN};
        if (!d->exists)
            continue;
        const struct cell *a = matrix_at(s->a->matrix, c->row_a[i], c->col_a[j]);
        const struct cell *b = cell_b(c, s->b->matrix, i, j);
        x[k] = log_of(a, s->visits_a);
        y[k] = log_of(b, s->visits_b);
        d->a = a->v[CELL_MEDIAN];
        d->b = b->v[CELL_MEDIAN];
    }
}

static int set_cells(struct comparison *c, const struct sides *s, struct err *err)
{
    int n = c->rows * c->cols;
    CLEANUP_MEM struct log_value *both = calloc(2 * (size_t)n, sizeof *both);
    if (!both)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    struct log_value *x = both, *y = both + n;
    read_cells(c, s, x, y);
    share_errors(x, n);
    share_errors(y, n);
    for (int k = 0; k < n; k++) {
        struct difference *d = &c->cells[k];
        s->apart[k] = apart(x[k], y[k]);
        set_interval(d, s->apart[k].log, sqrt(s->apart[k].var), s->apart[k].df);
        d->cells = d->exists && !isnan(d->percent);
    }
    return 0;
}

static int compare_cells(struct comparison *c, const struct sides *s, struct err *err)
{
    int n = c->rows * c->cols, single = 0, exist = 0;
    CLEANUP_MEM double *p = calloc((size_t)n, sizeof *p);
    CLEANUP_MEM int *scratch = calloc((size_t)n, sizeof *scratch);
    c->cells = calloc((size_t)n, sizeof *c->cells);
    if (p == NULL || scratch == NULL || c->cells == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    if (set_cells(c, s, err) < 0)
        return -1;
    for (int k = 0; k < n; k++) {
        p[k] = c->cells[k].p;
        exist += c->cells[k].exists;
        single += c->cells[k].exists && !c->cells[k].known;
    }
    dist_fdr(p, n, scratch);
    for (int k = 0; k < n; k++)
        c->cells[k].p = p[k];
    c->single_values = 2 * single > exist;
    if (single > 0)
        compare_note(c,
                     "%d of %d cells hold one value only: whether such a cell differs cannot be "
                     "known; groups of cells are compared instead",
                     single, exist);
    return 0;
}

// A difference counts if it is significant and not surely below the threshold. `same` is a claim
// too: the whole interval lies inside the threshold, by a tenth of it, so that however sure we are,
// a difference as large as the threshold is not the same.
static void judge(struct difference *d, bool more_is_better, const struct compare_options *o)
{
    double t = o->threshold_percent, worse = more_is_better ? -d->percent : d->percent;
    d->verdict = VERDICT_INCONCLUSIVE;
    if (!d->known || isnan(d->percent))
        return;
    if (d->lo > -0.9 * t && d->hi < 0.9 * t)
        d->verdict = VERDICT_SAME;
    else if (d->p <= o->level && worse >= t / 2)
        d->verdict = VERDICT_SLOWER;
    else if (d->p <= o->level && worse <= -t / 2)
        d->verdict = VERDICT_FASTER;
}

// ---- Groups -------------------------------------------------------------------------------------

struct sums {
    double a, b, d, dd, var, var_df;
    int n, known;
};

// Groups of a comparison while cells are sorted into them: the groups of one `by` stand together.
struct grouping {
    struct comparison *c;
    const struct sides *s;
    struct places places; // of A's ranks; owned
    int first[COMPARE_BYS], n[COMPARE_BYS];
    int *row_of_col;              // between ranks: the row of the column's rank, else -1; owned
    int64_t *row_node, *col_node; // of a rank or a node; -1: not known; owned
    int *row_group;               // of that node; -1: none; owned
    struct sums *sums;            // a group; owned
};

static void grouping_fini(struct grouping *g)
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

static bool is_of(enum compare_by by, const struct axis *a)
{
    return bys[by].axis && strcmp(a->name, bys[by].axis) == 0;
}

static bool between_ranks(const struct grouping *g)
{
    return is_of(COMPARE_RANK, rows_of(g)) && is_of(COMPARE_RANK, cols_of(g));
}

static int64_t node_of(const struct grouping *g, const struct axis *a, int64_t value)
{
    if (is_of(COMPARE_RANK, a))
        return places_node(&g->places, value);
    return is_of(COMPARE_TARGET, a) || is_of(COMPARE_INITIATOR, a) ? value : -1;
}

// 0 local, 1 remote, -1 not known or no question.
static int locality_of(const struct grouping *g, int i, int j)
{
    int64_t p = g->row_node[i], q = g->col_node[j];
    int first, second;
    if (is_of(COMPARE_PAIR, rows_of(g))) {
        axis_unpair(rows_of(g)->values[g->c->row_a[i]], &first, &second);
        p = places_node(&g->places, first);
        q = places_node(&g->places, second);
    }
    return p < 0 || q < 0 ? -1 : p != q;
}

static int find_group(const struct grouping *g, enum compare_by by, int64_t value)
{
    for (int k = 0; k < g->n[by]; k++)
        if (g->c->groups[g->first[by] + k].value == value)
            return g->first[by] + k;
    return -1;
}

// The group of a cell's node as far as it has one: both ranks', or the rank's.
static int group_of_node(const struct grouping *g, int i, int j)
{
    if (between_ranks(g))
        return g->row_node[i] == g->col_node[j] ? g->row_group[i] : -1;
    return is_of(COMPARE_RANK, rows_of(g)) ? g->row_group[i] : -1;
}

// The groups that cell (i, j) is in; at most two of a kind, -1 for none.
static void groups_of_cell(const struct grouping *g, enum compare_by by, int i, int j, int two[2])
{
    two[0] = two[1] = -1;
    if (!g->n[by])
        return;
    if (by == COMPARE_OVERALL)
        two[0] = g->first[by];
    else if (by == COMPARE_NODE)
        two[0] = group_of_node(g, i, j);
    else if (by == COMPARE_LOCALITY)
        two[0] = find_group(g, by, locality_of(g, i, j));
    else if (is_of(by, rows_of(g)))
        two[0] = g->first[by] + i;
    else if (is_of(by, cols_of(g)))
        two[0] = g->first[by] + j;
    if (by == COMPARE_RANK && between_ranks(g) && g->row_of_col[j] >= 0)
        two[1] = g->first[by] + g->row_of_col[j];
}

static void sum_cell(struct sums *s, const struct difference *d, const struct log_value *apart)
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

// Scatter of the cells tells the error even where each holds one value; the cells' own errors
// guard against cells that agree by chance, and speak alone where cells are few.
static void finish_group(struct difference *d, const struct sums *s)
{
    int n = s->n;
    *d = (struct difference){.exists = true, .cells = n, .slower = d->slower, .faster = d->faster};
    double mean = n > 0 ? s->d / n : NAN;
    double scatter = n > 1 ? fmax(0, (s->dd - n * mean * mean) / (n - 1)) / n : NAN;
    double own = s->known == n && n > 0 ? s->var / n / n : 0;
    bool enough = n >= GROUP_CELLS_MIN || own > 0;
    double error = enough ? fmax(sqrt(fmax(scatter, own)), error_floor / sqrt(n)) : NAN;
    bool by_own = n < GROUP_CELLS_MIN && !(scatter > own);
    set_interval(d, mean, error, by_own ? s->var * s->var / s->var_df : fmax(1, n - 1));
    d->a = exp(s->a / n);
    d->b = exp(s->b / n);
}

static void add_group(struct grouping *g, enum compare_by by, int64_t value)
{
    g->c->groups[g->c->n_groups++] = (struct compare_group){.by = by, .value = value};
    g->n[by]++;
}

// An axis of one value says nothing that overall does not.
static void add_axis(struct grouping *g, enum compare_by by)
{
    bool down = is_of(by, rows_of(g));
    const struct axis *a = down ? rows_of(g) : cols_of(g);
    const int *aligned = down ? g->c->row_a : g->c->col_a;
    int n = down ? g->c->rows : g->c->cols;
    for (int i = 0; is_of(by, a) && n > 1 && i < n; i++)
        add_group(g, by, a->values[aligned[i]]);
}

static void add_nodes(struct grouping *g)
{
    for (int i = 0; is_of(COMPARE_RANK, rows_of(g)) && i < g->c->rows; i++)
        if (g->row_node[i] >= 0 && find_group(g, COMPARE_NODE, g->row_node[i]) < 0)
            add_group(g, COMPARE_NODE, g->row_node[i]);
}

static void add_localities(struct grouping *g)
{
    bool seen[2] = {false};
    for (int k = 0; k < g->c->rows * g->c->cols; k++) {
        int at = locality_of(g, k / g->c->cols, k % g->c->cols);
        if (g->c->cells[k].exists && at >= 0)
            seen[at] = true;
    }
    for (int at = 0; at < 2 && seen[0] && seen[1]; at++)
        add_group(g, COMPARE_LOCALITY, at);
}

static void list_groups(struct grouping *g)
{
    for (int by = 0; by < COMPARE_BYS; by++) {
        g->first[by] = g->c->n_groups;
        if (by == COMPARE_OVERALL)
            add_group(g, COMPARE_OVERALL, 0);
        else if (by == COMPARE_NODE)
            add_nodes(g);
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

static int grouping_init(struct grouping *g, struct err *err)
{
    const struct comparison *c = g->c;
    if (grouping_alloc(g, err) < 0)
        return -1;
    for (int i = 0; i < c->rows; i++)
        g->row_node[i] = node_of(g, rows_of(g), rows_of(g)->values[c->row_a[i]]);
    for (int j = 0; j < c->cols; j++) {
        int64_t value = cols_of(g)->values[c->col_a[j]];
        g->col_node[j] = node_of(g, cols_of(g), value);
        g->row_of_col[j] = -1;
        for (int i = 0; between_ranks(g) && i < c->rows; i++)
            if (rows_of(g)->values[c->row_a[i]] == value)
                g->row_of_col[j] = i;
    }
    list_groups(g);
    for (int i = 0; i < c->rows; i++)
        g->row_group[i] = find_group(g, COMPARE_NODE, g->row_node[i]);
    return 0;
}

static void sort_cell(struct grouping *g, int k)
{
    const struct difference *d = &g->c->cells[k];
    for (int by = 0; by < COMPARE_BYS; by++) {
        int two[2];
        groups_of_cell(g, (enum compare_by)by, k / g->c->cols, k % g->c->cols, two);
        for (int t = 0; t < 2; t++) {
            if (two[t] < 0)
                continue;
            sum_cell(&g->sums[two[t]], d, &g->s->apart[k]);
            g->c->groups[two[t]].d.slower += d->verdict == VERDICT_SLOWER;
            g->c->groups[two[t]].d.faster += d->verdict == VERDICT_FASTER;
        }
    }
}

static int compare_groups(struct comparison *c, const struct sides *s,
                          const struct compare_options *o, struct err *err)
{
    struct grouping g CLEANUP(grouping_fini) = {.c = c, .s = s};
    if (grouping_init(&g, err) < 0)
        return -1;
    CLEANUP_MEM double *p = calloc((size_t)c->n_groups, sizeof *p);
    CLEANUP_MEM int *scratch = calloc((size_t)c->n_groups, sizeof *scratch);
    if (p == NULL || scratch == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    for (int k = 0; k < c->rows * c->cols; k++)
        if (c->cells[k].exists)
            sort_cell(&g, k);
    for (int i = 0; i < c->n_groups; i++) {
        finish_group(&c->groups[i].d, &g.sums[i]);
        p[i] = c->groups[i].d.p;
    }
    dist_fdr(p, c->n_groups, scratch);
    for (int i = 0; i < c->n_groups; i++) {
        c->groups[i].d.p = p[i];
        judge(&c->groups[i].d, c->more_is_better, o);
    }
    return 0;
}

int compare(struct comparison *out, const struct compare_side *a, const struct compare_side *b,
            const struct compare_options *options, struct err *err)
{
    CLEANUP(comparison_fini)
    struct comparison c = {.more_is_better = shape_more_is_better(a->matrix)};
    struct sides s = {a, b, visits_of(a), visits_of(b), NULL};
    if (compare_align(&c, a, b, options, err) < 0)
        return -1;
    CLEANUP_MEM struct log_value *room = calloc((size_t)c.rows * (size_t)c.cols, sizeof *room);
    s.apart = room;
    if (!room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    if (compare_cells(&c, &s, err) < 0)
        return -1;
    for (int k = 0; k < c.rows * c.cols; k++)
        judge(&c.cells[k], c.more_is_better, options);
    if (compare_groups(&c, &s, options, err) < 0)
        return -1;
    *out = c;
    c = (struct comparison){0};
    return 0;
}

static bool alarming(const struct difference *d)
{
    return d->verdict == VERDICT_SLOWER || d->verdict == VERDICT_FASTER;
}

bool comparison_alarms(const struct comparison *c)
{
    for (int k = 0; k < c->rows * c->cols; k++)
        if (alarming(&c->cells[k]))
            return true;
    for (int i = 0; i < c->n_groups; i++)
        if (alarming(&c->groups[i].d))
            return true;
    return false;
}

// ---- JSON ---------------------------------------------------------------------------------------

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
    else if (g->by == COMPARE_SIZE)
        str_size_head((uint64_t)value, out, room);
    else if (g->by == COMPARE_MESSAGE)
        str_from_bytes((uint64_t)value, out, room);
    else
        axis_label(&a, 0, out, room);
}

static void write_difference(const struct difference *d, struct jsonw *w)
{
    jsonw_fixed(w, "a", d->a, 3);
    jsonw_fixed(w, "b", d->b, 3);
    jsonw_fixed(w, "percent", d->percent, 2);
    jsonw_fixed(w, "lo_percent", d->lo, 2);
    jsonw_fixed(w, "hi_percent", d->hi, 2);
    jsonw_fixed(w, "p", d->p, 6);
    jsonw_text(w, "verdict", verdict_names[d->verdict]);
}

static void write_group(const struct compare_group *g, struct jsonw *w)
{
    char label[32];
    compare_group_label(g, label, sizeof label);
    jsonw_object(w, NULL);
    jsonw_text(w, "by", bys[g->by].name);
    if (g->by != COMPARE_OVERALL)
        jsonw_i64(w, "value", g->value);
    jsonw_text(w, "label", label);
    write_difference(&g->d, w);
    jsonw_i64(w, "cells", g->d.cells);
    jsonw_i64(w, "cells_slower", g->d.slower);
    jsonw_i64(w, "cells_faster", g->d.faster);
    jsonw_end(w);
}

static void write_cell(const struct comparison *c, const struct matrix *m, int k, struct jsonw *w)
{
    bool same_name = strcmp(m->row.name, m->col.name) == 0;
    jsonw_object(w, NULL);
    jsonw_i64(w, m->row.name, m->row.values[c->row_a[k / c->cols]]);
    jsonw_i64(w, same_name ? "other_rank" : m->col.name, m->col.values[c->col_a[k % c->cols]]);
    write_difference(&c->cells[k], w);
    jsonw_end(w);
}

void comparison_write_json(const struct comparison *c, const struct compare_side *a,
                           struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    jsonw_bool(w, "more_is_better", c->more_is_better);
    jsonw_bool(w, "single_values", c->single_values);
    jsonw_array(w, "notes");
    for (int i = 0; i < c->n_notes; i++)
        jsonw_text(w, NULL, c->notes[i]);
    jsonw_end(w);
    jsonw_array(w, "groups");
    for (int i = 0; i < c->n_groups; i++)
        write_group(&c->groups[i], w);
    jsonw_end(w);
    jsonw_array(w, "cells");
    for (int k = 0; k < c->rows * c->cols; k++)
        if (c->cells[k].exists)
            write_cell(c, a->matrix, k, w);
    jsonw_end(w);
    jsonw_end(w);
}

void comparison_write_overall(const struct comparison *c, const struct compare_side *a,
                              struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    jsonw_text(w, "matrix", a->matrix->name);
    jsonw_text(w, "unit", a->matrix->unit);
    write_difference(&c->groups[0].d, w);
    jsonw_end(w);
}

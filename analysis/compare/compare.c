// SPDX-License-Identifier: Apache-2.0
// First what may be compared and how rows and columns belong together (analysis/compare/align.c),
// then cells are tested, then groups; verdicts last, when every p value is corrected.
#include "analysis/compare/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/align.h"
#include "analysis/compare/parts.h"
#include "analysis/stats/distributions.h"
#include "analysis/stats/median.h"
#include "analysis/stats/stats.h"
#include "base/cleanup.h"
#include "model/shape.h"

enum {
    SHARED_CELLS_MIN = 8, // fewer do not show what they have in common
    PRIOR_DF_MAX = 100,   // Student's t is normal by then
    VISITS_ASSUMED = 8,   // of an interval of unknown origin: the default of latency runs
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
// repeat, so sqrt(2) wider than a confidence interval. With several visits it is at least that of
// their medians. With one visit the samples alone made it, and at few samples it covers more than
// 95 %.
static double interval_errors(double n, double visits)
{
    return visits > 1 ? stats_visits_errors((int)visits) : sqrt(2) * (1.96 + 5 / n);
}

// Of the level of groups. The error of a cell is the least known of all: the typical error that it
// is drawn to need not be its own.
static const double CELL_LEVEL = 0.1;

static struct log_value log_of(const struct cell *cell, int64_t visits)
{
    double median = cell->v[CELL_MEDIAN], n = cell->v[CELL_N], sd = cell->v[CELL_SD];
    double half = (cell->v[CELL_HI] - cell->v[CELL_LO]) / 2, moments = fmin((double)visits, n);
    struct log_value v = {.log = median > 0 ? log(median) : NAN, .var = NAN, .df = NAN};
    if (isnan(n) || n < 2 || (isnan(sd) && isnan(half)))
        return v;
    double by_spread = isnan(sd) ? 0 : 1.2533 * sd / sqrt(n) / median;
    double by_interval = isnan(half) ? 0 : half / interval_errors(n, moments) / median;
    double error = fmax(fmax(by_spread, by_interval), COMPARE_ERROR_FLOOR);
    v.var = error * error;
    v.df = isnan(half) || moments < 2 ? n - 1 : stats_visits_freedom((int)moments);
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

// The logs of both sides of every cell.
static void compare_read_cells(struct comparison *c, const struct sides *s, struct log_value *x,
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
    compare_read_cells(c, s, x, y);
    share_errors(x, n);
    share_errors(y, n);
    for (int k = 0; k < n; k++) {
        struct difference *d = &c->cells[k];
        s->apart[k] = apart(x[k], y[k]);
        difference_set(d, s->apart[k].log, sqrt(s->apart[k].var), s->apart[k].df);
        d->cells = d->exists && !isnan(d->percent);
    }
    return 0;
}

// What an answer does not rest on, before what it does: cells without a value, values that the
// machine disturbed.
static void note_missing(struct comparison *c)
{
    int missing = 0, exist = 0;
    for (int k = 0; k < c->rows * c->cols; k++) {
        exist += c->cells[k].exists;
        missing += c->cells[k].exists && !c->cells[k].cells;
    }
    if (missing)
        compare_note(c, "%d of %d cells have no value in A or in B: they are not compared", missing,
                     exist);
}

static void compare_note_disturbed(struct comparison *c, const struct matrix *m, const char *side)
{
    double share = samples_disturbed(m, 1);
    if (share >= SAMPLES_DOUBTFUL)
        compare_note(c, "%.0f %% of the samples of %s were disturbed: its values are doubtful",
                     100 * share, side);
}

// More changes what a cache takes by more than a comparison ignores.
static const double CLOCK_DIFFERS = 0.02;

static void note_clocks(struct comparison *c, const struct sides *s)
{
    double a = ranks_clock(s->a->ranks, s->a->n_ranks), b = ranks_clock(s->b->ranks, s->b->n_ranks);
    if (strcmp(s->a->matrix->unit, "cycles") != 0 && fabs(b / a - 1) >= CLOCK_DIFFERS)
        compare_note(c,
                     "the cores ran at %.2f GHz in A and at %.2f GHz in B (medians); a comparison "
                     "in cycles leaves that out",
                     a, b);
}

static bool find_identical(const struct comparison *c)
{
    bool any = false;
    for (int k = 0; k < c->rows * c->cols; k++) {
        const struct difference *d = &c->cells[k];
        if (d->cells && (d->a < d->b || d->a > d->b))
            return false;
        any |= d->cells;
    }
    return any;
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
        single += c->cells[k].cells && !c->cells[k].known;
    }
    dist_fdr(p, n, scratch);
    for (int k = 0; k < n; k++)
        c->cells[k].p = p[k];
    c->single_values = 2 * single > exist;
    c->identical = find_identical(c);
    note_missing(c);
    compare_note_disturbed(c, s->a->matrix, "A");
    compare_note_disturbed(c, s->b->matrix, "B");
    note_clocks(c, s);
    if (c->identical)
        compare_note(c, "A and B have the same values: they are one run, or copies of one");
    else if (single > 0)
        compare_note(c,
                     "%d of %d cells hold one value only: whether such a cell differs cannot be "
                     "known; groups of cells are compared instead",
                     single, exist);
    return 0;
}

int compare(struct comparison *out, const struct compare_side *a, const struct compare_side *b,
            const struct compare_options *options, struct err *err)
{
    struct compare_options of_cells = *options;
    of_cells.level *= CELL_LEVEL;
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
        difference_judge(&c.cells[k], c.more_is_better, &of_cells);
    struct grouping g CLEANUP(grouping_fini) = {0};
    if (grouping_init(&g, &c, &s, err) < 0 || compare_groups(&g, options, err) < 0 ||
        compare_conclude(&g, options, err) < 0)
        return -1;
    *out = c;
    c = (struct comparison){0};
    return 0;
}

// ---- JSON ---------------------------------------------------------------------------------------

static void write_numbers(const struct difference *d, struct jsonw *w)
{
    jsonw_fixed(w, "base_value", d->a, 3);
    jsonw_fixed(w, "target_value", d->b, 3);
    jsonw_fixed(w, "percent", d->percent, 2);
    jsonw_fixed(w, "lo_percent", d->lo, 2);
    jsonw_fixed(w, "hi_percent", d->hi, 2);
    jsonw_fixed(w, "p", d->p, 6);
}

static void write_difference(const struct difference *d, struct jsonw *w)
{
    write_numbers(d, w);
    jsonw_text(w, "verdict", verdict_names[d->verdict]);
}

static void compare_write_group(const struct compare_group *g, struct jsonw *w)
{
    char label[32];
    compare_group_label(g, label, sizeof label);
    jsonw_object(w, NULL);
    jsonw_text(w, "by", compare_by_name(g->by));
    if (g->by != COMPARE_OVERALL)
        jsonw_i64(w, "value", g->value);
    jsonw_text(w, "label", label);
    write_difference(&g->d, w);
    jsonw_i64(w, "cells", g->d.cells);
    jsonw_i64(w, "cells_slower", g->d.slower);
    jsonw_i64(w, "cells_faster", g->d.faster);
    jsonw_end(w);
}

static void write_part(const struct compare_part *p, struct jsonw *w)
{
    jsonw_object(w, NULL);
    jsonw_text(w, "name", p->name);
    jsonw_text(w, "by", compare_by_name(p->by));
    if (p->by != COMPARE_OVERALL && p->by != COMPARE_PART)
        jsonw_i64(w, "value", p->value);
    write_difference(&p->d, w);
    jsonw_i64(w, "cells", p->d.cells);
    jsonw_end(w);
}

static void write_verdict(const struct comparison *c, struct jsonw *w)
{
    char text[400];
    comparison_text(c, text, sizeof text);
    jsonw_text(w, "verdict", verdict_names[c->verdict]);
    jsonw_text(w, "text", text);
}

static void compare_write_cell(const struct comparison *c, const struct matrix *m, int k,
                               struct jsonw *w)
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
    write_verdict(c, w);
    jsonw_array(w, "parts");
    for (int i = 0; i < c->n_parts; i++)
        write_part(&c->parts[i], w);
    jsonw_end(w);
    jsonw_bool(w, "more_parts", c->more_parts);
    if (c->rest.cells) {
        jsonw_object(w, "rest");
        write_difference(&c->rest, w);
        jsonw_i64(w, "cells", c->rest.cells);
        jsonw_end(w);
    } else {
        jsonw_null(w, "rest");
    }
    jsonw_bool(w, "identical", c->identical);
    jsonw_fixed(w, "detectable_percent", c->detectable, 2);
    jsonw_bool(w, "more_is_better", c->more_is_better);
    jsonw_bool(w, "single_values", c->single_values);
    jsonw_array(w, "notes");
    for (int i = 0; i < c->n_notes; i++)
        jsonw_text(w, NULL, c->notes[i]);
    jsonw_end(w);
    jsonw_array(w, "groups");
    for (int i = 0; i < c->n_groups; i++)
        compare_write_group(&c->groups[i], w);
    jsonw_end(w);
    jsonw_array(w, "cells");
    for (int k = 0; k < c->rows * c->cols; k++)
        if (c->cells[k].exists)
            compare_write_cell(c, a->matrix, k, w);
    jsonw_end(w);
    jsonw_end(w);
}

void comparison_write_overall(const struct comparison *c, const struct compare_side *a,
                              struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    jsonw_text(w, "matrix", a->matrix->name);
    jsonw_text(w, "unit", a->matrix->unit);
    write_numbers(&c->groups[0].d, w);
    write_verdict(c, w);
    jsonw_end(w);
}

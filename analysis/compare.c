// SPDX-License-Identifier: Apache-2.0
// First what may be compared (refusals and notes), then rows and columns are aligned, then cells
// are tested, then groups; verdicts last, when every p value is corrected.
#include "analysis/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/dist.h"
#include "base/cleanup.h"

const char *const verdict_names[VERDICTS] = {"same", "slower", "faster", "inconclusive"};
const char *const compare_by_names[COMPARE_BYS] = {"overall", "size", "rank", "node"};

// No clock is better than this: a cell whose samples are all equal is not infinitely sure.
static const double error_floor = 0.0005;
enum { GROUP_CELLS_MIN = 4 }; // fewer scattered single values say nothing

struct log_value {
    double log, var, df; // var NaN: one value only
};

__attribute__((format(printf, 2, 3))) static void note(struct comparison *c, const char *fmt, ...)
{
    if (c->n_notes == COMPARE_NOTES_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->notes[c->n_notes++], COMPARE_NOTE_ROOM, fmt, ap);
    va_end(ap);
}

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

static const struct rank_info *rank_of(const struct compare_side *s, int64_t rank)
{
    for (int i = 0; s->ranks != NULL && i < s->n_ranks; i++)
        if (s->ranks[i].rank == rank)
            return &s->ranks[i];
    return NULL;
}

static const char *pages_of(const struct compare_side *s)
{
    return s->ranks == NULL || s->n_ranks == 0 ? "" : s->ranks[0].pages_got;
}

// One fact that must be the same on both sides; unknown on a side is a note.
static int must_match(struct comparison *c, const char *what, const char *a, const char *b,
                      bool anyway, struct err *err)
{
    a = a == NULL ? "" : a;
    b = b == NULL ? "" : b;
    if (strcmp(a, b) == 0)
        return 0;
    if (*a == '\0' || *b == '\0') {
        note(c, "%s of %s is not known; the other has %s", what, *a ? "B" : "A", *a ? a : b);
        return 0;
    }
    if (!anyway)
        return err_set(err, ERR_CONFLICT, what, "the %s differs: A has %s, B has %s", what, a, b);
    note(c, "the %s differs: A has %s, B has %s; differences may come from that alone", what, a, b);
    return 0;
}

static int check_sides(struct comparison *c, const struct compare_side *a,
                       const struct compare_side *b, bool anyway, struct err *err)
{
    const struct matrix *x = a->matrix, *y = b->matrix;
    if (must_match(c, "quantity", x->quantity, y->quantity, false, err) < 0 ||
        must_match(c, "unit", x->unit, y->unit, false, err) < 0 ||
        must_match(c, "mode", x->name, y->name, anyway, err) < 0 ||
        must_match(c, "method", a->method, b->method, anyway, err) < 0)
        return -1;
    return must_match(c, "page kind", pages_of(a), pages_of(b), anyway, err);
}

static bool same_place(const struct rank_info *p, const struct rank_info *q)
{
    return p != NULL && q != NULL && p->cpu >= 0 && p->cpu == q->cpu && p->mem_node == q->mem_node;
}

// The row of B for a rank of A: the rank at the same place if places are known, else the same
// number.
static int partner_row(const struct compare_side *a, const struct compare_side *b, int64_t rank,
                       const bool *taken)
{
    const struct rank_info *here = rank_of(a, rank);
    const struct axis *rows = &b->matrix->row;
    for (int pass = 0; pass < 3; pass++)
        for (int j = 0; j < rows->n; j++) {
            if (taken[j])
                continue;
            bool place = same_place(here, rank_of(b, rows->values[j]));
            bool number = rows->values[j] == rank;
            if ((pass == 0 && place && number) || (pass == 1 && place) || (pass == 2 && number))
                return j;
        }
    return -1;
}

static void note_pair(struct comparison *c, const struct compare_side *a,
                      const struct compare_side *b, int64_t ra, int64_t rb)
{
    const struct rank_info *p = rank_of(a, ra), *q = rank_of(b, rb);
    if (ra != rb && p != NULL)
        note(c,
             "rank %lld of A is compared with rank %lld of B: both on CPU %lld, memory node %lld",
             (long long)ra, (long long)rb, (long long)p->cpu, (long long)p->mem_node);
    else if (p != NULL && q != NULL && !same_place(p, q))
        note(c,
             "placement of rank %lld differs: CPU %lld, memory node %lld in A; CPU %lld, memory "
             "node %lld in B",
             (long long)ra, (long long)p->cpu, (long long)p->mem_node, (long long)q->cpu,
             (long long)q->mem_node);
}

static void align_rows(struct comparison *c, const struct compare_side *a,
                       const struct compare_side *b, bool *taken)
{
    const struct axis *x = &a->matrix->row, *y = &b->matrix->row;
    for (int i = 0; i < x->n; i++) {
        int j = partner_row(a, b, x->values[i], taken);
        if (j < 0)
            continue;
        taken[j] = true;
        note_pair(c, a, b, x->values[i], y->values[j]);
        c->row_a[c->rows] = i;
        c->row_b[c->rows++] = j;
    }
    if (c->rows < x->n || c->rows < y->n)
        note(c, "the rank layout differs: A has %d ranks, B has %d, %d are in both", x->n, y->n,
             c->rows);
}

static void align_cols(struct comparison *c, const struct axis *x, const struct axis *y)
{
    for (int i = 0; i < x->n; i++)
        for (int j = 0; j < y->n; j++)
            if (x->values[i] == y->values[j]) {
                c->col_a[c->cols] = i;
                c->col_b[c->cols++] = j;
                break;
            }
    if (c->cols < x->n || c->cols < y->n)
        note(c, "the sizes differ: A has %d, B has %d, %d are in both", x->n, y->n, c->cols);
}

static int align(struct comparison *c, const struct compare_side *a, const struct compare_side *b,
                 struct err *err)
{
    const struct matrix *x = a->matrix, *y = b->matrix;
    c->row_a = calloc(x->row.n + 1, sizeof *c->row_a);
    c->row_b = calloc(x->row.n + 1, sizeof *c->row_b);
    c->col_a = calloc(x->col.n + 1, sizeof *c->col_a);
    c->col_b = calloc(x->col.n + 1, sizeof *c->col_b);
    CLEANUP_MEM bool *taken = calloc(y->row.n + 1, sizeof *taken);
    if (c->row_a == NULL || c->row_b == NULL || c->col_a == NULL || c->col_b == NULL ||
        taken == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    align_rows(c, a, b, taken);
    align_cols(c, &x->col, &y->col);
    if (c->rows == 0 || c->cols == 0)
        return err_set(err, ERR_CONFLICT, c->rows == 0 ? "ranks" : "sizes",
                       "A and B have no %s in common", c->rows == 0 ? "rank" : "size");
    return 0;
}

// How many standard errors of the median the stored interval is wide on one side. It is sqrt(2)
// wider than a confidence interval, and at few samples covers more than 95 %.
static double interval_errors(double n)
{
    return sqrt(2) * (1.96 + 5 / n);
}

static struct log_value log_of(const struct cell *cell)
{
    double median = cell->v[CELL_MEDIAN], n = cell->v[CELL_N], sd = cell->v[CELL_SD];
    double half = (cell->v[CELL_HI] - cell->v[CELL_LO]) / 2;
    struct log_value v = {.log = median > 0 ? log(median) : NAN, .var = NAN, .df = NAN};
    if (isnan(n) || n < 2 || (isnan(sd) && isnan(half)))
        return v;
    double by_spread = isnan(sd) ? 0 : 1.2533 * sd / sqrt(n) / median;
    double by_interval = isnan(half) ? 0 : half / interval_errors(n) / median;
    double error = fmax(fmax(by_spread, by_interval), error_floor);
    v.var = error * error;
    v.df = n - 1;
    return v;
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

static const struct cell *cell_a(const struct comparison *c, const struct compare_side *a, int i,
                                 int j)
{
    return matrix_at(a->matrix, c->row_a[i], c->col_a[j]);
}

static const struct cell *cell_b(const struct comparison *c, const struct compare_side *b, int i,
                                 int j)
{
    return matrix_at(b->matrix, c->row_b[i], c->col_b[j]);
}

static struct difference difference_of(const struct cell *a, const struct cell *b)
{
    struct log_value x = log_of(a), y = log_of(b);
    struct difference d = {.a = a->v[CELL_MEDIAN], .b = b->v[CELL_MEDIAN], .cells = 1};
    double var = x.var + y.var;
    double df = var * var / (x.var * x.var / x.df + y.var * y.var / y.df); // Welch, Satterthwaite
    set_interval(&d, y.log - x.log, sqrt(var), df);
    d.cells = !isnan(d.percent);
    return d;
}

static int compare_cells(struct comparison *c, const struct compare_side *a,
                         const struct compare_side *b, struct err *err)
{
    int n = c->rows * c->cols, single = 0;
    CLEANUP_MEM double *p = calloc(n, sizeof *p);
    CLEANUP_MEM int *scratch = calloc(n, sizeof *scratch);
    c->cells = calloc(n, sizeof *c->cells);
    if (p == NULL || scratch == NULL || c->cells == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    for (int k = 0; k < n; k++) {
        int i = k / c->cols, j = k % c->cols;
        c->cells[k] = difference_of(cell_a(c, a, i, j), cell_b(c, b, i, j));
        p[k] = c->cells[k].p;
        single += !c->cells[k].known;
    }
    dist_fdr(p, n, scratch);
    for (int k = 0; k < n; k++)
        c->cells[k].p = p[k];
    c->single_values = 2 * single > n;
    if (single > 0)
        note(c,
             "%d of %d cells hold one value only: whether such a cell differs cannot be known; "
             "groups of cells are compared instead",
             single, n);
    return 0;
}

// A difference counts if it is significant and not surely below the threshold. `same` is a claim
// too: the whole interval lies inside the threshold.
static void judge(struct difference *d, const struct compare_options *o)
{
    double t = o->threshold_percent;
    d->verdict = VERDICT_INCONCLUSIVE;
    if (!d->known || isnan(d->percent))
        return;
    if (d->lo > -t && d->hi < t)
        d->verdict = VERDICT_SAME;
    else if (d->p <= o->level && d->percent >= t / 2)
        d->verdict = VERDICT_SLOWER;
    else if (d->p <= o->level && d->percent <= -t / 2)
        d->verdict = VERDICT_FASTER;
}

static bool in_group(const struct comparison *c, const struct compare_side *a,
                     const struct compare_group *g, int i, int j)
{
    int64_t rank = a->matrix->row.values[c->row_a[i]];
    const struct rank_info *info = rank_of(a, rank);
    switch (g->by) {
    case COMPARE_SIZE:
        return a->matrix->col.values[c->col_a[j]] == g->value;
    case COMPARE_RANK:
        return rank == g->value;
    case COMPARE_NODE:
        return info != NULL && info->mem_node == g->value;
    default:
        return true;
    }
}

struct sums {
    double a, b, d, dd, var;
    int n, known;
};

static void sum_cell(struct sums *s, const struct difference *d, double va)
{
    if (isnan(d->percent))
        return;
    double ratio = log1p(d->percent / 100);
    s->a += log(d->a);
    s->b += log(d->b);
    s->d += ratio;
    s->dd += ratio * ratio;
    s->n++;
    if (!isnan(va)) {
        s->var += va;
        s->known++;
    }
}

// Scatter of the cells tells the error even where each holds one value; the cells' own errors
// guard against cells that agree by chance.
static void finish_group(struct difference *d, const struct sums *s)
{
    int n = s->n;
    *d = (struct difference){.cells = n, .slower = d->slower, .faster = d->faster};
    double mean = n > 0 ? s->d / n : NAN;
    double scatter = n > 1 ? fmax(0, (s->dd - n * mean * mean) / (n - 1)) / n : NAN;
    double own = s->known == n && n > 0 ? s->var / n / n : 0;
    bool enough = n >= GROUP_CELLS_MIN;
    double error = enough ? fmax(sqrt(fmax(scatter, own)), error_floor / sqrt(n)) : NAN;
    set_interval(d, mean, error, n > 1 ? n - 1 : 1);
    d->a = exp(s->a / n);
    d->b = exp(s->b / n);
}

static void compare_group_cells(struct comparison *c, const struct compare_side *a,
                                const struct compare_side *b, struct compare_group *g)
{
    struct sums s = {0};
    for (int k = 0; k < c->rows * c->cols; k++) {
        int i = k / c->cols, j = k % c->cols;
        if (!in_group(c, a, g, i, j))
            continue;
        double var = log_of(cell_a(c, a, i, j)).var + log_of(cell_b(c, b, i, j)).var;
        sum_cell(&s, &c->cells[k], var);
        g->d.slower += c->cells[k].verdict == VERDICT_SLOWER;
        g->d.faster += c->cells[k].verdict == VERDICT_FASTER;
    }
    finish_group(&g->d, &s);
}

static void add_group(struct comparison *c, enum compare_by by, int64_t value)
{
    for (int i = 0; i < c->n_groups; i++)
        if (c->groups[i].by == by && c->groups[i].value == value)
            return;
    c->groups[c->n_groups++] = (struct compare_group){.by = by, .value = value};
}

static void list_groups(struct comparison *c, const struct compare_side *a)
{
    add_group(c, COMPARE_OVERALL, 0);
    for (int j = 0; j < c->cols; j++)
        add_group(c, COMPARE_SIZE, a->matrix->col.values[c->col_a[j]]);
    for (int i = 0; i < c->rows; i++)
        add_group(c, COMPARE_RANK, a->matrix->row.values[c->row_a[i]]);
    for (int i = 0; i < c->rows; i++) {
        const struct rank_info *r = rank_of(a, a->matrix->row.values[c->row_a[i]]);
        if (r != NULL && r->mem_node >= 0)
            add_group(c, COMPARE_NODE, r->mem_node);
    }
}

static int compare_groups(struct comparison *c, const struct compare_side *a,
                          const struct compare_side *b, const struct compare_options *o,
                          struct err *err)
{
    int most = 1 + c->cols + 2 * c->rows;
    c->groups = calloc(most, sizeof *c->groups);
    CLEANUP_MEM double *p = calloc(most, sizeof *p);
    CLEANUP_MEM int *scratch = calloc(most, sizeof *scratch);
    if (c->groups == NULL || p == NULL || scratch == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the comparison");
    list_groups(c, a);
    for (int i = 0; i < c->n_groups; i++) {
        compare_group_cells(c, a, b, &c->groups[i]);
        p[i] = c->groups[i].d.p;
    }
    dist_fdr(p, c->n_groups, scratch);
    for (int i = 0; i < c->n_groups; i++) {
        c->groups[i].d.p = p[i];
        judge(&c->groups[i].d, o);
    }
    return 0;
}

int compare(struct comparison *out, const struct compare_side *a, const struct compare_side *b,
            const struct compare_options *options, struct err *err)
{
    CLEANUP(comparison_fini) struct comparison c = {0};
    if (check_sides(&c, a, b, options->anyway, err) < 0 || align(&c, a, b, err) < 0 ||
        compare_cells(&c, a, b, err) < 0)
        return -1;
    for (int k = 0; k < c.rows * c.cols; k++)
        judge(&c.cells[k], options);
    if (compare_groups(&c, a, b, options, err) < 0)
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
    jsonw_object(w, NULL);
    jsonw_text(w, "by", compare_by_names[g->by]);
    if (g->by != COMPARE_OVERALL)
        jsonw_i64(w, "value", g->value);
    write_difference(&g->d, w);
    jsonw_i64(w, "cells", g->d.cells);
    jsonw_i64(w, "cells_slower", g->d.slower);
    jsonw_i64(w, "cells_faster", g->d.faster);
    jsonw_end(w);
}

void comparison_write_json(const struct comparison *c, const struct compare_side *a,
                           struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
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
    for (int k = 0; k < c->rows * c->cols; k++) {
        jsonw_object(w, NULL);
        jsonw_i64(w, "rank", a->matrix->row.values[c->row_a[k / c->cols]]);
        jsonw_i64(w, "working_set", a->matrix->col.values[c->col_a[k % c->cols]]);
        write_difference(&c->cells[k], w);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_end(w);
}

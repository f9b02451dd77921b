// SPDX-License-Identifier: Apache-2.0
// Runs that belong together are checked for equal axes first. Then each cell becomes the median
// of the runs' cells, and the scatter of the runs, pooled over the matrix, widens its interval.
#include "analysis/compare/baseline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/stats/distributions.h"
#include "analysis/stats/median.h"

static bool baseline_same_axis(const struct axis *a, const struct axis *b)
{
    return strcmp(a->name, b->name) == 0 && a->n == b->n &&
           memcmp(a->values, b->values, (size_t)a->n * sizeof *a->values) == 0;
}

int baseline_fits(const struct matrix *a, const struct matrix *b, struct err *err)
{
    const char *what = strcmp(a->quantity, b->quantity) != 0   ? "quantity"
                       : strcmp(a->unit, b->unit) != 0         ? "unit"
                       : !baseline_same_axis(&a->row, &b->row) ? a->row.name
                       : !baseline_same_axis(&a->col, &b->col) ? a->col.name
                                                               : NULL;
    return what ? err_set(err, ERR_CONFLICT, "runs",
                          "the runs' matrices %s differ in %s: they cannot be one baseline",
                          a->name, what)
                : 0;
}

// Variance of the runs' logs, pooled over all cells that every run knows.
static double scatter(const struct matrix *const *list, int n)
{
    double sum = 0;
    int cells = list[0]->row.n * list[0]->col.n, known = 0;
    for (int c = 0; c < cells; c++) {
        double mean = 0, squares = 0;
        for (int r = 0; r < n; r++)
            mean += log(list[r]->cells[c].v[CELL_MEDIAN]) / n;
        for (int r = 0; r < n; r++) {
            double d = log(list[r]->cells[c].v[CELL_MEDIAN]) - mean;
            squares += d * d;
        }
        if (isfinite(squares)) {
            sum += squares / (n - 1);
            known++;
        }
    }
    return known ? sum / known : NAN;
}

// How the runs' fields become one.
static double combine(enum cell_field f, double *v, int n)
{
    double sum = 0, least = NAN;
    for (int i = 0; i < n; i++) {
        sum += v[i];
        least = fmin(least, v[i]);
    }
    switch (f) {
    case CELL_N:
    case CELL_DISTURBED:
        return sum;
    case CELL_MIN:
    case CELL_CONVERGED:
    case CELL_CONFIRMED:
        return least;
    default:
        break;
    }
    for (int i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return NAN;
    return middle_of(v, n);
}

static void widen(struct cell *c, double variance, int n)
{
    double median = c->v[CELL_MEDIAN];
    double half = 1.96 * sqrt(2 * variance * (1 + 1.57 / n)) * median;
    if (!isfinite(half))
        return;
    c->v[CELL_LO] = fmin(c->v[CELL_LO], median - half); // fmin leaves a NaN out
    c->v[CELL_HI] = fmax(c->v[CELL_HI], median + half);
}

static void baseline_fill(struct matrix *m, const struct matrix *const *list, int n)
{
    double variance = scatter(list, n), v[BASELINE_RUNS_MAX];
    for (int c = 0; c < m->row.n * m->col.n; c++) {
        for (int f = 0; f < CELL_FIELDS; f++) {
            for (int r = 0; r < n; r++)
                v[r] = list[r]->cells[c].v[f];
            m->cells[c].v[f] = combine((enum cell_field)f, v, n);
        }
        widen(&m->cells[c], variance, n);
    }
}

int baseline_middle(struct matrix *out, const struct matrix *const *list, int n, struct err *err)
{
    const struct matrix *first = list[0];
    struct matrix m;
    if (n > BASELINE_RUNS_MAX)
        return err_set(err, ERR_INVALID, "runs", "must be at most %d runs", BASELINE_RUNS_MAX);
    for (int r = 1; r < n; r++)
        if (baseline_fits(first, list[r], err) < 0)
            return -1;
    if (matrix_init(&m, first->name, first->quantity, first->unit, first->row.n, first->col.n,
                    err) < 0)
        return -1;
    const struct axis *from[] = {&first->row, &first->col};
    struct axis *to[] = {&m.row, &m.col};
    for (int i = 0; i < 2; i++) {
        int64_t *values = to[i]->values;
        *to[i] = *from[i];
        to[i]->values = values;
        memcpy(values, from[i]->values, (size_t)from[i]->n * sizeof *values);
    }
    if (n == 1)
        memcpy(m.cells, first->cells, (size_t)m.row.n * (size_t)m.col.n * sizeof *m.cells);
    else
        baseline_fill(&m, list, n);
    *out = m;
    return 0;
}

// Mean of the logs of the cells that all runs know.
static double mean_log(const struct matrix *const *list, int n, int run)
{
    double sum = 0;
    int known = 0, cells = list[0]->row.n * list[0]->col.n;
    for (int c = 0; c < cells; c++) {
        bool all = true;
        for (int r = 0; r < n; r++)
            all = all && list[r]->cells[c].v[CELL_MEDIAN] > 0;
        if (all) {
            sum += log(list[run]->cells[c].v[CELL_MEDIAN]);
            known++;
        }
    }
    return known ? sum / known : NAN;
}

double baseline_noise(const struct matrix *const *list, int n)
{
    double mean = 0, squares = 0;
    if (n < 3 || n > BASELINE_RUNS_MAX)
        return NAN;
    for (int r = 0; r < n; r++)
        mean += mean_log(list, n, r) / n;
    for (int r = 0; r < n; r++) {
        double d = mean_log(list, n, r) - mean;
        squares += d * d;
    }
    if (!isfinite(squares))
        return NAN;
    double error = sqrt(squares / (n - 1) * (1 + 1.57 / n));
    return 100 * expm1(dist_t_quantile(0.975, n - 1) * error);
}

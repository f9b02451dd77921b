// SPDX-License-Identifier: Apache-2.0
// Ranks and sizes of the two matrices are matched by value, so that a concurrent run with other
// ranks can be compared. Then ratios are counted column by column.
#include "analysis/stats/contention.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats/median.h"
#include "base/cleanup.h"

enum { SIZES_MIN = 3 }; // parting at the last size or two may be chance

struct pair {
    const struct matrix *serial, *concurrent;
    int *row, *col; // of serial, for each of concurrent; -1: none; owned
};

static void pair_fini(struct pair *p)
{
    free(p->row);
    free(p->col);
}

static int *partners(const struct axis *of, const struct axis *in)
{
    int *list = calloc((size_t)of->n + 1, sizeof *list);
    for (int i = 0; list && i < of->n; i++)
        list[i] = axis_index(in, of->values[i]);
    return list;
}

static const struct cell *partner(const struct pair *p, int i, int j)
{
    return p->row[i] < 0 || p->col[j] < 0 ? NULL : matrix_at(p->serial, p->row[i], p->col[j]);
}

static double ratio_at(const struct pair *p, int i, int j)
{
    const struct cell *s = partner(p, i, j);
    return s == NULL ? NAN : matrix_at(p->concurrent, i, j)->v[CELL_MEDIAN] / s->v[CELL_MEDIAN];
}

static bool slow_at(const struct pair *p, int col)
{
    int slow = 0, n = 0;
    for (int i = 0; i < p->concurrent->row.n; i++) {
        double r = ratio_at(p, i, col);
        n += !isnan(r);
        slow += r >= CONTENTION_PART;
    }
    return n > 0 && 4 * slow >= n;
}

// Ratios in columns [from, to) that lie in [lo, hi], as a share; 1 if there are none.
static double share_within(const struct pair *p, int from, int to, double lo, double hi)
{
    int n = 0, in = 0;
    for (int j = from; j < to; j++)
        for (int i = 0; i < p->concurrent->row.n; i++) {
            double r = ratio_at(p, i, j);
            n += !isnan(r);
            in += r >= lo && r <= hi;
        }
    return n == 0 ? 1 : (double)in / n;
}

static double typical(const struct pair *p, int from, int to, double *scratch)
{
    int n = 0;
    for (int j = from; j < to; j++)
        for (int i = 0; i < p->concurrent->row.n; i++) {
            double r = ratio_at(p, i, j);
            if (!isnan(r))
                scratch[n++] = r;
        }
    return middle_of(scratch, n);
}

static void find_worst(struct contention *c, const struct pair *p, int from)
{
    for (int j = from; j < p->concurrent->col.n; j++)
        for (int i = 0; i < p->concurrent->row.n; i++) {
            double r = ratio_at(p, i, j);
            const struct cell *alone = partner(p, i, j);
            if (!alone || !(r > c->worst))
                continue;
            c->worst = r;
            c->worst_rank = p->concurrent->row.values[i];
            c->worst_bytes = p->concurrent->col.values[j];
            const double *over = matrix_at(p->concurrent, i, j)->v, *under = alone->v;
            c->worst_concurrent = over[CELL_MEDIAN];
            c->worst_serial = c->worst_concurrent / r;
            c->worst_lo = over[CELL_LO] / under[CELL_HI];
            c->worst_hi = over[CELL_HI] / under[CELL_LO];
        }
}

int contention_find(struct contention *out, const struct matrix *serial,
                    const struct matrix *concurrent, struct err *err)
{
    struct pair p CLEANUP(pair_fini) = {.serial = serial,
                                        .concurrent = concurrent,
                                        .row = partners(&concurrent->row, &serial->row),
                                        .col = partners(&concurrent->col, &serial->col)};
    int n = concurrent->col.n, from = n;
    CLEANUP_MEM double *scratch = calloc((size_t)concurrent->row.n * n + 1, sizeof *scratch);
    if (scratch == NULL || p.row == NULL || p.col == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the ratios");
    if (isnan(typical(&p, 0, n, scratch)))
        return err_set(err, ERR_CONFLICT, "matrices", "the two modes have no cell in common");
    while (from > 0 && slow_at(&p, from - 1))
        from--;
    struct contention c = {0};
    c.parts = n - from >= SIZES_MIN && share_within(&p, from, n, 0.9, INFINITY) >= 0.95 &&
              share_within(&p, 0, from, 1 / CONTENTION_PART, CONTENTION_PART) >= 0.75;
    from = c.parts ? from : n;
    c.sizes = n - from;
    c.from_bytes = c.parts ? concurrent->col.values[from] : 0;
    c.typical_before = typical(&p, 0, from, scratch);
    c.typical_after = typical(&p, from, n, scratch);
    find_worst(&c, &p, c.parts ? from : 0);
    *out = c;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A sum of samples for each line. A matrix of all pairs by all lines is kept small enough to be
// read and stored: 45 ranks with eight lines are 8,000 cells. A list of pairs is small enough.
#include "bench/benchmarks/c2c_lines.h"

#include <stdlib.h>
#include <string.h>

#include "bench/session/pairs.h"

enum { LINE_CELLS_MAX = 8192 };
_Static_assert(2 * (int)SPEC_LINES_MAX <= (int)SLOT_LINES, "cells of cas and of load");

static int all_pairs(struct c2c_lines *l, int ranks, struct err *err)
{
    l->pairs = calloc((size_t)(ranks * (ranks - 1) / 2), sizeof *l->pairs);
    if (!l->pairs)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the pairs of %d ranks", ranks);
    for (int i = 0; i < ranks; i++)
        for (int j = i + 1; j < ranks; j++) {
            l->pairs[l->n_pairs][0] = i;
            l->pairs[l->n_pairs++][1] = j;
        }
    return 0;
}

int c2c_lines_init(struct c2c_lines *l, struct session *s, int n_shapes, struct err *err)
{
    int ranks = session_ranks(s);
    bool listed = strcmp(s->spec->pairs, "all") != 0;
    bool all = !listed && !pairs_chosen(s) &&
               (int64_t)ranks * (ranks - 1) / 2 * s->spec->lines <= LINE_CELLS_MAX;
    const char *which = listed ? s->spec->pairs : "classes";
    *l = (struct c2c_lines){.s = s, .n_shapes = n_shapes};
    if (!n_shapes)
        return 0;
    if ((all ? all_pairs(l, ranks, err) : pair_list(s, which, &l->pairs, &l->n_pairs, err)) < 0)
        return -1;
    l->sums = calloc((size_t)(l->n_pairs * n_shapes) * (size_t)s->spec->lines, sizeof *l->sums);
    return l->sums ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", l->n_pairs);
}

void c2c_lines_fini(struct c2c_lines *l)
{
    for (int64_t i = 0; l->sums && i < l->n_pairs * l->n_shapes * l->s->spec->lines; i++)
        cell_sum_fini(&l->sums[i]);
    free(l->sums);
    free(l->pairs);
}

int c2c_lines_make(const struct c2c_lines *l, struct matrix *m, const struct shape *shape,
                   struct err *err)
{
    if (shape_make(m, shape, l->n_pairs, (int)l->s->spec->lines, err) < 0)
        return -1;
    for (int i = 0; i < l->n_pairs; i++)
        m->row.values[i] = axis_pair(l->pairs[i][0], l->pairs[i][1]);
    for (int i = 0; i < m->col.n; i++)
        m->col.values[i] = i + 1;
    return 0;
}

int c2c_lines_row(const struct c2c_lines *l, int first, int second)
{
    for (int i = 0; i < l->n_pairs; i++)
        if (l->pairs[i][0] == first && l->pairs[i][1] == second)
            return i;
    return -1;
}

static struct cell_sum *sums_of(const struct c2c_lines *l, int row, int shape)
{
    return &l->sums[(row * l->n_shapes + shape) * l->s->spec->lines];
}

int c2c_lines_add(struct c2c_lines *l, int row, int shape, int line, const struct sample *x,
                  struct err *err)
{
    return cell_sum_add(&sums_of(l, row, shape)[line], x, err);
}

void c2c_lines_next_visit(struct c2c_lines *l, int row, int shape)
{
    for (int64_t i = 0; i < l->s->spec->lines; i++)
        cell_sum_next_visit(&sums_of(l, row, shape)[i]);
}

static int by_median(const void *a, const void *b)
{
    double x = ((const struct cell *)a)->v[CELL_MEDIAN],
           y = ((const struct cell *)b)->v[CELL_MEDIAN];
    return (x > y) - (x < y);
}

int c2c_lines_sum_up(struct c2c_lines *l, int row, int shape, struct err *err)
{
    int64_t lines = l->s->spec->lines;
    struct cell *cells = &l->s->slot->lines[shape * lines];
    for (int64_t i = 0; i < lines; i++) {
        struct cell_sum *sum = &sums_of(l, row, shape)[i];
        struct evidence evidence;
        if (cell_sum_up(sum, l->s->spec, &cells[i], &evidence, err) < 0)
            return -1;
        cell_sum_fini(sum);
    }
    qsort(cells, (size_t)lines, sizeof *cells, by_median);
    return 0;
}

int c2c_lines_report(const struct c2c_lines *l, int row, int shape, const char *matrix,
                     struct err *err)
{
    int64_t lines = l->s->spec->lines;
    const struct cell *cells = &l->s->board->slot[l->pairs[row][0]].lines[shape * lines];
    for (int64_t i = 0; i < lines; i++)
        if (session_report_cell(l->s, matrix, row, (int)i, &cells[i], err) < 0)
            return -1;
    return 0;
}

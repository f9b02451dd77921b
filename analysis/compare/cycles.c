// SPDX-License-Identifier: Apache-2.0
// A time is multiplied by the clock of the rank that measured it: n ns at 3 GHz are 3n cycles.
// Counts and shares stay.
#include "analysis/compare/cycles.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Of ns; 0: no time.
static double cycles_unit(const char *unit)
{
    return strcmp(unit, "ns") == 0 ? 1 : strcmp(unit, "us") == 0 ? 1000 : 0;
}

// NaN: the row is no rank's, or its clock is not known.
static double clock_of_row(const struct matrix *m, int row, const struct rank_info *ranks, int n)
{
    int64_t rank = m->row.values[row];
    int first, second;
    if (strcmp(m->row.name, "pair") == 0) {
        axis_unpair(rank, &first, &second);
        rank = first;
    } else if (strcmp(m->row.name, "rank") != 0) {
        return NAN;
    }
    for (int i = 0; ranks && i < n; i++)
        if (ranks[i].rank == rank && ranks[i].clock_ghz > 0)
            return ranks[i].clock_ghz;
    return NAN;
}

int matrix_to_cycles(struct matrix *m, const struct rank_info *ranks, int n, struct err *err)
{
    double unit = cycles_unit(m->unit);
    if (!(unit > 0))
        return err_set(err, ERR_CONFLICT, "cycles", "the values of matrix %s are no times (%s)",
                       m->name, m->unit);
    for (int r = 0; r < m->row.n; r++)
        if (isnan(clock_of_row(m, r, ranks, n)))
            return err_set(err, ERR_CONFLICT, "cycles",
                           "the clock of %s %lld of matrix %s is not known", m->row.name,
                           (long long)m->row.values[r], m->name);
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++)
            for (int f = 0; f < CELL_FIELDS; f++)
                if (cell_fields[f].kind == CELL_IS_VALUE)
                    matrix_at(m, r, c)->v[f] *= unit * clock_of_row(m, r, ranks, n);
    snprintf(m->unit, sizeof m->unit, "cycles");
    return 0;
}

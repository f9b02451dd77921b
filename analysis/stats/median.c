// SPDX-License-Identifier: Apache-2.0
// Small searches that comparison, metrics and reports have in common.
#include "analysis/stats/median.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double middle_of(double *v, int n)
{
    if (n == 0)
        return NAN;
    qsort(v, n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

int axis_index(const struct axis *a, int64_t value)
{
    for (int i = 0; i < a->n; i++)
        if (a->values[i] == value)
            return i;
    return -1;
}

int64_t node_of_rank(const struct rank_info *ranks, int n, int64_t rank)
{
    for (int i = 0; ranks && i < n; i++)
        if (ranks[i].rank == rank)
            return ranks[i].mem_node >= 0 ? ranks[i].mem_node : ranks[i].cpu_node;
    return -1;
}

double samples_disturbed(const struct matrix *list, int n)
{
    double kept = 0, disturbed = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < list[i].row.n * list[i].col.n; k++) {
            const double *v = list[i].cells[k].v;
            if (isnan(v[CELL_N]) || isnan(v[CELL_DISTURBED]))
                continue;
            kept += v[CELL_N];
            disturbed += v[CELL_DISTURBED];
        }
    return kept + disturbed > 0 ? disturbed / (kept + disturbed) : NAN;
}

double ranks_off_cpu(const struct rank_info *ranks, int n)
{
    double most = NAN;
    for (int i = 0; ranks && i < n; i++)
        most = fmax(most, ranks[i].off_cpu_share); // NaN leaves it
    return most;
}

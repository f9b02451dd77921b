// SPDX-License-Identifier: Apache-2.0
#include "analysis/middle.h"

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

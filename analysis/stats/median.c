// SPDX-License-Identifier: Apache-2.0
// Small searches that comparison, metrics and reports have in common.
#include "analysis/stats/median.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

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

double middle_if_known(double *v, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(v[i]))
            return NAN;
    return middle_of(v, n);
}

static void swap_values(double *a, double *b)
{
    double was = *a;
    *a = *b;
    *b = was;
}

static void insertion_sort(double *v, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && v[k - 1] > v[k]; k--)
            swap_values(&v[k - 1], &v[k]);
}

// Hoare's selection: afterwards v[at] is where it is in order, with none above it before it. The
// pivot is the median of three, so ascending values are no bad case.
static void select_value(double *v, int n, int at)
{
    int from = 0, to = n - 1;
    while (to - from > 16) {
        int middle = from + (to - from) / 2;
        double three[] = {v[from], v[middle], v[to]};
        insertion_sort(three, 3);
        int i = from, j = to;
        while (i <= j) {
            while (v[i] < three[1])
                i++;
            while (v[j] > three[1])
                j--;
            if (i <= j)
                swap_values(&v[i++], &v[j--]);
        }
        if (at <= j)
            to = j;
        else if (at >= i)
            from = i;
        else
            return;
    }
    insertion_sort(v + from, to - from + 1);
}

double middle_select(double *v, int n)
{
    if (n == 0)
        return NAN;
    select_value(v, n, n / 2);
    double below = v[n / 2];
    if (n % 2 == 0)
        below = v[0];
    for (int i = 1; n % 2 == 0 && i < n / 2; i++)
        below = v[i] > below ? v[i] : below;
    return (below + v[n / 2]) / 2;
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
            const struct cell *c = &list[i].cells[k];
            if (isnan(c->v[CELL_N]) || isnan(c->v[CELL_DISTURBED]))
                continue;
            kept += cell_kept(c);
            disturbed += c->v[CELL_DISTURBED];
        }
    return kept + disturbed > 0 ? disturbed / (kept + disturbed) : NAN;
}

bool cell_disturbed(const struct cell *c)
{
    double kept = cell_kept(c), left_out = c->v[CELL_DISTURBED];
    return left_out > 0 && (kept <= 1 || left_out >= SAMPLES_DOUBTFUL * (kept + left_out));
}

double ranks_off_cpu(const struct rank_info *ranks, int n)
{
    double most = NAN;
    for (int i = 0; ranks && i < n; i++)
        most = fmax(most, ranks[i].off_cpu_share); // NaN leaves it
    return most;
}

double ranks_clock(const struct rank_info *ranks, int n)
{
    CLEANUP_MEM double *known = ranks && n > 0 ? malloc((size_t)n * sizeof *known) : NULL;
    int k = 0;
    for (int i = 0; known && i < n; i++)
        if (ranks[i].clock_ghz > 0)
            known[k++] = ranks[i].clock_ghz;
    return known ? middle_of(known, k) : NAN;
}

double ranks_least_clock(const struct rank_info *ranks, int n)
{
    double least = NAN;
    for (int i = 0; ranks && i < n; i++)
        if (ranks[i].clock_ghz > 0)
            least = fmin(least, ranks[i].clock_ghz); // NaN leaves it
    return least;
}

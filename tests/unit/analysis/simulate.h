// SPDX-License-Identifier: Apache-2.0
// Simulated measurements with a seed that is printed, so that a failure can be repeated.
#pragma once
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/distributions.h"
#include "analysis/stats/stats.h"
#include "model/matrix.h"

__attribute__((unused)) static double sim_normal(unsigned long long *seed)
{
    double u = (double)((dist_next(seed) >> 11) + 1) / 9007199254740993.0;
    double v = (double)(dist_next(seed) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

static int sim_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// 95 % order statistics, sqrt(2) wider, as the bench stores them.
__attribute__((unused)) static void sim_cell(struct cell *c, double *v, int n)
{
    double sum = 0, dev = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    for (int i = 0; i < n; i++)
        dev += (v[i] - sum / n) * (v[i] - sum / n);
    qsort(v, n, sizeof *v, sim_order);
    double median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    int low = (int)floor(n / 2.0 - 0.98 * sqrt(n));
    low = low < 0 ? 0 : low;
    c->v[CELL_N] = n;
    c->v[CELL_MEDIAN] = median;
    c->v[CELL_LO] = median - sqrt(2) * (median - v[low]);
    c->v[CELL_HI] = median + sqrt(2) * (v[n - 1 - low] - median);
    c->v[CELL_SD] = sqrt(dev / (n - 1));
}

// Latency-like matrix: rank i at size j around 10 × 1.2^j ns, `spread` relative, times `shift`.
__attribute__((unused)) static int sim_matrix(struct matrix *m, int rows, int cols, double spread,
                                              double shift, unsigned long long *seed)
{
    double v[64];
    if (matrix_init(m, "concurrent", "latency", "ns", rows, cols, NULL) < 0)
        return -1;
    strcpy(m->row.name, "rank");
    strcpy(m->col.name, "working_set");
    for (int j = 0; j < cols; j++)
        m->col.values[j] = (int64_t)1 << (20 + j);
    for (int i = 0; i < rows; i++)
        m->row.values[i] = i;
    for (int k = 0; k < rows * cols; k++) {
        int n = 7 + dist_below(seed, 9);
        for (int s = 0; s < n; s++)
            v[s] = 10 * pow(1.2, k % cols) * shift * (1 + spread * sim_normal(seed));
        sim_cell(&m->cells[k], v, n);
    }
    return 0;
}

// As numa_bench measures by default, with fewer samples: eight visits, each `drift` elsewhere, the
// cell's summary by the bench's own function.
enum { SIM_VISITS = 8, SIM_EACH = 5 };
__attribute__((unused)) static int sim_visits(struct cell *c, double level, double spread,
                                              double drift, unsigned long long *seed)
{
    double v[SIM_VISITS * SIM_EACH];
    int visit[SIM_VISITS * SIM_EACH];
    for (int i = 0, k = 0; i < SIM_VISITS; i++) {
        double here = level * (1 + drift * sim_normal(seed));
        for (int n = 0; n < SIM_EACH; n++, k++) {
            v[k] = here * (1 + spread * sim_normal(seed));
            visit[k] = i;
        }
    }
    cell_clear(c);
    return stats_cell(c, v, visit, SIM_VISITS * SIM_EACH, NULL);
}

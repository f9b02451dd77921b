// SPDX-License-Identifier: Apache-2.0
// Two searches over one table: inversions among the slow ranks, then single cells that are far
// from all others of their size. Ranks that are reported as slow anyway are left out of the
// second.
#include "analysis/report/outliers.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "model/shape.h"

// Where the other ranks do not agree among themselves, none of them is odd.
static const double agreement = 0.03;

static void outliers_add(struct anomalies *a, struct anomaly one)
{
    int at = a->n < ANOMALIES_MAX ? a->n++ : ANOMALIES_MAX - 1;
    while (at > 0 && fabs(a->list[at - 1].percent) < fabs(one.percent)) {
        a->list[at] = a->list[at - 1];
        at--;
    }
    a->list[at] = one;
}

static void find_inversions(struct anomalies *out, const struct matrix *m, const struct groups *g)
{
    int first = axis_index(&m->col, g->from_bytes);
    for (int k = 0; k < g->n; k++)
        for (int j = first < 0 ? m->col.n : first; j < m->col.n; j++) {
            const struct slow_rank *s = &g->slow[k];
            double slow = matrix_at(m, s->row, j)->v[CELL_MEDIAN];
            double fast = matrix_at(m, s->fast_row, j)->v[CELL_MEDIAN];
            if (!(fast >= slow * (1 + ANOMALY_SIZE)))
                continue;
            outliers_add(out, (struct anomaly){.kind = ANOMALY_INVERSION,
                                               .rank = s->rank,
                                               .other_rank = s->fast_rank,
                                               .bytes = m->col.values[j],
                                               .value = slow,
                                               .other = fast,
                                               .percent = 100 * (slow / fast - 1)});
        }
}

// Rows that are slow ranks or what these are measured against.
static void mark_pairs(bool *paired, const struct groups *g)
{
    for (int k = 0; k < g->n; k++)
        paired[g->slow[k].row] = paired[g->slow[k].fast_row] = true;
}

static void find_outliers(struct anomalies *out, const struct matrix *m, const bool *paired,
                          int col, double *scratch)
{
    int n = m->row.n;
    for (int i = 0; i < n; i++)
        scratch[i] = matrix_at(m, i, col)->v[CELL_MEDIAN];
    double middle = middle_of(scratch, n);
    for (int i = 0; i < n; i++)
        scratch[i] = fabs(log(matrix_at(m, i, col)->v[CELL_MEDIAN] / middle));
    double sigma = 1.4826 * middle_of(scratch, n);
    if (!(sigma <= agreement))
        return;
    double bound = fmax(log1p(ANOMALY_SIZE), 6 * sigma);
    for (int i = 0; i < n; i++) {
        double v = matrix_at(m, i, col)->v[CELL_MEDIAN];
        if (!paired[i] && fabs(log(v / middle)) > bound)
            outliers_add(out, (struct anomaly){.kind = ANOMALY_OUTLIER,
                                               .rank = m->row.values[i],
                                               .other_rank = -1,
                                               .bytes = m->col.values[col],
                                               .value = v,
                                               .other = middle,
                                               .percent = 100 * (v / middle - 1)});
    }
}

int anomaly_find(struct anomalies *out, const struct matrix *m, const struct groups *groups,
                 struct err *err)
{
    CLEANUP_MEM double *scratch = calloc(m->row.n + 1, sizeof *scratch);
    CLEANUP_MEM bool *paired = calloc((size_t)m->row.n + 1, sizeof *paired);
    if (scratch == NULL || paired == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the anomalies");
    *out = (struct anomalies){0};
    find_inversions(out, m, groups);
    mark_pairs(paired, groups);
    bool judged = m->row.n >= 4 && shape_complete(m);
    for (int j = 0; judged && j < m->col.n; j++)
        find_outliers(out, m, paired, j, scratch);
    return 0;
}

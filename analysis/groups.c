// SPDX-License-Identifier: Apache-2.0
#include "analysis/groups.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/dist.h"
#include "analysis/middle.h"
#include "analysis/places.h"
#include "base/cleanup.h"

static const double level = 0.005;
enum {
    SHUFFLES_MAX = 1999,
    SHUFFLES_PART = 200, // 1 / level: n times as many, less one, resolve it exactly
    SEED = 20260101
};
static const double alike = 0.10; // nodes are alike if surely closer than this

// Logs of the values at the sizes that count, rows in order of node.
struct table {
    int rows, cols, n_nodes;
    int stride;    // the test takes the first size of each so many
    double *log;   // rows × cols; owned
    double *work;  // as log, and room for a mean a row; owned
    int *row;      // of the matrix; owned
    int64_t *node; // of the row; owned
    int first[GROUPS_NODES_MAX + 1];
};

static void table_fini(struct table *t)
{
    free(t->log);
    free(t->work);
    free(t->row);
    free(t->node);
}

static int table_init(struct table *t, const struct matrix *m, int cols, struct err *err)
{
    t->log = calloc((size_t)m->row.n * cols + 1, sizeof *t->log);
    t->work = calloc((size_t)m->row.n * (cols + 1) + cols + 1, sizeof *t->work);
    t->row = calloc(m->row.n + 1, sizeof *t->row);
    t->node = calloc(m->row.n + 1, sizeof *t->node);
    if (t->log == NULL || t->work == NULL || t->row == NULL || t->node == NULL)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the groups");
    t->cols = cols;
    t->stride = 1;
    return 0;
}

static bool row_usable(const struct matrix *m, int row, int first_col)
{
    for (int j = first_col; j < m->col.n; j++)
        if (!(matrix_at(m, row, j)->v[CELL_MEDIAN] > 0))
            return false;
    return true;
}

static void take_node(struct table *t, const struct matrix *m, const struct places *places,
                      int first_col, int64_t node)
{
    for (int i = 0; i < m->row.n; i++) {
        if (places_node(places, m->row.values[i]) != node || !row_usable(m, i, first_col))
            continue;
        for (int j = 0; j < t->cols; j++)
            t->log[t->rows * t->cols + j] = log(matrix_at(m, i, first_col + j)->v[CELL_MEDIAN]);
        t->row[t->rows] = i;
        t->node[t->rows++] = node;
    }
    if (t->rows > t->first[t->n_nodes])
        t->first[++t->n_nodes] = t->rows;
}

static void table_fill(struct table *t, const struct matrix *m, const struct places *places,
                       int first_col)
{
    for (int i = 0; i < m->row.n && t->n_nodes < GROUPS_NODES_MAX; i++) {
        int64_t node = places_node(places, m->row.values[i]);
        bool seen = node < 0;
        for (int k = 0; k < t->rows; k++)
            seen = seen || t->node[k] == node;
        if (!seen)
            take_node(t, m, places, first_col, node);
    }
}

static void centre(struct table *t)
{
    for (int g = 0; g < t->n_nodes; g++)
        for (int j = 0; j < t->cols; j++) {
            double sum = 0;
            int lo = t->first[g], hi = t->first[g + 1];
            for (int i = lo; i < hi; i++)
                sum += t->log[i * t->cols + j];
            for (int i = lo; i < hi; i++)
                t->work[i * t->cols + j] = t->log[i * t->cols + j] - sum / (hi - lo);
        }
}

// How much rows differ: sum over rows of their squared sums.
static double statistic(const struct table *t)
{
    double all = 0;
    for (int i = 0; i < t->rows; i++) {
        double sum = 0;
        for (int j = 0; j < t->cols; j += t->stride)
            sum += t->work[i * t->cols + j];
        all += sum * sum;
    }
    return all;
}

static void shuffle(struct table *t, unsigned long long *seed)
{
    for (int g = 0; g < t->n_nodes; g++)
        for (int j = 0; j < t->cols; j += t->stride)
            for (int i = t->first[g + 1] - 1; i > t->first[g]; i--) {
                int k = t->first[g] + dist_below(seed, i - t->first[g] + 1);
                double *a = &t->work[i * t->cols + j], *b = &t->work[k * t->cols + j], v = *a;
                *a = *b;
                *b = v;
            }
}

// Cells that a shuffle moves.
static int64_t cells_of(const struct table *t)
{
    return (int64_t)t->rows * ((t->cols + t->stride - 1) / t->stride);
}

// As many as the budget has room for; where it has none for the fewest that reach the level, the
// test sees fewer sizes.
static int shuffles_of(struct table *t)
{
    while (t->stride < t->cols && cells_of(t) * (SHUFFLES_PART - 1) > GROUPS_STEPS_MAX)
        t->stride++;
    int64_t n = (GROUPS_STEPS_MAX / cells_of(t) + 1) / SHUFFLES_PART * SHUFFLES_PART - 1;
    n = n < SHUFFLES_PART ? SHUFFLES_PART - 1 : n;
    return n < SHUFFLES_MAX ? (int)n : SHUFFLES_MAX;
}

// Ends when p can no longer reach the level; it is what was seen until then.
static void find_p(struct groups *out, struct table *t)
{
    unsigned long long seed = SEED;
    int n = shuffles_of(t), above = 1, made = 0;
    centre(t);
    double real = statistic(t) * (1 - 1e-12);
    for (; made < n && (double)above / (n + 1) <= level; made++) {
        shuffle(t, &seed);
        above += statistic(t) >= real;
    }
    out->p = (double)above / (made + 1);
    out->steps = cells_of(t) * made;
}

static double typical_ratio(struct table *t, int row, int other)
{
    double *scratch = t->work;
    for (int j = 0; j < t->cols; j++)
        scratch[j] = t->log[row * t->cols + j] - t->log[other * t->cols + j];
    return exp(middle_of(scratch, t->cols));
}

static int fastest(struct table *t, int g)
{
    int best = t->first[g];
    for (int i = best + 1; i < t->first[g + 1]; i++)
        if (typical_ratio(t, i, best) < 1)
            best = i;
    return best;
}

static void judge_row(struct groups *out, struct table *t, const struct matrix *m, int first_col,
                      int row, int fast)
{
    struct slow_rank s = {.node = t->node[row], .row = t->row[row], .fast_row = t->row[fast]};
    s.typical = typical_ratio(t, row, fast);
    int slower = 0;
    for (int j = 0; j < t->cols; j++) {
        double r = exp(t->log[row * t->cols + j] - t->log[fast * t->cols + j]);
        slower += r > 1;
        if (r > s.worst) {
            s.worst = r;
            s.worst_bytes = m->col.values[first_col + j];
        }
    }
    if (s.typical < GROUPS_SLOW || 4 * slower < 3 * t->cols || out->n == GROUPS_RANKS_MAX)
        return;
    s.rank = m->row.values[s.row];
    s.fast_rank = m->row.values[s.fast_row];
    out->slow[out->n++] = s;
}

// Typical spread inside a node: standard deviation of the centred logs.
static double within(struct table *t)
{
    double sum = 0;
    centre(t);
    for (int k = 0; k < t->rows * t->cols; k++)
        sum += t->work[k] * t->work[k];
    int free_values = (t->rows - t->n_nodes) * t->cols;
    return free_values > 0 ? 100 * expm1(sqrt(sum / free_values)) : NAN;
}

// Mean log of node g at size j minus the mean of all nodes' means there.
static double node_effect(const struct table *t, int g, int j)
{
    double all = 0, own = 0;
    for (int k = 0; k < t->n_nodes; k++) {
        double sum = 0;
        for (int i = t->first[k]; i < t->first[k + 1]; i++)
            sum += t->log[i * t->cols + j];
        sum /= t->first[k + 1] - t->first[k];
        all += sum / t->n_nodes;
        own = k == g ? sum : own;
    }
    return own - all;
}

// Alike: every node's effect surely below 10 %. Differ: one is surely not zero and above 3 %.
static void judge_nodes(struct groups *out, const struct table *t)
{
    bool all_close = true, one_off = false;
    double worst = -1;
    for (int g = 0; g < t->n_nodes; g++) {
        double sum = 0, squares = 0;
        for (int j = 0; j < t->cols; j++) {
            double e = node_effect(t, g, j);
            sum += e;
            squares += e * e;
        }
        double mean = sum / t->cols;
        double var = fmax(0, squares - sum * mean) / (t->cols - 1) / t->cols;
        double reach = dist_t_quantile(1 - 0.005 / t->n_nodes, t->cols - 1) * sqrt(var);
        all_close = all_close && fabs(mean) + reach < alike;
        one_off = one_off || (fabs(mean) > reach && fabs(mean) > 0.03);
        if (fabs(mean) > worst) {
            worst = fabs(mean);
            out->node_worst = t->node[t->first[g]];
            out->node_spread_percent = 100 * expm1(mean);
        }
    }
    out->nodes = one_off ? NODES_DIFFER : all_close ? NODES_ALIKE : NODES_UNKNOWN;
}

int groups_find(struct groups *out, const struct matrix *m, const struct rank_info *ranks,
                int n_ranks, int first_col, struct err *err)
{
    CLEANUP(table_fini) struct table t = {0};
    struct places places CLEANUP(places_fini) = {0};
    int cols = m->col.n - first_col;
    if (table_init(&t, m, cols, err) < 0 || places_init(&places, ranks, n_ranks, NULL, err) < 0)
        return -1;
    *out = (struct groups){.p = NAN, .from_bytes = cols > 0 ? m->col.values[first_col] : 0};
    table_fill(&t, m, &places, first_col);
    out->n_nodes = t.n_nodes;
    if (cols < 3 || t.rows == 0)
        return 0;
    if (t.n_nodes > 1)
        judge_nodes(out, &t);
    if (t.rows == t.n_nodes)
        return 0;
    out->known = true;
    out->within_percent = within(&t);
    find_p(out, &t);
    for (int g = 0; out->p <= level && g < t.n_nodes; g++) {
        int fast = fastest(&t, g);
        for (int i = t.first[g]; i < t.first[g + 1]; i++)
            if (i != fast)
                judge_row(out, &t, m, first_col, i, fast);
    }
    return 0;
}

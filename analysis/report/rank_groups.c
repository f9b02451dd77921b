// SPDX-License-Identifier: Apache-2.0
// Values become logs around the mean of their node and size. A permutation test over all ranks
// comes first; only where it finds a difference are single ranks judged.
#include "analysis/report/rank_groups.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats/distributions.h"
#include "analysis/stats/median.h"
#include "analysis/stats/rank_places.h"
#include "base/cleanup.h"

static const double level = 0.005;
enum {
    SHUFFLES_MAX = 1999,
    SHUFFLES_PART = 200, // 1 / level: n times as many, less one, resolve it exactly
    SEED = 20260101
};
static const double alike = 0.10; // nodes are alike if significantly closer than this

// Logs of the values at the sizes that count, rows in order of node. Cores of different kinds on
// one node are groups of their own: that they differ is no finding.
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
                      int first_col, int64_t node, int kind)
{
    for (int i = 0; i < m->row.n; i++) {
        if (places_node(places, m->row.values[i]) != node ||
            places_kind(places, m->row.values[i]) != kind || !row_usable(m, i, first_col))
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
        int kind = places_kind(places, m->row.values[i]);
        bool seen = node < 0;
        for (int k = 0; k < t->rows; k++)
            seen = seen ||
                   (t->node[k] == node && places_kind(places, m->row.values[t->row[k]]) == kind);
        if (!seen)
            take_node(t, m, places, first_col, node, kind);
    }
}

// Groups on one node follow each other nowhere in particular.
static int rank_groups_nodes(const struct table *t)
{
    int n = 0;
    for (int g = 0; g < t->n_nodes; g++) {
        bool seen = false;
        for (int k = 0; k < g; k++)
            seen |= t->node[t->first[k]] == t->node[t->first[g]];
        n += !seen;
    }
    return n;
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

static void rank_groups_shuffle(struct table *t, unsigned long long *seed)
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
static int64_t rank_groups_cells_of(const struct table *t)
{
    return (int64_t)t->rows * ((t->cols + t->stride - 1) / t->stride);
}

// As many as the budget has room for; where it has none for the fewest that reach the level, the
// test sees fewer sizes.
static int shuffles_of(struct table *t)
{
    while (t->stride < t->cols && rank_groups_cells_of(t) * (SHUFFLES_PART - 1) > GROUPS_STEPS_MAX)
        t->stride++;
    int64_t n =
        (GROUPS_STEPS_MAX / rank_groups_cells_of(t) + 1) / SHUFFLES_PART * SHUFFLES_PART - 1;
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
        rank_groups_shuffle(t, &seed);
        above += statistic(t) >= real;
    }
    out->p = (double)above / (made + 1);
    out->steps = rank_groups_cells_of(t) * made;
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

// Alike: every node's effect significantly below 10 %. Differ: one is significantly not zero and
// above 3 %.
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

// Few sizes are no repetitions of one another, but ranks are: nodes against the spread of their
// ranks, each by its mean over the sizes.
static void judge_nodes_by_ranks(struct groups *out, const struct table *t)
{
    double mean[GROUPS_NODES_MAX], all = 0, squares = 0, inverse = 0, worst = -1;
    int freedom = t->rows - t->n_nodes;
    for (int g = 0; g < t->n_nodes; g++) {
        int n = t->first[g + 1] - t->first[g];
        mean[g] = 0;
        for (int k = t->first[g] * t->cols; k < t->first[g + 1] * t->cols; k++)
            mean[g] += t->log[k] / (n * t->cols);
        for (int i = t->first[g]; i < t->first[g + 1]; i++) {
            double own = 0;
            for (int j = 0; j < t->cols; j++)
                own += t->log[i * t->cols + j] / t->cols;
            squares += (own - mean[g]) * (own - mean[g]);
        }
        all += mean[g] / t->n_nodes;
        inverse += 1.0 / n;
    }
    double quantile = dist_t_quantile(1 - 0.005 / t->n_nodes, freedom);
    bool all_close = true, one_off = false;
    for (int g = 0; g < t->n_nodes; g++) {
        double n = t->first[g + 1] - t->first[g], nodes = t->n_nodes, off = mean[g] - all;
        double share = (1 - 2 / nodes) / n + inverse / nodes / nodes;
        double reach = quantile * sqrt(squares / freedom * share);
        all_close = all_close && fabs(off) + reach < alike;
        one_off = one_off || (fabs(off) > reach && fabs(off) > 0.03);
        if (fabs(off) > worst) {
            worst = fabs(off);
            out->node_worst = t->node[t->first[g]];
            out->node_spread_percent = 100 * expm1(off);
        }
    }
    out->nodes = one_off ? NODES_DIFFER : all_close ? NODES_ALIKE : NODES_UNKNOWN;
}

// ---- What slow ranks have in common -------------------------------------------------------------

// A rank among those of its node, in order of number.
struct seat {
    int from_first, from_last, l3;
    int64_t node, socket;
    bool slow;
};

static bool said_slow(const struct seat *s, enum slow_common what, int64_t k)
{
    switch (what) {
    case COMMON_NOT_LAST:
        return s->from_last >= k;
    case COMMON_NOT_FIRST:
        return s->from_first >= k;
    case COMMON_LAST:
        return s->from_last < k;
    case COMMON_FIRST:
        return s->from_first < k;
    case COMMON_ODD:
        return s->from_first % 2 == 1;
    case COMMON_EVEN:
        return s->from_first % 2 == 0;
    case COMMON_L3:
        return s->l3 == k;
    case COMMON_SOCKET:
        return s->socket == k;
    case COMMON_NODE:
        return s->node == k;
    default:
        return false;
    }
}

static void try_common(struct groups *out, const struct seat *seats, int n, enum slow_common what,
                       int64_t k)
{
    int right = 0;
    for (int i = 0; i < n; i++)
        right += said_slow(&seats[i], what, k) == seats[i].slow;
    if (right <= out->common.right)
        return;
    out->common.right = right;
    out->common.what = what;
    out->common.k = k;
}

static int rank_groups_by_rank(const void *a, const void *b, void *m)
{
    const struct axis *rows = m;
    int64_t x = rows->values[*(const int *)a], y = rows->values[*(const int *)b];
    return (x > y) - (x < y);
}

static bool is_slow(const struct groups *g, int row)
{
    for (int i = 0; i < g->n; i++)
        if (g->slow[i].row == row)
            return true;
    return false;
}

// The distinct last-level caches of a node's ranks, in order of rank.
static int l3_in_node(const struct places *places, const struct matrix *m, const int *order, int i)
{
    const struct topo_cpu *own = places_cpu(places, m->row.values[order[i]]);
    int before = 0, last = -1;
    for (int k = 0; own && k <= i; k++) {
        const struct topo_cpu *cpu = places_cpu(places, m->row.values[order[k]]);
        if (!cpu || cpu->l3 < 0 || cpu->l3 == last)
            continue;
        if (cpu->l3 == own->l3)
            return before;
        last = cpu->l3;
        before++;
    }
    return -1;
}

// Sorts the table's rows: it is of no other use any more.
static int take_seats(struct seat *seats, const struct groups *g, const struct table *t,
                      const struct matrix *m, const struct places *places)
{
    struct axis rows = m->row;
    int n = 0;
    for (int node = 0; node < t->n_nodes; node++) {
        int size = t->first[node + 1] - t->first[node], *order = t->row + t->first[node];
        if (size < 2)
            continue;
        qsort_r(order, (size_t)size, sizeof *order, rank_groups_by_rank, &rows);
        for (int i = 0; i < size; i++) {
            const struct topo_cpu *cpu = places_cpu(places, m->row.values[order[i]]);
            seats[n++] = (struct seat){.from_first = i,
                                       .from_last = size - 1 - i,
                                       .l3 = l3_in_node(places, m, order, i),
                                       .node = t->node[t->first[node]],
                                       .socket = cpu ? cpu->package : -1,
                                       .slow = is_slow(g, order[i])};
        }
    }
    return n;
}

static void try_values(struct groups *out, const struct seat *seats, int n)
{
    for (int i = 0; i < n; i++) {
        bool node = true, socket = seats[i].socket >= 0, l3 = seats[i].l3 >= 0;
        for (int k = 0; k < i; k++) {
            node = node && seats[k].node != seats[i].node;
            socket = socket && seats[k].socket != seats[i].socket;
            l3 = l3 && seats[k].l3 != seats[i].l3;
        }
        if (node)
            try_common(out, seats, n, COMMON_NODE, seats[i].node);
        if (socket)
            try_common(out, seats, n, COMMON_SOCKET, seats[i].socket);
        if (l3)
            try_common(out, seats, n, COMMON_L3, seats[i].l3);
    }
}

// Named if it is right of nine of ten ranks, and leaves half as many errors as saying nothing does.
static int find_common(struct groups *out, const struct table *t, const struct matrix *m,
                       const struct places *places, struct err *err)
{
    CLEANUP_MEM struct seat *seats = calloc((size_t)t->rows + 1, sizeof *seats);
    if (!seats)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the groups");
    int n = take_seats(seats, out, t, m, places), fewer = out->n < n - out->n ? out->n : n - out->n;
    out->common.ranks = n;
    for (int k = 1; k <= 8; k++)
        for (enum slow_common what = COMMON_NOT_LAST; what <= COMMON_FIRST; what++)
            try_common(out, seats, n, what, k);
    try_common(out, seats, n, COMMON_ODD, 0);
    try_common(out, seats, n, COMMON_EVEN, 0);
    try_values(out, seats, n);
    int wrong = n - out->common.right;
    if (10 * wrong > n || 2 * wrong > fewer)
        out->common.what = COMMON_NONE;
    return 0;
}

int groups_find(struct groups *out, const struct matrix *m, const struct rank_info *ranks,
                int n_ranks, const struct topology *topology, int first_col, struct err *err)
{
    CLEANUP(table_fini) struct table t = {0};
    struct places places CLEANUP(places_fini) = {0};
    int cols = m->col.n - first_col;
    if (table_init(&t, m, cols, err) < 0 || places_init(&places, ranks, n_ranks, topology, err) < 0)
        return -1;
    *out = (struct groups){.p = NAN,
                           .from_bytes = cols > 0 ? m->col.values[first_col] : 0,
                           .n_sizes = cols,
                           .node_spread_percent = NAN,
                           .node_worst = -1,
                           .within_percent = NAN};
    table_fill(&t, m, &places, first_col);
    out->n_nodes = rank_groups_nodes(&t);
    bool two_in_a_node = t.rows > t.n_nodes, kinds;
    places_strongest(&places, &m->row, &kinds);
    if (t.rows == 0)
        return 0;
    if (two_in_a_node)
        out->within_percent = within(&t);
    if (t.n_nodes > 1 && cols >= 3 && !kinds)
        judge_nodes(out, &t);
    else if (t.n_nodes > 1 && two_in_a_node && !kinds)
        judge_nodes_by_ranks(out, &t);
    if (cols < 3 || !two_in_a_node)
        return 0;
    out->known = true;
    find_p(out, &t);
    for (int g = 0; out->p <= level && g < t.n_nodes; g++) {
        int fast = fastest(&t, g);
        for (int i = t.first[g]; i < t.first[g + 1]; i++)
            if (i != fast)
                judge_row(out, &t, m, first_col, i, fast);
    }
    return out->n ? find_common(out, &t, m, &places, err) : 0;
}

// SPDX-License-Identifier: Apache-2.0
// The same rule as against peers, on changes instead of levels. Hidden kinds do not matter: a node
// is compared with itself.
#include "analysis/peers/past.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats/change_points.h"
#include "analysis/stats/distributions.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"

enum { SEGMENT_MIN = 3 }; // runs on either side of a change: that there is one is known already
#define CHANGE_LEVEL 0.01

const struct peers_options past_options = {.least = PAST_LEAST,
                                           .typical = 0.6,
                                           .suspect = 0.05,
                                           .sure = 0.001,
                                           .mirror = 0.2,
                                           .sure_runs = NEWEST_RUNS,
                                           .sure_days = 2,
                                           .kinds = false};

// p of one metric's change, by the scatter of the node's own runs before it; NaN: not known.
static double own_p(const struct newest_column *c, int node, double change, double grain)
{
    const double *x = c->x + (size_t)node * c->in->runs;
    double before[BEFORE_RUNS];
    int n = 0, seen = 0;
    for (int r = 0; r < c->in->runs && n < BEFORE_RUNS; r++)
        if (!isnan(x[r]) && seen++ >= NEWEST_RUNS)
            before[n++] = x[r];
    if (n < BEFORE_MIN || isnan(change))
        return NAN;
    double middle = middle_select(before, n);
    for (int i = 0; i < n; i++)
        before[i] = fabs(before[i] - middle);
    double scale = fmax(1.4826 * middle_select(before, n) * (1 + 0.9 / n), KIND_SCALE_MIN);
    // The median of few levels is on one of them: it is no better for more runs.
    double error = fmax(scale * hypot(newest_error(NEWEST_RUNS), newest_error(n)), grain);
    return dist_t_upper(change / error, spread_freedom(n));
}

// p and the worst metric of the nodes of a small class.
static int judge_alone(struct peers_class *c, const struct peers_input *in,
                       const struct newest *newest, struct err *err)
{
    struct newest_column column;
    if (newest_column_init(&column, in, err) < 0)
        return -1;
    CLEANUP_MEM double *sum = calloc(in->nodes + 1, sizeof *sum);
    CLEANUP_MEM double *most = calloc(in->nodes + 1, sizeof *most);
    int rc = sum && most ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a small class");
    for (int m = 0; m < in->metrics && rc == 0; m++) {
        newest_column_fill(&column, m);
        for (int i = 0; i < in->nodes; i++) {
            double change = newest->change[(size_t)m * in->nodes + i],
                   p = own_p(&column, i, change, newest->grain[m]);
            if (isnan(p))
                continue;
            sum[i] += dist_cauchy_term(p);
            c->node[i].tested++;
            if (p <= past_options.suspect && change >= PEERS_DEFAULTS.least &&
                (rc = peers_add_worse(&c->node[i], m, in->metrics, err)) < 0)
                break;
            if (p <= past_options.suspect && change > most[i]) {
                most[i] = change;
                c->node[i].worst = m;
                c->node[i].worst_q = p;
            }
        }
    }
    for (int i = 0; i < in->nodes && rc == 0; i++)
        if (c->node[i].tested)
            c->node[i].p = dist_cauchy_tail(sum[i] / c->node[i].tested);
    for (int i = 0; i < in->nodes && rc == 0; i++)
        if (most[i] < PEERS_DEFAULTS.least)
            c->node[i].worst = -1;
    newest_column_fini(&column);
    return rc;
}

// The nodes of all small classes are one family of tests.
static int judge_small(struct peers *out, const struct peers_input *in, const struct newest *newest,
                       struct err *err)
{
    int nodes = 0, at = 0;
    for (int i = 0; i < out->n; i++)
        nodes += in[i].nodes < PEERS_MIN ? in[i].nodes : 0;
    CLEANUP_MEM double *q = malloc((nodes + 1) * sizeof *q);
    CLEANUP_MEM int *order = malloc((nodes + 1) * sizeof *order);
    if (!q || !order)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to judge %d nodes", nodes);
    for (int i = 0; i < out->n; i++) {
        if (in[i].nodes >= PEERS_MIN)
            continue;
        if (judge_alone(&out->list[i], &in[i], &newest[i], err) < 0)
            return -1;
        for (int k = 0; k < in[i].nodes; k++)
            q[at++] = out->list[i].node[k].p;
    }
    dist_fdr(q, nodes, order);
    at = 0;
    for (int i = 0; i < out->n; i++)
        for (int k = 0; k < in[i].nodes && in[i].nodes < PEERS_MIN; k++, at++) {
            struct peers_node *one = &out->list[i].node[k];
            one->q = q[at];
            out->tested += !isnan(q[at]);
            one->grade = q[at] <= past_options.suspect && one->worst >= 0;
            out->list[i].found += one->grade != PEERS_FINE;
        }
    return 0;
}

int past_judge(struct peers *out, const struct peers_input *in, const struct newest *newest, int n,
               struct err *err)
{
    struct peers made;
    CLEANUP_MEM struct peers_table *tables = calloc(n + 1, sizeof *tables);
    if (!tables)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to judge %d classes", n);
    for (int i = 0; i < n; i++)
        tables[i] = peers_table_of(&newest[i], true);
    if (peers_judge(&made, tables, n, &past_options, err) < 0)
        return -1;
    if (judge_small(&made, in, newest, err) < 0) {
        peers_fini(&made);
        return -1;
    }
    *out = made;
    return 0;
}

int past_since(const struct newest_column *c, int node, struct err *err)
{
    const struct series_options options = {SEGMENT_MIN, CHANGE_LEVEL, 100 * expm1(PAST_LEAST)};
    const double *x = c->x + (size_t)node * c->in->runs;
    CLEANUP_MEM double *v = malloc((c->in->runs + 1) * sizeof *v);
    CLEANUP_MEM int *at = malloc((c->in->runs + 1) * sizeof *at);
    CLEANUP_MEM struct change_point *points = NULL;
    int n = 0, searched, since = -1;
    if (!v || !at) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a series of %d runs", c->in->runs);
        return -2;
    }
    for (int r = c->in->runs - 1; r >= 0; r--)
        if (!isnan(x[r])) {
            v[n] = x[r];
            at[n++] = r;
        }
    double base = n ? v[0] : 0;
    for (int i = 0; i < n; i++)
        v[i] = exp(v[i] - base);
    int found = series_changes(&points, &searched, v, n, &options, err);
    for (int i = 0; i < found; i++)
        if (points[i].percent > 0)
            since = at[points[i].at];
    return found < 0 ? -2 : since;
}

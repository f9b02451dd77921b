// SPDX-License-Identifier: Apache-2.0
// A view keeps the arrays of a class, so that many metrics are looked at without making them again.
#include "analysis/peers/fleet_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/spread.h"
#include "analysis/stats/distributions.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/suggest.h"

#define VIEW_DAY_MS INT64_C(86400000)
#define VIEW_975 1.96
#define VIEW_SIGNIFICANT 0.05
#define VIEW_LEAST_PERCENT 1.0
enum { SHARE_NODES_MIN = 3 }; // for an interval of their median

static int view_no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for a class of nodes");
}

// --- Classes -----------------------------------------------------------------------------------

static int larger_class(const void *a, const void *b)
{
    const struct fleet_class_row *x = a, *y = b;
    return x->nodes != y->nodes ? y->nodes - x->nodes : x->class - y->class;
}

bool fleet_node_fresh(const struct fleet *f, int node)
{
    return f->o.now_ms - f->node[node].newest_ms <= f->o.window_days * VIEW_DAY_MS;
}

bool fleet_node_enough(const struct fleet *f, int node)
{
    const struct fleet_node *n = &f->node[node];
    for (int k = 0; k < n->n; k++) {
        const struct fleet_series *s = &f->one[n->series[k]];
        if (f->probe[s->probe].class == n->class && fleet_series_runs(f, s, NULL) >= RUNS_MIN)
            return true;
    }
    return false;
}

int fleet_classes(struct fleet_class_row **list, const struct fleet *f, struct err *err)
{
    int n = 0;
    CLEANUP_MEM struct fleet_class_row *rows = calloc(f->classes.n + 1, sizeof *rows);
    CLEANUP_MEM int *last_class = calloc(f->configs.n + 1, sizeof *last_class); // class + 1
    if (!rows || !last_class)
        return view_no_memory(err);
    for (int class = 0; class < f->classes.n; class ++) {
        struct fleet_class_row *r = &rows[n];
        *r = (struct fleet_class_row){.class = class,
                                      .cpu = fleet_fact(&f->class_facts[class], "cpu_model"),
                                      .shape = fleet_fact(&f->class_facts[class], "shape")};
        for (int i = 0; i < f->nodes.n; i++) {
            const struct fleet_node *node = &f->node[i];
            if (node->class != class)
                continue;
            r->nodes++;
            r->fresh += fleet_node_fresh(f, i);
            r->enough += fleet_node_enough(f, i);
            r->newest_ms = node->newest_ms > r->newest_ms ? node->newest_ms : r->newest_ms;
            if (node->config >= 0 && last_class[node->config] != class + 1) {
                last_class[node->config] = class + 1;
                r->setups++;
            }
        }
        n += r->nodes > 0;
    }
    qsort(rows, n, sizeof *rows, larger_class);
    *list = steal_ptr(&rows);
    return n;
}

int fleet_class_unknown(const char *prefix, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "class", "no node is of a class %.64s", prefix);
}

int fleet_class_ambiguous(const char *prefix, struct err *err)
{
    return err_set(err, ERR_INVALID, "class",
                   "several classes begin with \"%.64s\": write more of the hash", prefix);
}

int fleet_class_find(const struct fleet *f, const char *prefix, struct err *err)
{
    int best = -1, most = 0, found = 0;
    for (int class = 0; class < f->classes.n; class ++) {
        int nodes = fleet_class_nodes(f, class);
        if (!nodes || !str_starts(f->classes.list[class], prefix))
            continue;
        found++;
        if (nodes > most) {
            most = nodes;
            best = class;
        }
    }
    if (best < 0 && !*prefix)
        return err_set(err, ERR_NOT_FOUND, "class", "no node is of a known class yet");
    if (best < 0)
        return fleet_class_unknown(prefix, err);
    if (found > 1 && *prefix)
        return fleet_class_ambiguous(prefix, err);
    return best;
}

// --- A view ------------------------------------------------------------------------------------

int fleet_view_open(struct fleet_view *v, const struct fleet *f, int class, struct err *err)
{
    struct fleet_view made = {.f = f};
    if (fleet_table_make(&made.table, f, class, NULL, err) < 0)
        return -1;
    *v = made;
    if (newest_column_init(&v->column, &v->table.in, err) < 0) {
        fleet_table_fini(&v->table);
        return -1;
    }
    return 0;
}

void fleet_view_close(struct fleet_view *v)
{
    newest_column_fini(&v->column);
    fleet_table_fini(&v->table);
}

static int nodes_with(const struct fleet_table *t, int metric)
{
    int n = 0;
    for (int i = 0; i < t->in.nodes; i++)
        n += !isnan(t->v[((size_t)i * t->in.metrics + metric) * t->in.runs]);
    return n;
}

int fleet_view_metric(const struct fleet_view *v, const char *name, struct err *err)
{
    struct suggestion near = SUGGESTION_FOR(name);
    char hint[SUGGEST_TEXT_ROOM];
    int best = -1, most = -1;
    for (int m = 0; m < v->table.in.metrics; m++) {
        const char *known = fleet_table_metric(&v->table, v->f, m);
        suggest_consider(&near, known);
        int nodes = strcmp(known, name) == 0 ? nodes_with(&v->table, m) : -1;
        if (nodes > most) {
            most = nodes;
            best = m;
        }
    }
    if (best < 0)
        return err_set(err, ERR_NOT_FOUND, "metric", "no node has the metric \"%.64s\"%s", name,
                       suggest_text(&near, "", hint, sizeof hint));
    return best;
}

// --- Ranking -----------------------------------------------------------------------------------

static int view_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int view_newest(const struct fleet_view *v, int row, double *out)
{
    const double *x = v->column.x + (size_t)row * v->table.in.runs;
    int n = 0;
    for (int r = 0; r < v->table.in.runs && n < NEWEST_RUNS; r++)
        if (!isnan(x[r]))
            out[n++] = x[r];
    return n;
}

// By what all nodes' runs differ by. Where no node has enough runs, by the run's own interval.
static void rank_interval(struct fleet_rank *r, const struct fleet_view *v, int metric, int row,
                          double noise)
{
    const struct fleet_table *t = &v->table;
    if (!isnan(noise)) {
        double reach = VIEW_975 * noise * newest_error(r->runs);
        double x = newest_log(r->value, false, t->loss[metric]);
        r->lo = fmax(0, newest_value(x - reach, false, t->loss[metric]));
        r->hi = newest_value(x + reach, false, t->loss[metric]);
        return;
    }
    int series = t->series[row * t->in.probes + t->metric_probe[metric]];
    const struct fleet_series *s = &v->f->one[series];
    double newest = t->v[((size_t)row * t->in.metrics + metric) * t->in.runs];
    int at = s->runs[0].columns ? columns_place(s->runs[0].columns, t->column[metric]) : -1;
    if (at >= 0 && !isnan(newest)) {
        r->lo = r->value * s->lo[at] / newest;
        r->hi = r->value * s->hi[at] / newest;
    }
}

static int larger_x(const void *a, const void *b, void *more)
{
    double x = ((const struct fleet_rank *)a)->value, y = ((const struct fleet_rank *)b)->value;
    int order = (x < y) - (x > y);
    return *(const bool *)more ? -order : order;
}

// Whether runs of the node have the metric, measured by another method or with metrics of another
// version: while a fleet is updated.
static bool measured_otherwise(const struct fleet_view *v, int metric, int node)
{
    const struct fleet *f = v->f;
    const struct fleet_probe *p = &f->probe[v->table.probe[v->table.metric_probe[metric]]];
    const char *name = fleet_table_metric(&v->table, f, metric);
    for (int k = 0; k < f->node[node].n; k++) {
        const struct fleet_series *s = &f->one[f->node[node].series[k]];
        const struct fleet_probe *o = &f->probe[s->probe];
        int at = fleet_probes_are_versions(o, p) ? interned_find(&o->metrics, name) : -1;
        if (at >= 0 && fleet_series_runs(f, s, NULL) > 0 && fleet_series_values(s, at) > 0)
            return true;
    }
    return false;
}

int fleet_ranking_make(struct fleet_ranking *out, struct fleet_view *v, int metric, struct err *err)
{
    const struct fleet_table *t = &v->table;
    struct fleet_ranking made = {.metric = metric, .more = t->more[metric]};
    CLEANUP_MEM double *sorted = malloc((t->in.nodes + 1) * sizeof *sorted);
    made.list = calloc(t->in.nodes + 1, sizeof *made.list);
    if (!sorted || !made.list) {
        free(made.list);
        return view_no_memory(err);
    }
    newest_column_fill(&v->column, metric);
    double noise = newest_noise(&v->column);
    for (int i = 0; i < t->in.nodes; i++) {
        double five[NEWEST_RUNS];
        int runs = view_newest(v, i, five);
        if (runs == 0) {
            made.others += measured_otherwise(v, metric, t->node[i]);
            continue;
        }
        struct fleet_rank *r = &made.list[made.n];
        sorted[made.n] = middle_select(five, runs);
        *r = (struct fleet_rank){.node = t->node[i], .runs = runs, .lo = NAN, .hi = NAN};
        r->value = newest_value(sorted[made.n++], made.more, t->loss[metric]);
        rank_interval(r, v, metric, i, noise);
    }
    qsort(sorted, made.n, sizeof *sorted, view_ascending);
    struct spread s = made.n ? spread_of(sorted, made.n, 0) : (struct spread){NAN, NAN, 0};
    double one = t->loss[metric]; // as the logs are taken
    made.median = newest_value(s.centre, made.more, t->loss[metric]);
    made.spread = 100 * s.scale;
    for (int i = 0; i < made.n; i++)
        made.list[i].percent = 100 * ((one + made.list[i].value) / (one + made.median) - 1);
    qsort_r(made.list, made.n, sizeof *made.list, larger_x, &made.more);
    *out = made;
    return 0;
}

void fleet_ranking_fini(struct fleet_ranking *r)
{
    free(r->list);
    *r = (struct fleet_ranking){0};
}

// --- Nodes by a fact ---------------------------------------------------------------------------

static const char *view_fact(const struct fleet *f, int node, const char *fact)
{
    const struct fleet_node *n = &f->node[node];
    const char *value = n->config < 0 ? NULL : fleet_fact(&f->config_facts[n->config], fact);
    return value || n->class < 0 ? value : fleet_fact(&f->class_facts[n->class], fact);
}

// The group of each row in `group`; -1: fewer than RUNS_MIN runs.
static int view_group_rows(struct fleet_shares *out, const struct fleet_view *v, const char *fact,
                           const double *x, int *group, struct err *err)
{
    struct interned values = {0};
    bool known = false;
    int rc = 0;
    for (int i = 0; i < v->table.in.nodes && rc == 0; i++) {
        const char *value = view_fact(v->f, v->table.node[i], fact);
        known = known || value;
        group[i] = -1;
        if (isnan(x[i]))
            continue;
        if ((group[i] = interned_add(&values, value ? value : "", err)) < 0)
            rc = -1;
        else if (group[i] == out->n)
            out->list[out->n++] = (struct fleet_share){.value = value, .nodes = 1};
        else
            out->list[group[i]].nodes++;
    }
    interned_fini(&values);
    if (rc == 0 && !known && fleet_fact_check(v->f, fact, err) < 0)
        return -1;
    if (rc == 0 && !known)
        rc = err_set(err, ERR_NOT_FOUND, "fact", "no node of this class has the fact \"%.64s\"",
                     fact);
    return rc;
}

struct share_centre {
    double centre, error, df; // error NaN: too few nodes
};

static struct share_centre share_describe(struct fleet_share *s, bool more, bool loss, double *x,
                                          int n)
{
    qsort(x, n, sizeof *x, view_ascending);
    struct spread spread = spread_of(x, n, 0);
    // Of three nodes there is less than one degree of freedom, which no interval is made of.
    struct share_centre c = {spread.centre, NAN, fmax(1, spread_freedom(n))};
    s->median = newest_value(c.centre, more, loss);
    s->lo = s->hi = NAN;
    if (n < SHARE_NODES_MIN)
        return c;
    c.error = spread.scale * newest_error(n);
    double reach = dist_t_975(c.df) * c.error;
    double one = newest_value(c.centre - reach, more, loss),
           other = newest_value(c.centre + reach, more, loss);
    s->lo = fmax(0, fmin(one, other));
    s->hi = fmax(one, other);
    return c;
}

static void share_compare(struct fleet_share *s, bool more, const struct share_centre *c,
                          const struct share_centre *base)
{
    double above = (c->centre - base->centre) * (more ? -1 : 1);
    double error = hypot(c->error, base->error), df = fmin(c->df, base->df);
    s->percent = 100 * expm1(above);
    s->percent_lo = s->percent_hi = s->q = NAN;
    if (isnan(error))
        return;
    double reach = dist_t_975(df) * error;
    s->percent_lo = 100 * expm1(above - reach);
    s->percent_hi = 100 * expm1(above + reach);
    s->q = error > 0 ? dist_t_two_sided(above / error, df) : above == 0;
}

// The first in this order is what the others are compared with.
static int larger_share(const void *a, const void *b)
{
    const struct fleet_share *x = a, *y = b;
    if (x->nodes != y->nodes)
        return y->nodes - x->nodes;
    return strcmp(x->value ? x->value : "", y->value ? y->value : "");
}

static int shares_find(struct fleet_shares *out, bool loss, const double *x, const int *group,
                       int nodes, struct err *err)
{
    CLEANUP_MEM double *own = malloc((nodes + 1) * sizeof *own);
    CLEANUP_MEM double *q = malloc((out->n + 1) * sizeof *q);
    CLEANUP_MEM int *order = malloc((out->n + 1) * sizeof *order);
    CLEANUP_MEM struct share_centre *c = calloc(out->n + 1, sizeof *c);
    int base = 0;
    if (!own || !q || !order || !c)
        return view_no_memory(err);
    for (int g = 0; g < out->n; g++) {
        int n = 0;
        for (int i = 0; i < nodes; i++)
            if (group[i] == g)
                own[n++] = x[i];
        c[g] = share_describe(&out->list[g], out->more, loss, own, n);
        base = larger_share(&out->list[g], &out->list[base]) < 0 ? g : base;
    }
    for (int g = 0; g < out->n; g++) {
        share_compare(&out->list[g], out->more, &c[g], &c[base]);
        if (g == base)
            out->list[g].percent_lo = out->list[g].percent_hi = out->list[g].q = NAN;
        q[g] = out->list[g].q;
    }
    dist_fdr(q, out->n, order);
    for (int g = 0; g < out->n; g++) {
        out->list[g].q = q[g];
        out->list[g].differs =
            q[g] <= VIEW_SIGNIFICANT && fabs(out->list[g].percent) >= VIEW_LEAST_PERCENT;
    }
    return 0;
}

int fleet_shares_make(struct fleet_shares *out, struct fleet_view *v, int metric, const char *fact,
                      struct err *err)
{
    int nodes = v->table.in.nodes;
    struct fleet_shares made = {.more = v->table.more[metric]};
    CLEANUP_MEM double *x = malloc((nodes + 1) * sizeof *x);
    CLEANUP_MEM int *group = malloc((nodes + 1) * sizeof *group);
    made.list = calloc(nodes + 1, sizeof *made.list);
    if (!x || !group || !made.list) {
        free(made.list);
        return view_no_memory(err);
    }
    newest_column_fill(&v->column, metric);
    for (int i = 0; i < nodes; i++) {
        double five[NEWEST_RUNS];
        int runs = view_newest(v, i, five);
        x[i] = runs >= RUNS_MIN ? middle_select(five, runs) : NAN;
        made.others += runs == 0 && measured_otherwise(v, metric, v->table.node[i]);
    }
    if (view_group_rows(&made, v, fact, x, group, err) < 0 ||
        shares_find(&made, v->table.loss[metric], x, group, nodes, err) < 0) {
        fleet_shares_fini(&made);
        return -1;
    }
    qsort(made.list, made.n, sizeof *made.list, larger_share);
    *out = made;
    return 0;
}

const char *fleet_share_verdict(const struct fleet_shares *s, int i)
{
    const struct fleet_share *k = &s->list[i];
    bool worse = s->more ? k->percent < 0 : k->percent > 0;
    return i == 0        ? "largest group"
           : k->differs  ? (worse ? "slower" : "faster")
           : isnan(k->q) ? "too few nodes"
                         : "no difference";
}

void fleet_shares_fini(struct fleet_shares *s)
{
    free(s->list);
    *s = (struct fleet_shares){0};
}

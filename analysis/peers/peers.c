// SPDX-License-Identifier: Apache-2.0
// The order of events: kinds and centre of each metric; a p of each node, from its metrics and from
// its mean over each probe; the false discovery rate over all classes; then the nodes found, with
// the metrics that they were found by. Testing all metrics of all nodes at once instead would make
// half of the findings false where bad nodes are bad in 30 metrics: false ones ride in on true
// ones.
#include "analysis/peers/peers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/tail.h"
#include "analysis/stats/distributions.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"

#define NOISY_MOST 0.5 // share, over the metrics: the node is noisy in most of them
#define SAME_GROUP 0.8 // of the members of two together: in both

const char *const peers_grade_names[PEERS_GRADES] = {"fine", "suspect", "sure"};

// Sums over a node's metrics.
struct sums {
    double slow, fast; // Cauchy terms
    int n;
    double means_slow, means_fast; // the same of its means over probes
    int probes;
};

// What is known of a node's mean over a probe's metrics. Sums until they are means.
struct own {
    struct tail_error error; // in scales, as if all metrics erred alike
    double share;            // that it scatters more than its peers
    double coarse;           // metrics whose scale is their grain
};

struct peers_work {
    const struct peers_options *o;
    double *sorted;   // [nodes of the largest class]
    double *z;        // [probe][node]: sum over the probe's metrics
    int *z_n;         // so many
    struct own *own;  // [probe][node]
    struct sums *sum; // [node]
    double *fast_p;   // [node], of all classes one after the other
};

_Static_assert(sizeof(double) + sizeof(int) + sizeof(struct own) <= PEERS_ROOM,
               "[probe][node] of struct peers_work");

static int ascending_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct peers_table peers_table_of(const struct newest *n, bool change)
{
    return (struct peers_table){.nodes = n->nodes,
                                .metrics = n->metrics,
                                .probes = n->probes,
                                .probe = n->probe,
                                .x = change ? n->change : n->now,
                                .runs = n->runs,
                                .days = n->days,
                                .grain = n->grain,
                                .scatter = n->scatter,
                                .change = change};
}

static const struct newest_scatter *own_scatter(const struct peers_table *t, int metric, int node)
{
    return t->scatter ? &t->scatter[(size_t)metric * t->nodes + node] : NULL;
}

static const struct kind *kind_at(const struct peers_class *c, int metric, double x)
{
    const struct kinds *k = &c->kinds[metric];
    return k->n && !isnan(x) ? &k->list[kinds_of(k, x)] : NULL;
}

double peers_above(const struct peers_class *c, const struct peers_table *t, int metric, int node)
{
    double x = t->x[(size_t)metric * t->nodes + node];
    const struct kind *k = kind_at(c, metric, x);
    return k ? x - k->spread.centre : NAN;
}

static void find_kinds(struct peers_class *c, const struct peers_table *t, int metric,
                       struct peers_work *w)
{
    const double *x = t->x + (size_t)metric * t->nodes;
    int n = 0;
    for (int i = 0; i < t->nodes; i++)
        if (!isnan(x[i]))
            w->sorted[n++] = x[i];
    double grain = t->grain ? t->grain[metric] : 0;
    c->kinds[metric].n = 0;
    if (n < PEERS_MIN)
        return;
    qsort(w->sorted, n, sizeof *w->sorted, ascending_value);
    if (w->o->kinds)
        kinds_find(&c->kinds[metric], w->sorted, n, w->o->least, grain);
    else
        kinds_one(&c->kinds[metric], w->sorted, n, grain);
}

static void add_own(struct own *sum, const struct newest_scatter *own, double scale, bool change)
{
    struct tail_error e = tail_error_of(own, change);
    sum->share += own->share;
    sum->error.own += own->share * e.own / scale;
    if (own->share > 0)
        sum->error.freedom = e.freedom;
    sum->error.chance += e.chance;
    sum->error.noisy += e.noisy / scale;
}

static void add_metric(const struct peers_class *c, const struct peers_table *t, int metric,
                       struct peers_work *w)
{
    const double *x = t->x + (size_t)metric * t->nodes;
    size_t row = (size_t)t->probe[metric] * t->nodes;
    for (int i = 0; i < t->nodes; i++) {
        const struct kind *k = kind_at(c, metric, x[i]);
        if (!k)
            continue;
        const struct newest_scatter *own = own_scatter(t, metric, i);
        double above = x[i] - k->spread.centre;
        w->sum[i].slow += dist_cauchy_term(tail_value(&k->spread, above, own, t->change));
        w->sum[i].fast += dist_cauchy_term(tail_value(&k->spread, -above, own, t->change));
        w->sum[i].n++;
        w->z[row + i] += above / k->spread.scale;
        w->z_n[row + i]++;
        if (own && own->share + own->chance > 0)
            add_own(&w->own[row + i], own, k->spread.scale, t->change);
        w->own[row + i].coarse += t->grain && t->grain[metric] >= k->spread.scale;
    }
}

// What the means of nodes that are noisy in most metrics differ by, beyond those of all. That is
// less than if all metrics erred alike. Infinite: too few such nodes.
static double noisy_means(const struct own *own, const double *z, const int *count, int nodes,
                          const struct spread *s)
{
    double squares = 0;
    int n = 0;
    for (int i = 0; i < nodes; i++)
        if (count[i] > 1 && own[i].share > NOISY_MOST * count[i]) {
            squares += (z[i] - s->centre) * (z[i] - s->centre);
            n++;
        }
    return n < PEERS_MIN ? INFINITY : sqrt(fmax(0, squares / n - s->scale * s->scale));
}

// The mean over a probe's metrics, scaled by what nodes really differ by: metrics are correlated.
static void add_means(const struct peers_table *t, int probe, struct peers_work *w)
{
    double *z = w->z + (size_t)probe * t->nodes;
    const int *count = w->z_n + (size_t)probe * t->nodes;
    const struct own *own = w->own + (size_t)probe * t->nodes;
    double coarse = 0;
    int n = 0;
    for (int i = 0; i < t->nodes; i++)
        if (count[i] > 1) {
            w->sorted[n++] = z[i] /= count[i];
            coarse = fmax(coarse, own[i].coarse / count[i]);
        }
    if (n < PEERS_MIN)
        return;
    qsort(w->sorted, n, sizeof *w->sorted, ascending_value);
    struct spread s = spread_of(w->sorted, n, fmax(coarse, 1e-9));
    double noisy = noisy_means(own, z, count, t->nodes, &s);
    for (int i = 0; i < t->nodes; i++) {
        if (count[i] <= 1)
            continue;
        struct tail_error e = own[i].error;
        e.own /= count[i];
        e.chance /= count[i];
        e.noisy = fmin(noisy, e.noisy / count[i]);
        double above = z[i] - s.centre;
        w->sum[i].means_slow += dist_cauchy_term(tail_mean(&s, above, &e));
        w->sum[i].means_fast += dist_cauchy_term(tail_mean(&s, -above, &e));
        w->sum[i].probes++;
    }
}

// Half the weight is the metrics', half the means'.
static double combined(double metrics, int n, double means, int probes)
{
    if (n == 0)
        return NAN;
    double mean = metrics / n;
    return dist_cauchy_tail(probes ? (mean + means / probes) / 2 : mean);
}

static void class_p(struct peers_class *c, const struct peers_table *t, struct peers_work *w,
                    double *fast_p)
{
    memset(w->sum, 0, t->nodes * sizeof *w->sum);
    memset(w->z, 0, (size_t)t->probes * t->nodes * sizeof *w->z);
    memset(w->z_n, 0, (size_t)t->probes * t->nodes * sizeof *w->z_n);
    memset(w->own, 0, (size_t)t->probes * t->nodes * sizeof *w->own);
    for (int m = 0; m < t->metrics; m++) {
        find_kinds(c, t, m, w);
        add_metric(c, t, m, w);
    }
    for (int p = 0; p < t->probes; p++)
        add_means(t, p, w);
    for (int i = 0; i < t->nodes; i++) {
        const struct sums *s = &w->sum[i];
        c->node[i] = (struct peers_node){.p = combined(s->slow, s->n, s->means_slow, s->probes),
                                         .q = NAN,
                                         .tested = s->n,
                                         .worst = -1,
                                         .worst_q = NAN};
        fast_p[i] = combined(s->fast, s->n, s->means_fast, s->probes);
    }
}

// Significant differences of a few tenths of a per cent are no finding.
static bool far_enough(const struct peers_class *c, const struct peers_table *t, int node,
                       double sign, struct peers_work *w)
{
    int n = 0;
    bool far = false;
    double *d = malloc((t->metrics + 1) * sizeof *d);
    for (int m = 0; m < t->metrics && d; m++) {
        double above = sign * peers_above(c, t, m, node);
        if (isnan(above))
            continue;
        far = far || above >= w->o->least;
        d[n++] = above;
    }
    far = far || (n > 1 && middle_select(d, n) >= w->o->typical * w->o->least);
    free(d);
    return far;
}

int peers_add_worse(struct peers_node *one, int metric, int metrics, struct err *err)
{
    if (!one->worse_in && !(one->worse_in = calloc(metrics, 1)))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d metrics", metrics);
    one->worse_in[metric] = 1;
    one->worse++;
    return 0;
}

// By which metrics: those of one node are tested among themselves.
static int find_metrics(struct peers_class *c, const struct peers_table *t, int node,
                        const struct peers_options *o, struct err *err)
{
    struct peers_node *found = &c->node[node];
    CLEANUP_MEM double *q = malloc((t->metrics + 1) * sizeof *q);
    CLEANUP_MEM int *order = malloc((t->metrics + 1) * sizeof *order);
    double most = -INFINITY, least_p = 2;
    if (!q || !order)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d metrics", t->metrics);
    for (int m = 0; m < t->metrics; m++) {
        double x = t->x[(size_t)m * t->nodes + node];
        const struct kind *k = kind_at(c, m, x);
        q[m] = k ? tail_value(&k->spread, x - k->spread.centre, own_scatter(t, m, node), t->change)
                 : NAN;
        if (q[m] < least_p) {
            least_p = q[m];
            found->worst = m;
        }
    }
    dist_fdr(q, t->metrics, order);
    for (int m = 0; m < t->metrics; m++) {
        if (!(q[m] <= o->suspect))
            continue;
        double above = peers_above(c, t, m, node);
        if (peers_add_worse(found, m, t->metrics, err) < 0)
            return -1;
        if (above > most) {
            most = above;
            found->worst = m;
        }
    }
    found->worst_q = found->worst < 0 ? NAN : q[found->worst];
    return 0;
}

static enum peers_grade grade_of(const struct peers_class *c, const struct peers_table *t, int node,
                                 const struct peers_options *o)
{
    const struct peers_node *found = &c->node[node];
    size_t at = (size_t)found->worst * t->nodes + node;
    bool sure = found->q <= o->sure && t->runs[at] >= o->sure_runs && t->days[at] >= o->sure_days &&
                peers_mirror(c) <= o->mirror;
    return sure ? PEERS_SURE : PEERS_SUSPECT;
}

static int peers_find_nodes(struct peers_class *c, const struct peers_table *t,
                            const double *fast_p, struct peers_work *w, struct err *err)
{
    double largest = 0;
    for (int i = 0; i < t->nodes; i++) {
        if (!(c->node[i].q <= w->o->suspect) || !far_enough(c, t, i, 1, w))
            continue;
        c->node[i].grade = PEERS_SUSPECT;
        largest = fmax(largest, c->node[i].p);
        c->found++;
        if (find_metrics(c, t, i, w->o, err) < 0)
            return -1;
    }
    for (int i = 0; i < t->nodes; i++) {
        c->node[i].fast = fast_p[i] <= largest && far_enough(c, t, i, -1, w);
        c->fast += c->node[i].fast;
    }
    for (int i = 0; i < t->nodes; i++)
        if (c->node[i].grade)
            c->node[i].grade = grade_of(c, t, i, w->o);
    return 0;
}

static double overlap(const unsigned char *a, const unsigned char *b, int nodes)
{
    int both = 0, either = 0;
    for (int i = 0; i < nodes; i++) {
        both += a[i] && b[i];
        either += a[i] || b[i];
    }
    return either ? (double)both / either : 0;
}

static double group_excess(const struct peers_class *c, int metric, int kind)
{
    const struct kinds *k = &c->kinds[metric];
    return k->list[kind].spread.centre - k->list[kinds_largest(k)].spread.centre;
}

static void peers_group_fini(struct peers_group *g)
{
    free(g->in);
    free(g->has);
}

// As a group of its own, or as a further metric of one with nearly the same members.
static int peers_add_group(struct peers_class *c, struct peers_group *made, struct err *err)
{
    for (int g = 0; g < c->n_groups; g++) {
        struct peers_group *old = &c->groups[g];
        if (overlap(old->has, made->has, c->nodes) < SAME_GROUP)
            continue;
        if (group_excess(c, made->metric, made->kind) > group_excess(c, old->metric, old->kind)) {
            old->metric = made->metric;
            old->kind = made->kind;
        }
        old->in[made->metric] = 1;
        old->metrics++;
        peers_group_fini(made);
        return 0;
    }
    struct peers_group *more = realloc(c->groups, (c->n_groups + 1) * sizeof *more);
    if (!more) {
        peers_group_fini(made);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a group of nodes");
    }
    c->groups = more;
    more[c->n_groups++] = *made;
    return 0;
}

static int peers_find_groups(struct peers_class *c, const struct peers_table *t,
                             const struct peers_options *o, struct err *err)
{
    for (int m = 0; m < t->metrics; m++)
        for (int k = 0; k < c->kinds[m].n; k++) {
            if (group_excess(c, m, k) < o->least)
                continue;
            struct peers_group g = {.metric = m, .kind = k, .metrics = 1};
            g.in = calloc(t->metrics, 1);
            g.has = calloc(t->nodes, 1);
            if (!g.in || !g.has) {
                peers_group_fini(&g);
                return err_set(err, ERR_NO_MEMORY, "", "no memory for a group of nodes");
            }
            g.in[m] = 1;
            for (int i = 0; i < t->nodes; i++) {
                g.has[i] = kind_at(c, m, t->x[(size_t)m * t->nodes + i]) == &c->kinds[m].list[k];
                g.n += g.has[i];
            }
            if (peers_add_group(c, &g, err) < 0)
                return -1;
        }
    return 0;
}

static int peers_work_init(struct peers_work *w, const struct peers_table *t, int n,
                           struct err *err)
{
    size_t most = 1, rows = 1, all = 1;
    for (int i = 0; i < n; i++) {
        size_t nodes = t[i].nodes, cells = nodes * t[i].probes;
        most = nodes > most ? nodes : most;
        rows = cells > rows ? cells : rows;
        all += nodes;
    }
    w->sorted = malloc(most * sizeof *w->sorted);
    w->z = malloc(rows * sizeof *w->z);
    w->z_n = malloc(rows * sizeof *w->z_n);
    w->own = malloc(rows * sizeof *w->own);
    w->sum = malloc(most * sizeof *w->sum);
    w->fast_p = malloc(all * sizeof *w->fast_p);
    if (!w->sorted || !w->z || !w->z_n || !w->own || !w->sum || !w->fast_p)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to judge %zu nodes", all - 1);
    return 0;
}

static void peers_work_fini(struct peers_work *w)
{
    free(w->sorted);
    free(w->z);
    free(w->z_n);
    free(w->own);
    free(w->sum);
    free(w->fast_p);
}

// q of every node, and up to which p the rate allows a finding.
static int false_discovery(struct peers *out, const struct peers_options *o, struct err *err)
{
    int nodes = 0, at = 0;
    for (int i = 0; i < out->n; i++)
        nodes += out->list[i].nodes;
    CLEANUP_MEM double *q = malloc((nodes + 1) * sizeof *q);
    CLEANUP_MEM int *order = malloc((nodes + 1) * sizeof *order);
    if (!q || !order)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to judge %d nodes", nodes);
    for (int i = 0; i < out->n; i++)
        for (int k = 0; k < out->list[i].nodes; k++) {
            q[at] = out->list[i].node[k].p;
            out->tested += !isnan(q[at++]);
        }
    dist_fdr(q, nodes, order);
    out->limit_p = out->tested ? o->suspect / out->tested : NAN;
    for (int i = 0, k = 0; i < out->n; i++)
        for (int node = 0; node < out->list[i].nodes; node++, k++) {
            struct peers_node *one = &out->list[i].node[node];
            one->q = q[k];
            if (q[k] <= o->suspect)
                out->limit_p = fmax(out->limit_p, one->p);
        }
    return 0;
}

static int classes_judge(struct peers *out, const struct peers_table *t, struct peers_work *w,
                         struct err *err)
{
    size_t at = 0;
    for (int i = 0; i < out->n; i++) {
        struct peers_class *c = &out->list[i];
        c->nodes = t[i].nodes;
        c->metrics = t[i].metrics;
        c->node = calloc(t[i].nodes + 1, sizeof *c->node);
        c->kinds = calloc(t[i].metrics + 1, sizeof *c->kinds);
        if (!c->node || !c->kinds)
            return err_set(err, ERR_NO_MEMORY, "", "no memory to judge %d nodes", t[i].nodes);
        class_p(c, &t[i], w, w->fast_p + at);
        at += t[i].nodes;
    }
    if (false_discovery(out, w->o, err) < 0)
        return -1;
    at = 0;
    for (int i = 0; i < out->n; i++) {
        if (peers_find_nodes(&out->list[i], &t[i], w->fast_p + at, w, err) < 0 ||
            peers_find_groups(&out->list[i], &t[i], w->o, err) < 0)
            return -1;
        at += t[i].nodes;
    }
    return 0;
}

int peers_judge(struct peers *out, const struct peers_table *classes, int n,
                const struct peers_options *o, struct err *err)
{
    struct peers_work w = {.o = o};
    struct peers made = {.n = n, .list = calloc(n + 1, sizeof *made.list)};
    int rc = made.list ? peers_work_init(&w, classes, n, err)
                       : err_set(err, ERR_NO_MEMORY, "", "no memory to judge %d classes", n);
    if (rc == 0)
        rc = classes_judge(&made, classes, &w, err);
    peers_work_fini(&w);
    if (rc < 0)
        peers_fini(&made);
    else
        *out = made;
    return rc;
}

void peers_fini(struct peers *p)
{
    for (int i = 0; i < p->n && p->list; i++) {
        struct peers_class *c = &p->list[i];
        for (int g = 0; g < c->n_groups; g++)
            peers_group_fini(&c->groups[g]);
        free(c->groups);
        for (int k = 0; k < c->nodes && c->node; k++)
            free(c->node[k].worse_in);
        free(c->node);
        free(c->kinds);
    }
    free(p->list);
    *p = (struct peers){0};
}

struct peers_place peers_place_of(const struct peers *p, int class, const struct peers_table *t,
                                  int node, int metric, const struct peers_options *o)
{
    const struct peers_class *c = &p->list[class];
    double x = t->x[(size_t)metric * t->nodes + node];
    const struct kind *k = kind_at(c, metric, x);
    if (!k)
        return (struct peers_place){.x = x, NAN, NAN, NAN, NAN, 0};
    const struct newest_scatter *own = own_scatter(t, metric, node);
    double share = c->node[node].tested > 1 ? 0.5 : 1;
    double tail = fmin(0.49, p->limit_p * share / c->node[node].tested);
    double reach = tail_reach(&k->spread, tail, own, t->change);
    return (struct peers_place){.x = x,
                                .centre = k->spread.centre,
                                .scale = k->spread.scale,
                                .limit = k->spread.centre + fmax(o->least, reach),
                                .p = tail_value(&k->spread, x - k->spread.centre, own, t->change),
                                .peers = k->spread.n};
}

double peers_share_better(const struct peers_class *c, const struct peers_table *t, int metric,
                          int node)
{
    const double *x = t->x + (size_t)metric * t->nodes;
    const struct kind *k = kind_at(c, metric, x[node]);
    double better = -0.5; // the node is as good as itself
    if (!k || k->spread.n < 2)
        return NAN;
    for (int i = 0; i < t->nodes; i++)
        if (kind_at(c, metric, x[i]) == k)
            better += x[i] < x[node] ? 1 : x[i] == x[node] ? 0.5 : 0;
    return better / (k->spread.n - 1);
}

double peers_mirror(const struct peers_class *c)
{
    return c->found ? (double)c->fast / c->found : 0;
}

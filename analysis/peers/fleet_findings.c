// SPDX-License-Identifier: Apache-2.0
// Classes become arrays, arrays are judged, and what is found is described: by its worst metric,
// with the interval that the node's runs give, dated by the change in its series.
#include "analysis/peers/fleet_findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/past.h"
#include "analysis/peers/table.h"
#include "base/cleanup.h"

const char *const fleet_finding_names[FINDING_KINDS] = {"outlier", "slower", "group"};

#define NORMAL_975 1.96
#define MEDIAN_ERROR 1.2533 // of a median beside a mean

struct findings_work {
    const struct fleet *f;
    struct fleet_findings *out;
    int n; // classes with nodes
    struct fleet_table *table;
    struct peers_input *in;
    struct newest *newest;
    struct peers_table *levels;
    struct peers peers, past;
    int room;
};

static const struct peers_options outlier_options = PEERS_DEFAULTS;

static struct fleet_finding *new_finding(struct findings_work *w, const struct fleet_table *t,
                                         enum fleet_finding_what what, int nodes, struct err *err)
{
    struct fleet_findings *out = w->out;
    if (out->n == w->room) {
        int room = w->room ? 2 * w->room : 16;
        struct fleet_finding *list = realloc(out->list, room * sizeof *list);
        if (!list) {
            err_set(err, ERR_NO_MEMORY, "", "no memory for %d findings", room);
            return NULL;
        }
        out->list = list;
        w->room = room;
    }
    struct fleet_finding *one = &out->list[out->n];
    *one = (struct fleet_finding){
        .what = what, .class = t->class, .limit = NAN, .p = NAN, .q = NAN, .lo = NAN, .hi = NAN};
    if (!(one->nodes = malloc((nodes + 1) * sizeof *one->nodes))) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a finding");
        return NULL;
    }
    out->n++;
    return one;
}

static double finding_value(const struct fleet_finding *one, double x)
{
    return newest_value(x, one->more, metric_is_loss(one->metric));
}

static double percent_at(const struct fleet_finding *one, double above)
{
    return 100 * expm1(one->more ? -above : above);
}

// `in`: those that count (NULL: none). The worst one is always named.
static int name_metrics(struct fleet_finding *one, const struct fleet_table *t,
                        const struct fleet *f, const unsigned char *in, struct err *err)
{
    one->metrics = calloc((size_t)t->in.metrics + 1, sizeof *one->metrics);
    if (!one->metrics)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a finding");
    for (int m = 0; m < t->in.metrics; m++)
        if (m == one->metric_at || (in && in[m]))
            one->metrics[one->n_metrics++] = fleet_table_metric(t, f, m);
    return 0;
}

static void set_metric(struct fleet_finding *one, const struct fleet_table *t,
                       const struct fleet *f, int metric)
{
    one->metric_at = metric;
    one->probe = t->probe[t->metric_probe[metric]];
    one->metric = fleet_table_metric(t, f, metric);
    one->unit = fleet_table_unit(t, f, metric);
    one->more = t->more[metric];
}

// A node that was found against its peers, or against its own past.
static int add_found_node(struct findings_work *w, int class, int row, const struct peers *p,
                          const struct peers_table *levels, const struct peers_options *o,
                          struct err *err)
{
    const struct fleet_table *t = &w->table[class];
    const struct peers_node *node = &p->list[class].node[row];
    bool past = p == &w->past;
    struct fleet_finding *one = new_finding(w, t, past ? FINDING_SLOWER : FINDING_OUTLIER, 1, err);
    if (!one)
        return -1;
    set_metric(one, t, w->f, node->worst);
    struct peers_place at = peers_place_of(p, class, levels, row, node->worst, o);
    double centre = isnan(at.centre) ? 0 : at.centre;
    // Against the past: from changes back to values.
    double now = w->newest[class].now[(size_t)node->worst * t->in.nodes + row];
    double base = past ? now - at.x : 0;
    one->row = row;
    one->n_nodes = 1;
    one->nodes[0] = t->node[row];
    one->grade = node->grade;
    one->worse = node->worse;
    one->of = node->tested;
    one->value = finding_value(one, base + at.x);
    one->peers = finding_value(one, base + centre);
    one->limit = isnan(at.limit) ? NAN : finding_value(one, base + at.limit);
    one->spread = 100 * at.scale;
    one->n_peers = at.peers;
    one->percent = percent_at(one, at.x - centre);
    one->p = node->p;
    one->q = node->q;
    one->mirror = peers_mirror(&p->list[class]);
    const int probe = t->metric_probe[node->worst], runs = fleet_table_runs(t, row, probe);
    for (int r = 0; r < runs && one->n_runs < NEWEST_RUNS; r++) {
        const struct fleet_run *run = fleet_table_run(t, w->f, row, probe, r);
        if (run && !isnan(fleet_run_value(run, t->column[node->worst]))) // others say nothing of it
            one->runs[one->n_runs++] = run->id;
    }
    return name_metrics(one, t, w->f, node->worse_in, err);
}

static int add_one_group(struct findings_work *w, int class, const struct peers_group *g,
                         struct err *err)
{
    const struct fleet_table *t = &w->table[class];
    const struct kinds *k = &w->peers.list[class].kinds[g->metric];
    const struct kind *usual = &k->list[kinds_largest(k)], *own = &k->list[g->kind];
    struct fleet_finding *one = new_finding(w, t, FINDING_GROUP, g->n, err);
    if (!one)
        return -1;
    set_metric(one, t, w->f, g->metric);
    for (int i = 0; i < t->in.nodes; i++)
        if (g->has[i])
            one->nodes[one->n_nodes++] = t->node[i];
    double error =
        NORMAL_975 * MEDIAN_ERROR *
        hypot(own->spread.scale / sqrt(own->spread.n), usual->spread.scale / sqrt(usual->spread.n));
    double above = own->spread.centre - usual->spread.centre;
    one->worse = g->metrics;
    one->of = t->in.metrics;
    one->value = finding_value(one, own->spread.centre);
    one->peers = finding_value(one, usual->spread.centre);
    one->limit = finding_value(one, usual->spread.centre + outlier_options.least);
    one->spread = 100 * usual->spread.scale;
    one->n_peers = usual->spread.n;
    one->percent = percent_at(one, above);
    one->lo = fmin(percent_at(one, above - error), percent_at(one, above + error));
    one->hi = fmax(percent_at(one, above - error), percent_at(one, above + error));
    one->mirror = peers_mirror(&w->peers.list[class]);
    if (name_metrics(one, t, w->f, g->in, err) < 0)
        return -1;
    return differences_find(&one->differs, w->f, t->node, t->in.nodes, g->has, err);
}

static int describe_class(struct findings_work *w, int class, struct err *err)
{
    const struct peers_class *c = &w->peers.list[class], *past = &w->past.list[class];
    const struct peers_table changes = peers_table_of(&w->newest[class], true);
    for (int i = 0; i < c->nodes; i++) {
        int rc = 0;
        if (c->node[i].grade && c->node[i].grade >= past->node[i].grade)
            rc = add_found_node(w, class, i, &w->peers, &w->levels[class], &outlier_options, err);
        else if (past->node[i].grade)
            rc = add_found_node(w, class, i, &w->past, &changes, &past_options, err);
        if (rc < 0)
            return -1;
    }
    for (int g = 0; g < c->n_groups; g++)
        if (add_one_group(w, class, &c->groups[g], err) < 0)
            return -1;
    w->out->fast += c->fast;
    return 0;
}

// Interval and date of a node's finding, by its series.
static int date_finding(struct fleet_finding *one, const struct findings_work *w, int class,
                        const struct newest_column *c, struct err *err)
{
    const struct fleet_table *t = &w->table[class];
    int probe = t->metric_probe[one->metric_at], since = past_since(c, one->row, err);
    int runs = one->n_runs, before = -runs;
    for (int r = 0; r < t->in.runs; r++)
        before += !isnan(c->x[(size_t)one->row * t->in.runs + r]);
    if (since == -2)
        return -1;
    const struct fleet_run *run =
        since < 0 ? NULL : fleet_table_run(t, w->f, one->row, probe, since);
    one->since_ms = run ? run->measured_ms : 0;
    double error = newest_noise(c) * newest_error(runs);
    if (one->what == FINDING_SLOWER)
        error = hypot(error,
                      newest_noise(c) * newest_error(before > BEFORE_RUNS ? BEFORE_RUNS : before));
    else
        error = hypot(error, one->spread / 100 * newest_error(one->n_peers));
    double above = log1p(one->percent / 100);
    one->lo = 100 * expm1(above - NORMAL_975 * error);
    one->hi = 100 * expm1(above + NORMAL_975 * error);
    return 0;
}

static int mark_differences(struct fleet_finding *one, const struct findings_work *w, int class,
                            struct err *err)
{
    const struct fleet_table *t = &w->table[class];
    CLEANUP_MEM unsigned char *in = calloc(t->in.nodes + 1, 1);
    if (!in)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a finding");
    in[one->row] = 1;
    return differences_find(&one->differs, w->f, t->node, t->in.nodes, in, err);
}

// Metric by metric: the column of a metric is made once for all findings with it.
static int date_class(struct findings_work *w, int class, int first, struct err *err)
{
    const struct fleet_table *t = &w->table[class];
    struct newest_column c;
    int rc = 0;
    if (first == w->out->n || newest_column_init(&c, &t->in, err) < 0)
        return first == w->out->n ? 0 : -1;
    for (int m = 0; m < t->in.metrics && rc == 0; m++) {
        bool filled = false;
        for (int i = first; i < w->out->n && rc == 0; i++) {
            struct fleet_finding *one = &w->out->list[i];
            if (one->what == FINDING_GROUP || one->metric_at != m)
                continue;
            if (!filled)
                newest_column_fill(&c, m);
            filled = true;
            rc = date_finding(one, w, class, &c, err);
            if (rc == 0)
                rc = mark_differences(one, w, class, err);
        }
    }
    newest_column_fini(&c);
    return rc;
}

static int most_serious(const void *a, const void *b)
{
    const struct fleet_finding *x = a, *y = b;
    if ((x->what == FINDING_GROUP) != (y->what == FINDING_GROUP))
        return x->what == FINDING_GROUP ? 1 : -1;
    if (x->grade != y->grade)
        return x->grade > y->grade ? -1 : 1;
    double far_x = fabs(log1p(x->percent / 100)), far_y = fabs(log1p(y->percent / 100));
    if (far_x != far_y)
        return far_x > far_y ? -1 : 1;
    return (x->nodes[0] > y->nodes[0]) - (x->nodes[0] < y->nodes[0]);
}

static int init_compared(struct fleet_findings *out, const struct fleet *f, struct err *err)
{
    int n = 0;
    out->columns = calloc((size_t)f->probes.n + 1, sizeof *out->columns);
    for (int i = 0; i < f->probes.n && out->columns; i++) {
        out->columns[i] = n;
        n += f->probe[i].metrics.n;
    }
    out->compared = calloc((size_t)n + 1, sizeof *out->compared);
    return out->columns && out->compared
               ? 0
               : err_set(err, ERR_NO_MEMORY, "", "no memory for %d metrics", n);
}

static int make_tables(struct findings_work *w, struct err *err)
{
    const struct fleet *f = w->f;
    int room = f->classes.n + 1;
    w->table = calloc(room, sizeof *w->table);
    w->in = calloc(room, sizeof *w->in);
    w->newest = calloc(room, sizeof *w->newest);
    w->levels = calloc(room, sizeof *w->levels);
    if (!w->table || !w->in || !w->newest || !w->levels)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d classes", room);
    if (init_compared(w->out, f, err) < 0)
        return -1;
    for (int class = 0; class < f->classes.n; class ++) {
        struct fleet_table *t = &w->table[w->n];
        struct newest *n = &w->newest[w->n];
        if (fleet_class_nodes(f, class) == 0)
            continue;
        if (fleet_table_make(t, f, class, w->out->left_out, err) < 0)
            return -1;
        w->in[w->n++] = t->in;
        if (newest_find(n, &t->in, true, err) < 0)
            return -1;
        w->levels[w->n - 1] = peers_table_of(n, false);
        for (int m = 0; m < t->in.metrics; m++)
            w->out->compared[w->out->columns[t->probe[t->metric_probe[m]]] + t->column[m]] = true;
        w->out->nodes += t->in.nodes;
        w->out->metrics += t->in.metrics;
    }
    w->out->classes = w->n;
    return 0;
}

static double worse_by(bool more, double above)
{
    return 100 * (more ? -expm1(-above) : expm1(above));
}

// All nodes of a class: by what each was judged, and its metric that is worst beside its peers.
static void judge_all(struct findings_work *w, int class)
{
    const struct fleet_table *t = &w->table[class];
    const struct peers_class *c = &w->peers.list[class], *past = &w->past.list[class];
    for (int row = 0; row < c->nodes; row++) {
        w->out->judged[t->node[row]].by_peers = c->node[row].tested > 0;
        w->out->judged[t->node[row]].by_past = past->node[row].tested > 0;
    }
    for (int metric = 0; metric < c->metrics; metric++)
        for (int row = 0; row < c->nodes; row++) {
            struct fleet_judged *one = &w->out->judged[t->node[row]];
            double worse =
                worse_by(t->more[metric], peers_above(c, &w->levels[class], metric, row));
            if (!isnan(worse) && (!one->metric || worse > one->worse)) {
                one->metric = fleet_table_metric(t, w->f, metric);
                one->worse = worse;
            }
        }
}

// A finding has its own worst metric: the one that chance explains least.
static void judge_found(struct fleet_findings *out, const struct fleet_finding *one)
{
    for (int i = 0; i < one->n_nodes; i++) {
        struct fleet_judged *j = &out->judged[one->nodes[i]];
        j->grouped |= one->what == FINDING_GROUP;
        if (one->grade >= j->grade) {
            j->grade = one->grade;
            j->metric = one->metric;
            j->worse = one->more ? -one->percent : one->percent;
        }
    }
}

static int findings_make(struct findings_work *w, struct err *err)
{
    w->out->judged = calloc((size_t)w->f->nodes.n + 1, sizeof *w->out->judged);
    if (!w->out->judged)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d verdicts", w->f->nodes.n);
    for (int i = 0; i < LEFT_OUT_KINDS; i++)
        w->out->left_out[i] = w->f->left_out[i];
    if (make_tables(w, err) < 0 ||
        peers_judge(&w->peers, w->levels, w->n, &outlier_options, err) < 0 ||
        past_judge(&w->past, w->in, w->newest, w->n, err) < 0)
        return -1;
    w->out->tested = w->peers.tested;
    for (int i = 0; i < w->n; i++) {
        int first = w->out->n;
        judge_all(w, i);
        if (describe_class(w, i, err) < 0 || date_class(w, i, first, err) < 0)
            return -1;
    }
    for (int i = 0; i < w->out->n; i++) {
        bool group = w->out->list[i].what == FINDING_GROUP;
        w->out->groups += group;
        w->out->grades[w->out->list[i].grade] += !group;
        judge_found(w->out, &w->out->list[i]);
    }
    if (w->out->n)
        qsort(w->out->list, w->out->n, sizeof *w->out->list, most_serious);
    return 0;
}

static void findings_work_fini(struct findings_work *w)
{
    for (int i = 0; i < w->n; i++) {
        fleet_table_fini(&w->table[i]);
        newest_fini(&w->newest[i]);
    }
    free(w->table);
    free(w->in);
    free(w->newest);
    free(w->levels);
    peers_fini(&w->peers);
    peers_fini(&w->past);
}

int fleet_findings_find(struct fleet_findings *out, const struct fleet *f, struct err *err)
{
    struct fleet_findings made = {0};
    struct findings_work w = {.f = f, .out = &made};
    int rc = findings_make(&w, err);
    findings_work_fini(&w);
    if (rc < 0)
        fleet_findings_fini(&made);
    else
        *out = made;
    return rc;
}

static void finding_fini(struct fleet_finding *one)
{
    free(one->nodes);
    free(one->metrics);
}

void fleet_findings_fini(struct fleet_findings *f)
{
    for (int i = 0; i < f->n; i++)
        finding_fini(&f->list[i]);
    free(f->list);
    free(f->judged);
    free(f->columns);
    free(f->compared);
    *f = (struct fleet_findings){0};
}

bool fleet_findings_compared(const struct fleet_findings *list, const struct fleet *f, int node,
                             const char *metric)
{
    const struct fleet_node *n = &f->node[node];
    for (int k = 0; k < n->n; k++) {
        const struct fleet_series *s = &f->one[n->series[k]];
        const struct fleet_probe *p = &f->probe[s->probe];
        int column = interned_find(&p->metrics, metric), values = 0;
        if (column < 0 || p->class != n->class || !list->compared[list->columns[s->probe] + column])
            continue;
        for (int r = 0, runs = fleet_series_runs(f, s, NULL); r < runs; r++)
            values += !isnan(fleet_run_value(&s->runs[r], column));
        if (values >= RUNS_MIN && !isnan(fleet_run_value(&s->runs[0], column)))
            return true;
    }
    return false;
}

// --- A part of them ------------------------------------------------------------------------------

static bool finding_has_metric(const struct fleet_finding *one, const char *metric)
{
    for (int i = 0; i < one->n_metrics; i++)
        if (strcmp(one->metrics[i], metric) == 0)
            return true;
    return false;
}

static bool finding_is_of(const struct fleet_finding *one, const struct fleet *f,
                          const struct nodeset *where)
{
    for (int i = 0; i < one->n_nodes; i++)
        if (nodeset_has(where, f->nodes.list[one->nodes[i]]))
            return true;
    return false;
}

void fleet_findings_select(struct fleet_findings *list, const struct fleet *f,
                           const struct fleet_findings_filter *filter)
{
    int n = 0;
    for (int i = 0; i < list->n; i++) {
        struct fleet_finding *one = &list->list[i];
        if ((filter->grade && (int)one->grade != filter->grade) ||
            (filter->metric && !finding_has_metric(one, filter->metric)) ||
            (filter->where && !finding_is_of(one, f, filter->where)))
            finding_fini(one);
        else
            list->list[n++] = *one;
    }
    list->n = n;
}

// --- One node ------------------------------------------------------------------------------------

static void place_set(struct fleet_place *out, const struct findings_work *w, int class, int row,
                      int metric)
{
    const struct fleet_table *t = &w->table[class];
    struct peers_place at =
        peers_place_of(&w->peers, class, &w->levels[class], row, metric, &outlier_options);
    bool more = t->more[metric], loss = t->loss[metric];
    int probe = t->metric_probe[metric];
    *out =
        (struct fleet_place){.probe = t->probe[probe],
                             .metric = fleet_table_metric(t, w->f, metric),
                             .unit = fleet_table_unit(t, w->f, metric),
                             .more = more,
                             .runs = w->newest[class].runs[(size_t)metric * t->in.nodes + row],
                             .value = newest_value(at.x, more, loss),
                             .peers = newest_value(at.centre, more, loss),
                             .spread = 100 * at.scale,
                             .limit = newest_value(at.limit, more, loss),
                             .worse = worse_by(more, at.x - at.centre),
                             .z = at.scale > 0 ? (at.x - at.centre) / at.scale : NAN,
                             .percentile = 100 * peers_share_better(&w->peers.list[class],
                                                                    &w->levels[class], metric, row),
                             .n_peers = at.peers};
}

int fleet_places_find(struct fleet_place **list, const struct fleet *f, int node, struct err *err)
{
    struct fleet_findings unused = {0};
    struct findings_work w = {.f = f, .out = &unused};
    int n = 0, rc = make_tables(&w, err);
    if (rc == 0)
        rc = peers_judge(&w.peers, w.levels, w.n, &outlier_options, err);
    for (int class = 0; rc == 0 && class < w.n; class ++)
        for (int row = 0; rc == 0 && row < w.table[class].in.nodes; row++) {
            if (w.table[class].node[row] != node)
                continue;
            *list = calloc((size_t)w.table[class].in.metrics + 1, sizeof **list);
            if (!*list)
                rc = err_set(err, ERR_NO_MEMORY, "", "no memory for the metrics of a node");
            for (; *list && n < w.table[class].in.metrics; n++)
                place_set(&(*list)[n], &w, class, row, n);
        }
    findings_work_fini(&w);
    fleet_findings_fini(&unused);
    return rc < 0 ? -1 : n;
}

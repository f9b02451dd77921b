// SPDX-License-Identifier: Apache-2.0
// The value of a node is that of a ranking of these nodes. Nodes of several classes are compared
// too, by the metrics that they have in common.
#include "analysis/peers/fleet_sides.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/fact_changes.h"
#include "analysis/metrics/metrics.h"
#include "base/cleanup.h"

static int sides_no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory to compare nodes");
}

int fleet_sides_check(int nodes, struct err *err)
{
    return nodes >= SIDES_MIN && nodes <= SIDES_MAX
               ? 0
               : err_set(err, ERR_INVALID, "nodes",
                         "must name %d to %d nodes, which are compared side by side, not %d",
                         SIDES_MIN, SIDES_MAX, nodes);
}

// --- Facts ---------------------------------------------------------------------------------------

static const struct fleet_facts *sides_facts_of(const struct fleet *f, int node, bool is_class)
{
    int at = is_class ? f->node[node].class : f->node[node].config;
    return at < 0 ? NULL : is_class ? &f->class_facts[at] : &f->config_facts[at];
}

bool fleet_sides_facts_known(const struct fleet_sides *s, int node)
{
    const struct fleet_facts *class = sides_facts_of(s->f, node, true);
    const struct fleet_facts *config = sides_facts_of(s->f, node, false);
    return class && class->n && config && config->n;
}

// Whether the nodes whose facts are known differ in it.
static bool sides_read_fact(struct sides_fact *out, const struct fleet_sides *s, const char *name,
                            bool is_class)
{
    const char *first = NULL;
    bool differ = false, any = false;
    *out = (struct sides_fact){.name = name, .is_class = is_class};
    for (int i = 0; i < s->nodes; i++) {
        const struct fleet_facts *of = sides_facts_of(s->f, i, is_class);
        if (!of || !of->n)
            continue;
        out->value[i] = fleet_fact(of, name);
        const char *value = out->value[i] ? out->value[i] : "";
        differ = differ || (any && strcmp(first, value) != 0);
        first = any ? first : value;
        any = true;
    }
    return differ;
}

static bool sides_has_fact(const struct fleet_sides *s, const char *name)
{
    for (int i = 0; i < s->n_facts; i++)
        if (strcmp(s->facts[i].name, name) == 0)
            return true;
    return false;
}

static int sides_fact_order(const void *a, const void *b)
{
    const struct sides_fact *x = a, *y = b;
    int more = changes_weight(y->name) - changes_weight(x->name);
    if (x->is_class != y->is_class)
        return y->is_class - x->is_class;
    return more ? more : strcmp(x->name, y->name);
}

static int sides_find_facts(struct fleet_sides *s, struct err *err)
{
    size_t room = 1;
    for (int i = 0; i < 2 * s->nodes; i++) {
        const struct fleet_facts *of = sides_facts_of(s->f, i / 2, i % 2);
        room += of ? (size_t)of->n : 0;
    }
    s->facts = calloc(room, sizeof *s->facts);
    if (!s->facts)
        return sides_no_memory(err);
    for (int i = 0; i < 2 * s->nodes; i++) {
        const struct fleet_facts *of = sides_facts_of(s->f, i / 2, i % 2);
        for (int k = 0; of && k < of->n; k++)
            if (!sides_has_fact(s, of->name[k]) &&
                sides_read_fact(&s->facts[s->n_facts], s, of->name[k], i % 2))
                s->n_facts++;
    }
    qsort(s->facts, (size_t)s->n_facts, sizeof *s->facts, sides_fact_order);
    return 0;
}

// --- Metrics -------------------------------------------------------------------------------------

struct sides_list {
    struct sides_metric *list; // owned
    const struct fleet_probe **probe;
    int n, room;
};

static void sides_list_fini(struct sides_list *l)
{
    free(l->list);
    free(l->probe);
}

static int sides_list_grow(struct sides_list *l, int more, struct err *err)
{
    size_t room = (size_t)l->room + (size_t)more + 1;
    void *list = realloc(l->list, room * sizeof *l->list);
    l->list = list ? list : l->list;
    void *probe = realloc(l->probe, room * sizeof *l->probe);
    l->probe = probe ? probe : l->probe;
    if (!list || !probe)
        return sides_no_memory(err);
    l->room = (int)room;
    return 0;
}

// Nodes of two classes have two probes of one benchmark.
static bool sides_same_probe(const struct fleet_probe *a, const struct fleet_probe *b)
{
    return a == b || (a->class != b->class && a->metrics_version == b->metrics_version &&
                      strcmp(a->benchmark, b->benchmark) == 0 &&
                      strcmp(a->variant, b->variant) == 0 && strcmp(a->method, b->method) == 0);
}

static struct sides_metric *sides_metric_of(struct sides_list *l, const struct fleet_view *v,
                                            int metric)
{
    const struct fleet_table *t = &v->table;
    const struct fleet_probe *probe = &v->f->probe[t->probe[t->metric_probe[metric]]];
    const char *name = fleet_table_metric(t, v->f, metric);
    for (int i = 0; i < l->n; i++)
        if (sides_same_probe(l->probe[i], probe) && strcmp(l->list[i].metric, name) == 0)
            return &l->list[i];
    l->probe[l->n] = probe;
    l->list[l->n] = (struct sides_metric){.metric = name,
                                          .unit = fleet_table_unit(t, v->f, metric),
                                          .benchmark = probe->benchmark,
                                          .variant = probe->variant,
                                          .more = t->more[metric]};
    return &l->list[l->n++];
}

static int sides_add_view(struct sides_list *l, struct fleet_view *v, struct err *err)
{
    if (sides_list_grow(l, v->table.in.metrics, err) < 0)
        return -1;
    for (int m = 0; m < v->table.in.metrics; m++) {
        struct fleet_ranking r;
        struct sides_metric *of = sides_metric_of(l, v, m);
        if (fleet_ranking_make(&r, v, m, err) < 0)
            return -1;
        for (int i = 0; i < r.n; i++)
            of->of[r.list[i].node] = r.list[i];
        fleet_ranking_fini(&r);
    }
    return 0;
}

// Each class of the nodes once.
static int sides_add_classes(struct sides_list *l, const struct fleet *f, struct err *err)
{
    for (int class = 0; class < f->classes.n; class ++) {
        struct fleet_view v;
        if (!fleet_class_nodes(f, class))
            continue;
        if (fleet_view_open(&v, f, class, err) < 0)
            return -1;
        int rc = sides_add_view(l, &v, err);
        fleet_view_close(&v);
        if (rc < 0)
            return -1;
    }
    return 0;
}

// Nodes that have it.
static int sides_measure(struct sides_metric *m, int nodes)
{
    double least = INFINITY, largest = 0;
    int n = 0;
    for (int i = 0; i < nodes; i++) {
        if (!m->of[i].runs)
            continue;
        least = fmin(least, m->of[i].value);
        largest = fmax(largest, m->of[i].value);
        n++;
    }
    bool loss = metric_is_loss(m->metric);
    m->distance =
        n > 1 && least > 0 ? newest_log(largest, false, loss) - newest_log(least, false, loss) : 0;
    return n;
}

static int sides_metric_order(const void *a, const void *b)
{
    const struct sides_metric *x = a, *y = b;
    int order = (x->distance < y->distance) - (x->distance > y->distance);
    if (!order)
        order = strcmp(x->metric, y->metric);
    if (!order)
        order = strcmp(x->benchmark, y->benchmark);
    return order ? order : strcmp(x->variant, y->variant);
}

// Fewer runs do not say by how much runs differ, and without an interval there is no verdict.
static struct run_pair_value sides_value(const struct fleet_rank *r)
{
    bool enough = r->runs >= RUNS_MIN;
    return (struct run_pair_value){r->value, enough ? r->lo : (double)NAN,
                                   enough ? r->hi : (double)NAN, r->runs - 1};
}

static int sides_judge(struct fleet_sides *s, struct err *err)
{
    size_t room = (size_t)s->n + 1;
    CLEANUP_MEM struct run_pair_metric *list = calloc(room, sizeof *list);
    CLEANUP_MEM struct run_pair_value *base = calloc(room, sizeof *base);
    CLEANUP_MEM struct run_pair_value *target = calloc(room, sizeof *target);
    struct run_pair pair = {.n = s->n, .list = list};
    if (!list || !base || !target)
        return sides_no_memory(err);
    for (int i = 0; i < s->n; i++) {
        const struct sides_metric *m = &s->list[i];
        list[i] = (struct run_pair_metric){.metric = m->metric, .unit = m->unit, .more = m->more};
        base[i] = sides_value(&m->of[0]);
        target[i] = sides_value(&m->of[1]);
    }
    if (run_pair_judge(&pair, base, target, err) < 0)
        return -1;
    for (int i = 0; i < s->n; i++)
        s->list[i].pair = list[i];
    s->slower = pair.slower;
    s->faster = pair.faster;
    return 0;
}

// Whether a metric of one node alone is in the list again, of another node and measured otherwise:
// while a fleet is updated. Nodes of two classes count too.
static bool sides_measured_otherwise(const struct sides_list *l, int metric)
{
    const struct sides_metric *m = &l->list[metric];
    for (int i = 0; i < l->n; i++)
        if (i != metric && !sides_same_probe(l->probe[i], l->probe[metric]) &&
            strcmp(l->list[i].metric, m->metric) == 0 &&
            strcmp(l->list[i].benchmark, m->benchmark) == 0 &&
            strcmp(l->list[i].variant, m->variant) == 0)
            return true;
    return false;
}

static int sides_find_metrics(struct fleet_sides *s, struct err *err)
{
    struct sides_list all CLEANUP(sides_list_fini) = {0};
    if (sides_list_grow(&all, 0, err) < 0 || sides_add_classes(&all, s->f, err) < 0)
        return -1;
    for (int i = 0; i < all.n; i++) {
        bool alone = sides_measure(&all.list[i], s->nodes) < SIDES_MIN;
        s->alone += alone;
        s->otherwise += alone && sides_measured_otherwise(&all, i);
    }
    for (int i = 0; i < all.n; i++)
        if (sides_measure(&all.list[i], s->nodes) >= SIDES_MIN)
            all.list[s->n++] = all.list[i];
    s->list = steal_ptr(&all.list);
    qsort(s->list, (size_t)s->n, sizeof *s->list, sides_metric_order);
    return s->nodes == 2 ? sides_judge(s, err) : 0;
}

// --- Both ----------------------------------------------------------------------------------------

int fleet_sides_make(struct fleet_sides *out, const struct fleet *f, struct err *err)
{
    struct fleet_sides made = {.f = f, .nodes = f->nodes.n};
    if (!f->nodes.n)
        return err_set(err, ERR_NOT_FOUND, "nodes", "there is no run of these nodes");
    if (f->nodes.n == 1)
        return err_set(err, ERR_NOT_FOUND, "nodes",
                       "there are runs of %.64s alone; two nodes or more can be compared",
                       f->nodes.list[0]);
    if (fleet_sides_check(f->nodes.n, err) < 0)
        return -1;
    if (sides_find_facts(&made, err) < 0 || sides_find_metrics(&made, err) < 0) {
        fleet_sides_fini(&made);
        return -1;
    }
    *out = made;
    return 0;
}

void fleet_sides_fini(struct fleet_sides *s)
{
    free(s->facts);
    free(s->list);
    *s = (struct fleet_sides){0};
}

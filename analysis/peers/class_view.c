// SPDX-License-Identifier: Apache-2.0
// All classes are judged, since the limit of one depends on what is found in all of them. Then the
// arrays of the others are let go.
#include "analysis/peers/class_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/peers.h"
#include "base/cleanup.h"
#include "model/nodeset.h"

enum { CLASS_DIGITS = 6 };

static int class_no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for a class of nodes");
}

// ---- Making

static int class_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Too few nodes for kinds and a limit: their centre and spread alone.
static void describe_few(struct class_view_metric *m, const double *x, int nodes, bool more,
                         bool loss, double *scratch)
{
    int n = 0;
    for (int i = 0; i < nodes; i++)
        if (!isnan(x[i]))
            scratch[n++] = x[i];
    if (n == 0)
        return;
    qsort(scratch, n, sizeof *scratch, class_ascending);
    struct spread s = spread_of(scratch, n, 0);
    m->n = 1;
    m->kinds[0] =
        (struct class_view_kind){n, newest_value(s.centre, more, loss), 100 * s.scale, (double)NAN};
}

static void describe_kinds(struct class_view_metric *m, const struct peers *p, int at,
                           const struct peers_table *t, int metric, bool more, bool loss)
{
    static const struct peers_options options = PEERS_DEFAULTS;
    const struct kinds *k = &p->list[at].kinds[metric];
    const double *x = t->x + (size_t)metric * t->nodes;
    m->n = k->n;
    m->largest = kinds_largest(k);
    for (int i = 0; i < k->n; i++)
        m->kinds[i] = (struct class_view_kind){k->list[i].spread.n,
                                               newest_value(k->list[i].spread.centre, more, loss),
                                               100 * k->list[i].spread.scale, (double)NAN};
    for (int row = 0; row < t->nodes; row++) {
        if (isnan(x[row]))
            continue;
        struct class_view_kind *of = &m->kinds[kinds_of(k, x[row])];
        if (isnan(of->limit))
            of->limit =
                newest_value(peers_place_of(p, at, t, row, metric, &options).limit, more, loss);
    }
}

static int describe_metrics(struct class_view *v, const struct peers *p, int at,
                            const struct peers_table *t, struct err *err)
{
    CLEANUP_MEM double *scratch = malloc((t->nodes + 1) * sizeof *scratch);
    v->metric = calloc(t->metrics + 1, sizeof *v->metric);
    if (!scratch || !v->metric)
        return class_no_memory(err);
    for (int m = 0; m < t->metrics; m++) {
        bool more = v->table.more[m], loss = v->table.loss[m];
        if (p->list[at].kinds[m].n == 0)
            describe_few(&v->metric[m], t->x + (size_t)m * t->nodes, t->nodes, more, loss, scratch);
        else
            describe_kinds(&v->metric[m], p, at, t, m, more, loss);
    }
    return 0;
}

static int class_name_order(const void *a, const void *b, void *view)
{
    const struct class_view *v = view;
    return nodeset_name_order(v->f->nodes.list[v->table.node[*(const int *)a]],
                              v->f->nodes.list[v->table.node[*(const int *)b]]);
}

static int most_first(const void *a, const void *b)
{
    const struct class_view_setup *x = a, *y = b;
    return x->nodes != y->nodes ? y->nodes - x->nodes : x->config - y->config;
}

static int find_setups(struct class_view *v, struct err *err)
{
    int n = v->f->configs.n;
    v->setup = calloc(n + 1, sizeof *v->setup);
    if (!v->setup)
        return class_no_memory(err);
    for (int i = 0; i < n; i++)
        v->setup[i].config = i;
    for (int i = 0; i < v->table.in.nodes; i++) {
        int config = v->f->node[v->table.node[i]].config;
        if (config >= 0)
            v->n_setups += v->setup[config].nodes++ == 0;
    }
    qsort(v->setup, n, sizeof *v->setup, most_first);
    return 0;
}

static int find_order(struct class_view *v, struct err *err)
{
    v->order = malloc((v->table.in.nodes + 1) * sizeof *v->order);
    if (!v->order)
        return class_no_memory(err);
    for (int i = 0; i < v->table.in.nodes; i++)
        v->order[i] = i;
    qsort_r(v->order, v->table.in.nodes, sizeof *v->order, class_name_order, v);
    return 0;
}

// The classes with nodes, as they are judged.
struct class_work {
    int n, wanted;
    struct fleet_table *table;
    struct newest *newest;
    struct peers_table *levels;
};

static void class_work_fini(struct class_work *c)
{
    for (int i = 0; i < c->n; i++) {
        fleet_table_fini(&c->table[i]);
        newest_fini(&c->newest[i]);
    }
    free(c->table);
    free(c->newest);
    free(c->levels);
}

static int class_work_fill(struct class_work *c, const struct fleet *f, int class, struct err *err)
{
    size_t room = f->classes.n + 1;
    c->table = calloc(room, sizeof *c->table);
    c->newest = calloc(room, sizeof *c->newest);
    c->levels = calloc(room, sizeof *c->levels);
    if (!c->table || !c->newest || !c->levels)
        return class_no_memory(err);
    for (int i = 0; i < f->classes.n; i++) {
        if (fleet_class_nodes(f, i) == 0)
            continue;
        if (i == class)
            c->wanted = c->n;
        struct fleet_table *t = &c->table[c->n];
        struct newest *n = &c->newest[c->n++];
        if (fleet_table_make(t, f, i, NULL, err) < 0 || newest_find(n, &t->in, false, err) < 0)
            return -1;
        c->levels[c->n - 1] = peers_table_of(n, false);
        c->levels[c->n - 1].scatter = NULL; // the limit of a kind, not of one node
    }
    return 0;
}

int class_view_make(struct class_view *out, const struct fleet *f, int class, struct err *err)
{
    static const struct peers_options options = PEERS_DEFAULTS;
    struct class_work c CLEANUP(class_work_fini) = {0};
    struct class_view made = {.f = f};
    struct peers p = {0};
    if (class_work_fill(&c, f, class, err) < 0 || peers_judge(&p, c.levels, c.n, &options, err) < 0)
        return -1;
    made.table = c.table[c.wanted];
    made.newest = c.newest[c.wanted];
    int rc = describe_metrics(&made, &p, c.wanted, &c.levels[c.wanted], err);
    peers_fini(&p);
    c.table[c.wanted] = (struct fleet_table){0};
    c.newest[c.wanted] = (struct newest){0};
    if (rc < 0 || find_order(&made, err) < 0 || find_setups(&made, err) < 0) {
        class_view_fini(&made);
        return -1;
    }
    *out = made;
    return 0;
}

void class_view_fini(struct class_view *v)
{
    fleet_table_fini(&v->table);
    newest_fini(&v->newest);
    free(v->metric);
    free(v->order);
    free(v->setup);
    *v = (struct class_view){0};
}

// ---- JSON

static void write_facts_of(const struct fleet_facts *facts, struct jsonw *w)
{
    if (!facts->name) {
        jsonw_null(w, "facts");
        return;
    }
    jsonw_object(w, "facts");
    for (int i = 0; i < facts->n; i++)
        jsonw_text(w, facts->name[i], facts->value[i]);
    jsonw_end(w);
}

// Names of the rows with this set-up (-1: of all), folded.
static void write_folded(const struct class_view *v, int config, struct jsonw *w)
{
    CLEANUP_NODESET struct nodeset names = {0};
    CLEANUP_BUF struct buf text = BUF_INIT;
    for (int i = 0; i < v->table.in.nodes; i++) {
        int node = v->table.node[v->order[i]];
        if ((config < 0 || v->f->node[node].config == config) &&
            nodeset_add(&names, v->f->nodes.list[node], NULL) < 0)
            break;
    }
    nodeset_sort(&names);
    nodeset_fold(&names, &text);
    jsonw_text(w, "folded", text.len <= CLASS_NAMES_MAX ? buf_text(&text) : NULL);
}

// Whether the set-ups that are written have this fact with different values.
static bool fact_differs(const struct class_view *v, const char *name)
{
    const char *first = NULL;
    bool seen = false;
    for (int i = 0; i < v->n_setups && i < CLASS_SETUPS_MAX; i++) {
        const struct fleet_facts *facts = &v->f->config_facts[v->setup[i].config];
        if (!facts->name)
            continue;
        const char *has = fleet_fact(facts, name);
        if (seen && (!has != !first || (has && strcmp(has, first) != 0)))
            return true;
        first = has;
        seen = true;
    }
    return false;
}

static void write_setups(const struct class_view *v, struct jsonw *w)
{
    int most = v->n_setups < CLASS_SETUPS_MAX ? v->n_setups : CLASS_SETUPS_MAX;
    jsonw_array(w, "setups");
    for (int i = 0; i < most; i++) {
        const struct class_view_setup *s = &v->setup[i];
        const struct fleet_facts *facts = &v->f->config_facts[s->config];
        jsonw_object(w, NULL);
        jsonw_text(w, "config", v->f->configs.list[s->config]);
        jsonw_i64(w, "nodes", s->nodes);
        write_folded(v, s->config, w);
        jsonw_object(w, "differing_facts");
        for (int k = 0; k < facts->n; k++)
            if (fact_differs(v, facts->name[k]))
                jsonw_text(w, facts->name[k], facts->value[k]);
        jsonw_end(w);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_i64(w, "setups_left_out", v->n_setups - most);
}

static void write_class_kind(const struct class_view_kind *k, struct jsonw *w)
{
    jsonw_i64(w, "nodes", k->nodes);
    jsonw_digits(w, "median", k->median, CLASS_DIGITS);
    jsonw_fixed(w, "mad_percent", k->spread, 3);
    jsonw_digits(w, "limit", k->limit, CLASS_DIGITS);
}

static void write_class_values(const struct class_view *v, int metric, struct jsonw *w)
{
    const double *now = v->newest.now + (size_t)metric * v->newest.nodes;
    jsonw_array(w, "values");
    for (int i = 0; i < v->table.in.nodes; i++) {
        double x = now[v->order[i]];
        jsonw_digits(w, NULL,
                     isnan(x) ? x : newest_value(x, v->table.more[metric], v->table.loss[metric]),
                     CLASS_DIGITS);
    }
    jsonw_end(w);
}

static void write_class_metric(const struct class_view *v, int metric, bool values, struct jsonw *w)
{
    const struct class_view_metric *m = &v->metric[metric];
    const struct fleet_probe *p = &v->f->probe[v->table.probe[v->table.metric_probe[metric]]];
    const struct class_view_kind none = {0, (double)NAN, (double)NAN, (double)NAN};
    jsonw_object(w, NULL);
    jsonw_text(w, "metric", fleet_table_metric(&v->table, v->f, metric));
    jsonw_text(w, "unit", fleet_table_unit(&v->table, v->f, metric));
    jsonw_text(w, "better", v->table.more[metric] ? "more" : "less");
    jsonw_bool(w, "loss", v->table.loss[metric]);
    jsonw_text(w, "benchmark", p->benchmark);
    jsonw_text(w, "variant", p->variant);
    write_class_kind(m->n ? &m->kinds[m->largest] : &none, w);
    jsonw_array(w, "kinds");
    for (int i = 0; i < m->n && m->n > 1; i++) {
        jsonw_object(w, NULL);
        write_class_kind(&m->kinds[i], w);
        jsonw_end(w);
    }
    jsonw_end(w);
    if (values)
        write_class_values(v, metric, w);
    else
        jsonw_null(w, "values");
    jsonw_end(w);
}

void class_view_write_json(const struct class_view *v, const char *metric, struct jsonw *w)
{
    int nodes = v->table.in.nodes, left_out = 0;
    int64_t written = 0;
    jsonw_text(w, "class", v->f->classes.list[v->table.class]);
    jsonw_i64(w, "window_days", v->f->o.window_days);
    write_facts_of(&v->f->class_facts[v->table.class], w);
    jsonw_i64(w, "nodes", nodes);
    write_folded(v, -1, w);
    write_setups(v, w);
    jsonw_array(w, "names");
    for (int i = 0; i < nodes; i++)
        jsonw_text(w, NULL, v->f->nodes.list[v->table.node[v->order[i]]]);
    jsonw_end(w);
    jsonw_array(w, "metrics");
    for (int m = 0; m < v->table.in.metrics; m++) {
        if (metric && strcmp(metric, fleet_table_metric(&v->table, v->f, m)) != 0)
            continue;
        bool fits = written + nodes <= CLASS_VALUES_MAX;
        written += fits ? nodes : 0;
        left_out += !fits;
        write_class_metric(v, m, fits, w);
    }
    jsonw_end(w);
    jsonw_i64(w, "values_left_out", left_out);
}

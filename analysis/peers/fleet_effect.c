// SPDX-License-Identifier: Apache-2.0
// A node's set-ups are read from its runs in order of time. A node that changed once, from the one
// value to the other, is treated. One that had the first value all the time is a control.
#include "analysis/peers/fleet_effect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/stats/distributions.h"
#include "base/cleanup.h"

#define EFFECT_DAY_MS INT64_C(86400000)
#define EFFECT_Q 0.05

// A node's way from one value of the fact to another.
struct passage {
    const char *first; // value at the oldest run; NULL: none
    const char *from, *to;
    int config_from, config_to;
    int64_t at;  // first run with `to`
    int changes; // of the value
    bool known;  // of some run
};

struct moment {
    int64_t ms;
    int config;
};

struct effect_search {
    const struct fleet *f;
    const char *fact;
    struct passage *passage; // [node]
    int64_t *changed;        // [node]: as effect_input wants it
    int *class;              // [node]
};

static int effect_no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for the changes of so many nodes");
}

static bool same_value(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int oldest_first(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    return (x->ms > y->ms) - (x->ms < y->ms);
}

static void node_passage(struct effect_search *s, int node, struct moment *list)
{
    const struct fleet_node *of = &s->f->node[node];
    struct passage *p = &s->passage[node];
    const char *value = NULL;
    int n = 0, last = -1;
    for (int k = 0; k < of->n; k++) {
        const struct fleet_series *series = &s->f->one[of->series[k]];
        for (int r = 0; r < series->n; r++)
            if (series->runs[r].config >= 0 && s->f->config_facts[series->runs[r].config].name)
                list[n++] = (struct moment){series->runs[r].measured_ms, series->runs[r].config};
    }
    qsort(list, n, sizeof *list, oldest_first);
    for (int i = 0; i < n; i++) {
        const char *has = fleet_fact(&s->f->config_facts[list[i].config], s->fact);
        if (!p->known) {
            p->first = has;
        } else if (!same_value(has, value)) {
            p->changes++;
            p->from = value;
            p->to = has;
            p->config_from = last;
            p->config_to = list[i].config;
            p->at = list[i].ms;
        }
        p->known = true;
        value = has;
        last = list[i].config;
    }
}

static int find_passages(struct effect_search *s, struct err *err)
{
    CLEANUP_MEM struct moment *list = malloc((s->f->runs + 1) * sizeof *list);
    if (!list)
        return effect_no_memory(err);
    for (int i = 0; i < s->f->nodes.n; i++)
        node_passage(s, i, list);
    return 0;
}

static bool wanted(const struct passage *p, const char *from, const char *to)
{
    return p->changes == 1 && (!from || same_value(p->from, from)) &&
           (!to || same_value(p->to, to));
}

// Where no node had the change that is wanted: the one that most nodes had.
static int say_changes(const struct effect_search *s, const struct fleet_change *most,
                       struct err *err)
{
    if (fleet_fact_check(s->f, s->fact, err) < 0)
        return -1;
    if (!most->nodes)
        return err_set(err, ERR_NOT_FOUND, "fact", "%.64s changed on no node", s->fact);
    return err_set(err, ERR_NOT_FOUND, "fact",
                   "%.64s changed on no node from and to these values; on %d it changed from "
                   "\"%.40s\" to \"%.40s\"",
                   s->fact, most->nodes, most->from ? most->from : "", most->to ? most->to : "");
}

// The change that most nodes had, of those that are wanted. nodes 0: none did.
static int choose_change(struct effect_search *s, const char *from, const char *to,
                         struct fleet_change *out, struct err *err)
{
    struct interned pairs = {0};
    CLEANUP_MEM int *count = calloc(s->f->nodes.n + 1, sizeof *count);
    *out = (struct fleet_change){.fact = s->fact};
    if (!count)
        return effect_no_memory(err);
    for (int i = 0; i < s->f->nodes.n; i++) {
        const struct passage *p = &s->passage[i];
        char key[2 * FACT_VALUE_MAX + 8];
        if (!wanted(p, from, to))
            continue;
        snprintf(key, sizeof key, "%s\n%s", p->from ? p->from : "", p->to ? p->to : "");
        int at = interned_add(&pairs, key, err);
        if (at < 0) {
            interned_fini(&pairs);
            return -1;
        }
        if (++count[at] > out->nodes)
            *out = (struct fleet_change){s->fact, p->from, p->to, count[at]};
    }
    interned_fini(&pairs);
    return 0;
}

static int find_change(struct effect_search *s, const char *from, const char *to,
                       struct fleet_change *out, struct err *err)
{
    struct fleet_change most;
    if (choose_change(s, from, to, out, err) < 0)
        return -1;
    if (out->nodes)
        return 0;
    return choose_change(s, NULL, NULL, &most, err) < 0 ? -1 : say_changes(s, &most, err);
}

static void mark_nodes(struct effect_search *s, struct fleet_effect *out)
{
    for (int i = 0; i < s->f->nodes.n; i++) {
        const struct passage *p = &s->passage[i];
        bool treated = p->changes == 1 && same_value(p->from, out->change.from) &&
                       same_value(p->to, out->change.to);
        bool control = p->known && p->changes == 0 && same_value(p->first, out->change.from);
        s->changed[i] = treated ? p->at : control ? 0 : -1;
        s->class[i] = s->f->node[i].class;
        out->untouched += control;
        if (!treated)
            continue;
        out->first = out->first == 0 || p->at < out->first ? p->at : out->first;
        out->last = p->at > out->last ? p->at : out->last;
    }
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int count_days(const struct effect_search *s, struct fleet_effect *out, struct err *err)
{
    CLEANUP_MEM int64_t *day = malloc((s->f->nodes.n + 1) * sizeof *day);
    int n = 0;
    if (!day)
        return effect_no_memory(err);
    for (int i = 0; i < s->f->nodes.n; i++)
        if (s->changed[i] > 0)
            day[n++] = s->changed[i] / EFFECT_DAY_MS;
    qsort(day, n, sizeof *day, by_time);
    for (int i = 0; i < n; i++)
        out->days += i == 0 || day[i] != day[i - 1];
    return 0;
}

// --- What changed besides ----------------------------------------------------------------------

struct together {
    struct interned keys;
    struct fleet_change *list;
    int room;
};

static int together_add(struct together *t, const char *fact, const char *from, const char *to,
                        struct err *err)
{
    char key[FACT_NAME_MAX + 2 * FACT_VALUE_MAX + 8];
    int before = t->keys.n;
    snprintf(key, sizeof key, "%s\n%s\n%s", fact, from ? from : "", to ? to : "");
    if (before == t->room) {
        int room = t->room ? 2 * t->room : 32;
        struct fleet_change *list = realloc(t->list, room * sizeof *list);
        if (!list)
            return effect_no_memory(err);
        t->list = list;
        t->room = room;
    }
    int at = interned_add(&t->keys, key, err);
    if (at < 0)
        return -1;
    if (at == before)
        t->list[at] = (struct fleet_change){fact, from, to, 0};
    t->list[at].nodes++;
    return 0;
}

static int add_changes_of(struct together *t, const struct effect_search *s,
                          const struct passage *p, struct err *err)
{
    const struct fleet_facts *was = &s->f->config_facts[p->config_from];
    const struct fleet_facts *is = &s->f->config_facts[p->config_to];
    for (int i = 0; i < is->n; i++) {
        const char *before = fleet_fact(was, is->name[i]);
        if (strcmp(is->name[i], s->fact) != 0 && !same_value(before, is->value[i]) &&
            together_add(t, is->name[i], before, is->value[i], err) < 0)
            return -1;
    }
    return 0;
}

static int most_nodes(const void *a, const void *b)
{
    const struct fleet_change *x = a, *y = b;
    return x->nodes != y->nodes ? y->nodes - x->nodes : strcmp(x->fact, y->fact);
}

// Those that came with at least half of the changes.
static int find_together(const struct effect_search *s, struct fleet_effect *out, struct err *err)
{
    struct together t = {0};
    int rc = 0;
    for (int i = 0; i < s->f->nodes.n && rc == 0; i++)
        if (s->changed[i] > 0)
            rc = add_changes_of(&t, s, &s->passage[i], err);
    if (t.keys.n)
        qsort(t.list, t.keys.n, sizeof *t.list, most_nodes);
    for (int i = 0; i < t.keys.n && out->n_together < FLEET_TOGETHER_MAX && rc == 0; i++)
        if (2 * t.list[i].nodes >= out->change.nodes)
            out->together[out->n_together++] = t.list[i];
    interned_fini(&t.keys);
    free(t.list);
    return rc;
}

// --- Metrics -----------------------------------------------------------------------------------

enum { PROBE_KEY_ROOM = 480 };

// Probes of several classes with equal keys are one measurement.
static void probe_key(const struct fleet_probe *p, char *key, size_t room)
{
    snprintf(key, room, "%d\n%s\n%s\n%s", p->metrics_version, p->benchmark, p->method, p->variant);
}

// One measurement's runs. Times are the same for all of its metrics, and are filled once.
struct effect_arrays {
    bool *probe; // [probe]: of the measurement
    float *v;
    int64_t *at;
    int runs;
    int64_t reach;
};

static bool is_of(const struct effect_search *s, const struct effect_arrays *a,
                  const struct fleet_series *one)
{
    return a->probe[one->probe] && s->f->node[one->node].class == s->f->probe[one->probe].class;
}

static void fill_times(const struct effect_search *s, struct effect_arrays *a, const char *key)
{
    const struct fleet *f = s->f;
    size_t cells = (size_t)f->nodes.n * a->runs;
    char other[PROBE_KEY_ROOM];
    for (int p = 0; p < f->probes.n; p++) {
        probe_key(&f->probe[p], other, sizeof other);
        a->probe[p] = strcmp(other, key) == 0;
    }
    for (size_t i = 0; i < cells; i++)
        a->at[i] = -1;
    for (int i = 0; i < f->n_series; i++) {
        const struct fleet_series *one = &f->one[i];
        int64_t *at = a->at + (size_t)one->node * a->runs;
        int runs = is_of(s, a, one) ? one->n : 0;
        for (int r = 0; r < runs; r++)
            at[r] = one->runs[r].measured_ms;
    }
}

static void fill_values(const struct effect_search *s, struct effect_arrays *a, const char *metric)
{
    const struct fleet *f = s->f;
    size_t cells = (size_t)f->nodes.n * a->runs;
    float loss = metric_is_loss(metric); // as logs of it are taken
    int column = -1;
    for (size_t i = 0; i < cells; i++)
        a->v[i] = NAN;
    for (int i = 0, probe = -1; i < f->n_series; i++) {
        const struct fleet_series *one = &f->one[i];
        float *v = a->v + (size_t)one->node * a->runs;
        if (one->probe != probe)
            column = interned_find(&f->probe[one->probe].metrics, metric);
        probe = one->probe;
        int runs = column >= 0 && is_of(s, a, one) ? one->n : 0;
        fleet_series_numbers(one, column, runs, v);
        for (int r = 0; r < runs; r++)
            v[r] += loss;
    }
}

static int add_metric_effect(const struct effect_search *s, struct effect_arrays *a, int probe,
                             int column, struct fleet_effect *out, struct err *err)
{
    const struct fleet_probe *p = &s->f->probe[probe];
    struct fleet_effect_metric *more = realloc(out->list, (out->n + 1) * sizeof *more);
    if (!more)
        return effect_no_memory(err);
    out->list = more;
    struct fleet_effect_metric *m = &more[out->n];
    *m = (struct fleet_effect_metric){.metric = p->metrics.list[column],
                                      .unit = p->units[column],
                                      .benchmark = p->benchmark,
                                      .variant = p->variant,
                                      .more = metric_more_is_better(p->units[column]),
                                      .q = NAN};
    fill_values(s, a, m->metric);
    const struct effect_input in = {s->f->nodes.n, a->runs,    a->v,     a->at,
                                    s->class,      s->changed, a->reach, m->more};
    if (effect_find(&m->effect, &in, err) < 0)
        return -1;
    out->n += m->effect.verdict != EFFECT_FEW_RUNS; // no node that changed has it
    return 0;
}

// [metric of the probe]: values of nodes that changed. NULL: no memory.
static int *values_of_changed(const struct effect_search *s, int probe, struct err *err)
{
    const struct fleet *f = s->f;
    int *values = calloc((size_t)f->probe[probe].metrics.n + 1, sizeof *values);
    if (!values)
        effect_no_memory(err);
    for (int i = 0; i < f->n_series && values; i++)
        if (f->one[i].probe == probe && s->changed[f->one[i].node] > 0)
            fleet_series_count(&f->one[i], values);
    return values;
}

// The metrics of the measurement that `probe` is the first one of that counts.
static int add_measurement(const struct effect_search *s, struct effect_arrays *a, int probe,
                           const char *key, struct fleet_effect *out, struct err *err)
{
    const struct fleet *f = s->f;
    struct interned names = {0};
    int rc = 0;
    fill_times(s, a, key);
    if (effect_reach(&a->reach, a->at, f->nodes.n, a->runs, err) < 0)
        return -1;
    for (int p = probe; p < f->probes.n && rc == 0; p++) {
        CLEANUP_MEM int *values = a->probe[p] ? values_of_changed(s, p, err) : NULL;
        rc = a->probe[p] && !values ? -1 : 0;
        for (int m = 0; values && m < f->probe[p].metrics.n && rc == 0; m++) {
            if (!values[m])
                continue;
            int before = names.n, at = interned_add(&names, f->probe[p].metrics.list[m], err);
            if (at < 0)
                rc = -1;
            else if (at == before)
                rc = add_metric_effect(s, a, p, m, out, err);
        }
    }
    interned_fini(&names);
    return rc;
}

// Whether some node that changed has enough runs of the probe. A measurement without one says
// nothing, and a single node may bring thousands of them.
static void find_probes_of_changed(const struct effect_search *s, bool *counts)
{
    for (int i = 0; i < s->f->n_series; i++) {
        const struct fleet_series *one = &s->f->one[i];
        counts[one->probe] |= s->changed[one->node] > 0 && one->n >= 2 * EFFECT_RUNS_MIN;
    }
}

static int find_metrics_of(const struct effect_search *s, struct effect_arrays *a,
                           struct fleet_effect *out, struct err *err)
{
    struct interned keys = {0};
    char key[PROBE_KEY_ROOM];
    int rc = 0;
    CLEANUP_MEM bool *counts = calloc(s->f->probes.n + 1, sizeof *counts);
    if (!counts)
        return effect_no_memory(err);
    find_probes_of_changed(s, counts);
    for (int p = 0; p < s->f->probes.n && rc == 0; p++) {
        if (!counts[p])
            continue;
        int before = keys.n;
        probe_key(&s->f->probe[p], key, sizeof key);
        int at = interned_add(&keys, key, err);
        if (at < 0)
            rc = -1;
        else if (at == before)
            rc = add_measurement(s, a, p, key, out, err);
    }
    interned_fini(&keys);
    return rc;
}

static int verdict_order(enum effect_verdict v)
{
    return v == EFFECT_WORSE ? 0 : v == EFFECT_BETTER ? 1 : 2;
}

static int worse_first(const void *a, const void *b)
{
    const struct fleet_effect_metric *x = a, *y = b;
    int one = verdict_order(x->effect.verdict), other = verdict_order(y->effect.verdict);
    if (one != other)
        return one - other;
    double p = isnan(x->effect.p) ? 2 : x->effect.p, q = isnan(y->effect.p) ? 2 : y->effect.p;
    return p != q ? (p > q) - (p < q) : strcmp(x->metric, y->metric);
}

// Of thirty metrics one differs by chance.
static int judge_metrics(struct fleet_effect *out, struct err *err)
{
    CLEANUP_MEM double *q = malloc((out->n + 1) * sizeof *q);
    CLEANUP_MEM int *order = malloc((out->n + 1) * sizeof *order);
    if (!q || !order)
        return effect_no_memory(err);
    for (int i = 0; i < out->n; i++)
        q[i] = out->list[i].effect.p;
    dist_fdr(q, out->n, order);
    for (int i = 0; i < out->n; i++) {
        struct effect *e = &out->list[i].effect;
        out->list[i].q = q[i];
        if (!(q[i] <= EFFECT_Q) && (e->verdict == EFFECT_WORSE || e->verdict == EFFECT_BETTER))
            e->verdict = EFFECT_NO;
    }
    if (out->n)
        qsort(out->list, out->n, sizeof *out->list, worse_first);
    return 0;
}

static int longest_series(const struct fleet *f)
{
    int most = 0;
    for (int i = 0; i < f->n_series; i++)
        most = f->one[i].n > most ? f->one[i].n : most;
    return most;
}

static int effect_make(struct effect_search *s, const char *from, const char *to,
                       struct fleet_effect *out, struct err *err)
{
    int runs = longest_series(s->f);
    size_t cells = (size_t)s->f->nodes.n * runs + 1;
    CLEANUP_MEM float *v = malloc(cells * sizeof *v);
    CLEANUP_MEM int64_t *at = malloc(cells * sizeof *at);
    CLEANUP_MEM bool *probe = calloc(s->f->probes.n + 1, sizeof *probe);
    struct effect_arrays a = {.probe = probe, .v = v, .at = at, .runs = runs};
    if (!v || !at || !probe)
        return effect_no_memory(err);
    if (find_passages(s, err) < 0 || find_change(s, from, to, &out->change, err) < 0)
        return -1;
    mark_nodes(s, out);
    if (count_days(s, out, err) < 0 || find_together(s, out, err) < 0 ||
        find_metrics_of(s, &a, out, err) < 0)
        return -1;
    return judge_metrics(out, err);
}

int fleet_effect_find(struct fleet_effect *out, const struct fleet *f, const char *fact,
                      const char *from, const char *to, struct err *err)
{
    size_t n = f->nodes.n + 1;
    CLEANUP_MEM struct passage *passage = calloc(n, sizeof *passage);
    CLEANUP_MEM int64_t *changed = calloc(n, sizeof *changed);
    CLEANUP_MEM int *class = calloc(n, sizeof *class);
    struct effect_search s = {f, fact, passage, changed, class};
    struct fleet_effect made = {0};
    if (!passage || !changed || !class)
        return effect_no_memory(err);
    if (effect_make(&s, from, to, &made, err) < 0) {
        fleet_effect_fini(&made);
        return -1;
    }
    *out = made;
    return 0;
}

void fleet_effect_fini(struct fleet_effect *e)
{
    free(e->list);
    *e = (struct fleet_effect){0};
}

// SPDX-License-Identifier: Apache-2.0
// Nodes, probes, classes and set-ups are numbers; a run is its values, and the list of those of its
// probe's metrics that it has. A page names its metrics once, so their columns are looked up once a
// page and probe.
#include "analysis/peers/fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "base/cleanup.h"
#include "base/suggest.h"

const struct fleet_reason fleet_reasons[LEFT_OUT_KINDS] = {
    [LEFT_OUT_STATE] = {"not_succeeded", "run did not succeed", "runs did not succeed"},
    [LEFT_OUT_DISTURBED] = {"disturbed", "run was disturbed", "runs were disturbed"},
    [LEFT_OUT_FORCED] = {"forced", "run was forced", "runs were forced"},
    [LEFT_OUT_CLASS] = {"class_unknown", "run of unknown hardware", "runs of unknown hardware"},
    [LEFT_OUT_METRICS] = {"no_metrics", "run without metrics", "runs without metrics"},
    [LEFT_OUT_DATE] = {"no_date", "run without a date", "runs without a date"},
    [LEFT_OUT_REPEATED] = {"repeated", "run was there already", "runs were there already"},
    [LEFT_OUT_CROWDED] = {"too_many_values", "run has more values than its node has room",
                          "runs have more values than their nodes have room"},
    [LEFT_OUT_OLD] = {"old", "run is too old", "runs are too old"},
    [LEFT_OUT_SETUP] = {"before_setup", "run is from before a change of the set-up",
                        "runs are from before a change of the set-up"},
    [LEFT_OUT_RUNS] = {"too_few_runs", "node has fewer than 3 runs",
                       "nodes have fewer than 3 runs"},
    [LEFT_OUT_SMALL] = {"class_too_small", "node is in a class of fewer than 8 nodes",
                        "nodes are in a class of fewer than 8 nodes"},
    [LEFT_OUT_ROOM] = {"no_room", "metric of few nodes has no room",
                       "metrics of few nodes have no room"},
};

enum { METRIC_ROOM = 96 }; // bytes of a metric's name and unit, in all that has it

static int fleet_no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for the runs of so many nodes");
}

struct fleet *fleet_new(const struct fleet_options *o, struct err *err)
{
    struct fleet *f = calloc(1, sizeof *f);
    if (!f)
        fleet_no_memory(err);
    else
        f->o = *o;
    return f;
}

static void facts_free_list(struct fleet_facts *list, int n)
{
    for (int i = 0; i < n && list; i++)
        free(list[i].name);
    free(list);
}

static void fleet_free(struct fleet *f)
{
    for (int i = 0; i < f->n_series; i++) {
        for (int r = 0; r < f->one[i].n; r++)
            free(f->one[i].runs[r].v);
        free(f->one[i].runs);
        free(f->one[i].lo);
        free(f->one[i].hi);
    }
    for (int i = 0; i < f->probes.n; i++) {
        interned_fini(&f->probe[i].metrics);
        free(f->probe[i].units);
        columns_lists_fini(&f->probe[i].lists);
    }
    for (int i = 0; i < f->nodes.n; i++)
        free(f->node[i].series);
    facts_free_list(f->class_facts, f->classes.n);
    facts_free_list(f->config_facts, f->configs.n);
    interned_fini(&f->nodes);
    interned_fini(&f->probes);
    interned_fini(&f->classes);
    interned_fini(&f->configs);
    free(f->node);
    free(f->probe);
    free(f->one);
    columns_map_fini(&f->map);
    free(f);
}

void fleet_cleanup(struct fleet **f)
{
    if (*f)
        fleet_free(*f);
}

// Room for one more element behind `n`, zeroed. `list` is the address of the array's pointer.
static int fleet_room(void *list, int *room, int n, size_t size, struct err *err)
{
    void *old, *grown;
    memcpy(&old, list, sizeof old);
    if (n < *room)
        return 0;
    int more = *room ? 2 * *room : 2; // most lists are a node's own, and short
    if (!(grown = realloc(old, more * size)))
        return fleet_no_memory(err);
    memset((char *)grown + *room * size, 0, (more - *room) * size);
    memcpy(list, &grown, sizeof grown);
    *room = more;
    return 0;
}

// The room comes first: a name without its element never exists.
static int fleet_node_number(struct fleet *f, const char *name, struct err *err)
{
    int before = f->nodes.n;
    if (fleet_room(&f->node, &f->node_room, before, sizeof *f->node, err) < 0)
        return -1;
    int at = interned_add(&f->nodes, name, err);
    if (at == before)
        f->node[at] = (struct fleet_node){.class = -1, .config = -1};
    return at;
}

static int class_number(struct fleet *f, const char *hash, struct err *err)
{
    if (fleet_room(&f->class_facts, &f->class_room, f->classes.n, sizeof *f->class_facts, err) < 0)
        return -1;
    return interned_add(&f->classes, hash, err);
}

static int config_number(struct fleet *f, const char *hash, struct err *err)
{
    if (fleet_room(&f->config_facts, &f->config_room, f->configs.n, sizeof *f->config_facts, err) <
        0)
        return -1;
    return interned_add(&f->configs, hash, err);
}

static int probe_number(struct fleet *f, const struct summary *s, int class, struct err *err)
{
    char key[400];
    int before = f->probes.n;
    snprintf(key, sizeof key, "%d %d %s %s %s", class, s->metrics_version, s->benchmark, s->method,
             s->variant);
    if (fleet_room(&f->probe, &f->probe_room, before, sizeof *f->probe, err) < 0)
        return -1;
    int at = interned_add(&f->probes, key, err);
    if (at == before) {
        struct fleet_probe *p = &f->probe[at];
        *p = (struct fleet_probe){.class = class, .metrics_version = s->metrics_version};
        snprintf(p->benchmark, sizeof p->benchmark, "%s", s->benchmark);
        snprintf(p->variant, sizeof p->variant, "%s", s->variant);
        snprintf(p->method, sizeof p->method, "%s", s->method);
    }
    return at;
}

// A node has a few series, and is looked through: names of all would be a large part of what a node
// takes.
static int series_number(struct fleet *f, int node, int probe, struct err *err)
{
    struct fleet_node *of = &f->node[node];
    int at = f->n_series;
    for (int i = 0; i < of->n; i++)
        if (f->one[of->series[i]].probe == probe)
            return of->series[i];
    if (fleet_room(&f->one, &f->series_room, at, sizeof *f->one, err) < 0 ||
        fleet_room(&of->series, &of->room, of->n, sizeof *of->series, err) < 0)
        return -1;
    f->one[at] = (struct fleet_series){.node = node, .probe = probe};
    of->series[of->n++] = at;
    return f->n_series++;
}

// What a run belongs to, as numbers.
struct run_numbers {
    int node, class, probe, config, series;
};

// Bytes that the node may still take.
static int64_t room_left(const struct fleet *f, const struct fleet_node *n)
{
    enum { RUNS = NEWEST_RUNS + BEFORE_RUNS };
    const bool is_long = f->o.runs_max > RUNS;
    const int64_t own = is_long ? (int64_t)NODE_ROOM / RUNS * f->o.runs_max : NODE_ROOM;
    const int64_t all = (is_long ? 2 : 1) * (int64_t)RUNS_ROOM - f->taken;
    const int64_t share = SHARE_ROOM - n->taken, others = all > share ? all : share;
    return own - n->taken < others ? own - n->taken : others;
}

static void node_takes(struct fleet *f, int node, int64_t bytes)
{
    f->node[node].taken += bytes;
    f->taken += bytes;
}

// Instead of a column.
enum {
    OTHER_UNIT = -1, // it is not the metric that it is named
    NO_ROOM = -2,    // the node has none for one more
    NO_MEMORY = -3,
};

// Which way is worse depends on the unit, so a node does not choose that of a known metric.
static const char *unit_of(const struct summary_metric *m)
{
    const struct metric_rule *known = metric_rule_find(m->name, NULL);
    return known ? known->unit : m->unit;
}

// The column of a metric, or why there is none.
static int column_number(struct fleet *f, const struct run_numbers *numbers,
                         const struct summary_metric *of, struct err *err)
{
    struct fleet_probe *p = &f->probe[numbers->probe];
    struct fleet_series *s = &f->one[numbers->series];
    const struct fleet_node *n = &f->node[numbers->node];
    const int before = p->metrics.n;
    int at = interned_find(&p->metrics, of->name);
    if (at >= 0)
        return strcmp(p->units[at], of->unit) == 0 ? at : OTHER_UNIT;
    if (strcmp(unit_of(of), of->unit) != 0)
        return OTHER_UNIT;
    if (s->named == METRICS_MAX || room_left(f, n) < METRIC_ROOM)
        return NO_ROOM;
    if (fleet_room(&p->units, &p->units_room, before, sizeof *p->units, err) < 0 ||
        interned_add(&p->metrics, of->name, err) < 0)
        return NO_MEMORY;
    snprintf(p->units[before], sizeof p->units[before], "%s", of->unit);
    node_takes(f, numbers->node, METRIC_ROOM);
    s->named++;
    return before;
}

// Columns of the probe for the metrics of a layout. Returns 1: the node has no room for them.
static int map_layout(struct fleet *f, const struct summary_page *page, int layout,
                      const struct run_numbers *of, struct err *err)
{
    const struct summary_layout *l = &page->layouts[layout];
    struct fleet_probe *p = &f->probe[of->probe];
    int added;
    if (f->map_page == page && f->map_layout == layout && f->map_probe == of->probe)
        return 0;
    f->map_page = NULL;
    if (columns_map_room(&f->map, l->n, err) < 0)
        return -1;
    for (int i = 0; i < l->n; i++) {
        f->map.column[i] = column_number(f, of, &l->list[i], err);
        if (f->map.column[i] < OTHER_UNIT)
            return f->map.column[i] == NO_ROOM ? 1 : -1;
    }
    if (columns_map_to(&f->map, l->n, &p->lists, &added, err) < 0)
        return -1;
    node_takes(f, of->node, added);
    f->map_page = page;
    f->map_layout = layout;
    f->map_probe = of->probe;
    return 0;
}

// Of which kind a run is left out; LEFT_OUT_KINDS: it is taken.
static enum fleet_left_out unfit(const struct fleet *f, const struct summary *s)
{
    const struct {
        bool is;
        enum fleet_left_out reason;
    } list[] = {{s->state != RUN_SUCCEEDED, LEFT_OUT_STATE},
                {s->disturbed > f->o.disturbed_max, LEFT_OUT_DISTURBED},
                {s->forced && !f->o.forced, LEFT_OUT_FORCED},
                {!*s->class_hash, LEFT_OUT_CLASS},
                {s->layout < 0, LEFT_OUT_METRICS},
                {s->measured_ms <= 0 && s->finished_ms <= 0, LEFT_OUT_DATE}};
    for (size_t i = 0; i < COUNT_OF(list); i++)
        if (list[i].is)
            return list[i].reason;
    return LEFT_OUT_KINDS;
}

// A run by a clock that is ahead counts as measured now.
static int64_t fleet_run_time(const struct fleet *f, const struct summary *s)
{
    int64_t ms = s->measured_ms > 0 ? s->measured_ms : s->finished_ms;
    return f->o.now_ms > 0 && ms > f->o.now_ms ? f->o.now_ms : ms;
}

static int keep_widths(struct fleet_series *s, const struct columns_map *map,
                       const struct summary *run, struct err *err)
{
    const int n = map->to->n;
    float *lo = realloc(s->lo, (size_t)n * sizeof *lo + !n);
    s->lo = lo ? lo : s->lo;
    float *hi = realloc(s->hi, (size_t)n * sizeof *hi + !n);
    s->hi = hi ? hi : s->hi;
    if (!lo || !hi)
        return fleet_no_memory(err);
    for (int k = 0; k < n; k++) {
        lo[k] = run->lo[map->from[k]];
        hi[k] = run->hi[map->from[k]];
    }
    return 0;
}

// The place of a run, the newest first; -1: it is there already, or older than all that are kept.
static int run_place(const struct fleet_series *s, int64_t ms, int64_t id, int most, bool *repeated)
{
    int at = s->n;
    *repeated = false;
    for (int i = s->n - 1; i >= 0; i--) {
        if (s->runs[i].id == id && s->runs[i].measured_ms == ms)
            *repeated = true;
        if (s->runs[i].measured_ms < ms || (s->runs[i].measured_ms == ms && s->runs[i].id < id))
            at = i;
    }
    return *repeated || at >= most ? -1 : at;
}

static void newest_setup(struct fleet_node *n, int class, int config, int64_t ms)
{
    if (ms >= n->newest_ms) {
        if (n->newest_ms > 0 && config >= 0 && n->config >= 0 && config != n->config &&
            n->newest_ms > n->setup_ms)
            n->setup_ms = n->newest_ms;
        n->newest_ms = ms;
        n->class = class;
        n->config = config >= 0 ? config : n->config;
    } else if (config >= 0 && config != n->config && ms > n->setup_ms) {
        n->setup_ms = ms;
    }
}

// NULL: no memory.
static float *run_values(const struct columns_map *map, const struct summary *s)
{
    const int n = map->to->n;
    float *v = malloc((size_t)n * sizeof *v + !n); // of many runs: 16 bytes more are 10 MB
    for (int k = 0; v && k < n; k++)
        v[k] = s->values[map->from[k]];
    return v;
}

static int find_numbers(struct fleet *f, const struct summary_page *page, const struct summary *s,
                        struct run_numbers *n, struct err *err)
{
    n->config = -1;
    return (n->node = fleet_node_number(f, *s->node ? s->node : page->node, err)) < 0 ||
                   (n->class = class_number(f, s->class_hash, err)) < 0 ||
                   (*s->config_hash && (n->config = config_number(f, s->config_hash, err)) < 0) ||
                   (n->probe = probe_number(f, s, n->class, err)) < 0 ||
                   (n->series = series_number(f, n->node, n->probe, err)) < 0
               ? -1
               : 0;
}

void fleet_series_numbers(const struct fleet_series *s, int column, int n, float *out)
{
    const struct columns *has = NULL; // most runs of a node have the same
    int at = -1;
    for (int r = 0; r < n; r++) {
        if (s->runs[r].columns != has) {
            has = s->runs[r].columns;
            at = has ? columns_place(has, column) : -1;
        }
        out[r] = at < 0 ? NAN : s->runs[r].v[at];
    }
}

double fleet_run_value(const struct fleet_run *r, int column)
{
    const int at = r->columns ? columns_place(r->columns, column) : -1;
    return at >= 0 && r->v[at] > 0 ? r->v[at] : NAN;
}

int fleet_series_values(const struct fleet_series *s, int column)
{
    int n = 0;
    for (int r = 0; r < s->n; r++)
        n += !isnan(fleet_run_value(&s->runs[r], column));
    return n;
}

void fleet_series_count(const struct fleet_series *s, int *counts)
{
    for (int r = 0; r < s->n; r++) {
        const struct columns *has = s->runs[r].columns;
        for (int k = 0; has && k < has->n; k++)
            counts[has->list[k]] += s->runs[r].v[k] > 0;
    }
}

bool fleet_probes_are_versions(const struct fleet_probe *a, const struct fleet_probe *b)
{
    return a != b && a->class == b->class && strcmp(a->benchmark, b->benchmark) == 0 &&
           strcmp(a->variant, b->variant) == 0;
}

// Neighbours in a page are mostly alike. To look up their texts takes longer than to store them.
static bool same_numbers(const struct summary *a, const struct summary *b)
{
    return a->metrics_version == b->metrics_version && strcmp(a->node, b->node) == 0 &&
           strcmp(a->config_hash, b->config_hash) == 0 &&
           strcmp(a->class_hash, b->class_hash) == 0 && strcmp(a->benchmark, b->benchmark) == 0 &&
           strcmp(a->variant, b->variant) == 0 && strcmp(a->method, b->method) == 0;
}

// Bytes of the values of a run.
static int run_room(const struct columns *c)
{
    return (int)((size_t)c->n * sizeof(float));
}

// The values of the run, with room for them; of one that has none they are left out.
static int map_values(struct fleet *f, const struct summary_page *page, const struct summary *s,
                      const struct run_numbers *of, const struct columns_map **map, struct err *err)
{
    static const struct columns none = {0};
    static const struct columns_map nothing = {.to = &none};
    const int mapped = map_layout(f, page, s->layout, of, err);
    *map = &f->map;
    if (mapped < 0)
        return -1;
    if (mapped > 0 || run_room(f->map.to) > room_left(f, &f->node[of->node])) {
        f->left_out[LEFT_OUT_CROWDED]++;
        *map = &nothing;
    }
    return 0;
}

static int add_run(struct fleet *f, const struct summary_page *page, const struct summary *s,
                   const struct run_numbers *of, struct err *err)
{
    struct fleet_series *series = &f->one[of->series];
    struct fleet_node *node = &f->node[of->node];
    const struct columns_map *map = NULL;
    bool repeated;
    int64_t ms = fleet_run_time(f, s);
    int place = run_place(series, ms, s->id, f->o.runs_max, &repeated);
    if (place < 0) {
        f->left_out[LEFT_OUT_REPEATED] += repeated;
        return 0;
    }
    CLEANUP_MEM float *v = NULL;
    if (!f->o.times_only) {
        if (map_values(f, page, s, of, &map, err) < 0)
            return -1;
        if (!(v = run_values(map, s)))
            return fleet_no_memory(err);
    }
    if (fleet_room(&series->runs, &series->room, series->n, sizeof *series->runs, err) < 0 ||
        (place == 0 && map && keep_widths(series, map, s, err) < 0))
        return -1;
    if (series->n == f->o.runs_max) {
        struct fleet_run *last = &series->runs[--series->n];
        node_takes(f, of->node, last->columns ? -run_room(last->columns) : 0);
        free(last->v);
        f->runs--;
    }
    memmove(series->runs + place + 1, series->runs + place,
            (series->n - place) * sizeof *series->runs);
    series->runs[place] =
        (struct fleet_run){ms, s->id, map ? map->to : NULL, steal_ptr(&v), of->config};
    node_takes(f, of->node, map ? run_room(map->to) : 0);
    series->n++;
    f->runs++;
    newest_setup(node, of->class, of->config, ms);
    return 0;
}

int fleet_add_page(struct fleet *f, const struct summary_page *p, struct err *err)
{
    const struct summary *last = NULL;
    struct run_numbers of = {0};
    f->map_page = NULL;
    for (int i = 0; i < p->n_runs; i++) {
        const struct summary *s = &p->runs[i];
        enum fleet_left_out reason = unfit(f, s);
        if (reason != LEFT_OUT_KINDS) {
            f->left_out[reason]++;
            continue;
        }
        if ((!last || !same_numbers(last, s)) && find_numbers(f, p, s, &of, err) < 0)
            return -1;
        last = s;
        if (add_run(f, p, s, &of, err) < 0)
            return -1;
    }
    return 0;
}

// Names and values behind each other in one block, whose beginning is `name`.
int fleet_facts_copy(struct fleet_facts *out, const struct facts *facts, struct err *err)
{
    size_t bytes = 2 * (facts->n + 1) * sizeof(char *);
    for (int i = 0; i < facts->n; i++)
        bytes += strlen(facts->list[i].name) + strlen(facts->list[i].value) + 2;
    char **block = malloc(bytes);
    if (!block)
        return fleet_no_memory(err);
    struct fleet_facts made = {facts->n, block, block + facts->n + 1};
    char *to = (char *)(made.value + facts->n + 1);
    for (int i = 0; i < facts->n; i++) {
        made.name[i] = to;
        to = stpcpy(to, facts->list[i].name) + 1;
        made.value[i] = to;
        to = stpcpy(to, facts->list[i].value) + 1;
    }
    free(out->name);
    *out = made;
    return 0;
}

int fleet_add_facts(struct fleet *f, const struct facts *facts, struct err *err)
{
    int class = interned_find(&f->classes, facts->hash),
        config = interned_find(&f->configs, facts->hash);
    if (class >= 0 && fleet_facts_copy(&f->class_facts[class], facts, err) < 0)
        return -1;
    return config < 0 ? 0 : fleet_facts_copy(&f->config_facts[config], facts, err);
}

const char *fleet_facts_wanted(const struct fleet *f, int *at)
{
    while (*at < f->classes.n + f->configs.n) {
        const int class = (*at)++, config = class - f->classes.n;
        if (config < 0 && !f->class_facts[class].name)
            return f->classes.list[class];
        if (config >= 0 && !f->config_facts[config].name)
            return f->configs.list[config];
    }
    return NULL;
}

const char *fleet_fact(const struct fleet_facts *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->name[i], name) == 0)
            return f->value[i];
    return NULL;
}

// Whether one of the documents has the fact. *names: how many facts they have.
static bool facts_have(const struct fleet_facts *list, int n, struct suggestion *near, long *names)
{
    for (int i = 0; i < n; i++) {
        *names += list[i].n;
        for (int k = 0; k < list[i].n; k++) {
            if (strcmp(list[i].name[k], near->typed) == 0)
                return true;
            suggest_consider(near, list[i].name[k]);
        }
    }
    return false;
}

static int fact_unknown(const struct suggestion *near, long names, struct err *err)
{
    char hint[SUGGEST_TEXT_ROOM];
    return names ? err_set(err, ERR_NOT_FOUND, "fact", "no node has the fact \"%.64s\"%s",
                           near->typed, suggest_text(near, "", hint, sizeof hint))
                 : err_set(err, ERR_NOT_FOUND, "fact", "no facts of these nodes are known");
}

int fleet_facts_check(const struct fleet_facts *list, int n, const char *fact, struct err *err)
{
    struct suggestion near = SUGGESTION_FOR(fact);
    long names = 0;
    return facts_have(list, n, &near, &names) ? 0 : fact_unknown(&near, names, err);
}

int fleet_fact_check(const struct fleet *f, const char *fact, struct err *err)
{
    struct suggestion near = SUGGESTION_FOR(fact);
    long names = 0;
    return facts_have(f->config_facts, f->configs.n, &near, &names) ||
                   facts_have(f->class_facts, f->classes.n, &near, &names)
               ? 0
               : fact_unknown(&near, names, err);
}

int fleet_class_nodes(const struct fleet *f, int class)
{
    int n = 0;
    for (int i = 0; i < f->nodes.n; i++)
        n += f->node[i].class == class;
    return n;
}

// SPDX-License-Identifier: Apache-2.0
// hwloc's own attributes get what they are defined as: Latency and ReadLatency the idle latency of
// dependent loads, ReadBandwidth and WriteBandwidth those kernels, Bandwidth their average. All
// else has a name of ours.
#include "api/services/measured_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/node/hwloc_measured.h"
#include "model/condition.h"

// ---- JSON ---------------------------------------------------------------------------------------

static void write_grid(const struct node_costs *c, enum node_cost_kind kind, size_t member,
                       struct jsonw *w, const char *key)
{
    int nodes = c->topology->n_nodes, digits = node_cost_more_is_better(kind) ? 0 : 2;
    jsonw_array(w, key);
    for (int i = 0; i < nodes; i++) {
        jsonw_array(w, NULL);
        for (int j = 0; j < nodes; j++) {
            const struct node_cost cost = node_cost_at(c, kind, i, j);
            const double ends[] = {cost.v, cost.lo, cost.hi};
            jsonw_fixed(w, NULL, ends[member], digits);
        }
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_quantities(const struct measured_run *r, struct jsonw *w)
{
    jsonw_array(w, "quantities");
    for (int k = 0; k < NODE_COST_KINDS; k++)
        if (r->of[k])
            jsonw_text(w, NULL, node_cost_kinds[k].name);
    jsonw_end(w);
}

void measured_values_write_json(const struct measured_nodes *n, struct jsonw *w, const char *key)
{
    static const char *const ends[] = {"values", "lo", "hi"};
    jsonw_object(w, key);
    jsonw_array(w, "runs");
    for (int i = 0; i < n->n_runs; i++) {
        const struct measured_run *r = &n->runs[i];
        jsonw_object(w, NULL);
        jsonw_i64(w, "run", r->run.id);
        jsonw_text(w, "benchmark", benchmarks[r->run.spec.benchmark].name);
        jsonw_time(w, "measured", r->run.measured_ms);
        jsonw_text(w, "method", r->run.method);
        jsonw_i64(w, "cells", r->tally.counted);
        jsonw_i64(w, "disturbed", r->tally.disturbed);
        jsonw_i64(w, "not_verified", r->tally.unverified);
        write_quantities(r, w);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_array(w, "quantities");
    for (int k = 0; k < NODE_COST_KINDS; k++) {
        if (!n->costs.of[k])
            continue;
        bool more = node_cost_more_is_better((enum node_cost_kind)k);
        jsonw_object(w, NULL);
        jsonw_text(w, "name", node_cost_kinds[k].name);
        jsonw_text(w, "title", node_cost_kinds[k].words);
        jsonw_text(w, "unit", more ? "MB/s" : "ns");
        jsonw_bool(w, "more_is_better", more);
        for (size_t e = 0; e < COUNT_OF(ends); e++)
            write_grid(&n->costs, (enum node_cost_kind)k, e, w, ends[e]);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_end(w);
}

// ---- Attributes ---------------------------------------------------------------------------------

static const double bytes_per_mb = 1e6, bytes_per_mib = 1 << 20;

// An attribute is the mean of one or two quantities; of several rows of a name the first counts
// whose quantities were all measured. `why` is said where it is not evident.
static const struct attribute {
    const char *name;
    enum node_cost_kind of[2];
    const char *why;
} attributes[] = {
    {"Latency", {NODE_COST_LATENCY, NODE_COST_LATENCY}, "Latency is that of loads"},
    {"ReadLatency", {NODE_COST_LATENCY, NODE_COST_LATENCY}, NULL},
    {"numaprobe_concurrent_latency_ns", {NODE_COST_CONCURRENT, NODE_COST_CONCURRENT}, NULL},
    {"ReadBandwidth", {NODE_COST_READ, NODE_COST_READ}, NULL},
    {"WriteBandwidth", {NODE_COST_WRITE, NODE_COST_WRITE}, NULL},
    {"Bandwidth",
     {NODE_COST_READ, NODE_COST_WRITE},
     "Bandwidth is the average of ReadBandwidth and WriteBandwidth"},
    {"Bandwidth", {NODE_COST_COPY, NODE_COST_COPY}, "Bandwidth is that of copy"},
    {"Bandwidth", {NODE_COST_TRIAD, NODE_COST_TRIAD}, "Bandwidth is that of triad"},
    {"Bandwidth", {NODE_COST_READ, NODE_COST_READ}, "Bandwidth is that of read"},
    {"Bandwidth", {NODE_COST_WRITE, NODE_COST_WRITE}, "Bandwidth is that of write"},
    {"numaprobe_triad_mibps", {NODE_COST_TRIAD, NODE_COST_TRIAD}, NULL},
    {"numaprobe_copy_mibps", {NODE_COST_COPY, NODE_COST_COPY}, NULL},
    {"numaprobe_add_mibps", {NODE_COST_ADD, NODE_COST_ADD}, NULL},
    {"numaprobe_scale_mibps", {NODE_COST_SCALE, NODE_COST_SCALE}, NULL},
};

enum {
    ATTRIBUTES = COUNT_OF(attributes),
    CONDITIONS_MAX = 16, // of each run, in the XML
    NOTES_MAX = 3 + MEASURED_RUNS_MAX * (2 + CONDITIONS_MAX),
    FACT_ROOM = 400,
};

struct annotating {
    const struct measured_nodes *n;
    struct probe_attribute list[ATTRIBUTES];
    struct probe_value *values[ATTRIBUTES]; // owned
    int n_list;
    struct probe_fact facts[NOTES_MAX];
    char texts[NOTES_MAX][FACT_ROOM];
    int n_facts;
};

static void annotating_fini(struct annotating *a)
{
    for (int i = 0; i < a->n_list; i++)
        free(a->values[i]);
}

__attribute__((format(printf, 3, 4))) static void add_fact(struct annotating *a, const char *name,
                                                           const char *fmt, ...)
{
    va_list ap;
    if (a->n_facts == NOTES_MAX)
        return;
    char *text = a->texts[a->n_facts];
    va_start(ap, fmt);
    vsnprintf(text, FACT_ROOM, fmt, ap);
    va_end(ap);
    a->facts[a->n_facts++] = (struct probe_fact){name, text};
}

static bool has_attribute(const struct annotating *a, const char *name)
{
    for (int i = 0; i < a->n_list; i++)
        if (strcmp(a->list[i].name, name) == 0)
            return true;
    return false;
}

static double attribute_value(const struct node_costs *c, const struct attribute *of, int i, int j)
{
    double v = (node_cost_at(c, of->of[0], i, j).v + node_cost_at(c, of->of[1], i, j).v) / 2;
    return node_cost_more_is_better(of->of[0]) ? v * bytes_per_mb / bytes_per_mib : v;
}

static int add_attribute(struct annotating *a, const struct attribute *of, struct err *err)
{
    const struct node_costs *c = &a->n->costs;
    const struct topology *t = c->topology;
    struct probe_attribute *p = &a->list[a->n_list];
    if (!c->of[of->of[0]] || !c->of[of->of[1]] || has_attribute(a, of->name))
        return 0;
    struct probe_value *values = calloc((size_t)t->n_nodes * (size_t)t->n_nodes, sizeof *values);
    if (!values)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the attributes");
    *p = (struct probe_attribute){
        .name = of->name, .more_is_better = node_cost_more_is_better(of->of[0]), .values = values};
    a->values[a->n_list++] = values;
    for (int i = 0; i < t->n_nodes; i++)
        for (int j = 0; j < t->n_nodes; j++) {
            double v = attribute_value(c, of, i, j);
            if (isfinite(v))
                values[p->n++] =
                    (struct probe_value){t->nodes[i].os, t->nodes[j].os, (uint64_t)llround(v)};
        }
    if (of->why)
        add_fact(a, "NumaprobeNote", "%s", of->why);
    return 0;
}

static void add_conditions(struct annotating *a, const struct run *run)
{
    struct err why;
    CLEANUP_JSON struct json *list =
        run->conditions_json ? json_parse(run->conditions_json, strlen(run->conditions_json), &why)
                             : NULL;
    int n = 0;
    for (const struct json *i = json_first(list); i; i = json_next(i)) {
        struct condition c;
        CLEANUP_BUF struct buf line = BUF_INIT;
        if (condition_from_json(&c, i, NULL) < 0 || c.severity == SEVERITY_INFO)
            continue;
        condition_line(&c, &line);
        if (n++ < CONDITIONS_MAX)
            add_fact(a, "NumaprobeCondition", "run %" PRId64 ": %s", run->id, buf_text(&line));
    }
    if (n > CONDITIONS_MAX)
        add_fact(a, "NumaprobeCondition", "run %" PRId64 ": %d more", run->id, n - CONDITIONS_MAX);
}

// "run 17: matrix, 2026-11-22T06:24:02Z, method prp4-v2: 16 cells; left out: 1 disturbed, 0 not
// verified"
static void add_run_fact(struct annotating *a, const struct measured_run *r)
{
    char when[32] = "at an unknown time";
    if (r->run.measured_ms)
        clock_rfc3339(r->run.measured_ms, when);
    add_fact(a, "NumaprobeRun",
             "run %" PRId64 ": %s, %s, method %s: %d cells; left out: %d disturbed, %d not "
             "verified",
             r->run.id, benchmarks[r->run.spec.benchmark].name, when, r->run.method,
             r->tally.counted, r->tally.disturbed, r->tally.unverified);
    add_conditions(a, &r->run);
}

int measured_values_xml(const struct machine *m, const struct measured_nodes *n, char **out,
                        struct err *err)
{
    CLEANUP_MEM struct annotating *a = calloc(1, sizeof *a);
    if (!a)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the attributes");
    a->n = n;
    for (int i = 0; i < n->n_runs; i++)
        add_run_fact(a, &n->runs[i]);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ATTRIBUTES; i++)
        rc = add_attribute(a, &attributes[i], err);
    const struct probe_annotations with = {a->list, a->n_list, a->facts, a->n_facts};
    if (rc == 0)
        rc = probe_topology_annotated(m->topology_xml, &with, out, err);
    annotating_fini(a);
    return rc;
}

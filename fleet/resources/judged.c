// SPDX-License-Identifier: Apache-2.0
// What is judged: the newest runs of all nodes are read from the store into the arrays of
// analysis/peers, and its verdict is written as the client writes it. In the process that reads.
#include "fleet/resources/resources.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/fleet_findings.h"
#include "analysis/peers/fleet_findings_text.h"
#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "fleet/services/name_runs.h"
#include "fleet/services/stored_fleet.h"
#include "model/nodeset.h"

enum {
    WINDOW_DAYS_MAX = 3650,
    READ_US = 500000, // of ten thousand nodes: never in the loop
    READ_BYTES = 8 << 20,
};

void fleetd_work(const struct request *q, struct work *w, struct err *why)
{
    (void)q;
    (void)why;
    w->us = READ_US;
    w->bytes = READ_BYTES;
}

// The newest runs of all nodes. A class that is requested is looked for by the store.
static struct fleet *fleet_read(const struct request *q, struct err *err)
{
    struct fleet_options o = FLEET_DEFAULTS;
    int64_t days = o.window_days;
    if (request_query_int(q, "window_days", 1, WINDOW_DAYS_MAX, &days, err) < 0)
        return NULL;
    o.now_ms = clock_wall_ms();
    o.window_days = (int)days;
    const struct fleet_window w = {.class_hash = request_query(q, "class"), .newest = o.runs_max};
    return stored_fleet_read(q, &o, &w, err);
}

int fleetd_outliers(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_FLEET struct fleet *f = fleet_read(q, err);
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct fleet_findings list = {0};
    if (!f || fleet_findings_find(&list, f, err) < 0)
        return -1;
    fleet_findings_write_json(&list, f, &w, NULL);
    fleet_findings_fini(&list);
    return reply_json(r, 200, &body, err);
}

static int write_class_rows(struct jsonw *w, const struct fleet *f, struct err *err)
{
    CLEANUP_MEM struct fleet_class_row *rows = NULL;
    int n = fleet_classes(&rows, f, err);
    jsonw_array(w, "classes");
    for (int i = 0; i < n; i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "class", f->classes.list[rows[i].class]);
        jsonw_text(w, "cpu", rows[i].cpu);
        jsonw_text(w, "shape", rows[i].shape);
        jsonw_i64(w, "nodes", rows[i].nodes);
        jsonw_i64(w, "fresh", rows[i].fresh);
        jsonw_i64(w, "enough_runs", rows[i].enough);
        jsonw_i64(w, "setups", rows[i].setups);
        jsonw_time(w, "newest", rows[i].newest_ms);
        jsonw_end(w);
    }
    jsonw_end(w);
    return n < 0 ? -1 : 0;
}

int fleetd_classes(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_FLEET struct fleet *f = fleet_read(q, err);
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    if (!f || write_class_rows(&w, f, err) < 0)
        return -1;
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

// ---- GET /v1/fleet/tiles ------------------------------------------------------------------------
// Every node with its verdict, in few bytes: a picture of ten thousand nodes begins with them.

static int tile_order(const void *a, const void *b, void *fleet)
{
    const struct fleet *f = fleet;
    return nodeset_name_order(f->nodes.list[*(const int *)a], f->nodes.list[*(const int *)b]);
}

static void write_texts(struct jsonw *w, const char *key, const struct interned *texts)
{
    jsonw_array(w, key);
    for (int i = 0; i < texts->n; i++)
        jsonw_text(w, NULL, texts->list[i]);
    jsonw_end(w);
}

// Parallel arrays: number of the class, per cent, number of the metric, grade.
static int write_tiles(struct jsonw *w, const struct fleet *f, const struct fleet_findings *list,
                       const int *order, struct err *err)
{
    struct interned metrics = {0};
    int rc = 0;
    jsonw_array(w, "class");
    for (int i = 0; i < f->nodes.n; i++)
        jsonw_i64(w, NULL, f->node[order[i]].class);
    jsonw_end(w);
    jsonw_array(w, "percent");
    for (int i = 0; i < f->nodes.n; i++) {
        const struct fleet_judged *j = &list->judged[order[i]];
        jsonw_fixed(w, NULL, j->metric ? j->worse : NAN, 1);
    }
    jsonw_end(w);
    jsonw_array(w, "metric");
    for (int i = 0; i < f->nodes.n && rc >= 0; i++) {
        const char *metric = list->judged[order[i]].metric;
        rc = metric ? interned_add(&metrics, metric, err) : 0;
        jsonw_i64(w, NULL, metric ? rc : -1);
    }
    jsonw_end(w);
    jsonw_array(w, "grade");
    for (int i = 0; i < f->nodes.n; i++) {
        const struct fleet_judged *j = &list->judged[order[i]];
        jsonw_i64(w, NULL, j->grouped && j->grade == PEERS_FINE ? PEERS_GRADES : (int)j->grade);
    }
    jsonw_end(w);
    write_texts(w, "metrics", &metrics);
    interned_fini(&metrics);
    return rc < 0 ? -1 : 0;
}

int fleetd_tiles(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_FLEET struct fleet *f = fleet_read(q, err);
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct name_runs names = {.w = &w};
    struct fleet_findings list = {0};
    if (!f || fleet_findings_find(&list, f, err) < 0)
        return -1;
    CLEANUP_MEM int *order = calloc((size_t)f->nodes.n + 1, sizeof *order);
    int rc = order ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", f->nodes.n);
    for (int i = 0; rc == 0 && i < f->nodes.n; i++)
        order[i] = i;
    if (rc == 0) {
        qsort_r(order, (size_t)f->nodes.n, sizeof *order, tile_order, f);
        jsonw_object(&w, NULL);
        jsonw_time(&w, "evaluated", f->o.now_ms);
        jsonw_i64(&w, "tested_nodes", list.tested);
        jsonw_i64(&w, "sure", list.grades[PEERS_SURE]);
        jsonw_i64(&w, "suspect", list.grades[PEERS_SUSPECT]);
        jsonw_i64(&w, "groups", list.groups);
        jsonw_array(&w, "nodes");
        for (int i = 0; i < f->nodes.n; i++)
            name_runs_add(&names, f->nodes.list[order[i]]);
        name_runs_end(&names);
        jsonw_end(&w);
        write_texts(&w, "hashes", &f->classes);
        rc = write_tiles(&w, f, &list, order, err);
        rc = rc < 0 ? -1 : write_class_rows(&w, f, err);
        jsonw_end(&w);
    }
    fleet_findings_fini(&list);
    return rc < 0 ? -1 : reply_json(r, 200, &body, err);
}

// ---- GET /v1/fleet/nodes/{name}/metrics ---------------------------------------------------------

static void write_node_metric(struct jsonw *w, const struct fleet *f, const struct fleet_place *p)
{
    jsonw_object(w, NULL);
    jsonw_text(w, "metric", p->metric);
    jsonw_text(w, "unit", p->unit);
    jsonw_text(w, "better", p->more ? "more" : "less");
    jsonw_text(w, "benchmark", f->probe[p->probe].benchmark);
    jsonw_text(w, "variant", f->probe[p->probe].variant);
    jsonw_i64(w, "runs", p->runs);
    jsonw_fixed(w, "value", p->value, 3);
    jsonw_fixed(w, "class_median", p->peers, 3);
    jsonw_fixed(w, "class_mad_percent", p->spread, 2);
    jsonw_fixed(w, "limit", p->limit, 3);
    jsonw_fixed(w, "percent", p->worse, 2);
    jsonw_i64(w, "nodes", p->n_peers);
    jsonw_end(w);
}

int fleetd_node_metrics(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_FLEET struct fleet *f = fleet_read(q, err);
    CLEANUP_MEM struct fleet_place *list = NULL;
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    int node = f ? interned_find(&f->nodes, q->name) : -1;
    if (f && node < 0)
        return err_set(err, ERR_NOT_FOUND, "", "no run of a node \"%s\" is stored", q->name);
    int n = f ? fleet_places_find(&list, f, node, err) : -1;
    if (n < 0)
        return -1;
    int class = f->node[node].class;
    jsonw_object(&w, NULL);
    jsonw_text(&w, "node", q->name);
    jsonw_text(&w, "class", class < 0 ? NULL : f->classes.list[class]);
    jsonw_time(&w, "evaluated", f->o.now_ms);
    jsonw_time(&w, "newest", f->node[node].newest_ms);
    jsonw_array(&w, "metrics");
    for (int i = 0; i < n; i++)
        write_node_metric(&w, f, &list[i]);
    jsonw_end(&w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

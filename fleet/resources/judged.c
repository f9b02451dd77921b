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
#include "base/suggest.h"
#include "fleet/services/name_runs.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_fleet.h"
#include "model/nodeset.h"

enum {
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

// ---- GET /v1/fleet/outliers ---------------------------------------------------------------------

void fleetd_outliers_work(const struct request *q, struct work *w, struct err *why)
{
    fleetd_work(q, w, why);
    request_query_bool(q, "anew", &w->anew, why);
}

static int read_grade(const struct request *q, int *grade, struct err *err)
{
    const char *text = request_query(q, "grade");
    for (*grade = text ? PEERS_SUSPECT : PEERS_FINE; text && *grade < PEERS_GRADES; ++*grade)
        if (strcmp(text, peers_grade_names[*grade]) == 0)
            return 0;
    return text ? err_set(err, ERR_INVALID, "grade", "must be suspect or sure") : 0;
}

static int metric_is_stored(const struct fleet *f, const char *metric, struct err *err)
{
    struct suggestion near = SUGGESTION_FOR(metric);
    char hint[SUGGEST_TEXT_ROOM];
    for (int i = 0; i < f->probes.n; i++)
        for (int m = 0; m < f->probe[i].metrics.n; m++) {
            if (strcmp(metric, f->probe[i].metrics.list[m]) == 0)
                return 0;
            suggest_consider(&near, f->probe[i].metrics.list[m]);
        }
    return err_set(err, ERR_NOT_FOUND, "metric", "no node has the metric \"%.64s\"%s", metric,
                   suggest_text(&near, "", hint, sizeof hint));
}

static int where_is_judged(const struct request *q, const struct fleet *f,
                           const struct nodeset *where, struct err *err)
{
    for (int i = 0; i < f->nodes.n; i++)
        if (nodeset_has(where, f->nodes.list[i]))
            return 0;
    return where_is_stored(q, where, "where", err) < 0 ? -1 : where_has_none(err);
}

struct outliers_query {
    struct fleet_findings_filter filter;
    struct nodeset where;
};

static void outliers_query_fini(struct outliers_query *o)
{
    nodeset_free(&o->where);
}

static int read_outliers_query(const struct request *q, struct outliers_query *o, struct err *err)
{
    bool named, anew; // how it is made says fleetd_outliers_work()
    if (request_query_bool(q, "anew", &anew, err) < 0 || read_grade(q, &o->filter.grade, err) < 0 ||
        where_read(q, &o->where, &named, err) < 0)
        return -1;
    o->filter.metric = request_query(q, "metric");
    o->filter.where = named ? &o->where : NULL;
    return 0;
}

static int outliers_are_of(const struct request *q, const struct outliers_query *o,
                           const struct fleet *f, struct err *err)
{
    if (o->filter.where && where_is_judged(q, f, o->filter.where, err) < 0)
        return -1;
    return o->filter.metric ? metric_is_stored(f, o->filter.metric, err) : 0;
}

int fleetd_outliers(struct request *q, struct reply *r, struct err *err)
{
    struct outliers_query o CLEANUP(outliers_query_fini) = {0};
    struct fleet_findings list CLEANUP(fleet_findings_fini) = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    if (read_outliers_query(q, &o, err) < 0)
        return -1;
    CLEANUP_FLEET struct fleet *f = stored_fleet_newest(q, err);
    if (!f || outliers_are_of(q, &o, f, err) < 0 || fleet_findings_find(&list, f, err) < 0)
        return -1;
    fleet_findings_select(&list, f, &o.filter);
    fleet_findings_write_json(&list, f, &w, NULL);
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
    CLEANUP_FLEET struct fleet *f = stored_fleet_newest(q, err);
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
    CLEANUP_FLEET struct fleet *f = stored_fleet_newest(q, err);
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

// SPDX-License-Identifier: Apache-2.0
// A metric over the nodes of a class, and over groups of them: as `numaprobe fleet ranking` and
// `numaprobe fleet compare` print it. And two stored runs, or a few nodes, by their metrics. In the
// process that reads.
#include "analysis/peers/fleet_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/fleet_json.h"
#include "analysis/peers/run_pair.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "fleet/resources/resources.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_changes.h"
#include "fleet/services/stored_fleet.h"

enum { RANKING_LIMIT = 100, RANKING_LIMIT_MAX = NODESET_NAMES_MAX };

// The newest runs of the nodes of one class, and the metric that is requested.
struct stored_view {
    struct fleet *fleet;
    struct fleet_view view;
    int metric;
};

static void stored_view_fini(struct stored_view *v)
{
    fleet_view_close(&v->view);
    fleet_cleanup(&v->fleet);
}
#define CLEANUP_STORED_VIEW CLEANUP(stored_view_fini)

static int stored_view_read(const struct request *q, struct stored_view *v, struct err *err)
{
    const char *class = request_query(q, "class"), *metric = request_query(q, "metric");
    struct fleet_options o = FLEET_DEFAULTS;
    o.now_ms = clock_wall_ms();
    o.runs_max = NEWEST_RUNS;
    if (!metric || !*metric)
        return err_set(err, ERR_INVALID, "metric",
                       "must be a metric, such as latency.local.dram.median_ns");
    v->fleet = stored_fleet_read(q, &o, &(struct fleet_window){.newest = o.runs_max}, err);
    int of = v->fleet ? fleet_class_find(v->fleet, class ? class : "", err) : -1;
    if (of < 0 || fleet_view_open(&v->view, v->fleet, of, err) < 0)
        return -1;
    v->metric = fleet_view_metric(&v->view, metric, err);
    return v->metric < 0 ? -1 : 0;
}

int fleetd_ranking(struct request *q, struct reply *r, struct err *err)
{
    const char *order = request_query(q, "order");
    CLEANUP_STORED_VIEW struct stored_view v = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct fleet_ranking ranking = {0};
    struct fleet_ranking_part part = {.best = order && strcmp(order, "best") == 0};
    int64_t limit = RANKING_LIMIT;
    if (order && !part.best && strcmp(order, "worst") != 0)
        return err_set(err, ERR_INVALID, "order", "must be worst or best");
    if (request_query_int(q, "limit", 1, RANKING_LIMIT_MAX, &limit, err) < 0 ||
        stored_view_read(q, &v, err) < 0 ||
        fleet_ranking_make(&ranking, &v.view, v.metric, err) < 0)
        return -1;
    part.limit = (int)limit;
    jsonw_object(&w, NULL);
    fleet_ranking_write_json(&ranking, &v.view, &part, &w);
    jsonw_end(&w);
    fleet_ranking_fini(&ranking);
    return reply_json(r, 200, &body, err);
}

static int compare_by_fact(struct request *q, const char *fact, struct reply *r, struct err *err)
{
    CLEANUP_STORED_VIEW struct stored_view v = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct fleet_shares shares = {0};
    if (stored_view_read(q, &v, err) < 0 ||
        fleet_shares_make(&shares, &v.view, v.metric, fact, err) < 0) {
        if (strcmp(err->member, "fact") == 0)
            snprintf(err->member, sizeof err->member, "by");
        return -1;
    }
    jsonw_object(&w, NULL);
    fleet_shares_write_json(&shares, &v.view, v.metric, fact, &w);
    jsonw_end(&w);
    fleet_shares_fini(&shares);
    return reply_json(r, 200, &body, err);
}

// ---- Two runs

// A run of the store, copied out of its page.
struct picked_run {
    int64_t seq;
    const char *node;
    bool found;
    struct summary run;
    struct summary_layout layout;
    float *values; // owned, as the layout's list
};

static void picked_run_fini(struct picked_run *p)
{
    free(p->layout.list);
    free(p->values);
}
#define CLEANUP_PICKED CLEANUP(picked_run_fini)

// A node that was installed anew has a run of this number in each of its histories: the newest one
// is taken.
static int pick_run(void *ctx, const struct summary_page *page, struct err *err)
{
    struct picked_run *p = ctx;
    const struct summary *best = p->found ? &p->run : NULL;
    for (int i = 0; i < page->n_runs; i++)
        if (!best || page->runs[i].measured_ms > best->measured_ms)
            best = &page->runs[i];
    if (!best || best == &p->run)
        return 0;
    p->found = true;
    p->run = *best;
    if (best->layout < 0)
        return 0;
    const struct summary_layout *l = &page->layouts[best->layout];
    p->layout = (struct summary_layout){l->n, malloc((l->n + 1) * sizeof *l->list)};
    p->values = malloc((3 * l->n + 1) * sizeof *p->values);
    if (!p->layout.list || !p->values)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a run");
    memcpy(p->layout.list, l->list, l->n * sizeof *l->list);
    memcpy(p->values, best->values, l->n * sizeof *p->values);
    memcpy(p->values + l->n, best->lo, l->n * sizeof *p->values);
    memcpy(p->values + 2 * l->n, best->hi, l->n * sizeof *p->values);
    p->run.values = p->values;
    p->run.lo = p->values + l->n;
    p->run.hi = p->values + 2 * l->n;
    return 0;
}

// "node017:88" of the parameter `member`.
static int pick_named_run(const struct request *q, const char *member, struct picked_run *out,
                          struct err *err)
{
    const char *text = request_query(q, member), *colon = text ? strrchr(text, ':') : NULL;
    char node[NODESET_NAME_ROOM];
    if (!colon || colon - text >= NODESET_NAME_ROOM || !str_to_i64(colon + 1, &out->seq) ||
        out->seq < 1)
        return err_set(err, ERR_INVALID, member,
                       "must be a node and the number of a run in its feed, such as node017:88");
    snprintf(node, sizeof node, "%.*s", (int)(colon - text), text);
    if (nodeset_name_check(node, err) < 0) {
        snprintf(err->member, sizeof err->member, "%s", member);
        return -1;
    }
    const struct fleet_window w = {.node = node, .seq = out->seq};
    if (fleet_store_window(fleet_of(q)->store, &w, pick_run, out, err) < 0)
        return -1;
    return out->found ? 0
                      : err_set(err, ERR_NOT_FOUND, member, "no run %lld of node \"%s\" is stored",
                                (long long)out->seq, node);
}

static void write_picked(const struct picked_run *p, struct jsonw *w, const char *key)
{
    const struct summary *s = &p->run;
    jsonw_object(w, key);
    jsonw_text(w, "node", s->node);
    jsonw_i64(w, "seq", s->seq);
    jsonw_i64(w, "run", s->id);
    jsonw_time(w, "measured", s->measured_ms);
    jsonw_text(w, "benchmark", s->benchmark);
    jsonw_text(w, "variant", s->variant);
    jsonw_text(w, "method", s->method);
    jsonw_i64(w, "metrics_version", s->metrics_version);
    jsonw_text(w, "class", s->class_hash);
    jsonw_text(w, "config", s->config_hash);
    jsonw_end(w);
}

static int compare_runs(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_PICKED struct picked_run base = {0};
    CLEANUP_PICKED struct picked_run target = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct run_pair pair = {0};
    if (pick_named_run(q, "base", &base, err) < 0 || pick_named_run(q, "target", &target, err) < 0)
        return -1;
    const struct run_side a = {&base.run, &base.layout}, b = {&target.run, &target.layout};
    const struct setup_hashes of_a = {a.run->class_hash, a.run->config_hash},
                              of_b = {b.run->class_hash, b.run->config_hash};
    if (run_pair_compare(&pair, &a, &b, err) < 0)
        return -1;
    jsonw_object(&w, NULL);
    write_picked(&base, &w, "base");
    write_picked(&target, &w, "target");
    run_pair_write_json(&pair, &w);
    run_pair_fini(&pair);
    if (stored_changes_write(fleet_of(q)->store, &of_a, &of_b, &w, err) < 0)
        return -1;
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

// ---- A few nodes

static int compare_nodes(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_NODESET struct nodeset where = {0};
    CLEANUP_FLEET struct fleet *f = NULL;
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct fleet_options o = FLEET_DEFAULTS;
    struct fleet_sides sides;
    bool given;
    o.now_ms = clock_wall_ms();
    o.runs_max = NEWEST_RUNS;
    if (where_read(q, &where, &given, err) < 0)
        return -1;
    if (fleet_sides_check(where.n, err) < 0 ||
        !(f = stored_fleet_read(q, &o, &(struct fleet_window){.newest = o.runs_max}, err)) ||
        fleet_sides_make(&sides, f, err) < 0) {
        if (strcmp(err->member, "nodes") == 0)
            snprintf(err->member, sizeof err->member, "where");
        return -1;
    }
    jsonw_object(&w, NULL);
    fleet_sides_write_json(&sides, &w);
    jsonw_end(&w);
    fleet_sides_fini(&sides);
    return reply_json(r, 200, &body, err);
}

int fleetd_compare(struct request *q, struct reply *r, struct err *err)
{
    // The last one names the nodes that are side by side.
    static const char *const of_groups[] = {"metric", "class", "where"};
    const char *by = request_query(q, "by");
    bool runs = request_query(q, "base") || request_query(q, "target");
    bool nodes = !runs && !by && request_query(q, "where");
    if (runs + nodes + (by != NULL) != 1)
        return err_set(err, ERR_INVALID, "by",
                       "give one of them: a fact (by), base and target, or nodes (where)");
    if (by)
        return compare_by_fact(q, by, r, err);
    for (size_t i = 0; i < COUNT_OF(of_groups) - nodes; i++)
        if (request_query(q, of_groups[i]))
            return err_set(err, ERR_INVALID, of_groups[i],
                           "does not count for %s: their metrics are compared",
                           runs ? "two runs" : "nodes side by side");
    return runs ? compare_runs(q, r, err) : compare_nodes(q, r, err);
}

// SPDX-License-Identifier: Apache-2.0
// What the history says of one node: its set-up and since when it has it, and each of its metrics
// beside its peers. All nodes are read, since they are judged together. In the process that reads.
#include "analysis/peers/fleet_findings.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "fleet/resources/resources.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_changes.h"
#include "fleet/services/stored_fleet.h"

// ---- Its set-up

struct node_setup {
    int n;                           // that it ever had
    int64_t since_ms;                // the first run with the present one
    struct interned hashes;          // of classes and configurations
    struct setup_hashes now, before; // of `hashes`
};

static void node_setup_fini(struct node_setup *s)
{
    interned_fini(&s->hashes);
}

static const char *keep_hash(struct node_setup *s, const char *hash, struct err *err)
{
    int at = interned_add(&s->hashes, hash, err);
    return at < 0 ? NULL : s->hashes.list[at];
}

// In the order of time.
static int take_setup(void *ctx, const struct fleet_store_setup *p, struct err *err)
{
    struct node_setup *s = ctx;
    s->before = s->now;
    s->now =
        (struct setup_hashes){keep_hash(s, p->class_hash, err), keep_hash(s, p->config_hash, err)};
    s->since_ms = p->from_ms;
    s->n++;
    return s->now.class_hash && s->now.config_hash ? 0 : -1;
}

static void write_setup_facts(struct jsonw *w, const struct fleet_facts *facts)
{
    jsonw_object(w, "facts");
    for (int i = 0; i < facts->n; i++)
        jsonw_text(w, facts->name[i], facts->value[i]);
    jsonw_end(w);
}

static int write_setup(const struct request *q, const struct fleet *f, struct jsonw *w,
                       struct err *err)
{
    struct node_setup s CLEANUP(node_setup_fini) = {.before = {"", ""}, .now = {"", ""}};
    CLEANUP_NODESET struct nodeset one = {0};
    struct fleet_store *store = fleet_of(q)->store;
    if (nodeset_add(&one, q->name, err) < 0 ||
        fleet_store_setups(store, &one, take_setup, &s, err) < 0)
        return -1;
    if (!s.n) {
        jsonw_null(w, "setup");
        return 0;
    }
    int config = interned_find(&f->configs, s.now.config_hash);
    jsonw_object(w, "setup");
    jsonw_text(w, "config", s.now.config_hash);
    jsonw_time(w, "since", s.since_ms);
    jsonw_i64(w, "setups", s.n);
    if (config >= 0 && f->config_facts[config].n)
        write_setup_facts(w, &f->config_facts[config]);
    else
        jsonw_null(w, "facts");
    int rc = stored_changes_write(store, &s.before, &s.now, w, err);
    jsonw_end(w);
    return rc;
}

// ---- Its metrics

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
    jsonw_fixed(w, "z", p->z, 2);
    jsonw_fixed(w, "percentile", p->percentile, 1);
    jsonw_i64(w, "nodes", p->n_peers);
    jsonw_end(w);
}

static int refuse_unjudged_node(const struct request *q, struct err *err)
{
    CLEANUP_NODESET struct nodeset one = {0};
    if (nodeset_add(&one, q->name, err) == 0)
        return where_is_stored(q, &one, "", err) < 0
                   ? -1
                   : err_set(err, ERR_NOT_FOUND, "",
                             "no run of node %s can be judged: none succeeded and has metrics",
                             q->name);
    err->code = ERR_NOT_FOUND; // no node can have this name, which is a part of the path
    *err->member = '\0';
    return -1;
}

int fleetd_node_metrics(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_FLEET struct fleet *f = stored_fleet_newest(q, err);
    CLEANUP_MEM struct fleet_place *list = NULL;
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    int node = f ? interned_find(&f->nodes, q->name) : -1;
    if (f && node < 0)
        return refuse_unjudged_node(q, err);
    int n = f ? fleet_places_find(&list, f, node, err) : -1;
    if (n < 0)
        return -1;
    int class = f->node[node].class;
    jsonw_object(&w, NULL);
    jsonw_text(&w, "node", q->name);
    jsonw_text(&w, "class", class < 0 ? NULL : f->classes.list[class]);
    jsonw_time(&w, "evaluated", f->o.now_ms);
    jsonw_time(&w, "newest", f->node[node].newest_ms);
    if (write_setup(q, f, &w, err) < 0)
        return -1;
    jsonw_array(&w, "metrics");
    for (int i = 0; i < n; i++)
        write_node_metric(&w, f, &list[i]);
    jsonw_end(&w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

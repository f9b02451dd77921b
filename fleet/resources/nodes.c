// SPDX-License-Identifier: Apache-2.0
// All of it is made in the loop: ten thousand nodes are counted in 0.1 ms, and a page of the list
// has at most a thousand.
#include "fleet/resources/resources.h"

#include <stdio.h>
#include <string.h>

#include "analysis/peers/peers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "fleet/services/known_nodes.h"
#include "fleet/services/name_runs.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_fleet.h"
#include "http/messages/alive.h"

enum {
    NODES_LIMIT = 100, // of a list, unless the request says another number
    NODES_LIMIT_MAX = 1000,
};

extern const struct embedded fleet_files[];

static int sources_begin(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "sources", "a source is being read for the first time");
}

int fleetd_ready(struct request *q, struct reply *r, struct err *err)
{
    const struct fleet_services *s = fleet_of(q);
    struct poller_totals t;
    poller_totals(s->poller, &t);
    if (t.store_state != STORE_READY)
        return err_set(err, ERR_UNAVAILABLE, "store", "%s: %s", store_state_names[t.store_state],
                       *t.store ? t.store : "the store is being opened");
    if (*naming_problem(s->naming))
        return err_set(err, ERR_UNAVAILABLE, "sources", "%s", naming_problem(s->naming));
    if (naming_begins(s->naming))
        return sources_begin(err);
    return http_alive(q, r, err);
}

int fleetd_openapi(struct request *q, struct reply *r, struct err *err)
{
    (void)err;
    reply_file(r, q, &fleet_files[0], "application/json");
    return 0;
}

// ---- GET /v1/fleet/status -----------------------------------------------------------------------

static void write_states(const struct poller *p, struct jsonw *w)
{
    int n, states[NODE_STATES] = {0}, outcomes[FLEET_OUTCOMES] = {0};
    struct polled *const *nodes = poller_nodes(p, &n);
    for (int i = 0; i < n; i++) {
        states[nodes[i]->state]++;
        outcomes[nodes[i]->outcome]++;
    }
    jsonw_i64(w, "nodes", n - states[NODE_GONE]);
    jsonw_object(w, "states");
    for (int i = 0; i < NODE_STATES; i++)
        jsonw_i64(w, node_states[i].name, states[i]);
    jsonw_end(w);
    jsonw_object(w, "outcomes");
    for (int i = FLEET_STORED + 1; i < FLEET_OUTCOMES; i++)
        jsonw_i64(w, fleet_outcomes[i].name, outcomes[i]);
    jsonw_end(w);
}

static void write_sources(const struct naming *n, struct jsonw *w)
{
    const int64_t now = clock_mono_ms();
    const struct naming_source *s;
    jsonw_array(w, "sources");
    for (int i = 0; (s = naming_source_at(n, i)); i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "source", s->source);
        jsonw_i64(w, "nodes", s->nodes);
        jsonw_time(w, "read", s->read_ms);
        if (s->read_ms)
            jsonw_i64(w, "age_s", (now - s->read_mono_ms) / 1000);
        else
            jsonw_null(w, "age_s");
        jsonw_text(w, "problem", s->problem);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_collectors(const struct poller *p, struct jsonw *w)
{
    const struct polled *n;
    jsonw_array(w, "collectors");
    for (int i = 0; (n = poller_collector_at(p, i)); i++) {
        jsonw_object(w, NULL);
        jsonw_text(w, "collector", n->name);
        jsonw_text(w, "state", node_states[n->state].name);
        jsonw_text(w, "problem", n->why);
        jsonw_text(w, "outcome", fleet_outcomes[n->outcome].name);
        jsonw_time(w, "received", n->seen_ms);
        jsonw_text(w, "history_id", n->history);
        jsonw_i64(w, "next", n->after);
        jsonw_i64(w, "lost", n->lost);
        jsonw_text(w, "version", n->version);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_kept(const struct judging_summary *s, struct jsonw *w)
{
    const struct kept_counts *c = &s->judged.counts;
    jsonw_object(w, "findings");
    jsonw_time(w, "judged", s->judged_ms);
    jsonw_text(w, "problem", s->problem);
    jsonw_bool(w, "known", s->counted);
    jsonw_i64(w, "left_out", s->judged.left_out);
    jsonw_object(w, "states");
    for (int i = KEPT_FORMING; i < KEPT_STATES; i++)
        jsonw_i64(w, kept_states[i].name, c->states[i]);
    jsonw_end(w);
    jsonw_object(w, "open");
    for (int i = 0; i < KEPT_WHATS; i++) {
        jsonw_object(w, kept_whats[i].name);
        jsonw_i64(w, "suspect", c->open[i][PEERS_SUSPECT]);
        jsonw_i64(w, "sure", c->open[i][PEERS_SURE]);
        jsonw_i64(w, "ungraded", c->open[i][PEERS_FINE]);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_end(w);
    if (s->coverage->len)
        jsonw_raw(w, "coverage", buf_text(s->coverage));
    else
        jsonw_null(w, "coverage");
}

int fleetd_status(struct request *q, struct reply *r, struct err *err)
{
    const struct fleet_services *s = fleet_of(q);
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct poller_totals t;
    poller_totals(s->poller, &t);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "version", NUMAPROBE_VERSION);
    jsonw_time(&w, "now", clock_wall_ms());
    jsonw_time(&w, "started", s->started_ms);
    write_states(s->poller, &w);
    jsonw_text(&w, "sources_problem", naming_problem(s->naming));
    write_sources(s->naming, &w);
    write_collectors(s->poller, &w);
    jsonw_bool(&w, "store_ready", t.store_state == STORE_READY);
    jsonw_text(&w, "store_state", store_state_names[t.store_state]);
    jsonw_time(&w, "store_since", t.store_since_ms);
    jsonw_text(&w, "store_problem", t.store);
    jsonw_i64(&w, "requests", t.requests);
    jsonw_i64(&w, "failed", t.failed);
    jsonw_i64(&w, "runs_stored", t.stored);
    jsonw_i64(&w, "in_flight", t.in_flight);
    jsonw_i64(&w, "backlog_bytes", (int64_t)poller_backlog(s->poller));
    jsonw_i64(&w, "every_s", s->config->every_s);
    const struct judging_summary findings = judging_summary(s->judging);
    write_kept(&findings, &w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

// ---- GET /v1/fleet/nodes ------------------------------------------------------------------------

static void write_word_list(struct jsonw *w, const char *member, const char *list)
{
    char word[64];
    jsonw_array(w, member);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        jsonw_text(w, NULL, word);
    }
    jsonw_end(w);
}

static void write_said(const struct polled *n, const struct naming *naming, struct jsonw *w)
{
    const struct naming_source *s;
    jsonw_array(w, "sources");
    for (int i = 0; (s = naming_source_at(naming, i)); i++)
        if (n->sources >> i & 1)
            jsonw_text(w, NULL, s->source);
    jsonw_end(w);
    jsonw_text(w, "url", n->base[0]);
    jsonw_text(w, "other_url", n->base[1]);
    jsonw_text(w, "class_hint", n->class_hint);
    jsonw_text(w, "slurm_state", n->slurm_state);
    jsonw_text(w, "slurm_reason",
               *n->slurm_state && naming_slurm_known(naming) ? n->slurm_reason : NULL);
    write_word_list(w, "partitions", n->partitions);
    jsonw_bool(w, "asleep", node_asleep(n));
    jsonw_bool(w, "pushes", n->pushes);
    jsonw_text(w, "collector", n->behind);
}

static void write_faults(const struct polled *n, struct jsonw *w)
{
    jsonw_i64(w, "skew_ms", n->skew_ms);
    jsonw_bool(w, "clock_wrong", node_clock_wrong(n));
    jsonw_bool(w, "duplicate", node_duplicate(n) || n->twice);
    jsonw_time(w, "poison", n->poison_ms);
    jsonw_bool(w, "too_old", n->too_old);
}

// Why its last request failed, or why there is none: a collector on standby contacts no node.
static const char *problem_of(const struct polled *n, const struct fleet_services *s)
{
    struct poller_totals t;
    if (*n->why || n->state != NODE_NEW)
        return n->why;
    poller_totals(s->poller, &t);
    return t.store_state == STORE_STANDBY
               ? "this collector is standby and contacts no node: request the one that writes"
               : "";
}

static void write_polled(const struct polled *n, const struct fleet_services *s, struct jsonw *w)
{
    jsonw_object(w, NULL);
    jsonw_text(w, "node", n->name);
    jsonw_text(w, "state", node_states[n->state].name);
    jsonw_text(w, "problem", problem_of(n, s));
    jsonw_text(w, "outcome", fleet_outcomes[n->outcome].name);
    jsonw_text(w, "outcome_text",
               n->outcome == FLEET_STORED ? "" : fleet_outcomes[n->outcome].text);
    jsonw_text(w, "other", n->other);
    jsonw_time(w, "received", n->seen_ms);
    jsonw_time(w, "newest", n->newest_ms);
    jsonw_i64(w, "next", n->after);
    jsonw_text(w, "history_id", n->history);
    jsonw_text(w, "version", n->version);
    jsonw_i64(w, "failures", n->failures);
    write_said(n, s->naming, w);
    write_faults(n, w);
    jsonw_end(w);
}

static int state_of(const struct request *q, int *out, struct err *err)
{
    const char *text = request_query(q, "state");
    *out = -1;
    if (!text)
        return 0;
    for (int i = 0; i < NODE_STATES; i++)
        if (strcmp(text, node_states[i].name) == 0)
            *out = i;
    return *out >= 0
               ? 0
               : err_set(err, ERR_INVALID, "state", "must be new, up, missed, late, down or gone");
}

struct node_filter {
    int state; // -1: any
    bool named;
    struct nodeset where;
    const char *after;
    int64_t limit;
};

static int read_node_filter(const struct request *q, struct node_filter *f, struct err *err)
{
    const char *cursor = request_query(q, "cursor");
    f->limit = NODES_LIMIT;
    f->after = cursor ? cursor : "";
    if (cursor && nodeset_name_check(cursor, err) < 0)
        return err_set(err, ERR_INVALID, "cursor", "is not one of an earlier response");
    if (state_of(q, &f->state, err) < 0 ||
        request_query_int(q, "limit", 1, NODES_LIMIT_MAX, &f->limit, err) < 0)
        return -1;
    return where_read(q, &f->where, &f->named, err);
}

static int nodes_are_known(const struct request *q, const struct nodeset *where, const char *member,
                           struct err *err)
{
    struct known_nodes known;
    int n;
    struct polled *const *nodes = poller_nodes(fleet_of(q)->poller, &n);
    known_nodes_begin(&known, where);
    for (int i = 0; i < n; i++)
        known_nodes_add(&known, nodes[i]->name);
    if (known_nodes_end(&known, member, "no source names", err) == 0)
        return 0;
    return naming_begins(fleet_of(q)->naming) ? sources_begin(err) : -1;
}

// In the loop: the store knows no node that never sent anything.
void fleetd_named_work(const struct request *q, struct work *w, struct err *why)
{
    CLEANUP_NODESET struct nodeset where = {0};
    const char *node = request_query(q, "node");
    bool given;
    fleetd_work(q, w, why);
    if (where_read(q, &where, &given, why) == 0 && (!node || nodeset_add(&where, node, why) == 0) &&
        where.n && (naming_begins(fleet_of(q)->naming) || nodes_are_known(q, &where, "", why) == 0))
        w->hint = NODES_FOLLOWED;
}

static bool filter_takes(const struct node_filter *f, const struct polled *n)
{
    return strcmp(n->name, f->after) > 0 && (f->state < 0 || (int)n->state == f->state) &&
           (!f->named || nodeset_has(&f->where, n->name));
}

int fleetd_node_list(struct request *q, struct reply *r, struct err *err)
{
    struct node_filter f = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    const char *last = NULL;
    bool more = false;
    int rc = read_node_filter(q, &f, err), n, listed = 0;
    if (rc == 0)
        rc = nodes_are_known(q, &f.where, "where", err);
    struct polled *const *nodes = poller_nodes(fleet_of(q)->poller, &n);
    jsonw_object(&w, NULL);
    jsonw_array(&w, "nodes");
    for (int i = 0; rc == 0 && i < n && !more; i++)
        if (filter_takes(&f, nodes[i])) {
            more = listed == f.limit;
            if (more)
                break;
            write_polled(nodes[i], fleet_of(q), &w);
            last = nodes[i]->name;
            listed++;
        }
    jsonw_end(&w);
    jsonw_text(&w, "cursor", more ? last : NULL);
    jsonw_end(&w);
    nodeset_free(&f.where);
    return rc < 0 ? -1 : reply_json(r, 200, &body, err);
}

// Returns -1.
static int node_unknown(const struct request *q, struct err *err)
{
    CLEANUP_NODESET struct nodeset one = {0};
    if (nodeset_add(&one, q->name, err) == 0)
        return nodes_are_known(q, &one, "", err);
    err->code = ERR_NOT_FOUND; // no node can have this name, which is a part of the path
    *err->member = '\0';
    return -1;
}

int fleetd_node(struct request *q, struct reply *r, struct err *err)
{
    const struct polled *n = poller_find(fleet_of(q)->poller, q->name);
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    if (!n)
        return node_unknown(q, err);
    write_polled(n, fleet_of(q), &w);
    return reply_json(r, 200, &body, err);
}

// ---- GET /v1/fleet/states -----------------------------------------------------------------------

// Ten thousand names take 2 ms, and a page shows all of them.
int fleetd_states(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    int n;
    struct polled *const *nodes = poller_nodes(fleet_of(q)->poller, &n);
    jsonw_object(&w, NULL);
    for (int state = 0; state < NODE_STATES; state++) {
        struct name_runs names = {.w = &w};
        jsonw_array(&w, node_states[state].name);
        for (int i = 0; i < n; i++)
            if ((int)nodes[i]->state == state)
                name_runs_add(&names, nodes[i]->name);
        name_runs_end(&names);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

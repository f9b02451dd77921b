// SPDX-License-Identifier: Apache-2.0
// How the collector is, and how its fleet is as a whole. All of it is made in the loop: ten
// thousand nodes are counted in 0.1 ms, and their versions in 1 ms.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/interned.h"
#include "analysis/peers/peers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "fleet/resources/resources.h"
#include "fleet/services/polling.h"
#include "fleet/services/services.h"
#include "http/messages/alive.h"

enum { STATUS_VERSIONS_MAX = 20 }; // listed: those of most nodes

extern const struct embedded fleet_files[];

int fleetd_ready(struct request *q, struct reply *r, struct err *err)
{
    const struct fleet_services *s = fleet_of(q);
    struct poller_totals t;
    poller_totals(s->poller, &t);
    if (t.store_state == STORE_READY && *t.store)
        return err_set(err, ERR_UNAVAILABLE, "store", "%s", t.store);
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
    struct polling_counts c;
    polling_count(p, &c);
    jsonw_i64(w, "nodes", c.all - c.states[NODE_GONE]);
    jsonw_object(w, "states");
    for (int i = 0; i < NODE_STATES; i++)
        jsonw_i64(w, node_states[i].name, c.states[i]);
    jsonw_end(w);
    jsonw_object(w, "outcomes");
    for (int i = FLEET_STORED + 1; i < FLEET_OUTCOMES; i++)
        jsonw_i64(w, fleet_outcomes[i].name, c.outcomes[i]);
    jsonw_end(w);
}

struct version_count {
    const char *version; // borrowed
    int nodes;
};

static int by_nodes_most(const void *a, const void *b)
{
    const struct version_count *x = a, *y = b;
    return x->nodes != y->nodes ? y->nodes - x->nodes : strcmp(x->version, y->version);
}

// In the order of names most nodes have the version of the one before.
static int count_versions(const struct poller *p, struct interned *texts,
                          struct version_count *count, struct err *err)
{
    int n, at = -1;
    struct polled *const *nodes = poller_nodes(p, &n);
    for (int i = 0; i < n; i++) {
        if (nodes[i]->state == NODE_GONE || !*nodes[i]->version)
            continue;
        if (at < 0 || strcmp(texts->list[at], nodes[i]->version) != 0)
            at = interned_add(texts, nodes[i]->version, err);
        if (at < 0)
            return -1;
        count[at].nodes++;
    }
    for (int i = 0; i < texts->n; i++)
        count[i].version = texts->list[i];
    qsort(count, (size_t)texts->n, sizeof *count, by_nodes_most);
    return 0;
}

static int write_versions(const struct poller *p, struct jsonw *w, struct err *err)
{
    int n, others = 0;
    struct interned texts CLEANUP(interned_fini) = {0};
    poller_nodes(p, &n);
    CLEANUP_MEM struct version_count *count = calloc((size_t)n + 1, sizeof *count);
    if (!count)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the versions of %d nodes", n);
    if (count_versions(p, &texts, count, err) < 0)
        return -1;
    jsonw_array(w, "versions");
    for (int i = 0; i < texts.n; i++) {
        if (i >= STATUS_VERSIONS_MAX) {
            others += count[i].nodes;
            continue;
        }
        jsonw_object(w, NULL);
        jsonw_text(w, "version", count[i].version);
        jsonw_i64(w, "nodes", count[i].nodes);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_i64(w, "other_versions", others);
    return 0;
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

// What the store holds is counted with each judgement.
static void write_holds(const struct fleet_store_size *z, struct jsonw *w)
{
    if (!z->bytes) {
        jsonw_null(w, "store_runs");
        jsonw_null(w, "store_bytes");
        return;
    }
    jsonw_i64(w, "store_runs", z->runs);
    jsonw_i64(w, "store_bytes", z->bytes);
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

static void write_clock(const struct poller *p, struct jsonw *w)
{
    char text[120] = "";
    const double off_min = (double)poller_clock_off(p) / 60e3;
    if (off_min != 0)
        snprintf(text, sizeof text, "the collector's clock is %.0f min %s that of most nodes",
                 fabs(off_min), off_min > 0 ? "ahead of" : "behind");
    jsonw_text(w, "clock_problem", text);
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
    if (write_versions(s->poller, &w, err) < 0)
        return -1;
    jsonw_fixed(&w, "lag_s", (double)polling_lag_ms(s->poller) / 1e3, 1);
    jsonw_text(&w, "sources_problem", naming_problem(s->naming));
    write_sources(s->naming, &w);
    write_clock(s->poller, &w);
    write_collectors(s->poller, &w);
    jsonw_bool(&w, "store_ready", t.store_state == STORE_READY);
    jsonw_text(&w, "store_state", store_state_names[t.store_state]);
    jsonw_time(&w, "store_since", t.store_since_ms);
    jsonw_text(&w, "store_problem", t.store);
    const struct judging_summary judged = judging_summary(s->judging);
    write_holds(&judged.store, &w);
    jsonw_i64(&w, "requests", t.requests);
    jsonw_i64(&w, "failed", t.failed);
    jsonw_i64(&w, "runs_stored", t.stored);
    jsonw_i64(&w, "archive_given_up", t.given_up);
    jsonw_i64(&w, "in_flight", t.in_flight);
    jsonw_i64(&w, "backlog_bytes", (int64_t)poller_backlog(s->poller));
    jsonw_i64(&w, "every_s", s->config->every_s);
    write_kept(&judged, &w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

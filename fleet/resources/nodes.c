// SPDX-License-Identifier: Apache-2.0
// Nodes as the collector sees them. All of it is made in the loop: a page of the list has at most a
// thousand.
#include "fleet/resources/resources.h"

#include <stdio.h>
#include <string.h>

#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "fleet/services/class_metrics.h"
#include "fleet/services/known_nodes.h"
#include "fleet/services/name_runs.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_fleet.h"

enum {
    NODES_LIMIT = 100, // of a list, unless the request says another number
    NODES_LIMIT_MAX = 1000,
};

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
    jsonw_i64(w, "skew_ms", node_clock_off(n));
    jsonw_bool(w, "clock_wrong", node_clock_wrong(n));
    jsonw_bool(w, "duplicate", node_duplicate(n) || n->twice);
    jsonw_time(w, "poison", n->poison_ms);
    jsonw_bool(w, "too_old", n->too_old);
}

// Why its last request failed, or why there is none: a collector on standby contacts no node.
static const char *problem_of(const struct polled *n, const struct fleet_services *s)
{
    if (*n->why || n->state != NODE_NEW)
        return n->why;
    return poller_stands_by(s->poller)
               ? "this collector is standby and contacts no node: request the one that writes"
               : "";
}

// `of`: what the history has of it. A run that came since the start may be newer.
static void write_polled(const struct polled *n, const struct class_node *of,
                         const struct fleet_services *s, struct jsonw *w)
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
    jsonw_time(w, "newest", n->newest_ms > of->newest_ms ? n->newest_ms : of->newest_ms);
    jsonw_i64(w, "next", n->after);
    jsonw_text(w, "history_id", n->history);
    jsonw_text(w, "version", n->version);
    jsonw_text(w, "class", of->class);
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
    int state;         // -1: any
    const char *class; // the whole hash; NULL: any
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
    if (where_read(q, &where, &given, why) < 0 || (!node && !given))
        return;
    if (naming_begins(fleet_of(q)->naming) || (node ? poller_find(fleet_of(q)->poller, node) != NULL
                                                    : nodes_are_known(q, &where, "", why) == 0))
        w->hint = NODES_FOLLOWED;
}

void fleetd_node_list_work(const struct request *q, struct work *w, struct err *why)
{
    (request_query(q, "class") ? fleetd_metrics_work : fleetd_node_work)(q, w, why);
}

// ?class= is the beginning of a hash.
static int read_node_class(const struct request *q, const char **class, struct err *err)
{
    const char *prefix = request_query(q, "class");
    struct class_search search = {0};
    int n;
    struct polled *const *nodes = poller_nodes(fleet_of(q)->poller, &n);
    *class = NULL;
    if (prefix && !*class_metrics_text())
        return err_set(err, ERR_UNAVAILABLE, "class", "the history has not been read yet");
    for (int i = 0; prefix && i < n; i++) {
        const char *one = class_metrics_next(&search, nodes[i]->name).class;
        if (!one || !str_starts(one, prefix))
            continue;
        if (*class && strcmp(one, *class) != 0)
            return fleet_class_ambiguous(prefix, err);
        *class = one;
    }
    return !prefix || *class ? 0 : fleet_class_unknown(prefix, err);
}

static bool filter_takes(const struct node_filter *f, const struct polled *n, const char *class)
{
    return strcmp(n->name, f->after) > 0 && (f->state < 0 || (int)n->state == f->state) &&
           (!f->class || (class && strcmp(class, f->class) == 0)) &&
           (!f->named || nodeset_has(&f->where, n->name));
}

int fleetd_node_list(struct request *q, struct reply *r, struct err *err)
{
    struct node_filter f = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct class_search search = {0};
    const char *last = NULL;
    bool more = false;
    int rc = read_node_filter(q, &f, err), n, listed = 0;
    if (rc == 0)
        rc = nodes_are_known(q, &f.where, "where", err);
    if (rc == 0)
        rc = read_node_class(q, &f.class, err);
    struct polled *const *nodes = poller_nodes(fleet_of(q)->poller, &n);
    jsonw_object(&w, NULL);
    jsonw_array(&w, "nodes");
    for (int i = 0; rc == 0 && i < n && !more; i++) {
        const struct class_node of = class_metrics_next(&search, nodes[i]->name);
        if (!filter_takes(&f, nodes[i], of.class))
            continue;
        more = listed == f.limit;
        if (more)
            break;
        write_polled(nodes[i], &of, fleet_of(q), &w);
        last = nodes[i]->name;
        listed++;
    }
    jsonw_end(&w);
    jsonw_text(&w, "cursor", more ? last : NULL);
    jsonw_bool(&w, "standby", poller_stands_by(fleet_of(q)->poller));
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
    const struct class_node of = class_metrics_of(n->name);
    write_polled(n, &of, fleet_of(q), &w);
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

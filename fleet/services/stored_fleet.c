// SPDX-License-Identifier: Apache-2.0
// Runs first, then the documents of facts that they name: ten thousand nodes of one class have one.
#include "fleet/services/stored_fleet.h"

#include <stdio.h>
#include <stdlib.h>

#include "analysis/peers/fleet_order.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fleet/services/known_nodes.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_facts.h"

#define STRETCH_MS (60 * INT64_C(86400000))

int where_read(const struct request *q, struct nodeset *out, bool *given, struct err *err)
{
    const char *where = request_query(q, "where");
    *given = where != NULL;
    if (!where)
        return 0;
    if (nodeset_parse_members(out, where, NODESET_MEMBERS_MAX, err) < 0) {
        snprintf(err->member, sizeof err->member, "where");
        return -1;
    }
    return out->n ? 0
                  : err_set(err, ERR_INVALID, "where",
                            "names no node: give a set, such as n[1-100], or leave it out");
}

int where_has_none(struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "where", "no run of these nodes is stored, or none in time");
}

static int where_consider(void *ctx, const struct fleet_feed *f, struct err *err)
{
    (void)err;
    known_nodes_add(ctx, f->name);
    return 0;
}

int where_is_stored(const struct request *q, const struct nodeset *where, const char *member,
                    struct err *err)
{
    struct known_nodes known;
    known_nodes_begin(&known, where);
    if (q->hint == NODES_FOLLOWED)
        return 0;
    return fleet_store_feeds(fleet_of(q)->store, true, where_consider, &known, err) < 0
               ? -1
               : known_nodes_end(&known, member, "no run is stored of", err);
}

int stretch_read(const struct request *q, int64_t *since_ms, int64_t *until_ms, struct err *err)
{
    if (request_query_stretch(q, since_ms, until_ms, err) < 0)
        return -1;
    int64_t now_ms = clock_wall_ms() + FLEET_STORE_AHEAD_MS; // of nodes whose clocks are ahead
    return *until_ms || *since_ms < now_ms
               ? 0
               : err_set(err, ERR_INVALID, "since", "must be before now");
}

int64_t stretch_begins(const struct request *q, int64_t since_ms, int64_t until_ms)
{
    if (request_query(q, "since"))
        return since_ms; // also 1970-01-01, which is 0
    since_ms = (until_ms ? until_ms : clock_wall_ms()) - STRETCH_MS;
    return since_ms > 0 ? since_ms : 0;
}

struct stored_pages {
    struct fleet *fleet;
    long runs;
};

static int add_page(void *ctx, const struct summary_page *page, struct err *err)
{
    struct stored_pages *p = ctx;
    p->runs += page->n_runs;
    if (p->runs > STORED_RUNS_MAX)
        return err_set(err, ERR_TOO_LARGE, "where",
                       "these are more than %d runs; request fewer nodes, or a shorter time",
                       STORED_RUNS_MAX);
    return fleet_add_page(p->fleet, page, err);
}

static int add_documents(struct fleet_store *store, struct fleet *f, struct err *err)
{
    CLEANUP_MEM struct facts *facts = malloc(sizeof *facts);
    if (!facts)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for facts");
    const char *hash;
    for (int at = 0; (hash = fleet_facts_wanted(f, &at));) {
        CLEANUP_JSON struct json *document = NULL;
        if (stored_facts_read(store, hash, facts, &document, err) < 0 ||
            (document && fleet_add_facts(f, facts, err) < 0))
            return -1;
    }
    return 0;
}

struct fleet *stored_fleet_of(struct fleet_store *store, const struct fleet_options *o,
                              const struct fleet_window *w, struct err *err)
{
    CLEANUP_FLEET struct fleet *f = fleet_new(o, err);
    struct stored_pages pages = {.fleet = f};
    if (!f || fleet_store_window(store, w, add_page, &pages, err) < 0 ||
        add_documents(store, f, err) < 0 || fleet_arrange(f, err) < 0)
        return NULL;
    return steal_ptr(&f);
}

struct fleet *stored_fleet_read(const struct request *q, const struct fleet_options *o,
                                const struct fleet_window *w, struct err *err)
{
    CLEANUP_NODESET struct nodeset where = {0};
    struct fleet_window window = *w;
    bool given;
    if (where_read(q, &where, &given, err) < 0)
        return NULL;
    window.nodes = given ? &where : NULL;
    CLEANUP_FLEET struct fleet *f = stored_fleet_of(fleet_of(q)->store, o, &window, err);
    if (f && given && !f->nodes.n) {
        if (where_is_stored(q, &where, "where", err) == 0)
            where_has_none(err);
        return NULL;
    }
    if (f && !f->nodes.n && (request_query(q, "since") || request_query(q, "until"))) {
        err_set(err, ERR_NOT_FOUND, "since", "no run of this time is stored");
        return NULL;
    }
    return steal_ptr(&f);
}

struct fleet *stored_fleet_newest(const struct request *q, struct err *err)
{
    struct fleet_options o = FLEET_DEFAULTS;
    int64_t days = o.window_days;
    if (request_query_int(q, "window_days", 1, STORED_WINDOW_DAYS_MAX, &days, err) < 0)
        return NULL;
    o.now_ms = clock_wall_ms();
    o.window_days = (int)days;
    const struct fleet_window w = {.class_hash = request_query(q, "class"), .newest = o.runs_max};
    return stored_fleet_of(fleet_of(q)->store, &o, &w, err);
}

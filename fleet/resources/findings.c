// SPDX-License-Identifier: Apache-2.0
// Findings that are kept. Lists come from the store, in the process that reads. A mark goes to the
// process that stores, and the response waits until it is stored.
#include "fleet/resources/resources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/peers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "fleet/services/known_nodes.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_fleet.h"
#include "fleet/store/findings.h"
#include "http/access/access.h"
#include "model/nodeset.h"

enum {
    FINDINGS_LIMIT = 100, // of a list, unless the request says another number
    FINDINGS_LIMIT_MAX = 1000,
    FINDINGS_PAGE_BYTES = 4 << 20, // then the page ends: evidence of a large group is 1 MB
};

static void write_or_null(struct jsonw *w, const char *key, const char *text)
{
    jsonw_text(w, key, *text ? text : NULL);
}

static void write_kept_finding(const struct fleet_kept *k, struct jsonw *w)
{
    jsonw_object(w, NULL);
    jsonw_i64(w, "id", k->id);
    jsonw_text(w, "what", kept_whats[k->what].name);
    jsonw_text(w, "grade", k->grade ? peers_grade_names[k->grade] : NULL);
    write_or_null(w, "node", k->node);
    write_or_null(w, "class", k->class);
    jsonw_text(w, "text", k->text);
    write_or_null(w, "metric", k->metric);
    jsonw_fixed(w, "percent", k->percent, 2);
    jsonw_fixed(w, "lo", k->lo, 2);
    jsonw_fixed(w, "hi", k->hi, 2);
    jsonw_time(w, "since", k->since_ms);
    jsonw_time(w, "found", k->found_ms);
    jsonw_time(w, "seen", k->seen_ms);
    jsonw_time(w, "opened", k->opened_ms);
    jsonw_time(w, "closed", k->closed_ms);
    jsonw_time(w, "marked", k->marked_ms);
    jsonw_time(w, "drained", k->drained_ms);
    jsonw_i64(w, "times", k->times);
    jsonw_text(w, "state", kept_states[k->state].name);
    jsonw_text(w, "note", k->note);
    jsonw_text(w, "by", k->by);
    jsonw_raw(w, "evidence", k->evidence);
    jsonw_end(w);
}

// ---- Lists --------------------------------------------------------------------------------------

struct kept_page {
    struct fleet_kept_query query;
    struct nodeset where;
    bool named; // `where` counts
    int64_t limit, listed, last;
    bool more;
    struct buf body;
    struct jsonw w;
};

static void kept_page_fini(struct kept_page *p)
{
    nodeset_free(&p->where);
    buf_free(&p->body);
}

static int list_finding(void *ctx, const struct fleet_kept *k, struct err *err)
{
    struct kept_page *p = ctx;
    (void)err;
    if (p->named && *k->node && !nodeset_has(&p->where, k->node)) // of a group: of many nodes
        return 0;
    p->more = p->listed == p->limit || p->body.len > FINDINGS_PAGE_BYTES;
    if (p->more)
        return 1;
    write_kept_finding(k, &p->w);
    p->last = k->id;
    p->listed++;
    return 0;
}

static int read_kept_states(const struct request *q, unsigned *states, struct err *err)
{
    const char *text = request_query(q, "state");
    int state = text ? kept_state_find(text) : KEPT_NONE;
    if (state < 0)
        return err_set(err, ERR_INVALID, "state",
                       "must be forming, open, acknowledged, fixed or closed");
    *states = text ? 1U << state : 1U << KEPT_OPEN | 1U << KEPT_ACKNOWLEDGED | 1U << KEPT_FIXED;
    return 0;
}

static int read_kept_what(const struct request *q, const char **what, struct err *err)
{
    CLEANUP_BUF struct buf names = BUF_INIT;
    *what = request_query(q, "what");
    if (!*what || kept_what_find(*what) >= 0)
        return 0;
    for (int i = 0; i < KEPT_WHATS; i++)
        buf_fmt(&names, "%s%s", i ? ", " : "", kept_whats[i].name);
    return err_set(err, ERR_INVALID, "what", "must be one of %s", buf_text(&names));
}

static int read_kept_query(const struct request *q, struct kept_page *p, struct err *err)
{
    p->limit = FINDINGS_LIMIT;
    p->query.node = request_query(q, "node");
    if (p->query.node && nodeset_name_check(p->query.node, err) < 0) {
        snprintf(err->member, sizeof err->member, "node");
        return -1;
    }
    if (read_kept_states(q, &p->query.states, err) < 0 ||
        read_kept_what(q, &p->query.what, err) < 0 ||
        request_query_int(q, "limit", 1, FINDINGS_LIMIT_MAX, &p->limit, err) < 0 ||
        request_query_int(q, "cursor", 1, INT64_MAX, &p->query.before, err) < 0)
        return -1;
    return where_read(q, &p->where, &p->named, err);
}

// A finding may be of a node that never sent a run.
static int any_finding(void *ctx, const struct fleet_kept *k, struct err *err)
{
    (void)err;
    known_nodes_add(ctx, k->node);
    return 0;
}

// Of what the request names, where nothing is listed.
static int kept_nodes_known(const struct request *q, const struct kept_page *p, struct err *err)
{
    CLEANUP_NODESET struct nodeset one = {0};
    struct known_nodes of_findings;
    const struct nodeset *names = p->named ? &p->where : &one;
    if (p->query.node && nodeset_add(&one, p->query.node, err) < 0)
        return -1;
    if (p->query.node)
        names = &one;
    known_nodes_begin(&of_findings, names);
    if (of_findings.any || q->hint == NODES_FOLLOWED)
        return 0;
    if (fleet_store_findings(fleet_of(q)->store, &(struct fleet_kept_query){.states = ~0U},
                             any_finding, &of_findings, err) < 0)
        return -1;
    return of_findings.any ? 0 : where_is_stored(q, names, p->query.node ? "node" : "where", err);
}

int fleetd_findings(struct request *q, struct reply *r, struct err *err)
{
    struct kept_page p CLEANUP(kept_page_fini) = {.body = BUF_INIT};
    p.w = jsonw_to(&p.body);
    if (read_kept_query(q, &p, err) < 0)
        return -1;
    jsonw_object(&p.w, NULL);
    jsonw_array(&p.w, "findings");
    if (fleet_store_findings(fleet_of(q)->store, &p.query, list_finding, &p, err) < 0)
        return -1;
    if (!p.listed && !p.query.before && kept_nodes_known(q, &p, err) < 0)
        return -1;
    jsonw_end(&p.w);
    if (p.more)
        jsonw_i64(&p.w, "next", p.last);
    else
        jsonw_null(&p.w, "next");
    jsonw_end(&p.w);
    return reply_json(r, 200, &p.body, err);
}

int fleetd_finding(struct request *q, struct reply *r, struct err *err)
{
    struct kept_page p CLEANUP(kept_page_fini) = {.body = BUF_INIT, .limit = 1};
    p.query = (struct fleet_kept_query){.id = q->arg, .states = ~0U};
    p.w = jsonw_to(&p.body);
    if (fleet_store_findings(fleet_of(q)->store, &p.query, list_finding, &p, err) < 0)
        return -1;
    return p.listed
               ? reply_json(r, 200, &p.body, err)
               : err_set(err, ERR_NOT_FOUND, "id", "there is no finding %lld", (long long)q->arg);
}

// ---- Marks --------------------------------------------------------------------------------------

struct mark_source {
    struct judging *judging;
    int64_t ticket;
};

static void mark_source_close(void *opened)
{
    struct mark_source *s = opened;
    judging_mark_wake(s->judging, s->ticket, NULL, NULL);
    free(s);
}

static void *mark_source_open(void *context, int64_t of, int64_t after, void (*wake)(void *ctx),
                              void *ctx, struct err *err)
{
    const struct fleet_services *services = context;
    struct mark_source *s = malloc(sizeof *s);
    (void)after;
    if (!s) {
        err_set(err, ERR_NO_MEMORY, "", "no memory to wait for the store");
        return NULL;
    }
    *s = (struct mark_source){services->judging, of};
    judging_mark_wake(s->judging, of, wake, ctx);
    return s;
}

static const struct reply_source mark_stored = {.open = mark_source_open,
                                                .close = mark_source_close};

static int read_mark_note(const struct json *note, struct ingest_mark *m, struct err *err)
{
    const char *text = json_text(note);
    if (!note)
        return 0;
    if (!text || strlen(text) > KEPT_NOTE_MAX)
        return err_set(err, ERR_INVALID, "note", "must be a text of at most %d bytes",
                       KEPT_NOTE_MAX);
    const char *control = str_control(text, strlen(text)); // as in the note of a run
    if (control)
        return err_set(err, ERR_INVALID, "note", "has %s", str_control_name(control).text);
    snprintf(m->note, sizeof m->note, "%s", text);
    m->noted = true;
    return 0;
}

static int read_mark(const struct request *q, struct ingest_mark *m, struct err *err)
{
    static const int events[KEPT_STATES] = {
        [KEPT_OPEN] = KEPT_REOPEN, [KEPT_ACKNOWLEDGED] = KEPT_ACKNOWLEDGE, [KEPT_FIXED] = KEPT_FIX};
    CLEANUP_JSON struct json *root = request_json(q, err);
    if (!root)
        return -1;
    if (!json_is_object(root))
        return err_set(err, ERR_INVALID, "",
                       "must be a JSON object: {\"state\":\"acknowledged\",\"note\":…}");
    for (const struct json *one = json_first(root); one; one = json_next(one))
        if (strcmp(json_name(one), "state") != 0 && strcmp(json_name(one), "note") != 0)
            return err_set(err, ERR_INVALID, json_name(one),
                           "is unknown; the members are state and note");
    const char *text = json_text(json_get(root, "state"));
    int state = text ? kept_state_find(text) : -1;
    if (state < 0 || !events[state])
        return err_set(err, ERR_INVALID, "state", "must be open, acknowledged or fixed");
    *m = (struct ingest_mark){
        .id = q->arg, .now_ms = clock_wall_ms(), .event = (enum kept_event)events[state]};
    access_write_client(q, m->by);
    return read_mark_note(json_get(root, "note"), m, err);
}

static int send_mark(const struct ingest_mark *m, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "id", m->id);
    // None of these events depends on the state before.
    jsonw_text(&w, "state", kept_states[kept_states[KEPT_OPEN].after[m->event]].name);
    jsonw_text(&w, "note", m->noted ? m->note : NULL);
    jsonw_text(&w, "by", m->by);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

int fleetd_finding_mark(struct request *q, struct reply *r, struct err *err)
{
    struct judging *j = fleet_of(q)->judging;
    struct ingest_mark m;
    if (read_mark(q, &m, err) < 0)
        return -1;
    if (!q->made && (q->made = judging_mark(j, &m, err)) < 0)
        return -1;
    int stored = judging_marked(j, q->made, err);
    if (stored < 0)
        return -1;
    if (stored)
        return send_mark(&m, r, err);
    return q->again ? err_set(err, ERR_UNAVAILABLE, "store",
                              "the store has not confirmed the change; it may still be made")
                    : reply_wait(r, &mark_stored, q->made, MARK_WAIT_MS);
}

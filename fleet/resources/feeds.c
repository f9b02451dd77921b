// SPDX-License-Identifier: Apache-2.0
// Nodes that the collector cannot contact send the pages of their feed themselves. A page is handed
// on unread, and the response waits until it is stored. So are the facts that the collector lacks.
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "fleet/resources/resources.h"
#include "fleet/services/services.h"
#include "http/access/access.h"
#include "http/access/token_routes.h"

enum { PUSH_MS = 20000 }; // for the store to keep a page

static void write_feed_place(const struct poller *p, const struct polled *n, struct jsonw *w)
{
    const char *hash;
    jsonw_text(w, "node", n->name);
    if (*n->history)
        jsonw_text(w, "history_id", n->history);
    else
        jsonw_null(w, "history_id");
    jsonw_i64(w, "next", n->after);
    jsonw_array(w, "facts_wanted");
    for (int i = 0; (hash = poller_lacks(p, n->name, i)); i++)
        jsonw_text(w, NULL, hash);
    jsonw_end(w);
}

// A token names the node, or the request has no access. So the source "announce" will name it too,
// when it has been read since the start, or since the token was made.
static const struct polled *feed_pushing(const struct request *q, struct err *err)
{
    const struct fleet_services *s = fleet_of(q);
    const struct polled *n = poller_pushing(s->poller, q->name, err);
    const char *problem = n || q->made ? NULL : naming_announce_problem(s->naming);
    if (problem)
        err_set(err, ERR_UNAVAILABLE, "name", "%.63s is not listed yet: %.150s", q->name,
                *problem ? problem : "the tokens are being read");
    return n;
}

int fleetd_feed_place(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    const struct polled *n = access_check_node(q, q->name, err) < 0 ? NULL : feed_pushing(q, err);
    if (!n || poller_check_open(fleet_of(q)->poller, err) < 0)
        return -1;
    jsonw_object(&w, NULL);
    write_feed_place(fleet_of(q)->poller, n, &w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

// ---- A page, and facts --------------------------------------------------------------------------

// A node pushes again before the response to its first page is closed.
struct stored_watch {
    struct poller *poller;
    int64_t page;
};

static void *stored_open(void *context, int64_t of, int64_t after, void (*wake)(void *ctx),
                         void *ctx, struct err *err)
{
    const struct fleet_services *s = context;
    struct stored_watch *w = malloc(sizeof *w);
    (void)after;
    if (!w) {
        err_set(err, ERR_NO_MEMORY, "", "no memory to wait for the store");
        return NULL;
    }
    *w = (struct stored_watch){s->poller, of};
    if (poller_push_watch(s->poller, of, wake, ctx) == 0)
        return w;
    err_set(err, ERR_CONFLICT, "name", "something else of this node has come");
    free(w);
    return NULL;
}

static void stored_close(void *opened)
{
    struct stored_watch *w = opened;
    poller_push_watch_end(w->poller, w->page);
    free(w);
}

static const struct reply_source page_stored = {.open = stored_open, .close = stored_close};

static void write_outcome(const struct polled *n, struct jsonw *w)
{
    const struct fleet_outcome_info *outcome = &fleet_outcomes[n->outcome];
    jsonw_text(w, "outcome", outcome->name);
    jsonw_text(w, "outcome_text", n->outcome == FLEET_STORED ? "" : outcome->text);
    jsonw_text(w, "other", n->other);
    jsonw_i64(w, "stored", n->push->stored);
    jsonw_bool(w, "more", n->push->more);
}

static int send_pushed(const struct poller *p, const struct polled *n, bool page, struct reply *r,
                       struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    if (n->push->failed)
        return err_set(err, n->push->failed, n->push->member, "%s", n->push->why);
    jsonw_object(&w, NULL);
    write_feed_place(p, n, &w);
    if (page)
        write_outcome(n, &w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

// hash NULL: a page.
static int take_push(struct request *q, const char *hash, struct reply *r, struct err *err)
{
    struct poller *poller = fleet_of(q)->poller;
    if (!q->made && access_check_node(q, q->name, err) < 0)
        return -1;
    const struct polled *n = feed_pushing(q, err);
    if (!n)
        return -1;
    if (!q->made) {
        int64_t number = hash ? poller_push_facts(poller, q->name, hash, &q->body, err)
                              : poller_push(poller, q->name, &q->body, err);
        if (number < 0) {
            if (err->code == ERR_TOO_MANY)
                r->retry_after_s = poller_push_wait_s(poller, q->name);
            return -1;
        }
        q->made = number;
    }
    if (!n->push || n->push->number != q->made)
        return err_set(err, ERR_CONFLICT, "name", "something else of this node has come");
    if (n->push->settled)
        return send_pushed(poller, n, !hash, r, err);
    if (q->again)
        return err_set(err, ERR_UNAVAILABLE, "store", "the store did not keep it within %d s",
                       PUSH_MS / 1000);
    return reply_wait(r, &page_stored, q->made, PUSH_MS);
}

int fleetd_feed_push(struct request *q, struct reply *r, struct err *err)
{
    return take_push(q, NULL, r, err);
}

int fleetd_feed_facts(struct request *q, struct reply *r, struct err *err)
{
    const char *hash = request_query(q, "hash");
    return hash ? take_push(q, hash, r, err)
                : err_set(err, ERR_INVALID, "hash", "is required: one of facts_wanted");
}

// ---- Tokens -------------------------------------------------------------------------------------

// Its nodes are named at once.
int fleetd_token_create(struct request *q, struct reply *r, struct err *err)
{
    int rc = tokens_post(q, r, err);
    if (rc == 0)
        naming_again(fleet_of(q)->naming);
    return rc;
}

// Its nodes are gone at once, and so are tokens that named too many.
int fleetd_token_revoke(struct request *q, struct reply *r, struct err *err)
{
    int rc = tokens_delete(q, r, err);
    if (rc == 0)
        naming_again(fleet_of(q)->naming);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// What the store wants of nodes besides their pages: documents of facts, and whole runs. A wish
// that cannot be met now is forgotten here, and the store repeats it.
#include "fleet/collect/parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "fleet/collect/poller.h"

enum { NOT_PUSHED = 410 }; // as the status of a whole run: it is given up

struct wanted_fetch {
    struct poller *poller;
    char node[64], hash[65];
};

static void on_document(void *ctx, struct fetch_response *r)
{
    struct wanted_fetch *w = ctx;
    struct ingest_item item = {.kind = INGEST_FACTS, .node = w->node, .hash = w->hash};
    struct err err;
    w->poller->totals.in_flight--;
    if (r->error == FETCH_OK && r->status == 200)
        ingest_send(w->poller->ingest, &item, &r->body, &err); // else another node will send it
    poller_wake(w->poller);
    free(w);
}

// Whether a document was not requested lately; it counts as requested now.
static bool take_wish(struct poller *p, const char *hash)
{
    int64_t now = clock_mono_ms();
    for (int i = 0; i < WANTED_ROOM; i++)
        if (strcmp(p->wanted[i].hash, hash) == 0) {
            if (p->wanted[i].until_ms > now)
                return false;
            p->wanted[i].until_ms = now + p->c->every_s * 1000;
            return true;
        }
    struct wanted *w = &p->wanted[p->wanted_at++ % WANTED_ROOM];
    snprintf(w->hash, sizeof w->hash, "%s", hash);
    w->until_ms = now + p->c->every_s * 1000;
    return true;
}

void fetch_document(struct poller *p, const struct ingest_report *r)
{
    const struct polled *n = poller_find(p, r->node);
    char url[500];
    struct err err;
    if (n && n->pushes && n->state != NODE_GONE)
        push_lacks(p, n->name, r->hash);
    if (!n || n->state == NODE_GONE || n->pushes || !take_wish(p, r->hash))
        return;
    struct wanted_fetch *w = calloc(1, sizeof *w);
    if (!w)
        return;
    w->poller = p;
    snprintf(w->node, sizeof w->node, "%s", r->node);
    snprintf(w->hash, sizeof w->hash, "%s", r->hash);
    snprintf(url, sizeof url, "%s/v1/facts/%s", *n->behind ? n->behind : n->base[n->at_base],
             r->hash);
    if (poller_fetch(p, url, on_document, w, &err) < 0)
        free(w);
}

// ---- Whole runs ---------------------------------------------------------------------------------

static void whole_next(struct poller *p);

static void whole_send(const struct whole_run *w, int status, struct buf *body)
{
    struct err err;
    const struct ingest_item item = {
        .kind = INGEST_WHOLE, .node = w->node, .after = w->seq, .status = status};
    if (ingest_send(w->poller->ingest, &item, body, &err) < 0)
        log_error("archive", &err); // the store wants it again later
}

static void on_whole(void *ctx, struct fetch_response *r)
{
    struct whole_run *w = ctx;
    struct poller *p = w->poller;
    struct buf nothing = BUF_INIT;
    bool here = r->error == FETCH_OK && r->status == 200;
    int status = r->error == FETCH_OK ? r->status : r->error == FETCH_BODY_TOO_LARGE ? 413 : 0;
    if (status == 404 && w->behind)
        status = 0; // the other collector may not have it yet
    p->totals.in_flight--;
    p->wholes_in_flight--;
    whole_send(w, status, here ? &r->body : &nothing);
    free(w);
    whole_next(p);
    poller_wake(p);
}

static int whole_fetch(struct poller *p, const struct whole_run *w, struct err *err)
{
    const struct polled *n = poller_find(p, w->node);
    char url[500];
    struct fetch_request q = poller_request(p);
    struct whole_run *own = n && n->state != NODE_GONE && !n->pushes ? malloc(sizeof *own) : NULL;
    if (!own)
        return -1;
    *own = *w;
    own->behind = *n->behind;
    if (own->behind)
        snprintf(url, sizeof url, "%s/v1/fleet/archive/%s/%" PRId64, n->behind, n->name, w->seq);
    else
        snprintf(url, sizeof url, "%s/v1/runs/%" PRId64 "/export?topology=false",
                 n->base[n->at_base], w->run);
    poller_address(&q, url);
    q.limits = &p->whole_limits;
    if (fetch_start(p->fetch, &q, on_whole, own, err) == 0)
        return 0;
    free(own);
    return -1;
}

static void whole_next(struct poller *p)
{
    struct err err;
    struct buf nothing = BUF_INIT;
    while (p->n_wholes && p->wholes_in_flight < WHOLE_AT_ONCE &&
           ingest_backlog(p->ingest) < INGEST_BACKLOG_MAX) {
        struct whole_run w = p->wholes[0];
        memmove(p->wholes, p->wholes + 1, (size_t)--p->n_wholes * sizeof w);
        const struct polled *n = poller_find(p, w.node);
        if (whole_fetch(p, &w, &err) < 0) {
            whole_send(&w, n && n->pushes ? NOT_PUSHED : 0, &nothing);
            continue;
        }
        p->totals.requests++;
        p->totals.in_flight++;
        p->wholes_in_flight++;
    }
}

void whole_wanted(struct poller *p, const struct ingest_report *r)
{
    char key[65];
    snprintf(key, sizeof key, "%016" PRIx64 " %" PRId64, hash_text(r->node), r->next);
    if (p->n_wholes == WHOLE_ROOM || !take_wish(p, key))
        return;
    struct whole_run *w = &p->wholes[p->n_wholes++];
    *w = (struct whole_run){.poller = p, .seq = r->next, .run = r->run};
    snprintf(w->node, sizeof w->node, "%s", r->node);
    whole_next(p);
}

// SPDX-License-Identifier: Apache-2.0
// What the store wants of nodes besides their pages: documents of facts, and whole runs. A wish
// that cannot be met now is forgotten here, and the store repeats it. Another collector is asked
// for a few at a time: it lets only some long requests of a client wait, and refuses the others.
#include "fleet/collect/parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "fleet/collect/poller.h"

// ---- What was requested lately ------------------------------------------------------------------

static struct wanted *wanted_find(struct poller *p, const char *key)
{
    for (int i = 0; i < WANTED_ROOM; i++)
        if (strcmp(p->wanted[i].key, key) == 0)
            return &p->wanted[i];
    return NULL;
}

// Whether it was not requested lately; it counts as requested now.
static bool wanted_take(struct poller *p, const char *key)
{
    int64_t now = clock_mono_ms();
    struct wanted *w = wanted_find(p, key);
    if (w && w->until_ms > now)
        return false;
    if (!w) {
        w = &p->wanted[p->wanted_at++ % WANTED_ROOM];
        snprintf(w->key, sizeof w->key, "%s", key);
    }
    w->until_ms = now + p->c->every_s * 1000;
    return true;
}

// Who had no time says when that changes; the next wish of the store counts then.
static void wanted_later(struct poller *p, const char *key, const struct fetch_response *r)
{
    struct wanted *w = fetch_response_busy(r) ? wanted_find(p, key) : NULL;
    int64_t until_ms = clock_mono_ms() + (int64_t)r->retry_after_s * 1000;
    if (w && until_ms < w->until_ms)
        w->until_ms = until_ms;
}

// ---- The two kinds of wishes --------------------------------------------------------------------

static void document_address(const struct wish *w, const struct polled *n, char *url, size_t room)
{
    snprintf(url, room, "%s/v1/facts/%s", *n->behind ? n->behind : n->base[n->at_base], w->key);
}

static void document_end(const struct wish *w, struct fetch_response *r)
{
    const struct ingest_item item = {.kind = INGEST_FACTS, .node = w->node, .hash = w->key};
    struct err err;
    if (r && r->error == FETCH_OK && r->status == 200)
        ingest_send(w->poller->ingest, &item, &r->body, &err); // else another node will send it
}

static void whole_address(const struct wish *w, const struct polled *n, char *url, size_t room)
{
    if (w->behind)
        snprintf(url, room, "%s/v1/fleet/archive/%s/%" PRId64, n->behind, w->under, w->seq);
    else
        snprintf(url, room, "%s/v1/runs/%" PRId64 "/export?topology=false", n->base[n->at_base],
                 w->run);
}

static int whole_status(const struct wish *w, const struct fetch_response *r)
{
    const struct polled *n = poller_find(w->poller, w->node);
    if (!r)
        return n && n->pushes ? INGEST_NOT_PUSHED : 0;
    if (r->error == FETCH_BODY_TOO_LARGE)
        return INGEST_TOO_LARGE;
    // Another collector may not have it yet. Of one that it has given up it says 410.
    return r->error != FETCH_OK || (r->status == 404 && w->behind) ? 0 : r->status;
}

static void whole_end(const struct wish *w, struct fetch_response *r)
{
    struct err err;
    struct buf nothing = BUF_INIT;
    const struct ingest_item item = {.kind = INGEST_WHOLE,
                                     .node = w->node,
                                     .under = w->under,
                                     .after = w->seq,
                                     .status = whole_status(w, r)};
    if (ingest_send(w->poller->ingest, &item, item.status == 200 ? &r->body : &nothing, &err) < 0)
        log_error("archive", &err); // the store wants it again later
}

static const struct wish_kind {
    int at_once;
    void (*address)(const struct wish *w, const struct polled *n, char *url, size_t room);
    void (*end)(const struct wish *w, struct fetch_response *r); // r NULL: it was not requested
} wish_kinds[WISH_KINDS] = {
    [WISH_DOCUMENT] = {DOCUMENTS_AT_ONCE, document_address, document_end},
    [WISH_WHOLE] = {WHOLE_AT_ONCE, whole_address, whole_end},
};

// ---- Requests -----------------------------------------------------------------------------------

// What is on the way when its node turns out to be at fault would end the process once more.
static void on_wish(void *ctx, struct fetch_response *r)
{
    struct wish *w = ctx;
    struct poller *p = w->poller;
    const struct polled *n = poller_find(p, w->node);
    bool poison = n && node_poison(n);
    p->totals.in_flight--;
    p->wishes[w->kind].in_flight--;
    p->behind_in_flight -= w->behind;
    wanted_later(p, w->key, r);
    wish_kinds[w->kind].end(w, poison ? NULL : r);
    free(w);
    wishes_next(p);
    poller_wake(p);
}

static int wish_fetch(struct poller *p, const struct wish *w, struct err *err)
{
    const struct polled *n = poller_find(p, w->node);
    char url[500];
    bool asked = n && n->state != NODE_GONE && !n->pushes && !node_asleep(n) && !node_poison(n);
    struct wish *own = asked ? malloc(sizeof *own) : NULL;
    if (!own)
        return -1;
    *own = *w;
    wish_kinds[w->kind].address(w, n, url, sizeof url);
    if (poller_fetch(p, url, w->kind == WISH_WHOLE ? &p->whole_limits : NULL, on_wish, own, err) <
        0) {
        free(own);
        return -1;
    }
    p->wishes[w->kind].in_flight++;
    p->behind_in_flight += w->behind;
    return 0;
}

// The first that may be requested now, taken from those that wait.
static bool wish_take(struct poller *p, struct wishes *waiting, struct wish *w)
{
    for (int i = 0; i < waiting->n; i++) {
        const struct polled *n = poller_find(p, waiting->list[i].node);
        bool behind = n && *n->behind;
        if (behind && p->behind_in_flight == BEHIND_AT_ONCE)
            continue;
        *w = waiting->list[i];
        w->behind = behind;
        memmove(&waiting->list[i], &waiting->list[i + 1],
                (size_t)(--waiting->n - i) * sizeof *waiting->list);
        return true;
    }
    return false;
}

static void wishes_next_of(struct poller *p, enum wish_kind_id kind)
{
    struct wishes *waiting = &p->wishes[kind];
    struct wish w;
    struct err err;
    while (waiting->in_flight < wish_kinds[kind].at_once &&
           ingest_backlog(p->ingest) < INGEST_BACKLOG_MAX && wish_take(p, waiting, &w)) {
        if (wish_fetch(p, &w, &err) < 0)
            wish_kinds[kind].end(&w, NULL);
    }
}

void wishes_next(struct poller *p)
{
    for (int kind = 0; kind < WISH_KINDS; kind++)
        wishes_next_of(p, kind);
}

static bool wish_waits(const struct wishes *waiting, const char *key)
{
    for (int i = 0; i < waiting->n; i++)
        if (strcmp(waiting->list[i].key, key) == 0)
            return true;
    return false;
}

static void wish_add(struct poller *p, const struct wish *w)
{
    struct wishes *waiting = &p->wishes[w->kind];
    if (waiting->n == WISHES_ROOM || wish_waits(waiting, w->key) || !wanted_take(p, w->key))
        return;
    waiting->list[waiting->n++] = *w;
    wishes_next_of(p, w->kind);
}

void document_wanted(struct poller *p, const struct ingest_report *r)
{
    const struct polled *n = poller_find(p, r->node);
    struct wish w = {.poller = p, .kind = WISH_DOCUMENT};
    if (n && n->pushes && n->state != NODE_GONE)
        push_lacks(p, n->name, r->hash);
    if (!n || n->state == NODE_GONE || n->pushes)
        return;
    snprintf(w.node, sizeof w.node, "%s", r->node);
    snprintf(w.key, sizeof w.key, "%s", r->hash);
    wish_add(p, &w);
}

void whole_wanted(struct poller *p, const struct ingest_report *r)
{
    struct wish w = {.poller = p, .kind = WISH_WHOLE, .seq = r->next, .run = r->run};
    snprintf(w.node, sizeof w.node, "%s", r->node);
    snprintf(w.under, sizeof w.under, "%s", r->other);
    snprintf(w.key, sizeof w.key, "%016" PRIx64 " %" PRId64, hash_text(r->node), r->next);
    wish_add(p, &w);
}

void whole_ends(struct poller *p, const struct ingest_head *run)
{
    memcpy(p->ends.node, run->node, sizeof p->ends.node);
    memcpy(p->ends.under, run->under, sizeof p->ends.under);
    p->ends.seq = run->after;
}

void whole_ends_tell(struct poller *p)
{
    struct err err;
    struct buf nothing = BUF_INIT;
    const struct ingest_item item = {.kind = INGEST_WHOLE,
                                     .node = p->ends.node,
                                     .under = p->ends.under,
                                     .after = p->ends.seq,
                                     .status = INGEST_IT_ENDS};
    if (*p->ends.node && ingest_send(p->ingest, &item, &nothing, &err) < 0)
        log_error("archive", &err); // it counts as tried less often
    *p->ends.node = '\0';
}

void whole_given_up(struct poller *p, struct polled *n, const struct ingest_report *r)
{
    p->totals.given_up++;
    if (!n || n->given_up)
        return;
    n->given_up = true;
    log_event(LOG_LVL_WARN, "archive.given_up",
              "name=%s run=%" PRId64
              " why=\"%s\" text=\"this run is not archived; others of the node that are given up "
              "have no line\"",
              n->name, r->next, log_quote(r->text).text);
}

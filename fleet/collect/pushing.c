// SPDX-License-Identifier: Apache-2.0
// Nodes that send their pages themselves. A page waits here for nothing: whoever sent it is woken
// when the store has it. So do facts that the store lacks.
#include "fleet/collect/parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fleet/collect/poller.h"

enum { PUSH_COUNTS = 10 }; // runs that a page counts for besides those that it has

void push_settle(struct polled *n, enum err_code failed, const char *why)
{
    struct pushed *s = n->push;
    if (!s || s->settled)
        return;
    s->settled = true;
    s->failed = failed;
    snprintf(s->why, sizeof s->why, "%s", why);
    if (s->wake)
        s->wake(s->ctx);
}

static void push_said(struct polled *n, const struct ingest_report *r)
{
    if (!n->push)
        return;
    n->push->more = r->more;
    n->push->stored = r->stored;
    memcpy(n->push->member, r->member, sizeof n->push->member);
}

void push_reported(struct polled *n, const struct ingest_report *r)
{
    node_allowed(n, r->stored + r->notes);
    push_said(n, r);
    push_settle(n, r->kind == INGEST_STORED ? ERR_NONE : ERR_INVALID, r->text);
}

void push_missed(struct polled *n)
{
    n->failures++;
    char why[POLLER_WHY];
    snprintf(why, sizeof why, "it has not pushed for %" PRId64 " s",
             n->failures * n->poller->c->push_every_s);
    polled_text(&n->why, why);
    node_event(n, NODE_FAILED);
    node_later(n, 0);
}

static struct polled *find_pushing(const struct poller *p, const char *node, struct err *err)
{
    struct polled *n = poller_find_own(p, node);
    if (n && n->pushes && n->state != NODE_GONE)
        return n;
    err_set(err, ERR_NOT_FOUND, "name",
            "no source names %s as a node that pushes; the collector needs source = announce",
            node);
    return NULL;
}

const struct polled *poller_pushing(const struct poller *p, const char *node, struct err *err)
{
    return find_pushing(p, node, err);
}

// ---- What it sends ------------------------------------------------------------------------------

static int check_push(const struct poller *p, struct polled *n, struct err *err)
{
    if (node_poison(n))
        return err_set(err, ERR_CONFLICT, "name",
                       "a page of this node ended the process that reads pages; others are taken "
                       "an hour later");
    if (n->busy)
        return err_set(err, ERR_CONFLICT, "name",
                       "another page of this node is not stored yet; send this one after it");
    if (ingest_backlog(p->ingest) >= INGEST_BACKLOG_MAX)
        return err_set(err, ERR_UNAVAILABLE, "store", "too many pages wait for the store");
    if (!node_allowed(n, 0)) // to be refused costs nothing: it would never end
        return err_set(err, ERR_TOO_MANY, "name",
                       "this node has sent %d runs at once; more are taken at the rate of %d a day",
                       RUNS_AT_ONCE, RUNS_PER_DAY);
    node_allowed(n, PUSH_COUNTS);
    return 0;
}

int poller_push_wait_s(const struct poller *p, const char *node)
{
    const struct polled *n = poller_find_own(p, node);
    return n && n->allowance < 0 ? 1 + (int)(-n->allowance * 86400 / RUNS_PER_DAY) : 1;
}

static int64_t push_item(struct poller *p, struct ingest_item *item, struct buf *body,
                         struct err *err)
{
    struct polled *n = find_pushing(p, item->node, err);
    if (!n || check_push(p, n, err) < 0)
        return -1;
    if (!n->push && !(n->push = calloc(1, sizeof *n->push)))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the page");
    if (poller_keep(p, item, body, err) < 0)
        return -1;
    n->busy = n->sent = true;
    *n->push = (struct pushed){.number = ++p->pushed};
    return n->push->number;
}

int64_t poller_push(struct poller *p, const char *node, struct buf *body, struct err *err)
{
    struct ingest_item item = {
        .kind = INGEST_PAGE, .node = node, .after = INGEST_AS_SAID, .received_ms = clock_wall_ms()};
    return push_item(p, &item, body, err);
}

// ---- Facts of its machine -----------------------------------------------------------------------

static struct lacked *find_lacked(struct poller *p, const char *node, const char *hash)
{
    for (int i = 0; i < LACKED_ROOM; i++)
        if (strcmp(p->lacked[i].node, node) == 0 && strcmp(p->lacked[i].hash, hash) == 0)
            return &p->lacked[i];
    return NULL;
}

// A free place, else that of the oldest; of a node that has enough, that of its own oldest.
static struct lacked *lacked_place(struct poller *p, const char *node)
{
    struct lacked *oldest = &p->lacked[0], *own = NULL;
    int n_own = 0;
    for (struct lacked *l = p->lacked; l < p->lacked + LACKED_ROOM; l++) {
        if (l->number < oldest->number)
            oldest = l;
        if (strcmp(l->node, node) != 0)
            continue;
        n_own++;
        if (!own || l->number < own->number)
            own = l;
    }
    return n_own < LACKED_EACH ? oldest : own;
}

void push_lacks(struct poller *p, const char *node, const char *hash)
{
    if (find_lacked(p, node, hash))
        return;
    struct lacked *l = lacked_place(p, node);
    l->number = ++p->n_lacked;
    snprintf(l->node, sizeof l->node, "%s", node);
    snprintf(l->hash, sizeof l->hash, "%s", hash);
}

const char *poller_lacks(const struct poller *p, const char *node, int i)
{
    for (int at = 0; at < LACKED_ROOM; at++)
        if (*p->lacked[at].node && strcmp(p->lacked[at].node, node) == 0 && i-- == 0)
            return p->lacked[at].hash;
    return NULL;
}

int64_t poller_push_facts(struct poller *p, const char *node, const char *hash, struct buf *body,
                          struct err *err)
{
    struct ingest_item item = {
        .kind = INGEST_FACTS, .node = node, .hash = hash, .received_ms = clock_wall_ms()};
    struct polled *n = find_pushing(p, node, err);
    if (!n)
        return -1;
    if (!find_lacked(p, n->name, hash))
        return err_set(err, ERR_CONFLICT, "hash",
                       "the collector does not lack these facts; facts_wanted lists those that it "
                       "does");
    return push_item(p, &item, body, err);
}

void push_lacks_no_more(struct poller *p, const char *hash)
{
    for (int i = 0; i < LACKED_ROOM; i++)
        if (strcmp(p->lacked[i].hash, hash) == 0)
            p->lacked[i] = (struct lacked){0};
}

void push_facts_reported(struct polled *n, const struct ingest_report *r)
{
    n->busy = n->sent = false;
    push_said(n, r);
    push_settle(n, r->kind == INGEST_STORED ? ERR_NONE : ERR_INVALID, r->text);
}

static struct pushed *find_pushed(struct poller *p, int64_t number)
{
    for (int i = 0; i < p->n; i++)
        if (p->nodes[i]->push && p->nodes[i]->push->number == number)
            return p->nodes[i]->push;
    return NULL;
}

int poller_push_watch(struct poller *p, int64_t number, void (*wake)(void *ctx), void *ctx)
{
    struct pushed *s = find_pushed(p, number);
    if (!s)
        return -1;
    s->wake = wake;
    s->ctx = ctx;
    return 0;
}

void poller_push_watch_end(struct poller *p, int64_t number)
{
    struct pushed *s = find_pushed(p, number);
    if (s)
        s->wake = NULL;
}

// SPDX-License-Identifier: Apache-2.0
// One round of the loop serves every connection that is ready. So that a hundred of one client are
// not a round of a second for all others, handlers have ROUND_US of a round; what comes later waits
// in a line of its client's own, and the clients take turns.
//
// While a run is measured a client that may not start runs has a share of the loop's time (share.h)
// and waits when it has used it up: requests of a loop without end would take a core of the node.
#include "base/clock.h"
#include "http/messages/router.h"
#include "http/server/parts.h"

enum {
    ROUND_US = 5000, // a call begun before that may take as long again (WORK_INLINE_US)
    ROUND_TRIVIAL_US = 10000,
    CALL_US = 40, // what the library takes for a request
    // So many have their turn in a round, whatever they cost: of two clients each has one.
    TURNS_LEAST = 2,
    TURNS_MOST = 64,
};

bool call_is_paced(const struct call *c)
{
    return c->q.granted < SCOPE_RUN && service_is_measuring(c->server->service);
}

static int64_t must_wait_ms(const struct call *c)
{
    return call_is_paced(c)
               ? share_wait_ms(&c->server->share, line_client(c->line), clock_mono_ms())
               : 0;
}

// Static pages and whether the daemon is alive.
static bool is_trivial(const struct call *c)
{
    return c->q.route && c->q.route->scope == SCOPE_NONE;
}

bool call_takes_turn(struct call *c)
{
    struct server *s = c->server;
    bool first = c->has_turn || !s->light.n;
    c->has_turn = c->waited_turn = false;
    line_queue_end(c->line);
    if (s->stopping)
        return true;
    if ((c->paid || !must_wait_ms(c)) &&
        ((first && s->round_us < ROUND_US) || (is_trivial(c) && s->round_us < ROUND_TRIVIAL_US)))
        return true;
    struct err err;
    if (call_watch_hangup(c, &err) < 0 || !turns_add(&s->light, &c->turn, line_client(c->line)))
        return true; // better now than not at all
    c->waited_turn = true;
    if (!call_is_paced(c))
        line_queue(c->line);
    call_suspend(c);
    return false;
}

void call_leaves_turn(struct call *c)
{
    turns_remove(&c->server->light, &c->turn);
    line_queue_end(c->line);
}

void call_charge(struct call *c, int64_t us)
{
    struct server *s = c->server;
    s->round_us += us + CALL_US;
    s->call_us += (us + CALL_US - s->call_us) / 8;
    if (call_is_paced(c))
        share_charge(&s->share, line_client(c->line), us + (c->paid ? 0 : SHARE_CALL_US),
                     clock_mono_ms());
}

void call_charge_bytes(struct call *c, size_t n)
{
    if (call_is_paced(c))
        share_charge(&c->server->share, line_client(c->line), (int64_t)(n / SHARE_BYTES_US),
                     clock_mono_ms());
}

struct looking {
    struct server *s;
    int64_t now_ms, least_ms; // until the first that may not go yet
};

static bool may_go(void *ctx, uint64_t client)
{
    struct looking *l = ctx;
    int64_t ms =
        service_is_measuring(l->s->service) ? share_wait_ms(&l->s->share, client, l->now_ms) : 0;
    if (ms && (l->least_ms < 0 || ms < l->least_ms))
        l->least_ms = ms;
    return !ms;
}

// A request pays when it gets its turn, not when it has been answered: of those that wait only the
// first can pay, and the others are not resumed in vain.
static void call_pay(struct call *c)
{
    if (c->paid || !call_is_paced(c))
        return;
    c->paid = true;
    share_charge(&c->server->share, line_client(c->line), SHARE_CALL_US, clock_mono_ms());
}

void server_give_turns(struct server *s)
{
    struct looking l = {s, clock_mono_ms(), -1};
    struct turn *t;
    int64_t n = ROUND_US / (s->call_us + 1);
    s->round_us = 0;
    n = n < TURNS_LEAST ? TURNS_LEAST : n > TURNS_MOST ? TURNS_MOST : n;
    for (int64_t i = 0; i < n && (t = turns_next(&s->light, may_go, &l)); i++) {
        struct call *c = (struct call *)(void *)((char *)t - offsetof(struct call, turn));
        c->has_turn = true;
        call_pay(c);
        call_resume(c);
    }
}

int64_t server_turn_ms(struct server *s)
{
    struct looking l = {s, clock_mono_ms(), -1};
    return !s->light.n ? -1 : turns_any(&s->light, may_go, &l) ? 0 : l.least_ms;
}

// SPDX-License-Identifier: Apache-2.0
// One round of the loop serves every connection that is ready. So that a hundred of one client are
// not a round of a second for all others, handlers have ROUND_US of a round; what comes later waits
// in a queue of its client's own, and the clients take turns.
//
// While a run is measured a client that may not start runs has a share of the loop's time (share.h)
// and waits when it has used it up: requests of a loop without end would take a core of the node.
#include "base/clock.h"
#include "http/messages/router.h"
#include "http/server/parts.h"

enum {
    ROUND_US = 5000, // an exchange begun before that may take as long again (WORK_INLINE_US)
    ROUND_TRIVIAL_US = 10000,
    EXCHANGE_US = 40, // what the library takes for a request
    // So many have their turn in a round, whatever they cost: of two clients each has one.
    TURNS_LEAST = 2,
    TURNS_MOST = 64,
};

bool exchange_is_paced(const struct exchange *x)
{
    return x->q.granted < SCOPE_RUN && service_is_measuring(x->server->service);
}

static int64_t must_wait_ms(const struct exchange *x)
{
    return exchange_is_paced(x)
               ? share_wait_ms(&x->server->share, connection_client(x->connection), clock_mono_ms())
               : 0;
}

// Static pages and whether the daemon is alive.
static bool is_trivial(const struct exchange *x)
{
    return x->q.route && x->q.route->scope == SCOPE_NONE;
}

// Whether the round has time for it. One that has lost its turn to others does not lose it again:
// where each of theirs takes more than a round, and comes before it, it would lose it for ever.
static bool has_time(const struct exchange *x, bool had)
{
    const struct server *s = x->server;
    return (had && x->lost_turn) || ((had || !s->loop_turns.n) && s->round_us < ROUND_US) ||
           (is_trivial(x) && s->round_us < ROUND_TRIVIAL_US);
}

bool exchange_takes_turn(struct exchange *x)
{
    struct server *s = x->server;
    bool had = x->has_turn;
    x->has_turn = x->waited_turn = false;
    connection_queue_end(x->connection);
    if (s->stopping)
        return true;
    if ((x->paid || !must_wait_ms(x)) && has_time(x, had))
        return true;
    x->lost_turn = had;
    struct err err;
    if (exchange_watch_hangup(x, &err) < 0 ||
        !(had ? turns_return : turns_add)(&s->loop_turns, &x->turn,
                                          connection_client(x->connection)))
        return true; // better now than not at all
    x->waited_turn = true;
    if (!exchange_is_paced(x))
        connection_queue(x->connection);
    exchange_suspend(x);
    return false;
}

void exchange_leaves_turn(struct exchange *x)
{
    turns_remove(&x->server->loop_turns, &x->turn);
    connection_queue_end(x->connection);
}

void exchange_charge(struct exchange *x, int64_t us)
{
    struct server *s = x->server;
    s->round_us += us + EXCHANGE_US;
    s->exchange_us += (us + EXCHANGE_US - s->exchange_us) / 8;
    if (exchange_is_paced(x))
        share_charge(&s->share, connection_client(x->connection),
                     us + (x->paid ? 0 : SHARE_EXCHANGE_US), clock_mono_ms());
}

void exchange_charge_bytes(struct exchange *x, size_t n)
{
    if (exchange_is_paced(x))
        share_charge(&x->server->share, connection_client(x->connection),
                     (int64_t)(n / SHARE_BYTES_US), clock_mono_ms());
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
static void exchange_pay(struct exchange *x)
{
    if (x->paid || !exchange_is_paced(x))
        return;
    x->paid = true;
    share_charge(&x->server->share, connection_client(x->connection), SHARE_EXCHANGE_US,
                 clock_mono_ms());
}

void server_give_turns(struct server *s)
{
    struct looking l = {s, clock_mono_ms(), -1};
    struct turn *t;
    int64_t n = ROUND_US / (s->exchange_us + 1);
    s->round_us = 0;
    n = n < TURNS_LEAST ? TURNS_LEAST : n > TURNS_MOST ? TURNS_MOST : n;
    for (int64_t i = 0; i < n && (t = turns_next(&s->loop_turns, may_go, &l)); i++) {
        struct exchange *x =
            (struct exchange *)(void *)((char *)t - offsetof(struct exchange, turn));
        x->has_turn = true;
        exchange_pay(x);
        exchange_resume(x);
    }
}

int64_t server_turn_ms(struct server *s)
{
    struct looking l = {s, clock_mono_ms(), -1};
    return !s->loop_turns.n ? -1 : turns_any(&s->loop_turns, may_go, &l) ? 0 : l.least_ms;
}

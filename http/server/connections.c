// SPDX-License-Identifier: Apache-2.0
// Connections are counted by client (party). The rules are here that say which one is cut.
#include "http/server/connections.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

// The connections of one client.
struct connection_party {
    LIST_ENTRY(connection_party) entry; // of its bucket
    uint64_t client;
    int n;                                          // connections that are not cut
    int share;                                      // so many of the places it may have
    int waiting;                                    // of them
    TAILQ_HEAD(connection_heads, connection) heads; // those without whole headers, longest first
};

static void connection_arm(struct connections *all, int64_t at_ms, int64_t now_ms)
{
    all->armed_ms = at_ms;
    loop_timer_set(all->timer, at_ms == INT64_MAX ? -1 : at_ms > now_ms ? at_ms - now_ms : 1);
}

// Cuts the connections that are late and sleeps until the next one would be.
static void connection_on_deadline(void *ctx, uint32_t events)
{
    struct connections *all = ctx;
    int64_t now = clock_mono_ms(), next = INT64_MAX;
    (void)events;
    for (struct connection *c = LIST_FIRST(&all->list); c; c = LIST_NEXT(c, entry)) {
        if (c->deadline_ms <= now)
            connection_cut(c);
        else if (c->deadline_ms < next)
            next = c->deadline_ms;
    }
    connection_arm(all, next, now);
}

int connections_init(struct connections *all, struct loop *loop, int places, struct err *err)
{
    *all = (struct connections){.loop = loop, .armed_ms = INT64_MAX, .places = places};
    all->timer = loop_timer_new(loop, connection_on_deadline, all, err);
    return all->timer ? 0 : -1;
}

void connections_fini(struct connections *all)
{
    loop_timer_free(all->timer);
    *all = (struct connections){0};
}

// ---- parties

static int share_of(const struct connections *all, const struct peer *peer)
{
    const int places = all->places;
    if (peer_is_ours(peer))
        return places;
    return peer->uid == PEER_NO_UID ? places - places / 4 : places / 4;
}

static size_t bucket_of(uint64_t client)
{
    return (client ^ client >> 32) % CONNECTION_BUCKETS;
}

static struct connection_party *party_find(const struct connections *all, uint64_t client)
{
    struct connection_party *p;
    LIST_FOREACH(p, &all->parties[bucket_of(client)], entry)
    if (p->client == client)
        break;
    return p;
}

// One of its connections waits for headers that should be there by now.
static bool party_is_late(const struct connection_party *p, int64_t now_ms)
{
    const struct connection *oldest = TAILQ_FIRST(&p->heads);
    return oldest && now_ms - oldest->since_ms >= CONNECTION_PROMPT_MS;
}

static struct connection_party *party_of(struct connections *all, const struct peer *peer)
{
    struct connection_party *p = party_find(all, peer->client);
    if (p)
        return p;
    p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->client = peer->client;
    p->share = share_of(all, peer);
    TAILQ_INIT(&p->heads);
    LIST_INSERT_HEAD(&all->parties[bucket_of(p->client)], p, entry);
    return p;
}

bool connections_are_used_up(const struct connections *all, uint64_t client)
{
    const struct connection_party *p = party_find(all, client);
    return p && p->n >= p->share && !party_is_late(p, clock_mono_ms());
}

static void stop_heading(struct connection *c)
{
    if (c->heading)
        TAILQ_REMOVE(&c->party->heads, c, head_entry);
    c->heading = false;
}

static void leave(struct connection *c)
{
    struct connection_party *p = c->party;
    stop_heading(c);
    connection_wait_end(c);
    connection_queue_end(c);
    c->party = NULL;
    c->all->n--;
    if (--p->n == 0) {
        LIST_REMOVE(p, entry);
        free(p);
    }
}

void connection_cut(struct connection *c)
{
    if (c->cut)
        return;
    leave(c);
    c->cut = true;
    c->deadline_ms = INT64_MAX;
    shutdown(c->fd, SHUT_RDWR);
}

void connection_allow(struct connection *c, int64_t ms)
{
    if (!c || c->cut)
        return;
    int64_t now = clock_mono_ms();
    c->deadline_ms = ms < 0 ? INT64_MAX : now + ms;
    if (c->deadline_ms < c->all->armed_ms)
        connection_arm(c->all, c->deadline_ms, now);
}

int64_t connection_time(int64_t least, uint64_t bytes)
{
    return least + (int64_t)(bytes / CONNECTION_RATE);
}

// ---- headers that do not come

static bool is_crowded(const struct connections *all)
{
    return all->n > all->places - all->places / 4;
}

static void start_heading(struct connection *c, int64_t ms)
{
    c->heading = true;
    c->since_ms = clock_mono_ms();
    TAILQ_INSERT_TAIL(&c->party->heads, c, head_entry);
    connection_allow(c, is_crowded(c->all) ? CONNECTION_CROWD_MS : ms);
}

// The places run short: those that wait for headers since long have less time from now on.
static void hurry(struct connections *all)
{
    struct connection *c;
    int64_t now = clock_mono_ms();
    LIST_FOREACH(c, &all->list, entry)
    {
        if (!c->heading || c->deadline_ms <= c->since_ms + CONNECTION_CROWD_MS)
            continue;
        int64_t left = c->since_ms + CONNECTION_CROWD_MS - now;
        connection_allow(c, left > 0 ? left : 0);
    }
}

void connection_head_whole(struct connection *c)
{
    if (!c || c->cut)
        return;
    stop_heading(c);
    c->since_ms = clock_mono_ms();
}

void connection_head_next(struct connection *c)
{
    if (!c || c->cut)
        return;
    stop_heading(c);
    c->receiving = false;
    start_heading(c, CONNECTION_KEPT_MS);
}

void connection_receives(struct connection *c, bool receives)
{
    if (c)
        c->receiving = receives;
}

// ---- clients that have gone

// In the middle of a request, which will not become whole. The library does not learn of an end
// that comes with the last bytes: it has read them, and waits for more until the deadline. (Of TLS
// it may still have some of the request to decrypt: who ends its sending then may lose that.)
static bool connection_has_gone(const struct connection *c)
{
    char next;
    return !c->cut && (c->heading || c->receiving) &&
           recv(c->fd, &next, sizeof next, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void connections_sweep(struct connections *all)
{
    struct connection *c;
    const int64_t now = clock_mono_ms();
    if (now - all->swept_ms < CONNECTION_SWEEP_MS)
        return;
    all->swept_ms = now;
    LIST_FOREACH(c, &all->list, entry)
    if (connection_has_gone(c))
        connection_cut(c);
}

// ---- too many

// Parties of which one loses a connection when the listener is full.
struct largest {
    struct connection_party *any, *slow; // slow: with headers that should be there by now
};

static struct largest find_largest(const struct connections *all, int64_t now_ms)
{
    struct largest found = {0};
    for (int i = 0; i < CONNECTION_BUCKETS; i++) {
        struct connection_party *p;
        LIST_FOREACH(p, &all->parties[i], entry)
        {
            if (!found.any || p->n > found.any->n)
                found.any = p;
            if (party_is_late(p, now_ms) && (!found.slow || p->n > found.slow->n))
                found.slow = p;
        }
    }
    return found;
}

static struct connection *oldest_of(const struct connections *all, const struct connection_party *p)
{
    struct connection *c, *oldest = NULL;
    LIST_FOREACH(c, &all->list, entry)
    {
        if (c->party == p)
            oldest = c; // the list is newest first
    }
    return oldest;
}

static struct connection *longest_head(const struct connection_party *p,
                                       struct connection *otherwise)
{
    struct connection *c = TAILQ_FIRST(&p->heads);
    return c ? c : otherwise;
}

// One connection too many. Never one of a client that has fewer than the new one's, but for headers
// that are late.
static struct connection *least_worthy(struct connection *new)
{
    const struct connections *all = new->all;
    const struct largest of = find_largest(all, new->since_ms);
    if (of.slow)
        return longest_head(of.slow, new);
    return longest_head(of.any, of.any->n > new->party->n ? oldest_of(all, of.any) : new);
}

// The connection of its client whose step takes longest, but for those that wait for us.
static struct connection *slowest_of(struct connection *new)
{
    struct connection *c, *slowest = new;
    LIST_FOREACH(c, &new->all->list, entry)
    {
        if (c->party == new->party && c->deadline_ms != INT64_MAX &&
            c->since_ms < slowest->since_ms)
            slowest = c;
    }
    return slowest;
}

// An account has only itself in its way. Behind an address there may be many clients: those that
// read slowly must not keep the others out either.
static struct connection *least_worthy_of_its_own(struct connection *new)
{
    struct connection *c = longest_head(new->party, new);
    if (new->peer.uid == PEER_NO_UID &&new->since_ms - c->since_ms < CONNECTION_PROMPT_MS)
        return slowest_of(new);
    return c;
}

static bool are_too_many(const struct connection *new)
{
    return new->party->n > new->party->share || new->all->n > new->all->places;
}

static void connection_make_room(struct connection *new)
{
    struct connections *all = new->all;
    if (are_too_many(new))
        connections_sweep(all);
    if (new->cut)
        return;
    if (new->party->n > new->party->share)
        connection_cut(least_worthy_of_its_own(new));
    else if (all->n > all->places)
        connection_cut(least_worthy(new));
}

static struct connection *connection_join(struct connection *c)
{
    struct connections *all = c->all;
    c->party = party_of(all, &c->peer);
    if (!c->party) {
        free(c);
        return NULL;
    }
    bool before = is_crowded(all);
    LIST_INSERT_HEAD(&all->list, c, entry);
    c->party->n++;
    all->n++;
    all->moved_ms = clock_mono_ms();
    start_heading(c, CONNECTION_HEAD_MS);
    if (!before && is_crowded(all))
        hurry(all);
    connection_make_room(c);
    return c;
}

struct connection *connection_new(struct connections *all, int fd, const struct peer *peer)
{
    struct connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct connection){.all = all, .fd = fd, .peer = *peer};
    return connection_join(c);
}

void connection_free(struct connection *c)
{
    if (!c)
        return;
    if (!c->cut)
        leave(c);
    c->all->moved_ms = clock_mono_ms();
    LIST_REMOVE(c, entry);
    free(c);
}

// ---- long waits

bool connection_wait(struct connection *c)
{
    struct connections *all = c->all;
    const int places = all->places / 2;
    if (c->cut || all->waiting >= places ||
        (!peer_is_ours(&c->peer) && c->party->waiting >= places / 2))
        return false;
    c->waits = true;
    c->party->waiting++;
    all->waiting++;
    return true;
}

void connection_wait_end(struct connection *c)
{
    if (!c || !c->waits)
        return;
    c->waits = false;
    c->party->waiting--;
    c->all->waiting--;
}

// ---- turns

void connection_queue(struct connection *c)
{
    if (c->cut || c->queued || !peer_is_ours(&c->peer))
        return;
    c->queued = true;
    c->all->queued++;
}

void connection_queue_end(struct connection *c)
{
    if (!c || !c->queued)
        return;
    c->queued = false;
    c->all->queued--;
}

int connections_room(const struct connections *all, int most)
{
    int left = all->places > all->n ? all->places - all->n : 0;
    if (left >= most || all->queued <= all->places / 2 ||
        clock_mono_ms() - all->moved_ms >= CONNECTION_STUCK_MS)
        return most;
    return left;
}

uint64_t connection_client(const struct connection *c)
{
    return c->peer.client;
}

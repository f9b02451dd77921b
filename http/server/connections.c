// SPDX-License-Identifier: Apache-2.0
#include "http/server/connections.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

// The lines of one client.
struct line_party {
    LIST_ENTRY(line_party) entry; // of its bucket
    uint64_t client;
    int n;                              // lines that are not cut
    int share;                          // so many of the places it may have
    int waiting;                        // of them
    TAILQ_HEAD(line_heads, line) heads; // those without whole headers, longest first
};

static void line_arm(struct lines *all, int64_t at_ms, int64_t now_ms)
{
    all->armed_ms = at_ms;
    loop_timer_set(all->timer, at_ms == INT64_MAX ? -1 : at_ms > now_ms ? at_ms - now_ms : 1);
}

// Cuts the lines that are late and sleeps until the next one would be.
static void line_on_deadline(void *ctx, uint32_t events)
{
    struct lines *all = ctx;
    int64_t now = clock_mono_ms(), next = INT64_MAX;
    (void)events;
    for (struct line *l = LIST_FIRST(&all->list); l; l = LIST_NEXT(l, entry)) {
        if (l->deadline_ms <= now)
            line_cut(l);
        else if (l->deadline_ms < next)
            next = l->deadline_ms;
    }
    line_arm(all, next, now);
}

int lines_init(struct lines *all, struct loop *loop, int places, struct err *err)
{
    *all = (struct lines){.loop = loop, .armed_ms = INT64_MAX, .places = places};
    all->timer = loop_timer_new(loop, line_on_deadline, all, err);
    return all->timer ? 0 : -1;
}

void lines_fini(struct lines *all)
{
    loop_timer_free(all->timer);
    *all = (struct lines){0};
}

// ---- parties

static int share_of(const struct lines *all, const struct peer *peer)
{
    const int places = all->places;
    if (peer_is_ours(peer))
        return places;
    return peer->uid == PEER_NO_UID ? places - places / 4 : places / 4;
}

static size_t bucket_of(uint64_t client)
{
    return (client ^ client >> 32) % LINE_BUCKETS;
}

static struct line_party *party_find(const struct lines *all, uint64_t client)
{
    struct line_party *p;
    LIST_FOREACH(p, &all->parties[bucket_of(client)], entry)
    if (p->client == client)
        break;
    return p;
}

// One of its lines waits for headers that should be there by now.
static bool party_is_late(const struct line_party *p, int64_t now_ms)
{
    const struct line *oldest = TAILQ_FIRST(&p->heads);
    return oldest && now_ms - oldest->since_ms >= LINE_PROMPT_MS;
}

static struct line_party *party_of(struct lines *all, const struct peer *peer)
{
    struct line_party *p = party_find(all, peer->client);
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

bool lines_are_used_up(const struct lines *all, uint64_t client)
{
    const struct line_party *p = party_find(all, client);
    return p && p->n >= p->share && !party_is_late(p, clock_mono_ms());
}

static void stop_heading(struct line *l)
{
    if (l->heading)
        TAILQ_REMOVE(&l->party->heads, l, head_entry);
    l->heading = false;
}

static void leave(struct line *l)
{
    struct line_party *p = l->party;
    stop_heading(l);
    line_wait_end(l);
    line_queue_end(l);
    l->party = NULL;
    l->all->n--;
    if (--p->n == 0) {
        LIST_REMOVE(p, entry);
        free(p);
    }
}

void line_cut(struct line *l)
{
    if (l->cut)
        return;
    leave(l);
    l->cut = true;
    l->deadline_ms = INT64_MAX;
    shutdown(l->fd, SHUT_RDWR);
}

void line_allow(struct line *l, int64_t ms)
{
    if (!l || l->cut)
        return;
    int64_t now = clock_mono_ms();
    l->deadline_ms = ms < 0 ? INT64_MAX : now + ms;
    if (l->deadline_ms < l->all->armed_ms)
        line_arm(l->all, l->deadline_ms, now);
}

int64_t line_time(int64_t least, uint64_t bytes)
{
    return least + (int64_t)(bytes / LINE_RATE);
}

// ---- headers that do not come

static bool is_crowded(const struct lines *all)
{
    return all->n > all->places - all->places / 4;
}

static void start_heading(struct line *l, int64_t ms)
{
    l->heading = true;
    l->since_ms = clock_mono_ms();
    TAILQ_INSERT_TAIL(&l->party->heads, l, head_entry);
    line_allow(l, is_crowded(l->all) ? LINE_CROWD_MS : ms);
}

// The places run short: those that wait for headers since long have less time from now on.
static void hurry(struct lines *all)
{
    struct line *l;
    int64_t now = clock_mono_ms();
    LIST_FOREACH(l, &all->list, entry)
    {
        if (!l->heading || l->deadline_ms <= l->since_ms + LINE_CROWD_MS)
            continue;
        int64_t left = l->since_ms + LINE_CROWD_MS - now;
        line_allow(l, left > 0 ? left : 0);
    }
}

void line_head_whole(struct line *l)
{
    if (!l || l->cut)
        return;
    stop_heading(l);
    l->since_ms = clock_mono_ms();
}

void line_head_next(struct line *l)
{
    if (!l || l->cut)
        return;
    stop_heading(l);
    start_heading(l, LINE_KEPT_MS);
}

// ---- too many

// Parties of which one loses a line when the listener is full.
struct largest {
    struct line_party *any, *slow; // slow: with headers that should be there by now
};

static struct largest find_largest(const struct lines *all, int64_t now_ms)
{
    struct largest found = {0};
    for (int i = 0; i < LINE_BUCKETS; i++) {
        struct line_party *p;
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

static struct line *oldest_of(const struct lines *all, const struct line_party *p)
{
    struct line *l, *oldest = NULL;
    LIST_FOREACH(l, &all->list, entry)
    {
        if (l->party == p)
            oldest = l; // the list is newest first
    }
    return oldest;
}

static struct line *longest_head(const struct line_party *p, struct line *otherwise)
{
    struct line *l = TAILQ_FIRST(&p->heads);
    return l ? l : otherwise;
}

// One line too many. Never a line of a client that has fewer than the new one's, but for headers
// that are late.
static struct line *least_worthy(struct line *new)
{
    const struct lines *all = new->all;
    const struct largest of = find_largest(all, new->since_ms);
    if (of.slow)
        return longest_head(of.slow, new);
    return longest_head(of.any, of.any->n > new->party->n ? oldest_of(all, of.any) : new);
}

// The line of its client whose step takes longest, but for those that wait for us.
static struct line *slowest_of(struct line *new)
{
    struct line *l, *slowest = new;
    LIST_FOREACH(l, &new->all->list, entry)
    {
        if (l->party == new->party && l->deadline_ms != INT64_MAX &&
            l->since_ms < slowest->since_ms)
            slowest = l;
    }
    return slowest;
}

// An account has only itself in its way. Behind an address there may be many clients: those that
// read slowly must not keep the others out either.
static struct line *least_worthy_of_its_own(struct line *new)
{
    struct line *l = longest_head(new->party, new);
    if (new->peer.uid == PEER_NO_UID &&new->since_ms - l->since_ms < LINE_PROMPT_MS)
        return slowest_of(new);
    return l;
}

static void line_make_room(struct line *new)
{
    struct lines *all = new->all;
    if (new->party->n > new->party->share)
        line_cut(least_worthy_of_its_own(new));
    else if (all->n > all->places)
        line_cut(least_worthy(new));
}

static struct line *line_join(struct line *l)
{
    struct lines *all = l->all;
    l->party = party_of(all, &l->peer);
    if (!l->party) {
        free(l);
        return NULL;
    }
    bool before = is_crowded(all);
    LIST_INSERT_HEAD(&all->list, l, entry);
    l->party->n++;
    all->n++;
    all->moved_ms = clock_mono_ms();
    start_heading(l, LINE_HEAD_MS);
    if (!before && is_crowded(all))
        hurry(all);
    line_make_room(l);
    return l;
}

struct line *line_new(struct lines *all, int fd, const struct peer *peer)
{
    struct line *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct line){.all = all, .fd = fd, .peer = *peer};
    return line_join(l);
}

void line_free(struct line *l)
{
    if (!l)
        return;
    if (!l->cut)
        leave(l);
    l->all->moved_ms = clock_mono_ms();
    LIST_REMOVE(l, entry);
    free(l);
}

// ---- long waits

bool line_wait(struct line *l)
{
    struct lines *all = l->all;
    const int places = all->places / 2;
    if (l->cut || all->waiting >= places ||
        (!peer_is_ours(&l->peer) && l->party->waiting >= places / 2))
        return false;
    l->waits = true;
    l->party->waiting++;
    all->waiting++;
    return true;
}

void line_wait_end(struct line *l)
{
    if (!l || !l->waits)
        return;
    l->waits = false;
    l->party->waiting--;
    l->all->waiting--;
}

// ---- turns

void line_queue(struct line *l)
{
    if (l->cut || l->queued || !peer_is_ours(&l->peer))
        return;
    l->queued = true;
    l->all->queued++;
}

void line_queue_end(struct line *l)
{
    if (!l || !l->queued)
        return;
    l->queued = false;
    l->all->queued--;
}

int lines_room(const struct lines *all, int most)
{
    int left = all->places > all->n ? all->places - all->n : 0;
    if (left >= most || all->queued <= all->places / 2 ||
        clock_mono_ms() - all->moved_ms >= LINE_STUCK_MS)
        return most;
    return left;
}

uint64_t line_client(const struct line *l)
{
    return l->peer.client;
}

// SPDX-License-Identifier: Apache-2.0
// Which connection goes when there are too many. Who is at the other end is made up: a connection's
// "descriptor" is the number of its client.
#include "http/server/connections.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/os/loop.h"
#include "tests/unit/tap.h"

enum { PLACES = 64, OURS = 1000, UNKNOWN = 2000 };

static struct connections all;
static struct connection *made[4 * PLACES];
static int n_made;

// What connections.c calls of the kernel and of peer.c.
int shutdown(int fd, int how)
{
    (void)fd, (void)how;
    return 0;
}

static int gone; // the client whose connections have ended, with nothing left to read

ssize_t recv(int fd, void *data, size_t n, int flags)
{
    (void)data, (void)n, (void)flags;
    return fd == gone ? 0 : -1;
}

bool peer_is_ours(const struct peer *p)
{
    return p->uid == OURS;
}

static struct connection *come(int client)
{
    const struct peer peer = {.client = (uint64_t)client,
                              .uid = client == UNKNOWN ? PEER_NO_UID : (uid_t)client};
    return made[n_made++] = connection_new(&all, client, &peer);
}

static void begin(struct loop *loop)
{
    struct err err;
    connections_init(&all, loop, PLACES, &err);
    n_made = 0;
}

static int alive(int client)
{
    int n = 0;
    for (int i = 0; i < n_made; i++)
        n += made[i]->peer.client == (uint64_t)client && !made[i]->cut;
    return n;
}

static void end(void)
{
    for (int i = 0; i < n_made; i++)
        connection_free(made[i]);
    CHECK(all.n == 0 && all.waiting == 0, "nothing is left");
    connections_fini(&all);
}

// As if this line had come so long ago.
static void age(struct connection *l, int64_t ms)
{
    l->since_ms -= ms;
}

static void shares(struct loop *loop)
{
    begin(loop);
    struct connection *first = come(1);
    CHECK(!connections_are_used_up(&all, 1) && !connections_are_used_up(&all, 2), "there is room");
    for (int i = 0; i < PLACES / 4; i++)
        come(1);
    CHECK(connections_are_used_up(&all, 1) && !connections_are_used_up(&all, 2),
          "and none, for this one");
    age(made[n_made - 1], CONNECTION_PROMPT_MS);
    CHECK(connections_are_used_up(&all, 1), "the oldest head counts");
    age(made[1], CONNECTION_PROMPT_MS);
    CHECK(!connections_are_used_up(&all, 1), "a head that is late can go");
    CHECK(alive(1) == PLACES / 4 && first->cut, "an account has a quarter; the oldest head goes");
    for (int i = 0; i < PLACES / 4; i++)
        connection_head_whole(made[n_made - 1 - i]);
    struct connection *next = come(1);
    CHECK(next->cut && alive(1) == PLACES / 4, "what is being answered stays");
    for (int i = 0; i < PLACES; i++)
        come(UNKNOWN);
    CHECK(alive(UNKNOWN) == PLACES - PLACES / 4, "an address has three quarters");
    struct connection *other = come(2);
    CHECK(!other->cut && alive(2) == 1, "another client finds a place");
    end();
}

static void slow_readers(struct loop *loop)
{
    begin(loop);
    for (int i = 0; i < PLACES - PLACES / 4; i++) {
        struct connection *l = come(UNKNOWN);
        connection_head_whole(l);
        connection_allow(l, i % 2 ? CONNECTION_ANSWER_MS : -1);
    }
    struct connection *slow = made[n_made - 1];
    age(made[n_made - 2], 9000); // it waits for us
    age(slow, 5000);
    struct connection *next = come(UNKNOWN);
    CHECK(!next->cut && slow->cut && alive(UNKNOWN) == PLACES - PLACES / 4,
          "behind an address the slowest reader goes");
    for (int i = 0; i < PLACES / 4 + 1; i++) {
        struct connection *l = come(1);
        connection_head_whole(l);
        connection_allow(l, CONNECTION_ANSWER_MS);
        age(l, 5000);
    }
    next = come(1);
    CHECK(next->cut, "an account has itself in its way");
    end();
}

static void full(struct loop *loop)
{
    begin(loop);
    for (int i = 0; i < 2 * PLACES; i++)
        come(OURS);
    CHECK(alive(OURS) == PLACES, "we are not limited but by the places");
    struct connection *other = come(1);
    CHECK(!other->cut && alive(OURS) == PLACES - 1, "and make room for an account with fewer");
    for (int i = 0; i < n_made; i++)
        connection_head_whole(made[i]);
    struct connection *third = come(2);
    CHECK(!third->cut && !other->cut && alive(OURS) == PLACES - 2,
          "also when all are being answered");
    end();
}

static void late_heads_first(struct loop *loop)
{
    begin(loop);
    for (int i = 0; i < PLACES - 4; i++)
        connection_head_whole(come(OURS));
    struct connection *slow = NULL;
    for (int i = 0; i < 4; i++)
        age(come(3), i == 0 ? 5000 : 10);
    slow = made[n_made - 4];
    struct connection *new = come(4);
    CHECK(slow->cut && !new->cut &&alive(OURS) == PLACES - 4 && alive(3) == 3,
          "a head that is late goes before answers of a client with more lines");
    struct connection *next = come(5);
    CHECK(!next->cut && alive(3) == 3 && alive(OURS) == PLACES - 5,
          "heads that may still come do not");
    end();
}

// Half a body, and its client has gone: the library may notice only at the deadline.
static void gone_in_the_middle(struct loop *loop)
{
    begin(loop);
    for (int i = 0; i < PLACES / 4; i++) {
        connection_head_whole(come(1));
        connection_receives(made[i], i > 0);
    }
    gone = 1;
    CHECK(come(1)->cut && alive(1) == 1 && !made[0]->cut,
          "an answer is sent to who sends no more, and nothing is left of the others");
    gone = 2;
    all.swept_ms -= CONNECTION_SWEEP_MS;
    for (int i = 0; i < PLACES / 4; i++)
        connection_receives(come(1), true);
    CHECK_INT(alive(1), PLACES / 4, "who has not gone stays, but for one too many");
    gone = 0;
    end();
}

static void many_accounts(struct loop *loop)
{
    begin(loop);
    for (int i = 0; i < 2 * PLACES; i++)
        come(10 + i % 16);
    CHECK(all.n == PLACES, "all places are taken");
    struct connection *good = come(1);
    CHECK(!good->cut && all.n == PLACES, "a client of its own finds one");
    connection_head_whole(good);
    for (int i = 0; i < PLACES; i++)
        come(100 + i);
    CHECK(!good->cut, "and keeps it while it is answered");
    end();
}

static void waits(struct loop *loop)
{
    int got = 0;
    begin(loop);
    for (int i = 0; i < PLACES / 4; i++)
        got += connection_wait(come(1));
    CHECK(got == PLACES / 4, "half of the places to wait for an account: %d", got);
    CHECK(!connection_wait(come(UNKNOWN)) == false, "another client finds one");
    CHECK(all.waiting == PLACES / 4 + 1, "they are counted");
    struct connection *again = made[0];
    connection_wait_end(again);
    connection_wait_end(again);
    CHECK(all.waiting == PLACES / 4, "and given back once");
    CHECK(connection_wait(again), "for another wait");
    connection_cut(again);
    CHECK(all.waiting == PLACES / 4 && !connection_wait(again), "or with the line");
    got = 0;
    for (int i = 0; i < PLACES; i++)
        got += connection_wait(come(OURS));
    CHECK(all.waiting == PLACES / 2, "half of all places are for those who wait: %d more", got);
    end();
    begin(loop);
    got = 0;
    for (int i = 0; i < PLACES / 2; i++)
        got += connection_wait(come(UNKNOWN));
    CHECK(got == PLACES / 4, "an address has half of them: %d", got);
    end();
}

static void crowd(struct loop *loop)
{
    begin(loop);
    struct connection *early = come(OURS);
    int64_t before = early->deadline_ms;
    CHECK(before - early->since_ms == CONNECTION_HEAD_MS, "10 s for a head");
    for (int i = 0; i < PLACES - PLACES / 4; i++)
        come(OURS);
    CHECK(early->deadline_ms < before &&
              early->deadline_ms <= clock_mono_ms() + CONNECTION_CROWD_MS,
          "1 s when three quarters of the places are taken");
    connection_head_whole(early);
    connection_allow(early, CONNECTION_ANSWER_MS);
    CHECK(early->deadline_ms > clock_mono_ms() + CONNECTION_CROWD_MS, "not for answers");
    connection_head_next(early);
    CHECK(early->deadline_ms <= clock_mono_ms() + CONNECTION_CROWD_MS,
          "nor kept connections longer");
    end();
}

static void turns(struct loop *loop)
{
    begin(loop);
    for (int i = 0; i < PLACES; i++)
        connection_head_whole(come(OURS));
    CHECK(connections_room(&all, 8) == 8,
          "a full listener takes in more: one of the largest client goes");
    for (int i = 0; i <= PLACES / 2; i++)
        connection_queue(made[i]);
    connection_queue(made[0]);
    CHECK(all.queued == PLACES / 2 + 1, "those that wait for their turn are counted once");
    CHECK(connections_room(&all, 8) == 0, "not while ours wait for us");
    connection_free(made[--n_made]);
    CHECK(connections_room(&all, 8) == 1, "but for each that ends one");
    come(OURS);
    all.moved_ms -= CONNECTION_STUCK_MS;
    CHECK(connections_room(&all, 8) == 8, "kept connections that never end are in nobody's way");
    all.moved_ms += CONNECTION_STUCK_MS;
    connection_queue_end(made[0]);
    connection_queue_end(made[0]);
    CHECK(all.queued == PLACES / 2 && connections_room(&all, 8) == 8, "nor when fewer wait");
    connection_cut(made[1]);
    CHECK(all.queued == PLACES / 2 - 1, "a line that is cut waits no more");
    end();
    begin(loop);
    for (int i = 0; i < PLACES; i++)
        connection_queue(come(10 + i % 16));
    CHECK(all.queued == 0 && connections_room(&all, 8) == 8, "turns of others keep nobody out");
    end();
}

int main(void)
{
    struct err err;
    struct loop *loop = loop_new(&err);
    shares(loop);
    slow_readers(loop);
    full(loop);
    late_heads_first(loop);
    gone_in_the_middle(loop);
    many_accounts(loop);
    waits(loop);
    crowd(loop);
    turns(loop);
    loop_free(loop);
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// The connections of a listener as file descriptors: who is at the other end, how long the present
// step may take, and which one goes when there are too many.
//
// The HTTP library knows only how long a connection was silent; a client that sends a byte a second
// stays for ever. So each connection has an absolute deadline for the step that it is in, and is
// cut when that has passed. One timer serves all of them; with no connection there is none.
//
// A client that has more connections than its share, or that has the most when the listener is
// full, loses the one that has waited longest for a request's headers. A good client sends its
// headers at once, so it is never this one's.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "core/os/loop.h"
#include "http/access/peer.h"
#include "model/token.h"

// 10 s for the headers, 30 s for the body and 20 s for the answer: no exchange that neither waits
// for a run nor moves more than 5 MiB takes longer than a minute.
enum {
    CONNECTION_HEAD_MS = 10000, // from the first byte that could come; also of a TLS handshake
    CONNECTION_KEPT_MS = 30000, // of a kept connection: until the next request's headers are whole
    CONNECTION_CROWD_MS = 1000, // instead of both, while three quarters of the places are used
    CONNECTION_STUCK_MS = 1000, // so long no connection came or went: no place gets free by itself
    CONNECTION_PROMPT_MS = 100, // a good client's headers are there by then
    CONNECTION_SWEEP_MS = 100,  // between two looks for those whose client has gone
    CONNECTION_BODY_MS = 30000, // 64 KiB in 30 s is 2 KiB/s
    CONNECTION_ANSWER_MS = 20000, // 64 KiB in 20 s is 3 KiB/s
    CONNECTION_RATE = 256,        // bytes a ms of what is larger: 32 MiB may take 131 s more
    CONNECTION_BUCKETS = 64,      // of the table of clients
};

struct connection {
    LIST_ENTRY(connection) entry;       // of all->list, newest first
    TAILQ_ENTRY(connection) head_entry; // of party->heads, while `heading`
    struct connections *all;
    struct connection_party *party; // NULL once it is cut
    int fd;                         // borrowed
    bool cut, waits;
    bool queued;      // of all->queued
    bool paid;        // its first request may go at once (arrivals.c)
    bool heading;     // the headers of its next request are not whole yet
    bool receiving;   // nor the body of the present one
    int64_t since_ms; // it waits for them, or they are whole
    struct peer peer;
    enum scope scope;    // of what comes without a token
    int64_t deadline_ms; // on the monotonic clock; INT64_MAX: none
    struct tls *tls;     // of its session, listeners.c's; NULL: none
};

struct connections { // of one listener
    struct loop *loop;
    struct loop_timer *timer;
    LIST_HEAD(connection_list, connection) list;
    LIST_HEAD(connection_parties, connection_party) parties[CONNECTION_BUCKETS];
    int64_t armed_ms;
    int places; // connections that may be there at once
    int n;      // connections that are not cut
    int waiting;
    int queued;       // of root or the daemon's account, waiting for their turn in our loop
    int64_t moved_ms; // when one came or went last
    int64_t swept_ms; // when those were looked for whose client has gone
};

int connections_init(struct connections *all, struct loop *loop, int places, struct err *err);
void connections_fini(struct connections *all);

// A connection that was accepted, with CONNECTION_HEAD_MS for its first request. Where there are
// too many, one is cut, which may be this one. NULL: no memory.
struct connection *connection_new(struct connections *all, int fd, const struct peer *peer);
void connection_free(struct connection *c); // NULL is fine
void connection_cut(struct connection *c);  // the library sees the end and lets go of it
// The headers of its request are whole; a next request may come on the kept connection. NULL is
// fine.
void connection_head_whole(struct connection *c);
void connection_head_next(struct connection *c);
// A body comes, or has come. NULL is fine.
void connection_receives(struct connection *c, bool receives);
// The next step may take so long; < 0: for ever. NULL is fine.
void connection_allow(struct connection *c, int64_t ms);
// Milliseconds for so many bytes in a step that has at least `least`.
int64_t connection_time(int64_t least, uint64_t bytes);
// Takes one of the places for long waits: half of all, of which half are for one client that is
// neither root nor the daemon's account. False: none is left.
bool connection_wait(struct connection *c);
void connection_wait_end(struct connection *c); // if it took one
// It waits for its turn in our loop, and not for long.
void connection_queue(struct connection *c);
void connection_queue_end(struct connection *c); // NULL is fine
// How many of `most` may be taken in now. Where the places are taken by root or the daemon's
// account and half of them wait for us, a new connection would only cost one of theirs: it waits in
// the backlog until a place is free, unless none gets free.
int connections_room(const struct connections *all, int most);
// The client has its share of the places, and none of its connections waits for headers that are
// late: one more would cost it one that is used.
bool connections_are_used_up(const struct connections *all, uint64_t client);
void connections_sweep(struct connections *all); // cuts those whose client has gone
// One number per client, for fair shares.
uint64_t connection_client(const struct connection *c);

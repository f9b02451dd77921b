// SPDX-License-Identifier: Apache-2.0
// Connections from accept() until the library has them.
//
// They are accepted here, not by the library: after one that could not be accepted (no file
// descriptor, no memory) it accepts no other one until some connection ends, and a stream of events
// may last for hours.
//
// While a run is measured, a client that may not start runs pays for each connection (share.h). If
// it is in debt or has its share of the places, its new connections are held: the library does not
// get them until the client has paid. A held connection costs a file descriptor, about 300 bytes,
// and what its client has sent (the kernel holds 64 KiB of it at most): 128 MiB for HELD_MAX of
// them. To close them instead would be worse: the client would connect again at once, as often as
// it can. The other clients lose nothing, because accepting continues.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/access/access.h"
#include "http/server/parts.h"

enum {
    ACCEPT_PAUSE_MS = 100, // when one cannot be accepted: the others wait in the backlog
    // After connections were held and the backlog is empty. So a client that connects without end
    // wakes the loop 100 times a second, and the others wait 10 ms longer at most.
    HELD_PAUSE_MS = 10,
};

struct arrival {
    TAILQ_ENTRY(arrival) entry; // of listener->given
    struct turn turn;           // of listener->held
    int fd;                     // owned while it is held
    struct peer peer;
    enum scope scope; // of what comes without a token
    bool paid;
};

// How many may be accepted now.
static int room(const struct listener *l)
{
    const int left = l->server->connections + ACCEPT_BATCH - l->n;
    return connections_room(&l->connections, left < ACCEPT_BATCH ? left : ACCEPT_BATCH);
}

static enum scope scope_of(const struct listener *l, int fd)
{
    const struct access_rules *a = &l->server->access;
    if (!*l->socket.host)
        return access_of_account(a, fd);
    if (l->socket.loopback)
        return a->anonymous;
    return a->insecure_anonymous && a->anonymous >= SCOPE_READ ? SCOPE_READ : SCOPE_NONE;
}

static void arrival_charge(struct listener *l, const struct arrival *a, int64_t us)
{
    share_charge(&l->server->share, a->peer.client, us, clock_mono_ms());
}

static bool arrival_is_paced(const struct listener *l, const struct arrival *a)
{
    return a->scope < SCOPE_RUN && service_is_measuring(l->server->service);
}

// ---- to the library

// If the library has no memory for the connection it closes it; arrivals_given() sees to the rest.
static void give(struct listener *l, struct arrival *a, const struct sockaddr *from, socklen_t n)
{
    TAILQ_INSERT_TAIL(&l->given, a, entry);
    l->touched = true;
    MHD_add_connection(l->mhd, a->fd, from, n);
}

// The newest of this number: an older one was closed.
struct connection *arrival_take(struct listener *l, int fd)
{
    struct arrival *a;
    TAILQ_FOREACH_REVERSE(a, &l->given, arrivals, entry)
    if (a->fd == fd)
        break;
    if (!a)
        return NULL;
    struct connection *connection = connection_new(&l->connections, fd, &a->peer);
    if (connection) {
        connection->scope = a->scope;
        connection->paid = a->paid;
    }
    TAILQ_REMOVE(&l->given, a, entry);
    free(a);
    return connection;
}

void arrivals_given(struct listener *l)
{
    for (struct arrival *a; (a = TAILQ_FIRST(&l->given));) {
        TAILQ_REMOVE(&l->given, a, entry);
        free(a);
    }
}

// ---- held

static struct arrival *arrival_of(struct turn *t)
{
    return t ? (struct arrival *)(void *)((char *)t - offsetof(struct arrival, turn)) : NULL;
}

// Its turn has ended.
static void drop(struct listener *l, struct arrival *a)
{
    l->server->n_held--;
    close(a->fd);
    free(a);
}

static bool any_client(void *ctx, uint64_t client)
{
    (void)ctx;
    (void)client;
    return true;
}

static void drop_all(struct listener *l)
{
    for (struct turn *t; (t = turns_next(&l->held, any_client, NULL));)
        drop(l, arrival_of(t));
}

// As of an exchange that waits (exchange_watch_hangup).
static bool has_gone(const struct arrival *a)
{
    struct pollfd p = {.fd = a->fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) != 0;
}

static bool has_room_to_hold(struct listener *l, uint64_t client)
{
    struct arrival *oldest = arrival_of(turns_oldest(&l->held, client));
    const int most = l->server->held_max;
    if (l->server->n_held < most && turns_of(&l->held, client) < most / 2)
        return true;
    if (!oldest || !has_gone(oldest))
        return false;
    turns_remove(&l->held, &oldest->turn);
    drop(l, oldest);
    return true;
}

// Those whose client has gone do not count.
static bool places_are_used_up(struct listener *l, uint64_t client)
{
    if (!connections_are_used_up(&l->connections, client))
        return false;
    connections_sweep(&l->connections);
    return connections_are_used_up(&l->connections, client);
}

static bool must_be_held(struct listener *l, const struct arrival *a)
{
    return turns_of(&l->held, a->peer.client) || places_are_used_up(l, a->peer.client) ||
           share_wait_ms(&l->server->share, a->peer.client, clock_mono_ms());
}

static bool hold(struct listener *l, struct arrival *a)
{
    if (has_gone(a) || !has_room_to_hold(l, a->peer.client) ||
        !turns_add(&l->held, &a->turn, a->peer.client))
        return false;
    l->server->n_held++;
    return true;
}

struct admitting {
    const struct listener *l;
    int64_t now_ms, least_ms; // until the first that may come in; -1: none may
};

static bool may_come_in(void *ctx, uint64_t client)
{
    struct admitting *of = ctx;
    const struct server *s = of->l->server;
    if (!service_is_measuring(s->service))
        return true;
    if (connections_are_used_up(&of->l->connections, client))
        return false;
    int64_t ms = share_wait_ms(&s->share, client, of->now_ms);
    if (ms && (of->least_ms < 0 || ms < of->least_ms))
        of->least_ms = ms;
    return !ms;
}

// It pays for itself and for its first request.
static void come_in(struct listener *l, struct arrival *a)
{
    struct sockaddr_storage from = {0};
    socklen_t n = sizeof from;
    if (has_gone(a) || getpeername(a->fd, (struct sockaddr *)&from, &n) < 0) {
        drop(l, a);
        return;
    }
    l->server->n_held--;
    a->paid = arrival_is_paced(l, a);
    if (a->paid)
        arrival_charge(l, a,
                       SHARE_LINE_US + SHARE_EXCHANGE_US + (l->socket.tls ? SHARE_TLS_US : 0));
    give(l, a, (struct sockaddr *)&from, n);
}

void arrivals_admit(struct listener *l)
{
    struct admitting of = {l, clock_mono_ms(), -1};
    struct turn *t;
    if (l->server->stopping)
        drop_all(l);
    if (l->held.n)
        connections_sweep(&l->connections);
    for (int left = l->held.n ? room(l) : 0; left > 0; left--) {
        if (!(t = turns_next(&l->held, may_come_in, &of)))
            break;
        come_in(l, arrival_of(t));
    }
}

bool arrivals_wait(const struct exchange *x)
{
    return turns_of(&x->listener->held, connection_client(x->connection)) > 0;
}

int64_t arrivals_ms(const struct listener *l)
{
    struct admitting of = {l, clock_mono_ms(), -1};
    if (!l->held.n)
        return -1;
    if (!turns_any(&l->held, may_come_in, &of))
        return of.least_ms;
    return room(l) > 0 ? 0 : ACCEPT_PAUSE_MS;
}

// ---- accepting

static void stop_accepting(struct listener *l)
{
    loop_unwatch(l->incoming);
    l->incoming = NULL;
    l->knocked = false;
}

static void pause_accepting(struct listener *l, int64_t ms)
{
    stop_accepting(l);
    l->resting = true;
    loop_timer_set(l->pause, ms);
}

// True: it is held, or refused.
static bool arrive(struct listener *l, int fd, const struct sockaddr_storage *from, socklen_t n)
{
    struct arrival *a = calloc(1, sizeof *a);
    if (!a) {
        close(fd);
        return true;
    }
    *a = (struct arrival){.fd = fd, .scope = scope_of(l, fd)};
    if (*l->socket.host)
        peer_of_tcp(&a->peer, l->diag, fd, from);
    else
        peer_of_unix(&a->peer, fd);
    if (!arrival_is_paced(l, a)) {
        give(l, a, (const struct sockaddr *)from, n);
        return false;
    }
    arrival_charge(l, a, SHARE_ARRIVAL_US);
    if (!must_be_held(l, a)) {
        arrival_charge(l, a, SHARE_LINE_US + (l->socket.tls ? SHARE_TLS_US : 0));
        give(l, a, (const struct sockaddr *)from, n);
        return false;
    }
    if (!hold(l, a)) {
        close(fd);
        free(a);
    }
    return true;
}

static void cannot_accept(struct listener *l)
{
    if (log_may(&l->server->spared, clock_mono_ms()))
        log_event(LOG_LVL_WARN, "http.accept", "listen=%s text=\"%s\"", l->socket.text,
                  log_quote(strerror(errno)).text);
    pause_accepting(l, ACCEPT_PAUSE_MS);
}

// They are accepted after the library has run.
static void on_incoming(void *ctx, uint32_t events)
{
    struct listener *l = ctx;
    (void)events;
    l->knocked = true;
}

void arrivals_accept(struct listener *l)
{
    bool held = false;
    if (!l->knocked)
        return;
    l->knocked = false;
    for (int left = room(l); left > 0; left--) {
        struct sockaddr_storage from;
        socklen_t n = sizeof from;
        int fd = accept4(l->socket.fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            held |= arrive(l, fd, &from, n);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            cannot_accept(l);
        else if (held && errno == EAGAIN)
            pause_accepting(l, HELD_PAUSE_MS);
        return;
    }
    if (room(l) > 0)
        return;
    stop_accepting(l); // until one ends, or others do not wait for us any more
    loop_timer_set(l->pause, ACCEPT_PAUSE_MS);
}

void arrivals_go_on(struct listener *l)
{
    if (l->incoming || l->resting || l->server->stopping)
        return;
    if (room(l) > 0)
        l->incoming = loop_watch_fd(l->server->loop, l->socket.fd, EPOLLIN, on_incoming, l, NULL);
    if (!l->incoming)
        loop_timer_set(l->pause, ACCEPT_PAUSE_MS);
}

static void pause_over(void *ctx, uint32_t events)
{
    struct listener *l = ctx;
    (void)events;
    l->resting = false;
    arrivals_go_on(l);
}

int arrivals_start(struct listener *l, struct err *err)
{
    struct loop *loop = l->server->loop;
    TAILQ_INIT(&l->given);
    turns_init(&l->held);
    l->diag = *l->socket.host ? peer_diag_open(l->socket.fd) : -1;
    l->pause = loop_timer_new(loop, pause_over, l, err);
    l->incoming = l->pause ? loop_watch_fd(loop, l->socket.fd, EPOLLIN, on_incoming, l, err) : NULL;
    return l->incoming ? 0 : -1;
}

void arrivals_stop(struct listener *l)
{
    stop_accepting(l);
    loop_timer_free(l->pause);
    drop_all(l);
    if (l->diag >= 0)
        close(l->diag);
}

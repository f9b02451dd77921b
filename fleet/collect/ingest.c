// SPDX-License-Identifier: Apache-2.0
// The side of the collector: items wait in a queue, are written as the process takes them, and stay
// known until they are confirmed, in the order in which they were sent. After the process has died
// items are sent one at a time for a while. If it dies twice on one node's, that node is at fault:
// once can be a kill from outside.
#include "fleet/collect/ingest.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/os/child.h"

enum {
    RESTART_MS = 250,       // after the process has ended; doubled each time that nothing was
    RESTART_MAX_MS = 30000, // confirmed before
    CLOCK_LOOK_MS = 1000,   // until the clock is looked at again that is not set
    STANDBY_MS = 1000,      // another collector writes; opening waits for it too
    STOP_MS = 20000,        // for what was sent, when the collector stops: a full backlog takes 4
    WRITE_AHEAD = 1 << 20,  // bytes that are handed to the socket's queue at once
    ALONE_MORE = 32,        // items that are sent alone after those that were lost
};

struct ingest_entry {
    struct ingest_entry *next;
    struct ingest_head head;
    struct buf body; // empty once it was written
};

struct ingest_queue {
    struct ingest_entry *first, **last;
    int n;
};

struct ingest {
    struct loop *loop;
    struct ingest_store store;
    struct ingest_user user;
    int socket; // -1: there is no process
    pid_t pid;
    struct loop_watch *watch;
    bool writes; // it is also watched for room
    struct loop_timer *restart, *stall;
    struct ingest_queue waiting, sent;
    struct buf out, in;
    size_t backlog; // bytes of the bodies of both queues
    int alone;      // so many items are sent one at a time
    int64_t restart_ms;
    bool ready, stopping, stalled, deleting;
    enum err_code failed;        // why the process is about to end; ERR_NONE: not known
    struct ingest_head doubtful; // was sent alone when it died; node "": none was
};

static void items_add(struct ingest_queue *q, struct ingest_entry *e)
{
    e->next = NULL;
    *(q->n++ ? q->last : &q->first) = e;
    q->last = &e->next;
}

static struct ingest_entry *items_take(struct ingest_queue *q)
{
    struct ingest_entry *e = q->first;
    if (e) {
        q->first = e->next;
        q->n--;
    }
    return e;
}

static void items_drop(struct ingest *i, struct ingest_queue *q)
{
    for (struct ingest_entry *e; (e = items_take(q));) {
        i->backlog -= e->head.bytes;
        buf_free(&e->body);
        free(e);
    }
}

// Something was confirmed, or is due from now on.
static void await_report(struct ingest *i)
{
    bool due = i->socket >= 0 && (!i->ready || i->sent.n);
    if (i->stall)
        loop_timer_set(i->stall, !due          ? -1
                                 : i->deleting ? INGEST_STALL_DELETING_MS
                                               : INGEST_STALL_MS);
}

static void report_stall(struct ingest *i, bool stalled)
{
    struct ingest_report r = {.kind = INGEST_STALLED, .opened = i->ready};
    int seconds = (i->deleting ? INGEST_STALL_DELETING_MS : INGEST_STALL_MS) / 1000;
    if (stalled)
        snprintf(r.text, sizeof r.text,
                 "the store has %s for %d s: %sthe database or the disk does "
                 "not respond",
                 i->ready ? "confirmed nothing" : "not opened", seconds,
                 i->ready ? "" : "it is upgraded, or ");
    i->stalled = stalled;
    i->user.report(i->user.ctx, &r);
}

static void on_stall(void *ctx, uint32_t events)
{
    (void)events;
    report_stall(ctx, true);
}

// What goes to the process, or comes from it, is not whole: it ends, and is started again.
static void lose_process(struct ingest *i)
{
    struct ingest_report r = {.kind = INGEST_FAILED, .code = ERR_NO_MEMORY, .opened = i->ready};
    if (i->failed)
        return; // it was said
    snprintf(r.text, sizeof r.text, "no memory for what goes to the process that stores, or comes");
    i->failed = r.code;
    shutdown(i->socket, SHUT_RDWR); // its end is seen by on_report()
    i->user.report(i->user.ctx, &r);
}

// Moves items to the socket as long as it takes them.
static void ingest_pump(struct ingest *i)
{
    while (i->socket >= 0) {
        while (i->waiting.n && i->out.len < WRITE_AHEAD && !(i->alone && i->sent.n)) {
            struct ingest_entry *e = items_take(&i->waiting);
            e->head.alone = i->alone;
            buf_add(&i->out, &e->head, sizeof e->head);
            buf_add(&i->out, e->body.data, e->body.len);
            buf_free(&e->body);
            items_add(&i->sent, e);
            if (i->ready && i->sent.n == 1)
                await_report(i);
        }
        if (!buf_ok(&i->out)) {
            lose_process(i);
            break;
        }
        if (!i->out.len)
            break;
        ssize_t n = send(i->socket, i->out.data, i->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            break; // full, or at its end, which on_report() sees
        buf_drop(&i->out, (size_t)n);
    }
    bool wanted = i->out.len;
    if (i->socket >= 0 && wanted != i->writes)
        loop_watch_events(i->watch, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
    i->writes = wanted;
}

static void forget_process(struct ingest *i, int limit_ms)
{
    loop_unwatch(i->watch);
    i->watch = NULL;
    i->writes = false;
    fd_cleanup(&i->socket);
    child_end(&i->pid, limit_ms);
    i->ready = false;
    i->stalled = i->deleting = false;
    i->failed = ERR_NONE;
    await_report(i);
    buf_free(&i->out);
    buf_free(&i->in);
}

// What nodes send, and could end its reader.
static const char *const item_names[] = {
    [INGEST_PAGE] = "page", [INGEST_FACTS] = "facts", [INGEST_WHOLE] = "run"};

static const char *item_name(enum ingest_kind kind)
{
    return kind < COUNT_OF(item_names) ? item_names[kind] : NULL;
}

static bool same_source(const struct ingest_head *a, const struct ingest_head *b)
{
    return a->kind == b->kind && strcmp(a->node, b->node) == 0;
}

// True: the item that was sent alone is of the kind and the node of the one that was when the
// process died before. A process that was not ready has read none.
static bool find_suspect(struct ingest *i)
{
    const struct ingest_head *h = i->ready && i->sent.n == 1 ? &i->sent.first->head : NULL;
    i->alone = i->sent.n + i->waiting.n + ALONE_MORE;
    if (!h || !h->alone || !item_name(h->kind))
        return false;
    bool again = same_source(&i->doubtful, h);
    i->doubtful = *h;
    return again;
}

// A store that failed says so before the process ends: no item is at fault then.
static void on_ended(struct ingest *i)
{
    bool failed = i->failed, standby = i->failed == ERR_CONFLICT;
    const struct ingest_head *suspect = !failed && find_suspect(i) ? &i->doubtful : NULL;
    forget_process(i, CHILD_END_MS);
    items_drop(i, &i->sent);
    items_drop(i, &i->waiting);
    if (i->stopping)
        return;
    if (!failed) // else the state of the store says so, and once: a standby tries each second
        log_event(LOG_LVL_WARN, "ingest.ended", "suspect=%s doubtful=%s of=%s restart_ms=%lld",
                  suspect ? suspect->node : "", i->doubtful.node,
                  *i->doubtful.node ? item_name(i->doubtful.kind) : "", (long long)i->restart_ms);
    loop_timer_set(i->restart, standby ? STANDBY_MS : i->restart_ms);
    if (!standby)
        i->restart_ms = i->restart_ms * 2 < RESTART_MAX_MS ? i->restart_ms * 2 : RESTART_MAX_MS;
    i->user.ended(i->user.ctx, suspect);
}

// It was read: a page of the node, which begins where the other did, or the document or run itself.
// Without a body there was nothing to read.
static void clear_doubt(struct ingest *i, const struct ingest_head *h)
{
    const struct ingest_head *d = &i->doubtful;
    if (!*d->node || !same_source(d, h) || !h->bytes ||
        (h->kind != INGEST_PAGE && (d->after != h->after || strcmp(d->hash, h->hash) != 0)))
        return;
    log_event(LOG_LVL_INFO, "ingest.cleared", "node=%s of=%s", h->node, item_name(h->kind));
    i->doubtful.node[0] = '\0';
}

static void take_report(struct ingest *i, const struct ingest_report *r)
{
    if (i->stalled && r->kind != INGEST_FAILED)
        report_stall(i, false);
    i->deleting = r->kind == INGEST_DELETING;
    if (r->kind == INGEST_READY)
        i->ready = true;
    if (r->kind == INGEST_FAILED)
        i->failed = r->code;
    if (r->kind == INGEST_STORED || r->kind == INGEST_REFUSED) {
        struct ingest_entry *e = items_take(&i->sent);
        i->restart_ms = RESTART_MS;
        if (i->alone > 0)
            i->alone--;
        if (e) {
            clear_doubt(i, &e->head);
            i->backlog -= e->head.bytes;
            free(e);
        }
    }
    await_report(i);
    i->user.report(i->user.ctx, r);
}

static void on_report(struct ingest *i)
{
    char bytes[64 * sizeof(struct ingest_report)];
    ssize_t n = recv(i->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        on_ended(i);
        return;
    }
    buf_add(&i->in, bytes, (size_t)n);
    if (!buf_ok(&i->in)) {
        lose_process(i);
        on_ended(i);
        return;
    }
    size_t at = 0;
    for (struct ingest_report r; i->in.len - at >= sizeof r; at += sizeof r + r.bytes) {
        memcpy(&r, i->in.data + at, sizeof r);
        if (i->in.len - at - sizeof r < r.bytes)
            break;
        r.body = i->in.data + at + sizeof r;
        take_report(i, &r);
    }
    buf_drop(&i->in, at);
    ingest_pump(i);
}

static void on_ingest_socket(void *ctx, uint32_t events)
{
    struct ingest *i = ctx;
    if (events & EPOLLOUT)
        ingest_pump(i);
    if (events & ~(uint32_t)EPOLLOUT)
        on_report(i);
}

static int watch_ingest(struct ingest *i, int *ours, struct err *err)
{
    i->watch = loop_watch_fd(i->loop, *ours, EPOLLIN, on_ingest_socket, i, err);
    if (!i->watch)
        return -1;
    i->socket = steal_fd(ours);
    return 0;
}

static int start_ingest(struct ingest *i, struct err *err)
{
    int pair[2];
    char program[] = "numaprobe-fleetd", option[] = "--ingest", numbers[3][24];
    char *argv[] = {program, option, numbers[0], numbers[1], numbers[2], NULL};
    const int64_t values[] = {i->store.keep_days, i->store.archive, i->store.archive_keep_days};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    CLEANUP_FD int ours = pair[0], theirs = pair[1], where = child_text(i->store.where, err);
    const struct child_fd fds[] = {{theirs, INGEST_FD}, {where, INGEST_STORE_FD}};
    if (where < 0)
        return -1;
    for (size_t k = 0; k < COUNT_OF(values); k++)
        snprintf(numbers[k], sizeof numbers[k], "%lld", (long long)values[k]);
    errno = child_exec(&i->pid, argv, fds, COUNT_OF(fds), false);
    if (errno) {
        i->pid = 0;
        return err_sys(err, "starting the process that stores");
    }
    if (watch_ingest(i, &ours, err) == 0) {
        await_report(i);
        return 0;
    }
    forget_process(i, CHILD_END_MS);
    return -1;
}

// A machine without a clock of its own begins in 1970, until its time is set. Runs that are
// received meanwhile would be dated so for good, since none is dated later than it is received.
static bool waits_for_clock(struct ingest *i)
{
    const int64_t now_ms = clock_wall_ms();
    struct ingest_report r = {.kind = INGEST_FAILED, .code = ERR_TIMEOUT};
    char now[32];
    if (now_ms >= CLOCK_SET_MS)
        return false;
    clock_rfc3339(now_ms, now);
    snprintf(r.text, sizeof r.text,
             "the clock of this machine is not set (it shows %.10s): nothing is stored before that",
             now);
    loop_timer_set(i->restart, CLOCK_LOOK_MS);
    i->user.report(i->user.ctx, &r);
    return true;
}

static void on_restart(void *ctx, uint32_t events)
{
    struct ingest *i = ctx;
    struct err err;
    (void)events;
    if (waits_for_clock(i))
        return;
    if (start_ingest(i, &err) == 0) {
        ingest_pump(i);
        return;
    }
    log_error("ingest.start", &err);
    loop_timer_set(i->restart, i->restart_ms);
}

struct ingest *ingest_new(struct loop *loop, const struct ingest_store *store,
                          const struct ingest_user *user, struct err *err)
{
    struct ingest *i = calloc(1, sizeof *i);
    if (!i) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the store's process");
        return NULL;
    }
    i->loop = loop;
    i->store = *store;
    i->user = *user;
    i->socket = -1;
    i->restart_ms = RESTART_MS;
    i->restart = loop_timer_new(loop, on_restart, i, err);
    i->stall = i->restart ? loop_timer_new(loop, on_stall, i, err) : NULL;
    if (i->stall && clock_wall_ms() < CLOCK_SET_MS) {
        loop_timer_set(i->restart, 0);
        return i;
    }
    if (i->stall && start_ingest(i, err) == 0)
        return i;
    ingest_free(i);
    return NULL;
}

// Bytes; -1: the process has ended.
static ssize_t send_some(struct ingest *i)
{
    ssize_t n = send(i->socket, i->out.data, i->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    buf_drop(&i->out, (size_t)n);
    return n;
}

static ssize_t forget_some(struct ingest *i)
{
    char bytes[4096];
    ssize_t n = recv(i->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    return n ? n : -1;
}

// The process stores what it has read and ends when it has read the end. It reads nothing more
// while its reports are not taken.
static void send_the_rest(struct ingest *i)
{
    int64_t until_ms = clock_mono_ms() + STOP_MS;
    for (bool shut = false;;) {
        if (!i->out.len && !shut)
            shut = shutdown(i->socket, SHUT_WR) == 0;
        int64_t left_ms = until_ms - clock_mono_ms();
        struct pollfd p = {.fd = i->socket, .events = i->out.len ? POLLIN | POLLOUT : POLLIN};
        if (left_ms <= 0 || (poll(&p, 1, (int)left_ms) < 0 && errno != EINTR))
            return;
        ssize_t sent = p.revents & POLLOUT ? send_some(i) : 0;
        ssize_t read = p.revents & ~POLLOUT ? forget_some(i) : 0;
        if (sent < 0 || read < 0)
            return;
        if (sent || read)
            until_ms = clock_mono_ms() + STOP_MS;
    }
}

void ingest_free(struct ingest *i)
{
    if (!i)
        return;
    i->stopping = true;
    if (i->socket >= 0)
        send_the_rest(i);
    forget_process(i, -1); // another collector may open the store then
    items_drop(i, &i->waiting);
    items_drop(i, &i->sent);
    loop_timer_free(i->restart);
    loop_timer_free(i->stall);
    free(i);
}

int ingest_send(struct ingest *i, const struct ingest_item *item, struct buf *body, struct err *err)
{
    struct ingest_entry *e = calloc(1, sizeof *e);
    if (!e)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a page");
    e->head = (struct ingest_head){.bytes = (uint32_t)body->len,
                                   .kind = item->kind,
                                   .skew_ms = item->skew_ms,
                                   .status = item->status,
                                   .collector = item->collector,
                                   .after = item->after,
                                   .received_ms = item->received_ms};
    snprintf(e->head.node, sizeof e->head.node, "%s", item->node ? item->node : "");
    snprintf(e->head.hash, sizeof e->head.hash, "%s", item->hash ? item->hash : "");
    snprintf(e->head.under, sizeof e->head.under, "%s", item->under ? item->under : "");
    i->backlog += body->len;
    e->body = *body;
    *body = BUF_INIT;
    items_add(&i->waiting, e);
    ingest_pump(i);
    return 0;
}

size_t ingest_backlog(const struct ingest *i)
{
    return i->backlog;
}

bool ingest_ready(const struct ingest *i)
{
    return i->ready;
}

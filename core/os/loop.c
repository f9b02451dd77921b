// SPDX-License-Identifier: Apache-2.0
// Descriptors are in one epoll set; timers in a heap by deadline, and the first one says how long
// epoll may wait. A watch that is removed while a round of events is being handed out may still
// stand later in that round, so it is only marked dead then and freed after the round.
#include "core/os/loop.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { EVENTS_A_ROUND = 64 };

struct loop {
    int epoll;
    bool stop, dispatching;
    uint64_t wakeups;
    int64_t (*prepare)(void *ctx);
    void *prepare_ctx;
    struct loop_watch *dead;
    struct loop_timer **heap; // armed ones; no deadline is before that of heap[(i - 1) / 2]
    int n_armed, n_timers, room;
};

struct loop_watch {
    struct loop *loop;
    int fd;
    bool owns_fd; // a signalfd of ours
    bool dead;
    loop_fn *fn;
    void *ctx;
    struct loop_watch *next_dead;
    // Signals only: what the user requested; fn and ctx above are the trampoline's.
    loop_fn *signal_fn;
    void *signal_ctx;
};

struct loop_timer {
    struct loop *loop;
    loop_fn *fn;
    void *ctx;
    int64_t deadline_ms;
    int at; // in the heap; -1: not armed
};

struct loop *loop_new(struct err *err)
{
    struct loop *l = calloc(1, sizeof *l);
    if (!l) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the event loop");
        return NULL;
    }
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0) {
        err_sys(err, "epoll_create1");
        free(l);
        return NULL;
    }
    return l;
}

static void free_dead(struct loop *l)
{
    while (l->dead) {
        struct loop_watch *w = l->dead;
        l->dead = w->next_dead;
        free(w);
    }
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    free_dead(l);
    free(l->heap);
    close(l->epoll);
    free(l);
}

struct loop_watch *loop_watch_fd(struct loop *l, int fd, uint32_t events, loop_fn *fn, void *ctx,
                                 struct err *err)
{
    struct loop_watch *w = calloc(1, sizeof *w);
    if (!w) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a watch");
        return NULL;
    }
    *w = (struct loop_watch){.loop = l, .fd = fd, .fn = fn, .ctx = ctx};
    struct epoll_event e = {.events = events, .data.ptr = w};
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        err_sys(err, "watching file descriptor %d", fd);
        free(w);
        return NULL;
    }
    return w;
}

void loop_watch_events(struct loop_watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    epoll_ctl(w->loop->epoll, EPOLL_CTL_MOD, w->fd, &e); // it is there, so nothing can fail
}

void loop_unwatch(struct loop_watch *w)
{
    if (!w || w->dead)
        return;
    epoll_ctl(w->loop->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    if (w->owns_fd)
        close(w->fd);
    w->dead = true;
    if (!w->loop->dispatching) {
        free(w);
        return;
    }
    w->next_dead = w->loop->dead;
    w->loop->dead = w;
}

static void heap_place(struct loop *l, struct loop_timer *t, int at)
{
    l->heap[at] = t;
    t->at = at;
}

static void heap_up(struct loop *l, struct loop_timer *t, int at)
{
    while (at > 0 && t->deadline_ms < l->heap[(at - 1) / 2]->deadline_ms) {
        heap_place(l, l->heap[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    heap_place(l, t, at);
}

static void heap_down(struct loop *l, struct loop_timer *t, int at)
{
    for (int child; (child = 2 * at + 1) < l->n_armed; at = child) {
        if (child + 1 < l->n_armed && l->heap[child + 1]->deadline_ms < l->heap[child]->deadline_ms)
            child++;
        if (t->deadline_ms <= l->heap[child]->deadline_ms)
            break;
        heap_place(l, l->heap[child], at);
    }
    heap_place(l, t, at);
}

static void disarm(struct loop_timer *t)
{
    struct loop *l = t->loop;
    int at = t->at;
    if (at < 0)
        return;
    t->at = -1;
    struct loop_timer *last = l->heap[--l->n_armed];
    if (last == t)
        return;
    heap_down(l, last, at);
    heap_up(l, last, last->at);
}

// Room for every timer that there is, so that arming one cannot fail.
static int reserve(struct loop *l, struct err *err)
{
    if (l->n_timers == l->room) {
        int room = l->room ? 2 * l->room : 32;
        struct loop_timer **heap = realloc(l->heap, (size_t)room * sizeof(struct loop_timer *));
        if (!heap)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for a timer");
        l->heap = heap;
        l->room = room;
    }
    l->n_timers++;
    return 0;
}

struct loop_timer *loop_timer_new(struct loop *l, loop_fn *fn, void *ctx, struct err *err)
{
    struct loop_timer *t = calloc(1, sizeof *t);
    if (!t) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a timer");
        return NULL;
    }
    if (reserve(l, err) < 0) {
        free(t);
        return NULL;
    }
    *t = (struct loop_timer){.loop = l, .fn = fn, .ctx = ctx, .at = -1};
    return t;
}

void loop_timer_set(struct loop_timer *t, int64_t delay_ms)
{
    disarm(t);
    if (delay_ms < 0)
        return;
    // The clock has cut off part of a millisecond, by which a delay would be too short.
    t->deadline_ms = clock_mono_ms() + delay_ms + (delay_ms > 0);
    heap_up(t->loop, t, t->loop->n_armed++);
}

void loop_timer_free(struct loop_timer *t)
{
    if (!t)
        return;
    disarm(t);
    t->loop->n_timers--;
    free(t);
}

// As many at most as are armed now: one that arms itself anew for at once does not keep the loop.
static void fire_timers(struct loop *l)
{
    if (!l->n_armed)
        return;
    int64_t now = clock_mono_ms();
    for (int left = l->n_armed; left > 0 && l->n_armed; left--) {
        struct loop_timer *t = l->heap[0];
        if (t->deadline_ms > now)
            return;
        disarm(t);
        t->fn(t->ctx, 0);
    }
}

static void signal_ready(void *ctx, uint32_t events)
{
    struct loop_watch *w = ctx;
    struct signalfd_siginfo info;
    (void)events;
    if (read(w->fd, &info, sizeof info) == sizeof info)
        w->signal_fn(w->signal_ctx, info.ssi_signo);
}

struct loop_watch *loop_watch_signal(struct loop *l, int signo, loop_fn *fn, void *ctx,
                                     struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    int e = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (e) {
        errno = e;
        err_sys(err, "blocking signal %d", signo);
        return NULL;
    }
    CLEANUP_FD int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        err_sys(err, "signalfd");
        return NULL;
    }
    struct loop_watch *w = loop_watch_fd(l, fd, EPOLLIN, signal_ready, NULL, err);
    if (!w)
        return NULL;
    w->ctx = w;
    w->owns_fd = true;
    w->signal_fn = fn;
    w->signal_ctx = ctx;
    steal_fd(&fd);
    return w;
}

void loop_set_prepare(struct loop *l, int64_t (*prepare)(void *ctx), void *ctx)
{
    l->prepare = prepare;
    l->prepare_ctx = ctx;
}

static void loop_dispatch(struct loop *l, const struct epoll_event *events, int n)
{
    l->dispatching = true;
    for (int i = 0; i < n; i++) {
        struct loop_watch *w = events[i].data.ptr;
        if (!w->dead)
            w->fn(w->ctx, events[i].events);
    }
    l->dispatching = false;
    free_dead(l);
}

static int longest_wait(struct loop *l)
{
    int64_t ms = l->prepare ? l->prepare(l->prepare_ctx) : -1;
    if (l->n_armed) {
        int64_t left = l->heap[0]->deadline_ms - clock_mono_ms();
        left = left < 0 ? 0 : left;
        ms = ms < 0 || left < ms ? left : ms;
    }
    return ms < 0 ? -1 : ms > INT_MAX ? INT_MAX : (int)ms;
}

int loop_run(struct loop *l, struct err *err)
{
    struct epoll_event events[EVENTS_A_ROUND];
    l->stop = false;
    while (!l->stop) {
        int wait = longest_wait(l);
        if (l->stop)
            break;
        int n = epoll_wait(l->epoll, events, EVENTS_A_ROUND, wait);
        l->wakeups++;
        if (n < 0 && errno != EINTR)
            return err_sys(err, "epoll_wait");
        loop_dispatch(l, events, n > 0 ? n : 0);
        fire_timers(l);
    }
    return 0;
}

void loop_stop(struct loop *l)
{
    l->stop = true;
}

uint64_t loop_wakeups(const struct loop *l)
{
    return l->wakeups;
}

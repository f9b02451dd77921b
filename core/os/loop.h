// SPDX-License-Identifier: Apache-2.0
// The one loop: epoll over file descriptors, and timers. Signals come by signalfd, children by
// pidfd. A timer is no file descriptor: five thousand clients that wait have one each. Callbacks
// run on the loop's thread and may add or remove anything, themselves included.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
struct loop_watch;
struct loop_timer;

typedef void loop_fn(void *ctx, uint32_t events); // events: EPOLL*

struct loop *loop_new(struct err *err);
void loop_free(struct loop *l); // NULL is fine; watches and timers must be gone

// The file descriptor stays the caller's. NULL + err on failure.
struct loop_watch *loop_watch_fd(struct loop *l, int fd, uint32_t events, loop_fn *fn, void *ctx,
                                 struct err *err);
// Other events of the same descriptor: it can have one watch only.
void loop_watch_events(struct loop_watch *w, uint32_t events);
void loop_unwatch(struct loop_watch *w); // NULL is fine; safe inside callbacks

struct loop_timer *loop_timer_new(struct loop *l, loop_fn *fn, void *ctx, struct err *err);
void loop_timer_set(struct loop_timer *t, int64_t delay_ms); // fires once; < 0 disarms
void loop_timer_free(struct loop_timer *t);

// Blocks the signal in this thread and delivers it as a callback (events = signal number).
struct loop_watch *loop_watch_signal(struct loop *l, int signo, loop_fn *fn, void *ctx,
                                     struct err *err);

// Called before every wait, after all callbacks of a round; returns the longest wait in ms, -1: no
// limit. For libraries that keep their own deadlines (libmicrohttpd).
void loop_set_prepare(struct loop *l, int64_t (*prepare)(void *ctx), void *ctx);

int loop_run(struct loop *l, struct err *err); // until loop_stop
void loop_stop(struct loop *l);
uint64_t loop_wakeups(const struct loop *l); // returns from epoll_wait so far

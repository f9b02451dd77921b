// SPDX-License-Identifier: Apache-2.0
// The daemon's side of the worker. The process itself: worker_process.c.
#include "http/server/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/os/child.h"

struct worker {
    struct loop *loop;
    const struct http_service *service;
    int socket, pidfd; // -1: there is no process
    pid_t pid;
    struct loop_watch *watch;
    int killed;               // pidfd of a process that was killed and has not ended; -1: none
    struct loop_watch *end;   // of it
    struct loop_timer *timer; // busy: the deadline; else the end of idling
    worker_done_fn *done;     // NULL: it is not busy
    void *ctx;
    int64_t begin_ms; // CPU time of the process when the job began
    int64_t cpu_ms;   // the same at the last deadline
    int deadlines;    // of this job that have passed
};

static int64_t cpu_ms_of(pid_t pid)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
        return 0;
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// A process that hangs uses no CPU time. One that had enough of it is not kept from working.
static bool is_kept_from_working(struct worker *w)
{
    int64_t before_ms = w->cpu_ms;
    w->cpu_ms = cpu_ms_of(w->pid);
    return ++w->deadlines < WORKER_DEADLINES && w->cpu_ms > before_ms &&
           w->cpu_ms - w->begin_ms < WORKER_CPU_MS;
}

static void reap_killed(struct worker *w)
{
    loop_unwatch(steal_ptr(&w->end));
    if (w->killed >= 0)
        child_reap(steal_fd(&w->killed));
}

static void on_killed(void *ctx, uint32_t events)
{
    (void)events;
    reap_killed(ctx);
}

// Without a watch it is reaped with the next one.
static void watch_killed(struct worker *w)
{
    struct err err;
    reap_killed(w); // the one before
    w->killed = steal_fd(&w->pidfd);
    w->end = loop_watch_fd(w->loop, w->killed, EPOLLIN, on_killed, w, &err);
}

// `wait`: until it is gone, and its locks of the database with it.
static void end_process(struct worker *w, bool wait)
{
    if (w->socket < 0)
        return;
    loop_unwatch(steal_ptr(&w->watch));
    // By pidfd: once reaped, the number may be another process's.
    syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
    watch_killed(w);
    if (wait)
        waitpid(w->pid, NULL, 0);
    fd_cleanup(&w->socket);
}

static void worker_finish(struct worker *w, const struct worker_answer *a, int fd)
{
    worker_done_fn *done = w->done;
    w->done = NULL;
    loop_timer_set(w->timer, w->socket < 0 ? -1 : WORKER_IDLE_MS);
    done(w->ctx, a, fd);
}

static void give_up(struct worker *w, const char *why)
{
    struct worker_answer a = {0};
    end_process(w, false);
    err_set(&a.err, ERR_UNAVAILABLE, "", "%s", why);
    worker_finish(w, &a, -1);
}

static void on_timer(void *ctx, uint32_t events)
{
    struct worker *w = ctx;
    (void)events;
    if (!w->done) {
        end_process(w, false);
        return;
    }
    if (is_kept_from_working(w)) {
        log_event(LOG_LVL_INFO, "worker.kept", "cpu_ms=%d text=\"others have the CPU\"",
                  (int)(w->cpu_ms - w->begin_ms));
        loop_timer_set(w->timer, WORKER_DEADLINE_MS);
        return;
    }
    log_event(LOG_LVL_WARN, "worker.deadline", "seconds=%d", WORKER_DEADLINE_MS / 1000);
    give_up(w, "preparing the response took longer than 20 s and was cancelled");
}

static void on_answer(void *ctx, uint32_t events)
{
    struct worker *w = ctx;
    struct worker_answer a;
    struct err err;
    size_t n = 0;
    int fd = -1;
    (void)events;
    int got = worker_receive(w->socket, &a, sizeof a, &n, &fd, &err);
    if (got > 0 && n == sizeof a && w->done) {
        if (fd < 0 && !a.err.code) // the kernel drops the file where no number is left for it
            err_set(&a.err, ERR_UNAVAILABLE, "",
                    "no file descriptor is left for the response; try again");
        worker_finish(w, &a, fd);
        return;
    }
    fd_cleanup(&fd);
    if (!w->done) {
        end_process(w, false);
        return;
    }
    log_event(LOG_LVL_WARN, "worker.died", "pid=%d", (int)w->pid);
    give_up(w, "the process that prepared the response was killed; try again");
}

static int watch_process(struct worker *w, int *ours, struct err *err)
{
    w->pidfd = (int)syscall(SYS_pidfd_open, w->pid, 0);
    if (w->pidfd < 0)
        err_sys(err, "pidfd_open");
    else
        w->watch = loop_watch_fd(w->loop, *ours, EPOLLIN, on_answer, w, err);
    if (w->watch) {
        w->socket = steal_fd(ours);
        return 0;
    }
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    fd_cleanup(&w->pidfd);
    return -1;
}

static int start_process(struct worker *w, struct err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "socketpair");
    CLEANUP_FD int ours = pair[0], theirs = pair[1];
    if (w->service->jobs->spawn(w->service->context, theirs, &w->pid, err) < 0)
        return -1;
    return watch_process(w, &ours, err);
}

struct worker *worker_new(struct loop *loop, const struct http_service *s, struct err *err)
{
    struct worker *w = calloc(1, sizeof *w);
    if (!w) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a worker");
        return NULL;
    }
    w->loop = loop;
    w->service = s;
    w->socket = w->pidfd = w->killed = -1;
    w->timer = loop_timer_new(loop, on_timer, w, err);
    if (w->timer)
        return w;
    free(w);
    return NULL;
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    end_process(w, true); // else the store could not close its log
    reap_killed(w);
    loop_timer_free(w->timer);
    free(w);
}

bool worker_busy(const struct worker *w)
{
    return w->done != NULL;
}

// A process that ended while it had nothing to do is noticed by the second try.
int worker_start(struct worker *w, const struct buf *question, int fd, worker_done_fn *done,
                 void *ctx, struct err *err)
{
    if (w->service->jobs->is_outdated(w->service->context))
        end_process(w, false);
    int sent = 0;
    for (int tries = 0; tries < 2 && sent == 0; tries++) {
        if (w->socket < 0 && start_process(w, err) < 0)
            return -1;
        sent = worker_send(w->socket, question->data, question->len, fd, err);
        if (sent <= 0)
            end_process(w, false);
    }
    if (sent <= 0)
        return sent < 0 ? -1 : err_set(err, ERR_UNAVAILABLE, "", "a worker ends at once");
    w->done = done;
    w->ctx = ctx;
    w->begin_ms = w->cpu_ms = cpu_ms_of(w->pid);
    w->deadlines = 0;
    loop_timer_set(w->timer, WORKER_DEADLINE_MS);
    return 0;
}

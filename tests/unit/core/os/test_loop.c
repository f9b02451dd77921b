// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tap.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/os/loop.h"

struct fixture {
    struct loop *loop;
    struct loop_watch *a, *b;
    struct loop_timer *timer;
    int calls, other;
    uint32_t last;
    int64_t fired_ms;
    int fd;
};

static void stop(void *ctx, uint32_t events)
{
    struct fixture *f = ctx;
    f->calls++;
    f->last = events;
    f->fired_ms = clock_mono_ms();
    loop_stop(f->loop);
}

static void drop_both(void *ctx, uint32_t events)
{
    struct fixture *f = ctx;
    (void)events;
    f->calls++;
    loop_unwatch(f->a);
    loop_unwatch(f->b);
    f->a = f->b = NULL;
    loop_stop(f->loop);
}

static void test_fd(void)
{
    struct err err;
    int p[2];
    struct fixture f = {.loop = loop_new(&err)};
    CHECK(pipe(p) == 0 && f.loop, "a loop and a pipe");
    struct loop_watch *w = loop_watch_fd(f.loop, p[0], EPOLLIN, stop, &f, &err);
    CHECK(write(p[1], "x", 1) == 1 && loop_run(f.loop, &err) == 0, "runs until stopped");
    CHECK(f.calls == 1 && f.last & EPOLLIN, "callback got EPOLLIN once");
    CHECK_INT(loop_wakeups(f.loop), 1, "one wake-up");
    loop_unwatch(w);
    loop_unwatch(NULL);
    CHECK(!loop_watch_fd(f.loop, -1, EPOLLIN, stop, &f, &err) && err.code == ERR_SYSTEM,
          "a bad descriptor is an error");
    close(p[0]);
    close(p[1]);
    loop_free(f.loop);
    loop_free(NULL);
}

// Two descriptors ready in one round; whichever comes first removes both.
static void test_removal(void)
{
    struct err err;
    int p[2], q[2];
    struct fixture f = {.loop = loop_new(&err)};
    CHECK(pipe(p) == 0 && pipe(q) == 0, "two pipes");
    f.a = loop_watch_fd(f.loop, p[0], EPOLLIN, drop_both, &f, &err);
    f.b = loop_watch_fd(f.loop, q[0], EPOLLIN, drop_both, &f, &err);
    CHECK(write(p[1], "x", 1) == 1 && write(q[1], "x", 1) == 1, "both ready");
    CHECK(loop_run(f.loop, &err) == 0 && f.calls == 1, "a removed watch is not called any more");
    for (int i = 0; i < 2; i++) {
        close(p[i]);
        close(q[i]);
    }
    loop_free(f.loop);
}

static void free_and_stop(void *ctx, uint32_t events)
{
    struct fixture *f = ctx;
    (void)events;
    f->calls++;
    loop_timer_free(f->timer);
    f->timer = NULL;
    loop_stop(f->loop);
}

static void count_and_disarm(void *ctx, uint32_t events)
{
    struct fixture *f = ctx;
    (void)events;
    f->other++;
}

static void test_timer(void)
{
    struct err err;
    struct fixture f = {.loop = loop_new(&err)};
    f.timer = loop_timer_new(f.loop, free_and_stop, &f, &err);
    struct loop_timer *never = loop_timer_new(f.loop, count_and_disarm, &f, &err);
    int64_t start = clock_mono_ms();
    loop_timer_set(never, 5);
    loop_timer_set(never, -1);
    loop_timer_set(f.timer, 30);
    CHECK_INT(loop_run(f.loop, &err), 0, "timer ran");
    CHECK(clock_mono_ms() - start >= 30, "not before its time");
    CHECK(f.calls == 1 && f.other == 0 && !f.timer,
          "a timer may free itself; a disarmed one rests");
    CHECK_INT(loop_wakeups(f.loop), 1, "waiting wakes nothing up");
    struct loop_timer *now = loop_timer_new(f.loop, stop, &f, &err);
    loop_timer_set(now, 0);
    CHECK(loop_run(f.loop, &err) == 0 && f.calls == 2, "0 ms fires at once");
    loop_timer_free(now);
    loop_timer_free(never);
    loop_timer_free(NULL);
    loop_free(f.loop);
}

enum { MANY = 500 };

struct many {
    struct loop *loop;
    struct one {
        struct many *all;
        struct loop_timer *timer;
        int64_t due_ms, due_at_most_ms; // the clock may tick while one is set
        int times;
    } list[MANY];
    int fired, early, left;
    int64_t last_due_ms;
};

// Some free another one, some arm another one anew, as connections that end do.
static void one_fires(void *ctx, uint32_t events)
{
    struct one *o = ctx, *other = &o->all->list[(o - o->all->list + 7) % MANY];
    const int64_t now = clock_mono_ms();
    (void)events;
    o->all->early += now < o->due_ms || o->due_at_most_ms < o->all->last_due_ms;
    o->all->last_due_ms = o->due_ms;
    o->all->fired++;
    o->all->left -= ++o->times == 1;
    if (other->timer && !other->times && o->due_ms % 3 == 0) {
        loop_timer_free(other->timer);
        other->timer = NULL;
        o->all->left--;
    }
    if (o->all->left == 0)
        loop_stop(o->all->loop);
}

static void test_many_timers(void)
{
    static struct many m;
    struct err err;
    unsigned seed = 1;
    m.loop = loop_new(&err);
    m.left = MANY;
    for (int i = 0; i < MANY; i++) {
        m.list[i].all = &m;
        m.list[i].timer = loop_timer_new(m.loop, one_fires, &m.list[i], &err);
        for (int again = 0; again < 3; again++) {
            seed = seed * 1103515245 + 12345;
            int delay = (int)(seed >> 16) % 50;
            m.list[i].due_ms = clock_mono_ms() + delay + (delay > 0);
            loop_timer_set(m.list[i].timer, delay);
            m.list[i].due_at_most_ms = clock_mono_ms() + delay + (delay > 0);
        }
    }
    CHECK(loop_run(m.loop, &err) == 0 && m.left == 0, "all fire or are freed");
    int twice = 0, freed = 0;
    for (int i = 0; i < MANY; i++) {
        twice += m.list[i].times > 1;
        freed += !m.list[i].timer;
        loop_timer_free(m.list[i].timer);
    }
    CHECK(m.fired + freed == MANY && freed > 0 && twice == 0, "each once, %d freed before", freed);
    CHECK_INT(m.early, 0, "none before its time, and in order");
    loop_free(m.loop);
}

static void again_at_once(void *ctx, uint32_t events)
{
    struct fixture *f = ctx;
    (void)events;
    if (f->other++ < 1000)
        loop_timer_set(f->timer, 0);
}

// A timer that arms itself for at once again and again lets descriptors have their turn.
static void test_greedy_timer(void)
{
    struct err err;
    int p[2];
    struct fixture f = {.loop = loop_new(&err)};
    f.timer = loop_timer_new(f.loop, again_at_once, &f, &err);
    loop_timer_set(f.timer, 0);
    CHECK(pipe(p) == 0 && write(p[1], "x", 1) == 1, "a pipe");
    struct loop_watch *w = loop_watch_fd(f.loop, p[0], EPOLLIN, stop, &f, &err);
    CHECK(loop_run(f.loop, &err) == 0 && f.calls == 1 && f.other < 1000, "the pipe has its turn");
    loop_unwatch(w);
    loop_timer_free(f.timer);
    close(p[0]);
    close(p[1]);
    loop_free(f.loop);
}

static void test_signal_and_child(void)
{
    struct err err;
    struct fixture f = {.loop = loop_new(&err)};
    struct loop_watch *w = loop_watch_signal(f.loop, SIGUSR1, stop, &f, &err);
    CHECK(w && kill(getpid(), SIGUSR1) == 0 && loop_run(f.loop, &err) == 0, "signal delivered");
    CHECK(f.last == SIGUSR1, "events is the signal's number");
    loop_unwatch(w);
    fflush(stdout); // the child must not write what is still ours to write
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    w = loop_watch_fd(f.loop, pidfd, EPOLLIN, stop, &f, &err);
    CHECK(w && loop_run(f.loop, &err) == 0 && f.calls == 2, "the end of a child by pidfd");
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7, "child reaped");
    loop_unwatch(w);
    close(pidfd);
    loop_free(f.loop);
}

static int64_t prepare(void *ctx)
{
    struct fixture *f = ctx;
    if (f->other++ > 0)
        loop_stop(f->loop);
    return 20;
}

static void test_prepare(void)
{
    struct err err;
    struct fixture f = {.loop = loop_new(&err)};
    loop_set_prepare(f.loop, prepare, &f);
    int64_t start = clock_mono_ms();
    CHECK(loop_run(f.loop, &err) == 0 && f.other == 2, "prepare before each wait");
    CHECK(clock_mono_ms() - start >= 19 && loop_wakeups(f.loop) == 1, "its limit bounds the wait");
    loop_free(f.loop);
}

// Without a descriptor to be had, each constructor refuses with the call that failed, and keeps
// none.
static void test_no_descriptors(void)
{
    struct err err = {0};
    struct fixture f = {.loop = loop_new(&err)};
    struct rlimit was, none;
    getrlimit(RLIMIT_NOFILE, &was);
    none = (struct rlimit){3, was.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    CHECK(!loop_new(&err) && err.code == ERR_SYSTEM && strstr(err.text, "epoll_create1"), "%s",
          err.text);
    CHECK(!loop_watch_signal(f.loop, SIGUSR2, stop, &f, &err) && strstr(err.text, "signalfd"), "%s",
          err.text);
    CHECK(!loop_watch_signal(f.loop, 9999, stop, &f, &err), "there is no such signal: %s",
          err.text);
    f.timer = loop_timer_new(f.loop, stop, &f, &err);
    CHECK(f.timer, "a timer needs none");
    loop_timer_set(f.timer, 0);
    CHECK(loop_run(f.loop, &err) == 0 && f.calls == 1, "and it goes on");
    setrlimit(RLIMIT_NOFILE, &was);
    loop_timer_free(f.timer);
    loop_free(f.loop);
}

int main(void)
{
    test_fd();
    test_removal();
    test_timer();
    test_many_timers();
    test_greedy_timer();
    test_signal_and_child();
    test_prepare();
    test_no_descriptors();
    return tap_done();
}

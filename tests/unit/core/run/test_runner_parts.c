// SPDX-License-Identifier: Apache-2.0
// Parts of the runner that have their state for themselves: who is told of runs, and who waits.
#include "tests/unit/tap.h"

#include "base/clock.h"
#include "core/run/events.h"
#include "core/run/waits.h"

static struct run_events events;

struct reader {
    struct runner_watch *watch, *other; // `other` is removed by the first event
    int told;
    struct run_event last;
};

static void on_event(void *ctx, const struct run_event *e)
{
    struct reader *r = ctx;
    r->told++;
    r->last = *e;
    runner_watch_remove(r->other);
    r->other = NULL;
}

static struct runner_watch *watch(struct reader *r, int64_t run_id)
{
    struct err err;
    *r = (struct reader){0};
    return r->watch = run_events_watch(&events, run_id, on_event, r, &err);
}

static void test_who_is_told(void)
{
    struct reader one, any;
    CHECK(watch(&one, 7) && watch(&any, RUNNER_ANY_RUN), "two watches");
    run_events_send(&events, 7, EVENT_STATE, false);
    run_events_send(&events, 8, EVENT_PROGRESS, false);
    run_events_send(&events, 7, EVENT_STATE, true);
    CHECK(one.told == 2 && one.last.run_id == 7 && one.last.event_id == 2 && one.last.final,
          "events of one run, numbered from 1");
    CHECK(any.told == 3 && run_events_last(&events, 8) == 1 && run_events_last(&events, 9) == 0,
          "events of all runs, each with numbers of its own");
    runner_watch_remove(one.watch);
    run_events_send(&events, 7, EVENT_STATE, true);
    CHECK(one.told == 2 && any.told == 4, "not told after the watch is removed");
    run_events_fini(&events);
    CHECK(LIST_EMPTY(&events.watches), "no watch is left");
}

// Newer watches are told first: each removes one, which is before it, behind it, or itself.
static void test_removed_while_told(void)
{
    struct reader r[3];
    for (int who = 0; who < 3; who++) {
        for (int i = 0; i < 3; i++)
            watch(&r[i], 7);
        r[1].other = r[who].watch;
        run_events_send(&events, 7, EVENT_STATE, false);
        CHECK(r[1].told == 1 && r[2].told == 1 && r[0].told == (who != 0),
              "%d is removed while events are handed out", who);
        run_events_send(&events, 7, EVENT_STATE, false);
        CHECK(r[0].told == (who ? 2 : 0) && r[who].told == (who != 0),
              "%d is not told again, the others are", who);
        run_events_fini(&events);
    }
}

static void test_old_runs(void)
{
    run_events_send(&events, 1000, EVENT_STATE, true);
    for (int i = 1; i < EVENTS_KEPT; i++)
        run_events_send(&events, 1000 + i, EVENT_STATE, true);
    CHECK_INT(run_events_last(&events, 1000), 1, "as many runs are known as are kept");
    run_events_send(&events, 2000, EVENT_STATE, true);
    CHECK(run_events_last(&events, 1000) == 0 && run_events_last(&events, 1001) == 1,
          "one more, and the oldest is forgotten");
}

static struct run run_of(int64_t id, int64_t age_ms, int64_t queue_s)
{
    struct run run = {.id = id, .created_ms = clock_wall_ms() - age_ms};
    run.spec.queue_s = queue_s;
    return run;
}

static void test_time_left(void)
{
    static struct waits w;
    const struct blocker b = {.kind = ADMIT_BUSY_CPUS, .text = "CPU 1 is busy"};
    struct run fresh = run_of(1, 0, 60), old = run_of(2, 90000, 60), ahead = run_of(3, -90000, 60);
    int64_t left;
    CHECK(waits_note(&w, &fresh, b.kind, b.text, &left) == 1 && left > 50000 && left <= 60000,
          "%d s are left", (int)(left / 1000));
    CHECK(waits_note(&w, &old, b.kind, b.text, &left) == 1 && left <= 0,
          "none of its time is left");
    CHECK(waits_note(&w, &ahead, b.kind, b.text, &left) == 1 && left > 50000 && left <= 60000,
          "no more than it asked for, though the wall went back");
}

// The clock is set by 90 s between the request and the first look at the node.
static void test_clock_of_a_wait(void)
{
    static struct waits w;
    const struct blocker b = {.kind = ADMIT_BUSY_CPUS, .text = "CPU 1 is busy"};
    struct run run = run_of(4, 90000, 60);
    int64_t left;
    waits_begin(&w, 3, 0);
    CHECK_INT(w.n, 0, "a run that does not want to wait");
    waits_begin(&w, 4, 60);
    waits_describe(&w, &run);
    CHECK(!*run.waiting && !run.wait_until_ms, "nothing is in its way so far");
    CHECK(waits_note(&w, &run, b.kind, b.text, &left) == 1 && left > 50000 && left <= 60000,
          "%d s are left", (int)(left / 1000));
    CHECK_INT(w.n, 1, "it waits once");
}

static void test_what_is_told(void)
{
    static struct waits w;
    struct blocker b = {.kind = ADMIT_BUSY_CPUS, .text = "CPU 1 is busy"};
    struct run run = run_of(5, 0, 60), other = run_of(6, 0, 60);
    int64_t left;
    waits_note(&w, &run, b.kind, b.text, &left);
    snprintf(b.text, sizeof b.text, "CPU 2 is busy");
    CHECK_INT(waits_note(&w, &run, b.kind, b.text, &left), 0, "the same kind is no news");
    waits_describe(&w, &run);
    waits_describe(&w, &other);
    CHECK_STR(run.waiting, "CPU 2 is busy", "but told as it is now");
    CHECK(run.wait_until_ms > clock_wall_ms() && !*other.waiting && !other.wait_until_ms,
          "until when; nothing of a run that does not wait");
    b.kind = ADMIT_LOAD;
    CHECK_INT(waits_note(&w, &run, b.kind, b.text, &left), 1, "another kind is");
    waits_forget(&w, 6);
    waits_forget(&w, 5);
    CHECK_INT(w.n, 0, "none waits");
}

static void test_full(void)
{
    static struct waits w;
    const struct blocker b = {.kind = ADMIT_BUSY_CPUS};
    int64_t left;
    struct run run;
    for (int i = 0; i < RUNNER_QUEUE_MAX; i++) {
        run = run_of(10 + i, 0, 60);
        waits_note(&w, &run, b.kind, b.text, &left);
    }
    CHECK_INT(waits_note(&w, &run, b.kind, b.text, &left), 0, "the last that has room");
    run = run_of(9, 0, 60);
    CHECK_INT(waits_note(&w, &run, b.kind, b.text, &left), -1, "one more has none");
    waits_forget(&w, 10);
    CHECK_INT(waits_note(&w, &run, b.kind, b.text, &left), 1, "until another is gone");
    run = run_of(10 + RUNNER_QUEUE_MAX - 1, 0, 60);
    CHECK_INT(waits_note(&w, &run, b.kind, b.text, &left), 0, "which left the others there");
}

int main(void)
{
    test_who_is_told();
    test_removed_while_told();
    test_old_runs();
    test_time_left();
    test_clock_of_a_wait();
    test_what_is_told();
    test_full();
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// Retention by age while the wall clock does what it likes. Each case is a script of looks, runs
// and passes over a fresh history; the clocks are the test's.
#include "core/store/retention.h"
#include "core/store/store.h"
#include "tests/unit/tap.h"

#include "base/cleanup.h"
#include "core/store/age.h"
#include "core/store/db.h"
#include "tests/unit/core/dir.h"

#define DAY ((int64_t)AGE_DAY_MS)
#define YEAR (365 * DAY)
#define NOW ((int64_t)1800000000000) // January 2027

enum { KEEP_DAYS = 30 };

static struct age_clock clock_now;
static struct store *s;

static int64_t ask(const char *sql)
{
    struct err err;
    int64_t n = -1;
    return sq_number(s->db, sql, &n, &err) < 0 ? -1 : n;
}

static int64_t runs(void)
{
    return ask("SELECT count(*) FROM run");
}

static int64_t look(bool save)
{
    struct err err = {0};
    int64_t step_ms = 0;
    if (store_age_look(s, &clock_now, save, &step_ms, &err) < 0)
        CHECK(false, "a look: %s", err.text);
    return step_ms;
}

// A run that is over now; what the daemon does meanwhile: a look when it is queued.
static void run(void)
{
    struct err err = {0};
    struct spec spec;
    int64_t id = 0;
    bool again;
    char sql[120];
    const struct run_result r = {.state = RUN_CANCELED, .error = ERR_CONFLICT, .log = "text"};
    spec_init(&spec, BENCHMARK_LATENCY);
    if (store_run_insert(s, &spec, "n", NULL, &id, &again, &err) < 0 ||
        store_run_finished(s, id, &r, &err) < 0)
        abort();
    snprintf(sql, sizeof sql,
             "UPDATE run SET created_ms = %lld, finished_ms = %lld WHERE id = %lld",
             (long long)clock_now.wall_ms, (long long)clock_now.wall_ms, (long long)id);
    sq_exec(s->db, sql, &err);
    look(false);
}

// Returns how many runs went.
static int64_t sweep_of(int64_t keep_days, struct store_sweep *w)
{
    const struct store_limits limits = {.keep_days = keep_days};
    struct err err = {0};
    look(true);
    *w = (struct store_sweep){0};
    while (store_sweep_step(s, &limits, clock_now.wall_ms, 1000, w, &err) > 0)
        ;
    return w->deleted;
}

static int64_t sweep(void)
{
    struct store_sweep w;
    return sweep_of(KEEP_DAYS, &w);
}

static void pass_time(int64_t ms)
{
    clock_now.wall_ms += ms;
    clock_now.up_ms += ms;
}

static void reboot(int64_t wall_ms)
{
    clock_now = (struct age_clock){.wall_ms = wall_ms, .up_ms = 60000, .boot = clock_now.boot + 1};
}

static void eight_runs(void)
{
    for (int i = 0; i < 8; i++) {
        run();
        pass_time(60000);
    }
}

// The clock is wrong by so much for one run, which ends with a pass.
static void wrong_once(int64_t by_ms, const char *what)
{
    eight_runs();
    clock_now.wall_ms += by_ms;
    run();
    CHECK_INT(sweep(), 0, "%s: nothing goes while the clock is wrong", what);
    clock_now.wall_ms -= by_ms;
    run();
    CHECK(sweep() == 0 && runs() == 10, "%s: nor when it is right again", what);
    pass_time(KEEP_DAYS * DAY - DAY);
    CHECK_INT(sweep(), 0, "%s: nor before their time", what);
    pass_time(2 * DAY);
    CHECK_INT(sweep(), 9, "%s: all but the newest go in their time", what);
}

static void test_ahead(void)
{
    wrong_once(40 * DAY, "40 days ahead");
}

static void test_far_ahead(void)
{
    wrong_once(9 * YEAR, "2036");
}

static void test_2153(void)
{
    wrong_once(126 * YEAR, "2153");
}

static void test_behind(void)
{
    wrong_once(-40 * DAY, "40 days behind");
}

static void test_1971(void)
{
    wrong_once(-56 * YEAR, "1971");
}

static void test_wrong_at_start(void)
{
    eight_runs();
    look(true);
    reboot(NOW + 40 * DAY);
    CHECK_INT(sweep(), 0, "a start before the clock is set: nothing goes");
    run();
    clock_now.wall_ms = NOW + 3600000;
    CHECK(look(false) < -39 * DAY, "the clock is set: a step");
    pass_time(2 * DAY);
    CHECK(sweep() == 0 && runs() == 9, "nor later");
}

static void test_dead_battery(void)
{
    eight_runs();
    look(true);
    reboot(YEAR); // 1971
    for (int i = 0; i < 3; i++)
        run();
    CHECK_INT(sweep(), 0, "after a reboot in 1971 nothing goes");
    clock_now.wall_ms = NOW + DAY;
    run();
    CHECK(sweep() == 0 && runs() == 12, "runs of 1971 are not old when the clock is right");
    pass_time((KEEP_DAYS + 1) * DAY);
    CHECK_INT(sweep(), 11, "in their time they go");
}

static void test_first_clock_wrong(void)
{
    clock_now.wall_ms = YEAR;
    eight_runs();
    clock_now.wall_ms = NOW;
    run();
    CHECK(sweep() == 0 && runs() == 9, "a history that began in 1971");
}

static void test_slow_then_right(void)
{
    eight_runs(); // all of them 40 days behind
    clock_now.wall_ms += 40 * DAY;
    run();
    pass_time(2 * DAY);
    CHECK_INT(sweep(), 0, "a clock that was slow from the beginning makes no run older");
}

// Each step is too small to be one.
static void test_creeping(void)
{
    eight_runs();
    for (int i = 0; i < 40 * 48; i++) {
        clock_now.wall_ms += DAY / 48;
        clock_now.up_ms += 1000;
        look(i % 16 == 0);
    }
    CHECK(sweep() == 0 && runs() == 8, "a clock that creeps ahead");
}

static void test_off(void)
{
    eight_runs();
    pass_time(20 * DAY);
    look(true);
    reboot(clock_now.wall_ms + 20 * DAY);
    CHECK_INT(sweep(), 0, "runs do not age while the node is off");
    pass_time(11 * DAY);
    CHECK_INT(sweep(), 7, "but in the time before and after");
    reboot(clock_now.wall_ms + 600000);
    CHECK_INT(look(true), 0, "a reboot of ten minutes is no step");
}

// Stored by a version that knew nothing of this.
static void test_no_state(void)
{
    struct err err;
    eight_runs();
    sq_exec(s->db, "DELETE FROM counter WHERE name LIKE 'age.%'", &err);
    clock_now.wall_ms += 40 * DAY;
    CHECK_INT(sweep(), 0, "at the first look no time has passed since the newest run");
    clock_now.wall_ms -= 40 * DAY;
    CHECK_INT(sweep(), 0, "nor at the next");
    sq_exec(s->db, "UPDATE run SET created_ms = created_ms - 40 * 86400000 WHERE id < 5", &err);
    CHECK_INT(sweep(), 4, "what was older then is old");
}

static void test_future_behind_it(void)
{
    struct err err;
    eight_runs();
    sq_exec(s->db,
            "UPDATE run SET created_ms = 5775000000000 WHERE id IN (2, 3);"
            "UPDATE run SET created_ms = 31536000000 WHERE id = 5",
            &err);
    pass_time((KEEP_DAYS + 1) * DAY);
    run();
    CHECK_INT(sweep(), 8, "runs of 2153 and 1971 stop nothing behind them");
}

static void test_bound(void)
{
    struct store_sweep w;
    for (int i = 0; i < 250; i++)
        run();
    pass_time(400 * DAY);
    CHECK(sweep_of(0, &w) == 0 && !w.held, "without a limit nothing goes");
    CHECK(sweep_of(KEEP_DAYS, &w) == 100 && w.held, "with a new one 100 go");
    CHECK(sweep_of(KEEP_DAYS, &w) == 0 && w.held, "and no more that day");
    CHECK(sweep_of(KEEP_DAYS + 1, &w) == 0 && w.held, "by another limit neither");
    clock_now.wall_ms += 2 * DAY;
    CHECK(sweep_of(KEEP_DAYS, &w) == 0 && w.held, "nor by the wall clock");
    reboot(clock_now.wall_ms);
    CHECK(sweep_of(KEEP_DAYS, &w) == 0 && w.held, "nor after a reboot");
    pass_time(DAY - 120000);
    CHECK(sweep_of(KEEP_DAYS, &w) == 0 && w.held, "a day is a day");
    pass_time(2 * 120000);
    CHECK(sweep_of(KEEP_DAYS, &w) == 149 && !w.held, "after a steady day the rest goes");
    CHECK(w.aged == 149 && runs() == 1, "by age, all but the newest");
}

static void test_bound_and_other_limits(void)
{
    struct store_sweep w = {0};
    struct err err = {0};
    const struct store_limits limits = {.keep_runs = 20, .keep_days = KEEP_DAYS};
    for (int i = 0; i < 150; i++)
        run();
    look(true);
    while (store_sweep_step(s, &limits, clock_now.wall_ms, 1000, &w, &err) > 0)
        ;
    CHECK(w.deleted == 130 && w.aged == 0 && !w.held, "keep_runs needs no clock and has no bound");
}

static void test_pinned(void)
{
    struct err err;
    eight_runs();
    store_run_label(s, 1, "kept", &err);
    sq_exec(s->db,
            "INSERT INTO baseline (name,created_ms) VALUES ('b',1);"
            "INSERT INTO baseline_run VALUES ('b',2)",
            &err);
    pass_time((KEEP_DAYS + 1) * DAY);
    CHECK(sweep() == 5 && ask("SELECT count(*) FROM run WHERE id IN (1, 2, 8)") == 3,
          "a label, a baseline and the newest stay");
}

static void test_gaps_go(void)
{
    eight_runs();
    for (int i = 0; i < 50; i++) {
        clock_now.wall_ms += i % 2 ? 2 * DAY : -2 * DAY;
        look(false);
    }
    CHECK(ask("SELECT count(*) FROM counter WHERE name LIKE 'age.gap.%'") == 1,
          "steps between the same runs are one");
    run();
    clock_now.wall_ms += 2 * DAY;
    look(false);
    pass_time(60 * DAY);
    run();
    CHECK_INT(sweep(), 9, "old ones go");
    look(true);
    CHECK(ask("SELECT count(*) FROM counter WHERE name LIKE 'age.gap.%'") == 0,
          "and so do the steps that they were there at");
}

static void test_real_clock(void)
{
    struct age_clock a, b;
    CHECK(age_clock_read(&a) == 0 && age_clock_read(&b) == 0 && a.boot == b.boot && a.boot > 0 &&
              b.up_ms >= a.up_ms && a.up_ms > 0 && a.wall_ms > NOW - 20 * YEAR,
          "the clocks of this machine");
}

static void with_store(void (*test)(void))
{
    char dir[64];
    struct err err = {0};
    dir_make(dir);
    s = store_open(dir, &err);
    if (!s) {
        CHECK(false, "opened: %s", err.text);
        return;
    }
    clock_now = (struct age_clock){.wall_ms = NOW, .up_ms = 5 * DAY, .boot = 7};
    look(true);
    test();
    store_close(s);
    dir_remove(dir);
}

int main(void)
{
    static void (*const tests[])(void) = {test_ahead,
                                          test_far_ahead,
                                          test_2153,
                                          test_behind,
                                          test_1971,
                                          test_off,
                                          test_no_state,
                                          test_wrong_at_start,
                                          test_dead_battery,
                                          test_bound,
                                          test_pinned,
                                          test_first_clock_wrong,
                                          test_creeping,
                                          test_gaps_go,
                                          test_real_clock,
                                          test_slow_then_right,
                                          test_future_behind_it,
                                          test_bound_and_other_limits};
    for (size_t i = 0; i < COUNT_OF(tests); i++)
        with_store(tests[i]);
    return tap_done();
}

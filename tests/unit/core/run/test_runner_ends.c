// SPDX-License-Identifier: Apache-2.0
// Runs that are cancelled, flood their log, or lose their supervisor.
#include "tests/unit/core/run/bed.h"

static void test_cancel(struct bed *b, const char *behaviour)
{
    struct err err;
    struct run r = {0};
    b->cancel_at_progress = true;
    run_once(b, behaviour, &r);
    b->cancel_at_progress = false;
    CHECK(r.state == RUN_CANCELED, "%s: %s", behaviour, run_state_names[r.state]);
    printf("# %s: canceled in %d ms\n", behaviour, (int)(b->final_ms - b->canceled_ms));
    CHECK(runner_cancel(b->runner, r.id, &err) < 0 && err.code == ERR_CONFLICT, "only once");
    run_fini(&r);
    check_nothing_left(behaviour);
}

static void test_cancel_hang(struct bed *b)
{
    test_cancel(b, "hang");
    test_cancel(b, "hang-hard");
}

static void test_floods(struct bed *b)
{
    struct err err;
    struct run r = {0};
    char *log;
    struct spec s;
    int64_t id;
    bool again;
    b->cancel_at_progress = true;
    run_once(b, "flood-channel", &r);
    b->cancel_at_progress = false;
    CHECK(r.state == RUN_CANCELED, "a flood of progress can be canceled");
    run_fini(&r);
    behave("flood-stdout");
    quick_spec(&s);
    s.timeout_s = 3;
    CHECK_INT(runner_submit(b->runner, &s, NULL, NULL, &id, &again, &err), 0, "flood on stdout");
    b->wait_for = id;
    b->got_final = false;
    wait_final(b);
    CHECK(runner_run_get(b->runner, id, &r, &err) == 0 && r.state == RUN_FAILED &&
              r.error == ERR_TIMEOUT,
          "ends at its deadline: %s", r.error_text);
    CHECK(runner_log_get(b->runner, id, &log, &err) == 0 && strlen(log) <= SUPERVISOR_LOG_MAX &&
              strlen(log) > SUPERVISOR_LOG_MAX / 2 && strstr(log, "the rest was cut"),
          "its log is cut");
    free(log);
    run_fini(&r);
    check_nothing_left("floods");
}

static void test_supervisor_killed(struct bed *b)
{
    static const char *const names[] = {"hang", "hang-hard", "slow"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct run r = {0};
        b->kill_at_progress = true;
        run_once(b, names[i], &r);
        b->kill_at_progress = false;
        CHECK(r.state == RUN_INTERRUPTED && strstr(r.error_text, "supervisor exited without"),
              "%s, supervisor killed: %s", names[i], r.error_text);
        run_fini(&r);
        check_nothing_left(names[i]);
    }
}

// A supervisor whose report cannot be read must not wait for the daemon as that waits for it.
static void test_report_unread(struct bed *b)
{
    struct run r = {0};
    deaf = 1;
    run_once(b, "good", &r);
    CHECK(deaf == 0 && b->got_final && r.state == RUN_INTERRUPTED &&
              strstr(r.error_text, "cannot hear how the run ended"),
          "report unread: %s %s", run_state_names[r.state], r.error_text);
    run_fini(&r);
    check_nothing_left("report unread");
}

int main(int argc, char **argv)
{
    static void (*const tests[])(struct bed * b) = {
        test_cancel_hang, test_floods, test_supervisor_killed, test_report_unread, NULL};
    return run_tests(argc, argv, tests);
}

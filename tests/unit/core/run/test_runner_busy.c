// SPDX-License-Identifier: Apache-2.0
// Runs that wait for a busy node, overtake, or disturb others.
#include "tests/unit/core/run/bed.h"

static bool wait_for_node(struct bed *b, struct spec *s, int refusals)
{
    struct err err = {0};
    bool again;
    node.refusals = refusals;
    int rc = runner_submit(b->runner, s, NULL, NULL, &b->wait_for, &again, &err);
    b->last_event = rc < 0 ? 0 : runner_event_id(b->runner, b->wait_for);
    b->got_final = false;
    return rc == 0;
}

static void test_busy_node(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    int64_t id;
    bool again;
    behave("good");
    quick_spec(&s);
    node.refusals = 1;
    CHECK(runner_submit(b->runner, &s, NULL, NULL, &id, &again, &err) < 0 && err.code == ERR_BUSY &&
              runner_refusal(b->runner)->n == 1,
          "a node that is not free refuses: %s", err.text);
    struct run r = {0};
    s.queue_s = 60;
    CHECK(wait_for_node(b, &s, 3), "but a run may wait");
    b->stop_at_state = true;
    wait_final(b);
    b->stop_at_state = false;
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_QUEUED &&
              !strcmp(r.waiting, "CPU 0 is busy") && r.wait_until_ms > clock_wall_ms() + 50000,
          "it is queued and says why: %s", r.waiting);
    run_fini(&r);
    wait_final(b);
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_SUCCEEDED &&
              !*r.waiting,
          "and starts when the node is free");
    run_fini(&r);
    s.queue_s = 1;
    CHECK(wait_for_node(b, &s, 1 << 20), "one waits for a second");
    int64_t begin_ms = clock_mono_ms();
    wait_final(b);
    int64_t took_ms = clock_mono_ms() - begin_ms;
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_CANCELED &&
              r.error == ERR_TIMEOUT && strstr(r.error_text, "busy for 1 s: CPU 0 is busy") &&
              took_ms >= 900,
          "it is canceled then: %s", r.error_text);
    run_fini(&r);
    node.refusals = 0;
}

static void test_overtaking(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    struct run r = {0};
    int64_t patient;
    behave("good");
    quick_spec(&s);
    s.queue_s = 600;
    CHECK(wait_for_node(b, &s, 1 << 20), "one waits");
    patient = b->wait_for;
    s.queue_s = 0;
    s.force = true;
    CHECK(wait_for_node(b, &s, 1 << 20), "one is forced");
    wait_final(b);
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_SUCCEEDED &&
              strstr(r.conditions_json, "busy_cpus was overruled: CPU 0 is busy") &&
              strstr(r.conditions_json, "while it ran, the hypervisor took 7 %"),
          "it does not wait for the first, and keeps what was overruled: %s", r.conditions_json);
    run_fini(&r);
    CHECK(runner_run_get(b->runner, patient, &r, &err) == 0 && r.state == RUN_QUEUED &&
              runner_cancel(b->runner, patient, &err) == 0,
          "which waits on");
    run_fini(&r);
    CHECK(monitor.begun == monitor.ended, "each run that began ended");
    node.refusals = 0;
}

static void test_disturbing(struct bed *b)
{
    struct err err = {0};
    struct spec s;
    struct run r = {0};
    behave("hang");
    quick_spec(&s);
    node.disturbs = true;
    CHECK(wait_for_node(b, &s, 0), "a run that makes others wait");
    wait_final(b);
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_FAILED &&
              r.error == ERR_BUSY &&
              strstr(r.error_text, "disturbed others: user.slice waited (limit 25 %)"),
          "is stopped: %s", r.error_text);
    run_fini(&r);
    check_nothing_left("after a run that was stopped");
    node.when_disturbing = POLICY_WARN;
    node.when_seen = b->loop;
    CHECK(wait_for_node(b, &s, 0), "where it is only noted");
    wait_final(b);
    node.when_seen = NULL;
    CHECK(!b->got_final && runner_cancel(b->runner, b->wait_for, &err) == 0, "it is still running");
    wait_final(b);
    CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_CANCELED &&
              strstr(r.conditions_json, "\"disturbing\",\"severity\":\"notice\",\"rank\":null,"
                                        "\"text\":\"user.slice waited"),
          "and keeps it: %s", r.conditions_json);
    run_fini(&r);
    node.when_disturbing = POLICY_REFUSE;
    node.disturbs = false;
}

int main(int argc, char **argv)
{
    static void (*const tests[])(struct bed * b) = {test_busy_node, test_overtaking,
                                                    test_disturbing, NULL};
    return run_tests(argc, argv, tests);
}

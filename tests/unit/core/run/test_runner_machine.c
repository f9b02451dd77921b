// SPDX-License-Identifier: Apache-2.0
// CPUs and memory that go while a run measures on them.
#include "tests/unit/core/run/bed.h"

static void begin_and_change(struct bed *b, const char *behaviour, enum change what)
{
    struct err err;
    behave(behaviour);
    CHECK(submit(b) > 0, "a run");
    b->stop_at_state = true;
    loop_run(b->loop, &err);
    b->stop_at_state = false;
    change = what;
}

// CPUs and memory that go while a run measures on them.
static void test_machine_changes(struct bed *b)
{
    static const struct {
        enum change change;
        const char *behaviour, *member, *says;
    } cases[] = {
        // While it measures: it is stopped, long before its time is over.
        {CPU_GONE, "hang", "cpus", "CPU 0 was taken out of the cpuset of the daemon during"},
        {MEMORY_GONE, "hang", "numa", "the memory of node 0 went off-line during"},
        // Just before its end: what it found does not count.
        {MEMORY_GONE, "good", "numa", "the memory of node 0 went off-line during"},
    };
    struct err err = {0};
    struct run r = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_and_change(b, cases[i].behaviour, cases[i].change);
        wait_final(b);
        CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_FAILED &&
                  r.error == ERR_UNAVAILABLE && !strcmp(r.error_member, cases[i].member) &&
                  strstr(r.error_text, cases[i].says),
              "fails and says why: %s", r.error_text);
        CLEANUP_MEM char *xml = NULL;
        CHECK(store_topology_xml(b->store, b->wait_for, &xml, &err) == 0 &&
                  strcmp(xml, "<then/>") == 0,
              "what it was planned on is kept");
        run_fini(&r);
        check_nothing_left("after a run that lost its place");
        change = NOTHING;
    }
}

// What touches a run less than that is noted with it.
static void test_machine_notes(struct bed *b)
{
    static const struct {
        enum change change;
        const char *says;
    } cases[] = {
        {MEMORY_SHRUNK, "part of the memory of node 0 was taken away"},
        {CANNOT_READ, "whether CPUs or memory changed during the run is not known: no /sys"},
    };
    struct err err = {0};
    struct run r = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_and_change(b, "good", cases[i].change);
        wait_final(b);
        CHECK(runner_run_get(b->runner, b->wait_for, &r, &err) == 0 && r.state == RUN_SUCCEEDED &&
                  strstr(r.conditions_json, cases[i].says),
              "noted: %s", r.conditions_json);
        run_fini(&r);
        change = NOTHING;
    }
    change = CANNOT_READ;
    struct spec s;
    int64_t id;
    bool again;
    quick_spec(&s);
    CHECK(runner_submit(b->runner, &s, NULL, NULL, &id, &again, &err) < 0 && err.code == ERR_SYSTEM,
          "nothing is planned on a machine that cannot be read: %s", err.text);
    change = NOTHING;
    CHECK_INT(runner_look_at_machine(b->runner, &err), 0, "it is as it was");
}

int main(int argc, char **argv)
{
    static void (*const tests[])(struct bed * b) = {test_machine_changes, test_machine_notes, NULL};
    return run_tests(argc, argv, tests);
}

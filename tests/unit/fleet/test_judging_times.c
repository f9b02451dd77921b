// SPDX-License-Identifier: Apache-2.0
// When the fleet is judged: by the clock alone.
#include "fleet/collect/judging_times.h"

#include "tests/unit/tap.h"

enum { S = 1000, HOUR = 3600 * S, DAY = 24 * HOUR, BEGIN = 5 * HOUR };

static void test_old(void)
{
    struct judging_times t = {0};
    CHECK(judging_is_old(&t, false, BEGIN) && judging_is_old(&t, true, BEGIN), "there is none yet");
    t = (struct judging_times){.started_ms = BEGIN, .ended_ms = BEGIN + 40 * S};
    CHECK(!judging_is_old(&t, false, BEGIN + HOUR - 1), "not within the hour");
    CHECK(judging_is_old(&t, false, BEGIN + HOUR), "after an hour from its start");
    CHECK(judging_is_old(&t, true, BEGIN + 41 * S), "it was made while this collector wrote");
    t.stood_by = true;
    CHECK(!judging_is_old(&t, true, BEGIN + 60 * S - 1), "on standby not within a minute");
    CHECK(judging_is_old(&t, true, BEGIN + 60 * S), "on standby each minute");
    CHECK(judging_is_old(&t, false, BEGIN + 41 * S), "a collector that takes over judges at once");
}

static void test_rounds(void)
{
    struct judging_times t = {0};
    CHECK(judging_looks(&t, false, false, 30 * S, BEGIN), "the first look is a round");
    CHECK_INT(t.round_ms, BEGIN + 30 * S, "the next one is after a sweep");
    t.started_ms = t.ended_ms = BEGIN;
    CHECK(!judging_looks(&t, true, false, 30 * S, BEGIN + 29 * S), "not before");
    CHECK(judging_looks(&t, true, false, 30 * S, BEGIN + 30 * S), "then");
    CHECK_INT(t.round_ms, BEGIN + 60 * S, "and so on");
}

static void test_sweeps_of_a_day(void)
{
    struct judging_times t = {.started_ms = BEGIN, .ended_ms = BEGIN, .round_ms = BEGIN + DAY};
    CHECK(!judging_looks(&t, true, false, DAY, BEGIN + HOUR - S), "nothing within the hour");
    CHECK(!judging_looks(&t, false, false, DAY, BEGIN + HOUR), "no round while none can be made");
    CHECK(judging_looks(&t, true, false, DAY, BEGIN + HOUR),
          "what is old does not wait for a sweep");
    t.ended_ms = 0;
    CHECK(judging_looks(&t, true, false, DAY, BEGIN + 2 * S), "nor does the first one");
    t = (struct judging_times){
        .started_ms = BEGIN, .ended_ms = BEGIN, .stood_by = true, .round_ms = BEGIN + DAY};
    CHECK(judging_looks(&t, true, false, DAY, BEGIN + 5 * S), "nor does one after a takeover");
    CHECK(!judging_looks(&t, true, true, DAY, BEGIN + 5 * S), "on standby it waits for a minute");
    CHECK(judging_looks(&t, true, true, DAY, BEGIN + 60 * S), "and is judged then");
}

static void test_limit(void)
{
    struct judging_times t = {.started_ms = BEGIN, .round_ms = BEGIN + DAY};
    CHECK(!judging_takes_too_long(&t, BEGIN + 60 * S), "a minute is allowed");
    CHECK(judging_takes_too_long(&t, BEGIN + 60 * S + 1), "no more");
    CHECK_INT(judging_look_in(&t, DAY, BEGIN), 10 * S, "looked at each 10 s, whatever a sweep is");
    t.round_ms = BEGIN + 3 * S;
    CHECK_INT(judging_look_in(&t, 5 * S, BEGIN), 3 * S, "or at the round");
    CHECK_INT(judging_look_in(&t, 5 * S, BEGIN + 4 * S), 5 * S, "one that waited for a process");
}

int main(void)
{
    test_old();
    test_rounds();
    test_sweeps_of_a_day();
    test_limit();
    return tap_done();
}

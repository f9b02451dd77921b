// SPDX-License-Identifier: Apache-2.0
// When the time limit and the budget end a run: by hand, and for a hundred simulated runs whose
// machine is up to three times as slow as their plan says.
#include "bench/session/time_limit.h"

#include <math.h>

#include "tests/unit/tap.h"

static const double S = 1e9;

static void time_limits(void)
{
    struct time_limit t = {0};
    time_limit_set(&t, 0, 10, 0, 2);
    CHECK(fabs((double)t.end_ns / S - 8.76) < 1e-6, "1.24 s of 10 s are left free");
    t.repetitions = 4;
    CHECK(!time_limit_step(&t, (uint64_t)(4 * S), 0.1), "a second step of 4 s has time");
    CHECK(time_limit_step(&t, (uint64_t)(8 * S), 0.2), "a third one has not, cells or no cells");
    CHECK(t.wanted == 0, "and the budget is not named");
    CHECK(!time_limit_step(&t, (uint64_t)(99 * S), 1), "the end is the end");
}

static void budgets(void)
{
    struct time_limit t = {.repetitions = 4};
    time_limit_set(&t, 0, 100, 10, 0);
    CHECK(!time_limit_step(&t, (uint64_t)(9.7 * S), 0.2),
          "a budget does not end a run whose cells have no repetition yet");
    CHECK(time_limit_step(&t, (uint64_t)(12 * S), 0.5) && t.kept == 2 && t.wanted == 4,
          "two of four repetitions");
    struct time_limit none = {.repetitions = 4};
    time_limit_set(&none, 0, 0, 0, 0);
    CHECK(!time_limit_step(&none, (uint64_t)(1e6 * S), 0.5) && !time_limit_behind(&none, 0),
          "without limits there are none");
}

// What is left of work that takes 100 s, by hand.
static void lefts(void)
{
    struct time_limit t = {.repetitions = 4};
    time_limit_set(&t, 0, 0, 0, 0);
    CHECK(time_limit_left_s(&t, (uint64_t)(5 * S), 0) < 0, "before the first step it is not known");
    CHECK(isinf(time_limit_room_s(&t, 0)), "without a time limit there is room for all");
    t.expected_s = 100;
    CHECK(fabs(time_limit_left_s(&t, (uint64_t)(5 * S), 0) - 95) < 1e-6, "unless it was timed");
    CHECK(fabs(time_limit_left_s(&t, (uint64_t)(20 * S), 0.1) - 180) < 1e-6, "a step counts more");
    time_limit_set(&t, 0, 50, 0, 0);
    CHECK(fabs(time_limit_left_s(&t, (uint64_t)(20 * S), 0.2) - 28) < 1e-6, "the limit ends it");
    CHECK(time_limit_left_s(&t, (uint64_t)(60 * S), 0.2) == 0, "and nothing is left behind it");
    time_limit_set(&t, 0, 0, 40.2, 0);
    CHECK(fabs(time_limit_left_s(&t, (uint64_t)(20 * S), 0.2) - 20) < 1e-6, "a budget ends it");
    time_limit_set(&t, 0, 0, 10.2, 0);
    CHECK(fabs(time_limit_left_s(&t, (uint64_t)(20 * S), 0.2) - 5) < 1e-6,
          "but not before each cell has one repetition");
    t.repetitions = 0;
    CHECK(fabs(time_limit_left_s(&t, (uint64_t)(20 * S), 0.2) - 80) < 1e-6,
          "nor work that has none");
}

static void parts(void)
{
    struct time_limit t = {0};
    time_limit_set(&t, 0, 0, 20.2, 0);
    time_limit_begin(&t, 0);
    time_limit_step(&t, (uint64_t)(4 * S), 0.1);
    CHECK(!time_limit_behind(&t, 0.5), "a further step of 4 s ends within the first 10 s");
    CHECK(time_limit_behind(&t, 0.3), "but not within the first 6 s");
    struct time_limit limit = {0};
    time_limit_set(&limit, 0, 100, 0, 0);
    time_limit_step(&limit, (uint64_t)(20 * S), 0.1);
    CHECK(!time_limit_behind(&limit, 0.5) && time_limit_behind(&limit, 0.3),
          "without a budget it is the time limit that has parts");
    time_limit_set(&limit, 0, 100, 1000, 0);
    time_limit_step(&limit, (uint64_t)(20 * S), 0.1);
    CHECK(!time_limit_is_budget(&limit) && time_limit_behind(&limit, 0.3),
          "nor does a budget hide one that ends before");
    time_limit_left_out(&t, 13, 30);
    time_limit_left_out(&t, 20, 30);
    CHECK(t.kept == 13 && t.wanted == 30, "the fewest count");
}

// A run of `cells` cells and `visits` visits, planned for `planned_s` and `slow` times as slow,
// each step between half and one and a half times as long. Returns its end.
static double simulate(double planned_s, double budget_s, int cells, int visits, double slow,
                       unsigned *seed, double *first_s)
{
    struct time_limit t = {.repetitions = visits};
    double now = 0, step = planned_s * slow / (cells * visits);
    int all = cells * visits;
    time_limit_set(&t, 0, 0, budget_s, 2);
    for (int i = 1; i <= all; i++) {
        *seed = *seed * 1103515245u + 12345u;
        now += step * (0.5 + (*seed >> 16 & 1023) / 1023.0);
        *first_s = i <= cells ? now : *first_s;
        if (time_limit_step(&t, (uint64_t)(now * S), (double)i / all))
            break;
    }
    return now;
}

static void simulated(void)
{
    unsigned seed = 7;
    int kept = 0;
    double worst = 0;
    for (int i = 0; i < 100; i++) {
        double slow = 0.5 + 2.5 * i / 99, first = 0, budget = 10 + 5 * (i % 11);
        double end = simulate(budget, budget, 20 + 37 * (i % 9), 4 + i % 5, slow, &seed, &first);
        worst = fmax(worst, end / budget);
        kept += end <= 1.1 * budget && first < end + 1e-9;
    }
    CHECK(kept == 100, "%d of 100 runs kept their budget within 10 %%; the longest took %.3f of it",
          kept, worst);
}

int main(void)
{
    time_limits();
    budgets();
    lefts();
    parts();
    simulated();
    return tap_done();
}

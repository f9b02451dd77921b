// SPDX-License-Identifier: Apache-2.0
// Whose clock is wrong: that of a node, or the collector's.
#include "fleet/collect/clocks.h"

#include "tests/unit/tap.h"

enum { HOUR_MS = 3600 * 1000 };

#define COMMON(...) COMMON_OF(sizeof((double[]){__VA_ARGS__}) / sizeof(double), __VA_ARGS__)
#define COMMON_OF(all, ...)                                                                        \
    clocks_common((double[]){__VA_ARGS__},                                                         \
                  (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (int)(all))

static void test_ours_is_right(void)
{
    CHECK(clocks_common(NULL, 0, 0) == 0, "nothing is known");
    CHECK(COMMON(0, 300, -400, 20, 900) == 0, "all are right");
    CHECK(COMMON(0, 0, 0, HOUR_MS, HOUR_MS) == 0, "less than half agree on another time");
    CHECK(COMMON(HOUR_MS, HOUR_MS, 0, 0) == 0, "half of them do");
    CHECK(COMMON(HOUR_MS, HOUR_MS) == 0, "two are too few");
    CHECK(COMMON_OF(8, HOUR_MS, HOUR_MS, HOUR_MS, HOUR_MS) == 0, "half of all has not responded");
    CHECK(COMMON_OF(7, HOUR_MS, HOUR_MS, HOUR_MS, HOUR_MS) == HOUR_MS, "less than half has not");
    CHECK(COMMON(HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS, 5 * HOUR_MS, 9 * HOUR_MS) == 0,
          "wrong clocks that do not agree");
    CHECK(COMMON(-HOUR_MS, -2 * HOUR_MS, HOUR_MS, 3 * HOUR_MS) == 0, "on both sides");
    CHECK(COMMON(NODE_SKEW_MAX_MS, NODE_SKEW_MAX_MS, NODE_SKEW_MAX_MS) == 0, "at the limit");
}

static void test_ours_is_wrong(void)
{
    CHECK(COMMON(HOUR_MS, HOUR_MS, HOUR_MS) == HOUR_MS, "all agree");
    CHECK(COMMON(-HOUR_MS, -HOUR_MS - 500, -HOUR_MS + 500, 0, 0) == -HOUR_MS + 500, "most agree");
    CHECK(COMMON(NODE_SKEW_MAX_MS + 1, NODE_SKEW_MAX_MS + 1, NODE_SKEW_MAX_MS + 1) ==
              NODE_SKEW_MAX_MS + 1,
          "a little beyond the limit");
    CHECK(COMMON(INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, 0) == INT32_MAX, "by decades");
}

int main(void)
{
    test_ours_is_right();
    test_ours_is_wrong();
    return tap_done();
}

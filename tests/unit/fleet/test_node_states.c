// SPDX-License-Identifier: Apache-2.0
// The states of a node by hand, and how long a node that fails is left alone.
#include "fleet/collect/node_states.h"

#include "tests/unit/tap.h"

enum { EVERY = 300 * 1000, HOUR = 3600 * 1000 };

static enum node_state follow(enum node_state from, const char *events)
{
    for (; *events; events++)
        from = node_states[from].after[*events == 'r'   ? NODE_RESPONDED
                                       : *events == 'f' ? NODE_FAILED
                                       : *events == 'u' ? NODE_UNNAMED
                                                        : NODE_NAMED];
    return from;
}

static void check_ways(void)
{
    static const struct {
        const char *events;
        enum node_state end;
    } ways[] = {{"r", NODE_UP},      {"rf", NODE_MISSED},    {"rff", NODE_LATE},
                {"rfff", NODE_DOWN}, {"rffffff", NODE_DOWN}, {"rfffr", NODE_UP},
                {"rffr", NODE_UP},   {"fff", NODE_DOWN},     {"ru", NODE_GONE},
                {"rur", NODE_GONE},  {"ruf", NODE_GONE},     {"run", NODE_NEW},
                {"rn", NODE_UP},     {"rfffn", NODE_DOWN},   {"runr", NODE_UP}};
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
        CHECK(follow(NODE_NEW, ways[i].events) == ways[i].end, "%s ends %s, not %s", ways[i].events,
              node_states[follow(NODE_NEW, ways[i].events)].name, node_states[ways[i].end].name);
}

static void check_waits(void)
{
    CHECK(node_wait_ms(NODE_UP, 0, EVERY, 77) == EVERY, "a node that is up keeps its interval");
    for (uint32_t dice = 0; dice < 3000; dice += 7) {
        int64_t before = 0;
        for (int failures = 3; failures < 40; failures++) {
            int64_t ms = node_wait_ms(NODE_DOWN, failures, EVERY, dice);
            CHECK(ms >= before && ms <= HOUR * 6 / 5, "%d failures: %lld ms after %lld", failures,
                  (long long)ms, (long long)before);
            before = ms;
        }
        int64_t late = node_wait_ms(NODE_LATE, 2, EVERY, dice);
        CHECK(late >= 2 * EVERY * 4 / 5 && late <= 2 * EVERY * 6 / 5, "late: %lld",
              (long long)late);
    }
    CHECK(node_wait_ms(NODE_DOWN, 30, 24 * HOUR, 500) >= 24 * HOUR * 4 / 5,
          "an interval above an hour stays what it is");
}

int main(void)
{
    check_ways();
    check_waits();
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// A node that is named again begins as a new one: nothing is known of what became of it meanwhile.
#include "fleet/collect/node_states.h"

#include <stdbool.h>

enum { DOUBLED_MAX = 16 };

// after: responded, failed, unnamed, named
const struct node_state_info node_states[NODE_STATES] = {
    [NODE_NEW] = {"new", 1, {NODE_UP, NODE_MISSED, NODE_GONE, NODE_NEW}},
    [NODE_UP] = {"up", 1, {NODE_UP, NODE_MISSED, NODE_GONE, NODE_UP}},
    [NODE_MISSED] = {"missed", 1, {NODE_UP, NODE_LATE, NODE_GONE, NODE_MISSED}},
    [NODE_LATE] = {"late", 2, {NODE_UP, NODE_DOWN, NODE_GONE, NODE_LATE}},
    [NODE_DOWN] = {"down", 4, {NODE_UP, NODE_DOWN, NODE_GONE, NODE_DOWN}},
    [NODE_GONE] = {"gone", 0, {NODE_GONE, NODE_GONE, NODE_GONE, NODE_NEW}},
};

int64_t node_wait_ms(enum node_state state, int failures, int64_t every_ms, uint32_t dice)
{
    int64_t ms = every_ms * node_states[state].wait;
    // The third failure is the first one in this state.
    for (int i = 3; state == NODE_DOWN && i < failures && i < DOUBLED_MAX && ms < NODE_HOUR_MS; i++)
        ms *= 2;
    if (state == NODE_UP || state == NODE_NEW)
        return ms;
    int64_t most = every_ms > NODE_HOUR_MS ? every_ms : NODE_HOUR_MS;
    if (ms > most)
        ms = most;
    return ms - ms / 5 + (int64_t)(dice % 1000) * (2 * ms / 5) / 1000;
}

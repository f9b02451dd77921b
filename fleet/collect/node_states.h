// SPDX-License-Identifier: Apache-2.0
// The states of a node as the collector sees it, as one table: state and event give the next state.
// docs/COLLECTOR.md has a drawing of it that a test compares.
#pragma once
#include <stdint.h>

enum { POLLER_WHY = 160 }; // bytes of the reason for which a node does not respond, with its NUL

enum node_state {
    NODE_NEW,    // named by a source, nothing received yet
    NODE_UP,     // its last response came as it should
    NODE_MISSED, // one request failed
    NODE_LATE,   // two failed
    NODE_DOWN,   // three or more
    NODE_GONE,   // no source names it; its history stays
    NODE_STATES
};

enum node_event {
    NODE_RESPONDED, // a page was received and stored
    NODE_FAILED,    // no response, or one that is no page of this node
    NODE_UNNAMED,   // no source names it any more
    NODE_NAMED,     // a source names it again
    NODE_EVENTS
};

struct node_state_info {
    const char *name; // stable, in JSON: "late"
    int wait;         // times the interval until the next request
    enum node_state after[NODE_EVENTS];
};
enum { NODE_HOUR_MS = 3600 * 1000 }; // the longest time until the next request
extern const struct node_state_info node_states[NODE_STATES];

// Milliseconds until the next request. A node that is down waits longer after each failure, and at
// most an hour. `dice` (any number) moves the time by up to a fifth, so that nodes that failed
// together do not come back together; a node that is up keeps its place in the interval.
int64_t node_wait_ms(enum node_state state, int failures, int64_t every_ms, uint32_t dice);

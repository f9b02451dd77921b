// SPDX-License-Identifier: Apache-2.0
// The states of a finding that is kept, as one table: state and event give the next state.
// docs/COLLECTOR.md has a drawing of it that a test compares. Pure.
#pragma once

enum kept_state {
    KEPT_NONE,         // not kept
    KEPT_FORMING,      // seen, and not confirmed yet: no alarm
    KEPT_OPEN,         // confirmed
    KEPT_ACKNOWLEDGED, // a person knows of it
    KEPT_FIXED,        // a person says that it was repaired
    KEPT_CLOSED,       // it was not seen any more
    KEPT_STATES
};

enum kept_event {
    KEPT_SEEN,      // a judgement found it
    KEPT_CONFIRMED, // a judgement found it for certain, or again with other runs
    KEPT_RELAPSED,  // confirmed by nothing but what is newer than the mark "fixed"
    KEPT_MISSED,    // KEPT_MISSES judgements in a row did not find it
    // By people:
    KEPT_ACKNOWLEDGE,
    KEPT_FIX,
    KEPT_REOPEN,
    KEPT_EVENTS
};

struct kept_state_info {
    const char *name; // stable, in JSON: "acknowledged"
    enum kept_state after[KEPT_EVENTS];
};
extern const struct kept_state_info kept_states[KEPT_STATES];
int kept_state_find(const char *name); // of a state that can be listed; -1: none

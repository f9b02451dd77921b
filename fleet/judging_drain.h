// SPDX-License-Identifier: Apache-2.0
// What a judgement says about drains: the plan of analysis/peers/drain.h as documents, and which of
// its nodes the collector may drain by itself. In the process that judges.
#pragma once
#include "analysis/peers/fleet_findings.h"
#include "base/buf.h"
#include "fleet/store/store.h"

enum {
    DRAIN_LISTED_MAX = 1000, // suggestions, and as many nodes that are left alone
    DRAIN_FLEET_SHARE = 20,  // of all nodes one in so many has our reason, where we apply it: 5 %
};

struct judging_drain {
    struct fleet_store *store;
    const struct fleet *fleet;
    const struct fleet_findings *list;
    const char *const *reasons; // [node of the fleet], as drain_plan_make() takes them; or NULL
    bool apply;                 // `now` is wanted
    struct buf *json, *lines;
    // Lines of fleet/collect/draining.h. By itself the collector drains less than it suggests: a
    // node whose finding is open, so that no person has taken it over, and was confirmed by a run
    // measured after it was opened; once for each time that it opens; and at most 5 % of all nodes.
    struct buf *now;
};
int judging_drain(const struct judging_drain *d, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// The nodes as a whole, and whether the collector keeps up with them.
#pragma once
#include "fleet/collect/poller.h"

struct polling_counts {
    int all, states[NODE_STATES]; // nodes, also those that are gone
    int outcomes[FLEET_OUTCOMES]; // of the others
};
void polling_count(const struct poller *p, struct polling_counts *out);
// Something is to come from the node itself: it is named, powered on, and not behind a collector.
bool polling_awaits(const struct polled *n);
// ms. For how long the node or the collector that waits longest is due; 0: none is. What comes
// through another collector is never due.
int64_t polling_lag_ms(const struct poller *p);

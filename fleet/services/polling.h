// SPDX-License-Identifier: Apache-2.0
// Whether the collector keeps up with its nodes.
#pragma once
#include "fleet/collect/poller.h"

// On standby: it contacts no node, and another collector does.
bool polling_stands_by(const struct poller *p);
// ms. For how long the node or the collector that waits longest is due; 0: none is. What comes
// through another collector is never due.
int64_t polling_lag_ms(const struct poller *p);

// SPDX-License-Identifier: Apache-2.0
// How much of the fleet was measured lately, class by class, and how old the newest runs are.
#pragma once
#include "analysis/peers/fleet.h"
#include "fleet/collect/judged_wire.h"

enum { COVERAGE_CLASSES_MAX = 100 }; // the largest

// One JSON object. `nodes`: by name, as the collector sees them; up_known: it contacts them.
// ERR_NO_MEMORY.
int coverage_write(const struct fleet *f, const struct judged_node *nodes, int n, bool up_known,
                   struct buf *out, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Some of all pairs of a rank and a target node, where all take too long. As in
// bench/session/pair_order.h all pairs have one order, and any number of them is its beginning.
#pragma once
#include <stdbool.h>

#include "base/err.h"

// `chosen` [rank * targets + target] gets `most` pairs: first that of each rank with its own node,
// `own` (index of the target; -1: it is none), then one of each target that has none yet, then
// passes in which each rank has one. A way that two nodes have in both directions is chosen with
// both, one after the other.
int target_order_choose(bool *chosen, const int *own, int ranks, int targets, int most,
                        struct err *err);

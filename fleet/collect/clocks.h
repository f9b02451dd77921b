// SPDX-License-Identifier: Apache-2.0
// Whose clock is wrong: a node's, or ours.
#pragma once
#include <stdint.h>

enum {
    NODE_SKEW_MAX_MS = 60 * 1000, // a clock that is further off is wrong
    CLOCKS_AGREE = 3,             // at least so many nodes, and more than half of all, must agree
};

// What most clocks differ from ours by, ms: their median, if that is more than NODE_SKEW_MAX_MS and
// most of `all` nodes are within so much of it. Else 0: ours is right, or too little is known.
// `skews`: of the n nodes whose clock is known; they come into another order.
int64_t clocks_common(double *skews, int n, int all);

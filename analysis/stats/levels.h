// SPDX-License-Identifier: Apache-2.0
// The levels of the memory hierarchy, found in a curve of latency over working sets alone: no word
// of the kernel's is used, so a cache that it does not list (a system-level or memory-side cache)
// is found too, and a cache that a virtual machine shares is as large as what it gets. Pure.
#pragma once
#include <stdint.h>

#include "base/err.h"

enum {
    LEVELS_MAX = 8,
    LEVELS_POINTS_MIN = 8, // of fewer nothing is said
};

// A level is one if it takes at least so many times the one before.
#define LEVELS_FACTOR 1.2

struct level {
    double ns;     // of a load that it answers
    int64_t bytes; // its capacity; 0: the last one, whose end is not on the curve
};

struct levels {
    int n; // 0: too few points
    struct level list[LEVELS_MAX];
};

// `bytes` rise; `ns` that are not positive and finite are passed over. Capacities are among
// `bytes`. The curve is taken as a sum of levels: beyond a capacity C the share of loads that the
// level does not answer grows
//   - around C, as in a cache whose sets fill unevenly: 1 / (1 + (C/x)^q)
//   - from C on, as where a random line is replaced:    1 - C/x
// and levels are added, the one that explains most first, while each explains more than noise.
// ERR_NO_MEMORY is the only error.
int levels_find(struct levels *out, const int64_t *bytes, const double *ns, int n, struct err *err);

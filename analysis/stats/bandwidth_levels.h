// SPDX-License-Identifier: Apache-2.0
// Bandwidth of each cache and of memory, from the matrix of `bandwidth --sweep=sizes`: the columns
// whose working sets fit a level and are too large for the one before.
#pragma once
#include "analysis/stats/cache_sharers.h"
#include "model/matrix.h"
#include "model/spec.h"

enum { BANDWIDTH_LEVELS_MAX = TOPOLOGY_LEVELS_MAX + 1 }; // caches, and memory

struct bandwidth_level {
    char name[8];          // "L1", "memory"
    int first, last;       // columns
    double median, lo, hi; // MB/s: medians of the columns' medians and intervals
};

// Of the row with so many ranks at once; `out` has room for BANDWIDTH_LEVELS_MAX. A level without a
// column is left out. Without a topology there is none. A kernel that stores around the caches
// (`write`, and with streaming `stores` all but `read`) has no caches, but memory. Returns how
// many.
int bandwidth_levels(const struct matrix *m, int row, const struct cache_users *users,
                     enum stores stores, struct bandwidth_level *out);

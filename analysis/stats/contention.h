// SPDX-License-Identifier: Apache-2.0
// What the others cost: concurrent against serial, rank by rank and size by size. The modes part at
// the first size from which on, at every larger size too, a quarter of the ranks is slower by
// CONTENTION_PART or more, provided that they agree before it and that hardly any cell after it is
// faster: a table of noise parts nowhere. Pure.
#pragma once
#include <stdbool.h>

#include "model/matrix.h"

#define CONTENTION_PART 1.12

struct contention {
    bool parts;
    int64_t from_bytes; // where they part
    int sizes;          // at and after it
    double worst;       // largest ratio (in the parted range if they part)
    double worst_lo,
        worst_hi; // of its interval: the cells' ends that lie farthest apart; NaN: none
    int64_t worst_rank, worst_bytes;
    double worst_serial, worst_concurrent;
    double typical_before, typical_after; // median ratios; NaN where there are no sizes
};

// ERR_CONFLICT: the two have no rank or size in common.
int contention_find(struct contention *out, const struct matrix *serial,
                    const struct matrix *concurrent, struct err *err);

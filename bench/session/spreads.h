// SPDX-License-Identifier: Apache-2.0
// Where the pages of interleaved memory are: counted for each target, and as a condition's text.
#pragma once
#include "model/record.h"
#include "model/spec.h"
#include "model/target.h"

enum {
    SPREADS_MAX = SPEC_TARGETS_MAX + 1, // targets, and the memory policy of rank 0
    SPREAD_TEXT_ROOM = 132,
};

struct spread {
    int target;
    int64_t pages[TARGET_NODES];
};

struct spreads {
    int n;
    struct spread list[SPREADS_MAX];
};

// Adds the pages by node that were looked up.
void spreads_add(struct spreads *all, int target, const struct rank_info *got);
// "50.0 % on node 0, 50.0 % on node 1"; of many nodes "3.4 to 3.7 % on each of nodes 0-27".
void spread_text(const struct spread *p, char out[static SPREAD_TEXT_ROOM]);

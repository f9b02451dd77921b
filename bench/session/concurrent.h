// SPDX-License-Identifier: Apache-2.0
// All ranks at once under constant load: a warm rank continues until all are warm, a rank with
// its samples continues until all have theirs. Only samples taken while all ranks worked count.
#pragma once
#include "bench/sampling/sampler.h"
#include "bench/session/session.h"

struct work {
    void (*warm)(void *context);
    void (*linger)(void *context); // a short piece, not recorded
    void (*take)(void *context);   // one sample, into the sampler
    void *context;
    struct sampler *sampler; // borrowed
};

// One visit of a cell by all ranks, each with its own work; its samples go to `sum`. `visits`
// counts these calls from 1, alike in all ranks.
int concurrent_measure(struct session *s, const struct work *w, uint64_t visits,
                       struct cell_sum *sum, struct err *err);

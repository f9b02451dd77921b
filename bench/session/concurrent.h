// SPDX-License-Identifier: Apache-2.0
// All ranks at once under constant load: who is warm goes on until all are, who has its samples
// goes on until all have, and only what was taken while everybody worked counts.
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

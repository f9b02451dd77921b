// SPDX-License-Identifier: Apache-2.0
// How a benchmark measures pairs of ranks: all pairs, then all again, for each visit. Rank 0 calls
// the pairs and reports; the other ranks sleep until they are called.
#pragma once
#include "bench/ranks/turns.h"
#include "bench/session/session.h"

struct pair_work {
    void *context;
    const int (*pairs)[2];
    int n_pairs, n_stages; // a stage: what is measured in one turn
    int visits;
    // Both ranks of a pair, at the same time. After the last visit the first of the pair leaves the
    // cells on its slot.
    int (*measure)(void *context, const struct turn *turn, struct err *err);
    // Rank 0, after the last visit of a pair.
    int (*report)(void *context, int pair, int stage, struct err *err);
    // What a stage takes beside the others, for the progress; NULL: all the same.
    double (*cost)(void *context, int stage);
};

// On all ranks; a failure of one is the failure of all.
int pair_turns_run(struct session *s, const struct pair_work *work, struct err *err);

// Within a turn: both ranks of the pair bring their outcome. -1 if either has failed.
int pair_turn_meet(struct session *s, const struct turn *turn, int outcome, struct err *err);

// Within a turn, after a block of samples: how many of the first `n` samples disturbed neither
// rank. Both have the same answer.
int pair_clean(const struct session *s, const struct turn *turn, int n);
// Samples to take in all, after `n`: `wanted` undisturbed ones, within the limits of patience.
int pair_samples(const struct session *s, const struct turn *turn, int n, int wanted);

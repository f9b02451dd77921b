// SPDX-License-Identifier: Apache-2.0
// How a benchmark measures pairs of ranks: all pairs, then all again, for each visit. Rank 0 calls
// the pairs and reports; the other ranks sleep until they are called. Of all pairs, as many as do
// not disturb each other are measured at a time: control pairs, alone and with the others, decide.
// Where a budget then has no room for all, some are measured.
#pragma once
#include "bench/ranks/turns.h"
#include "bench/session/session.h"

// Visits that are none: of a control pair, whose samples are forgotten; and without samples, to sum
// up those of the visits before.
enum { VISIT_CONTROL = -1, VISIT_SUM_UP = -2 };

struct pair_work {
    void *context;
    const int (*pairs)[2];      // those that were listed, measured one after the other; NULL: all
    int n_pairs;                // that are listed
    int n_stages;               // a stage: what is measured in one turn
    int n_cells;                // of a stage, that both ranks of a pair measure
    const struct shape *shapes; // of all stages' cells
    int visits;
    // All ranks, once it is known how many pairs are measured (pairs_chosen): announces the
    // matrices. A failure of one is the failure of all.
    int (*announce)(void *context, struct err *err);
    // Both ranks of a pair, at the same time. The first of the pair leaves the cells on its slot
    // after the last visit, VISIT_CONTROL and VISIT_SUM_UP.
    int (*measure)(void *context, const struct turn *turn, struct err *err);
    // Rank 0, after the last visit of a pair; `index` is that of a listed pair.
    int (*report)(void *context, int index, const int ends[2], int stage, struct err *err);
    // What a stage takes beside the others, for the progress; NULL: all the same.
    double (*cost)(void *context, int stage);
};

// On all ranks; a failure of one is the failure of all.
int pair_turns_run(struct session *s, const struct pair_work *work, struct err *err);

// Within a turn: both ranks of the pair bring their outcome. -1 if either has failed.
int pair_turn_meet(struct session *s, const struct turn *turn, int outcome, struct err *err);

// Is this the visit after which the first of the pair leaves the cells on its slot?
bool pair_last_visit(const struct session *s, const struct turn *turn);

// Within a turn, after a block of `n` samples whose flags both ranks have left on their slots: how
// many to take in all. The same for both: `wanted` undisturbed ones, within the limits of patience.
int pair_samples(const struct session *s, const struct turn *turn, int n, int wanted);

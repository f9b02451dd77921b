// SPDX-License-Identifier: Apache-2.0
// Some of all pairs of ranks, in rounds: where all are too many, each rank and each two groups of
// ranks (those behind a last-level cache) still have their share of them. Pure.
#pragma once
#include "bench/session/pair_rounds.h"

// At most `most` pairs: first as many between any two groups as there is room for, then a round
// inside of each group, and so on until all pairs are listed. group[rank] and core[rank] are any
// numbers; no two pairs of a round share a core. Owned by the caller (pair_rounds_fini).
int pair_choice_make(struct pair_rounds *r, const int *group, const int *core, int ranks, int most,
                     struct err *err);

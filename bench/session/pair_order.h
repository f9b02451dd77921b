// SPDX-License-Identifier: Apache-2.0
// Some of all pairs of ranks, where all take too long. All pairs have one order, and any number of
// them is the beginning of it: so a smaller choice is part of each larger one, and two runs have
// the pairs of the smaller one in common. Pure.
#pragma once
#include "bench/session/pair_rounds.h"

// `most` pairs in rounds, as pair_rounds_pack() with `domain`: first the pairs in `first` (lower
// rank first), then passes of ranks/2 pairs that have each rank once. Passes that follow each other
// have other distances, so that each kind of pair has about its share of any choice.
int pair_order_make(struct pair_rounds *r, const int (*first)[2], int n_first, const int *domain,
                    int ranks, int most, struct err *err);

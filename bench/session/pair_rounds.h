// SPDX-License-Identifier: Apache-2.0
// A tournament: all pairs of ranks in rounds. The pairs of a round are measured at the same time,
// so no two of them share a rank, nor anything that `domain` says is shared (a core, a last-level
// cache).
#pragma once
#include "base/err.h"

struct pair_rounds {
    int (*pairs)[2]; // the lower rank first, round by round; owned
    int *begin;      // index of a round's first pair; one more than there are rounds; owned
    int n_pairs, n_rounds;
    int widest; // pairs of the largest round
};

// Every pair of ranks once. domain[rank] is any number: ranks with the same one are never in two
// pairs of a round. All different: ranks/2 pairs a round; all the same: one pair.
int pair_rounds_all(struct pair_rounds *r, const int *domain, int ranks, struct err *err);
// The pairs given, in their order, one a round.
int pair_rounds_list(struct pair_rounds *r, const int (*pairs)[2], int n, struct err *err);
// The pairs given, each in the first round in which the domains of both its ranks are free; so a
// round has its pairs in the order given. A domain below 0 is shared with no other rank.
int pair_rounds_pack(struct pair_rounds *r, const int (*pairs)[2], int n, const int *domain,
                     int ranks, struct err *err);
void pair_rounds_fini(struct pair_rounds *r);

int pair_rounds_of(const struct pair_rounds *r, int pair);     // the round that has it
int pair_rounds_width(const struct pair_rounds *r, int round); // its pairs

// SPDX-License-Identifier: Apache-2.0
// Turns: rank 0 calls the two ranks of a pair, and only they wake up. A barrier for each step of
// each pair would wake all ranks, whose cores then disturb the pair; with 512 ranks it would also
// take longer than the measurement. Several pairs can have their turns at once.
#pragma once
#include "bench/ranks/board.h"

// Rank 0: gives both ranks of a pair a turn. It may be one of them.
void turns_call(struct board *b, const int ends[2], int stage, int visit);
// Rank 0: sleeps until all turns that were given have finished.
void turns_wait(struct board *b);
// Rank 0: there are no more turns.
void turns_end(struct board *b, int ranks);

// Sleeps until rank 0 gives this rank a turn; false: there are no more.
bool turns_await(struct board *b, int rank, struct turn *turn);
// This rank's turn has finished.
void turns_done(struct board *b);

// A barrier of the two ranks of a pair, which spins. A rank that failed comes with a negative
// outcome and leaves. -1 if either has failed; a rank never waits for one that has.
int turns_meet(struct board *b, int rank, int peer, int outcome);

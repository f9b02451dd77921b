// SPDX-License-Identifier: Apache-2.0
// The measurement of one rank from beginning to end. All ranks go through the same meetings in the
// same order; one that fails says so on the board, comes to the next meeting, and there all leave.
#pragma once
#include "base/err.h"
#include "bench/comm.h"
#include "bench/emit.h"
#include "bench/options.h"

// `e` is rank 0's; NULL on the others. -1: every rank has the same *err.
int sweep_run(struct comm *comm, const struct options *o, struct emit *e, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Times in cycles of the core that waited: two runs at different clocks then differ only by what
// the memory does. Pure.
#pragma once
#include "model/matrix.h"
#include "model/record.h"

// Replaces times by cycles: each cell by the clock of its row's rank (of a pair, of its first
// rank). ERR_CONFLICT (member "cycles"): the values are no times, rows are not ranks, or a clock is
// not known. Then *m is unchanged.
int matrix_to_cycles(struct matrix *m, const struct rank_info *ranks, int n, struct err *err);

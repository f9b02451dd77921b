// SPDX-License-Identifier: Apache-2.0
// The latency benchmark by method classic, and what both methods share.
#pragma once
#include "bench/session/session.h"

benchmark_fn latency_classic_run;

// A matrix of ranks by working sets for each shape.
int latency_make_matrices(const struct shape *shapes, int n, int ranks, const uint64_t *sizes,
                          int n_sizes, struct matrix *m, struct err *err);

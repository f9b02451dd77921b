// SPDX-License-Identifier: Apache-2.0
// Is the latency of the largest working set that of memory? A working set of four times the
// last-level cache still finds a quarter of its lines there; what is left is the latency of memory
// within a few per cent. Pure.
#pragma once
#include "analysis/stats/curve.h"

// `m` is of ranks by working sets. Where the ranks work together, all behind one cache count.
// So do all of a node for a cache that `hierarchy` found beyond those that the kernel lists.
// Without a topology the curve decides: its last plateau must be that long and of 64 MiB or more.
// ERR_NO_MEMORY is the only error.
int beyond_caches(const struct matrix *m, const struct curve_machine *machine, bool *beyond,
                  struct err *err);
// The same of so many bytes that one rank has, alone behind its caches.
bool size_beyond_caches(int64_t bytes, const struct curve_machine *machine);

// SPDX-License-Identifier: Apache-2.0
// A whole finished measurement for people, whatever was measured: each benchmark's matrices in the
// form in which its field prints them (the latency table, MLC's matrix, STREAM's lines, IMB's
// columns), then what should be known before believing them, and where memory was. Pure: numa_bench
// and numaprobe print the same bytes from the same numbers.
#pragma once
#include "base/buf.h"
#include "model/matrix.h"
#include "model/record.h"

// Tables of all matrices of a run. `ranks` may be NULL or lack ranks. A table that is wider than
// `width` characters is written as several below each other; 0: no limit.
void result_tables_write(const struct matrix *list, int n, const struct rank_info *ranks,
                         int n_ranks, int width, struct buf *out);
// The notes of all matrices and ranks; nothing to say, nothing written.
void result_notes_write(const struct matrix *list, int n, const struct rank_info *ranks,
                        int n_ranks, struct buf *out);
// Memory of every rank's process by node, like numastat's table; nothing if no rank knows.
void result_usage_write(const struct rank_info *ranks, int n_ranks, struct buf *out);

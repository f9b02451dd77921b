// SPDX-License-Identifier: Apache-2.0
// The table of a finished measurement for people: one line a rank, where it ran, where its memory
// was, and one column a size.
//
//     |  MPI  |        CPU     |              MEMORY    |  LATENCY (ns)   |
//     | Ranks | Cores   | NUMA |     Address    | NUMA  | 1MB    | 2MB    |
//     |  000  | 1       |   0  | 0x527e70       |   0   | 11.53  | 12.92  |
//
// Pure: numa_bench and numaprobe print the same bytes from the same numbers.
#pragma once
#include "base/buf.h"
#include "model/matrix.h"
#include "model/record.h"

// The table of medians with its ruler lines, nothing before or after. `ranks` may be NULL or lack
// ranks (imports): what is not known is "-". Columns are as narrow as the classic table and grow
// for values from 1000 on. Texts of the matrix are printed as they are: the caller has checked
// them.
int result_table_width(const struct matrix *m); // characters of a line of that table
void result_table_write(const struct matrix *m, const struct rank_info *ranks, int n_ranks,
                        struct buf *out);

// `top` / `bottom`, cell by cell, as a matrix without unit: contention. The two
// must have the same axes: ERR_INVALID. The caller calls matrix_fini.
int result_ratio(struct matrix *ratio, const struct matrix *top, const struct matrix *bottom,
                 struct err *err);

// What a reader should know before believing the matrix, one sentence a line, each with its '\n':
// samples disturbed, cells that did not converge in time, load that was not common. Nothing to say,
// nothing written.
// Cells that did not reach the precision requested; adds all of m to *cells.
int result_cells_loose(const struct matrix *m, int *cells);
void result_notes_matrix(const struct matrix *m, struct buf *out);
// The same about ranks: not on the CPU, node or page size requested, moved while measuring.
void result_notes_ranks(const struct rank_info *ranks, int n_ranks, struct buf *out);

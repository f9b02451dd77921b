// SPDX-License-Identifier: Apache-2.0
// What matrices a run of a spec has: the contract between numa_bench, which measures them, and
// all that read them. Axes and their values:
//   rank         number of a rank of the plan          working_set  bytes
//   target       a node with memory, or interleaved over several (model/target.h); -1: each
//                rank's own
//   initiator    OS number of a node with CPUs         threads      ranks that work together
//   pair         two ranks, packed by axis_pair()      message      bytes
//   access       enum access                           load         per cent of full load
//   pages        that hold a link each                 chains       followed at once
//   stride       bytes from link to link               source       OS number of a node copied from
//   operation    enum operation
//   line         1 is the fastest of a pair's cache lines, 2 the next …
//   aspect       enum aspect                           l3         the lowest rank behind it
//   path         a node with CPUs or memory and a target, packed by axis_pair()
#pragma once
#include "model/matrix.h"
#include "model/plan.h"
#include "model/spec.h"

enum { SHAPES_MAX = 16 }; // two of each mix of a loaded run are 14

struct shape {
    const char *name, *quantity, *unit; // of the matrix
    const char *rows, *cols;            // names of the axes
};

// Fills `list` in the order in which they are announced; returns how many.
int shape_list(const struct spec *s, struct shape list[SHAPES_MAX]);
// Ranks that a run of the spec can have: its matrices must hold them (ERR_INVALID on "ranks"), and
// the pairs that it lists are among them (on "pairs").
int shape_check_ranks(const struct spec *s, int ranks, struct err *err);
// ERR_INVALID: of pairs of a rank and a target are fewer requested than have each rank and target.
int shape_check_pairs(const struct spec *s, int ranks, int targets, struct err *err);
const struct shape *shape_find(const struct shape *list, int n, const char *name);

// An empty matrix of that shape. Axis values are 0, 1, 2 … (ranks, accesses); all others are still
// to be set. The unit of an axis follows its name.
int shape_make(struct matrix *m, const struct shape *shape, int rows, int cols, struct err *err);

// Cells that exist: all, but between ranks only those with row < col (a pair is measured once).
bool shape_has_cell(const struct matrix *m, int row, int col);
bool shape_complete(const struct matrix *m);            // every cell that exists has a median
int64_t shape_cells(const struct matrix *m);            // how many exist
int64_t shape_cells_with_value(const struct matrix *m); // how many of these have a median
// How many of them a run of `s` measures: of all pairs of ranks, or of a rank and a target, there
// may be fewer (pairs_most).
int64_t shape_cells_measured(const struct matrix *m, const struct spec *s);
bool shape_measured(const struct matrix *m, const struct spec *s); // so many have a median

// Does the head of `m` fit the spec and the plan? ERR_INVALID says what does not.
int shape_check(const struct matrix *m, const struct spec *s, const struct plan *p,
                struct err *err);

// Bandwidth, rates and fairness: more of them is better. Of all other quantities less is.
bool shape_more_is_better(const struct matrix *m);
// The same where no plan is known (imports): what its ranks and nodes may be is not known.
int shape_check_alone(const struct matrix *m, const struct spec *s, struct err *err);

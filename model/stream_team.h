// SPDX-License-Identifier: Apache-2.0
// The teams of ranks that the benchmark `bandwidth` measures, one a row, and the size of their
// arrays. The launch plan and numa_bench call the same functions, so that a plan's memory is what
// the run takes. STREAM's rule, arrays of four times the caches, holds for each team by itself.
#pragma once
#include "base/err.h"
#include "model/spec.h"

enum {
    STREAM_ARRAYS = 3,
    STREAM_SERIES_MAX = 12, // 1, 2, 4 … SPEC_RANKS_MAX, and a number that is no power of two
};

struct stream_team {
    int64_t value; // of the row: the OS number of a node, or how many ranks there are
    int n_ranks;
    uint64_t llc_bytes;   // of the last-level caches of its CPUs, each counted once; or, if that is
                          // more, of what was found beyond them on their nodes
    uint64_t array_bytes; // of one array, all its ranks together
};

// The working sets of a rank of the sweep by sizes, in ascending order: those of "size", or from
// 16 KiB doubled to beyond the caches. Returns how many; `sizes` has room for SPEC_SIZES_MAX.
int stream_sizes(const struct spec *s, const struct rank_cache *caches, int ranks, uint64_t *sizes,
                 struct err *err);

// 1, 2, 4 … and `ranks` itself. Returns how many; `counts` has room for STREAM_SERIES_MAX.
int stream_series(int ranks, int *counts);

// The numbers of ranks that the spec's "threads" stands for, in ascending order: doubling for auto.
// Returns how many; `counts` has room for SPEC_RANKS_MAX. ERR_INVALID on "threads".
int stream_thread_counts(const struct spec *s, int ranks, int *counts, struct err *err);

// The teams of a run of `ranks` ranks; `teams` has room for as many. Returns how many, or -1:
// ERR_INVALID on "threads" if the list has a number that the ranks do not reach.
int stream_teams(const struct spec *s, const struct rank_cache *caches, int ranks,
                 struct stream_team *teams, struct err *err);
bool stream_team_has(const struct spec *s, const struct stream_team *t,
                     const struct rank_cache *caches, int rank);

// The rounds of a repetition of all cells. In the sweep by nodes the cells of a round have neither
// a row nor a column in common, so their arrays are placed, filled and compared at once, by
// different ranks and on different targets. Other cells are rounds of one.
int stream_rounds(const struct spec *s, int rows, int cols);
int stream_round_col(const struct spec *s, int rows, int cols, int round, int row); // -1: none
int stream_at_once(const struct spec *s, int rows, int cols); // cells of a round, at most

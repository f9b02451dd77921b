// SPDX-License-Identifier: Apache-2.0
// A visit to one cell of `bandwidth`, in three steps: the ranks of a team place their slices of the
// arrays, time passes of each job, and check what the arrays hold then. Several teams may do the
// first step at once, and the last, but only one at a time has the second.
#pragma once
#include "bench/kernels/stream.h"
#include "bench/session/rank_team.h"
#include "model/stream_team.h"

// What each matrix is made of.
struct band_job {
    enum stream_kernel kernel;
    const struct stream_code *code; // NULL: libc's memcpy
};

struct band_cells {
    struct session *s; // borrowed
    const struct stream_code *code;
    int n_jobs, n_cells;
    struct band_job jobs[SHAPES_MAX];
    struct cell_sum *sums; // of each cell its jobs, on the first rank of its team; owned
    double sum;            // of reads, so that none is optimised away
};

// Where a rank has its arrays and how large they are.
struct band_place {
    uint64_t set_bytes;   // of all arrays that a job uses together; 0: array_bytes counts
    uint64_t array_bytes; // of one array
    int ranks;            // of the team
    int from, to;         // nodes of what is read and of what is written; -1: the rank's own
};

struct band_visit {         // starts all zero
    struct band_cells *b;   // borrowed; NULL: nothing is placed
    struct rank_team *team; // borrowed; while its ranks measure
    struct band_place place;
    struct cell_sum *sums;  // of this cell; borrowed
    struct arena arenas[2]; // of what is read, and of what is written elsewhere; owned
    struct stream_arrays arrays;
    double want[3]; // that every element has now
    uint64_t laps;  // of a pass
};

// A job for each shape, by its name.
void band_cells_jobs(struct band_cells *b, const struct shape *shapes, int n,
                     const struct stream_code *code);
int band_cells_init(struct band_cells *b, struct session *s, int n_cells, struct err *err);
void band_cells_fini(struct band_cells *b);

// Each rank of the team calls these in this order, with a meeting of all ranks before and after
// band_visit_measure. Of `visits` visits each takes its part of the passes.
int band_visit_place(struct band_visit *v, struct band_cells *b, const struct band_place *place,
                     int cell, struct err *err);
int band_visit_measure(struct band_visit *v, struct rank_team *team, int64_t visits,
                       struct err *err);
int band_visit_check(struct band_visit *v, struct err *err);
void band_visit_fini(struct band_visit *v); // also of one that was never placed
// Of the team's first rank: fills its slot's cells.
int band_cell_sum_up(struct band_cells *b, int cell, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// A visit to one cell of `bandwidth`: the ranks of a team place their slices of the arrays, time
// passes of each job, and check what the arrays hold then.
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
    int from, to;         // nodes of what is read and of what is written; -1: the rank's own
};

// A job for each shape, by its name.
void band_cells_jobs(struct band_cells *b, const struct shape *shapes, int n,
                     const struct stream_code *code);
int band_cells_init(struct band_cells *b, struct session *s, int n_cells, struct err *err);
void band_cells_fini(struct band_cells *b);

// All ranks call this in step. Of `visits` visits each takes its part of the passes.
int band_cell_visit(struct band_cells *b, struct rank_team *team, const struct band_place *place,
                    int cell, int64_t visits, struct err *err);
// Of the team's first rank: fills its slot's cells.
int band_cell_sum_up(struct band_cells *b, int cell, struct err *err);

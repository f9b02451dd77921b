// SPDX-License-Identifier: Apache-2.0
// How the ranks find each other: a launcher starts them and gives each its number and a board in
// memory that they share. That is all; while measuring nobody calls the launcher's library. The
// bench's one door to MPI.
#pragma once
#include "base/err.h"
#include "bench/board.h"

struct comm {
    const struct comm_ops *ops;
    int rank, size;
    struct board *board; // zeroed; the same memory in all ranks
    void *context;       // of ops
};

struct comm_ops {
    const char *name; // launcher in the hello record
    int (*open)(struct comm *c, struct err *err);
    void (*close)(struct comm *c);
};

extern const struct comm_ops comm_mpi;
extern const struct comm_ops comm_solo; // one rank, started by hand without a launcher

// Chooses by the environment that the launcher left. ERR_USAGE if it was a launcher that cannot
// tell the ranks of each other (srun without PMIx): they would measure at the same time, each
// believing to be alone. On failure nothing is open, and every rank gets the same error.
int comm_open(struct comm *c, struct err *err);
void comm_close(struct comm *c);

// The rank's number before anything is open, from the environment; 0 without a launcher.
int comm_rank_hint(void);

// SPDX-License-Identifier: Apache-2.0
// How the ranks find each other: a launcher starts them and gives each its number and a board in
// memory that they share. That is all; while measuring no rank calls the launcher's library, except
// to measure the messages themselves.
#pragma once
#include <stddef.h>

#include "base/err.h"
#include "bench/ranks/board.h"

struct comm {
    const struct comm_ops *ops;
    int rank, size;
    struct board *board;            // zeroed; the same memory in all ranks
    void *context;                  // of ops
    const struct comm_start *start; // borrowed
    bool alone; // not open: no other rank is known to be there that could say why
};

struct comm_start {
    int ranks;          // 0: a launcher has started us, or there is one
    const char *bind;   // "CPU:NODE,CPU:NODE,…" one a rank, -1 for anywhere; "": as we are
    bool oversubscribe; // ranks may share a CPU
    bool single_thread; // this process will have one thread: MPI's messages cost a third less then
};

struct comm_ops {
    const char *name; // launcher in the hello record
    int (*open)(struct comm *c, struct err *err);
    void (*close)(struct comm *c);
    // A message there, whole; NULL for launchers without messages.
    int (*send)(const struct comm *c, int to, const void *bytes, size_t n, struct err *err);
    int (*receive)(const struct comm *c, int from, void *bytes, size_t n, struct err *err);
};

extern const struct comm_ops comm_processes; // ranks that are forked here: no MPI anywhere
// comm_mpi is in a module beside the program: numa_bench_mpi.so

// Chooses by `start` and the environment that a launcher left. ERR_USAGE if it was a launcher that
// cannot inform the ranks of each other (srun without PMIx): they would measure at the same time,
// each believing to be alone; ERR_UNAVAILABLE if the module for MPI cannot be loaded, or its MPI is
// not that of the launcher, so that they count the ranks differently. On failure
// nothing is open, and every rank gets the same error. With comm_processes the caller continues as
// a rank, and the process that was started waits for all and ends inside.
int comm_open(struct comm *c, const struct comm_start *start, struct err *err);
void comm_close(struct comm *c);

// Started by a launcher of MPI, whose library is or will be loaded.
bool comm_uses_mpi(void);

// The rank's number before anything is open, and how many there are, from the environment. Without
// a launcher 0; a number of ranks that the launcher does not leave is 0 too.
int comm_rank_hint(void);
int comm_size_hint(void);

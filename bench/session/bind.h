// SPDX-License-Identifier: Apache-2.0
// Where each rank runs: one list, "CPU:NODE,CPU:NODE,...", that all ranks are given, -1 for what
// shall stay as it is.
#pragma once
#include "base/err.h"
#include "bench/session/options.h"

struct binding {
    int cpu, node;
};

// Of exactly n ranks. ERR_USAGE.
int bindings_read(const char *list, struct binding *out, int n, struct err *err);

// For a rank that a launcher of MPI has started, before it loads MPI: the place in --bind that its
// number has. With --numactl this program executes itself once more below numactl, without these
// two options: then its stack and libraries are on the right node too. Else it binds itself by
// libnuma. Does nothing without --bind.
int bind_rank_of_mpi(const struct options *o, struct err *err);

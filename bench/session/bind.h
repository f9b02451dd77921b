// SPDX-License-Identifier: Apache-2.0
// Binds a rank that a launcher of MPI has started, before it loads MPI.
#pragma once
#include "base/err.h"
#include "bench/session/options.h"

// Binds this rank to the place in --bind that its number has. With --numactl this program executes
// itself once more below numactl, without these two options: then its stack and libraries are on
// the right node too. Otherwise it binds itself by libnuma. Does nothing without --bind.
int bind_rank_of_mpi(const struct options *o, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// The question to mpirun which version it is.
#pragma once
#include "core/launch/account.h"
#include "core/launch/command.h"

enum { LAUNCH_ASK_MS = 5000 }; // for its answer

// In the child: asks mpirun for its version as the account of ranks, in a network namespace of its
// own. Sets paths->mpi_major, or paths->mpi_why. Nothing that it starts is left at its return.
void mpirun_version_read(struct launch_paths *paths, const struct account *a, const char *run_dir);

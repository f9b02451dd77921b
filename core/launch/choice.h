// SPDX-License-Identifier: Apache-2.0
// What starts the ranks: mpirun, or numa_bench itself.
#pragma once
#include "core/launch/command.h"

// Decides what starts the ranks: what the spec requests; where it leaves the choice, MPI, unless
// something keeps it from working. Then p->launcher_why says what, as does a note. Where memory
// policies are denied, ranks are bound to CPUs alone and the plan says so. ERR_UNAVAILABLE names
// what is missing and the package that has it, what there is too little of, or the memory that
// would have to be bound.
int launch_choose(struct plan *p, const struct launch_paths *paths, const struct spec *s,
                  struct err *err);

// SPDX-License-Identifier: Apache-2.0
// The CPUs that this process may run on. Without libnuma, as the team of threads needs them.
#pragma once
#include "base/err.h"

// Those of the affinity mask, in order, into *cpus, which the caller frees. Returns how many.
int affinity_cpus(int **cpus, struct err *err);
int affinity_set(int cpu, struct err *err); // this CPU alone; ERR_USAGE on "bind"
// ERR_USAGE on `member`: the CPU is not there, and which are. `option` begins the text: "--bind: ".
int affinity_refuse(int cpu, const char *member, const char *option, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Where each rank runs: one list, "CPU:NODE,CPU:NODE,...", that all ranks are given, -1 for what
// stays as it is; or a core for each.
#pragma once
#include "base/err.h"

struct binding {
    int cpu, node;
};

// Reads a list of exactly n ranks into out[n]. ERR_USAGE if it has fewer or more, or is no list.
int bindings_read(const char *list, struct binding *out, int n, struct err *err);
// Without a list: the CPUs that this process may use, one of each core first, then the other
// threads of the cores, and all again for more ranks than CPUs. The memory stays as it is.
int bindings_spread(struct binding *out, int n, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Is the memory there, before anything touches it? Binding more than a node has invokes the
// kernel's global out-of-memory killer, which may choose any process.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/spec.h"

enum {
    // Kept free of us on each node and on the machine: page tables, MPI, the kernel's watermarks.
    MEMCHECK_RESERVE_MIB = 256,
    // Of a rank besides its arena: page tables of the arena come on top, 1/512 of it.
    MEMCHECK_RANK_MIB = 24,
};

struct demand {
    int node; // OS number, or interleaved over several (model/target.h); -1: any
    uint64_t bytes;
    bool in_turn; // one after the other: of all that say so, only the largest is there at a time
};

// `root` stands before /proc and /sys: "" on this machine, a folder in tests. ERR_NO_MEMORY_NODE
// says how much is requested, how much there is, and whose limit it is. A number that cannot be
// read does not refuse. *fits, if refused: a share of the requested memory that does fit, with what
// ranks need besides; 0: none is known.
int memcheck(const char *root, const struct demand *ranks, int n, enum pages pages, double *fits,
             struct err *err);

// SPDX-License-Identifier: Apache-2.0
// A plan in numbers, for its time estimate.
#pragma once
#include "model/plan.h"
#include "model/spec.h"
#include "model/topology.h"

struct workload {
    int ranks, targets;  // without targets: 0
    int nodes;           // that have CPUs of ranks
    double per_node;     // ranks on such a node
    int cpus;            // that the ranks have: fewer than ranks where they share some
    int classes, pairs;  // of ranks: classes of pairs that occur, and all pairs
    double far;          // mean distance from the ranks to the memory they use, 1: local
    double share_of_far; // pairs of ranks in different last-level caches, 0…1
    uint64_t llc, line;  // bytes: the largest last-level cache of a rank, a line
    const struct rank_cache *caches; // [ranks]
};

// The caches of the ranks' CPUs; owned. NULL on failure.
struct rank_cache *workload_caches(const struct plan *p, const struct topology *t, struct err *err);
// Seconds that the run takes: starting the ranks, measuring (model/estimate.h), ending. Reads
// p->processes.
int estimate_s(const struct spec *s, const struct plan *p, const struct topology *t,
               double *seconds, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// A plan in numbers, for its time estimate. Parameters of effort are no part of it: it is made
// once, and a run of any effort is estimated from it.
#pragma once
#include "model/plan.h"
#include "model/spec.h"
#include "model/stream_team.h"
#include "model/topology.h"

struct workload {
    int ranks, targets; // without targets: 0
    int nodes;          // that have CPUs of ranks
    double per_node;    // ranks on such a node
    int cpus;           // that the ranks have: fewer than ranks where they share some
    int llcs;           // last-level caches of these CPUs
    int classes, pairs; // of ranks: classes of pairs that occur, and all pairs
    int choice,
        choice_least;    // pairs that pairs_most chooses from, and the fewest that a budget may
    double far;          // mean distance from the ranks to the memory they use, 1: local
    double home_far;     // the same of each rank and its own node, or the first target
    double share_of_cpu; // pairs of ranks on one CPU, 0…1
    double share_of_far; // pairs of ranks in different last-level caches, 0…1
    struct found_speed speeds[SPEEDS]; // as runs measured them
    struct found_speed past;           // how long the same took, beside its estimate by these
    double past_s;                     // that estimate
    uint64_t llc, line;                // bytes: the largest last-level cache of a rank, a line
    struct page_sizes pages;           // of the kernel
    struct rank_cache *caches;         // [ranks]; owned
    int n_teams;                       // of the benchmark bandwidth; others: 0
    struct stream_team *teams;         // owned
    uint64_t scan_bytes; // that the benchmark scan chases through, of a rank; others: 0
    bool processes;      // as plan's
};

// The caches of the ranks' CPUs; owned. NULL on failure.
struct rank_cache *workload_caches(const struct plan *p, const struct topology *t, struct err *err);
int workload_make(struct workload *w, const struct spec *s, const struct plan *p,
                  const struct topology *t, struct err *err);
void workload_fini(struct workload *w);

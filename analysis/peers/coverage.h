// SPDX-License-Identifier: Apache-2.0
// How much of a fleet was measured lately: the nodes that count, by class, and how old their newest
// runs are. Pure.
#pragma once
#include "analysis/peers/fleet.h"
#include "base/jsonw.h"

struct covered_node {
    const char *name; // borrowed; these two are the caller's
    bool up;
    int class;      // number in the fleet; -1: no run of it counts
    int64_t age_ms; // of its newest run
    bool fresh;     // that is of the last fleet_options.window_days
    bool enough;    // it has RUNS_MIN runs to be judged by
};

struct covered_class {
    int class;             // -1, the last one: the nodes without a run that counts
    const char *cpu;       // borrowed; NULL: not known
    int first, nodes;      // in coverage.node, the newest runs first
    int up, fresh, enough; // of these
};

struct coverage {
    const struct fleet *f;      // borrowed
    struct covered_node *node;  // by class, then by age; owned
    struct covered_class *list; // the largest first; owned
    int64_t *ages;              // of all newest runs, in order; owned
    int n_nodes, n, n_ages;
};

// `nodes`: those that count, with name and state. ERR_NO_MEMORY.
int coverage_make(struct coverage *out, const struct fleet *f, const struct covered_node *nodes,
                  int n, struct err *err);
void coverage_fini(struct coverage *c);
#define CLEANUP_COVERAGE CLEANUP(coverage_fini)

// The nodes without a run that counts; NULL: there are none.
const struct covered_class *coverage_without_run(const struct coverage *c);
// The age that `percent` of the class's newest runs do not exceed, ms; -1: it has none.
int64_t covered_class_age(const struct coverage *c, const struct covered_class *k, int percent);
// The member "staleness_s": median, p90, p99 and max of these ages; of all classes if `k` is NULL.
void coverage_write_staleness(const struct coverage *c, const struct covered_class *k,
                              struct jsonw *w);

// SPDX-License-Identifier: Apache-2.0
// What was measured between the nodes of this machine: chosen from the stored runs, for its
// topology.
#pragma once
#include "analysis/stats/node_costs.h"
#include "core/node/machine.h"
#include "core/store/store.h"

enum {
    MEASURED_RUNS_MAX = 3,   // of latency, of all pairs, of bandwidth
    MEASURED_RUNS_TRIED = 8, // of each benchmark, newest first, until a cell counts
};

struct measured_run {
    struct run run; // owned
    struct node_cost_tally tally;
    bool of[NODE_COST_KINDS]; // the quantities that are taken from it
};

struct measured_nodes {
    struct node_costs costs;
    int n_runs;
    struct measured_run runs[MEASURED_RUNS_MAX];
};

// `which` is "last", or numbers of runs, "17" or "17,18". Of a quantity that several have, the
// first named counts. "last" takes the newest run of matrix, of latency and of bandwidth that this
// node measured itself and of which a cell counts. Errors are on the member "measured":
// ERR_INVALID: no number; ERR_NOT_FOUND: no such run, or "last" found none; ERR_CONFLICT: the run
// did not succeed, is of another machine, has no axis of nodes, or no cell of it counts.
int measured_nodes_load(struct store *s, const struct machine *m, const char *which,
                        struct measured_nodes *out, struct err *err);
void measured_nodes_fini(struct measured_nodes *n);

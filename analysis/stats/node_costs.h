// SPDX-License-Identifier: Apache-2.0
// What memory costs from node to node: the cells of one or several runs, pooled by the node of the
// CPU and the node of the memory. Only cells count that are verified and undisturbed. Pure.
//
// Verified: the rank stayed on its CPU, and 99 % or more of its pages were found where they were
// requested. Undisturbed: the cell rests on undisturbed samples, so not on a single sample while
// others were disturbed. What a run does not say of a cell is not assumed.
#pragma once
#include "model/matrix.h"
#include "model/record.h"
#include "model/spec.h"
#include "model/topology.h"

enum node_cost_kind {
    NODE_COST_LATENCY,    // idle
    NODE_COST_CONCURRENT, // latency while all ranks chase at once
    NODE_COST_TRIAD,      // bandwidths, in the order in which one stands for all
    NODE_COST_COPY,
    NODE_COST_READ,
    NODE_COST_WRITE,
    NODE_COST_ADD,
    NODE_COST_SCALE,
    NODE_COST_KINDS
};

struct node_cost_info {
    const char *name;   // "latency_ns", as JSON has it
    const char *words;  // "idle latency"
    const char *kernel; // matrix of the bandwidth benchmark; NULL: a latency
};
extern const struct node_cost_info node_cost_kinds[NODE_COST_KINDS];

struct node_cost {    // NaN: none counts
    double v, lo, hi; // ns, or MB/s of 1,000,000 bytes
};

struct node_costs {
    const struct topology *topology;       // borrowed
    struct node_cost *of[NODE_COST_KINDS]; // nodes x nodes, by index; NULL: not measured; owned
};

struct node_cost_run { // borrowed
    enum benchmark_id benchmark;
    const struct matrix *matrices;
    int n_matrices;
    const struct rank_info *ranks; // NULL: not known
    int n_ranks;
    int64_t found_bytes; // cache beyond those of the topology; 0: none was found
    int64_t size_bytes;  // that were requested; 0: chosen beyond the caches, or not known
};

// What became of the cells that have a value.
struct node_cost_tally {
    int counted, unverified, disturbed;
    int cached;    // of a working set that caches may hold
    int elsewhere; // of interleaved memory, or of a node that the topology does not have
    bool no_nodes; // no matrix is of nodes
};

void node_costs_init(struct node_costs *c, const struct topology *t);
void node_costs_fini(struct node_costs *c);
// Adds the quantities that *c does not have yet. ERR_NO_MEMORY is the only error.
int node_costs_add(struct node_costs *c, const struct node_cost_run *run,
                   struct node_cost_tally *tally, struct err *err);
// By indices of the topology's nodes; NaN: not measured.
struct node_cost node_cost_at(const struct node_costs *c, enum node_cost_kind kind, int initiator,
                              int target);
bool node_cost_more_is_better(enum node_cost_kind kind);
// The latency or bandwidth that stands for the others: the first kind that was measured;
// NODE_COST_KINDS: none.
enum node_cost_kind node_costs_latency(const struct node_costs *c);
enum node_cost_kind node_costs_bandwidth(const struct node_costs *c);
int node_costs_pairs(const struct node_costs *c, enum node_cost_kind kind); // with a value

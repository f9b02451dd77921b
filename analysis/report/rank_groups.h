// SPDX-License-Identifier: Apache-2.0
// Ranks that behave differently inside a NUMA node, NUMA nodes that differ from one another, and
// sizes at which the usual order of two ranks turns round. Pure.
//
// Ranks: at the sizes from `first_col` on, each value against its node's mean (logs). A permutation
// test over the machine (ranks shuffled inside node and size, fixed seed) asks whether ranks differ
// at all; only then are slow ranks named: GROUPS_SLOW or more above the node's fastest at the
// median size, and slower at three of four sizes. Large tables get fewer shuffles, and the largest
// are tested at every second or third size.
#pragma once
#include <stdbool.h>

#include "model/matrix.h"
#include "model/record.h"
#include "model/topology.h"

#define GROUPS_SLOW 1.10
enum {
    GROUPS_RANKS_MAX = 1024,
    GROUPS_NODES_MAX = 64,
    GROUPS_STEPS_MAX = 20000000, // values that a test moves, 0.2 s: 1,999 shuffles of 10,000, 399
                                 // of 1,024 ranks at 48 sizes
};

struct slow_rank {
    int64_t rank, fast_rank, node; // fast_rank: fastest of the node
    double typical;                // ratio to it at the median size
    double worst;
    int64_t worst_bytes;
    int row, fast_row;
};

enum nodes_verdict { NODES_UNKNOWN, NODES_ALIKE, NODES_DIFFER };

// What distinguishes slow ranks from the others of their nodes.
enum slow_common {
    COMMON_NONE,
    COMMON_NOT_LAST,  // all but the last `k` of each node
    COMMON_NOT_FIRST, // all but the first `k`
    COMMON_LAST,      // the last `k`
    COMMON_FIRST,
    COMMON_ODD, // every second one, beginning with the second
    COMMON_EVEN,
    COMMON_L3,     // those on the `k`th (from 0) last-level cache of their node
    COMMON_SOCKET, // those on socket `k`
    COMMON_NODE,   // those of node `k`
    SLOW_COMMONS
};

struct groups {
    bool known; // placement recorded, two ranks in a node, three sizes: slow ranks can be named
    double p;   // of the permutation test; followed only until it is significantly above the level
    int64_t steps; // values that the test moved
    int64_t from_bytes;
    int n;
    struct slow_rank slow[GROUPS_RANKS_MAX];
    struct {
        enum slow_common what; // COMMON_NONE: nothing distinguishes nine of ten ranks
        int64_t k;
        int right, ranks; // it is right of so many, of the ranks of nodes that have two or more
    } common;
    // Of all nodes: from three sizes on, each size is a repetition; with fewer, each rank is.
    enum nodes_verdict nodes;
    int n_nodes, n_sizes;
    double node_spread_percent; // largest typical difference of a node from the mean of nodes; NaN:
                                // not computed
    int64_t node_worst;         // -1: as above
    double within_percent; // typical spread inside a node, for the same sizes; NaN: not computed
};

// `topology` may be NULL: not known.
int groups_find(struct groups *out, const struct matrix *m, const struct rank_info *ranks,
                int n_ranks, const struct topology *topology, int first_col, struct err *err);

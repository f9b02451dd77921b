// SPDX-License-Identifier: Apache-2.0
// Memory that a run measures, as one number: a node's (its OS number), each rank's own (-1), or
// memory whose pages are interleaved over several nodes. Interleaved in turn, or by the kernel's
// weights of the nodes (MPOL_INTERLEAVE, MPOL_WEIGHTED_INTERLEAVE). As text:
//
//     0,2      all      interleave:0-3      weighted:0-1      weighted:0=3,1=1
//     all+interleave:all+weighted:0-1
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    TARGETS_MAX = 64,  // of a run
    TARGET_NODES = 28, // nodes that memory can be interleaved over are numbered below this
    TARGET_LABEL_ROOM = 96,
    TARGET_WEIGHT_MAX = 255, // as the kernel's
};

bool target_is_interleaved(int64_t target);
bool target_is_weighted(int64_t target);
int target_interleaved(unsigned nodes, bool weighted); // `nodes`: a bit for each
unsigned target_nodes(int target);                     // of interleaved memory
bool target_has(int target, int node);                 // part of the memory is on the node
// The part of its pages that is on the node, 0…1. `weights` of the nodes below TARGET_NODES; NULL
// or 0: 1.
double target_share(int target, int node, const int *weights);
// "3", "own", "interleave:0-3"
void target_label(int64_t target, char *out, size_t room);
// The same in a sentence: "node 3", "nodes 0-3, interleaved", "nodes 0-1, interleaved by weight"
void target_words(int64_t target, char *out, size_t room);
// The same as part of a metric's name: "n3", "i0-3", "w0-1_4"
void target_metric(int64_t target, char *out, size_t room);

struct target_list {
    bool all; // all nodes, besides those in the list
    int n;
    int list[TARGETS_MAX];     // nodes, ascending; then interleaved memory, without nodes: over
                               // all
    int weights[TARGET_NODES]; // requested of weighted memory; 0: the kernel's own
};

// ERR_INVALID on `member`.
int targets_read(struct target_list *out, const char *text, const char *member, struct err *err);
// The whole text is one interleaved target: a policy for the memory of ranks.
bool target_is_policy(const char *text);
// The nodes of a machine, as whoever settles a list knows them.
struct target_machine {
    int n;              // nodes that "all" means
    const int *nodes;   // by OS number
    const int *weights; // [TARGET_NODES] of the kernel; all 0: it has none
    // May memory of this node be measured? ERR_INVALID on `member` says why not. Node -1: there is
    // none that "all" could mean.
    int (*check)(const void *ctx, int node, const char *member, struct err *err);
    const void *ctx;
};
// Interleaved memory without nodes gets all. Its nodes are there, and the weights that the list
// requests are those of the kernel. ERR_INVALID on `member`.
int target_settle(int *target, const struct target_list *l, const struct target_machine *m,
                  const char *member, struct err *err);
// The same for each of the list, and for "all": what is measured, each memory once. `out` has
// TARGETS_MAX places.
int targets_settle(int *out, int *n, const struct target_list *l, const struct target_machine *m,
                   const char *member, struct err *err);
// The text of a list without `all`.
void targets_write(const int *list, int n, char *out, size_t room);

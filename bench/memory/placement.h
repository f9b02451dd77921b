// SPDX-License-Identifier: Apache-2.0
// Placement: what was requested (by numactl or the launcher, seen as this process's affinity and
// memory policy) and what was got (asked of the kernel page by page). The bench's one door to
// libnuma.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/record.h"

struct place {
    int cpu_wanted; // the one CPU in the affinity mask; -1: several
    int cpus;       // in the mask
    bool one_core;  // all of them are threads of one core
    // A node, or interleaved over several (model/target.h).
    int mem_wanted; // that of the memory policy, or requested; -1: another policy, or none
    int mem_node;   // where the arena shall be: mem_wanted, or the node of the CPU; -1: not known
    bool numa;      // the kernel knows nodes
};

// Of memory that was looked up: the share that was where it has to be, and the node with most of
// it.
struct placed {
    double share;
    int node; // -1: not known
};

void place_wanted(struct place *p);
int place_node_of_cpu(int cpu); // -1: not known
int place_node_count(void);     // configured nodes
// Those with memory that we may have, in order, at most `most`. Returns how many.
int place_nodes(int *nodes, int most);
void place_nodes_text(char *out, size_t room); // the same as "0-3,8"
bool place_node_has_memory(int node);          // that we may have
// What keeps us from having it: "is not there", "has no memory", "is outside the cpuset"; NULL:
// nothing does.
const char *place_node_fault(int node);

// Binds this process to a CPU and its memory to a node; -1: leaves it as it is, and for the node
// local allocation. ERR_USAGE on "bind".
int place_process(int cpu, int node, struct err *err);

// Reserved huge pages are reserved when they are mapped, where the process's own policy allows:
// this maps as if that policy were the requested node. As mmap.
void *place_map_huge(const struct place *p, uint64_t bytes, uint64_t page);

// The kernel's weights of the nodes below TARGET_NODES; all 0: it has none.
void place_weights(int weights[]);
// Of the pages counted in `got`, the share that is where interleaved memory has to be. `unit`:
// base pages that the kernel gives at once, of which no node has exactly its part.
double place_interleaved_share(const struct rank_info *got, int target, double unit);

// Binds untouched memory to p->mem_node explicitly. Memory with a policy of its own is left alone
// by automatic NUMA balancing. A requested node is binding; the CPU's own is preferred. False: the
// kernel refused (some containers): the policy of the process continues to apply.
bool place_bind(const struct place *p, void *memory, uint64_t bytes);

// Moves touched pages of `page` bytes to a node. ERR_UNAVAILABLE: the kernel refuses; a page that
// stays is no error, place_verify finds it.
int place_move(const void *memory, uint64_t bytes, uint64_t page, int node, struct err *err);

enum {
    PLACE_METHODS = 3, // move_pages, get_mempolicy, numa_maps
    PLACE_EXHAUSTIVE_PAGES =
        262144, // all pages up to 1 GiB of 4 KiB; of more, this many spread evenly
};

// Asks where pages of touched memory are; fills info's mem_node, mem_share, pages_checked,
// pages_total, mem_method and nodes. Falls back from move_pages over get_mempolicy to numa_maps.
void place_verify(const void *memory, uint64_t bytes, struct rank_info *info);
// The same without the first ways of asking, as where the kernel refuses them: 0…PLACE_METHODS.
void place_verify_from(int first, const void *memory, uint64_t bytes, struct rank_info *info);

// Memory of this process by node, from /proc/self/numa_maps, into info's nodes (process_kib), where
// more than is there. Returns for how many nodes info has no room. -1: not readable.
int place_usage(struct rank_info *info);
int place_usage_from(const char *maps, struct rank_info *info); // the same, from another file

// SPDX-License-Identifier: Apache-2.0
// What the texts of a spec stand for: bytes of "size" and pairs of ranks.
#pragma once
#include "base/memory.h"
#include "model/matrix.h"
#include "model/spec.h"

// What "auto" stands for, beside a last-level cache of so many bytes: four of them, at least 64
// MiB.
uint64_t spec_auto_bytes(uint64_t llc);
// The larger of a rank's two last caches.
uint64_t rank_cache_bytes(const struct rank_cache *c);
// What "auto" stands for beside the largest cache that a rank has.
uint64_t spec_auto_bytes_of(const struct rank_cache *caches, int ranks);
// The CPUs of load_cpus, of which none may have a rank, because a loader would take turns with it;
// `ranks`: the CPU of each. ERR_INVALID on "load_cpus". free(*ids)
int spec_load_cpus(const struct spec *s, const int *ranks, int n_ranks, int **ids, int *n,
                   struct err *err);
// Of the CPUs that make a load, how many share the last-level cache that fewest share; `llc` has
// the cache of each, -1 if it is not known.
int spec_load_sharing(const int *llc, int n);
// Working set of each loader, where all that share a cache have `together` bytes: its part, but as
// many as four times a private cache, so that each moves memory and not its own cache.
uint64_t spec_loader_bytes(uint64_t together, int sharing, uint64_t private_bytes);
// The private cache of a loader: the second level (0: not known) where it is not the last one.
uint64_t spec_private_bytes(uint64_t l2, uint64_t llc);
// Bytes that one rank has at once on one node, as the size says; `auto_bytes` stands for "auto". 0:
// the benchmark has no size.
uint64_t spec_bytes_per_rank(const struct spec *s, uint64_t auto_bytes);
bool spec_pages_reserved(enum pages pages); // huge pages that an administrator has reserved
// The size of the pages that memory of so many bytes gets, and the bytes in whole pages of it. A
// working set below one transparent huge page gets base pages, unless that page has 2 MiB.
uint64_t spec_page_bytes(enum pages pages, const struct page_sizes *sizes, uint64_t bytes);
uint64_t spec_page_round(enum pages pages, const struct page_sizes *sizes, uint64_t bytes);
// Whether the smallest working set, and the locality, have room for the 8 links that a chain needs,
// each on a line of its own. ERR_INVALID.
int spec_check_links(const struct spec *s, uint64_t smallest, uint64_t line, struct err *err);
// The operations that were chosen, as values of the axis; returns how many.
int spec_operations(const struct spec *s, int64_t list[AXIS_OPERATIONS]);
// The first of `n` nodes that is neither of the two; -1: there is none.
int spec_third_node(const int *nodes, int n, int first, int second);
// "0-1,0-4" as pairs of ranks {0,1,0,4}, each once; at most SPEC_PAIRS_MAX. ERR_INVALID on "pairs".
int spec_pairs(const char *text, int pairs[][2], int *n, struct err *err);

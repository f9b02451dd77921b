// SPDX-License-Identifier: Apache-2.0
// Ranks by number: what each reported of its place. Made once where many are looked up. Pure.
#pragma once
#include "model/matrix.h"
#include "model/record.h"
#include "model/topology.h"

struct place {
    int64_t rank;
    const struct rank_info *info; // borrowed
    const struct topo_cpu *cpu;   // borrowed; NULL: not known
};

struct places {
    int n;
    struct place *list; // ascending; of ranks with one number the first; owned
};

// `ranks` and `topology` may be NULL: not known. ERR_NO_MEMORY is the only error.
int places_init(struct places *p, const struct rank_info *ranks, int n,
                const struct topology *topology, struct err *err);
void places_fini(struct places *p);
const struct rank_info *places_info(const struct places *p, int64_t rank); // NULL: none
const struct topo_cpu *places_cpu(const struct places *p, int64_t rank);   // NULL: not known
// Memory node of a rank, else its CPU's node; -1 if not known.
int64_t places_node(const struct places *p, int64_t rank);
// The kind of the rank's core, an index into the topology's kinds, the weakest first; -1: not
// known.
int places_kind(const struct places *p, int64_t rank);
// The strongest kind among the ranks `rows`; -1: none is known. `several`: there are others too.
int places_strongest(const struct places *p, const struct axis *rows, bool *several);
// How many of the ranks `rows` are behind one last-level cache, the least crowded one that has any;
// 1 where that is not known. `counts`: room for one a cache.
int places_sharers(const struct places *p, const struct axis *rows, int n_caches, int *counts);

// SPDX-License-Identifier: Apache-2.0
// How many ranks share a cache: the threads of a core share its caches, and the cores of a module
// share a second level. Pure.
#pragma once
#include "model/record.h"
#include "model/topology.h"

// Where ranks are.
struct cache_users {
    const struct topology *topology; // borrowed, as `ranks`; NULL: not known
    const struct rank_info *ranks;
    int n_ranks;
    int64_t found_bytes; // cache beyond those of the topology; 0: none was found
};

// Of all caches of a level, the most ranks with numbers below `end` that share one. 0: not known.
int cache_sharers(const struct cache_users *users, int level, int64_t end);

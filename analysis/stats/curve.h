// SPDX-License-Identifier: Apache-2.0
// Steps of the latency curve, and the cache that ran out at each. A step is where the ranks climb
// together and the curve never comes back: the typical latency (median over ranks) grows by
// CURVE_FACTOR or more to the next size, at least CURVE_CLIMBERS of the ranks climb, and nothing
// later is below or earlier above. A rank climbs if its own latency grows by CURVE_CLIMB, or to
// more than any rank had at the smaller size. Of one rank the intervals must not meet. Pure.
#pragma once
#include <stdbool.h>

#include "model/matrix.h"
#include "model/record.h"
#include "model/topology.h"

enum { CURVE_STEPS_MAX = 16, CURVE_MANY = 10 };
#define CURVE_FACTOR 1.4
#define CURVE_CLIMB 1.2
#define CURVE_CLIMBERS 0.9

enum curve_match { CURVE_UNKNOWN, CURVE_CACHE_FULL, CURVE_CACHE_EXCEEDED };

struct curve_step {
    int col; // between columns col and col + 1
    int64_t from_bytes, to_bytes;
    double from, to; // medians over ranks
    double factor;
    int climbing, ranks;    // of those that have a value at both sizes
    enum curve_match match; // FULL: the step's larger size is the capacity or passes it; EXCEEDED:
                            // its smaller size is the capacity already, nothing is left of it
    int level;              // of the cache
    int64_t cache_bytes;    // of one
    int sharers;            // ranks that fill one together: each has cache_bytes / sharers of it
};

struct curve {
    int n;
    struct curve_step steps[CURVE_STEPS_MAX];
    struct curve_step largest; // growth from one size to the next, a step or not; factor NaN: none
};

// What may be matched to steps; all of it may be zero: steps are found, not matched.
struct curve_machine {
    const struct topology *topology; // of the run's own time; NULL: not known
    const struct rank_info *ranks;   // NULL: not known
    int n_ranks;
    bool together;       // all ranks at once: those behind one last-level cache share it
    int64_t found_bytes; // cache beyond those of the topology, one a node; 0: none was found
};

// A last-level cache that several ranks fill together runs out when each has reached its share: the
// capacity over the number of ranks behind it (of the least crowded, because nearly all must
// climb). ERR_NO_MEMORY is the only error.
int curve_find(struct curve *out, const struct matrix *m, const struct curve_machine *machine,
               struct err *err);
// First column after the last step; 0 without steps.
int curve_plateau(const struct curve *c);

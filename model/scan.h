// SPDX-License-Identifier: Apache-2.0
// What a scan has: its working sets, and its matrices. Those of deviations are of per cent of the
// peers' median, in time: above 100 is slower. `n` is the number of repetitions (0: it has no
// peers, nothing was judged), `sd` what the peers differ by. A unit is odd if and only if `lo` is
// above 100: of all others, the interval contains it. `converged` is 0 where a unit deviated, and
// too few visits confirmed it: whether it is odd is not known.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "model/matrix.h"
#include "model/spec.h"

#define SCAN_LATENCY "latency"
#define SCAN_BANDWIDTH "bandwidth"
#define SCAN_TRANSFER "transfer"
#define SCAN_OF_CORE "core"
#define SCAN_OF_L3 "l3"
#define SCAN_OF_NODE "node"
#define SCAN_OF_PAIR "pair"

enum {
    SCAN_PAIRS_MOST = 4096, // as many rows as an import may have
    SCAN_LINES = 8,         // a pair takes turns with them: the home of a line matters
    SCAN_VISITS_LEAST = 4,  // of fewer, all beyond the limit are no proof (odd_is_open)
    SCAN_LONGER = 3,        // times as long as in the broad part is sampled what confirms
};

// A part of the smallest second-level cache (0: not known), so that cores that share one have room.
uint64_t scan_l2_bytes(uint64_t l2);
// Of each rank, so that all ranks behind a last-level cache have four times as much together.
uint64_t scan_memory_bytes(const struct rank_cache *caches, int ranks);
bool scan_has_deviations(const struct matrix *m);
bool scan_is_odd(const struct cell *deviation);
bool scan_is_unconfirmed(const struct cell *deviation);

// SPDX-License-Identifier: Apache-2.0
// All ranks have the same working sets, so that they can be compared.
#include "model/scan.h"

#include <string.h>

enum {
    L2_PART = 4, // four cores share one on some machines
    L2_USUAL = 1 << 20,
    L2_LEAST = 64 << 10, // above a first-level cache
    LLC_TIMES = 4,
    MEMORY_LEAST = 8 << 20, // several times a private cache
    WHOLE = 2 << 20,        // huge pages
};

uint64_t scan_l2_bytes(uint64_t l2)
{
    uint64_t part = (l2 ? l2 : L2_USUAL) / L2_PART;
    return part < L2_LEAST ? L2_LEAST : part;
}

uint64_t scan_memory_bytes(const struct rank_cache *caches, int ranks)
{
    uint64_t most = MEMORY_LEAST;
    for (int r = 0; r < ranks; r++) {
        uint64_t sharers = 0, on_node = 0;
        for (int k = 0; k < ranks; k++) {
            sharers += k == r || (caches[r].llc >= 0 && caches[k].llc == caches[r].llc);
            on_node += caches[k].node == caches[r].node;
        }
        uint64_t bytes = LLC_TIMES * caches[r].llc_bytes / sharers,
                 beyond = LLC_TIMES * caches[r].found_bytes / on_node;
        bytes = beyond > bytes ? beyond : bytes;
        most = bytes > most ? bytes : most;
    }
    return (most + WHOLE - 1) / WHOLE * WHOLE;
}

bool scan_has_deviations(const struct matrix *m)
{
    return strcmp(m->quantity, "deviation") == 0;
}

bool scan_is_odd(const struct cell *deviation)
{
    return deviation->v[CELL_LO] > 100;
}

bool scan_is_unconfirmed(const struct cell *deviation)
{
    return deviation->v[CELL_CONVERGED] == 0 && !scan_is_odd(deviation);
}

// SPDX-License-Identifier: Apache-2.0
// What the counters say of the cells of a run: confirmed, or not what they claim. Rank 0 collects
// it while it reports cells, and reports it in two conditions at most.
#pragma once
#include "bench/session/session.h"

struct proofs {
    int cells, confirmed, wrong;
    double beyond_lo, beyond_hi; // misses a hop of cells beyond the last-level cache
    double within_hi;            // of cells within it
    double walks_hi, ghz_lo, ghz_hi;
    bool walks;      // some cell has page walks: a CPU may have no event for them
    char first[200]; // the first cell that is not what it says, and why
};

// Of a rank's cell with a working set of so many bytes: sets its `confirmed`. `shared`: all ranks
// were at work.
__attribute__((format(printf, 7, 8))) void proofs_add(struct proofs *p, const struct session *s,
                                                      int rank, struct cell *cell, uint64_t bytes,
                                                      bool shared, const char *fmt, ...);
// What the condition `counters` says of cells that are confirmed.
void proofs_text(const struct proofs *p, char *out, size_t room);
int proofs_report(const struct proofs *p, struct session *s, struct err *err);

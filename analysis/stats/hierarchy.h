// SPDX-License-Identifier: Apache-2.0
// What the matrices of the hierarchy benchmark say of a core and its memory: the terms that a
// load's latency is made of. Pure.
#pragma once
#include <stdbool.h>

#include "analysis/stats/levels.h"
#include "analysis/stats/rank_places.h"
#include "model/matrix.h"

enum { HIERARCHY_STRIDES_MAX = 16 };

// Translations: levels of the TLB, whose capacities are pages instead of bytes.
struct reach {
    int n;             // levels of the TLB
    int64_t pages[2];  // that each holds
    double miss_ns[2]; // what a load takes more that misses it; of the last level this is a walk
};

// Of the interval of a value, in its unit: medians over the ranks, as the value is. NaN: a rank has
// none.
struct hierarchy_ends {
    double lo, hi;
};

struct hierarchy {
    double cycle_ns;      // of the core; NaN: not known, as all numbers here
    struct levels levels; // caches, and memory as the last
    int64_t rise_bytes;   // from here on memory takes more, by too little for a level; 0: nowhere
    double rise_ns;       // so much
    struct reach base, huge; // base pages; huge pages
    double memory_ns;        // on the node where it is fastest for a rank, beyond the caches
    double hop_ns;           // what memory of another node takes more; median over those and ranks
    double misses;           // loads of memory that a core has under way at once
    int misses_chains;       // so many chains are enough for 95 % of that
    double access_ns;        // of memory, with as many under way
    int n_strides;
    struct {
        int64_t bytes;
        double ns, gain;            // of a load; random order takes so many times as long
        struct hierarchy_ends ends; // of ns
    } strides[HIERARCHY_STRIDES_MAX];
    struct hierarchy_ends cycle_ends, memory_ends, access_ends;
    int64_t largest_bytes; // working set
    double largest_ns;     // there: median of the last octave
    double usual_share;    // of that, at the usual working set
    int64_t enough_bytes;  // the smallest working set from which on 95 % of that are reached
};

// Capacities within a step of the curve, and half a one, are the same.
#define HIERARCHY_SAME 1.5

// Of one row of the matrices (a rank), or with row -1 of the medians over all rows. ERR_NO_MEMORY
// is the only error: what the matrices do not have is NaN or 0.
int hierarchy_find(struct hierarchy *out, const struct matrix *list, int n, int row,
                   struct err *err);
// Of the medians over these rows; NULL: all.
int hierarchy_find_of(struct hierarchy *out, const struct matrix *list, int n, const bool *rows,
                      struct err *err);
// The rows that count where ranks are on several kinds of cores: those of the strongest. A median
// over kinds is that of no core. *rows is the caller's; NULL: all count.
int hierarchy_rows(bool **rows, const struct matrix *list, int n, const struct places *places,
                   struct err *err);
// Sets usual_share, of the working set that other benchmarks take.
int hierarchy_find_usual(struct hierarchy *h, const struct matrix *list, int n, const bool *rows,
                         int64_t usual, struct err *err);
// Whether the step of the curve at so many bytes is where translations of base pages run out. They
// have `base_page` bytes; 0: not known, the usual.
bool hierarchy_is_reach(const struct hierarchy *h, int64_t bytes, uint64_t base_page);
// The largest cache of the curve: its capacity in bytes. 0: none, or the curve is shorter than four
// times it or four times `listed`, the last-level cache of the kernel's list.
int64_t hierarchy_cache_bytes(const struct hierarchy *h, int64_t listed, uint64_t base_page);
// What stands for that cache where the kernel does not list it: rounded up to 2^n or 1.5 * 2^n, so
// that another run gives the same. 0: it lists one that is about as large.
int64_t hierarchy_beyond_bytes(const struct hierarchy *h, int64_t listed, uint64_t base_page);

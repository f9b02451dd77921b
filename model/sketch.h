// SPDX-License-Identifier: Apache-2.0
// How the samples of a cell are distributed, in a few bytes: how many fell into each of up to 64
// bins between the smallest and the largest. All bins have the same ratio of upper to lower edge.
// Percentiles hide two levels; this shows them. Of undisturbed samples only: the counts add up to
// the cell's n, and the lowest edge is its min. docs/METHOD.md has the method, docs/STORAGE.md the
// size. Pure.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    SKETCH_BINS_MAX = 64,  // a power of two, like every number of bins
    SKETCH_BYTES_MAX = 31, // of the packed form of very many samples
    SKETCH_TEXT_MAX = 800, // of the text: an edge and 64 counts of at most 10 digits
};

// The packed form, as it is stored. It leaves out what the cell has: n and min.
struct sketch {
    unsigned char size; // bytes; 0: there is none
    unsigned char bytes[SKETCH_BYTES_MAX];
};

struct histogram {
    double low, high; // edges of the whole, in the matrix's unit; above 0; equal: one bin
    int64_t n;        // of all counts
    int n_bins;
    int64_t counts[SKETCH_BINS_MAX];
};

// From samples in any order. Up to 128 samples take at most 11 bytes, and twice as many 4 more.
// What does not fit gets fewer bins. No sketch (size 0) of fewer than two, or if the smallest is
// not above 0 in thousandths.
void sketch_of(struct sketch *s, const double *values, int n);

// `n` and `low` (the cell's min) are those of its cell. False: there is none, or it is damaged.
bool sketch_read(struct histogram *h, const struct sketch *s, double n, double low);

// "131.904 3 12 9 -3 1": the highest edge, then counts from the lowest bin on; -3 are three bins
// without samples.
void sketch_write_text(const struct histogram *h, struct buf *out);
// The same back, of a cell with `n` and `low`. ERR_INVALID (member "distribution"). The number of
// counts is a power of two; they add up to n. Bins are joined until the sketch has room.
int sketch_from_text(struct sketch *s, const char *text, double n, double low, struct err *err);

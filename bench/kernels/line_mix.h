// SPDX-License-Identifier: Apache-2.0
// A mix of reads and writes, counted in cache lines: every line is read, and some are modified in
// place. A modified line was read first, so no CPU can skip that read, and the ratio of the
// memory's reads to its writes is exact. Pure: works on memory that the caller has placed.
#pragma once
#include <stddef.h>

struct line_mix {
    double *base;  // borrowed, aligned to a line
    size_t words;  // doubles in a line, a multiple of 8
    size_t period; // every so many lines one is modified, from line 0
};

// Reads the lines first … last-1 and adds one to each word of those that are modified. Returns the
// sum of the others: use it, so that nothing is optimised away.
double line_mix_pass(const struct line_mix *m, size_t first, size_t last);
// How many of the lines first … last-1 are modified.
size_t line_mix_writes(const struct line_mix *m, size_t first, size_t last);

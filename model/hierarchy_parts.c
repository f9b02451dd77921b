// SPDX-License-Identifier: Apache-2.0
// Series by octaves, a list of numbers of chains, and powers of two.
#include "model/hierarchy_parts.h"

#include <math.h>
#include <stddef.h>

#include "base/cleanup.h"

enum {
    CURVE_PER_OCTAVE = 4,    // a capacity is found within a step: 19 %
    BASE_PAGES_FIRST = 16,   // below the smallest first-level TLB
    BASE_PAGES_MOST = 16384, // four times the largest second-level TLB known
    PAGES_PER_OCTAVE = 8,    // entries are found within 9 %
};

static void column_add(struct hierarchy_columns *c, enum hierarchy_part part, int64_t value)
{
    int n = c->n[part];
    if (n < HIERARCHY_COLUMNS_MAX && (!n || value > c->value[part][n - 1]))
        c->value[part][c->n[part]++] = value;
}

// first, first * 2^(1/per_octave) … most, in multiples of `unit`.
static void series_add(struct hierarchy_columns *c, enum hierarchy_part part, uint64_t first,
                       uint64_t most, uint64_t unit, int per_octave)
{
    double step = exp2(1.0 / per_octave), at = (double)first;
    for (; at < (double)most * (1 - 1e-9); at *= step)
        column_add(c, part, (int64_t)((uint64_t)(at / (double)unit + 0.5) * unit));
    column_add(c, part, (int64_t)most);
}

void hierarchy_columns_make(struct hierarchy_columns *c, uint64_t bytes, uint64_t line,
                            uint64_t base_page, uint64_t huge_page)
{
    static const int chains[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                 11, 12, 13, 14, 15, 16, 20, 24, 28, PARALLEL_CHAINS_MAX};
    uint64_t pages = bytes / 4 / (base_page + line), huge = bytes / (huge_page + line);
    *c = (struct hierarchy_columns){0};
    pages = pages < BASE_PAGES_MOST ? pages : BASE_PAGES_MOST;
    series_add(c, PART_CURVE, CURVE_FIRST, bytes, line, CURVE_PER_OCTAVE);
    series_add(c, PART_BASE_PAGES, BASE_PAGES_FIRST, pages, 1, PAGES_PER_OCTAVE);
    series_add(c, PART_PACKED, BASE_PAGES_FIRST, pages, 1, PAGES_PER_OCTAVE);
    huge = huge ? huge : 1; // 512 MiB each, with base pages of 64 KiB
    series_add(c, PART_HUGE_PAGES, huge < HUGE_PAGES_FIRST ? 1 : HUGE_PAGES_FIRST, huge, 1,
               PAGES_PER_OCTAVE);
    for (size_t i = 0; i < COUNT_OF(chains); i++)
        column_add(c, PART_PARALLEL, chains[i]);
    for (uint64_t stride = line; stride <= HIERARCHY_STRIDE_MOST; stride *= 2)
        column_add(c, PART_STRIDE, (int64_t)stride);
    column_add(c, PART_CYCLE, 1);
}

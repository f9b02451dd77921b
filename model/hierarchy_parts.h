// SPDX-License-Identifier: Apache-2.0
// The parts of the benchmark `hierarchy`, one a matrix, and the columns of each: numa_bench
// measures them, and the estimate of a plan counts them.
#pragma once
#include <stdint.h>

enum hierarchy_part {
    PART_CURVE,
    PART_BASE_PAGES,
    PART_PACKED,
    PART_HUGE_PAGES,
    PART_PARALLEL,
    PART_STRIDE,
    PART_CYCLE,
    PART_NODES, // its columns are the targets
    HIERARCHY_PARTS
};

enum {
    HIERARCHY_COLUMNS_MAX = 256,
    CURVE_FIRST = 4096,           // bytes
    HUGE_PAGES_FIRST = 8,         // pages; 1 where the memory holds fewer
    PARALLEL_CHAINS_MAX = 32,     // loads that a core has under way: 10 to 30 today
    HIERARCHY_STRIDE_MOST = 4096, // no prefetcher passes a base page
};

struct hierarchy_columns {
    int n[HIERARCHY_PARTS];
    int64_t value[HIERARCHY_PARTS][HIERARCHY_COLUMNS_MAX]; // bytes, pages or chains; rising
};

// Of a curve that ends at `bytes`; lines and pages in bytes.
void hierarchy_columns_make(struct hierarchy_columns *c, uint64_t bytes, uint64_t line,
                            uint64_t base_page, uint64_t huge_page);

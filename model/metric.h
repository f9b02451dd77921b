// SPDX-License-Identifier: Apache-2.0
// A number that sums up a run, so that runs can be lined up: name, unit, value, 95 % interval.
#pragma once

// Of one run: 24 nodes x 24 nodes x 6 kernels of bandwidth are 3,456, and room. 96 bytes each.
enum { METRICS_MAX = 4096 };

struct metric {
    char name[64]; // "latency.local.dram.median_ns"; docs/METRICS.md lists them
    char unit[8];  // "ns", "MB/s", "" for ratios
    double value;  // finite, above 0
    double lo, hi; // 95 % interval for a repeat; NaN: not known
};

// SPDX-License-Identifier: Apache-2.0
// A number that sums up a run, so that runs can be lined up: name, unit, value, 95 % interval.
#pragma once

enum { METRICS_MAX = 512 }; // of one run: 8 nodes x 8 nodes x 6 kernels of bandwidth, and room

struct metric {
    char name[64]; // "latency.local.dram.median_ns"; docs/METRICS.md lists them
    char unit[8];  // "ns", "MB/s", "" for ratios
    double value;  // finite, above 0
    double lo, hi; // 95 % interval for a repeat; NaN: not known
};

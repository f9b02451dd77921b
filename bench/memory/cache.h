// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a CPU's data caches (/sys/devices/system/cpu/cpuN/cache).
#pragma once
#include <stdint.h>

struct cache_info {
    uint64_t line_bytes; // 64 if not known
    uint64_t llc_bytes;  // of one last-level cache; SPEC_LLC_DEFAULT if not known
    uint64_t l2_bytes;   // of the second level; 0: not known
};

// What a CPU shares with others: numbers that are equal if they share it; -1: not known.
struct cpu_place {
    int core, llc, node, package;
    int kind; // equal numbers: cores with the same caches and, where the kernel says, capacity
};

enum { CACHE_LINE_MAX = 256 }; // bytes; of A64FX

// `root` stands before /sys: "" on this machine, a folder in tests.
struct cache_info cache_of(const char *root, int cpu);
struct cpu_place cache_cpu_place(const char *root, int cpu);

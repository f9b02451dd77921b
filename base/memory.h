// SPDX-License-Identifier: Apache-2.0
// How much memory there is to be had, now: on the machine, on a node, below the limits of our
// cgroup. Every function opens a few files of /proc and /sys, keeps nothing, and returns
// bytes, or MEMORY_UNKNOWN where the kernel does not say; none of them fails otherwise. `root`
// stands before /proc and /sys: "" on this machine, a folder in tests.
#pragma once
#include <stdint.h>

enum { MEMORY_UNKNOWN = -1 };

// Sizes of pages in bytes. `thp` is of transparent huge pages: 2 MiB on x86-64, on arm64 2, 32 or
// 512 MiB with base pages of 4, 16 or 64 KiB. `huge` is the default size of reserved huge pages.
struct page_sizes {
    uint64_t base, thp, huge;
};
extern const struct page_sizes page_sizes_usual; // 4 KiB, 2 MiB, 2 MiB
// Anonymous memory on transparent huge pages smaller than `thp` (multi-size THP, Linux 6.8), on the
// whole machine. MEMORY_UNKNOWN: the kernel has none or does not count them.
int64_t memory_small_huge_bytes(const char *root);
// Those of the kernel; what it does not say is the usual.
struct page_sizes memory_page_sizes(const char *root);

// The kernel's own estimate (MemAvailable): what can be had without swapping.
int64_t memory_available_bytes(const char *root);

// The weight of a node in weighted interleave. MEMORY_UNKNOWN: the kernel has none (Linux 6.9).
int memory_interleave_weight(const char *root, int node);

// All that node `node` (OS number) has now.
int64_t memory_node_total_bytes(const char *root, int node);

// Of node `node` (OS number): free, and half of the page cache and slabs that can be dropped. On a
// machine with one memory node it is the machine's number.
int64_t memory_node_available_bytes(const char *root, int node);

// Reserved huge pages of that size that are free on the node. MEMORY_UNKNOWN: the kernel has none
// of that size, or no such node.
int64_t memory_node_huge_bytes(const char *root, int node, uint64_t page_bytes);

// Room below the tightest limit of our cgroup and all above it (v1; v2: memory.max and
// memory.high, above which the kernel throttles); clean inactive page cache does not count as used.
// 0: it is full; MEMORY_UNKNOWN: no limit.
int64_t memory_cgroup_room_bytes(const char *root);

// Processes and threads that our cgroup and all above it still allow (pids.max).
// MEMORY_UNKNOWN: no limit.
int64_t cgroup_room_tasks(const char *root);

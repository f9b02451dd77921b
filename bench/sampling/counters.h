// SPDX-License-Identifier: Apache-2.0
// What the CPU counts while a chain is followed: cycles, instructions, misses of the last-level
// cache and walks of page tables, of this thread in user mode. They prove a result and are no
// condition for one: where the kernel, a container or a virtual machine has no counters, nothing
// is counted. What is not known is NaN.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/matrix.h"

enum counter { COUNTER_CYCLES, COUNTER_INSTRUCTIONS, COUNTER_MISSES, COUNTER_WALKS, COUNTERS };

// The two calls of the kernel; tests play them.
struct perf_event_attr;
struct counter_calls {
    int (*open)(struct perf_event_attr *event, int group); // as perf_event_open of this thread
    ssize_t (*read)(int fd, void *to, size_t bytes);
};
extern const struct counter_calls counter_kernel;

struct counters { // starts with counters_open
    const struct counter_calls *calls;
    int n;                        // that are open; 0: none
    int fd[COUNTERS];             // owned; the first leads the group
    enum counter which[COUNTERS]; // in the order of the group
};

struct counts {
    double v[COUNTERS]; // since an event was opened, or of a time between two readings
};

// Opens what there is. Returns how many; 0 is no error.
int counters_open(struct counters *c, const struct counter_calls *calls);
void counters_close(struct counters *c);
struct counts counters_read(const struct counters *c);
struct counts counts_between(const struct counts *from, const struct counts *to);

// Of the samples of a cell that count.
struct counted {
    struct counts sum;
    double hops;
};
void counted_add(struct counted *to, const struct counts *counts, double hops);
// The cell's misses, walks and cycles per hop. Where nothing was counted, or the counters stand
// still, they are NaN.
void counted_cell(const struct counted *c, struct cell *cell);

// Whether the misses fit a working set of so many bytes beside a last-level cache of which so many
// bytes are this rank's at most.
enum proof {
    PROOF_NONE,      // nothing is counted, or the size is between those that can be judged
    PROOF_CONFIRMED, // misses of memory beyond the cache, or none of a cache
    PROOF_CACHED,    // of a size beyond the cache, part of it comes from a cache
    PROOF_MISSED,    // of a size within the cache, part of it comes from memory
};
enum proof proof_of(double misses_per_hop, uint64_t bytes, uint64_t llc_bytes);

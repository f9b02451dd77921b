// SPDX-License-Identifier: Apache-2.0
// Load on the memory: a worker moves data block by block at a rate or as fast as it can; load_start
// gives one to each of some CPUs, in threads of this process.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/kernels/chain.h"
#include "bench/kernels/stream.h"
#include "model/spec.h"

struct worker {
    enum load_kind kind;
    struct stream_arrays arrays; // of the memory given
    struct chain chain;
    void *at;          // of the chase
    size_t next;       // element of the next block
    double rate;       // bytes a nanosecond; 0: as fast as it goes
    uint64_t begun_ns; // of the rate
    uint64_t ended_ns; // of a load on another CPU
    double due;        // bytes that the rate allows so far have been moved
    uint64_t moved;    // bytes, ever
    double sum;        // keeps reads from being optimised away
};

// `memory` is borrowed, at least 1 MiB; it is written to.
void worker_init(struct worker *w, enum load_kind kind, void *memory, uint64_t bytes,
                 uint64_t seed);
void worker_pace(struct worker *w, double mb_per_s); // 0: as fast as it goes
// Moves one block of a few 10 µs, then spins until the rate allows the next.
void worker_block(struct worker *w);

struct load;
struct load_report {
    int cpus;
    double mb_per_s; // of all together, from start to stop
    bool strayed;    // some thread was found elsewhere
};

// Threads on `cpus` ("3,5"), each with `bytes` on its own node. Returns when all are at work. NULL
// on failure.
struct load *load_start(enum load_kind kind, const char *cpus, uint64_t bytes, int64_t mb_per_s,
                        struct err *err);
struct load_report load_stop(struct load **load);       // and frees it
uint64_t load_demand(const char *cpus, uint64_t bytes); // of memory, of all together

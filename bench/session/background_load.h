// SPDX-License-Identifier: Apache-2.0
// Load on the memory: a worker moves data piece by piece at a rate or as fast as it can; load_start
// gives one to each of some CPUs, in threads of this process. Pieces are small, because a load of
// 10 % shall be one of 10 % at any moment, not full speed for a tenth of the time.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/kernels/chain.h"
#include "bench/kernels/line_mix.h"
#include "bench/kernels/stream.h"
#include "bench/session/pace.h"
#include "model/spec.h"

enum { WORKER_PIECE_BYTES = 4096 }; // moved at a time, at most

struct worker {
    enum load_kind kind;
    struct stream_arrays arrays; // of the memory given
    struct line_mix mix;         // of the same memory
    size_t lines;                // of the mix
    struct chain chain;
    void *at;          // of the chase
    size_t next;       // element or line of the next piece
    struct pace pace;  // since begun_ns
    uint64_t begun_ns; // of the pace
    uint64_t ended_ns; // of a load on another CPU
    uint64_t moved;    // bytes, ever
    double sum;        // keeps reads from being optimised away
};

// `memory` is borrowed, at least 1 MiB; it is written to.
void worker_init(struct worker *w, enum load_kind kind, void *memory, uint64_t bytes,
                 uint64_t seed);
void worker_pace(struct worker *w, double mb_per_s); // 0: as fast as it goes
void worker_piece(struct worker *w); // moves one, then spins until the next may begin

struct load;
struct load_report {
    int cpus;
    double mb_per_s; // of all together, from start to stop
    bool strayed;    // some thread was found elsewhere
    // Where its memory was. Shares of the pages that were on the nodes of its CPUs, at the start
    // and at the stop; NaN: not known.
    double share, share_after;
    bool bind_refused; // the process's policy applied
    char nodes[80];    // those with pages at the stop: "0-1"; "": not known
};

// Threads on `cpus` ("3,5"), each with memory on its own node: those that share a last-level cache
// have `together` bytes. Returns when all are at work. NULL on failure.
struct load *load_start(enum load_kind kind, const char *cpus, uint64_t together, int64_t mb_per_s,
                        struct err *err);
struct load_report load_stop(struct load **load);          // and frees it
uint64_t load_demand(const char *cpus, uint64_t together); // of memory, of all loaders

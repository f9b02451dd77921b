// SPDX-License-Identifier: Apache-2.0
// Several cores at once on one cache line: atomic operations, and locks.
//
//   fetch_add  adds 1 to a word
//   cas        adds 1 by load, compare and swap until it succeeds; a success is one operation
//   exchange   swaps a word
//   tas        test-and-set: exchanges a flag until it was free
//   ticket     takes a number and waits until it is served; both words are in one line
//   mcs        a queue: each waits on a line of its own, and is woken by the one before
// The locks are those of Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on
// Shared-Memory Multiprocessors" (ACM TOCS 9(1), 1991), without backoff. What a lock protects is a
// counter and the number of its last holder, in a line of their own. All waiting loops have the
// processor's hint for them. Nothing here waits for the kernel.
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/matrix.h"
#include "model/spec.h"

#define CONTENDED_LINE 256 // the longest line there is (A64FX), and two of 128

struct contended_waiter {
    _Alignas(CONTENDED_LINE) _Atomic uint32_t next; // in the queue: 1 + its number; 0: none yet
    _Atomic uint32_t waits;
};

// Shared by all; zero at the start.
struct contended {
    _Alignas(CONTENDED_LINE) _Atomic uint64_t word; // operated on; flag; next ticket; end of queue
    _Atomic uint64_t served;                        // ticket
    _Alignas(CONTENDED_LINE) volatile uint64_t count; // what a lock protects
    volatile uint32_t holder;                         // 1 + its number
    _Alignas(CONTENDED_LINE) atomic_bool stop;
    struct contended_waiter waiter[SPEC_RANKS_MAX];
};

// One core's part.
struct contended_part {
    struct contended *shared; // borrowed
    enum operation operation;
    const struct atomic_code *code;
    uint32_t number;   // of this core, from 0
    uint64_t least_ns; // the first that has worked so long stops all
    uint64_t start_ns; // set by contended_run
    uint64_t batch;    // operations from one look at the clock to the next; set by contended_run
};

struct contended_done {
    uint64_t operations; // locks: times that the lock was held
    uint64_t handovers;  // of them after another core
    uint64_t balance;    // what the word has grown by through this core
};

// How fetch_add, cas and exchange are made. NULL: this machine has them not.
const struct atomic_code *atomic_code(enum atomic_form form);
const char *atomic_code_name(const struct atomic_code *code);

// While no core works: all zero, ready for the next time.
void contended_reset(struct contended *c);
// All cores call this at the same time. Returns when stopped.
void contended_run(struct contended_part *p, struct contended_done *done);
// After all have returned, with the sum of what all have done: has no operation been lost, and was
// no lock held twice at a time?
bool contended_is_right(const struct contended *c, enum operation operation,
                        const struct contended_done *all);

// SPDX-License-Identifier: Apache-2.0
// The memory that all ranks of a node share: where they meet, and a slot for each, which it alone
// writes. Nothing here calls MPI: the barrier is a futex, so a rank that waits sleeps in the kernel
// and leaves its core, and its core's sibling, alone.
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/memory/cache.h"
#include "bench/sampling/disturbance.h"
#include "bench/sampling/reference_clock.h"
#include "bench/sampling/sampler.h"
#include "bench/sampling/time_spans.h"
#include "model/matrix.h"
#include "model/record.h"

enum tally { TALLY_WARM, TALLY_DONE, TALLIES };

enum { SLOT_CELLS = 8, SLOT_LINES = 128, SLOT_FLAGS = 10000 };

// What rank 0 asks of one rank while the others sleep: to measure with `peer`.
struct turn {
    int peer;
    bool first; // of the pair: the ping side, which keeps the time
    int stage;  // of the benchmark; below 0: there are no more turns
    int visit;  // from 0; below 0: the result is looked at and not kept
};

struct slot {
    struct rank_info info;
    uint64_t question; // a hash of the rank's options
    bool on_one_core;  // bound to it
    uint64_t llc_bytes;
    uint64_t l2_bytes; // 0: not known
    struct cpu_place cpu_place;
    double phase_ms[PHASES];
    struct cell cell;              // just measured
    struct cell cells[SLOT_CELLS]; // the same, of benchmarks that measure several at a time
    struct cell lines[SLOT_LINES]; // of a pair's cells, one for each of its cache lines
    bool measured;                 // the cell has samples: the time limit did not leave it out
    struct evidence evidence;      // of the cell
    struct evidence evidences[SLOT_CELLS]; // of the cells
    double stolen_share;                   // of the measuring time, by the host
    double huge_share;                     // of the cell's memory, on huge pages
    bool behind;             // of rank 0: the budget leaves no time for more of this cell
    uint64_t ends_ns;        // of rank 0: the time limit; 0: none
    struct spans spans;      // when it was chasing
    struct cycle_seen cycle; // of the core, at each repetition
    struct guard_total lost; // of all samples
    // One pass of a team, or of the far side of a pair.
    bool in_team;
    struct span pass;
    struct guard_verdict pass_verdict;
    uint64_t operations, handovers, balance; // of a pass (bench/kernels/contended.h)
    unsigned char flags[SLOT_FLAGS];         // of the far side's samples
    int memory;                              // where it has to be: a target (model/target.h), or -1
    double moved_bytes, moved_ns;            // by a loader, lately
    double requested_bytes;                  // of it by its pace; 0: as much as it could
    int share_fd;               // of memory that others map; see bench/memory/shared_memory.h
    double elapsed_s[2];        // rank 0's: since the start, at every second meeting of a scan
    struct condition condition; // what a reader should know of this rank; text "": nothing
    // See bench/ranks/turns.h.
    struct turn turn;
    uint32_t turns_taken;
    char own_line[CACHE_LINE_MAX];
    _Atomic uint32_t turns; // given to this rank; it sleeps on the word
    char steps_line[CACHE_LINE_MAX];
    _Atomic uint32_t steps;   // of this turn, or TURN_FAILED
    char pad[CACHE_LINE_MAX]; // the next rank's slot is on other lines
};

struct board {
    _Atomic uint32_t arrived, generation; // of meetings
    _Atomic uint64_t tally[TALLIES];      // only ever grow
    _Atomic uint64_t spinners;            // that came to the spinning barrier
    _Atomic uint32_t turns_open;          // given and not finished; rank 0 sleeps on the word
    _Atomic int fault_taken, fault_posted;
    int fault_agreed; // written by the last to arrive, read by all after the barrier
    int fault_rank;
    struct err fault;   // the first error of any rank
    int64_t pairs_most; // rank 0's before a meeting: fewer pairs than the spec says; 0: as it says
    _Atomic int stop_posted;
    bool stop_agreed; // as fault_agreed
    struct slot slot[];
};

size_t board_bytes(int ranks);

// Sleeps while the word has this value; wakes up to `n` ranks that sleep on it.
void board_sleep(_Atomic uint32_t *word, uint32_t value);
void board_wake(_Atomic uint32_t *word, int n);

// All ranks come here; returns when the last one has. -1 if any rank has posted a fault before it
// came: then *err is that fault, the same for all.
int board_meet(struct board *b, int ranks, struct err *err);
// Says that this rank failed; the first one counts. The rank still has to come to the next barrier.
void board_fault(struct board *b, int rank, const struct err *err);
bool board_faulty(const struct board *b);

// Asks all ranks to stop at the same step: board_stopped is true for all from the next barrier on.
void board_stop(struct board *b);
bool board_stopped(const struct board *b); // changes at barriers only
bool board_stop_posted(const struct board *b);

// Counting without waiting, for ranks that must continue chasing: the n-th time (from 1) that all
// ranks count, board_all is true once all have counted. Also true when a rank failed: no rank
// may wait for it.
void board_count(struct board *b, enum tally which);
bool board_all(const struct board *b, enum tally which, uint64_t n, int ranks);

// A barrier that spins, for those whose start must not depend on how fast the kernel wakes a rank:
// returns when `arrivals` have come since board_spin_reset, or a rank failed. Between two meetings.
void board_spin(struct board *b, uint64_t arrivals);
void board_spin_reset(struct board *b);

// SPDX-License-Identifier: Apache-2.0
// What every benchmark does around its measuring: find out where the ranks are, refuse what the
// node cannot give, announce the matrices, verify placement, report cells, end. A benchmark is a
// function that all ranks run in step; whatever fails in one of them fails in all at the next
// meeting.
#pragma once
#include <stdint.h>

#include "bench/memory/arena.h"
#include "bench/memory/cache.h"
#include "bench/memory/memory_check.h"
#include "bench/memory/placement.h"
#include "bench/ranks/board.h"
#include "bench/ranks/comm.h"
#include "bench/session/options.h"
#include "bench/session/output.h"
#include "bench/session/spreads.h"
#include "bench/session/time_limit.h"
#include "model/shape.h"
#include "model/target.h"

// What rank 0 saw in its cells that a reader should know: reported at the end, a condition each,
// however many cells there are.
struct doubts {
    int cells, few, none, stolen, two;
    double worst;       // share stolen
    struct modes modes; // of the cell whose levels are farthest apart
    char first_few[80], worst_stolen[80], widest[80];
};

struct session {
    struct comm *comm; // borrowed, like all pointers here
    struct board *board;
    struct slot *slot; // ours
    const struct spec *spec;
    struct spec fewer;       // the same with fewer pairs, where a budget has no room for all
    struct emit *emit;       // NULL but on rank 0
    struct cache_info cache; // its last one is the larger of the kernel's and the found one
    uint64_t found_bytes;    // of a cache beyond those that the kernel lists; 0: none
    struct place place;
    int n_targets; // memory that the spec requests: nodes, and interleaved (model/target.h)
    int targets[SPEC_TARGETS_MAX];
    int64_t told, total;     // steps, for the progress
    struct time_limit limit; // of rank 0: others follow it
    struct doubts doubts;
    struct spreads spreads; // rank 0's
};

// A benchmark runs on all ranks, from after the introduction to its last cell.
typedef int benchmark_fn(struct session *s, struct err *err);
// Runs `measure` inside the frame, from the first barrier to the last record.
int session_run(struct comm *comm, const struct options *o, struct emit *e, benchmark_fn *measure,
                struct err *err);

bool session_is_rank0(const struct session *s); // the only one that reports
int session_ranks(const struct session *s);
// A barrier to which each rank brings a step's outcome: the failure of one is the failure of all.
int session_meet(struct session *s, int outcome, struct err *err);

// The requested size; "auto" is four last-level caches, at least 64 MiB.
uint64_t session_size(const struct session *s);
uint64_t session_auto_bytes(const struct session *s);
// The caches of all ranks' CPUs, in the ranks' order. Owned by the caller; NULL on failure.
struct rank_cache *session_caches(const struct session *s, struct err *err);

// Checks that memory is there, says hello and announces the matrices, which rank 0 alone has to
// give (others: n is 0); they are taken over, also on failure. `demands` are of all ranks together.
int session_begin(struct session *s, struct matrix *matrices, int n, const struct demand *demands,
                  int n_demands, struct err *err);
// The second half alone, after a session_begin with NULL on all ranks: for a benchmark that finds
// out what to measure by measuring.
int session_announce(struct session *s, struct matrix *matrices, int n, struct err *err);

// An arena of ours on `node` (-1: as the process's policy says), populated and verified: rank_info
// then has the least share of pages that were on the requested node.
int session_arena(struct session *s, struct arena *a, uint64_t bytes, int node, struct err *err);
// The same in two steps, for who touches the memory itself: maps and binds it, and verifies it.
int session_map(struct session *s, struct arena *a, uint64_t bytes, enum pages pages, int node,
                struct err *err);
void session_check(struct session *s, struct arena *a, int node);
// Verifies where [memory, memory + bytes) is, the same way.
struct placed session_verify(struct session *s, const void *memory, uint64_t bytes, int node);
// The same after measuring: of what was right `before`, or on one node where none was requested,
// some may have been migrated. A condition says so.
void session_verify_again(struct session *s, const void *memory, uint64_t bytes, int node,
                          struct placed before);
void session_check_again(struct session *s, const struct arena *a, int node); // as session_arena

// Between two meetings, on all ranks: from here on a run measures what rank 0 has said on the
// board, if that is fewer pairs of ranks than the spec says.
void session_take_pairs(struct session *s);

// Reports of rank 0, which fail like the steps of all ranks. Others: 0.
int session_report_cell(struct session *s, const char *matrix, int row, int col,
                        const struct cell *c, struct err *err);
// Judges a cell that was measured, on rank 0 alone: what its values rest on, what share of its time
// the host took; the words say which cell it is.
__attribute__((format(printf, 4, 5))) void session_judge(struct session *s,
                                                         const struct evidence *evidence,
                                                         double stolen_share, const char *fmt, ...);
// A step has ended, and `share` of all work is done, 0…1: the time left follows from the time it
// took. Where the next step would pass the time limit or the budget, the ranks are to stop
// (session_stopped).
int session_progress(struct session *s, enum phase phase, double share, struct err *err);
// True for all ranks from the meeting after a session_progress: there is no time for a further
// step. The benchmark then reports the cells that it has, and returns as usual.
bool session_stopped(const struct session *s);
// The same for rank 0 alone, before that meeting: where it leads and the others wait for its calls.
bool session_must_stop(const struct session *s);
// A condition of the run; rank -1: of all ranks.
__attribute__((format(printf, 5, 6))) int session_note(struct session *s, struct err *err,
                                                       enum condition_kind kind, int rank,
                                                       const char *fmt, ...);

double session_ms_since(uint64_t begin_ns);

// SPDX-License-Identifier: Apache-2.0
// One rank's samples of one cell: warm up, take samples of fixed time until the median is known
// well enough, and sum up those that count. A cell may be visited several times in a run; between
// visits its samples rest in a cell_sum.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "analysis/stats/modes.h"
#include "base/err.h"
#include "bench/sampling/counters.h"
#include "bench/sampling/disturbance.h"
#include "bench/sampling/time_spans.h"
#include "model/matrix.h"
#include "model/spec.h"

enum {
    SAMPLE_CHUNKS = 8, // the clock is read this often in a sample: 25 ns of 250 µs
};

struct sample {
    uint64_t from, to; // ns
    double hop_ns;
    struct guard_verdict verdict;
    double hops; // that are counted; 0: none
    struct counts counts;
};

struct sampler {
    const struct spec *params; // borrowed
    int64_t limit_ms;          // of one visit
    int64_t min_samples;       // of one visit
    void *at;                  // where the chase is
    double hop_ns;             // what a hop took lately
    struct sample *samples;    // of this visit, in order of time; owned
    double *values;            // room for as many; owned
    int n, room;
    int next_check;                  // number of samples at which to look at the interval again
    struct spans spans;              // when we chased
    int64_t moves;                   // times it was found on another CPU, over all cells
    struct err failure;              // of a check
    struct guard_total *lost;        // borrowed; NULL: nothing is added up
    const struct counters *counters; // borrowed; NULL: nothing is counted
};

// What is kept of a cell over its visits; starts all zero.
struct cell_sum {
    double *values; // of undisturbed samples, in order of time; owned
    int *visit;     // the visit of each; owned
    int n, room;
    int visits, left_out;
    double shared_ns, kept_ns; // of the kept samples' time, all ranks at work; all of it
    bool concurrent;           // some visit was of all ranks at once
    struct counted counted;    // of the kept samples
    double spare, spare_off;   // the least disturbed sample, for a cell that has no other
    bool has_spare;
};

// For `visits` visits of a cell: each takes its part of cell_ms and min_samples.
int sampler_init(struct sampler *s, const struct spec *p, int64_t visits, struct err *err);
void sampler_fini(struct sampler *s);

void sampler_start(struct sampler *s, void *at); // a new chain
// Follows the chain for `hops`, and for least_ns.
void sampler_warm(struct sampler *s, uint64_t hops, uint64_t least_ns);
void sampler_linger(struct sampler *s); // a short piece of chasing, not recorded

void sampler_clear(struct sampler *s); // a new visit
void sampler_take(
    struct sampler *s); // one sample; chases on without recording when there is no room
// For what is not a chase: the caller's own sample, `value` in place of ns a hop.
void sampler_add(struct sampler *s, const struct sample *got);
// Is the median precise enough, or the time up? Time is up after limit_ms, or later (four times
// that) while there are fewer clean samples than requested.
bool sampler_done(struct sampler *s);

// Ends a visit: keeps its undisturbed samples inside `together`'s outer ends (NULL: all; with no
// time in common: all, as not shared).
int sampler_keep(struct sampler *s, const struct spans *together, struct cell_sum *sum,
                 struct err *err);

// For what is no chase: one sample of the current visit, its value in place of ns a hop. A cell
// that is measured at several moments of the run ends each of them by cell_sum_next_visit.
int cell_sum_add(struct cell_sum *sum, const struct sample *x, struct err *err);
void cell_sum_next_visit(struct cell_sum *sum);

// What a cell's values rest on.
struct evidence {
    int clean;          // samples that nothing disturbed
    struct modes modes; // of the visits
};

void cell_sum_fini(struct cell_sum *sum);
bool cell_sum_any(const struct cell_sum *sum); // false: the cell was never visited
// Fills `c` whole: overlap is the share of the kept samples' time inside `together` (NaN if the
// cell was always alone). With fewer clean samples than min_samples the cell is not converged,
// without any the least disturbed sample stands in, and counts as disturbed too. ERR_INTERNAL: it
// was never visited.
int cell_sum_up(const struct cell_sum *sum, const struct spec *p, struct cell *c,
                struct evidence *evidence, struct err *err);

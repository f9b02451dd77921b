// SPDX-License-Identifier: Apache-2.0
// One rank's samples of one cell: warm up, take samples of fixed time until the median is known
// well enough, and sum up those that count.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/guard.h"
#include "bench/span.h"
#include "model/matrix.h"
#include "model/spec.h"

enum {
    SAMPLE_HOPS_MIN = 10000,
    SAMPLE_CHUNKS = 8, // the clock is read this often in a sample: 25 ns of 250 µs
};

struct sample {
    uint64_t from, to; // ns
    double hop_ns;
    struct guard_verdict verdict;
};

struct sampler {
    const struct latency_params *params; // borrowed
    void *at;                            // where the chase is
    double hop_ns;                       // what a hop took lately
    struct sample *samples;              // of this cell, in order of time; owned
    double *values;                      // room for as many; owned
    int n, room;
    int next_check;     // number of samples at which to look at the interval again
    struct spans spans; // when we chased
    int64_t moves;      // times it was found on another CPU, over all cells
    struct err failure; // of a check
};

int sampler_init(struct sampler *s, const struct latency_params *p, struct err *err);
void sampler_fini(struct sampler *s);

void sampler_start(struct sampler *s, void *at); // a new chain
// Follows the chain for `hops`, at most for limit_ns (0: no limit).
void sampler_warm(struct sampler *s, uint64_t hops, uint64_t limit_ns);
void sampler_linger(struct sampler *s); // a short piece of chasing, not recorded

void sampler_clear(struct sampler *s); // a new cell
void sampler_take(
    struct sampler *s); // one sample; chases on without recording when there is no room
// Is the median precise enough, or the time up? Time is up after cell_ms, or later (four times
// that) while there are fewer clean samples than asked for.
bool sampler_done(struct sampler *s);

// Sums up the samples inside `together`'s outer ends (NULL: all). Fills `c` whole: overlap is the
// share of the kept samples' time inside `together` (NaN without). *clean: how many of them
// nothing disturbed; below min_samples the cell is not tight, at 0 the least disturbed sample
// stands in.
int sampler_sum(struct sampler *s, const struct spans *together, struct cell *c, int *clean,
                struct err *err);

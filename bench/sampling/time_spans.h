// SPDX-License-Identifier: Apache-2.0
// When was a rank chasing? Pure: sets of time spans, in order, not touching.
#pragma once
#include <stdint.h>

enum {
    SPANS_MAX = 1024,
    // Reading clocks and counters between two samples takes a few µs: 1 % of the shortest usual
    // sample (2 ms) still counts as chasing on; more is a gap.
    SPAN_GAP_NS = 20000,
};

struct span {
    uint64_t from, to; // ns
};

struct spans {
    int n;
    struct span at[SPANS_MAX];
};

// Appends [from, to], which begins after all others; a gap of at most SPAN_GAP_NS is closed. What
// does not fit any more is left out: counted as not chasing.
void spans_add(struct spans *s, uint64_t from, uint64_t to);
// s = what is in both.
void spans_cut(struct spans *s, const struct spans *other);
// How much of [from, to] is inside, in ns.
uint64_t spans_cover(const struct spans *s, uint64_t from, uint64_t to);

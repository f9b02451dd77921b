// SPDX-License-Identifier: Apache-2.0
// One rank's chase through chains in an arena: what latency, matrix and loaded have in common.
#pragma once
#include "bench/kernels/chain.h"
#include "bench/memory/arena.h"
#include "bench/sampling/counters.h"
#include "bench/sampling/sampler.h"
#include "bench/session/session.h"

struct chaser {
    struct session *session; // borrowed
    uint64_t stride;
    struct chain chain;
    struct sampler sampler;   // owned
    struct counters counters; // owned; of this thread
    double build_ms_per_byte;
};

// Settles the stride; the smallest working set must hold 8 links.
int chaser_init(struct chaser *c, struct session *s, uint64_t smallest, int64_t visits,
                struct err *err);
void chaser_fini(struct chaser *c);

// A chain of `bytes` in the arena. Each visit takes another order, and another part of an arena
// that is larger: which of its pages a working set has makes a difference too.
void chaser_build(struct chaser *c, const struct arena *a, uint64_t bytes, int64_t visit,
                  int64_t visits);
void chaser_warm(struct chaser *c); // see the top of chaser.c
// Its first part: the caches have what the walk to here would have left in them.
void chaser_fill_caches(struct chaser *c);
// How many links of a chain that takes: first those that are loaded, several at once, then those
// that are walked, one load waiting for the other.
struct warm_links {
    uint64_t loaded, walked;
};
struct warm_links chaser_warm_links(const struct session *s, uint64_t links);
// What a visit of one rank may take: building, warming up, sampling.
double chaser_guess_ms(const struct session *s, uint64_t bytes);
void chaser_sample(struct chaser *c); // until the visit is done

// Time that the host took from this rank's CPU; begin, and end with the share of the time between.
struct stolen {
    int64_t before_ms;
    uint64_t begin_ns;
};
struct stolen stolen_begin(const struct session *s);
double stolen_end(const struct session *s, const struct stolen *begin);

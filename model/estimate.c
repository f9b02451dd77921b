// SPDX-License-Identifier: Apache-2.0
// Speeds are assumed, because an estimate comes before the first measurement. Those of memory are
// of servers of 2019 to 2025, and those of the kernel and of launchers were measured on two cores
// (tests/perf/estimates.py). Latency grows, and bandwidth falls, with the distance that the
// firmware states (SLIT): 17 to 32 instead of 10 give 190 to 350 ns and 26 to 14 GB/s.
#include "model/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/spec_values.h"
#include "model/stream_team.h"

// Memory and caches.
static const double LOCAL_S = 110e-9;      // a load from local memory
static const double LLC_S = 15e-9;         // from a last-level cache
static const double INNER_S = 3e-9;        // from those before it
static const double INNER_BYTES = 1 << 20; // which hold about this
static const double RANK_BYTES_S = 8e9;    // one core, moving memory
static const double NODE_BYTES_S = 45e9;   // all cores of a node
static const double LINE_NEAR_S = 60e-9;   // round trip of a line, inside a last-level cache
static const double LINE_FAR_S = 250e-9;   // and outside

// The kernel: memory made, looked at, given back.
static const double HUGE_BYTES_S = 3e9;   // zeroed in huge pages
static const double BASE_BYTES_S = 0.8e9; // and in pages of 4 KiB
static const double BUILD_BYTES_S = 6e9;  // a chain written
static const double VERIFY_BYTES_S = 20e9;

// Meetings: 5 us of two ranks, 1 ms of 192.
static const double MEET_S = 5e-6;
static const double MEET_RANK_S = 5e-6;
static const double TURN_S = 100e-6; // two ranks called and waited for, of hundreds

// Ranks are started one after the other by one process, and come up on their own CPUs.
static const double START_MPI_S = 0.35, START_PROCESSES_S = 0.15; // of the first rank
static const double RANK_MPI_S = 0.12, RANK_PROCESSES_S = 0.02;   // of each rank on one CPU
static const double RANK_LEAST_S = 0.008; // launching is not parallel without limit

// Messages of MPI.
static const double MESSAGE_S = 1e-6, MESSAGE_BYTES_S = 4e9;

// --- Parts ---------------------------------------------------------------------------------------

static double latency_of(double bytes, const struct workload *w)
{
    double cached = w->llc ? fmin(1, (double)w->llc / bytes) : 0;
    return bytes <= INNER_BYTES ? INNER_S : LLC_S * cached + LOCAL_S * w->far * (1 - cached);
}

// Bytes a second of `n` ranks that share the memory of one node.
static double speed_of(double n, double far)
{
    return fmin(n * RANK_BYTES_S, NODE_BYTES_S) / far;
}

static double meet_s(const struct workload *w)
{
    return MEET_S + MEET_RANK_S * w->ranks;
}

// Ranks that share a CPU do one after the other what they would do at once.
static double turns(const struct workload *w)
{
    return fmax(1, (double)w->ranks / w->cpus);
}

// Memory of `bytes` for each of `n` ranks of a node at once, populated and verified.
static double arena_s(const struct spec *s, double bytes, double n)
{
    double made = s->pages == PAGES_4K ? BASE_BYTES_S : HUGE_BYTES_S;
    return n * bytes / fmin(n * made, NODE_BYTES_S) + bytes / VERIFY_BYTES_S;
}

static double build_s(double bytes, double n)
{
    return n * bytes / fmin(n * BUILD_BYTES_S, NODE_BYTES_S);
}

// A visit of a chain: warming up (bench/session/chaser.c) and sampling (bench/sampling/sampler.c).
static double chase_s(const struct spec *s, const struct workload *w, double bytes)
{
    enum { WHOLE_LAPS_LLC = 4, SAMPLE_HOPS_LEAST = 10000 };
    double load = latency_of(bytes, w), cell = (double)s->cell_ms / 1e3;
    double visits = fmax(1, (double)s->visits),
           stride = s->stride ? (double)s->stride : (double)w->line;
    double lines = (double)w->llc / (double)w->line, links = bytes / stride;
    double warm =
        links <= WHOLE_LAPS_LLC * lines ? fmin(links * load, cell) : fmin(lines * load, cell / 2);
    double sample = fmax((double)s->sample_us / 1e6, SAMPLE_HOPS_LEAST * load);
    return warm + fmax(cell / visits, ceil((double)s->min_samples / visits) * sample);
}

static double estimate_size(const struct spec *s, const struct workload *w)
{
    return (double)spec_bytes_per_rank(s, spec_auto_bytes_of(w->caches, w->ranks));
}

// --- Benchmarks ----------------------------------------------------------------------------------

// Shuffled and written once, walked 101,000 hops.
static double classic_s(const struct spec *s, const struct workload *w, double bytes)
{
    static const double hops = 101000, shuffle_s = 8e-9;
    double link = bytes / sizeof(void *) * (shuffle_s + latency_of(bytes, w) / 4);
    return link + hops * latency_of(bytes, w) + arena_s(s, bytes, w->per_node);
}

static double estimate_latency(const struct spec *s, const struct workload *w)
{
    CLEANUP_MEM uint64_t *sizes = NULL;
    int n = 0;
    double sum = 0, visits = (double)s->visits;
    double at_once = s->mode != MODE_SERIAL ? turns(w) : 0;
    double one_by_one = s->mode != MODE_CONCURRENT ? w->ranks : 0;
    if (str_to_sizes(s->size, SPEC_SIZES_MAX, "size", &sizes, &n, NULL) < 0)
        return 0;
    if (s->method == METHOD_PRP)
        sum = arena_s(s, (double)sizes[n - 1], w->per_node);
    for (int i = 0; i < n; i++) {
        double bytes = (double)sizes[i];
        sum += s->method == METHOD_CLASSIC
                   ? (at_once + one_by_one) * classic_s(s, w, bytes)
                   : visits * (build_s(bytes, w->per_node) * turns(w) +
                               (at_once + one_by_one) * (chase_s(s, w, bytes) + meet_s(w)));
    }
    return sum;
}

static double estimate_matrix(const struct spec *s, const struct workload *w)
{
    double bytes = estimate_size(s, w);
    double visit = build_s(bytes, 1) + chase_s(s, w, bytes);
    return w->ranks * w->targets *
           (arena_s(s, bytes, 1) + (double)s->visits * visit + 2 * meet_s(w));
}

// Bytes that the passes of all kernels move, of an array of one byte. Cached stores read their line
// first.
static double kernel_bytes(const struct spec *s)
{
    static const double moved[] = {2, 2, 3, 3, 1, 1}; // copy scale add triad read write
    enum { FILLING = 4 };
    double sum = 0;
    for (int k = 0; k < (int)COUNT_OF(moved); k++)
        if (s->kernel == 0 || s->kernel == k + 1)
            sum += moved[k] + (k < FILLING && s->stores == STORES_CACHED);
    return sum * (double)s->passes;
}

// A row of `n` ranks on one target: three arrays made, filled, passed over and verified.
static double band_s(const struct spec *s, const struct workload *w, double n, double bytes)
{
    enum { ARRAYS = 3, FILLED_AND_VERIFIED = 2 };
    double made = arena_s(s, ARRAYS * bytes / n, n) * turns(w);
    return made + (FILLED_AND_VERIFIED * ARRAYS + kernel_bytes(s)) * bytes / speed_of(n, w->far) +
           5 * meet_s(w);
}

static double estimate_bandwidth(const struct spec *s, const struct workload *w)
{
    const struct stream_team *teams = w->teams;
    double sum = 0;
    if (s->sweep == SWEEP_OWN && w->n_teams) // each node has its part of the arrays
        return band_s(s, w, w->per_node, (double)teams[0].array_bytes / w->nodes);
    for (int i = 0; i < w->n_teams; i++)
        sum += w->targets * band_s(s, w, teams[i].n_ranks, (double)teams[i].array_bytes);
    return sum;
}

// Sizes, repetitions and batches as bench/benchmarks/pingpong.c chooses them.
static double message_s(const struct spec *s, double bytes)
{
    enum { TRIPS_BYTES = 40 << 20, TRIPS_LEAST = 20, SAMPLES_LEAST = 20, WARM_TRIPS = 24 };
    static const double batch_s = 100e-6;
    double trip = 2 * (MESSAGE_S + bytes / MESSAGE_BYTES_S), batch = fmax(1, batch_s / trip);
    double n =
        bytes > 0 ? fmin((double)s->repetitions, TRIPS_BYTES / bytes) : (double)s->repetitions;
    n = fmax(fmax(n, TRIPS_LEAST), SAMPLES_LEAST * batch);
    return (WARM_TRIPS + n * (1 + 1 / batch)) * trip;
}

// Rounds of a visit that has all pairs. No two pairs of a round share a core, or a last-level cache
// (bench/session/pair_rounds.c). That company costs too much, and pairs follow each other, is known
// only when control pairs have been measured.
static double pair_rounds(const struct spec *s, const struct workload *w)
{
    double at_once = w->cpus / 2;
    if (s->concurrent_pairs == CONCURRENT_PAIRS_ONE)
        at_once = 1;
    else if (s->concurrent_pairs == CONCURRENT_PAIRS_LLC)
        at_once = floor(w->llcs / 2.0);
    return w->pairs / fmax(1, at_once);
}

static double estimate_pingpong(const struct spec *s, const struct workload *w)
{
    enum { ALL_FROM = 65536 };
    int given[SPEC_PAIRS_MAX][2], n = 0;
    bool all = strcmp(s->pairs, "all") == 0;
    double turn = (double)s->visits * TURN_S, most = (double)s->message_max;
    double pair = message_s(s, 0) + turn;
    for (double size = all ? fmin(ALL_FROM, most) : 1; size >= 1 && size <= most;
         size *= all ? 4 : 2)
        pair += message_s(s, size) + turn;
    if (!all && strcmp(s->pairs, "classes") != 0)
        spec_pairs(s->pairs, given, &n, NULL);
    return pair * (all ? pair_rounds(s, w) : n ? n : w->classes);
}

static double estimate_c2c(const struct spec *s, const struct workload *w)
{
    static const double warm_part = 0.25; // of a sample's trips, on each line, before each visit
    static const int several[C2C_EVERY + 1] = {[C2C_BOTH] = 2, [C2C_STATES] = 2, [C2C_EVERY] = 4};
    int cells = several[s->definition] ? several[s->definition] : 1;
    double trip = LINE_NEAR_S + (LINE_FAR_S - LINE_NEAR_S) * w->share_of_far;
    double rounds = (double)(s->lines * s->visits); // each line in each visit
    double samples = fmax((double)s->min_samples, rounds) + warm_part * rounds;
    double cell = samples * (double)s->repetitions * trip;
    return pair_rounds(s, w) * (cells * cell + (double)s->visits * TURN_S);
}

static double estimate_firsttouch(const struct spec *s, const struct workload *w)
{
    enum { ACCESSES = 3 };
    double bytes = estimate_size(s, w), visits = (double)s->visits;
    double made = w->per_node * bytes / fmin(w->per_node * BASE_BYTES_S, NODE_BYTES_S);
    return made * turns(w) + bytes / VERIFY_BYTES_S +
           ACCESSES * visits * (chase_s(s, w, bytes) * turns(w) + meet_s(w));
}

static double estimate_loaded(const struct spec *s, const struct workload *w)
{
    static const double calibrate_s = 0.1;
    double bytes = estimate_size(s, w), levels = (double)s->steps + 1;
    return arena_s(s, bytes, w->per_node) + build_s(bytes, w->per_node) + calibrate_s +
           levels * (chase_s(s, w, bytes) + meet_s(w));
}

static double estimate_pagefault(const struct spec *s, const struct workload *w)
{
    enum { KINDS = 2 };
    int rows[STREAM_SERIES_MAX];
    double bytes = estimate_size(s, w);
    double made = bytes / BASE_BYTES_S + bytes / HUGE_BYTES_S,
           looked = KINDS * bytes / VERIFY_BYTES_S;
    double pass = (made + looked) * turns(w) * fmax(1, w->far);
    return stream_series(w->ranks, rows) * w->targets *
           ((double)s->passes * pass + KINDS * 3 * meet_s(w));
}

// A visit of a cell of hierarchy: a chain built, walked once where the caches matter, sampled.
static double hierarchy_cell_s(const struct spec *s, const struct workload *w, double bytes)
{
    enum { WHOLE_LAPS_LLC = 4 };
    double llc = (double)w->llc, walked = bytes <= WHOLE_LAPS_LLC * llc ? bytes : llc;
    double sample = (double)s->cell_ms / 1e3 / fmax(1, (double)s->visits);
    return build_s(bytes, 1) + walked / (double)w->line * latency_of(bytes, w) + sample;
}

// The parts of bench/benchmarks/hierarchy.c, by one rank.
static double estimate_hierarchy(const struct spec *s, const struct workload *w)
{
    enum { SIZES = 4, PAGE_COUNTS = 8, CHAINS = 20, STRIDES = 7, BASE_PAGES_MOST = 16384 };
    static const double first = 4096, first_pages = 16, base_page = 4096, huge_page = 2 << 20;
    double usual = (double)spec_auto_bytes_of(w->caches, w->ranks);
    double bytes = (double)spec_bytes_per_rank(s, (uint64_t)(4 * usual));
    double small = hierarchy_cell_s(s, w, first), memory = hierarchy_cell_s(s, w, usual);
    double pages = fmin(BASE_PAGES_MOST, bytes / 4 / base_page), visit = 0;
    for (double at = first; at < bytes; at *= exp2(1.0 / SIZES))
        visit += hierarchy_cell_s(s, w, at);
    visit += 2 * PAGE_COUNTS * log2(fmax(2, pages / first_pages)) * small;
    visit += PAGE_COUNTS * log2(fmax(2, bytes / huge_page)) * small;
    visit += CHAINS * small + STRIDES * memory / 2 + (1 + w->targets) * memory;
    double made =
        arena_s(s, bytes, 1) + bytes / 4 / BASE_BYTES_S + (w->targets - 1) * arena_s(s, usual, 1);
    return w->ranks * (made + (double)s->visits * visit);
}

// --- The whole -----------------------------------------------------------------------------------

static double estimate_start_s(const struct workload *w)
{
    double once = w->processes ? START_PROCESSES_S : START_MPI_S;
    double each = (w->processes ? RANK_PROCESSES_S : RANK_MPI_S) / w->cpus;
    return once + w->ranks * fmax(each, w->processes ? 0 : RANK_LEAST_S);
}

double estimate_s(const struct spec *s, const struct workload *w)
{
#define ESTIMATE_OF(id, name) [BENCHMARK_##id] = estimate_##name,
    static double (*const estimates[BENCHMARKS])(const struct spec *, const struct workload *) = {
        BENCHMARK_LIST(ESTIMATE_OF)};
#undef ESTIMATE_OF
    return estimate_start_s(w) + estimates[s->benchmark](s, w);
}

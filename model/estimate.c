// SPDX-License-Identifier: Apache-2.0
// Speeds are assumed, because an estimate comes before the first measurement. Those of
// model/speed.h are known where runs that measured them are stored. The speeds of memory are of
// servers of 2019 to 2025. Those of the kernel, of messages and of launchers were measured on two
// cores of a virtual machine (tests/perf/estimates.py). Latency grows, and bandwidth falls, with
// the distance that the firmware states (SLIT): 17 to 32 instead of 10 give 240 to 450 ns and 26 to
// 14 GB/s. All else follows from the request and from the constants of the methods
// (model/method.h), loop by loop. The functions stand in the order: parts, benchmarks, the whole.
#include "model/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/hierarchy_parts.h"
#include "model/method.h"
#include "model/mix.h"
#include "model/scan.h"
#include "model/spec_values.h"
#include "model/stream_team.h"

// Memory and caches.
static const double LOCAL_S =
    140e-9; // a load from local memory, not measured: 90 to 130, in VMs to 190
static const double LLC_S = 15e-9;         // from a last-level cache
static const double INNER_S = 3e-9;        // from those before it
static const double INNER_BYTES = 1 << 20; // which hold about this
static const double OVERLAP = 10;          // loads of random lines that are independent, at once
static const double RANK_BYTES_S = 15e9;   // one core, moving memory
static const double NODE_BYTES_S = 45e9;   // all cores of a node
static const double CACHE_BYTES_S = 40e9;  // one core, within its caches
static const double LINE_NEAR_S = 60e-9;   // round trip of a line, inside a last-level cache
static const double LINE_FAR_S = 250e-9;   // and outside
static const double LINE_SHARED_S = 8e-3;  // of two ranks on one CPU: each waits for its turn
static const double FLUSH_S = 40e-9;       // a line written back to memory, of several at once
static const double CLOCK_S = 1e-3;        // a look at the core's clock and L1

// The kernel: memory made, looked at, given back.
static const double HUGE_BYTES_S = 9e9;        // in huge pages: 0.2 ms each
static const double BASE_BYTES_S = 1.8e9;      // in pages of 4 KiB: 2.3 us each
static const double MOVED_BYTES_S = 1.2e9;     // from node to node
static const double COLLAPSED_BYTES_S = 2.2e9; // from base pages to a huge one: 1 ms each
static const double VERIFY_BYTES_S = 25e9;     // where each page is
static const double VERIFY_S = 1.1e-3;         // and what the kernel lists of the process
static const double VERIFY_MPI_S = 3.4e-3;     // which has more to list with MPI's libraries

// Meetings: 5 us of two ranks, 1 ms of 192.
static const double MEET_S = 5e-6;
static const double MEET_RANK_S = 5e-6;
static const double TURN_S = 100e-6; // two ranks called and waited for, of hundreds

// Ranks are started one after the other by one process, and come up on their own CPUs.
static const double START_MPI_S = 0.12, START_PROCESSES_S = 0.02; // of the first rank
static const double RANK_MPI_S = 0.04, RANK_PROCESSES_S = 0.01;   // of each rank on one CPU
static const double RANK_LEAST_S = 0.008; // launching is not parallel without limit

// Messages of MPI, copied twice: numaprobe allows no reading of another process's memory. Each byte
// of some is written and compared.
static const double MESSAGE_S = 0.5e-6, MESSAGE_BYTES_S = 2.5e9, PATTERN_BYTES_S = 1e9;

// --- Parts ---------------------------------------------------------------------------------------

// A load from the memory that the ranks use.
static double load_s(const struct workload *w)
{
    return LOCAL_S * speed_factor(w->speeds, SPEED_LOAD) * w->far;
}

static double latency_of(double bytes, const struct workload *w)
{
    double cached = w->llc ? fmin(1, (double)w->llc / bytes) : 0;
    return bytes <= INNER_BYTES ? INNER_S : LLC_S * cached + load_s(w) * (1 - cached);
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

// `n` ranks of a node at once touch `bytes` each for the first time.
static double touch_s(double bytes, double n, double rate, double far)
{
    return n * bytes / fmin(n * rate, NODE_BYTES_S) * far;
}

// What the kernel takes for its own work, by what it took for pages.
static double kernel_factor(const struct workload *w)
{
    return speed_factor(w->speeds, SPEED_BASE_PAGE);
}

static double base_bytes_s(const struct workload *w)
{
    return BASE_BYTES_S / kernel_factor(w);
}

static double huge_bytes_s(const struct workload *w)
{
    return HUGE_BYTES_S / speed_factor(w->speeds, SPEED_HUGE_PAGE);
}

static double verify_s(const struct workload *w, double bytes)
{
    return kernel_factor(w) * ((w->processes ? VERIFY_S : VERIFY_MPI_S) + bytes / VERIFY_BYTES_S);
}

// Memory made, verified, and verified again after measuring.
static double arena_s(const struct spec *s, const struct workload *w, double bytes, double n)
{
    double rate = s->pages == PAGES_4K ? base_bytes_s(w) : huge_bytes_s(w);
    return touch_s(bytes, n, rate, w->far) + 2 * verify_s(w, bytes);
}

static double build_s(double bytes, double n, double far)
{
    return n * bytes / speed_of(n, far);
}

static double cache_lines(const struct workload *w)
{
    return (double)w->llc / (double)w->line;
}

static bool warms_by_lap(const struct workload *w, double links)
{
    return links < CHASE_WHOLE_LLC * cache_lines(w);
}

// Links of the warm-up.
static double links_of_warm_up(const struct workload *w, double links)
{
    return warms_by_lap(w, links) ? links : fmax(0, cache_lines(w) - links / CHASE_SPARED);
}

// They were written around the caches, so each is a load from memory. Those that fill the
// last-level cache wait for each other.
static double chase_warm_s(const struct workload *w, double links)
{
    double hop = load_s(w);
    double walked = warms_by_lap(w, links) ? fmin(links, cache_lines(w)) : WARM_CHUNK;
    return fmax(0, links_of_warm_up(w, links) - walked) * hop / OVERLAP + walked * hop;
}

// Samples of a visit: they take the time limit of their cell, unless they are few and long.
static double samples_s(const struct spec *s, double hop_s)
{
    double visits = fmax(1, (double)s->visits);
    double sample = fmax((double)s->sample_us / 1e6, SAMPLE_HOPS_MIN * hop_s);
    double limit = (double)s->cell_ms / 1e3 / visits;
    return fmax(limit + sample / 2, ceil((double)s->min_samples / visits) * sample);
}

// A visit of a chain: warming up (bench/session/chaser.c) and sampling (bench/sampling/sampler.c).
static double chase_s(const struct spec *s, const struct workload *w, double bytes)
{
    double stride = s->stride ? (double)s->stride : (double)w->line;
    double warm = fmax(chase_warm_s(w, bytes / stride), WARM_NS / 1e9) + CLOCK_S;
    return warm + samples_s(s, latency_of(bytes, w));
}

static double estimate_size(const struct spec *s, const struct workload *w)
{
    return (double)spec_bytes_per_rank(s, spec_auto_bytes_of(w->caches, w->ranks));
}

// --- Chasing -------------------------------------------------------------------------------------

// Shuffled in the order of indices, linked, walked 101,000 hops: two random accesses a link, which
// do not wait for each other.
static double classic_s(const struct spec *s, const struct workload *w, double bytes)
{
    static const double hops = 101000, random_s = 10e-9, waits = 0.3;
    double hop = latency_of(bytes, w);
    return bytes / sizeof(void *) * (random_s + waits * hop) + hops * hop +
           arena_s(s, w, bytes, w->per_node);
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
        sum = arena_s(s, w, (double)sizes[n - 1], w->per_node) * turns(w);
    for (int i = 0; i < n; i++) {
        double bytes = (double)sizes[i];
        sum += s->method == METHOD_CLASSIC
                   ? (at_once + one_by_one) * classic_s(s, w, bytes)
                   : visits * (build_s(bytes, w->per_node, w->far) * turns(w) +
                               (at_once + one_by_one) * (chase_s(s, w, bytes) + 3 * meet_s(w)));
    }
    return sum;
}

// Each visit has memory of its own.
static double estimate_matrix(const struct spec *s, const struct workload *w)
{
    double bytes = estimate_size(s, w);
    double visit = arena_s(s, w, bytes, 1) + build_s(bytes, 1, w->far) + chase_s(s, w, bytes);
    return (double)spec_pairs_of(s, w->choice) * (double)s->visits * (visit + 2 * meet_s(w));
}

static double estimate_firsttouch(const struct spec *s, const struct workload *w)
{
    enum { ACCESSES = 3 };
    double bytes = estimate_size(s, w), visits = (double)s->visits;
    double made = touch_s(bytes, w->per_node, base_bytes_s(w), 1),
           hop = latency_of(bytes, w) / OVERLAP;
    double warm = fmax(bytes / (double)w->line * load_s(w) / OVERLAP, WARM_NS / 1e9);
    double visit = warm + CLOCK_S + samples_s(s, hop);
    return made * turns(w) + 2 * verify_s(w, bytes) +
           ACCESSES * visits * (visit * turns(w) + 4 * meet_s(w));
}

// --- Bandwidth -----------------------------------------------------------------------------------

// Of each kernel, in the order of the parameter: 8-byte words that it moves, and arrays it uses.
static const struct {
    int moved, arrays;
    bool fills; // lines that cached stores read first
} kernels[] = {{2, 2, true}, {2, 2, true},  {3, 3, true},
               {3, 3, true}, {1, 1, false}, {1, 1, false}}; // copy scale add triad read write

static bool kernel_runs(const struct spec *s, int k)
{
    return s->kernel == 0 || s->kernel == k + 1;
}

static double kernel_moves(const struct spec *s, int k)
{
    return kernels[k].moved + (kernels[k].fills && s->stores == STORES_CACHED);
}

static double band_visits(const struct spec *s)
{
    return fmin((double)s->visits, (double)s->passes);
}

static double band_passes(const struct spec *s)
{
    return ceil((double)s->passes / band_visits(s));
}

// `n` ranks make `arrays` arrays of `bytes` on one target, fill them `times` times and compare as
// often. Teams of a round do so on different targets; what links between nodes carry of it is not
// known here.
static double band_place_s(const struct spec *s, const struct workload *w, double n, double bytes,
                           int arrays, int times)
{
    enum { FILLED_AND_COMPARED = 3 }; // a line that is filled is read first
    double made = arena_s(s, w, arrays * bytes / n, n) * turns(w);
    return made + times * FILLED_AND_COMPARED * arrays * bytes / speed_of(n, w->far) +
           2 * meet_s(w);
}

// The turn of a row of `n` ranks: passes that move `moves` times the bytes of an array.
static double band_turn_s(const struct spec *s, const struct workload *w, double n, double bytes,
                          double moves)
{
    return band_passes(s) * moves * bytes / speed_of(n, w->far) + CLOCK_S + 2 * meet_s(w);
}

// Before it: a part of an array is filled again, in laps. Their lines are read first.
static double band_warm_s(const struct workload *w, double n, double bytes)
{
    double lap = 2 * bytes / BAND_WARM_PART / speed_of(n, w->far);
    return ceil(BAND_WARM_NS / 1e9 / lap) * lap;
}

// Of the sweep by sizes: `n` ranks with `bytes` each, on their own nodes.
static double band_size_s(const struct spec *s, const struct workload *w, double n, double bytes)
{
    enum { FILLED_AND_COMPARED = 3 };
    double here = fmin(n, w->per_node), sharing = fmin(n, (double)w->ranks / w->llcs);
    double rate = bytes * sharing <= (double)w->llc ? CACHE_BYTES_S : speed_of(here, w->far) / here;
    double sum = arena_s(s, w, bytes, here) * turns(w);
    for (int k = 0; k < (int)COUNT_OF(kernels); k++)
        if (kernel_runs(s, k)) {
            double moves = kernel_moves(s, k) / kernels[k].arrays;
            sum += FILLED_AND_COMPARED * bytes / rate +
                   band_passes(s) * moves * fmax(bytes, BAND_LAPS_BYTES) / rate;
        }
    return sum + 5 * meet_s(w);
}

static double band_sizes_s(const struct spec *s, const struct workload *w)
{
    uint64_t sizes[SPEC_SIZES_MAX];
    int n = stream_sizes(s, w->caches, w->ranks, sizes, NULL);
    double sum = 0;
    for (int t = 0; t < w->n_teams; t++)
        for (int i = 0; i < n; i++)
            sum += band_size_s(s, w, w->teams[t].n_ranks, (double)sizes[i]);
    return sum;
}

// Rows of teams on each target: their turns, and the placing of each round, as of the largest team.
static double band_rows_s(const struct spec *s, const struct workload *w, double moves)
{
    double turns_s = 0, place = 0, sum = 0;
    for (int i = 0; i < w->n_teams; i++) {
        double n = w->teams[i].n_ranks, bytes = (double)w->teams[i].array_bytes;
        double placed = band_place_s(s, w, n, bytes, STREAM_ARRAYS, 1);
        turns_s += w->targets * (band_warm_s(w, n, bytes) + band_turn_s(s, w, n, bytes, moves));
        place = fmax(place, placed);
        sum += w->targets * placed;
    }
    bool at_once = stream_at_once(s, w->n_teams, w->targets) > 1;
    return turns_s + (at_once ? stream_rounds(s, w->n_teams, w->targets) * place : sum);
}

static double estimate_bandwidth(const struct spec *s, const struct workload *w)
{
    double sum = 0, moves = 0, bytes = w->n_teams ? (double)w->teams[0].array_bytes : 0;
    double n = w->per_node;
    for (int k = 0; k < (int)COUNT_OF(kernels); k++)
        moves += kernel_runs(s, k) ? kernel_moves(s, k) : 0;
    if (s->sweep == SWEEP_SIZES)
        sum = band_sizes_s(s, w);
    else if (s->sweep == SWEEP_OWN && w->n_teams) { // each node has its part of the arrays
        bytes /= w->nodes;
        sum = band_place_s(s, w, n, bytes, STREAM_ARRAYS, 1) + band_warm_s(w, n, bytes) +
              band_turn_s(s, w, n, bytes, moves);
    } else if (s->sweep == SWEEP_MEMCPY) // libc's, which reads the lines that it writes, and around
        sum = (double)w->targets * w->targets *
              (band_place_s(s, w, n, bytes, 2, 2) + band_turn_s(s, w, n, bytes, 3 + 2));
    else
        sum = band_rows_s(s, w, moves);
    return band_visits(s) * sum;
}

// --- Pairs of ranks ------------------------------------------------------------------------------

// A visit of a size: samples as bench/benchmarks/pingpong.c chooses them, and twice a message whose
// bytes are compared on both sides.
static double message_s(const struct spec *s, const struct workload *w, double bytes)
{
    double once = MESSAGE_S * speed_factor(w->speeds, SPEED_MESSAGE),
           each = speed_factor(w->speeds, SPEED_MESSAGE_BYTE) / MESSAGE_BYTES_S;
    double trip = 2 * (once + bytes * each), visits = (double)s->visits;
    double batch = fmin(fmax(1, floor(BATCH_NS / 1e9 / trip)), BATCH_MOST);
    double most = bytes > 0 ? TRIPS_BYTES / bytes : (double)s->repetitions;
    double n = fmax(fmin((double)s->repetitions, most), TRIPS_LEAST);
    double samples = fmax(ceil(n / batch / visits), ceil(MESSAGE_SAMPLES_LEAST / visits));
    double warm = bytes > PEAK_FROM ? WARM_TRIPS_LARGE : WARM_TRIPS;
    return (warm + samples * (batch + 1) + 2) * trip + 2 * 2 * bytes / PATTERN_BYTES_S;
}

// Rounds of a visit that has all pairs, or pairs_most of them. No two pairs of a round share a
// core, or a last-level cache (bench/session/pair_rounds.c). That company costs too much, and pairs
// follow each other, is known only when control pairs have been measured.
static double pair_rounds(const struct spec *s, const struct workload *w)
{
    double at_once = floor(w->cpus / 2.0);
    if (s->concurrent_pairs == CONCURRENT_PAIRS_ONE)
        at_once = 1;
    else if (s->concurrent_pairs == CONCURRENT_PAIRS_LLC)
        at_once = floor(w->llcs / 2.0);
    if (s->pairs_most && s->pairs_most < w->pairs) // first one of each class, which share a rank
        return (double)s->pairs_most / fmax(1, at_once) + w->classes;
    return w->pairs / fmax(1, at_once);
}

// Turns of all pairs, over the visits, and of the control pairs.
static double pair_visits(const struct spec *s, const struct workload *w)
{
    bool alone = s->concurrent_pairs == CONCURRENT_PAIRS_ONE || w->cpus < 4;
    return (double)s->visits * pair_rounds(s, w) + (alone ? 0 : 2 * CONTROL_REPEATS * w->classes);
}

// The same of the pairs that are requested: one of each class, or a list, one after the other.
static double pair_turns(const struct spec *s, const struct workload *w)
{
    int given[SPEC_PAIRS_MAX][2], n = 0;
    if (strcmp(s->pairs, "all") == 0)
        return pair_visits(s, w);
    if (strcmp(s->pairs, "classes") != 0)
        spec_pairs(s->pairs, given, &n, NULL);
    return (n ? n : w->classes) * (double)s->visits;
}

static double estimate_pingpong(const struct spec *s, const struct workload *w)
{
    bool all = strcmp(s->pairs, "all") == 0;
    double most = (double)s->message_max, visit = message_s(s, w, 0) + TURN_S;
    for (double size = all ? fmin(PEAK_FROM, most) : 1; size >= 1 && size <= most;
         size *= all ? 4 : 2)
        visit += message_s(s, w, size) + (all ? 0 : TURN_S); // of all pairs one turn has all sizes
    return pair_turns(s, w) * visit;
}

// A sample of lines that one side writes (and flushes), and the other reads one after the other, in
// rounds. The first round is not counted.
static double c2c_area_s(const struct spec *s, double trip, double handover, bool flushed)
{
    double rounds = ceil((double)s->repetitions / C2C_AREA_LINES) + 1;
    double line = trip / 2 + trip / OVERLAP + (flushed ? FLUSH_S + LOCAL_S / OVERLAP : 0);
    return rounds * (C2C_AREA_LINES * line + handover);
}

// A sample of each matrix, where a line takes `trip` and the other rank comes after `handover`.
static double c2c_sample_s(const struct spec *s, double trip, double handover)
{
    static const struct {
        int trips, modified, clean; // matrices of a kind
    } of[C2C_EVERY + 1] = {
        [C2C_BOTH] = {2, 0, 0},      [C2C_ONLY_CAS] = {1, 0, 0}, [C2C_ONLY_LOAD] = {1, 0, 0},
        [C2C_ONLY_HITM] = {0, 1, 0}, [C2C_ONLY_HIT] = {0, 0, 1}, [C2C_STATES] = {0, 1, 1},
        [C2C_EVERY] = {2, 1, 1}};
    return of[s->definition].trips * (double)s->repetitions * handover +
           of[s->definition].modified * c2c_area_s(s, trip, handover, false) +
           of[s->definition].clean * c2c_area_s(s, trip, handover, true);
}

// Of a pair on one CPU each sample is disturbed, so it has as many as there may be.
static double estimate_c2c(const struct spec *s, const struct workload *w)
{
    double trip = LINE_NEAR_S + (LINE_FAR_S - LINE_NEAR_S) * w->share_of_far;
    double lines = (double)s->lines; // each at least once in a visit
    double samples =
        fmax(ceil((double)s->min_samples / (double)s->visits), lines) + lines / C2C_WARM_PART;
    double each = (1 - w->share_of_cpu) * c2c_sample_s(s, trip, trip) +
                  w->share_of_cpu * PAIR_PATIENCE * c2c_sample_s(s, LINE_NEAR_S, LINE_SHARED_S);
    return pair_turns(s, w) * (samples * each + TURN_S);
}

// --- Under load ----------------------------------------------------------------------------------

// Own memory is one round of all nodes; paths are measured one after the other, on memory of their
// own in each visit.
static double estimate_loaded(const struct spec *s, const struct workload *w)
{
    const struct load_mix *mixes[SPEC_MIXES_MAX];
    int n = 1;
    bool paths = w->targets > 0;
    double rounds = paths ? w->nodes * w->targets : 1, visits = (double)s->visits;
    double scouts = fmin(rounds, LOAD_SCOUT_ROUNDS), levels = (double)s->steps;
    double bytes = estimate_size(s, w), sharing = fmax(1, (double)w->llcs / w->nodes);
    double hop = latency_of(bytes, w), sample = (double)s->sample_us / 1e6;
    double idle = chase_s(s, w, bytes), warm = LOAD_WARM_MS / 1e3 + 2 * meet_s(w);
    mix_list(s, mixes, &n, NULL);
    // Loaders that share a cache have `bytes` together, and write it before each curve.
    double fill = sharing * bytes / speed_of(w->per_node, w->far);
    double place = arena_s(s, w, bytes, 1 + sharing), build = build_s(bytes, 1, w->far);
    double curve = fill + idle + levels * (warm + samples_s(s, hop));
    double scout = fill + LOAD_CALIBRATIONS * LOAD_CALIBRATE_MS / 1e3 + idle +
                   levels * (warm + LOAD_SCOUT_SAMPLES * sample);
    double calibrate = (rounds - scouts) * n * LOAD_CALIBRATIONS * LOAD_CALIBRATE_MS / 1e3;
    double placed = paths ? scouts + visits * rounds : 1;
    return placed * place + (scouts + visits * rounds) * build +
           turns(w) * (scouts * n * scout + calibrate + visits * rounds * n * curve);
}

// --- Pages ---------------------------------------------------------------------------------------

// A pass of `n` ranks: what is timed, the pages touched before it, and what is looked at after it.
static double page_pass_s(const struct spec *s, const struct workload *w, double bytes, double n,
                          bool huge)
{
    double base = touch_s(bytes, n, base_bytes_s(w), w->far),
           made = touch_s(bytes, n, huge_bytes_s(w), w->far);
    double act = huge ? made : base;
    if (s->cost == COST_MIGRATE)
        act = base + touch_s(bytes, n, MOVED_BYTES_S / kernel_factor(w), w->far);
    else if (s->cost == COST_COLLAPSE)
        act = base + touch_s(bytes, n, COLLAPSED_BYTES_S / kernel_factor(w), w->far);
    bool by_page = !huge && s->cost != COST_COLLAPSE; // given back
    return act + 2 * verify_s(w, bytes) + (by_page ? base / 10 : 0);
}

static double estimate_pagefault(const struct spec *s, const struct workload *w)
{
    int rows[STREAM_SERIES_MAX], n = stream_series(w->ranks, rows);
    double bytes = estimate_size(s, w), sum = 0, cols = w->targets;
    if (s->cost == COST_MIGRATE)
        cols *= w->targets - 1;
    for (int i = 0; i < n; i++) {
        sum += page_pass_s(s, w, bytes, rows[i], false);
        sum += s->cost == COST_FAULT ? page_pass_s(s, w, bytes, rows[i], true) : 0;
    }
    // One more, which is not counted.
    return cols * ((double)s->passes + 1) * (sum * turns(w) + 2 * n * meet_s(w));
}

// --- Atomics -------------------------------------------------------------------------------------

// bench/benchmarks/atomics.c: of each cell a visit has its samples and one to warm up.
static double estimate_atomics(const struct spec *s, const struct workload *w)
{
    int64_t operations[AXIS_OPERATIONS];
    CLEANUP_MEM int *rows = calloc(SPEC_RANKS_MAX, sizeof *rows);
    int n_rows = rows ? stream_thread_counts(s, w->ranks, rows, NULL) : 0;
    double samples = ceil((double)s->min_samples / (double)s->visits) + 1;
    double row = WARM_NS / 1e9 +
                 spec_operations(s, operations) * samples * (double)s->sample_us / 1e6 * turns(w);
    return (double)s->visits * fmax(n_rows, 1) * (row + 2 * meet_s(w));
}

// --- Hierarchy -----------------------------------------------------------------------------------

// A visit of a cell: a chain of so many links built, walked and sampled.
static double hierarchy_cell_s(const struct spec *s, const struct workload *w, double links,
                               double bytes)
{
    return build_s(bytes, 1, w->far) + chase_warm_s(w, links) + samples_s(s, latency_of(bytes, w));
}

// A visit of the cells of a part: chains of so many links, one on each line, page or line of a
// size.
static double hierarchy_part_s(const struct spec *s, const struct workload *w,
                               const struct hierarchy_columns *c, enum hierarchy_part part)
{
    double sum = 0, line = (double)w->line;
    for (int i = 0; i < c->n[part]; i++) {
        double links = (double)c->value[part][i] / (part == PART_CURVE ? line : 1);
        sum += hierarchy_cell_s(s, w, links, links * line);
    }
    return sum;
}

// The parts by one rank: the curve, pages of three kinds, chains, strides, all in the memory of its
// own node, and nodes.
static double estimate_hierarchy(const struct spec *s, const struct workload *w)
{
    enum { OTHERS = 3 };
    struct hierarchy_columns c;
    struct workload at_home = *w; // borrows
    at_home.far = w->home_far;
    double usual = (double)spec_auto_bytes_of(w->caches, w->ranks), line = (double)w->line;
    uint64_t arena =
        spec_page_round(PAGES_THP, &w->pages, spec_bytes_per_rank(s, (uint64_t)(4 * usual)));
    double bytes = (double)arena;
    hierarchy_columns_make(&c, arena, w->line, w->pages.base,
                           spec_page_bytes(PAGES_THP, &w->pages, arena));
    usual = fmin(usual, bytes);
    double links = usual / line, sample = samples_s(s, 0);
    double stride = sample + OTHERS * build_s(usual, 1, w->home_far) +
                    links_of_warm_up(w, links) * load_s(&at_home) / OVERLAP;
    double visit = hierarchy_cell_s(s, &at_home, links, usual) + c.n[PART_PARALLEL] * sample +
                   c.n[PART_STRIDE] * stride + w->targets * hierarchy_cell_s(s, w, links, usual);
    for (int part = PART_CURVE; part <= PART_HUGE_PAGES; part++)
        visit += hierarchy_part_s(s, &at_home, &c, (enum hierarchy_part)part);
    double made = arena_s(s, &at_home, bytes, 1) + arena_s(s, &at_home, bytes / 4, 1) +
                  bytes / 4 / base_bytes_s(w) + (w->targets - 1) * arena_s(s, w, usual, 1);
    return w->ranks * (made + (double)s->visits * visit);
}

// Of bench/session/scan_course.c: one repetition of all aspects, with samples `longer` times as
// long.
static double scan_visit_s(const struct spec *s, const struct workload *w, int longer)
{
    enum { PASSES = 3, MEETS = 4 }; // filled, written, read; of all ranks in an aspect or a round
    double bytes = (double)w->scan_bytes, visits = (double)s->visits;
    double l2_links = (double)scan_l2_bytes(0) / (double)w->line;
    double rounds = ceil(fmin(w->pairs, SCAN_PAIRS_MOST) / fmax(1, floor(w->cpus / 2.0)));
    double around = chase_warm_s(w, l2_links) + chase_warm_s(w, bytes / (double)w->line) +
                    2 * CLOCK_S + build_s(bytes, w->per_node, 1) +
                    PASSES * w->per_node * bytes / speed_of(w->per_node, 1) +
                    (ASPECT_TRANSFER + rounds) * MEETS * meet_s(w);
    double sampled = ASPECT_TRANSFER * (double)s->cell_ms / 1e3 / visits +
                     rounds * (SCAN_LINES + 1) * (double)s->repetitions * LINE_FAR_S;
    return turns(w) * (around + longer * sampled);
}

// The broad part. Peers that are alike have no other: a unit of 100,000 is looked at again by
// chance.
static double estimate_scan(const struct spec *s, const struct workload *w)
{
    return arena_s(s, w, (double)w->scan_bytes, w->per_node) +
           (double)s->visits * scan_visit_s(s, w, 1);
}

// --- The whole -----------------------------------------------------------------------------------

static double estimate_start_s(const struct workload *w)
{
    double once = w->processes ? START_PROCESSES_S : START_MPI_S;
    double each = (w->processes ? RANK_PROCESSES_S : RANK_MPI_S) / w->cpus;
    return kernel_factor(w) * (once + w->ranks * fmax(each, w->processes ? 0 : RANK_LEAST_S));
}

// By speeds alone.
static double unlearned_s(const struct spec *s, const struct workload *w)
{
#define ESTIMATE_OF(id, name) [BENCHMARK_##id] = estimate_##name,
    static double (*const estimates[BENCHMARKS])(const struct spec *, const struct workload *) = {
        BENCHMARK_LIST(ESTIMATE_OF)};
#undef ESTIMATE_OF
    return estimate_start_s(w) + estimates[s->benchmark](s, w);
}

// What a run took more counts in proportion, but for no more time than that run had: a short one
// may have lost it at the start, and a run of a thousand times the effort does not lose that again.
double estimate_s(const struct spec *s, const struct workload *w)
{
    double seconds = unlearned_s(s, w);
    return w->past.run ? seconds + (w->past.times - 1) * fmin(seconds, w->past_s) : seconds;
}

struct learned {
    struct found_speed past;
    double seconds;
};

static int by_times(const void *a, const void *b)
{
    double x = ((const struct learned *)a)->past.times, y = ((const struct learned *)b)->past.times;
    return (x > y) - (x < y);
}

void estimate_learn(struct workload *w, const struct past_runs *past)
{
    struct learned of[PAST_RUNS_MAX];
    int n = 0;
    w->past = (struct found_speed){0};
    for (int i = 0; i < past->n; i++) {
        const struct past_run *r = &past->list[i];
        struct workload then = *w; // borrows
        then.processes = r->processes;
        double seconds = unlearned_s(&r->spec, &then);
        if (r->n_ranks == w->ranks)
            of[n++] = (struct learned){{r->run, speed_bound(r->seconds / seconds)}, seconds};
    }
    if (!n)
        return;
    qsort(of, (size_t)n, sizeof *of, by_times);
    w->past = of[(n - 1) / 2].past;
    w->past_s = of[(n - 1) / 2].seconds;
}

double estimate_free_s(double limit_s, int ranks)
{
    static const double free_s = 1, share = 0.02, rank_s = 0.02, most = 0.25;
    return fmin(free_s + share * limit_s + rank_s * ranks, most * limit_s);
}

// What deviates in a scan is confirmed by as many repetitions at most, longer ones.
double estimate_most_s(const struct spec *s, const struct workload *w)
{
    double more =
        s->benchmark == BENCHMARK_SCAN ? (double)s->visits * scan_visit_s(s, w, SCAN_LONGER) : 0;
    double most = estimate_s(s, w) + more;
    return s->budget_s ? fmin(most, (double)s->budget_s) : most;
}

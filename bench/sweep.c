// SPDX-License-Identifier: Apache-2.0
// What must hold for a number to be right, and where it is seen to:
//   - nobody measures while somebody else builds: all meet after building (build)
//   - nobody measures a cold or a foreign cache: a whole lap first, each time that others were
//   active in
//     between (warm), and no idle wait after it
//   - all chase from the first sample to the last of any rank: who is warm chases on until all are,
//   who
//     has its samples chases on until all have (together)
//   - alone means alone: the others sleep on a futex (in_turn)
//   - rank 0 writes when everybody is at a meeting (tell)
#include "bench/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "bench/arena.h"
#include "bench/cache.h"
#include "bench/chain.h"
#include "bench/memcheck.h"
#include "bench/place.h"
#include "bench/sampler.h"

enum {
    WARM_WHOLE_LLC = 4,   // a whole lap up to this many last-level caches …
    WARM_ABOVE_LLC = 2,   // … above, enough hops to fill one twice, within half of cell_ms
    POPULATE_THREADS = 8, // at most, if the rank may run on so many CPUs
    STOLEN_PERCENT = 1,   // of the measuring time: worth a note
};

struct sweep {
    struct comm *comm;
    struct board *board;
    struct slot *slot; // ours
    const struct latency_params *params;
    struct emit *emit; // NULL but on rank 0
    uint64_t *sizes;   // owned
    int n_sizes;
    uint64_t stride;
    struct cache_info cache;
    struct place place;
    struct arena arena; // owned
    struct chain chain;
    struct sampler sampler; // owned
    uint64_t cells;         // measured together so far
    int64_t told, total;    // cells
    double column_ms, build_ms_per_byte;
};

static bool chief(const struct sweep *s)
{
    return s->emit != NULL;
}

static double ms_since(uint64_t begin_ns)
{
    return (double)(clock_mono_ns() - begin_ns) / 1e6;
}

// A meeting that a step's outcome is brought to: any failure becomes everybody's.
static int meet(struct sweep *s, int outcome, struct err *err)
{
    if (outcome < 0)
        board_fault(s->board, s->comm->rank, err);
    return board_meet(s->board, s->comm->size, err);
}

// --- Before the first cell ---------------------------------------------------------------------

static uint64_t largest(const struct sweep *s)
{
    return s->sizes[s->n_sizes - 1];
}

static int settle_stride(struct sweep *s, struct err *err)
{
    s->stride = s->params->stride ? s->params->stride : s->cache.line_bytes;
    if (s->stride < s->cache.line_bytes)
        return err_set(err, ERR_USAGE, "stride",
                       "--stride: %" PRIu64 " is below the cache line of %" PRIu64
                       " bytes: several links would share one",
                       s->stride, s->cache.line_bytes);
    if (s->sizes[0] / s->stride < 8)
        return err_set(err, ERR_USAGE, "size",
                       "--size: %" PRIu64 " bytes hold fewer than 8 links of %" PRIu64, s->sizes[0],
                       s->stride);
    return 0;
}

static void introduce(struct sweep *s)
{
    struct rank_info *i = &s->slot->info;
    static const char *const pages[] = {
        [PAGES_THP] = "thp", [PAGES_4K] = "4k", [PAGES_HUGE] = "huge"};
    int cpu = sched_getcpu();
    place_wanted(&s->place);
    *i = (struct rank_info){.rank = s->comm->rank,
                            .pid = getpid(),
                            .cpu_wanted = s->place.cpu_wanted,
                            .cpu = cpu,
                            .cpu_node = place_node_of_cpu(cpu),
                            .mem_wanted = s->place.mem_wanted,
                            .mem_node = -1,
                            .seed = s->params->seed + s->comm->rank};
    snprintf(i->pages_wanted, sizeof i->pages_wanted, "%s", pages[s->params->pages]);
    s->cache = cache_of("", cpu);
    s->slot->need_node = s->place.mem_wanted;
    s->slot->need_bytes = arena_round(largest(s), (enum pages)s->params->pages);
}

static int check_memory(const struct sweep *s, struct err *err)
{
    int n = s->comm->size;
    CLEANUP_MEM struct demand *d = calloc((size_t)n, sizeof *d);
    if (!d)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to count memory");
    for (int i = 0; i < n; i++)
        d[i] = (struct demand){s->board->slot[i].need_node, s->board->slot[i].need_bytes};
    return memcheck("", d, n, (enum pages)s->params->pages, err);
}

static int prepare(struct sweep *s, struct err *err)
{
    introduce(s);
    int outcome = settle_stride(s, err);
    if (outcome == 0)
        outcome = sampler_init(&s->sampler, s->params, err);
    if (meet(s, outcome, err) < 0)
        return -1;
    outcome = chief(s) ? check_memory(s, err) : 0;
    if (outcome == 0 && chief(s))
        outcome = emit_begin(s->emit, s->comm->size, s->comm->ops->name, s->cache.line_bytes,
                             s->sizes, s->n_sizes, err);
    if (outcome == 0 && chief(s))
        outcome = emit_progress(s->emit, PHASE_POPULATE, 0, s->total, -1, err);
    return meet(s, outcome, err);
}

static int threads_for(const struct sweep *s)
{
    int share = s->place.cpus / s->comm->size;
    return share < 1 ? 1 : share < POPULATE_THREADS ? share : POPULATE_THREADS;
}

static int make_arena(struct sweep *s, struct err *err)
{
    bool bound = true;
    if (arena_map(&s->arena, largest(s), (enum pages)s->params->pages, &s->place, &bound, err) < 0)
        return -1;
    if (!bound)
        snprintf(s->slot->note, sizeof s->slot->note,
                 "the kernel refused to bind the memory by itself; the process's policy holds");
    return arena_populate(&s->arena, threads_for(s), err);
}

static int populate(struct sweep *s, struct err *err)
{
    uint64_t begin = clock_mono_ns();
    int outcome = make_arena(s, err);
    s->slot->phase_ms[PHASE_POPULATE] = ms_since(begin);
    return meet(s, outcome, err);
}

// --- One size ----------------------------------------------------------------------------------

static int build(struct sweep *s, uint64_t bytes, struct err *err)
{
    uint64_t begin = clock_mono_ns();
    chain_plan(&s->chain, s->arena.base, bytes, s->stride, (uint64_t)s->slot->info.seed);
    chain_write(&s->chain, 0, s->chain.links);
    double took = ms_since(begin);
    s->slot->phase_ms[PHASE_BUILD] += took;
    s->build_ms_per_byte = took / (double)bytes;
    sampler_start(&s->sampler, chain_link(&s->chain, perm_at(&s->chain.order, 0)));
    return meet(s, 0, err);
}

static void warm(struct sweep *s)
{
    uint64_t begin = clock_mono_ns();
    uint64_t lines = s->cache.llc_bytes / s->cache.line_bytes;
    if (s->chain.links <= WARM_WHOLE_LLC * lines)
        sampler_warm(&s->sampler, s->chain.links, 0);
    else
        sampler_warm(&s->sampler, WARM_ABOVE_LLC * lines, 500000 * (uint64_t)s->params->cell_ms);
    s->slot->phase_ms[PHASE_WARMUP] += ms_since(begin);
}

static double stolen_share(const struct sweep *s, int64_t before_ms, uint64_t begin_ns)
{
    int64_t now = guard_stolen_ms((int)s->slot->info.cpu);
    return now < 0 || before_ms < 0 ? 0 : (double)(now - before_ms) / ms_since(begin_ns);
}

static void chase_until(struct sweep *s, enum tally which)
{
    board_count(s->board, which);
    while (!board_all(s->board, which, s->cells, s->comm->size))
        sampler_linger(&s->sampler);
}

static void sample_until_done(struct sweep *s)
{
    do
        sampler_take(&s->sampler);
    while (!sampler_done(&s->sampler) && !board_faulty(s->board));
}

// When all ranks were chasing.
static void common_spans(const struct sweep *s, struct spans *together)
{
    *together = s->slot->spans;
    for (int i = 0; i < s->comm->size; i++)
        if (i != s->comm->rank)
            spans_cut(together, &s->board->slot[i].spans);
}

static int sum_up(struct sweep *s, const struct spans *together, struct err *err)
{
    if (s->sampler.failure.code) {
        *err = s->sampler.failure;
        return -1;
    }
    s->slot->info.migrations = s->sampler.moves;
    return sampler_sum(&s->sampler, together, &s->slot->cell, &s->slot->clean, err);
}

static int together(struct sweep *s, struct err *err)
{
    CLEANUP_MEM struct spans *common = malloc(sizeof *common);
    int64_t stolen = guard_stolen_ms((int)s->slot->info.cpu);
    s->cells++;
    sampler_clear(&s->sampler);
    warm(s);
    chase_until(s, TALLY_WARM);
    uint64_t begin = clock_mono_ns();
    sample_until_done(s);
    board_count(s->board, TALLY_DONE);
    while (!board_all(s->board, TALLY_DONE, s->cells, s->comm->size))
        sampler_take(&s->sampler);
    s->slot->phase_ms[PHASE_MEASURE] += ms_since(begin);
    s->slot->stolen_share = stolen_share(s, stolen, begin);
    s->slot->spans = s->sampler.spans;
    int outcome = common ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory to compare windows");
    if (meet(s, outcome, err) < 0)
        return -1;
    common_spans(s, common);
    return meet(s, sum_up(s, common, err), err);
}

static int alone(struct sweep *s, struct err *err)
{
    int64_t stolen = guard_stolen_ms((int)s->slot->info.cpu);
    sampler_clear(&s->sampler);
    warm(s);
    uint64_t begin = clock_mono_ns();
    sample_until_done(s);
    s->slot->phase_ms[PHASE_MEASURE] += ms_since(begin);
    s->slot->stolen_share = stolen_share(s, stolen, begin);
    return sum_up(s, NULL, err);
}

// --- Telling -----------------------------------------------------------------------------------

// The sizes to come take as long as this one did, and their building.
static int64_t time_left(const struct sweep *s, int col)
{
    double ms = 0;
    for (int c = col + 1; c < s->n_sizes; c++)
        ms += s->column_ms + s->build_ms_per_byte * (double)s->sizes[c];
    return (int64_t)ms;
}

static int tell_cell(struct sweep *s, int matrix, int rank, int col, struct err *err)
{
    const struct slot *slot = &s->board->slot[rank];
    const char *name = s->emit->matrix[matrix].name;
    char size[24];
    str_size_head(s->sizes[col], size, sizeof size);
    s->told++;
    if (slot->clean < s->params->min_samples &&
        emit_note(s->emit, err,
                  "%s: rank %d at %s had fewer than %" PRId64 " undisturbed samples%s", name, rank,
                  size, s->params->min_samples,
                  slot->clean == 0 ? ": the number is a disturbed one's" : "") < 0)
        return -1;
    if (slot->stolen_share * 100 > STOLEN_PERCENT &&
        emit_note(s->emit, err,
                  "%s: the host took the CPU from rank %d for %.1f %% of the time at %s", name,
                  rank, 100 * slot->stolen_share, size) < 0)
        return -1;
    return emit_cell(s->emit, matrix, rank, col, &slot->cell, err);
}

static int tell_column(struct sweep *s, int matrix, int col, struct err *err)
{
    for (int r = 0; chief(s) && r < s->comm->size; r++)
        if (tell_cell(s, matrix, r, col, err) < 0)
            return -1;
    return chief(s)
               ? emit_progress(s->emit, PHASE_MEASURE, s->told, s->total, time_left(s, col), err)
               : 0;
}

static int tell_turn(struct sweep *s, int matrix, int rank, int col, struct err *err)
{
    if (!chief(s))
        return 0;
    if (tell_cell(s, matrix, rank, col, err) < 0)
        return -1;
    return emit_progress(s->emit, PHASE_MEASURE, s->told, s->total, -1, err);
}

// Between a turn and the next all are awake only to meet twice: once to end the turn, once after
// rank 0 has spoken.
static int in_turn(struct sweep *s, int matrix, int col, struct err *err)
{
    for (int r = 0; r < s->comm->size; r++) {
        if (meet(s, r == s->comm->rank ? alone(s, err) : 0, err) < 0)
            return -1;
        if (meet(s, tell_turn(s, matrix, r, col, err), err) < 0)
            return -1;
    }
    return 0;
}

static int measure_size(struct sweep *s, int col, struct err *err)
{
    int matrix = 0;
    uint64_t begin = clock_mono_ns();
    if (build(s, s->sizes[col], err) < 0)
        return -1;
    if (s->params->mode != MODE_SERIAL) {
        if (together(s, err) < 0 || meet(s, tell_column(s, matrix, col, err), err) < 0)
            return -1;
        matrix++;
    }
    if (s->params->mode != MODE_CONCURRENT && in_turn(s, matrix, col, err) < 0)
        return -1;
    s->column_ms = ms_since(begin) - s->build_ms_per_byte * (double)s->sizes[col];
    return 0;
}

// --- The whole ---------------------------------------------------------------------------------

static void verify(struct sweep *s, struct rank_info *info)
{
    uint64_t begin = clock_mono_ns();
    place_verify(s->arena.base, s->arena.bytes, info);
    arena_report(&s->arena, info);
    s->slot->phase_ms[PHASE_VERIFY] += ms_since(begin);
}

// Placement again at the end: what was right at first may have been migrated.
static int verify_again(struct sweep *s, struct err *err)
{
    struct rank_info before = s->slot->info;
    verify(s, &s->slot->info);
    place_usage(&s->slot->usage);
    if (s->slot->info.mem_node != before.mem_node ||
        fabs(s->slot->info.mem_share - before.mem_share) > 0.001)
        snprintf(s->slot->note, sizeof s->slot->note,
                 "the kernel moved pages while measuring: node %" PRId64
                 " had %.1f %%, node %" PRId64 " has %.1f %% now",
                 before.mem_node, 100 * before.mem_share, s->slot->info.mem_node,
                 100 * s->slot->info.mem_share);
    if (sched_getcpu() != before.cpu && s->slot->info.migrations == 0)
        s->slot->info.migrations = 1; // between samples
    return meet(s, 0, err);
}

static int finish(struct sweep *s, struct err *err)
{
    int outcome = 0;
    for (int r = 0; chief(s) && outcome == 0 && r < s->comm->size; r++)
        if (*s->board->slot[r].note)
            outcome = emit_note(s->emit, err, "rank %d: %s", r, s->board->slot[r].note);
    if (chief(s) && outcome == 0)
        outcome = emit_end(s->emit, s->board, err);
    return meet(s, outcome, err);
}

static int run(struct sweep *s, struct err *err)
{
    if (prepare(s, err) < 0 || populate(s, err) < 0)
        return -1;
    verify(s, &s->slot->info);
    for (int col = 0; col < s->n_sizes; col++)
        if (measure_size(s, col, err) < 0)
            return -1;
    return verify_again(s, err) < 0 ? -1 : finish(s, err);
}

static void sweep_fini(struct sweep *s)
{
    sampler_fini(&s->sampler);
    arena_fini(&s->arena);
    free(s->sizes);
}

int sweep_run(struct comm *comm, const struct options *o, struct emit *e, struct err *err)
{
    struct sweep s CLEANUP(sweep_fini) = {.comm = comm,
                                          .board = comm->board,
                                          .slot = &comm->board->slot[comm->rank],
                                          .params = &o->spec.latency,
                                          .emit = e};
    int outcome =
        str_to_sizes(o->spec.latency.size, SPEC_SIZES_MAX, "size", &s.sizes, &s.n_sizes, err);
    s.total = (int64_t)comm->size * s.n_sizes * (s.params->mode == MODE_BOTH ? 2 : 1);
    if (meet(&s, outcome, err) < 0)
        return -1;
    return run(&s, err);
}

// SPDX-License-Identifier: Apache-2.0
// The firsttouch benchmark, for any number of nodes: each rank touches an array of its own first,
// and no memory policy is set, so that the pages are where the kernel puts them: on the node of who
// touched them. Then all ranks read at once, in an order that no prefetcher follows:
//   own      each its own array
//   shared   all the first rank's
//   crossed  each the next rank's
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "bench/benchmarks/table.h"
#include "bench/kernels/golden_step.h"
#include "bench/memory/shared_memory.h"
#include "bench/session/concurrent.h"
#include "model/method.h"

enum { CHUNK = 2048 }; // lines read between looks at the clock

struct touch {
    struct session *s;
    struct shape shape;
    struct sampler sampler;              // owned
    struct share own, shared, crossed;   // owned; those of others are mapped
    struct cell_sum sums[AXIS_ACCESSES]; // owned
    uint64_t bytes, lines, step;
    uint64_t line_words;   // of a cache line
    const uint64_t *array; // read now
    uint64_t at, sum;      // line; of what was read
    uint64_t reads;        // that are in the sum
    uint64_t visits;
    struct placed placed; // of `own`, before measuring
};

static void firsttouch_read_lines(struct touch *t, int n)
{
    for (int i = 0; i < n; i++) {
        t->sum += ((const volatile uint64_t *)t->array)[t->at * t->line_words];
        t->at += t->step;
        t->at -= t->at >= t->lines ? t->lines : 0;
    }
    t->reads += (uint64_t)n;
}

// Every word of a rank's array: what is read shows whose it is.
static uint64_t word_of(int rank)
{
    return 0x0101010101010101u * (uint64_t)(1 + rank % 255);
}

static void firsttouch_linger(void *context)
{
    firsttouch_read_lines(context, CHUNK);
}

// A whole round: then caches are in their steady state, however long a cell may take.
static void firsttouch_warm(void *context)
{
    struct touch *t = context;
    uint64_t begin = clock_mono_ns();
    for (uint64_t n = 0; n < t->lines || clock_mono_ns() - begin < WARM_NS; n += CHUNK)
        firsttouch_read_lines(t, CHUNK);
    reference_clock_take(&t->s->slot->cycle);
    t->s->slot->phase_ms[PHASE_WARMUP] += session_ms_since(begin);
}

static void firsttouch_take(void *context)
{
    struct touch *t = context;
    struct guard_mark from, to;
    uint64_t length_ns = 1000 * (uint64_t)t->s->spec->sample_us, n = 0;
    guard_begin(&from);
    do {
        firsttouch_read_lines(t, CHUNK);
        n += CHUNK;
    } while (clock_mono_ns() - from.wall_ns < length_ns);
    guard_end(&to);
    struct sample got = {.from = from.wall_ns, .to = to.wall_ns};
    got.hop_ns = (double)(to.wall_ns - from.wall_ns) / (double)n;
    got.verdict = guard_tally(&t->s->slot->lost, &from, &to);
    sampler_add(&t->sampler, &got);
}

// --- Before and after --------------------------------------------------------------------------

// Where the kernel shall put what a rank touches; -1: its node has no memory, any other will do.
static int node_touched(const struct session *s, int rank)
{
    int node = (int)s->board->slot[rank].info.cpu_node;
    return place_node_has_memory(node) ? node : -1;
}

static int firsttouch_begin(struct touch *t, struct err *err)
{
    struct session *s = t->s;
    struct matrix m[1] = {0};
    int ranks = session_ranks(s), n = session_is_rank0(s), outcome = 0;
    CLEANUP_MEM struct demand *d = calloc((size_t)ranks, sizeof *d);
    if (!d)
        outcome = err_set(err, ERR_NO_MEMORY, "", "no memory to count memory");
    for (int r = 0; d && r < ranks; r++)
        d[r] = (struct demand){.node = node_touched(s, r), .bytes = t->bytes};
    if (outcome == 0)
        outcome = sampler_init(&t->sampler, s->spec, s->spec->visits, err);
    if (outcome == 0 && n)
        outcome = shape_make(m, &t->shape, ranks, AXIS_ACCESSES, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_begin(s, m, n, d, ranks, err);
}

// The one thing that matters happens here: who writes a page first.
static int touch_own(struct touch *t, struct err *err)
{
    struct slot *slot = t->s->slot;
    uint64_t begun = clock_mono_ns();
    if (share_make(&t->own, t->bytes, err) < 0)
        return -1;
    memset(t->own.base, (int)(word_of(t->s->comm->rank) & 255), t->bytes);
    slot->phase_ms[PHASE_POPULATE] += session_ms_since(begun);
    slot->share_fd = t->own.fd;
    slot->info.arena_bytes = (int64_t)t->bytes;
    slot->info.address = (uint64_t)(uintptr_t)t->own.base;
    t->placed = session_verify(t->s, t->own.base, t->bytes, node_touched(t->s, t->s->comm->rank));
    return 0;
}

static int open_of(struct touch *t, int rank, struct share *to, struct err *err)
{
    const struct slot *slot = &t->s->board->slot[rank];
    return share_open(to, slot->info.pid, slot->share_fd, t->bytes, err);
}

static int open_others(struct touch *t, struct err *err)
{
    int next = (t->s->comm->rank + 1) % session_ranks(t->s);
    return open_of(t, 0, &t->shared, err) < 0 ? -1 : open_of(t, next, &t->crossed, err);
}

static int count_nodes(const struct session *s)
{
    int n = 0;
    for (int r = 0; r < session_ranks(s); r++) {
        bool seen = false;
        for (int k = 0; k < r; k++)
            seen |= s->board->slot[k].info.cpu_node == s->board->slot[r].info.cpu_node;
        n += !seen;
    }
    return n;
}

static int notes(struct touch *t, struct err *err)
{
    struct session *s = t->s;
    char words[TARGET_LABEL_ROOM];
    target_words(s->place.mem_wanted, words, sizeof words);
    if (s->place.mem_wanted >= 0 &&
        session_note(s, err, CONDITION_MEMORY_POLICY, -1,
                     "memory is bound to %s, so the first touch has no effect; start without "
                     "a memory policy",
                     words) < 0)
        return -1;
    for (int r = 0; r < session_ranks(s); r++)
        if (node_touched(s, r) < 0 &&
            session_note(s, err, CONDITION_TOPOLOGY, r,
                         "its node %d has no memory; its pages are on another node",
                         (int)s->board->slot[r].info.cpu_node) < 0)
            return -1;
    if (count_nodes(s) > 1)
        return 0;
    return session_note(s, err, CONDITION_TOPOLOGY, -1,
                        "all ranks are on one NUMA node: own, shared and crossed should take the "
                        "same time");
}

static int owner_of(const struct touch *t, int access)
{
    int rank = t->s->comm->rank, next = (rank + 1) % session_ranks(t->s);
    return access == ACCESS_OWN ? rank : access == ACCESS_SHARED ? 0 : next;
}

static int firsttouch_visit(struct touch *t, int access, struct err *err)
{
    const struct share *shares[AXIS_ACCESSES] = {
        [ACCESS_OWN] = &t->own, [ACCESS_SHARED] = &t->shared, [ACCESS_CROSSED] = &t->crossed};
    struct work work = {firsttouch_warm, firsttouch_linger, firsttouch_take, t, &t->sampler};
    t->array = (const uint64_t *)(const void *)shares[access]->base;
    t->at = t->step * (uint64_t)t->s->comm->rank % t->lines;
    t->sum = t->reads = 0;
    if (concurrent_measure(t->s, &work, ++t->visits, &t->sums[access], err) < 0)
        return -1;
    bool theirs = t->sum == t->reads * word_of(owner_of(t, access));
    return session_meet(t->s,
                        theirs ? 0
                               : err_set(err, ERR_INTERNAL, "",
                                         "rank %d read data that is not rank %d's",
                                         t->s->comm->rank, owner_of(t, access)),
                        err);
}

static int firsttouch_report(struct touch *t, int access, struct err *err)
{
    static const char *const names[AXIS_ACCESSES] = {"own", "shared", "crossed"};
    struct session *s = t->s;
    int outcome = cell_sum_up(&t->sums[access], s->spec, &s->slot->cell, &s->slot->evidence, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    for (int r = 0; session_is_rank0(s) && outcome == 0 && r < session_ranks(s); r++) {
        const struct slot *slot = &s->board->slot[r];
        session_judge(s, &slot->evidence, 0, "rank %d, %s", r, names[access]);
        outcome = session_report_cell(s, t->shape.name, r, access, &slot->cell, err);
    }
    return session_meet(s, outcome, err);
}

static int firsttouch_measure_all(struct touch *t, struct err *err)
{
    struct session *s = t->s;
    if (firsttouch_begin(t, err) < 0 || session_meet(s, touch_own(t, err), err) < 0 ||
        session_meet(s, open_others(t, err), err) < 0 || session_meet(s, notes(t, err), err) < 0)
        return -1;
    double steps = (double)s->spec->visits * AXIS_ACCESSES;
    for (int64_t v = 0; v < s->spec->visits; v++)
        for (int a = 0; a < AXIS_ACCESSES && !session_stopped(s); a++) {
            if (firsttouch_visit(t, a, err) < 0)
                return -1;
            double share = (double)t->visits / steps;
            if (session_meet(s, session_progress(s, PHASE_MEASURE, share, err), err) < 0)
                return -1;
        }
    for (int a = 0; a < AXIS_ACCESSES && cell_sum_any(&t->sums[a]); a++)
        if (firsttouch_report(t, a, err) < 0)
            return -1;
    session_verify_again(s, t->own.base, t->bytes, node_touched(s, s->comm->rank), t->placed);
    return session_meet(s, 0, err);
}

static void touch_fini(struct touch *t)
{
    sampler_fini(&t->sampler);
    share_fini(&t->own);
    share_fini(&t->shared);
    share_fini(&t->crossed);
    for (int a = 0; a < AXIS_ACCESSES; a++)
        cell_sum_fini(&t->sums[a]);
}

int firsttouch_run(struct session *s, struct err *err)
{
    struct touch t CLEANUP(touch_fini) = {.s = s, .own.fd = -1, .shared.fd = -1, .crossed.fd = -1};
    struct shape list[SHAPES_MAX];
    shape_list(s->spec, list);
    t.shape = list[0];
    uint64_t page = memory_page_sizes("").base;
    t.bytes = (session_size(s) + page - 1) / page * page;
    t.line_words = s->cache.line_bytes / sizeof(uint64_t);
    t.lines = t.bytes / s->cache.line_bytes;
    t.step = golden_step(t.lines);
    arena_base_name(s->slot->info.pages_wanted);
    arena_base_name(s->slot->info.pages_got);
    return firsttouch_measure_all(&t, err);
}

// SPDX-License-Identifier: Apache-2.0
// A worker moves one block after another and looks at the clock between them: this is how it
// keeps a rate. The last part starts one worker per CPU, in threads that are bound to their
// CPUs.
#include "bench/session/background_load.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "bench/kernels/chase.h"
#include "bench/memory/arena.h"
#include "bench/memory/cache.h"
#include "bench/memory/placement.h"
#include "bench/ranks/thread_team.h"
#include "model/spec_values.h"

enum {
    CATCH_UP_PIECES = 16, // at most so many follow each other without a pause after a delay,
    CATCH_UP_US = 250,    // or as many as are due in this time: an interrupt, not a time slice
};

// Every how many lines one is modified; 0: of other kinds.
static const size_t mix_periods[LOAD_KINDS] = {[LOAD_3R1W] = 3, [LOAD_2R1W] = 2, [LOAD_1R1W] = 1};

void worker_init(struct worker *w, enum load_kind kind, void *memory, uint64_t bytes, uint64_t seed)
{
    size_t n = bytes / sizeof(double);
    uint64_t line = cache_of("", sched_getcpu()).line_bytes;
    line = line % 64 ? 64 : line;
    *w = (struct worker){.kind = kind};
    if (kind == LOAD_CHASE) {
        chain_plan(&w->chain, memory, bytes, line, 0, seed);
        chain_set_line(&w->chain, line);
        chain_write(&w->chain, 0, w->chain.links);
        w->at = memory;
        return;
    }
    w->mix = (struct line_mix){memory, line / sizeof(double), mix_periods[kind]};
    w->lines = bytes / line;
    double *at = memory;
    size_t part = kind == LOAD_COPY ? n / 2 : n;
    w->arrays = (struct stream_arrays){.a = at, .b = at, .c = at + (n - part), .n = part};
    memset(memory, 0, bytes);
}

void worker_pace(struct worker *w, double mb_per_s)
{
    double pieces = CATCH_UP_PIECES * WORKER_PIECE_BYTES, due = mb_per_s * CATCH_UP_US;
    w->begun_ns = clock_mono_ns();
    pace_begin(&w->pace, mb_per_s, pieces > due ? pieces : due);
}

// A line that is modified is read and written.
static uint64_t move_lines(struct worker *w)
{
    size_t line = w->mix.words * sizeof(double), period = w->mix.period;
    size_t n = WORKER_PIECE_BYTES / line * period / (period + 1);
    size_t first = w->next, last = first + n < w->lines ? first + n : w->lines;
    w->sum += line_mix_pass(&w->mix, first, last);
    w->next = last == w->lines ? 0 : last;
    return line * (last - first + line_mix_writes(&w->mix, first, last));
}

static uint64_t move_piece(struct worker *w)
{
    static const enum stream_kernel kernels[LOAD_KINDS] = {
        [LOAD_READ] = STREAM_READ, [LOAD_WRITE] = STREAM_WRITE, [LOAD_COPY] = STREAM_COPY};
    if (w->kind == LOAD_CHASE) {
        uint64_t hops = chase_round(WORKER_PIECE_BYTES / w->chain.stride);
        w->at = chase(w->at, hops);
        return hops * w->chain.stride;
    }
    if (w->mix.period)
        return move_lines(w);
    enum stream_kernel k = kernels[w->kind];
    size_t n = WORKER_PIECE_BYTES / sizeof(double) / (size_t)stream_kernels[k].arrays;
    size_t first = w->next, last = first + n < w->arrays.n ? first + n : w->arrays.n;
    w->sum += stream_pass(k, &w->arrays, first, last);
    w->next = last == w->arrays.n ? 0 : last;
    return (last - first) * sizeof(double) * (uint64_t)stream_kernels[k].arrays;
}

void worker_piece(struct worker *w)
{
    uint64_t bytes = move_piece(w);
    w->moved += bytes;
    if (w->pace.rate <= 0)
        return;
    double now = (double)(clock_mono_ns() - w->begun_ns);
    pace_moved(&w->pace, (double)bytes, now);
    while (now < w->pace.due_ns)
        now = (double)(clock_mono_ns() - w->begun_ns);
}

// --- On other CPUs -----------------------------------------------------------------------------

struct load {
    struct team *team;
    pthread_t runner; // hands the work to the team and waits for it
    int n;
    int *cpus;
    bool bind_refused;
    double share; // of the pages, on the nodes of the CPUs; NaN: not known
    enum load_kind kind;
    uint64_t bytes;
    int64_t mb_per_s;
    struct arena *arenas;   // [n]
    struct worker *workers; // [n]
    atomic_int ready;
    atomic_bool stop;
};

static void background_load_work(void *context, int index)
{
    struct load *l = context;
    struct worker *w = &l->workers[index];
    worker_init(w, l->kind, l->arenas[index].base, l->bytes, (uint64_t)index + 1);
    atomic_fetch_add(&l->ready, 1);
    while (atomic_load(&l->ready) < l->n)
        ;
    worker_pace(w, (double)l->mb_per_s);
    while (!atomic_load_explicit(&l->stop, memory_order_relaxed))
        worker_piece(w);
    w->ended_ns = clock_mono_ns();
}

static void *background_load_hand_over(void *context)
{
    struct load *l = context;
    team_run(l->team, background_load_work, l);
    return NULL;
}

static void load_free(struct load *l)
{
    team_free(l->team);
    for (int i = 0; l->arenas && i < l->n; i++)
        arena_fini(&l->arenas[i]);
    free(l->arenas);
    free(l->workers);
    free(l->cpus);
    free(l);
}

static uint64_t loader_bytes(const int *cpus, int n, uint64_t together)
{
    CLEANUP_MEM int *llc = calloc((size_t)n + 1, sizeof *llc);
    struct cache_info most = {0};
    for (int i = 0; llc && i < n; i++) {
        const struct cache_info c = cache_of("", cpus[i]);
        llc[i] = cache_cpu_place("", cpus[i]).llc;
        most.l2_bytes = c.l2_bytes > most.l2_bytes ? c.l2_bytes : most.l2_bytes;
        most.llc_bytes = c.llc_bytes > most.llc_bytes ? c.llc_bytes : most.llc_bytes;
    }
    return spec_loader_bytes(together, llc ? spec_load_sharing(llc, n) : 1,
                             spec_private_bytes(most.l2_bytes, most.llc_bytes));
}

// The node of a loader's CPU. -1: not known, or without memory that we may have.
static int loader_node(const struct load *l, int i)
{
    int node = place_node_of_cpu(l->cpus[i]);
    return node >= 0 && place_node_has_memory(node) ? node : -1;
}

static int map_memory(struct load *l, struct err *err)
{
    for (int i = 0; i < l->n; i++) {
        struct place p = {.numa = true, .mem_node = loader_node(l, i)};
        bool bound;
        p.mem_wanted = p.mem_node;
        if (arena_map(&l->arenas[i], l->bytes, PAGES_THP, &p, &bound, err) < 0)
            return -1;
        l->bind_refused |= !bound;
    }
    return 0;
}

// Keeps the list ascending.
static int load_add_node(int *nodes, int n, int node)
{
    int at = n;
    for (int i = 0; i < n; i++)
        if (nodes[i] == node)
            return n;
    for (; at > 0 && nodes[at - 1] > node; at--)
        nodes[at] = nodes[at - 1];
    nodes[at] = node;
    return n + 1;
}

// Asks where the pages of all loaders are: the share that is on the nodes of their CPUs, and the
// nodes that have some, of which at most `most` are listed.
static double load_placed(const struct load *l, int *nodes, int *n, int most)
{
    double checked = 0, right = 0;
    *n = 0;
    for (int i = 0; i < l->n; i++) {
        struct rank_info got = {.mem_wanted = loader_node(l, i)};
        place_verify(l->arenas[i].base, l->arenas[i].bytes, &got);
        checked += (double)got.pages_checked;
        right += got.mem_share * (double)got.pages_checked;
        for (int k = 0; k < got.n_nodes && *n < most; k++)
            *n = load_add_node(nodes, *n, (int)got.nodes[k].node);
    }
    return checked > 0 ? right / checked : NAN;
}

static void report_memory(const struct load *l, struct load_report *r)
{
    int nodes[RANK_NODES_MAX], n;
    r->bind_refused = l->bind_refused;
    r->share = l->share;
    r->share_after = load_placed(l, nodes, &n, RANK_NODES_MAX);
    if (n)
        str_from_ids(nodes, n, r->nodes, sizeof r->nodes);
}

static int set_up(struct load *l, const char *cpus, struct err *err)
{
    if (!*cpus)
        return err_set(
            err, ERR_USAGE, "load_cpus",
            "--load-cpus: is missing; it names the CPUs that generate the load (--load-cpus=2,3)");
    if (str_to_ids(cpus, false, SPEC_RANKS_MAX, "load_cpus", &l->cpus, &l->n, err) < 0)
        return -1;
    l->bytes = loader_bytes(l->cpus, l->n, l->bytes);
    l->arenas = calloc((size_t)l->n, sizeof *l->arenas);
    l->workers = calloc((size_t)l->n, sizeof *l->workers);
    if (!l->arenas || !l->workers)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d loaders", l->n);
    if (map_memory(l, err) < 0)
        return -1;
    l->team = team_new(l->cpus, l->n, err);
    return l->team ? 0 : err_prefix(err, "--load-cpus");
}

struct load *load_start(enum load_kind kind, const char *cpus, uint64_t together, int64_t mb_per_s,
                        struct err *err)
{
    struct load *l = calloc(1, sizeof *l);
    if (!l) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a load");
        return NULL;
    }
    l->kind = kind;
    l->bytes = together;
    l->mb_per_s = mb_per_s;
    int failed = set_up(l, cpus, err);
    if (failed == 0 &&
        (errno = pthread_create(&l->runner, NULL, background_load_hand_over, l)) != 0)
        failed = err_sys(err, "cannot start a thread for the load");
    if (failed) {
        load_free(l);
        return NULL;
    }
    while (atomic_load(&l->ready) < l->n)
        sched_yield();
    int nodes[RANK_NODES_MAX], n;
    l->share = load_placed(l, nodes, &n, RANK_NODES_MAX); // each has written all of its memory
    return l;
}

struct load_report load_stop(struct load **load)
{
    struct load *l = steal_ptr(load);
    atomic_store(&l->stop, true);
    pthread_join(l->runner, NULL);
    struct load_report r = {.cpus = l->n, .strayed = team_strayed(l->team)};
    // Each by its own clock: on a busy machine they begin and end at times of their own.
    for (int i = 0; i < l->n; i++) {
        const struct worker *w = &l->workers[i];
        if (w->moved)
            r.mb_per_s += 1000 * (double)w->moved / (double)(w->ended_ns - w->begun_ns);
    }
    report_memory(l, &r);
    load_free(l);
    return r;
}

uint64_t load_demand(const char *cpus, uint64_t together)
{
    CLEANUP_MEM int *ids = NULL;
    int n = 0;
    if (str_to_ids(cpus, false, SPEC_RANKS_MAX, "load_cpus", &ids, &n, NULL) < 0)
        return 0;
    return loader_bytes(ids, n, together) * (uint64_t)n;
}

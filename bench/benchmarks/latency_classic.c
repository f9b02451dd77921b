// SPDX-License-Identifier: Apache-2.0
// The public ancestor's method, kept so that archived results stay comparable: links of 8 bytes,
// eight to a cache line; an order shuffled by the C library's generator; 1,000 hops to warm up;
// 100,000 hops timed once; each rank as soon as it has built its own list, whatever the others do.
// docs/METHOD.md says what is wrong with that.
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "bench/benchmarks/latency_classic.h"
#include "bench/kernels/chase.h"
#include "bench/session/session.h"

enum { WARM_HOPS = 1000, HOPS = 100000, STATE_BYTES = 128 };

struct classic {
    struct session *s;
    uint64_t *sizes; // owned
    int n_sizes, n_matrices, done;
    struct shape shapes[SHAPES_MAX];
    struct random_data random; // the generator behind rand(), a state for each rank
    char state[STATE_BYTES];
};

int latency_make_matrices(const struct shape *shapes, int n, int ranks, const uint64_t *sizes,
                          int n_sizes, struct matrix *m, struct err *err)
{
    for (int i = 0; i < n; i++) {
        if (shape_make(&m[i], &shapes[i], ranks, n_sizes, err) < 0)
            return -1;
        for (int c = 0; c < n_sizes; c++)
            m[i].col.values[c] = (int64_t)sizes[c];
    }
    return 0;
}

// The working set and its list of indices, which is as large.
static int latency_classic_begin(struct classic *w, struct err *err)
{
    struct session *s = w->s;
    struct matrix m[SHAPES_MAX] = {0};
    int ranks = session_ranks(s), n = session_is_rank0(s) ? w->n_matrices : 0;
    CLEANUP_MEM struct demand *d = calloc((size_t)ranks, sizeof *d);
    int outcome = d ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory to count memory");
    for (int i = 0; d && i < ranks; i++)
        d[i] = (struct demand){.node = s->board->slot[i].memory,
                               .bytes = 2 * w->sizes[w->n_sizes - 1]};
    if (outcome == 0 && n)
        outcome = latency_make_matrices(w->shapes, n, ranks, w->sizes, w->n_sizes, m, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_begin(s, m, n, d, ranks, err);
}

static size_t below(struct classic *w, size_t n)
{
    int32_t r;
    random_r(&w->random, &r);
    return (size_t)r % n;
}

static void latency_classic_shuffle(struct classic *w, size_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n - 1; i > 0; i--) {
        size_t k = below(w, i + 1), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
}

static void **build(struct classic *w, void **links, size_t n, struct err *err)
{
    uint64_t begun = clock_mono_ns();
    CLEANUP_MEM size_t *order = malloc(n * sizeof *order);
    if (!order) {
        err_set(err, ERR_NO_MEMORY_NODE, "size", "no memory to shuffle %zu links", n);
        return NULL;
    }
    latency_classic_shuffle(w, order, n);
    for (size_t i = 0; i < n; i++)
        links[order[i]] = &links[order[(i + 1) % n]];
    w->s->slot->phase_ms[PHASE_BUILD] += session_ms_since(begun);
    return &links[order[0]];
}

// A hundred thousand is no multiple of the unrolled loop: what is more is timed and counted.
static double time_hops(void *at)
{
    uint64_t hops = chase_round(HOPS);
    at = chase(at, WARM_HOPS);
    uint64_t begun = clock_mono_ns();
    at = chase(at, hops);
    double ns = (double)(clock_mono_ns() - begun);
    __asm__ volatile("" : : "r"(at));
    return ns / (double)hops;
}

static int latency_classic_measure(struct classic *w, int col, struct err *err)
{
    struct session *s = w->s;
    struct arena a CLEANUP(arena_fini) = {0};
    size_t n = w->sizes[col] / sizeof(void *);
    if (session_arena(s, &a, w->sizes[col], -1, err) < 0)
        return -1;
    void **from = build(w, (void **)(void *)a.base, n, err);
    if (!from)
        return -1;
    uint64_t begun = clock_mono_ns();
    double ns = time_hops(from);
    s->slot->phase_ms[PHASE_MEASURE] += session_ms_since(begun);
    session_check_again(s, &a, -1);
    cell_clear(&s->slot->cell);
    s->slot->cell.v[CELL_N] = 1;
    s->slot->cell.v[CELL_MEDIAN] = ns;
    return 0;
}

static int latency_classic_report(struct classic *w, int matrix, int rank, int col, struct err *err)
{
    struct session *s = w->s;
    double all = (double)w->n_matrices * w->n_sizes * session_ranks(s);
    if (session_report_cell(s, w->shapes[matrix].name, rank, col, &s->board->slot[rank].cell, err) <
        0)
        return -1;
    return session_progress(s, PHASE_MEASURE, ++w->done / all, err);
}

static int concurrent(struct classic *w, int col, struct err *err)
{
    struct session *s = w->s;
    int outcome = latency_classic_measure(w, col, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    for (int r = 0; session_is_rank0(s) && outcome == 0 && r < session_ranks(s); r++)
        outcome = latency_classic_report(w, 0, r, col, err);
    return session_meet(s, outcome, err);
}

static int serial(struct classic *w, int matrix, int col, struct err *err)
{
    struct session *s = w->s;
    for (int r = 0; r < session_ranks(s) && !session_stopped(s); r++)
        if (session_meet(s, r == s->comm->rank ? latency_classic_measure(w, col, err) : 0, err) <
                0 ||
            session_meet(s,
                         session_is_rank0(s) ? latency_classic_report(w, matrix, r, col, err) : 0,
                         err) < 0)
            return -1;
    return 0;
}

static int classic_measure_all(struct classic *w, struct err *err)
{
    struct session *s = w->s;
    int mode = s->spec->mode;
    s->limit.repetitions = 0; // each cell is timed once
    w->n_matrices = shape_list(s->spec, w->shapes);
    initstate_r((unsigned)s->slot->info.seed, w->state, sizeof w->state, &w->random);
    int outcome = str_to_sizes(s->spec->size, SPEC_SIZES_MAX, "size", &w->sizes, &w->n_sizes, err);
    if (session_meet(s, outcome, err) < 0 || latency_classic_begin(w, err) < 0)
        return -1;
    for (int col = 0; col < w->n_sizes && !session_stopped(s); col++) {
        if (mode != MODE_SERIAL && concurrent(w, col, err) < 0)
            return -1;
        if (mode != MODE_CONCURRENT && serial(w, mode == MODE_BOTH, col, err) < 0)
            return -1;
    }
    return 0;
}

int latency_classic_run(struct session *s, struct err *err)
{
    struct classic w = {.s = s};
    int outcome = classic_measure_all(&w, err);
    free(w.sizes);
    return outcome;
}

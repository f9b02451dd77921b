// SPDX-License-Identifier: Apache-2.0
// Latency under load: the first rank of each node chases, the others move data. First the loaders
// run alone at full speed; then level after level at a part of that, and the last unbridled. At
// each level all loaders work from before the first sample to after the last.
#include <stdlib.h>

#include "analysis/stats/knee.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/benchmarks/table.h"
#include "bench/session/background_load.h"
#include "bench/session/chaser.h"

enum { CALIBRATE_MS = 100, PIECES_BEFORE = (1 << 20) / WORKER_PIECE_BYTES };

struct loaded {
    struct session *s;
    bool chases;
    int n_chasers, n_levels;
    int *chasers; // ranks; owned
    struct shape shapes[SHAPES_MAX];
    struct arena arena;               // owned
    struct chaser chaser;             // owned; of a chaser
    struct worker worker;             // of a loader
    double full_mb_per_s;             // of this loader
    uint64_t levels;                  // so far
    struct matrix latency, bandwidth; // rank 0's, for the knee; owned
};

static int64_t percent(const struct loaded *w, int level)
{
    return 100 * level / (w->n_levels - 1);
}

static int loaded_node_of(const struct loaded *w, int rank)
{
    return (int)w->s->board->slot[rank].info.cpu_node;
}

static int find_chasers(struct loaded *w, struct err *err)
{
    int ranks = session_ranks(w->s);
    w->chasers = calloc((size_t)ranks, sizeof *w->chasers);
    if (!w->chasers)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks);
    for (int r = 0; r < ranks; r++) {
        bool first = true;
        for (int k = 0; k < r; k++)
            first &= loaded_node_of(w, k) != loaded_node_of(w, r);
        if (first)
            w->chasers[w->n_chasers++] = r;
        w->chases |= first && r == w->s->comm->rank;
    }
    if (w->n_chasers < ranks)
        return 0;
    return err_set(
        err, ERR_USAGE, "ranks",
        "no rank is left to generate load: each of the %d is the first of its node, which chases",
        ranks);
}

static int loaded_make_matrix(const struct loaded *w, struct matrix *m, int shape, struct err *err)
{
    if (shape_make(m, &w->shapes[shape], w->n_chasers, w->n_levels, err) < 0)
        return -1;
    for (int r = 0; r < w->n_chasers; r++)
        m->row.values[r] = w->chasers[r];
    for (int c = 0; c < w->n_levels; c++)
        m->col.values[c] = percent(w, c);
    return 0;
}

static int loaded_make_matrices(struct loaded *w, struct matrix *m, struct err *err)
{
    if (loaded_make_matrix(w, &m[0], 0, err) < 0 || loaded_make_matrix(w, &m[1], 1, err) < 0 ||
        loaded_make_matrix(w, &w->latency, 0, err) < 0)
        return -1;
    return loaded_make_matrix(w, &w->bandwidth, 1, err);
}

static int loaded_begin(struct loaded *w, struct err *err)
{
    struct session *s = w->s;
    struct matrix m[SHAPES_MAX] = {0};
    int ranks = session_ranks(s), n = session_is_rank0(s) ? 2 : 0;
    uint64_t bytes = arena_round(session_size(s), (enum pages)s->spec->pages);
    CLEANUP_MEM struct demand *d = calloc((size_t)ranks, sizeof *d);
    int outcome = d ? find_chasers(w, err) : err_set(err, ERR_NO_MEMORY, "", "no memory");
    for (int r = 0; d && r < ranks; r++)
        d[r] = (struct demand){.node = (int)s->board->slot[r].info.mem_wanted, .bytes = bytes};
    if (outcome == 0 && w->chases)
        outcome = chaser_init(&w->chaser, s, session_size(s), 1, err);
    if (outcome == 0 && n)
        outcome = loaded_make_matrices(w, m, err);
    if (session_meet(s, outcome, err) < 0 || session_begin(s, m, n, d, ranks, err) < 0)
        return -1;
    return session_meet(s, session_arena(s, &w->arena, bytes, -1, err), err);
}

static void loaded_prepare(struct loaded *w)
{
    struct session *s = w->s;
    if (w->chases)
        chaser_build(&w->chaser, &w->arena, session_size(s), 0, 1);
    else
        worker_init(&w->worker, (enum load_kind)s->spec->load, w->arena.base, session_size(s),
                    (uint64_t)s->slot->info.seed);
}

// All loaders at once and no chaser: what a hundred per cent is.
static void calibrate(struct loaded *w)
{
    uint64_t limit_ns = 1000000 * (uint64_t)CALIBRATE_MS;
    if (w->chases)
        return;
    worker_pace(&w->worker, 0);
    uint64_t begun = clock_mono_ns(), before = w->worker.moved;
    while (clock_mono_ns() - begun < limit_ns)
        worker_piece(&w->worker);
    w->full_mb_per_s =
        1000 * (double)(w->worker.moved - before) / (double)(clock_mono_ns() - begun);
}

// --- One level ---------------------------------------------------------------------------------

static bool all(const struct loaded *w, enum tally which)
{
    return board_all(w->s->board, which, w->levels, session_ranks(w->s));
}

static void load_level(struct loaded *w, int level)
{
    struct slot *slot = w->s->slot;
    bool idle = level == 0, full = level == w->n_levels - 1;
    double rate = w->full_mb_per_s * (double)percent(w, level) / 100;
    slot->moved_bytes = slot->moved_ns = 0;
    board_count(w->s->board, TALLY_DONE); // a loader waits only for the chasers' samples
    if (idle) {
        board_count(w->s->board, TALLY_WARM);
        return; // asleep at the barrier
    }
    worker_pace(&w->worker, full ? 0 : rate);
    for (int i = 0; i < PIECES_BEFORE; i++)
        worker_piece(&w->worker);
    board_count(w->s->board, TALLY_WARM);
    uint64_t begun = clock_mono_ns(), before = w->worker.moved;
    while (!all(w, TALLY_DONE))
        worker_piece(&w->worker);
    slot->moved_ns = (double)(clock_mono_ns() - begun);
    slot->moved_bytes = (double)(w->worker.moved - before);
}

static int chase_level(struct loaded *w, struct err *err)
{
    struct session *s = w->s;
    struct cell_sum sum CLEANUP(cell_sum_fini) = {0};
    struct sampler *sampler = &w->chaser.sampler;
    struct stolen stolen = stolen_begin(s);
    sampler_clear(sampler);
    chaser_warm(&w->chaser);
    board_count(s->board, TALLY_WARM);
    while (!all(w, TALLY_WARM))
        sampler_linger(sampler);
    chaser_sample(&w->chaser);
    board_count(s->board, TALLY_DONE);
    while (!all(w, TALLY_DONE))
        sampler_linger(sampler);
    s->slot->stolen_share = stolen_end(s, &stolen);
    if (sampler_keep(sampler, NULL, &sum, err) < 0)
        return -1;
    return cell_sum_up(&sum, s->spec, &s->slot->cell, &s->slot->clean, err);
}

// What the loaders of a chaser's node moved.
static struct cell loaded_moved(const struct loaded *w, int chaser)
{
    struct cell c;
    double mb_per_s = 0;
    cell_clear(&c);
    for (int r = 0; r < session_ranks(w->s); r++) {
        const struct slot *slot = &w->s->board->slot[r];
        if (loaded_node_of(w, r) == loaded_node_of(w, chaser) && slot->moved_ns > 0)
            mb_per_s += 1000 * slot->moved_bytes / slot->moved_ns;
    }
    c.v[CELL_N] = 1;
    c.v[CELL_MEDIAN] = c.v[CELL_MEAN] = c.v[CELL_MIN] = mb_per_s;
    return c;
}

static int loaded_report(struct loaded *w, int level, struct err *err)
{
    struct session *s = w->s;
    for (int i = 0; i < w->n_chasers; i++) {
        struct cell bandwidth = loaded_moved(w, w->chasers[i]);
        const struct slot *slot = &s->board->slot[w->chasers[i]];
        const struct cell *latency = &slot->cell;
        session_judge(s, slot->clean, slot->stolen_share, "rank %d at %lld %% of the load",
                      w->chasers[i], (long long)percent(w, level));
        *matrix_at(&w->latency, i, level) = *latency;
        *matrix_at(&w->bandwidth, i, level) = bandwidth;
        if (session_report_cell(s, w->shapes[0].name, i, level, latency, err) < 0 ||
            session_report_cell(s, w->shapes[1].name, i, level, &bandwidth, err) < 0)
            return -1;
    }
    return session_progress(s, PHASE_MEASURE, (level + 1) / (double)w->n_levels, err);
}

static int loaded_measure(struct loaded *w, int level, struct err *err)
{
    struct session *s = w->s;
    int outcome = 0;
    w->levels++;
    if (w->chases)
        outcome = chase_level(w, err);
    else
        load_level(w, level);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_meet(s, session_is_rank0(s) ? loaded_report(w, level, err) : 0, err);
}

// Where more bandwidth begins to cost much latency.
static int note_knees(struct loaded *w, struct err *err)
{
    CLEANUP_MEM double *x = calloc((size_t)w->n_levels, sizeof *x);
    CLEANUP_MEM double *y = calloc((size_t)w->n_levels, sizeof *y);
    for (int i = 0; x && y && i < w->n_chasers; i++) {
        for (int l = 0; l < w->n_levels; l++) {
            x[l] = matrix_at(&w->bandwidth, i, l)->v[CELL_MEDIAN];
            y[l] = matrix_at(&w->latency, i, l)->v[CELL_MEDIAN];
        }
        int k = knee_of(x, y, w->n_levels);
        if (k >= 0 && session_note(w->s, err, CONDITION_KNEE, -1,
                                   "node %d: the knee is at %.0f MB/s, %.1f ns (idle %.1f ns)",
                                   loaded_node_of(w, w->chasers[i]), x[k], y[k], y[0]) < 0)
            return -1;
    }
    return 0;
}

static int loaded_measure_all(struct loaded *w, struct err *err)
{
    struct session *s = w->s;
    if (loaded_begin(w, err) < 0)
        return -1;
    loaded_prepare(w);
    if (session_meet(s, 0, err) < 0)
        return -1;
    calibrate(w);
    if (session_meet(s, 0, err) < 0)
        return -1;
    for (int level = 0; level < w->n_levels; level++)
        if (loaded_measure(w, level, err) < 0)
            return -1;
    session_check_again(s, &w->arena, -1);
    return session_meet(s, session_is_rank0(s) ? note_knees(w, err) : 0, err);
}

static void loaded_fini(struct loaded *w)
{
    chaser_fini(&w->chaser);
    arena_fini(&w->arena);
    matrix_fini(&w->latency);
    matrix_fini(&w->bandwidth);
    free(w->chasers);
}

int loaded_run(struct session *s, struct err *err)
{
    struct loaded w CLEANUP(loaded_fini) = {.s = s, .n_levels = (int)s->spec->steps + 1};
    shape_list(s->spec, w.shapes);
    return loaded_measure_all(&w, err);
}

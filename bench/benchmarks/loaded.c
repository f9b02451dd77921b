// SPDX-License-Identifier: Apache-2.0
// Latency under load: the first rank of a node chases, the node's others move data. A curve is of a
// row (a chaser on its own memory, or a path from a node to a target) and a mix of reads and
// writes. Rows that are measured at once are a round: with targets=own all rows, otherwise one.
//   1. scout: in a few rounds, full speed and then a rough curve of each mix, whose points are
//      placed one after the other where it bends. All ranks see the same numbers on the board, so
//      all place the same points
//   2. announce the matrices, whose columns are these levels of load
//   3. visit by visit: each round, each mix, from idle to full. At each level all loaders work from
//      before the first sample to after the last
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/stats/knee.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "bench/benchmarks/table.h"
#include "bench/session/background_load.h"
#include "bench/session/chaser.h"
#include "bench/session/proofs.h"
#include "model/method.h"
#include "model/mix.h"
#include "model/spec_values.h"

enum {
    PIECES_BEFORE = (1 << 20) / WORKER_PIECE_BYTES, // moved before the first sample
    LEVELS_MAX = SPEC_STEPS_MAX + 1,
};

static const double MOVED_LEAST = 0.98; // of what was requested: less is worth a note

// Of a level of load, on the rank that keeps it.
struct level_sum {
    struct cell_sum cells;
    double stolen; // share of the time, over the visits
};

struct loaded {
    struct session *s;
    int n_mixes, n_levels;
    const struct load_mix *mixes[SPEC_MIXES_MAX];
    struct shape shapes[SHAPES_MAX]; // latency and bandwidth of each mix
    int n_chasers, n_targets, n_rounds;
    int *chasers; // ranks; owned
    bool chases;
    uint64_t loader_bytes;                           // working set of each loader
    uint64_t bytes;                                  // of this rank
    int round;                                       // that `arena` is of; -1: none
    struct arena arena;                              // owned
    struct chaser chaser;                            // owned; of a chaser
    struct worker worker;                            // of a loader
    double *full_mb_per_s;                           // [n_rounds * n_mixes], of this loader; owned
    bool *calibrated;                                // the same; owned
    struct load_curve (*scouted)[LOAD_SCOUT_ROUNDS]; // [n_mixes]; owned
    int levels[SPEC_MIXES_MAX][LEVELS_MAX];          // per cent
    struct level_sum *latency;                       // [n_targets * n_mixes * n_levels]; owned
    struct level_sum *moved;                         // the same of all rows, on rank 0; owned
    uint64_t tallies;                                // levels so far
    int visited, visits;                             // levels of all visits, for the progress
    double least_moved;                              // of what was requested, on rank 0
    char least_at[80];
    struct proofs proofs; // on rank 0
};

// --- Who does what -----------------------------------------------------------------------------

static int loaded_node_of(const struct loaded *w, int rank)
{
    return (int)w->s->board->slot[rank].info.cpu_node;
}

static bool by_path(const struct loaded *w)
{
    return w->s->n_targets > 0;
}

static int row_chaser(const struct loaded *w, int row)
{
    return w->chasers[row / w->n_targets];
}

static int first_row(const struct loaded *w, int round)
{
    return by_path(w) ? round : 0;
}

static int last_row(const struct loaded *w, int round)
{
    return by_path(w) ? round : w->n_chasers - 1;
}

static int loaded_target_of(const struct loaded *w, int round)
{
    return by_path(w) ? w->s->targets[round % w->n_targets] : -1;
}

static bool works(const struct loaded *w, int round, int rank)
{
    return !by_path(w) || loaded_node_of(w, rank) == loaded_node_of(w, row_chaser(w, round));
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
        if (by_path(w) && loaded_node_of(w, r) < 0)
            return err_set(err, ERR_UNAVAILABLE, "targets",
                           "must be own: the NUMA node of rank %d's CPU is not known", r);
    }
    if (w->n_chasers < ranks)
        return 0;
    return err_set(
        err, ERR_USAGE, "ranks",
        "no rank is left to generate load: each of the %d is the first of its node, which chases",
        ranks);
}

static bool loaded_is_chaser(const struct loaded *w, int rank)
{
    for (int i = 0; i < w->n_chasers; i++)
        if (w->chasers[i] == rank)
            return true;
    return false;
}

// The loaders of one last-level cache have the working set of a chaser together.
static uint64_t find_loader_bytes(const struct loaded *w)
{
    const struct session *s = w->s;
    CLEANUP_MEM int *llc = calloc((size_t)session_ranks(s), sizeof *llc);
    uint64_t l2 = 0, last = 0;
    int n = 0;
    for (int r = 0; llc && r < session_ranks(s); r++) {
        const struct slot *slot = &s->board->slot[r];
        if (loaded_is_chaser(w, r))
            continue;
        llc[n++] = slot->cpu_place.llc;
        l2 = slot->l2_bytes > l2 ? slot->l2_bytes : l2;
        last = slot->llc_bytes > last ? slot->llc_bytes : last;
    }
    return spec_loader_bytes(session_size(s), spec_load_sharing(llc, n),
                             spec_private_bytes(l2, last));
}

// Working set of a rank.
static uint64_t loaded_bytes_of(const struct loaded *w, int rank)
{
    return loaded_is_chaser(w, rank) ? session_size(w->s) : w->loader_bytes;
}

// --- Before the first level --------------------------------------------------------------------

static int loaded_allocate(struct loaded *w, struct err *err)
{
    const struct session *s = w->s;
    size_t curves = (size_t)w->n_rounds * (size_t)w->n_mixes;
    size_t levels = (size_t)w->n_mixes * (size_t)w->n_levels;
    size_t rows = session_is_rank0(s) ? (size_t)(w->n_chasers * w->n_targets) : 0;
    w->full_mb_per_s = calloc(curves, sizeof *w->full_mb_per_s);
    w->calibrated = calloc(curves, sizeof *w->calibrated);
    w->scouted = calloc((size_t)w->n_mixes, sizeof *w->scouted);
    w->latency = calloc((size_t)w->n_targets * levels, sizeof *w->latency);
    w->moved = calloc(rows * levels + 1, sizeof *w->moved);
    if (!w->full_mb_per_s || !w->calibrated || !w->scouted || !w->latency || !w->moved)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %zu curves", curves);
    return w->chases ? chaser_init(&w->chaser, w->s, w->bytes, s->spec->visits, err) : 0;
}

// Each rank on its node; or on each target, in turn, what the ranks of the largest node have.
static int count_demands(const struct loaded *w, struct demand *d)
{
    const struct session *s = w->s;
    enum pages pages = (enum pages)s->spec->pages;
    for (int r = 0; !by_path(w) && r < session_ranks(s); r++)
        d[r] = (struct demand){.node = s->board->slot[r].memory,
                               .bytes = arena_round(loaded_bytes_of(w, r), pages)};
    if (!by_path(w))
        return session_ranks(s);
    uint64_t most = 0;
    for (int i = 0; i < w->n_chasers; i++) {
        uint64_t bytes = 0;
        for (int r = 0; r < session_ranks(s); r++)
            if (loaded_node_of(w, r) == loaded_node_of(w, w->chasers[i]))
                bytes += arena_round(loaded_bytes_of(w, r), pages);
        most = bytes > most ? bytes : most;
    }
    for (int t = 0; t < w->n_targets; t++)
        d[t] = (struct demand){.node = s->targets[t], .bytes = most, .in_turn = true};
    return w->n_targets;
}

static int loaded_begin(struct loaded *w, struct err *err)
{
    struct session *s = w->s;
    int most = session_ranks(s) > SPEC_TARGETS_MAX ? session_ranks(s) : SPEC_TARGETS_MAX, n = 0;
    CLEANUP_MEM struct demand *d = calloc((size_t)most, sizeof *d);
    int outcome = d ? find_chasers(w, err) : err_set(err, ERR_NO_MEMORY, "", "no memory");
    if (session_meet(s, outcome, err) < 0)
        return -1;
    w->n_targets = by_path(w) ? s->n_targets : 1;
    w->n_rounds = by_path(w) ? w->n_chasers * w->n_targets : 1;
    w->loader_bytes = find_loader_bytes(w);
    w->bytes = loaded_bytes_of(w, s->comm->rank);
    n = count_demands(w, d);
    if (session_meet(s, loaded_allocate(w, err), err) < 0)
        return -1;
    return session_begin(s, NULL, 0, d, n, err);
}

static void loaded_label_rows(const struct loaded *w, struct axis *a)
{
    for (int i = 0; i < a->n; i++)
        a->values[i] = by_path(w) ? axis_pair(loaded_node_of(w, row_chaser(w, i)),
                                              w->s->targets[i % w->n_targets])
                                  : w->chasers[i];
}

static int loaded_announce(struct loaded *w, struct err *err)
{
    struct session *s = w->s;
    struct matrix m[SHAPES_MAX] = {0};
    int n = session_is_rank0(s) ? 2 * w->n_mixes : 0, outcome = 0;
    for (int i = 0; i < n && outcome == 0; i++) {
        outcome = shape_make(&m[i], &w->shapes[i], w->n_chasers * w->n_targets, w->n_levels, err);
        if (outcome < 0)
            break;
        loaded_label_rows(w, &m[i].row);
        for (int c = 0; c < w->n_levels; c++)
            m[i].col.values[c] = w->levels[i / 2][c];
    }
    if (session_meet(s, outcome, err) < 0) {
        for (int i = 0; i < n; i++)
            matrix_fini(&m[i]);
        return -1;
    }
    return session_announce(s, m, n, err);
}

// --- A round and a mix -------------------------------------------------------------------------

static void leave_place(struct loaded *w)
{
    if (w->arena.base)
        session_check_again(w->s, &w->arena, loaded_target_of(w, w->round));
    arena_fini(&w->arena);
}

// Memory of the round, for the ranks that work in it; with targets=own that of the first round
// stays. A visit has a chain of its own.
static int loaded_place(struct loaded *w, int round, int64_t visit, struct err *err)
{
    struct session *s = w->s;
    bool ours = works(w, round, s->comm->rank);
    int outcome = 0;
    if (w->round != round) {
        leave_place(w);
        if (ours)
            outcome = session_arena(s, &w->arena, w->bytes, loaded_target_of(w, round), err);
        w->round = round;
    }
    if (outcome == 0 && ours && w->chases)
        chaser_build(&w->chaser, &w->arena, w->bytes, visit, s->spec->visits);
    return session_meet(s, outcome, err);
}

static double moves_for(struct worker *w, uint64_t limit_ns)
{
    uint64_t begun = clock_mono_ns(), before = w->moved, now;
    do
        worker_piece(w);
    while ((now = clock_mono_ns()) - begun < limit_ns);
    return 1000 * (double)(w->moved - before) / (double)(now - begun);
}

// What a hundred per cent is: all loaders at once and no chaser. The best of several times, because
// one without the CPU would make each level of load too small.
static void calibrate(struct loaded *w, int curve)
{
    worker_pace(&w->worker, 0);
    for (int i = 0; i < PIECES_BEFORE; i++)
        worker_piece(&w->worker);
    for (int i = 0; i < LOAD_CALIBRATIONS; i++)
        w->full_mb_per_s[curve] = fmax(
            w->full_mb_per_s[curve], moves_for(&w->worker, 1000000 * (uint64_t)LOAD_CALIBRATE_MS));
}

static int begin_mix(struct loaded *w, int round, int mix, struct err *err)
{
    struct session *s = w->s;
    int curve = round * w->n_mixes + mix;
    bool loads = !w->chases && works(w, round, s->comm->rank);
    if (loads)
        worker_init(&w->worker, w->mixes[mix]->kind, w->arena.base, w->bytes,
                    (uint64_t)s->slot->info.seed);
    if (session_meet(s, 0, err) < 0)
        return -1;
    if (w->calibrated[curve])
        return 0;
    w->calibrated[curve] = true;
    if (loads)
        calibrate(w, curve);
    return session_meet(s, 0, err);
}

// --- One level ---------------------------------------------------------------------------------

static bool all(const struct loaded *w, enum tally which)
{
    return board_all(w->s->board, which, w->tallies, session_ranks(w->s));
}

static void load_level(struct loaded *w, int curve, int percent)
{
    struct slot *slot = w->s->slot;
    double rate = w->full_mb_per_s[curve] * percent / 100;
    worker_pace(&w->worker, percent == 100 ? 0 : rate);
    for (int i = 0; i < PIECES_BEFORE; i++)
        worker_piece(&w->worker);
    board_count(w->s->board, TALLY_WARM);
    uint64_t begun = clock_mono_ns(), before = w->worker.moved;
    while (!all(w, TALLY_DONE))
        worker_piece(&w->worker);
    slot->moved_ns = (double)(clock_mono_ns() - begun);
    slot->moved_bytes = (double)(w->worker.moved - before);
    slot->requested_bytes = w->worker.pace.rate * slot->moved_ns;
}

// The load works from here on: the samples may begin.
static void chase_warm(struct loaded *w, int percent)
{
    struct sampler *sampler = &w->chaser.sampler;
    sampler_clear(sampler);
    if (percent == 0)
        chaser_warm(&w->chaser);
    else
        sampler_warm(sampler, 0, 1000000 * (uint64_t)LOAD_WARM_MS);
    board_count(w->s->board, TALLY_WARM);
    while (!all(w, TALLY_WARM))
        sampler_linger(sampler);
}

static void chase_on(struct loaded *w)
{
    board_count(w->s->board, TALLY_DONE);
    while (!all(w, TALLY_DONE))
        sampler_linger(&w->chaser.sampler);
}

static int chase_level(struct loaded *w, int percent, struct level_sum *sum, struct err *err)
{
    struct stolen stolen = stolen_begin(w->s);
    chase_warm(w, percent);
    chaser_sample(&w->chaser);
    chase_on(w);
    sum->stolen += stolen_end(w->s, &stolen) / (double)w->s->spec->visits;
    return sampler_keep(&w->chaser.sampler, NULL, &sum->cells, err);
}

// A few samples: their median is the slot's.
static int chase_roughly(struct loaded *w, int percent, struct err *err)
{
    struct sampler *sampler = &w->chaser.sampler;
    struct cell_sum sum CLEANUP(cell_sum_fini) = {0};
    struct slot *slot = w->s->slot;
    chase_warm(w, percent);
    for (int i = 0; i < LOAD_SCOUT_SAMPLES; i++)
        sampler_take(sampler);
    chase_on(w);
    if (sampler_keep(sampler, NULL, &sum, err) < 0)
        return -1;
    return cell_sum_up(&sum, w->s->spec, &slot->cell, &slot->evidence, err);
}

// `sum` is the chaser's; NULL: scouting.
static int loaded_level(struct loaded *w, int round, int mix, int percent, struct level_sum *sum,
                        struct err *err)
{
    struct session *s = w->s;
    struct slot *slot = s->slot;
    bool ours = works(w, round, s->comm->rank);
    int outcome = 0;
    w->tallies++;
    slot->moved_bytes = slot->moved_ns = slot->requested_bytes = 0;
    if (!w->chases || !ours)
        board_count(s->board, TALLY_DONE); // it waits only for the chasers' samples
    if (w->chases && ours)
        outcome = sum ? chase_level(w, percent, sum, err) : chase_roughly(w, percent, err);
    else if (ours && percent > 0)
        load_level(w, round * w->n_mixes + mix, percent);
    else
        board_count(s->board, TALLY_WARM); // and sleeps at the barrier
    return session_meet(s, outcome, err);
}

// What the loaders of a row moved, and what of it a pace requested.
static double row_moved(const struct loaded *w, int row, double *requested)
{
    int node = loaded_node_of(w, row_chaser(w, row));
    double mb_per_s = 0;
    *requested = 0;
    for (int r = 0; r < session_ranks(w->s); r++) {
        const struct slot *slot = &w->s->board->slot[r];
        if (loaded_node_of(w, r) != node || slot->moved_ns <= 0)
            continue;
        mb_per_s += 1000 * slot->moved_bytes / slot->moved_ns;
        *requested += 1000 * slot->requested_bytes / slot->moved_ns;
    }
    return mb_per_s;
}

// --- Scouting ----------------------------------------------------------------------------------

// All ranks read the same slots, between two meetings.
static void take_point(struct loaded *w, int round, int mix, int scout, int percent)
{
    double mb_per_s = 0, ns = 0, requested;
    int rows = last_row(w, round) - first_row(w, round) + 1;
    for (int row = first_row(w, round); row <= last_row(w, round); row++) {
        mb_per_s += row_moved(w, row, &requested);
        ns += w->s->board->slot[row_chaser(w, row)].cell.v[CELL_MEDIAN] / rows;
    }
    load_curve_add(&w->scouted[mix][scout], percent, mb_per_s, ns);
}

static int scout_mix(struct loaded *w, int round, int mix, int scout, struct err *err)
{
    struct load_curve *c = &w->scouted[mix][scout];
    if (begin_mix(w, round, mix, err) < 0)
        return -1;
    while (c->n < w->n_levels) {
        int percent = load_curve_next(c);
        if (loaded_level(w, round, mix, percent, NULL, err) < 0)
            return -1;
        take_point(w, round, mix, scout, percent);
        if (session_meet(w->s, 0, err) < 0)
            return -1;
    }
    return 0;
}

// Levels that all rows of a mix have.
static void place_levels(struct loaded *w, int mix, int scouts)
{
    struct load_curve common = {0};
    while (common.n < w->n_levels)
        load_curve_add(&common, load_curves_next(w->scouted[mix], scouts, common.level, common.n),
                       0, 0);
    for (int c = 0; c < w->n_levels; c++)
        w->levels[mix][c] = common.level[c];
}

static int scout(struct loaded *w, struct err *err)
{
    int scouts = w->n_rounds < LOAD_SCOUT_ROUNDS ? w->n_rounds : LOAD_SCOUT_ROUNDS;
    for (int i = 0; i < scouts; i++) {
        int round = i * w->n_rounds / scouts;
        if (loaded_place(w, round, 0, err) < 0)
            return -1;
        for (int mix = 0; mix < w->n_mixes; mix++)
            if (scout_mix(w, round, mix, i, err) < 0)
                return -1;
    }
    for (int mix = 0; mix < w->n_mixes; mix++)
        place_levels(w, mix, scouts);
    return 0;
}

// --- Measuring ---------------------------------------------------------------------------------

static struct level_sum *sum_at(const struct loaded *w, struct level_sum *list, int curve,
                                int level)
{
    return &list[curve * w->n_levels + level];
}

// Where a chaser keeps the curve of a round.
static int own_curve(const struct loaded *w, int round, int mix)
{
    return (by_path(w) ? round % w->n_targets : 0) * w->n_mixes + mix;
}

// "rank 0", "path 0->2"
static void loaded_row_name(const struct loaded *w, int mix, int row, char *out, size_t room)
{
    const struct axis *a = &w->s->emit->matrix[2 * mix].row;
    char label[40];
    axis_label(a, row, label, sizeof label);
    snprintf(out, room, "%s %s", a->name, label);
}

static int keep_moved(struct loaded *w, int round, int mix, int level, struct err *err)
{
    for (int row = first_row(w, round); row <= last_row(w, round); row++) {
        struct level_sum *sum = sum_at(w, w->moved, row * w->n_mixes + mix, level);
        double requested;
        struct sample x = {.hop_ns = row_moved(w, row, &requested)};
        if (cell_sum_add(&sum->cells, &x, err) < 0)
            return -1;
        cell_sum_next_visit(&sum->cells);
        if (requested <= 0 || x.hop_ns >= w->least_moved * requested)
            continue;
        w->least_moved = x.hop_ns / requested;
        char who[60];
        loaded_row_name(w, mix, row, who, sizeof who);
        snprintf(w->least_at, sizeof w->least_at, "%s at %d %% of the load, %s",
                 w->mixes[mix]->name, w->levels[mix][level], who);
    }
    return 0;
}

static int loaded_report_row(struct loaded *w, int row, int mix, int level, struct err *err)
{
    struct session *s = w->s;
    int chaser = row_chaser(w, row);
    struct evidence evidence;
    const struct slot *slot = &s->board->slot[chaser];
    struct cell moved, latency = slot->cell;
    char who[60];
    if (!slot->measured)
        return 0;
    loaded_row_name(w, mix, row, who, sizeof who);
    session_judge(s, &slot->evidence, slot->stolen_share, "%s: %s at %d %% of the load",
                  w->shapes[2 * mix].name, who, w->levels[mix][level]);
    if (cell_sum_up(&sum_at(w, w->moved, row * w->n_mixes + mix, level)->cells, s->spec, &moved,
                    &evidence, err) < 0)
        return -1;
    moved.v[CELL_OVERLAP] = moved.v[CELL_CONVERGED] = NAN; // nothing was promised of it
    proofs_add(&w->proofs, s, chaser, &latency, session_size(s), w->levels[mix][level] > 0,
               "%s: %s at %d %% of the load", w->shapes[2 * mix].name, who, w->levels[mix][level]);
    if (session_report_cell(s, w->shapes[2 * mix].name, row, level, &latency, err) < 0)
        return -1;
    return session_report_cell(s, w->shapes[2 * mix + 1].name, row, level, &moved, err);
}

static int report_curves(struct loaded *w, int round, int mix, struct err *err)
{
    struct session *s = w->s;
    for (int level = 0; level < w->n_levels; level++) {
        struct level_sum *sum = sum_at(w, w->latency, own_curve(w, round, mix), level);
        int outcome = 0;
        bool ours = w->chases && works(w, round, s->comm->rank);
        s->slot->measured = ours && cell_sum_any(&sum->cells);
        if (s->slot->measured) {
            outcome = cell_sum_up(&sum->cells, s->spec, &s->slot->cell, &s->slot->evidence, err);
            s->slot->stolen_share = sum->stolen;
        }
        if (session_meet(s, outcome, err) < 0)
            return -1;
        for (int row = first_row(w, round); session_is_rank0(s) && row <= last_row(w, round); row++)
            if ((outcome = loaded_report_row(w, row, mix, level, err)) < 0)
                break;
        if (session_meet(s, outcome, err) < 0)
            return -1;
    }
    return 0;
}

static int measure_mix(struct loaded *w, int round, int mix, struct err *err)
{
    struct session *s = w->s;
    if (begin_mix(w, round, mix, err) < 0)
        return -1;
    for (int level = 0; level < w->n_levels && !session_stopped(s); level++) {
        struct level_sum *sum = sum_at(w, w->latency, own_curve(w, round, mix), level);
        int outcome = 0;
        if (loaded_level(w, round, mix, w->levels[mix][level], sum, err) < 0)
            return -1;
        if (session_is_rank0(s))
            outcome = keep_moved(w, round, mix, level, err);
        if (outcome == 0)
            outcome = session_progress(s, PHASE_MEASURE, ++w->visited / (double)w->visits, err);
        if (session_meet(s, outcome, err) < 0)
            return -1;
    }
    return 0;
}

static int measure_visit(struct loaded *w, int64_t visit, struct err *err)
{
    for (int round = 0; round < w->n_rounds && !session_stopped(w->s); round++) {
        if (loaded_place(w, round, visit, err) < 0)
            return -1;
        for (int mix = 0; mix < w->n_mixes && !session_stopped(w->s); mix++)
            if (measure_mix(w, round, mix, err) < 0)
                return -1;
    }
    return 0;
}

// --- Notes -------------------------------------------------------------------------------------

// Where more bandwidth begins to cost much latency.
static int note_knee(struct loaded *w, int mix, int row, struct err *err)
{
    const struct matrix *latency = &w->s->emit->matrix[2 * mix],
                        *bandwidth = &w->s->emit->matrix[2 * mix + 1];
    double x[LEVELS_MAX], y[LEVELS_MAX];
    char label[40];
    for (int l = 0; l < w->n_levels; l++) {
        x[l] = matrix_at(bandwidth, row, l)->v[CELL_MEDIAN];
        y[l] = matrix_at(latency, row, l)->v[CELL_MEDIAN];
    }
    int k = knee_of(x, y, w->n_levels);
    if (k < 0)
        return 0;
    if (by_path(w))
        axis_label(&latency->row, row, label, sizeof label);
    else
        snprintf(label, sizeof label, "%d", loaded_node_of(w, row_chaser(w, row)));
    return session_note(w->s, err, CONDITION_KNEE, -1,
                        "node %s, %s: the knee is at %.0f MB/s, %.1f ns (idle %.1f ns)", label,
                        w->mixes[mix]->name, x[k], y[k], y[0]);
}

// Chasers that are alone on their node: idle at each level.
static int loaded_note_unloaded(struct loaded *w, struct err *err)
{
    CLEANUP_MEM int *nodes = calloc((size_t)w->n_chasers + 1, sizeof *nodes);
    char list[60];
    int n = 0;
    if (!nodes)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", w->n_chasers);
    for (int i = 0; i < w->n_chasers; i++) {
        int node = loaded_node_of(w, w->chasers[i]), ranks = 0;
        for (int r = 0; r < session_ranks(w->s); r++)
            ranks += loaded_node_of(w, r) == node;
        if (ranks == 1)
            nodes[n++] = node;
    }
    str_from_ids(nodes, n, list, sizeof list);
    if (!n)
        return 0;
    return session_note(w->s, err, CONDITION_BACKGROUND_LOAD, -1,
                        "node%s %s %s one rank, which chases: nothing loaded %s memory, and all "
                        "values are those of an idle node",
                        str_plural(n), list, n == 1 ? "has" : "have", n == 1 ? "its" : "their");
}

static int loaded_notes(struct loaded *w, struct err *err)
{
    if (loaded_note_unloaded(w, err) < 0)
        return -1;
    for (int mix = 0; mix < w->n_mixes && !session_stopped(w->s); mix++)
        for (int row = 0; row < w->n_chasers * w->n_targets; row++)
            if (note_knee(w, mix, row, err) < 0)
                return -1;
    if (proofs_report(&w->proofs, w->s, err) < 0)
        return -1;
    if (w->least_moved >= MOVED_LEAST)
        return 0;
    return session_note(w->s, err, CONDITION_BACKGROUND_LOAD, -1,
                        "the loaders moved less than was requested, at worst %.0f %% of it (%s): "
                        "the bandwidth in the results is what they moved",
                        100 * w->least_moved, w->least_at);
}

// --- The whole ---------------------------------------------------------------------------------

static int loaded_measure_all(struct loaded *w, struct err *err)
{
    struct session *s = w->s;
    if (loaded_begin(w, err) < 0 || scout(w, err) < 0 || loaded_announce(w, err) < 0)
        return -1;
    w->visits = (int)s->spec->visits * w->n_rounds * w->n_mixes * w->n_levels;
    for (int64_t visit = 0; visit < s->spec->visits; visit++)
        if (measure_visit(w, visit, err) < 0)
            return -1;
    leave_place(w);
    for (int round = 0; round < w->n_rounds; round++)
        for (int mix = 0; mix < w->n_mixes; mix++)
            if (report_curves(w, round, mix, err) < 0)
                return -1;
    return session_meet(s, session_is_rank0(s) ? loaded_notes(w, err) : 0, err);
}

static void level_sums_free(struct level_sum *list, size_t n)
{
    for (size_t i = 0; list && i < n; i++)
        cell_sum_fini(&list[i].cells);
    free(list);
}

static void loaded_fini(struct loaded *w)
{
    size_t levels = (size_t)w->n_mixes * (size_t)w->n_levels;
    size_t rows = session_is_rank0(w->s) ? (size_t)(w->n_chasers * w->n_targets) : 0;
    level_sums_free(w->latency, (size_t)w->n_targets * levels);
    level_sums_free(w->moved, rows * levels);
    chaser_fini(&w->chaser);
    arena_fini(&w->arena);
    free(w->full_mb_per_s);
    free(w->calibrated);
    free(w->scouted);
    free(w->chasers);
}

int loaded_run(struct session *s, struct err *err)
{
    struct loaded w CLEANUP(loaded_fini) = {
        .s = s, .n_levels = (int)s->spec->steps + 1, .round = -1, .least_moved = 1};
    if (session_meet(s, mix_list(s->spec, w.mixes, &w.n_mixes, err), err) < 0)
        return -1;
    shape_list(s->spec, w.shapes);
    if (by_path(&w))
        s->slot->info.mem_wanted = -1; // each target in turn
    return loaded_measure_all(&w, err);
}

// SPDX-License-Identifier: Apache-2.0
// The matrix benchmark: one rank at a time, on each target node, while all others sleep.
#include <stdlib.h>

#include "base/cleanup.h"
#include "bench/benchmarks/table.h"
#include "bench/session/chaser.h"
#include "bench/session/proofs.h"

struct idle {
    struct session *s;
    struct chaser chaser; // owned
    struct shape shape;
    uint64_t bytes;
    int done;             // cells
    struct proofs proofs; // on rank 0
};

static int matrix_make_matrix(const struct idle *w, struct matrix *m, struct err *err)
{
    const struct session *s = w->s;
    if (shape_make(m, &w->shape, session_ranks(s), s->n_targets, err) < 0)
        return -1;
    for (int t = 0; t < s->n_targets; t++)
        m->col.values[t] = s->targets[t];
    return 0;
}

// One arena at a time exists, so each target has to hold one.
static int matrix_begin(struct idle *w, struct err *err)
{
    struct session *s = w->s;
    struct matrix m[1] = {0};
    struct demand d[SPEC_TARGETS_MAX];
    for (int t = 0; t < s->n_targets; t++)
        d[t] = (struct demand){.node = s->targets[t],
                               .bytes = arena_round(w->bytes, (enum pages)s->spec->pages),
                               .in_turn = true};
    int n = session_is_rank0(s);
    if (session_meet(s, n ? matrix_make_matrix(w, m, err) : 0, err) < 0)
        return -1;
    return session_begin(s, m, n, d, s->n_targets, err);
}

static int matrix_visit(struct idle *w, const struct arena *a, int64_t visit, struct cell_sum *sum,
                        struct err *err)
{
    chaser_build(&w->chaser, a, w->bytes, visit, w->s->spec->visits);
    sampler_clear(&w->chaser.sampler);
    chaser_warm(&w->chaser);
    chaser_sample(&w->chaser);
    return sampler_keep(&w->chaser.sampler, NULL, sum, err);
}

static int matrix_measure(struct idle *w, int target, struct err *err)
{
    struct session *s = w->s;
    struct arena a CLEANUP(arena_fini) = {0};
    struct cell_sum sum CLEANUP(cell_sum_fini) = {0};
    struct stolen stolen = stolen_begin(s);
    if (session_arena(s, &a, w->bytes, target, err) < 0)
        return -1;
    for (int64_t v = 0; v < s->spec->visits; v++)
        if (matrix_visit(w, &a, v, &sum, err) < 0)
            return -1;
    s->slot->stolen_share = stolen_end(s, &stolen);
    s->slot->counted = sum.counted;
    return cell_sum_up(&sum, s->spec, &s->slot->cell, &s->slot->clean, err);
}

static int matrix_report(struct idle *w, int rank, int col, struct err *err)
{
    struct session *s = w->s;
    const struct slot *slot = &s->board->slot[rank];
    double share = ++w->done / (double)s->total;
    session_judge(s, slot->clean, slot->stolen_share, "rank %d on node %d", rank, s->targets[col]);
    proofs_add(&w->proofs, s, rank, w->bytes, false, "rank %d on node %d", rank, s->targets[col]);
    if (session_report_cell(s, w->shape.name, rank, col, &slot->cell, err) < 0)
        return -1;
    return session_progress(s, PHASE_MEASURE, share, err);
}

static int all_cells(struct idle *w, struct err *err)
{
    struct session *s = w->s;
    for (int t = 0; t < s->n_targets; t++)
        for (int r = 0; r < session_ranks(s); r++) {
            bool ours = r == s->comm->rank;
            if (session_meet(s, ours ? matrix_measure(w, s->targets[t], err) : 0, err) < 0 ||
                session_meet(s, session_is_rank0(s) ? matrix_report(w, r, t, err) : 0, err) < 0)
                return -1;
        }
    return 0;
}

int matrix_run(struct session *s, struct err *err)
{
    struct idle w = {.s = s, .bytes = session_size(s)};
    struct shape list[SHAPES_MAX];
    shape_list(s->spec, list);
    w.shape = list[0];
    s->slot->info.mem_wanted = -1; // each target in turn
    int outcome = chaser_init(&w.chaser, s, w.bytes, s->spec->visits, err);
    outcome =
        session_meet(s, outcome, err) < 0 || matrix_begin(&w, err) < 0 ? -1 : all_cells(&w, err);
    if (outcome == 0)
        outcome = session_meet(s, proofs_report(&w.proofs, s, err), err);
    chaser_fini(&w.chaser);
    return outcome;
}

// SPDX-License-Identifier: Apache-2.0
// The matrix benchmark: one rank at a time, on each target node, while all others sleep. All cells
// are visited once, then all again, each time on other pages and in another order of links. Of many
// cells some are measured (pairs_most).
#include <stdlib.h>

#include "base/cleanup.h"
#include "bench/benchmarks/table.h"
#include "bench/session/chaser.h"
#include "bench/session/proofs.h"
#include "bench/session/target_order.h"

struct idle {
    struct session *s;
    struct chaser chaser; // owned
    struct shape shape;
    uint64_t bytes;
    bool *chosen; // [rank * targets + target], that are measured; owned
    int n_chosen;
    struct cell_sum sums[SPEC_TARGETS_MAX]; // ours; owned
    double stolen[SPEC_TARGETS_MAX];        // the same
    struct proofs proofs;                   // on rank 0
    int64_t visited;                        // cells, each once a visit
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

static bool matrix_has(const struct idle *w, int rank, int target)
{
    return w->chosen[rank * w->s->n_targets + target];
}

// All ranks choose the same, from the nodes that the ranks reported.
static int matrix_choose(struct idle *w, struct err *err)
{
    const struct session *s = w->s;
    int own[SPEC_RANKS_MAX], ranks = session_ranks(s), all = ranks * s->n_targets;
    w->n_chosen = (int)spec_pairs_of(s->spec, all);
    w->chosen = calloc((size_t)all, sizeof *w->chosen);
    if (!w->chosen)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d cells", all);
    for (int r = 0; r < ranks; r++) {
        own[r] = -1;
        for (int t = 0; t < s->n_targets; t++)
            if (s->targets[t] == s->board->slot[r].info.cpu_node)
                own[r] = t;
    }
    if (shape_check_pairs(s->spec, ranks, s->n_targets, err) < 0)
        return -1;
    return target_order_choose(w->chosen, own, ranks, s->n_targets, w->n_chosen, err);
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

static int matrix_visit(struct idle *w, int target, int64_t visit, struct err *err)
{
    struct session *s = w->s;
    struct arena a CLEANUP(arena_fini) = {0};
    int node = s->targets[target];
    if (session_arena(s, &a, w->bytes, node, err) < 0)
        return -1;
    struct stolen stolen = stolen_begin(s);
    chaser_build(&w->chaser, &a, w->bytes, visit, s->spec->visits);
    sampler_clear(&w->chaser.sampler);
    chaser_warm(&w->chaser);
    chaser_sample(&w->chaser);
    w->stolen[target] += stolen_end(s, &stolen) / (double)s->spec->visits;
    session_check_again(s, &a, node);
    return sampler_keep(&w->chaser.sampler, NULL, &w->sums[target], err);
}

static int matrix_visit_all(struct idle *w, int64_t visit, struct err *err)
{
    struct session *s = w->s;
    for (int t = 0; t < s->n_targets; t++) {
        for (int r = 0; r < session_ranks(s) && !session_stopped(s); r++) {
            if (!matrix_has(w, r, t))
                continue;
            bool ours = r == s->comm->rank;
            if (session_meet(s, ours ? matrix_visit(w, t, visit, err) : 0, err) < 0)
                return -1;
            double cells = (double)(++w->visited) / (double)s->spec->visits;
            double share = cells / w->n_chosen;
            if (session_meet(s, session_progress(s, PHASE_MEASURE, share, err), err) < 0)
                return -1;
        }
    }
    return 0;
}

static int matrix_report(struct idle *w, int target, struct err *err)
{
    struct session *s = w->s;
    int outcome = 0;
    s->slot->measured = cell_sum_any(&w->sums[target]);
    if (s->slot->measured)
        outcome = cell_sum_up(&w->sums[target], s->spec, &s->slot->cell, &s->slot->evidence, err);
    s->slot->stolen_share = w->stolen[target];
    if (session_meet(s, outcome, err) < 0)
        return -1;
    for (int r = 0; session_is_rank0(s) && outcome == 0 && r < session_ranks(s); r++) {
        const struct slot *slot = &s->board->slot[r];
        if (!slot->measured)
            continue;
        session_judge(s, &slot->evidence, slot->stolen_share, "rank %d on node %d", r,
                      s->targets[target]);
        struct cell cell = slot->cell;
        proofs_add(&w->proofs, s, r, &cell, w->bytes, false, "rank %d on node %d", r,
                   s->targets[target]);
        outcome = session_report_cell(s, w->shape.name, r, target, &cell, err);
    }
    return session_meet(s, outcome, err);
}

static int matrix_measure(struct idle *w, struct err *err)
{
    for (int64_t visit = 0; visit < w->s->spec->visits; visit++)
        if (matrix_visit_all(w, visit, err) < 0)
            return -1;
    for (int t = 0; t < w->s->n_targets; t++)
        if (matrix_report(w, t, err) < 0)
            return -1;
    return 0;
}

static void idle_fini(struct idle *w)
{
    chaser_fini(&w->chaser);
    free(w->chosen);
    for (int t = 0; t < w->s->n_targets; t++)
        cell_sum_fini(&w->sums[t]);
}

int matrix_run(struct session *s, struct err *err)
{
    struct idle w = {.s = s, .bytes = session_size(s)};
    struct shape list[SHAPES_MAX];
    shape_list(s->spec, list);
    w.shape = list[0];
    s->slot->info.mem_wanted = -1; // each target in turn
    int outcome = chaser_init(&w.chaser, s, w.bytes, s->spec->visits, err);
    outcome = outcome < 0 ? outcome : matrix_choose(&w, err);
    outcome = session_meet(s, outcome, err) < 0 || matrix_begin(&w, err) < 0
                  ? -1
                  : matrix_measure(&w, err);
    if (outcome == 0)
        outcome = session_meet(s, proofs_report(&w.proofs, s, err), err);
    idle_fini(&w);
    return outcome;
}

// SPDX-License-Identifier: Apache-2.0
// What must hold for a number to be right, and where it is seen to:
//   - no rank measures while another builds: a barrier follows building (build)
//   - no rank measures a cold or a foreign cache: warm up before each visit, no idle wait after it
//   - all chase from the first sample to the last of any rank (bench/session/concurrent.c)
//   - alone means alone: the others sleep on a futex (in_turn)
//   - rank 0 writes while all ranks are at a barrier (report)
//   - what drifts is seen: each size is visited at several moments, with other orders on other
//     pages, and the visits' differences are part of the interval (run)
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "bench/benchmarks/latency_classic.h"
#include "bench/benchmarks/table.h"
#include "bench/session/background_load.h"
#include "bench/session/chaser.h"
#include "bench/session/concurrent.h"
#include "bench/session/proofs.h"
#include "model/spec_values.h"

struct sweep {
    struct session *s;
    struct chaser chaser; // owned
    struct arena arena;   // owned
    struct load *load;    // owned; on rank 0, if one was requested
    uint64_t *sizes;      // owned
    int n_sizes, n_matrices;
    struct shape shapes[SHAPES_MAX];
    struct cell_sum *sums;  // [n_matrices * n_sizes], ours; owned
    double *stolen;         // the same; owned
    uint64_t together;      // visits with all ranks so far
    struct proofs proofs;   // on rank 0
    double work_done, work; // ms as guessed, for the time left
};

// --- Before the first cell ---------------------------------------------------------------------

static int latency_allocate(struct sweep *w, struct err *err)
{
    const struct spec *spec = w->s->spec;
    if (str_to_sizes(spec->size, SPEC_SIZES_MAX, "size", &w->sizes, &w->n_sizes, err) < 0)
        return -1;
    w->n_matrices = shape_list(spec, w->shapes);
    size_t cells = (size_t)w->n_matrices * (size_t)w->n_sizes;
    w->sums = calloc(cells, sizeof *w->sums);
    w->stolen = calloc(cells, sizeof *w->stolen);
    if (!w->sums || !w->stolen)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d sizes", w->n_sizes);
    return chaser_init(&w->chaser, w->s, w->sizes[0], spec->visits, err);
}

static int latency_check_load_cpus(const struct session *s, struct err *err)
{
    int n_ranks = session_ranks(s), n;
    CLEANUP_MEM int *ids = NULL, *ranks = calloc((size_t)n_ranks + 1, sizeof *ranks);
    if (!ranks)
        return err_set(err, ERR_NO_MEMORY, "load_cpus", "no memory for %d CPUs", n_ranks);
    if (s->spec->load == LOAD_NONE || !*s->spec->load_cpus)
        return 0; // load_start requires them
    for (int r = 0; r < n_ranks; r++)
        ranks[r] = (int)s->board->slot[r].info.cpu_wanted;
    return spec_load_cpus(s->spec, ranks, n_ranks, &ids, &n, err);
}

static int latency_begin(struct sweep *w, struct err *err)
{
    struct session *s = w->s;
    struct matrix m[SHAPES_MAX] = {0};
    int ranks = session_ranks(s), n = session_is_rank0(s) ? w->n_matrices : 0;
    uint64_t bytes = arena_round(w->sizes[w->n_sizes - 1], (enum pages)s->spec->pages);
    CLEANUP_MEM struct demand *d = calloc((size_t)ranks + 1, sizeof *d);
    int outcome = d ? latency_check_load_cpus(s, err)
                    : err_set(err, ERR_NO_MEMORY, "", "no memory to count memory");
    for (int i = 0; d && i < ranks; i++)
        d[i] = (struct demand){.node = s->board->slot[i].memory, .bytes = bytes};
    if (d && s->spec->load != LOAD_NONE)
        d[ranks] = (struct demand){.node = -1,
                                   .bytes = load_demand(s->spec->load_cpus, session_auto_bytes(s))};
    if (outcome == 0 && n)
        outcome = latency_make_matrices(w->shapes, n, ranks, w->sizes, w->n_sizes, m, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_begin(s, m, n, d, ranks + (s->spec->load != LOAD_NONE), err);
}

static int start_load(struct sweep *w, struct err *err)
{
    const struct spec *spec = w->s->spec;
    if (spec->load == LOAD_NONE || !session_is_rank0(w->s))
        return session_meet(w->s, 0, err);
    w->load = load_start((enum load_kind)spec->load, spec->load_cpus, session_auto_bytes(w->s),
                         spec->load_rate, err);
    return session_meet(w->s, w->load ? 0 : -1, err);
}

// Where the memory of the load was not on the nodes of its CPUs, the load was another.
static int note_load_memory(struct session *s, const struct load_report *r, struct err *err)
{
    static const double right = 0.9995, moved = 0.001;
    if (r->bind_refused && session_note(s, err, CONDITION_MEMORY_POLICY, -1,
                                        "the kernel refused to bind the memory of the background "
                                        "load; the process's policy applied") < 0)
        return -1;
    if (r->share_after < r->share - moved)
        return session_note(s, err, CONDITION_PLACEMENT, -1,
                            "the kernel moved pages of the background load: %.1f %% were on the "
                            "nodes of its CPUs at its start, %.1f %% at its end",
                            100 * r->share, 100 * r->share_after);
    if (r->share < right)
        return session_note(s, err, CONDITION_PLACEMENT, -1,
                            "only %.1f %% of the pages of the background load were on the nodes of "
                            "its CPUs",
                            100 * r->share);
    return 0;
}

static int end_load(struct sweep *w, struct err *err)
{
    if (!w->load)
        return 0;
    struct load_report r = load_stop(&w->load);
    char where[100] = "memory whose node is not known";
    if (*r.nodes)
        snprintf(where, sizeof where, "memory of node%s %s", str_plural_of(r.nodes), r.nodes);
    if (session_note(w->s, err, CONDITION_BACKGROUND_LOAD, -1,
                     "the background load of %d CPU%s moved %.0f MB/s on %s%s", r.cpus,
                     str_plural(r.cpus), r.mb_per_s, where,
                     r.strayed ? "; some of its threads ran on other CPUs" : "") < 0)
        return -1;
    return note_load_memory(w->s, &r, err);
}

// --- One size ----------------------------------------------------------------------------------

static void latency_warm(void *context)
{
    chaser_warm(context);
}

static void latency_linger(void *context)
{
    sampler_linger(&((struct chaser *)context)->sampler);
}

static void latency_take(void *context)
{
    sampler_take(&((struct chaser *)context)->sampler);
}

static int together(struct sweep *w, int at, struct err *err)
{
    struct work work = {latency_warm, latency_linger, latency_take, &w->chaser, &w->chaser.sampler};
    struct stolen stolen = stolen_begin(w->s);
    if (concurrent_measure(w->s, &work, ++w->together, &w->sums[at], err) < 0)
        return -1;
    w->stolen[at] += stolen_end(w->s, &stolen) / (double)w->s->spec->visits;
    return 0;
}

static int alone(struct sweep *w, int at, struct err *err)
{
    struct stolen stolen = stolen_begin(w->s);
    sampler_clear(&w->chaser.sampler);
    chaser_warm(&w->chaser);
    chaser_sample(&w->chaser);
    w->stolen[at] += stolen_end(w->s, &stolen) / (double)w->s->spec->visits;
    return sampler_keep(&w->chaser.sampler, NULL, &w->sums[at], err);
}

// All at once, and each alone.
static int latency_turns(const struct sweep *w)
{
    int mode = w->s->spec->mode;
    return (mode != MODE_SERIAL) + (mode != MODE_CONCURRENT ? session_ranks(w->s) : 0);
}

// For the time left.
static double guess_ms(const struct sweep *w, int col)
{
    return chaser_guess_ms(w->s, w->sizes[col]) * latency_turns(w);
}

// A turn of a size has ended. The next one may be of the next size, which takes longer.
static int latency_advance(struct sweep *w, int col, struct err *err)
{
    int next = col + 1 < w->n_sizes ? col + 1 : 0;
    w->work_done += guess_ms(w, col) / latency_turns(w);
    w->s->limit.next_share = fmax(guess_ms(w, next), guess_ms(w, col)) / latency_turns(w) / w->work;
    return session_meet(w->s, session_progress(w->s, PHASE_MEASURE, w->work_done / w->work, err),
                        err);
}

static int in_turn(struct sweep *w, int at, int col, struct err *err)
{
    for (int r = 0; r < session_ranks(w->s) && !session_stopped(w->s); r++)
        if (session_meet(w->s, r == w->s->comm->rank ? alone(w, at, err) : 0, err) < 0 ||
            latency_advance(w, col, err) < 0)
            return -1;
    return 0;
}

static int visit_size(struct sweep *w, int col, int64_t visit, struct err *err)
{
    const struct spec *p = w->s->spec;
    int at = col;
    chaser_build(&w->chaser, &w->arena, w->sizes[col], visit, p->visits);
    if (session_meet(w->s, 0, err) < 0)
        return -1;
    if (p->mode != MODE_SERIAL) {
        if (together(w, at, err) < 0 || latency_advance(w, col, err) < 0)
            return -1;
        at += w->n_sizes;
    }
    return p->mode != MODE_CONCURRENT ? in_turn(w, at, col, err) : 0;
}

// --- Telling -----------------------------------------------------------------------------------

static int latency_report_cell(struct sweep *w, int matrix, int rank, int col, struct err *err)
{
    struct session *s = w->s;
    const struct slot *slot = &s->board->slot[rank];
    const char *name = w->shapes[matrix].name;
    char size[24];
    str_from_bytes(w->sizes[col], size, sizeof size);
    session_judge(s, &slot->evidence, slot->stolen_share, "%s: rank %d at %s", name, rank, size);
    struct cell cell = slot->cell;
    proofs_add(&w->proofs, s, rank, &cell, w->sizes[col], strcmp(name, "serial") != 0,
               "%s: rank %d at %s", name, rank, size);
    return session_report_cell(s, name, rank, col, &cell, err);
}

static int latency_report(struct sweep *w, int matrix, int col, struct err *err)
{
    struct session *s = w->s;
    int at = matrix * w->n_sizes + col, outcome = 0;
    s->slot->measured = cell_sum_any(&w->sums[at]);
    if (s->slot->measured)
        outcome = cell_sum_up(&w->sums[at], s->spec, &s->slot->cell, &s->slot->evidence, err);
    s->slot->stolen_share = w->stolen[at];
    if (session_meet(s, outcome, err) < 0)
        return -1;
    for (int r = 0; session_is_rank0(s) && outcome == 0 && r < session_ranks(s); r++)
        if (s->board->slot[r].measured)
            outcome = latency_report_cell(w, matrix, r, col, err);
    return session_meet(s, outcome, err);
}

// --- The whole ---------------------------------------------------------------------------------

static int latency_measure(struct sweep *w, struct err *err)
{
    const struct spec *p = w->s->spec;
    for (int col = 0; col < w->n_sizes; col++)
        w->work += guess_ms(w, col) * (double)p->visits;
    time_limit_begin(&w->s->limit, clock_mono_ns());
    for (int64_t visit = 0; visit < p->visits && !session_stopped(w->s); visit++)
        for (int col = 0; col < w->n_sizes && !session_stopped(w->s); col++)
            if (visit_size(w, col, visit, err) < 0)
                return -1;
    for (int matrix = 0; matrix < w->n_matrices; matrix++)
        for (int col = 0; col < w->n_sizes; col++)
            if (latency_report(w, matrix, col, err) < 0)
                return -1;
    return 0;
}

static void sweep_fini(struct sweep *w)
{
    if (w->load)
        load_stop(&w->load);
    for (int i = 0; w->sums && i < w->n_matrices * w->n_sizes; i++)
        cell_sum_fini(&w->sums[i]);
    free(w->sums);
    free(w->stolen);
    chaser_fini(&w->chaser);
    arena_fini(&w->arena);
    free(w->sizes);
}

int latency_run(struct session *s, struct err *err)
{
    if (s->spec->method == METHOD_CLASSIC)
        return latency_classic_run(s, err);
    struct sweep w CLEANUP(sweep_fini) = {.s = s};
    if (session_meet(s, latency_allocate(&w, err), err) < 0 || latency_begin(&w, err) < 0)
        return -1;
    uint64_t bytes = w.sizes[w.n_sizes - 1];
    if (session_meet(s, session_arena(s, &w.arena, bytes, -1, err), err) < 0 ||
        start_load(&w, err) < 0 || latency_measure(&w, err) < 0 ||
        session_meet(s, end_load(&w, err), err) < 0)
        return -1;
    session_check_again(s, &w.arena, -1);
    return session_meet(s, proofs_report(&w.proofs, s, err), err);
}

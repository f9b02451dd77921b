// SPDX-License-Identifier: Apache-2.0
// The order of a visit: map and verify the arrays, fill them, time the passes of the jobs, compare
// every element with what arithmetic gives, unmap. Jobs that use the same arrays share them; where
// the size of an array depends on the job, each fills its own, directly before its passes. Between
// filling shared arrays and the passes a team may have slept while others measured. So it fills a
// part again: the caches have lines of the last array that are not yet written back, as if all had
// been filled just then, and the clock is up.
#include "bench/benchmarks/bandwidth_cell.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "model/method.h"

enum {
    ELEMENTS_MIN = 64, // of a rank's slice
    ALIGNED = 8,       // elements: a cache line
};

void band_cells_jobs(struct band_cells *b, const struct shape *shapes, int n,
                     const struct stream_code *code)
{
    b->code = code;
    for (int i = 0; i < n; i++) {
        struct band_job *job = &b->jobs[b->n_jobs++];
        *job = (struct band_job){STREAM_COPY, strcmp(shapes[i].name, "memcpy") ? code : NULL};
        for (int k = 0; k < STREAM_KERNELS; k++)
            if (strcmp(shapes[i].name, stream_kernels[k].name) == 0)
                job->kernel = (enum stream_kernel)k;
    }
}

int band_cells_init(struct band_cells *b, struct session *s, int n_cells, struct err *err)
{
    b->s = s;
    b->n_cells = n_cells;
    b->sums = calloc((size_t)n_cells * (size_t)b->n_jobs + 1, sizeof *b->sums);
    return b->sums ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for %d cells", n_cells);
}

void band_cells_fini(struct band_cells *b)
{
    for (int i = 0; b->sums && i < b->n_cells * b->n_jobs; i++)
        if (b->sums[i].room) // of other teams' cells not even the pages are there
            cell_sum_fini(&b->sums[i]);
    free(b->sums);
}

// --- Arrays --------------------------------------------------------------------------------------

void band_visit_fini(struct band_visit *v)
{
    for (int i = 0; i < 2; i++)
        arena_fini(&v->arenas[i]);
}

// Jobs that copy from node to node have two arrays, all others STREAM's three.
static bool band_copies(const struct band_cells *b)
{
    return !b->jobs[0].code;
}

// Each job fills its own arrays.
static bool fills_by_job(const struct band_visit *v)
{
    return v->place.set_bytes || band_copies(v->b);
}

static size_t elements_of(uint64_t bytes)
{
    return bytes / sizeof(double) / ALIGNED * ALIGNED;
}

static int visit_map(struct band_visit *v, struct err *err)
{
    const struct band_place *p = &v->place;
    struct session *s = v->b->s;
    uint64_t array = elements_of(p->array_bytes) * sizeof(double);
    if (p->set_bytes)
        return session_arena(s, &v->arenas[0], p->set_bytes, p->to, err);
    if (array < ELEMENTS_MIN * sizeof(double))
        return err_set(err, ERR_USAGE, "size",
                       "--size: arrays of %llu bytes for each of %d ranks are too small",
                       (unsigned long long)array, p->ranks);
    if (p->from == p->to)
        return session_arena(s, &v->arenas[0], (band_copies(v->b) ? 2 : STREAM_ARRAYS) * array,
                             p->to, err);
    if (session_arena(s, &v->arenas[0], array, p->from, err) < 0)
        return -1;
    return session_arena(s, &v->arenas[1], array, p->to, err);
}

// Where the arrays are that jobs with these `uses` work on, with fresh values.
static void visit_lay_out(struct band_visit *v, unsigned uses)
{
    const struct band_place *p = &v->place;
    double *memory = (double *)(void *)v->arenas[0].base;
    size_t n = elements_of(p->array_bytes);
    v->laps = 1;
    if (p->set_bytes) {
        n = elements_of(p->set_bytes / (uint64_t)__builtin_popcount(uses));
        v->laps = p->set_bytes < BAND_LAPS_BYTES ? BAND_LAPS_BYTES / p->set_bytes : 1;
    }
    v->arrays = stream_layout(memory, n, uses);
    if (v->arenas[1].base)
        v->arrays.c = (double *)(void *)v->arenas[1].base;
    stream_fill(&v->arrays, 0, n);
    stream_begin(v->want);
}

int band_visit_place(struct band_visit *v, struct band_cells *b, const struct band_place *place,
                     int cell, struct err *err)
{
    *v = (struct band_visit){.b = b, .place = *place, .sums = &b->sums[cell * b->n_jobs]};
    if (visit_map(v, err) < 0)
        return -1;
    uint64_t begin = clock_mono_ns();
    if (!fills_by_job(v))
        visit_lay_out(v, STREAM_ABC);
    b->s->slot->phase_ms[PHASE_BUILD] += session_ms_since(begin);
    return 0;
}

static void visit_warm(struct band_visit *v)
{
    const struct stream_arrays last = {.c = v->arrays.c, .n = v->arrays.n};
    uint64_t begin = clock_mono_ns();
    do
        stream_fill(&last, last.n - last.n / BAND_WARM_PART, last.n);
    while (clock_mono_ns() - begin < BAND_WARM_NS);
    v->b->s->slot->phase_ms[PHASE_WARMUP] += session_ms_since(begin);
}

static int visit_check(const struct band_visit *v, struct err *err)
{
    struct stream_check check = stream_verify(&v->arrays, v->want);
    if (!check.wrong)
        return 0;
    return err_set(err, ERR_INTERNAL, "",
                   "%zu elements of the arrays are wrong (worst relative error %g): the memory or "
                   "the compiler is at fault",
                   check.wrong, check.worst);
}

// --- Passes --------------------------------------------------------------------------------------

static int visit_record(struct band_visit *v, int job, struct err *err)
{
    struct sample got = rank_team_pass(v->b->s);
    double elements = (double)v->arrays.n * (double)v->team->n * (double)v->laps;
    got.hop_ns = stream_mb_per_s(v->b->jobs[job].kernel, elements, (double)(got.to - got.from));
    return cell_sum_add(&v->sums[job], &got, err);
}

static double visit_lap(struct band_visit *v, const struct band_job *job)
{
    if (job->code)
        return stream_pass_in(job->code, job->kernel, &v->arrays, 0, v->arrays.n);
    memcpy(v->arrays.c, v->arrays.a, v->arrays.n * sizeof(double));
    return 0;
}

static int visit_pass(struct band_visit *v, int i, struct err *err)
{
    struct session *s = v->b->s;
    const struct band_job *job = &v->b->jobs[i];
    struct guard_mark from, to;
    rank_team_wait(s, v->team);
    guard_begin(&from);
    for (uint64_t lap = 0; lap < v->laps; lap++)
        v->b->sum += visit_lap(v, job);
    guard_end(&to);
    rank_team_set_pass(s, &from, &to, 0);
    stream_expect(v->want, job->kernel);
    rank_team_wait(s, v->team);
    return v->team->index == 0 ? visit_record(v, i, err) : 0;
}

static int visit_passes(struct band_visit *v, int first, int n, int64_t visits, struct err *err)
{
    int64_t passes = (v->b->s->spec->passes + visits - 1) / visits;
    for (int64_t p = 0; p < passes; p++)
        for (int i = first; i < first + n; i++)
            if (visit_pass(v, i, err) < 0)
                return -1;
    for (int i = first; i < first + n; i++)
        cell_sum_next_visit(&v->sums[i]);
    return 0;
}

// STREAM's four in its order, again and again; all others one by one. Jobs that share arrays take
// them as the job before left them.
static int visit_jobs(struct band_visit *v, int64_t visits, struct err *err)
{
    const struct band_cells *b = v->b;
    bool alone = fills_by_job(v);
    for (int i = 0, n; i < b->n_jobs; i += n) {
        for (n = 1; !alone && i + n < b->n_jobs && b->jobs[i + n].kernel <= STREAM_TRIAD;)
            n++;
        if (alone)
            visit_lay_out(v, stream_kernels[b->jobs[i].kernel].uses);
        if (visit_passes(v, i, n, visits, err) < 0 || (alone && visit_check(v, err) < 0))
            return -1;
    }
    return 0;
}

int band_visit_measure(struct band_visit *v, struct rank_team *team, int64_t visits,
                       struct err *err)
{
    struct slot *slot = v->b->s->slot;
    v->team = team;
    if (!fills_by_job(v))
        visit_warm(v);
    uint64_t begin = clock_mono_ns();
    int outcome = visit_jobs(v, visits, err);
    slot->phase_ms[PHASE_MEASURE] += session_ms_since(begin);
    reference_clock_take(&slot->cycle);
    return outcome;
}

int band_visit_check(struct band_visit *v, struct err *err)
{
    struct session *s = v->b->s;
    uint64_t begin = clock_mono_ns();
    int outcome = fills_by_job(v) ? 0 : visit_check(v, err);
    s->slot->phase_ms[PHASE_VERIFY] += session_ms_since(begin);
    session_check_again(s, &v->arenas[0], v->place.from);
    if (v->arenas[1].base)
        session_check_again(s, &v->arenas[1], v->place.to);
    return outcome;
}

int band_cell_sum_up(struct band_cells *b, int cell, struct err *err)
{
    struct slot *slot = b->s->slot;
    for (int i = 0; i < b->n_jobs; i++)
        if (cell_sum_up(&b->sums[cell * b->n_jobs + i], b->s->spec, &slot->cells[i],
                        &slot->evidences[i], err) < 0)
            return -1;
    return 0;
}

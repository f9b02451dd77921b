// SPDX-License-Identifier: Apache-2.0
// The c2c benchmark: every pair of ranks hands lines over, alone on the machine. The lines belong
// to the ping side's node, and a pair takes turns with several, because the home of a line (which
// slice of the cache, which agent) is part of the time.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/benchmarks/table.h"
#include "bench/kernels/line_transfer.h"
#include "bench/memory/shared_memory.h"
#include "bench/sampling/disturbance.h"
#include "bench/sampling/sampler.h"
#include "bench/session/pairs.h"

_Static_assert((int)SPEC_SAMPLES_MAX <= (int)SLOT_FLAGS, "a flag a sample");

struct handover {
    struct session *s;
    int (*pairs)[2]; // owned
    int n_pairs, n_shapes;
    struct shape shapes[SHAPES_MAX];
    struct share lines; // ours; owned
    int samples, done;
};

static uint64_t share_bytes(const struct handover *h)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = 2 * sizeof(struct c2c_line) * (uint64_t)h->s->spec->lines;
    return (bytes + page - 1) / page * page;
}

static int c2c_make_matrices(const struct handover *h, struct matrix *m, struct err *err)
{
    int ranks = session_ranks(h->s);
    for (int i = 0; i < h->n_shapes; i++)
        if (shape_make(&m[i], &h->shapes[i], ranks, ranks, err) < 0)
            return -1;
    return 0;
}

static int c2c_begin(struct handover *h, struct err *err)
{
    struct session *s = h->s;
    struct matrix m[SHAPES_MAX] = {0};
    int n = session_is_rank0(s) ? h->n_shapes : 0;
    int outcome = pair_list(s, "all", &h->pairs, &h->n_pairs, err);
    if (outcome == 0)
        outcome = share_make(&h->lines, share_bytes(h), err);
    if (outcome == 0) {
        memset(h->lines.base, 0, h->lines.bytes);
        session_verify(s, h->lines.base, h->lines.bytes, s->place.mem_wanted);
    }
    s->slot->share_fd = h->lines.fd;
    if (outcome == 0 && n)
        outcome = c2c_make_matrices(h, m, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_begin(s, m, n, NULL, 0, err);
}

struct side {
    struct handover *h;
    const struct share *lines; // the ping side's
    enum c2c_method method;
    bool ping;
};

static void c2c_take(const struct side *d, int i, struct sample *got)
{
    struct guard_mark from, to;
    const struct spec *p = d->h->s->spec;
    struct c2c_line *line = (struct c2c_line *)(void *)d->lines->base + 2 * (i % p->lines);
    double trip_ns = 0;
    struct c2c_pair pair = {line, d->method, (int)p->repetitions, 1, &trip_ns};
    guard_begin(&from);
    if (d->ping)
        c2c_ping(&pair);
    else
        c2c_pong(&pair);
    guard_end(&to);
    *got = (struct sample){.from = from.wall_ns, .to = to.wall_ns, .hop_ns = trip_ns};
    got->verdict = guard_judge(&from, &to);
}

// One round of lines first that does not count.
static void samples_of(const struct side *d, struct sample *samples)
{
    struct sample ignored;
    for (int i = 0; i < d->h->s->spec->lines; i++)
        c2c_take(d, i, &ignored);
    for (int i = 0; i < d->h->samples; i++) {
        c2c_take(d, i, &samples[i]);
        d->h->s->slot->flags[i] = (unsigned char)samples[i].verdict.flags;
    }
}

static int c2c_sum_up(struct handover *h, struct sample *samples, int peer, struct err *err)
{
    struct session *s = h->s;
    struct cell_sum sum CLEANUP(cell_sum_fini) = {0};
    for (int i = 0; i < h->samples; i++) {
        samples[i].verdict.flags |= s->board->slot[peer].flags[i];
        if (cell_sum_add(&sum, &samples[i], err) < 0)
            return -1;
    }
    return cell_sum_up(&sum, s->spec, &s->slot->cell, &s->slot->clean, err);
}

static enum c2c_method method_of(const struct handover *h, int shape)
{
    return strcmp(h->shapes[shape].name, c2c_method_names[C2C_CAS]) == 0 ? C2C_CAS : C2C_LOAD;
}

static int open_lines(const struct handover *h, const int *ends, struct share *lines,
                      struct err *err)
{
    const struct slot *ping = &h->s->board->slot[ends[0]];
    return share_open(lines, ping->info.pid, ping->share_fd, share_bytes(h), err);
}

static int c2c_measure(struct handover *h, const int *ends, int shape, struct err *err)
{
    struct session *s = h->s;
    int rank = s->comm->rank, outcome = 0;
    bool ours = rank == ends[0] || rank == ends[1];
    struct share lines CLEANUP(share_fini) = {.fd = -1};
    struct side side = {h, &lines, method_of(h, shape), rank == ends[0]};
    CLEANUP_MEM struct sample *samples = calloc((size_t)h->samples, sizeof *samples);
    if (!samples)
        outcome = err_set(err, ERR_NO_MEMORY, "", "no memory for samples");
    else if (ours)
        outcome = open_lines(h, ends, &lines, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    uint64_t begin = clock_mono_ns();
    if (ours)
        samples_of(&side, samples);
    s->slot->phase_ms[PHASE_MEASURE] += ours ? session_ms_since(begin) : 0;
    if (session_meet(s, 0, err) < 0)
        return -1;
    outcome = rank == ends[0] ? c2c_sum_up(h, samples, ends[1], err) : 0;
    return session_meet(s, outcome, err);
}

static int c2c_report(struct handover *h, const int *ends, int shape, struct err *err)
{
    struct session *s = h->s;
    const struct slot *slot = &s->board->slot[ends[0]];
    session_judge(s, slot->clean, 0, "%s: ranks %d and %d", h->shapes[shape].name, ends[0],
                  ends[1]);
    if (session_report_cell(s, h->shapes[shape].name, ends[0], ends[1], &slot->cell, err) < 0)
        return -1;
    double share = ++h->done / ((double)h->n_pairs * h->n_shapes);
    return session_progress(s, PHASE_MEASURE, share, err);
}

static int c2c_measure_all(struct handover *h, struct err *err)
{
    struct session *s = h->s;
    if (c2c_begin(h, err) < 0)
        return -1;
    for (int shape = 0; shape < h->n_shapes; shape++)
        for (int i = 0; i < h->n_pairs; i++)
            if (c2c_measure(h, h->pairs[i], shape, err) < 0 ||
                session_meet(s, session_is_rank0(s) ? c2c_report(h, h->pairs[i], shape, err) : 0,
                             err) < 0)
                return -1;
    return 0;
}

int c2c_run(struct session *s, struct err *err)
{
    struct handover h = {.s = s, .lines = {.fd = -1}};
    h.samples = (int)s->spec->min_samples;
    h.n_shapes = shape_list(s->spec, h.shapes);
    int outcome = c2c_measure_all(&h, err);
    share_fini(&h.lines);
    free(h.pairs);
    return outcome;
}

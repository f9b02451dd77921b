// SPDX-License-Identifier: Apache-2.0
// Ping-pong as IMB counts it: t is half of the round trip, the bandwidth its bytes by that time. A
// sample is a batch of round trips that is long beside the clock's own time; both sides are
// guarded, because a descheduled partner looks like a slow message. What is sent and what is
// received are two buffers, as in IMB: a sender that has just received into the same one would find
// its lines in the other core's cache, which costs up to five times as much at 256 KiB.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/benchmarks/table.h"
#include "bench/sampling/disturbance.h"
#include "bench/sampling/sampler.h"
#include "bench/session/pairs.h"

enum {
    TRIPS_BYTES = 40 << 20, // of all messages of a size, as IMB limits its repetitions
    TRIPS_LEAST = 20,
    BATCH_NS = 100000, // a sample's length: the first trips of it are slower than the rest
    SAMPLES_LEAST = 20,
    WARM_TRIPS = 20,
    PEAK_FROM = 65536, // where the peak of a pair is looked for
    SIZES_MAX = 40,
};

struct pingpong {
    struct session *s;
    bool all;
    int (*pairs)[2]; // owned
    int n_pairs, n_sizes, n_shapes;
    uint64_t sizes[SIZES_MAX];
    struct shape shapes[SHAPES_MAX];
    unsigned char *out, *in; // of the largest message each; owned
    double spent, whole;     // expected time of the sizes that are done, and of all
};

static void find_sizes(struct pingpong *p)
{
    uint64_t most = p->s->spec->message_max;
    p->sizes[p->n_sizes++] = 0;
    if (p->all) { // the latency of nothing, and the bandwidth of much
        uint64_t from = most < PEAK_FROM ? most : PEAK_FROM;
        for (uint64_t size = from; size && size <= most && p->n_sizes < SIZES_MAX; size *= 4)
            p->sizes[p->n_sizes++] = size;
        return;
    }
    for (uint64_t size = 1; size <= most && p->n_sizes < SIZES_MAX; size *= 2)
        p->sizes[p->n_sizes++] = size;
}

static int pingpong_make_matrices(const struct pingpong *p, struct matrix *m, struct err *err)
{
    int ranks = session_ranks(p->s);
    for (int i = 0; i < p->n_shapes; i++) {
        if (shape_make(&m[i], &p->shapes[i], p->all ? ranks : p->n_pairs,
                       p->all ? ranks : p->n_sizes, err) < 0)
            return -1;
        for (int r = 0; !p->all && r < m[i].row.n; r++)
            m[i].row.values[r] = axis_pair(p->pairs[r][0], p->pairs[r][1]);
        for (int c = 0; !p->all && c < m[i].col.n; c++)
            m[i].col.values[c] = (int64_t)p->sizes[c];
    }
    return 0;
}

static int pingpong_begin(struct pingpong *p, struct err *err)
{
    struct session *s = p->s;
    struct matrix m[SHAPES_MAX] = {0};
    struct demand d = {.node = -1, .bytes = 2 * s->spec->message_max * (uint64_t)session_ranks(s)};
    int n = session_is_rank0(s) ? p->n_shapes : 0, outcome = 0;
    if (!s->comm->ops->send)
        outcome = err_set(err, ERR_USAGE, "launcher",
                          "pingpong measures messages of MPI: start it with mpirun -np 2");
    if (outcome == 0 && n)
        outcome = pingpong_make_matrices(p, m, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return session_begin(s, m, n, &d, 1, err);
}

// --- One pair, one size ------------------------------------------------------------------------

struct exchange {
    struct pingpong *p;
    int peer;
    bool first; // we begin
    bool echo;  // what comes goes back
    uint64_t bytes;
};

static int trip(const struct exchange *x, struct err *err)
{
    const struct comm *c = x->p->s->comm;
    if (x->first)
        return c->ops->send(c, x->peer, x->p->out, x->bytes, err) < 0
                   ? -1
                   : c->ops->receive(c, x->peer, x->p->in, x->bytes, err);
    if (c->ops->receive(c, x->peer, x->p->in, x->bytes, err) < 0)
        return -1;
    if (x->echo)
        memcpy(x->p->out, x->p->in, x->bytes);
    return c->ops->send(c, x->peer, x->p->out, x->bytes, err);
}

static int trips(const struct exchange *x, int n, struct err *err)
{
    for (int i = 0; i < n; i++)
        if (trip(x, err) < 0)
            return -1;
    return 0;
}

static unsigned char pattern(uint64_t i, uint64_t bytes)
{
    return (unsigned char)((i * 2654435761u) >> 13 ^ bytes);
}

// Every byte goes there and comes back: the first fills, both check.
static int intact(const struct exchange *timed, struct err *err)
{
    struct exchange x = *timed;
    x.echo = true;
    for (uint64_t i = 0; x.first && i < x.bytes; i++)
        x.p->out[i] = pattern(i, x.bytes);
    memset(x.p->in, 0, x.bytes);
    if (trip(&x, err) < 0)
        return -1;
    for (uint64_t i = 0; i < x.bytes; i++)
        if (x.p->in[i] != pattern(i, x.bytes))
            return err_set(err, ERR_INTERNAL, "",
                           "byte %" PRIu64 " of a message of %" PRIu64 " arrived damaged", i,
                           x.bytes);
    return 0;
}

// Both sides must agree on it, so it follows from what both know: the first measures, and reports
// to the other by the length of a message.
static int agree_batch(const struct exchange *x, int *batch, struct err *err)
{
    static const uint64_t most = 1000;
    const struct comm *c = x->p->s->comm;
    uint64_t begin = clock_mono_ns();
    if (trips(x, WARM_TRIPS, err) < 0)
        return -1;
    double trip_ns = (double)(clock_mono_ns() - begin) / WARM_TRIPS;
    uint64_t told = trip_ns > 0 ? (uint64_t)(BATCH_NS / trip_ns) : most;
    told = told < 1 ? 1 : told > most ? most : told;
    if ((x->first ? c->ops->send(c, x->peer, &told, sizeof told, err)
                  : c->ops->receive(c, x->peer, &told, sizeof told, err)) < 0)
        return -1;
    *batch = told < 1 ? 1 : told > most ? (int)most : (int)told;
    return 0;
}

static int64_t repetitions(const struct pingpong *p, uint64_t bytes)
{
    int64_t n = p->s->spec->repetitions;
    int64_t room = bytes ? (int64_t)(TRIPS_BYTES / bytes) : n;
    n = n < room ? n : room;
    return n < TRIPS_LEAST ? TRIPS_LEAST : n;
}

static int pingpong_sample(const struct exchange *x, int batch, struct sample *got, struct err *err)
{
    struct guard_mark from, to;
    guard_begin(&from);
    int outcome = trip(x, err); // the partner comes from its own counters: wait for it, untimed
    uint64_t begun = clock_mono_ns();
    outcome = outcome < 0 ? -1 : trips(x, batch, err);
    uint64_t took_ns = clock_mono_ns() - begun;
    guard_end(&to);
    *got = (struct sample){.from = from.wall_ns, .to = to.wall_ns};
    got->hop_ns = (double)took_ns / (2.0 * batch) / 1000; // us
    got->verdict = guard_judge(&from, &to);
    got->verdict.flags &= ~(unsigned)GUARD_FAULTS; // MPI maps buffers as it goes
    return outcome;
}

// The samples of both sides; the near side's values, the far side's flags on its slot.
static int run_samples(const struct exchange *x, struct sample *samples, int *n, struct err *err)
{
    int batch;
    struct slot *slot = x->p->s->slot;
    int64_t total = repetitions(x->p, x->bytes);
    if (agree_batch(x, &batch, err) < 0)
        return -1;
    int64_t samples_wanted = total / batch < SAMPLES_LEAST ? SAMPLES_LEAST : total / batch;
    *n = (int)(samples_wanted < SLOT_FLAGS ? samples_wanted : SLOT_FLAGS);
    for (int i = 0; i < *n; i++) {
        if (pingpong_sample(x, batch, &samples[i], err) < 0)
            return -1;
        slot->flags[i] = (unsigned char)samples[i].verdict.flags;
    }
    return 0;
}

static int pingpong_sum_up(const struct exchange *x, struct sample *samples, int n,
                           bool as_bandwidth, struct err *err)
{
    struct session *s = x->p->s;
    struct cell_sum sum CLEANUP(cell_sum_fini) = {0};
    for (int i = 0; i < n; i++) {
        samples[i].verdict.flags |= s->board->slot[x->peer].flags[i];
        if (as_bandwidth)
            samples[i].hop_ns = (double)x->bytes / samples[i].hop_ns; // B/us is MB/s
        if (cell_sum_add(&sum, &samples[i], err) < 0)
            return -1;
    }
    return cell_sum_up(&sum, s->spec, &s->slot->cell, &s->slot->clean, err);
}

static int pingpong_measure(struct pingpong *p, int pair, int size, struct err *err)
{
    struct session *s = p->s;
    int rank = s->comm->rank, n = 0, outcome = 0;
    const int *ends = p->pairs[pair];
    bool ours = rank == ends[0] || rank == ends[1];
    struct exchange x = {p, rank == ends[0] ? ends[1] : ends[0], rank == ends[0], false,
                         p->sizes[size]};
    CLEANUP_MEM struct sample *samples = calloc(SLOT_FLAGS, sizeof *samples);
    uint64_t begin = clock_mono_ns();
    if (!samples)
        outcome = err_set(err, ERR_NO_MEMORY, "", "no memory for samples");
    // What only one side sees must be known to both before either waits for a message again.
    if (session_meet(s, outcome, err) < 0 || session_meet(s, ours ? intact(&x, err) : 0, err) < 0)
        return -1;
    outcome = ours ? run_samples(&x, samples, &n, err) : 0;
    if (session_meet(s, outcome, err) < 0 || session_meet(s, ours ? intact(&x, err) : 0, err) < 0)
        return -1;
    s->slot->phase_ms[PHASE_MEASURE] += ours ? session_ms_since(begin) : 0;
    outcome = rank == ends[0] ? pingpong_sum_up(&x, samples, n, p->all && size > 0, err) : 0;
    return session_meet(s, outcome, err);
}

// --- Telling -----------------------------------------------------------------------------------

// What a size takes, roughly: sizes differ by a hundred times, and the time left must not count
// them alike. A message of a microsecond and 4 GB/s is no machine in particular; only the shape
// matters.
static double expected_ns(const struct pingpong *p, uint64_t bytes)
{
    static const double message_ns = 1000, bytes_per_ns = 4;
    double trip_ns = 2 * (message_ns + (double)bytes / bytes_per_ns);
    double batch = fmax(1, BATCH_NS / trip_ns);
    double timed = fmax((double)repetitions(p, bytes), SAMPLES_LEAST * batch);
    return (WARM_TRIPS + timed * (1 + 1 / batch)) * trip_ns;
}

static void expect(struct pingpong *p)
{
    for (int i = 0; i < p->n_sizes; i++)
        p->whole += p->n_pairs * expected_ns(p, p->sizes[i]);
}

static int progress(struct pingpong *p, int size, struct err *err)
{
    p->spent += expected_ns(p, p->sizes[size]);
    return session_progress(p->s, PHASE_MEASURE, p->spent / p->whole, err);
}

static int pingpong_report(struct pingpong *p, int pair, int size, struct cell *peak,
                           struct err *err)
{
    const int *ends = p->pairs[pair];
    const struct cell *c = &p->s->board->slot[ends[0]].cell;
    session_judge(p->s, p->s->board->slot[ends[0]].clean, 0, "pair %d-%d, %" PRIu64 " bytes",
                  ends[0], ends[1], p->sizes[size]);
    if (!p->all)
        return session_report_cell(p->s, p->shapes[0].name, pair, size, c, err) < 0
                   ? -1
                   : progress(p, size, err);
    if (size == 0)
        return session_report_cell(p->s, p->shapes[0].name, ends[0], ends[1], c, err) < 0
                   ? -1
                   : progress(p, size, err);
    if (size == 1 || c->v[CELL_MEDIAN] > peak->v[CELL_MEDIAN])
        *peak = *c;
    if (size == p->n_sizes - 1 &&
        session_report_cell(p->s, p->shapes[1].name, ends[0], ends[1], peak, err) < 0)
        return -1;
    return progress(p, size, err);
}

static int say_class(struct pingpong *p, int pair, struct err *err)
{
    const struct slot *slot = p->s->board->slot;
    const int *e = p->pairs[pair];
    if (p->all || !session_is_rank0(p->s))
        return 0;
    return session_note(
        p->s, err, CONDITION_PAIR, -1, "pair %d-%d (%s): CPU %" PRId64 " and CPU %" PRId64, e[0],
        e[1], pair_class_names[pair_class_of(&slot[e[0]].cpu_place, &slot[e[1]].cpu_place)],
        slot[e[0]].info.cpu, slot[e[1]].info.cpu);
}

static int pingpong_measure_all(struct pingpong *p, struct err *err)
{
    struct session *s = p->s;
    int outcome = pair_list(s, s->spec->pairs, &p->pairs, &p->n_pairs, err);
    p->out = malloc(s->spec->message_max + 1);
    p->in = malloc(s->spec->message_max + 1);
    if (outcome == 0 && (!p->out || !p->in))
        outcome = err_set(err, ERR_NO_MEMORY, "message_max", "no memory for messages");
    if (session_meet(s, outcome, err) < 0)
        return -1;
    find_sizes(p);
    expect(p);
    memset(p->out, 0, s->spec->message_max + 1); // on our own node, by first touch
    memset(p->in, 0, s->spec->message_max + 1);
    p->n_shapes = shape_list(s->spec, p->shapes);
    if (pingpong_begin(p, err) < 0)
        return -1;
    session_verify(s, p->out, s->spec->message_max, s->place.mem_wanted);
    for (int pair = 0; pair < p->n_pairs; pair++) {
        struct cell peak;
        cell_clear(&peak);
        for (int size = 0; size < p->n_sizes; size++)
            if (pingpong_measure(p, pair, size, err) < 0 ||
                session_meet(s,
                             session_is_rank0(s) ? pingpong_report(p, pair, size, &peak, err) : 0,
                             err) < 0)
                return -1;
        if (session_meet(s, say_class(p, pair, err), err) < 0)
            return -1;
    }
    return 0;
}

int pingpong_run(struct session *s, struct err *err)
{
    struct pingpong p = {.s = s, .all = strcmp(s->spec->pairs, "all") == 0};
    int outcome = pingpong_measure_all(&p, err);
    free(p.pairs);
    free(p.out);
    free(p.in);
    return outcome;
}

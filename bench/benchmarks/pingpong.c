// SPDX-License-Identifier: Apache-2.0
// Ping-pong as IMB counts it: t is half of the round trip, the bandwidth its bytes by that time. A
// sample is a batch of round trips that is long beside the clock's own time; both sides are
// guarded, because a descheduled partner looks like a slow message. All pairs are measured, then
// all again, for each visit; only the two ranks of a pair wake up. What is sent and what is
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
#include "bench/session/pair_turns.h"
#include "bench/session/pairs.h"
#include "model/method.h"

enum { SIZES_MAX = 40 };

struct pingpong {
    struct session *s;
    bool all;
    int (*pairs)[2]; // owned
    int n_pairs, n_sizes, n_shapes;
    uint64_t sizes[SIZES_MAX];
    struct shape shapes[SHAPES_MAX];
    unsigned char *out, *in; // of the largest message each; owned
    struct sample *samples;  // of a visit; owned
    struct cell_sum *sums;   // of our pairs as their first rank: [peer][size]; owned
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
    struct demand d = {.node = -1, .bytes = 2 * s->spec->message_max * (uint64_t)session_ranks(s)};
    int outcome = 0;
    if (!s->comm->ops->send)
        outcome = err_set(err, ERR_USAGE, "launcher",
                          "pingpong measures messages of MPI: start it with mpirun -np 2");
    return session_meet(s, outcome, err) < 0 ? -1 : session_begin(s, NULL, 0, &d, 1, err);
}

static int pingpong_announce(void *context, struct err *err)
{
    struct pingpong *p = context;
    struct session *s = p->s;
    struct matrix m[SHAPES_MAX] = {0};
    int n = session_is_rank0(s) ? p->n_shapes : 0;
    int outcome = n ? pingpong_make_matrices(p, m, err) : 0;
    return session_meet(s, outcome, err) < 0 ? -1 : session_announce(s, m, n, err);
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

static int warm_trips(uint64_t bytes)
{
    return bytes > PEAK_FROM ? WARM_TRIPS_LARGE : WARM_TRIPS;
}

// Both sides must agree on it, so it follows from what both know: the first measures, and reports
// to the other by a message.
static int agree_batch(const struct exchange *x, int *batch, struct err *err)
{
    static const uint64_t most = BATCH_MOST;
    const struct comm *c = x->p->s->comm;
    uint64_t begin = clock_mono_ns();
    if (trips(x, warm_trips(x->bytes), err) < 0)
        return -1;
    double trip_ns = (double)(clock_mono_ns() - begin) / warm_trips(x->bytes);
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
    got->verdict = guard_tally(&x->p->s->slot->lost, &from, &to);
    got->verdict.flags &= ~(unsigned)GUARD_FAULTS; // MPI maps buffers as it goes
    return outcome;
}

// Of one visit.
static int samples_wanted(const struct pingpong *p, uint64_t bytes, int batch)
{
    int64_t visits = p->s->spec->visits, most = SLOT_FLAGS;
    int64_t n = (repetitions(p, bytes) / batch + visits - 1) / visits;
    int64_t least = (MESSAGE_SAMPLES_LEAST + visits - 1) / visits;
    n = n < least ? least : n;
    return (int)(n < most ? n : most);
}

// Both sides take as many: after each block they know whose samples were disturbed. The near side's
// values count, with the flags of both. Returns how many, or -1.
static int run_samples(const struct exchange *x, const struct turn *turn, struct err *err)
{
    struct pingpong *p = x->p;
    int batch, n = 0;
    if (agree_batch(x, &batch, err) < 0)
        return -1;
    int wanted = samples_wanted(p, x->bytes, batch);
    for (int until = wanted; n < until; until = pair_samples(p->s, turn, n, wanted)) {
        for (; n < until; n++) {
            if (pingpong_sample(x, batch, &p->samples[n], err) < 0)
                return -1;
            p->s->slot->flags[n] = (unsigned char)p->samples[n].verdict.flags;
        }
        if (pair_turn_meet(p->s, turn, 0, err) < 0)
            return -1;
    }
    return n;
}

// Our own place is that of samples that are forgotten.
static struct cell_sum *pingpong_sum(const struct pingpong *p, const struct turn *turn, int size)
{
    int peer = turn->visit == VISIT_CONTROL ? p->s->comm->rank : turn->peer;
    return &p->sums[peer * p->n_sizes + size];
}

static int pingpong_keep(const struct exchange *x, const struct turn *turn, int size, int n,
                         struct err *err)
{
    struct pingpong *p = x->p;
    const unsigned char *theirs = p->s->board->slot[x->peer].flags;
    struct cell_sum *sum = pingpong_sum(p, turn, size);
    for (int i = 0; i < n; i++) {
        p->samples[i].verdict.flags |= theirs[i];
        if (p->all && size > 0)
            p->samples[i].hop_ns = (double)x->bytes / p->samples[i].hop_ns; // B/us is MB/s
        if (cell_sum_add(sum, &p->samples[i], err) < 0)
            return -1;
    }
    cell_sum_next_visit(sum);
    return 0;
}

// What only one side sees must be known to both before either waits for a message again.
static int pingpong_size(struct pingpong *p, const struct turn *turn, int size, struct err *err)
{
    struct exchange x = {p, turn->peer, turn->first, false, p->sizes[size]};
    if (pair_turn_meet(p->s, turn, intact(&x, err), err) < 0)
        return -1;
    int n = run_samples(&x, turn, err);
    if (pair_turn_meet(p->s, turn, n < 0 ? -1 : 0, err) < 0)
        return -1;
    int outcome = turn->first ? pingpong_keep(&x, turn, size, n, err) : 0;
    return pair_turn_meet(p->s, turn, outcome < 0 ? -1 : intact(&x, err), err);
}

// A stage is one size; of all pairs the latency of nothing, and the peak over the other sizes.
static void sizes_of(const struct pingpong *p, int stage, int *from, int *to)
{
    *from = stage;
    *to = p->all && stage > 0 ? p->n_sizes : stage + 1;
}

static int n_stages(const struct pingpong *p)
{
    return p->all && p->n_sizes > 2 ? 2 : p->n_sizes;
}

// The cell of a stage, after the last visit: the best of its sizes.
static int pingpong_sum_up(struct pingpong *p, const struct turn *turn, struct err *err)
{
    int from, to;
    struct evidence evidence;
    struct cell cell;
    struct slot *slot = p->s->slot;
    sizes_of(p, turn->stage, &from, &to);
    for (int size = from; size < to; size++) {
        struct cell_sum *sum = pingpong_sum(p, turn, size);
        cell_clear(&cell);
        if (cell_sum_up(sum, p->s->spec, &cell, &evidence, err) < 0)
            return -1;
        cell_sum_fini(sum);
        if (size > from && cell.v[CELL_MEDIAN] <= slot->cells[0].v[CELL_MEDIAN])
            continue;
        slot->cells[0] = cell;
        slot->evidences[0] = evidence;
    }
    return 0;
}

static int pingpong_measure(void *context, const struct turn *turn, struct err *err)
{
    struct pingpong *p = context;
    uint64_t begin = clock_mono_ns();
    int from, to;
    sizes_of(p, turn->stage, &from, &to);
    for (int size = from; size < to && turn->visit != VISIT_SUM_UP; size++)
        if (pingpong_size(p, turn, size, err) < 0)
            return -1;
    p->s->slot->phase_ms[PHASE_MEASURE] += session_ms_since(begin);
    return turn->first && pair_last_visit(p->s, turn) ? pingpong_sum_up(p, turn, err) : 0;
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
    double timed = samples_wanted(p, bytes, (int)batch) * batch;
    return (warm_trips(bytes) + timed * (1 + 1 / batch)) * trip_ns;
}

static double pingpong_cost(void *context, int stage)
{
    const struct pingpong *p = context;
    int from, to;
    double cost = 0;
    sizes_of(p, stage, &from, &to);
    for (int size = from; size < to; size++)
        cost += expected_ns(p, p->sizes[size]);
    return cost;
}

static int pingpong_report(void *context, int index, const int ends[2], int stage, struct err *err)
{
    struct pingpong *p = context;
    const struct slot *slot = &p->s->board->slot[ends[0]];
    session_judge(p->s, &slot->evidences[0], 0, "pair %d-%d, %" PRIu64 " bytes", ends[0], ends[1],
                  p->sizes[stage]);
    if (p->all)
        return session_report_cell(p->s, p->shapes[stage].name, ends[0], ends[1], &slot->cells[0],
                                   err);
    if (session_report_cell(p->s, p->shapes[0].name, index, stage, &slot->cells[0], err) < 0)
        return -1;
    return stage == p->n_sizes - 1 ? pair_note(p->s, ends, err) : 0;
}

static int pingpong_make_room(struct pingpong *p, struct err *err)
{
    p->out = malloc(p->s->spec->message_max + 1);
    p->in = malloc(p->s->spec->message_max + 1);
    p->samples = calloc(SLOT_FLAGS, sizeof *p->samples);
    p->sums = calloc((size_t)(session_ranks(p->s) * p->n_sizes), sizeof *p->sums);
    if (!p->out || !p->in || !p->samples || !p->sums)
        return err_set(err, ERR_NO_MEMORY, "message_max", "no memory for messages");
    memset(p->out, 0, p->s->spec->message_max + 1); // on our own node, by first touch
    memset(p->in, 0, p->s->spec->message_max + 1);
    return 0;
}

static int pingpong_measure_all(struct pingpong *p, struct err *err)
{
    struct session *s = p->s;
    find_sizes(p);
    p->n_shapes = shape_list(s->spec, p->shapes);
    int outcome = pairs_possible(s, err);
    if (outcome == 0 && !p->all)
        outcome = pair_list(s, s->spec->pairs, &p->pairs, &p->n_pairs, err);
    if (outcome == 0)
        outcome = pingpong_make_room(p, err);
    if (session_meet(s, outcome, err) < 0 || pingpong_begin(p, err) < 0)
        return -1;
    const void *buffers[] = {p->out, p->in};
    struct placed placed[2];
    for (int i = 0; i < 2; i++)
        placed[i] = session_verify(s, buffers[i], s->spec->message_max, s->place.mem_wanted);
    const struct pair_work work = {
        .context = p,
        .pairs = p->pairs,
        .n_pairs = p->n_pairs,
        .n_stages = n_stages(p),
        .n_cells = 1,
        .shapes = p->shapes,
        .visits = (int)s->spec->visits,
        .announce = pingpong_announce,
        .measure = pingpong_measure,
        .report = pingpong_report,
        .cost = pingpong_cost,
    };
    if (pair_turns_run(s, &work, err) < 0)
        return -1;
    for (int i = 0; i < 2; i++)
        session_verify_again(s, buffers[i], s->spec->message_max, s->place.mem_wanted, placed[i]);
    return 0;
}

int pingpong_run(struct session *s, struct err *err)
{
    struct pingpong p = {.s = s, .all = strcmp(s->spec->pairs, "all") == 0};
    int outcome = pingpong_measure_all(&p, err);
    for (int i = 0; p.sums && i < session_ranks(s) * p.n_sizes; i++)
        cell_sum_fini(&p.sums[i]);
    free(p.pairs);
    free(p.out);
    free(p.in);
    free(p.samples);
    free(p.sums);
    return outcome;
}

// SPDX-License-Identifier: Apache-2.0
// The c2c benchmark: every pair of ranks hands lines over while the other ranks sleep; then all
// pairs again, for each visit. The lines belong to the first rank's node, the second's or a
// third one, and a pair takes turns with several, because the home of a line (which slice of the
// cache, which agent) is part of the time.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/benchmarks/c2c_lines.h"
#include "bench/benchmarks/table.h"
#include "bench/kernels/line_transfer.h"
#include "bench/memory/shared_memory.h"
#include "bench/sampling/disturbance.h"
#include "bench/sampling/sampler.h"
#include "bench/session/pair_turns.h"
#include "bench/session/pairs.h"
#include "model/method.h"
#include "model/spec_values.h"

_Static_assert((int)SPEC_SAMPLES_MAX <= (int)SLOT_FLAGS, "a flag a sample");

struct handover {
    struct session *s;
    int n_shapes, n_pairs; // matrices, and those of them that are of pairs: the first
    int (*listed)[2];      // pairs that were requested instead of all; owned
    int n_listed;
    struct shape shapes[SHAPES_MAX];
    struct c2c_lines by_line; // of the other matrices; owned
    struct share lines;       // ours; owned
    struct placed placed[2];  // each of its regions, before measuring
    struct sample *samples;   // of a visit; owned
    struct cell_sum *sums;    // of our pairs as their ping side: [peer][shape]; owned
};

// Of the lines on one node.
static uint64_t region_bytes(const struct handover *h)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t lines = 2 * (uint64_t)h->s->spec->lines + C2C_AREA_LINES;
    uint64_t bytes = lines * sizeof(struct c2c_line);
    return (bytes + page - 1) / page * page;
}

static bool home_is_third(const struct handover *h)
{
    return h->s->spec->home == C2C_HOME_THIRD;
}

// Two nodes that are not ours: one of them is not the peer's either.
static uint64_t share_bytes(const struct handover *h)
{
    return region_bytes(h) * (home_is_third(h) ? 2 : 1);
}

static int c2c_node_of(const struct handover *h, int rank)
{
    return h->s->board->slot[rank].cpu_place.node;
}

static int third_node(const struct handover *h, int first, int second)
{
    return spec_third_node(h->s->targets, h->s->n_targets, c2c_node_of(h, first),
                           c2c_node_of(h, second));
}

// The node of our lines' region. Where there is only one that is not ours, both are there.
static int region_node(const struct handover *h, bool second)
{
    const struct session *s = h->s;
    int ours = c2c_node_of(h, s->comm->rank), node = third_node(h, s->comm->rank, s->comm->rank);
    int other = spec_third_node(s->targets, s->n_targets, ours, node);
    if (!home_is_third(h))
        return s->place.mem_wanted;
    return second && other >= 0 ? other : node;
}

static int make_of_pairs(const struct handover *h, struct matrix *m, const struct shape *shape,
                         struct err *err)
{
    int ranks = session_ranks(h->s);
    if (!h->listed)
        return shape_make(m, shape, ranks, ranks, err);
    if (shape_make(m, shape, h->n_listed, 1, err) < 0)
        return -1;
    for (int i = 0; i < h->n_listed; i++)
        m->row.values[i] = axis_pair(h->listed[i][0], h->listed[i][1]);
    m->col.values[0] = (int64_t)h->s->cache.line_bytes;
    return 0;
}

static int c2c_make_matrices(const struct handover *h, struct matrix *m, struct err *err)
{
    for (int i = 0; i < h->n_shapes; i++)
        if ((i < h->n_pairs ? make_of_pairs(h, &m[i], &h->shapes[i], err)
                            : c2c_lines_make(&h->by_line, &m[i], &h->shapes[i], err)) < 0)
            return -1;
    return 0;
}

static enum c2c_method method_of(const char *name)
{
    int method = 0;
    while (strcmp(name, c2c_method_names[method]) != 0)
        method++;
    return (enum c2c_method)method;
}

static int c2c_check_methods(const struct handover *h, struct err *err)
{
    for (int i = 0; i < h->n_pairs; i++)
        if (!c2c_has_method(method_of(h->shapes[i].name)))
            return err_set(err, ERR_UNAVAILABLE, "definition",
                           "%s needs an instruction that writes a cache line back; numa_bench does "
                           "not know this machine's",
                           h->shapes[i].name);
    return 0;
}

static int c2c_make_room(struct handover *h, struct err *err)
{
    h->samples = calloc(SLOT_FLAGS, sizeof *h->samples);
    h->sums = calloc((size_t)(session_ranks(h->s) * h->n_pairs), sizeof *h->sums);
    return h->samples && h->sums ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for samples");
}

// The homes that were requested must be there: the daemon's plan checks the same.
static int c2c_check_home(const struct handover *h, struct err *err)
{
    const struct session *s = h->s;
    int other = 0, ours = s->comm->rank;
    for (int r = 0; r < session_ranks(s); r++) {
        other += c2c_node_of(h, r) != c2c_node_of(h, ours);
        if (home_is_third(h) && r != ours && third_node(h, ours, r) < 0)
            return err_set(err, ERR_USAGE, "home",
                           "--home: third needs a node that is neither that of rank %d (%d) nor "
                           "that of rank %d (%d)",
                           ours, c2c_node_of(h, ours), r, c2c_node_of(h, r));
    }
    if (s->spec->home != C2C_HOME_SECOND || other)
        return 0;
    return err_set(err, ERR_USAGE, "home",
                   "--home: must be first, because all ranks are on node %d", c2c_node_of(h, ours));
}

// Bound before they are touched.
static void c2c_place_lines(struct handover *h)
{
    struct session *s = h->s;
    char *base = h->lines.base;
    for (uint64_t at = 0; at < h->lines.bytes; at += region_bytes(h)) {
        struct place place = s->place;
        if (home_is_third(h)) {
            place.mem_wanted = place.mem_node = region_node(h, at > 0);
            place_bind(&place, base + at, region_bytes(h));
        }
        memset(base + at, 0, region_bytes(h));
        h->placed[at > 0] = session_verify(s, base + at, region_bytes(h), region_node(h, at > 0));
    }
}

static void c2c_verify_again(const struct handover *h)
{
    for (uint64_t at = 0; at < h->lines.bytes; at += region_bytes(h))
        session_verify_again(h->s, h->lines.base + at, region_bytes(h), region_node(h, at > 0),
                             h->placed[at > 0]);
}

static int c2c_begin(struct handover *h, struct err *err)
{
    struct session *s = h->s;
    int outcome = pairs_possible(s, err);
    if (outcome == 0 && strcmp(s->spec->pairs, "all") != 0)
        outcome = pair_list(s, s->spec->pairs, &h->listed, &h->n_listed, err);
    if (outcome == 0)
        outcome = c2c_check_methods(h, err);
    if (outcome == 0)
        outcome = c2c_check_home(h, err);
    if (outcome == 0)
        outcome = c2c_make_room(h, err);
    if (outcome == 0)
        outcome = share_make(&h->lines, share_bytes(h), err);
    if (outcome == 0)
        c2c_place_lines(h);
    s->slot->share_fd = h->lines.fd;
    return session_meet(s, outcome, err) < 0 ? -1 : session_begin(s, NULL, 0, NULL, 0, err);
}

static int c2c_announce(void *context, struct err *err)
{
    struct handover *h = context;
    struct session *s = h->s;
    struct matrix m[SHAPES_MAX] = {0};
    int n = session_is_rank0(s) ? h->n_shapes : 0;
    int outcome = c2c_lines_init(&h->by_line, s, h->n_shapes - h->n_pairs, err);
    if (outcome == 0 && n)
        outcome = c2c_make_matrices(h, m, err);
    return session_meet(s, outcome, err) < 0 ? -1 : session_announce(s, m, n, err);
}

// --- One turn ------------------------------------------------------------------------------------

struct side {
    struct handover *h;
    const struct turn *turn;
    struct share lines; // as we see them
    char *base;         // of those on the pair's node
    bool ours;          // they are
    enum c2c_method method;
};

// Behind the lines of the round trips.
static struct c2c_line *c2c_area(const struct side *d)
{
    return (struct c2c_line *)(void *)d->base + 2 * d->h->s->spec->lines;
}

static double c2c_half(const struct side *d, int line, int trips)
{
    struct c2c_line *lines = (struct c2c_line *)(void *)d->base + 2 * line;
    const struct c2c_pair pair = {lines, d->method, trips, c2c_area(d)};
    if (d->turn->first)
        return c2c_ping(&pair);
    c2c_pong(&pair);
    return 0;
}

static void c2c_take(const struct side *d, int i, struct sample *got)
{
    struct guard_mark from, to;
    const struct spec *p = d->h->s->spec;
    guard_begin(&from);
    double trip_ns = c2c_half(d, i % (int)p->lines, (int)p->repetitions);
    guard_end(&to);
    *got = (struct sample){.from = from.wall_ns, .to = to.wall_ns, .hop_ns = trip_ns};
    got->verdict = guard_tally(&d->h->s->slot->lost, &from, &to);
}

// Both sides take as many: after each block they know whose samples were disturbed. A visit
// takes the lines in turn, each at least once. Returns how many, or -1.
static int c2c_samples(const struct side *d, struct err *err)
{
    struct session *s = d->h->s;
    int lines = (int)s->spec->lines, n = 0;
    int wanted = (int)((s->spec->min_samples + s->spec->visits - 1) / s->spec->visits);
    wanted = wanted < lines ? lines : wanted;
    int trips = (int)s->spec->repetitions / C2C_WARM_PART;
    for (int i = 0; i < lines; i++)
        c2c_half(d, i, trips);
    for (int until = wanted; n < until; until = pair_samples(s, d->turn, n, wanted)) {
        int outcome = 0; // the other rank needs our half of each sample, whatever is wrong with it
        for (; n < until; n++) {
            c2c_take(d, n, &d->h->samples[n]);
            if (isnan(d->h->samples[n].hop_ns))
                outcome = err_set(err, ERR_INTERNAL, "", "a line was read before it was written");
            s->slot->flags[n] = (unsigned char)d->h->samples[n].verdict.flags;
        }
        if (pair_turn_meet(s, d->turn, outcome, err) < 0)
            return -1;
    }
    return n;
}

static int c2c_keep_lines(const struct side *d, int shape, int n, struct err *err)
{
    struct handover *h = d->h;
    int row = c2c_lines_row(&h->by_line, h->s->comm->rank, d->turn->peer);
    if (shape >= h->by_line.n_shapes || row < 0 || d->turn->visit == VISIT_CONTROL)
        return 0;
    for (int i = 0; i < n; i++)
        if (c2c_lines_add(&h->by_line, row, shape, i % (int)h->s->spec->lines, &h->samples[i],
                          err) < 0)
            return -1;
    c2c_lines_next_visit(&h->by_line, row, shape);
    return pair_last_visit(h->s, d->turn) ? c2c_lines_sum_up(&h->by_line, row, shape, err) : 0;
}

static int c2c_keep(const struct side *d, int shape, int n, struct err *err)
{
    struct handover *h = d->h;
    struct session *s = h->s;
    const unsigned char *theirs = s->board->slot[d->turn->peer].flags;
    // Our own place is that of samples that are forgotten.
    int peer = d->turn->visit == VISIT_CONTROL ? s->comm->rank : d->turn->peer;
    struct cell_sum *sum = &h->sums[peer * h->n_pairs + shape];
    for (int i = 0; i < n; i++) {
        h->samples[i].verdict.flags |= theirs[i];
        if (cell_sum_add(sum, &h->samples[i], err) < 0)
            return -1;
    }
    cell_sum_next_visit(sum);
    if (c2c_keep_lines(d, shape, n, err) < 0)
        return -1;
    if (!pair_last_visit(s, d->turn))
        return 0;
    int outcome =
        cell_sum_up(sum, s->spec, &s->slot->cells[shape], &s->slot->evidences[shape], err);
    cell_sum_fini(sum);
    return outcome;
}

static int c2c_shape(struct side *d, int shape, struct err *err)
{
    const char *name = d->h->shapes[shape].name;
    d->method = method_of(name);
    int n = c2c_samples(d, err);
    if (n < 0)
        return -1; // as the other rank knows
    int outcome = d->turn->first ? c2c_keep(d, shape, n, err) : 0;
    return pair_turn_meet(d->h->s, d->turn, outcome, err); // it would wait for us in the next shape
}

// Nothing is added to the samples that there are.
static int c2c_sum_up(const struct side *d, struct err *err)
{
    for (int shape = 0; shape < d->h->n_pairs; shape++)
        if (c2c_keep(d, shape, 0, err) < 0)
            return -1;
    return 0;
}

// The first rank's lines are in its second region where the first is on the second rank's node.
static bool second_region(const struct side *d)
{
    int ours = d->h->s->comm->rank, peer = d->turn->peer;
    int first = d->turn->first ? ours : peer, second = d->turn->first ? peer : ours;
    return home_is_third(d->h) && third_node(d->h, first, second) != third_node(d->h, first, first);
}

static int open_lines(struct side *d, struct err *err)
{
    const struct slot *peer = &d->h->s->board->slot[d->turn->peer];
    d->ours = d->turn->first == (d->h->s->spec->home != C2C_HOME_SECOND);
    d->lines = (struct share){d->h->lines.base, d->h->lines.bytes, -1};
    if (!d->ours &&
        share_open(&d->lines, peer->info.pid, peer->share_fd, share_bytes(d->h), err) < 0)
        return -1;
    d->base = d->lines.base + (second_region(d) ? region_bytes(d->h) : 0);
    if (d->ours)
        c2c_link(c2c_area(d), (uint64_t)d->h->s->slot->info.seed);
    return 0;
}

static int c2c_measure(void *context, const struct turn *turn, struct err *err)
{
    struct handover *h = context;
    struct side d = {.h = h, .turn = turn, .lines = {.fd = -1}};
    if (turn->visit == VISIT_SUM_UP)
        return turn->first ? c2c_sum_up(&d, err) : 0;
    int outcome = pair_turn_meet(h->s, turn, open_lines(&d, err), err);
    uint64_t begin = clock_mono_ns();
    for (int shape = 0; outcome == 0 && shape < h->n_pairs; shape++)
        outcome = c2c_shape(&d, shape, err);
    h->s->slot->phase_ms[PHASE_MEASURE] += session_ms_since(begin);
    if (!d.ours)
        share_fini(&d.lines);
    return outcome;
}

static int c2c_report(void *context, int index, const int ends[2], int stage, struct err *err)
{
    struct handover *h = context;
    const struct slot *slot = &h->s->board->slot[ends[0]];
    (void)stage;
    int row = c2c_lines_row(&h->by_line, ends[0], ends[1]);
    int at[2] = {h->listed ? index : ends[0], h->listed ? 0 : ends[1]};
    for (int i = 0; i < h->n_pairs; i++) {
        session_judge(h->s, &slot->evidences[i], 0, "%s: ranks %d and %d", h->shapes[i].name,
                      ends[0], ends[1]);
        if (session_report_cell(h->s, h->shapes[i].name, at[0], at[1], &slot->cells[i], err) < 0)
            return -1;
    }
    for (int i = 0; row >= 0 && i < h->by_line.n_shapes; i++)
        if (c2c_lines_report(&h->by_line, row, i, h->shapes[h->n_pairs + i].name, err) < 0)
            return -1;
    return h->listed ? pair_note(h->s, ends, err) : 0;
}

// --- The whole -----------------------------------------------------------------------------------

static int c2c_measure_all(struct handover *h, struct err *err)
{
    if (c2c_begin(h, err) < 0)
        return -1;
    const struct pair_work work = {
        .context = h,
        .pairs = h->listed,
        .n_pairs = h->n_listed,
        .n_stages = 1,
        .n_cells = h->n_pairs,
        .shapes = h->shapes,
        .visits = (int)h->s->spec->visits,
        .announce = c2c_announce,
        .measure = c2c_measure,
        .report = c2c_report,
    };
    if (pair_turns_run(h->s, &work, err) < 0)
        return -1;
    c2c_verify_again(h);
    return session_meet(h->s, 0, err);
}

int c2c_run(struct session *s, struct err *err)
{
    struct handover h = {.s = s, .lines = {.fd = -1}};
    h.n_shapes = shape_list(s->spec, h.shapes);
    for (int i = 0; i < h.n_shapes; i++)
        h.n_pairs += strcmp(h.shapes[i].cols, "line") != 0;
    int outcome = c2c_measure_all(&h, err);
    for (int i = 0; h.sums && i < session_ranks(s) * h.n_pairs; i++)
        cell_sum_fini(&h.sums[i]);
    c2c_lines_fini(&h.by_line);
    share_fini(&h.lines);
    free(h.listed);
    free(h.sums);
    free(h.samples);
    return outcome;
}

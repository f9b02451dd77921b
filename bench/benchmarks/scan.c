// SPDX-License-Identifier: Apache-2.0
// The scan benchmark: what is slower than its peers. All ranks at once follow a chain in the
// second-level cache, then one in memory, then read their memory; then pairs of ranks hand over a
// line, as many pairs at once as there are cores. bench/session/scan_course.c decides what is
// measured again. All ranks follow the same course in step: they see the same values on the board,
// and the time that rank 0 left there, so they decide alike.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/benchmarks/table.h"
#include "bench/kernels/line_transfer.h"
#include "bench/kernels/stream.h"
#include "bench/memory/shared_memory.h"
#include "bench/sampling/disturbance.h"
#include "bench/session/chaser.h"
#include "bench/session/concurrent.h"
#include "bench/session/pair_choice.h"
#include "bench/session/pairs.h"
#include "bench/session/scan_course.h"
#include "model/scan.h"

enum { LINGER_PART = 64 }; // of the memory, read while others are not ready

struct scan {
    struct session *s;
    struct chaser chaser; // owned
    struct arena arena;   // of memory_bytes; owned
    uint64_t l2_bytes, memory_bytes;
    struct scan_place *places;             // owned
    struct pair_rounds rounds;             // owned
    struct scan_course course;             // owned
    struct cell_sum sums[ASPECT_TRANSFER]; // ours; owned
    struct cell_sum *pair_sums;            // of each pair, filled by its first rank; owned
    struct share lines;                    // ours; owned
    struct placed placed;                  // of them, before measuring
    struct stream_arrays array;            // the arena as numbers
    int64_t limit_ms;                      // of sampling a cell at a visit
    int64_t seen[ASPECT_TRANSFER];         // visits of each
    uint64_t together, steps;              // measurements by all at once; looks at the clock
    double sum;                            // of what was read, so that it is read
};

// --- Values that all ranks see -------------------------------------------------------------------

// A meeting; rank 0 leaves the time. Of two places it takes the one that no rank still reads.
static int scan_meet(struct scan *w, int outcome, struct err *err)
{
    struct session *s = w->s;
    w->steps++;
    if (session_is_rank0(s))
        s->slot->elapsed_s[w->steps % 2] = session_ms_since(s->emit->started_ns) / 1e3;
    return session_meet(s, outcome, err);
}

static double scan_elapsed_s(void *context)
{
    const struct scan *w = context;
    return w->s->board->slot[0].elapsed_s[w->steps % 2];
}

static bool scan_stopped(void *context)
{
    return session_stopped(((const struct scan *)context)->s);
}

static int scan_progress(void *context, double share, struct err *err)
{
    struct scan *w = context;
    return scan_meet(w, session_progress(w->s, PHASE_MEASURE, share, err), err);
}

// The median of the last visit's samples; NaN: all were disturbed.
static double scan_last_visit(const struct cell_sum *sum, struct err *err)
{
    int from = sum->n;
    while (from > 0 && sum->visit[from - 1] == sum->visits - 1)
        from--;
    CLEANUP_MEM double *v = malloc((size_t)(sum->n - from + 1) * sizeof *v);
    if (!v) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for %d samples", sum->n - from);
        return -1;
    }
    if (sum->n > from)
        memcpy(v, sum->values + from, (size_t)(sum->n - from) * sizeof *v);
    return middle_of(v, sum->n - from);
}

static int scan_leave(struct scan *w, double value, struct err *err)
{
    w->s->slot->cells[0].v[CELL_MEDIAN] = value;
    return scan_meet(w, value < 0 ? -1 : 0, err);
}

// --- All ranks at once ---------------------------------------------------------------------------

static void scan_warm_chain(void *context)
{
    chaser_warm(&((struct scan *)context)->chaser);
}

static void scan_linger_chain(void *context)
{
    sampler_linger(&((struct scan *)context)->chaser.sampler);
}

static void scan_take_chain(void *context)
{
    sampler_take(&((struct scan *)context)->chaser.sampler);
}

static void scan_read_part(struct scan *w, size_t part)
{
    w->sum += stream_pass(STREAM_READ, &w->array, 0, w->array.n / part);
}

static void scan_warm_reading(void *context)
{
    scan_read_part(context, 1);
}

static void scan_linger_reading(void *context)
{
    scan_read_part(context, LINGER_PART);
}

static void scan_take_reading(void *context)
{
    struct scan *w = context;
    struct guard_mark from, to;
    guard_begin(&from);
    scan_read_part(w, 1);
    guard_end(&to);
    struct sample got = {.from = from.wall_ns, .to = to.wall_ns};
    got.hop_ns = stream_mb_per_s(STREAM_READ, (double)w->array.n, (double)(got.to - got.from));
    got.verdict = guard_tally(&w->s->slot->lost, &from, &to);
    sampler_add(&w->chaser.sampler, &got);
}

static void scan_prepare(struct scan *w, enum aspect aspect)
{
    int64_t visits = w->s->spec->visits, visit = w->seen[aspect]++;
    if (aspect == ASPECT_BANDWIDTH)
        stream_fill(&w->array, 0, w->array.n);
    else
        chaser_build(&w->chaser, &w->arena, aspect == ASPECT_L2 ? w->l2_bytes : w->memory_bytes,
                     visit % visits, visits);
}

static int scan_take_ranks(void *context, enum aspect aspect, int times, double *values,
                           struct err *err)
{
    struct scan *w = context;
    bool reads = aspect == ASPECT_BANDWIDTH;
    const struct work work = {reads ? scan_warm_reading : scan_warm_chain,
                              reads ? scan_linger_reading : scan_linger_chain,
                              reads ? scan_take_reading : scan_take_chain, w, &w->chaser.sampler};
    struct cell_sum *sum = &w->sums[aspect];
    scan_prepare(w, aspect);
    w->chaser.sampler.limit_ms = times * w->limit_ms;
    if (concurrent_measure(w->s, &work, ++w->together, sum, err) < 0 ||
        scan_leave(w, scan_last_visit(sum, err), err) < 0)
        return -1;
    for (int r = 0; r < session_ranks(w->s); r++)
        values[r] = w->s->board->slot[r].cells[0].v[CELL_MEDIAN];
    return 0;
}

// --- Pairs ---------------------------------------------------------------------------------------

static uint64_t scan_share_bytes(void)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (2 * SCAN_LINES * sizeof(struct c2c_line) + page - 1) / page * page;
}

// Our pair of a round; -1: we have none.
static int scan_our_pair(const struct scan *w, int round)
{
    int us = w->s->comm->rank;
    for (int p = w->rounds.begin[round]; p < w->rounds.begin[round + 1]; p++)
        if (w->rounds.pairs[p][0] == us || w->rounds.pairs[p][1] == us)
            return p;
    return -1;
}

// Our half of trips with a line of the first rank's.
static double scan_trips(const struct share *lines, int line, bool first, int trips)
{
    struct c2c_line *at = (struct c2c_line *)(void *)lines->base + 2 * line;
    const struct c2c_pair pair = {at, C2C_CAS, trips, NULL};
    if (first)
        return c2c_ping(&pair);
    c2c_pong(&pair);
    return 0;
}

static void scan_hand_over(struct scan *w, const struct share *lines, bool first, int times,
                           struct sample *samples)
{
    int trips = (int)w->s->spec->repetitions * times;
    struct guard_mark from, to;
    scan_trips(lines, 0, first, trips);
    for (int i = 0; i < SCAN_LINES; i++) {
        guard_begin(&from);
        double ns = scan_trips(lines, i, first, trips);
        guard_end(&to);
        samples[i] = (struct sample){.from = from.wall_ns, .to = to.wall_ns, .hop_ns = ns};
        samples[i].verdict = guard_tally(&w->s->slot->lost, &from, &to);
        w->s->slot->flags[i] = (unsigned char)samples[i].verdict.flags;
    }
}

static int scan_keep_pair(struct scan *w, int pair, struct sample *samples, struct err *err)
{
    const unsigned char *theirs = w->s->board->slot[w->rounds.pairs[pair][1]].flags;
    struct cell_sum *sum = &w->pair_sums[pair];
    for (int i = 0; i < SCAN_LINES; i++) {
        samples[i].verdict.flags |= theirs[i];
        if (cell_sum_add(sum, &samples[i], err) < 0)
            return -1;
    }
    cell_sum_next_visit(sum);
    return 0;
}

static int scan_take_pairs(void *context, int round, int times, double *values, struct err *err)
{
    struct scan *w = context;
    struct slot *slot = w->s->board->slot;
    struct sample samples[SCAN_LINES];
    struct share lines = w->lines;
    int pair = scan_our_pair(w, round), outcome = 0;
    const int *ends = pair < 0 ? NULL : w->rounds.pairs[pair];
    bool first = ends && ends[0] == w->s->comm->rank;
    if (ends && !first)
        outcome = share_open(&lines, slot[ends[0]].info.pid, slot[ends[0]].share_fd,
                             scan_share_bytes(), err);
    if (scan_meet(w, outcome, err) < 0)
        return -1;
    if (ends)
        scan_hand_over(w, &lines, first, times, samples);
    if (ends && !first)
        share_fini(&lines);
    if (scan_meet(w, 0, err) < 0)
        return -1;
    outcome = first ? scan_keep_pair(w, pair, samples, err) : 0;
    double value = first && outcome == 0 ? scan_last_visit(&w->pair_sums[pair], err) : outcome;
    if (scan_leave(w, value, err) < 0)
        return -1;
    for (int p = w->rounds.begin[round]; p < w->rounds.begin[round + 1]; p++)
        *values++ = slot[w->rounds.pairs[p][0]].cells[0].v[CELL_MEDIAN];
    return 0;
}

// --- Cells ---------------------------------------------------------------------------------------

static int scan_report_ranks(struct scan *w, enum aspect aspect, const char *matrix, int col,
                             struct err *err)
{
    struct session *s = w->s;
    int outcome = cell_sum_up(&w->sums[aspect], s->spec, &s->slot->cell, &s->slot->evidence, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    for (int r = 0; session_is_rank0(s) && outcome == 0 && r < session_ranks(s); r++) {
        session_judge(s, &s->board->slot[r].evidence, 0, "%s: rank %d", matrix, r);
        outcome = session_report_cell(s, matrix, r, col, &s->board->slot[r].cell, err);
    }
    return session_meet(s, outcome, err);
}

// The first ranks of a round's pairs have their sums.
static int scan_report_round(struct scan *w, int round, struct err *err)
{
    struct session *s = w->s;
    int pair = scan_our_pair(w, round), outcome = 0;
    if (pair >= 0 && w->rounds.pairs[pair][0] == s->comm->rank)
        outcome =
            cell_sum_up(&w->pair_sums[pair], s->spec, &s->slot->cell, &s->slot->evidence, err);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    int begin = w->rounds.begin[round], end = w->rounds.begin[round + 1];
    for (int p = begin; session_is_rank0(s) && outcome == 0 && p < end; p++) {
        const int *ends = w->rounds.pairs[p];
        const struct slot *slot = &s->board->slot[ends[0]];
        session_judge(s, &slot->evidence, 0, "transfer: ranks %d and %d", ends[0], ends[1]);
        outcome = session_report_cell(s, SCAN_TRANSFER, p, 0, &slot->cell, err);
    }
    return session_meet(s, outcome, err);
}

// Per cent of the peers' median. Of what is not odd the interval contains 100: model/scan.h.
static struct cell scan_deviation(const struct odd_unit *u, int visits, int candidates)
{
    static const double like_peers = 100, odd_least = 100.001;
    struct cell c;
    cell_clear(&c);
    bool known = u->peers && isfinite(u->ratio);
    c.v[CELL_N] = known ? visits : 0;
    c.v[CELL_MEDIAN] = known ? 100 * u->ratio : like_peers;
    if (!known)
        return c;
    double lo = isfinite(u->lo) ? 100 * u->lo : c.v[CELL_MEDIAN],
           hi = isfinite(u->hi) ? 100 * u->hi : c.v[CELL_MEDIAN];
    c.v[CELL_LO] = u->odd ? fmax(lo, odd_least) : fmin(lo, like_peers);
    c.v[CELL_HI] = fmax(u->odd ? c.v[CELL_LO] : like_peers, hi);
    c.v[CELL_SD] = isfinite(u->spread) ? 100 * u->spread : NAN;
    c.v[CELL_CONVERGED] = !odd_is_open(u, candidates);
    return c;
}

static int scan_report_units(struct scan *w, const char *matrix, int col, const struct odd_units *u,
                             enum aspect aspect, struct err *err)
{
    int visits = w->course.tables[aspect].visits, outcome = 0;
    static const struct odd_unit not_judged = {.peers = 0};
    int n = u->n ? u->n : session_ranks(w->s); // cores without pairs
    for (int i = 0; outcome == 0 && i < n; i++) {
        struct cell c =
            scan_deviation(u->n ? &u->list[i] : &not_judged, visits, w->course.candidates);
        outcome = session_report_cell(w->s, matrix, i, col, &c, err);
    }
    return outcome;
}

static int scan_report_deviations(struct scan *w, struct err *err)
{
    static const char *const names[SCAN_LEVELS] = {SCAN_OF_NODE, SCAN_OF_L3, SCAN_OF_CORE};
    const struct scan_course *c = &w->course;
    for (int k = 0; k < SCAN_LEVELS; k++)
        for (int a = 0; a < (k == SCAN_CORE ? AXIS_ASPECTS : ASPECT_TRANSFER); a++)
            if (scan_report_units(w, names[k], a, &c->found[k][a], (enum aspect)a, err) < 0)
                return -1;
    return scan_report_units(w, SCAN_OF_PAIR, 0, &c->pairs, ASPECT_TRANSFER, err);
}

// --- Findings ------------------------------------------------------------------------------------

static const char *const aspect_texts[AXIS_ASPECTS] = {"latency in L2", "latency of memory",
                                                       "bandwidth", "cache-line transfers"};

// "core of rank 17 (CPU 17)", "node 3", …
static void scan_unit_text(const struct scan *w, int level, int unit, char *out, size_t room)
{
    const struct slot *slot = w->s->board->slot;
    const struct scan_level *l = &w->course.levels[level < SCAN_LEVELS ? level : SCAN_CORE];
    if (level == SCAN_LEVELS)
        snprintf(out, room, "the pair of ranks %d and %d (CPUs %lld and %lld)",
                 w->rounds.pairs[unit][0], w->rounds.pairs[unit][1],
                 (long long)slot[w->rounds.pairs[unit][0]].info.cpu,
                 (long long)slot[w->rounds.pairs[unit][1]].info.cpu);
    else if (level == SCAN_NODE)
        snprintf(out, room, "node %d", w->places[l->first[unit]].node);
    else if (level == SCAN_L3)
        snprintf(out, room, "the last-level cache of rank %d (CPU %lld)", l->first[unit],
                 (long long)slot[l->first[unit]].info.cpu);
    else
        snprintf(out, room, "the core of rank %d (CPU %lld)", unit, (long long)slot[unit].info.cpu);
}

static int scan_note_units(struct scan *w, int level, enum aspect aspect, const struct odd_units *u,
                           int *odd, struct err *err)
{
    char what[120], spread[40];
    for (int i = 0; i < u->n; i++) {
        const struct odd_unit *one = &u->list[i];
        if (!one->odd)
            continue;
        ++*odd;
        scan_unit_text(w, level, i, what, sizeof what);
        snprintf(spread, sizeof spread, ", which differ by %.1f %%", 100 * one->spread);
        if (session_note(w->s, err, CONDITION_ODD, -1,
                         "%s: %s %+.1f %% slower than its %d peers%s; beyond the limit of "
                         "%.1f %% in %d of %d repetitions",
                         what, aspect_texts[aspect], 100 * (one->ratio - 1), one->peers,
                         isfinite(one->spread) ? spread : "", 100 * (one->limit - 1), one->above,
                         one->visits) < 0)
            return -1;
    }
    return 0;
}

static int scan_note_course(struct scan *w, int odd, struct err *err)
{
    const struct scan_course *c = &w->course;
    int ranks = session_ranks(w->s);
    int64_t all = (int64_t)ranks * (ranks - 1) / 2;
    if (w->rounds.n_pairs < all &&
        session_note(w->s, err, CONDITION_BUDGET, -1,
                     "%d of %lld pairs were measured: some of each core and of each two last-level "
                     "caches",
                     w->rounds.n_pairs, (long long)all) < 0)
        return -1;
    if (c->broad < c->visits &&
        session_note(w->s, err, CONDITION_BUDGET, -1, "%d of %lld broad repetitions fit the time",
                     c->broad, (long long)c->visits) < 0)
        return -1;
    if (!c->open)
        return 0;
    return session_note(w->s, err, CONDITION_BUDGET, -1,
                        "%d repetitions were not enough to confirm %d of %d candidates: raise %s "
                        "(odd: %d)",
                        c->confirmed, c->open, c->candidates,
                        c->confirmed < c->visits ? "the budget" : "visits", odd);
}

static int scan_note(struct scan *w, struct err *err)
{
    int odd = 0;
    for (int k = 0; k < SCAN_LEVELS; k++)
        for (int a = 0; a < AXIS_ASPECTS; a++)
            if (scan_note_units(w, k, (enum aspect)a, &w->course.found[k][a], &odd, err) < 0)
                return -1;
    if (scan_note_units(w, SCAN_LEVELS, ASPECT_TRANSFER, &w->course.pairs, &odd, err) < 0)
        return -1;
    return scan_note_course(w, odd, err);
}

// --- Begin ---------------------------------------------------------------------------------------

static int scan_find_places(struct scan *w, struct err *err)
{
    int ranks = session_ranks(w->s);
    const struct slot *slot = w->s->board->slot;
    CLEANUP_MEM int *group = calloc((size_t)ranks + 1, sizeof *group);
    CLEANUP_MEM int *core = calloc((size_t)ranks + 1, sizeof *core);
    w->places = calloc((size_t)ranks + 1, sizeof *w->places);
    if (!group || !core || !w->places)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks);
    for (int r = 0; r < ranks; r++) {
        const struct cpu_place *p = &slot[r].cpu_place;
        w->places[r] = (struct scan_place){p->core, p->llc, p->node, p->package, p->kind};
        group[r] = p->llc >= 0 ? p->llc : -1 - p->node;
        core[r] = p->core;
    }
    return pair_choice_make(&w->rounds, group, core, ranks, SCAN_PAIRS_MOST, err);
}

static int scan_find_sizes(struct scan *w, struct err *err)
{
    struct session *s = w->s;
    CLEANUP_MEM struct rank_cache *caches = session_caches(s, err);
    if (!caches)
        return -1;
    uint64_t least = 0;
    for (int r = 0; r < session_ranks(s); r++) {
        uint64_t l2 = s->board->slot[r].l2_bytes;
        least = !least || (l2 && l2 < least) ? l2 : least;
    }
    w->l2_bytes = scan_l2_bytes(least);
    w->memory_bytes = scan_memory_bytes(caches, session_ranks(s));
    return 0;
}

static int scan_make_course(struct scan *w, struct err *err)
{
    const struct spec *p = w->s->spec;
    w->course = (struct scan_course){.ranks = session_ranks(w->s),
                                     .places = w->places,
                                     .rounds = &w->rounds,
                                     .visits = (int)p->visits,
                                     .budget_s = (double)p->budget_s,
                                     .least = 1 + p->deviation / 100};
    w->pair_sums = calloc((size_t)w->rounds.n_pairs + 1, sizeof *w->pair_sums);
    if (!w->pair_sums)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", w->rounds.n_pairs);
    return scan_course_init(&w->course, err);
}

static int scan_init(struct scan *w, struct err *err)
{
    struct session *s = w->s;
    if (scan_find_places(w, err) < 0 || scan_find_sizes(w, err) < 0 ||
        scan_make_course(w, err) < 0 ||
        chaser_init(&w->chaser, s, w->l2_bytes, s->spec->visits, err) < 0 ||
        share_make(&w->lines, scan_share_bytes(), err) < 0)
        return -1;
    w->limit_ms = w->chaser.sampler.limit_ms;
    memset(w->lines.base, 0, w->lines.bytes);
    w->placed = session_verify(s, w->lines.base, w->lines.bytes, s->place.mem_wanted);
    s->slot->share_fd = w->lines.fd;
    return 0;
}

static int scan_rows(const struct scan *w, const char *axis)
{
    const struct scan_course *c = &w->course;
    return strcmp(axis, "pair") == 0        ? w->rounds.n_pairs
           : strcmp(axis, "l3") == 0        ? c->levels[SCAN_L3].units
           : strcmp(axis, "initiator") == 0 ? c->levels[SCAN_NODE].units
                                            : session_ranks(w->s);
}

static void scan_set_rows(const struct scan *w, struct axis *a)
{
    for (int i = 0; i < a->n; i++) {
        if (strcmp(a->name, "pair") == 0)
            a->values[i] = axis_pair(w->rounds.pairs[i][0], w->rounds.pairs[i][1]);
        else if (strcmp(a->name, "l3") == 0)
            a->values[i] = w->course.levels[SCAN_L3].first[i];
        else if (strcmp(a->name, "initiator") == 0)
            a->values[i] = w->places[w->course.levels[SCAN_NODE].first[i]].node;
    }
}

static int scan_make_matrices(const struct scan *w, struct matrix *m, int *n, struct err *err)
{
    struct shape shapes[SHAPES_MAX];
    *n = shape_list(w->s->spec, shapes);
    for (int i = 0; i < *n; i++) {
        const struct shape *shape = &shapes[i];
        bool judged = strcmp(shape->cols, "aspect") == 0, pair = strcmp(shape->rows, "pair") == 0;
        bool core = strcmp(shape->rows, "rank") == 0,
             chains = strcmp(shape->name, SCAN_LATENCY) == 0;
        int cols = judged ? (pair ? 1 : core ? AXIS_ASPECTS : ASPECT_TRANSFER) : chains ? 2 : 1;
        if (shape_make(&m[i], shape, scan_rows(w, shape->rows), cols, err) < 0)
            return -1;
        scan_set_rows(w, &m[i].row);
        if (judged && pair)
            m[i].col.values[0] = ASPECT_TRANSFER;
        if (!judged)
            m[i].col.values[cols - 1] = (int64_t)(pair ? w->s->cache.line_bytes : w->memory_bytes);
        if (chains)
            m[i].col.values[0] = (int64_t)w->l2_bytes;
    }
    return 0;
}

static int scan_begin(struct scan *w, struct err *err)
{
    struct session *s = w->s;
    struct matrix m[SHAPES_MAX] = {0};
    int ranks = session_ranks(s), n = 0;
    CLEANUP_MEM struct demand *d = calloc((size_t)ranks + 1, sizeof *d);
    int outcome = d ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory to count memory");
    for (int r = 0; d && r < ranks; r++)
        d[r] = (struct demand){.node = (int)s->board->slot[r].info.mem_wanted,
                               .bytes = arena_round(w->memory_bytes, (enum pages)s->spec->pages)};
    if (outcome == 0 && session_is_rank0(s))
        outcome = scan_make_matrices(w, m, &n, err);
    if (session_meet(s, outcome, err) < 0 || session_begin(s, m, n, d, ranks, err) < 0)
        return -1;
    outcome = session_arena(s, &w->arena, w->memory_bytes, -1, err);
    if (outcome == 0)
        w->array = stream_layout((double *)(void *)w->arena.base, w->memory_bytes / sizeof(double),
                                 STREAM_A);
    return scan_meet(w, outcome, err);
}

// --- The whole -----------------------------------------------------------------------------------

static int scan_report(struct scan *w, struct err *err)
{
    if (scan_report_ranks(w, ASPECT_L2, SCAN_LATENCY, 0, err) < 0 ||
        scan_report_ranks(w, ASPECT_MEMORY, SCAN_LATENCY, 1, err) < 0 ||
        scan_report_ranks(w, ASPECT_BANDWIDTH, SCAN_BANDWIDTH, 0, err) < 0)
        return -1;
    for (int k = 0; k < w->rounds.n_rounds; k++)
        if (scan_report_round(w, k, err) < 0)
            return -1;
    int outcome = session_is_rank0(w->s) ? scan_report_deviations(w, err) : 0;
    if (session_is_rank0(w->s) && outcome == 0)
        outcome = scan_note(w, err);
    return session_meet(w->s, outcome, err);
}

static void scan_fini(struct scan *w)
{
    for (int i = 0; w->pair_sums && i < w->rounds.n_pairs; i++)
        cell_sum_fini(&w->pair_sums[i]);
    for (int a = 0; a < ASPECT_TRANSFER; a++)
        cell_sum_fini(&w->sums[a]);
    scan_course_fini(&w->course);
    pair_rounds_fini(&w->rounds);
    free(w->pair_sums);
    free(w->places);
    share_fini(&w->lines);
    arena_fini(&w->arena);
    chaser_fini(&w->chaser);
}

int scan_run(struct session *s, struct err *err)
{
    struct scan w CLEANUP(scan_fini) = {.s = s, .lines = {.fd = -1}};
    const struct scan_machine machine = {
        &w, scan_take_ranks, scan_take_pairs, scan_elapsed_s, scan_progress, scan_stopped};
    if (pairs_possible(s, err) < 0 || session_meet(s, scan_init(&w, err), err) < 0 ||
        scan_begin(&w, err) < 0)
        return -1;
    int outcome = scan_course_run(&w.course, &machine, err);
    session_check_again(s, &w.arena, -1);
    session_verify_again(s, w.lines.base, w.lines.bytes, s->place.mem_wanted, w.placed);
    if (session_meet(s, outcome, err) < 0)
        return -1;
    return scan_report(&w, err);
}

// SPDX-License-Identifier: Apache-2.0
// The order for one cell: warm up, sample until the interval of the median is narrow enough or
// the time is up, sort out disturbed samples, add the rest to the sum of the cell.
#include "bench/sampling/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats/stats.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "bench/kernels/chase.h"
#include "model/method.h"

enum {
    LINGER_HOPS = 1024, // waiting for others: about 0.1 ms
    ROOM_SPARE = 64,    // samples of others that take longer than we
    ROOM_MAX = 1 << 20, // 40 MB of samples
    CHECK_SHARE = 8,    // look at the interval again after 1/8 more samples
    PATIENCE = 4,       // times cell_ms, while there are fewer clean samples than requested
};

int sampler_init(struct sampler *s, const struct spec *p, int64_t visits, struct err *err)
{
    *s = (struct sampler){.params = p,
                          .limit_ms = (p->cell_ms + visits - 1) / visits,
                          .min_samples = (p->min_samples + visits - 1) / visits};
    int64_t room = (PATIENCE + 1) * s->limit_ms * 1000 / p->sample_us + s->min_samples + ROOM_SPARE;
    s->room = (int)(room < ROOM_MAX ? room : ROOM_MAX);
    s->samples = calloc((size_t)s->room, sizeof *s->samples);
    s->values = calloc((size_t)s->room, sizeof *s->values);
    if (!s->samples || !s->values) {
        sampler_fini(s);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d samples", (int)room);
    }
    // Touched now: a page fault later would be inside of a measurement.
    for (int i = 0; i < s->room; i++) {
        s->samples[i].hop_ns = NAN;
        s->values[i] = NAN;
    }
    return 0;
}

void sampler_fini(struct sampler *s)
{
    free(s->samples);
    free(s->values);
    *s = (struct sampler){0};
}

void sampler_start(struct sampler *s, void *at)
{
    s->at = at;
    s->hop_ns = 0;
}

void sampler_warm(struct sampler *s, uint64_t hops, uint64_t least_ns)
{
    uint64_t begin = clock_mono_ns(), now = begin;
    for (uint64_t done = 0; done < hops || now - begin < least_ns; done += WARM_CHUNK) {
        uint64_t before = now;
        s->at = chase(s->at, WARM_CHUNK);
        now = clock_mono_ns();
        s->hop_ns = (double)(now - before) / WARM_CHUNK;
    }
}

void sampler_linger(struct sampler *s)
{
    s->at = chase(s->at, LINGER_HOPS);
}

void sampler_clear(struct sampler *s)
{
    s->n = 0;
    s->next_check = 0;
    s->spans.n = 0;
    s->failure = (struct err){0};
}

static uint64_t chunk_hops(const struct sampler *s)
{
    double sample_ns = 1000.0 * (double)s->params->sample_us;
    double hops = s->hop_ns > 0 ? sample_ns / SAMPLE_CHUNKS / s->hop_ns : 0;
    double least = (double)SAMPLE_HOPS_MIN / SAMPLE_CHUNKS;
    return chase_round((uint64_t)(hops > least ? hops : least));
}

// Fixed time, not fixed hops: ranks with slow memory take as long as those with fast, and a sample
// never shrinks below what the clock and the guard resolve.
static struct sample sampling_sampler_take(struct sampler *s)
{
    struct guard_mark begin, end;
    struct counts before;
    uint64_t chunk = chunk_hops(s), hops = 0, now;
    uint64_t length_ns = 1000 * (uint64_t)s->params->sample_us;
    if (s->counters)
        before = counters_read(s->counters);
    guard_begin(&begin);
    do {
        s->at = chase(s->at, chunk);
        hops += chunk;
        now = clock_mono_ns();
    } while (now - begin.wall_ns < length_ns || hops < SAMPLE_HOPS_MIN);
    guard_end(&end);
    struct sample got = {.from = begin.wall_ns, .to = end.wall_ns};
    got.hop_ns = (double)(got.to - got.from) / (double)hops;
    got.verdict = s->lost ? guard_tally(s->lost, &begin, &end) : guard_judge(&begin, &end);
    if (s->counters) {
        struct counts after = counters_read(s->counters);
        got.counts = counts_between(&before, &after);
        got.hops = (double)hops;
    }
    return got;
}

// Off the CPU for more than this share, a sample was no load on the memory for others.
static const double LOAD_OFF_SHARE = 0.05;

void sampler_add(struct sampler *s, const struct sample *got)
{
    if (got->verdict.off_share <= LOAD_OFF_SHARE)
        spans_add(&s->spans, got->from, got->to);
    if (got->verdict.flags & GUARD_MOVED)
        s->moves++;
    if (s->n < s->room)
        s->samples[s->n++] = *got;
}

void sampler_take(struct sampler *s)
{
    struct sample got = sampling_sampler_take(s);
    if (!got.verdict.flags)
        s->hop_ns = got.hop_ns;
    sampler_add(s, &got);
}

static int clean_values(struct sampler *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (!s->samples[i].verdict.flags)
            s->values[n++] = s->samples[i].hop_ns;
    return n;
}

static bool precise(struct sampler *s)
{
    struct stats st;
    int n = clean_values(s);
    if (n < s->min_samples || n < STATS_INDEPENDENT_MIN)
        return false;
    if (stats_of(&st, s->values, n, &s->failure) < 0)
        return true; // the caller sees the failure
    return stats_precision(&st) <= s->params->precision;
}

bool sampler_done(struct sampler *s)
{
    uint64_t limit_ns = 1000000 * (uint64_t)s->limit_ms;
    uint64_t spent_ns = s->samples[s->n - 1].to - s->samples[0].from;
    if (s->n >= s->room || spent_ns >= PATIENCE * limit_ns)
        return true;
    if (spent_ns >= limit_ns)
        return clean_values(s) >= s->min_samples;
    if (s->n < s->next_check || s->n < s->min_samples)
        return false;
    s->next_check = s->n + 1 + s->n / CHECK_SHARE;
    return precise(s);
}

static bool sampler_inside(const struct sample *x, const struct spans *together)
{
    return !together || (together->n && x->from >= together->at[0].from &&
                         x->to <= together->at[together->n - 1].to);
}

// --- Over the visits ---------------------------------------------------------------------------

static int sampler_make_room(struct cell_sum *sum, int more, struct err *err)
{
    if (sum->n + more <= sum->room)
        return 0;
    int room = 2 * sum->room + more;
    double *values = realloc(sum->values, (size_t)room * sizeof *values);
    if (values)
        sum->values = values;
    int *visit = realloc(sum->visit, (size_t)room * sizeof *visit);
    if (visit)
        sum->visit = visit;
    if (!values || !visit)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d samples", room);
    sum->room = room;
    return 0;
}

static void keep_spare(struct cell_sum *sum, const struct sample *x)
{
    if (sum->has_spare && sum->spare_off <= x->verdict.off_share)
        return;
    sum->spare = x->hop_ns;
    sum->spare_off = x->verdict.off_share;
    sum->has_spare = true;
}

static void keep_one(struct cell_sum *sum, const struct sample *x, const struct spans *together,
                     bool shared)
{
    if (x->verdict.flags) {
        sum->left_out++;
        keep_spare(sum, x);
        return;
    }
    sum->values[sum->n] = x->hop_ns;
    sum->visit[sum->n++] = sum->visits;
    sum->kept_ns += (double)(x->to - x->from);
    counted_add(&sum->counted, &x->counts, x->hops);
    sum->shared_ns += together && shared ? (double)spans_cover(together, x->from, x->to) : 0;
}

static bool any_inside(const struct sampler *s, const struct spans *together)
{
    for (int i = 0; i < s->n; i++)
        if (sampler_inside(&s->samples[i], together))
            return true;
    return false;
}

int sampler_keep(struct sampler *s, const struct spans *together, struct cell_sum *sum,
                 struct err *err)
{
    if (s->failure.code) {
        *err = s->failure;
        return -1;
    }
    if (sampler_make_room(sum, s->n, err) < 0)
        return -1;
    // Nothing in common: keep what there is, and say that it was alone.
    bool shared = any_inside(s, together);
    for (int i = 0; i < s->n; i++)
        if (!shared || sampler_inside(&s->samples[i], together))
            keep_one(sum, &s->samples[i], together, shared);
    sum->concurrent |= together != NULL;
    cell_sum_next_visit(sum);
    return 0;
}

int cell_sum_add(struct cell_sum *sum, const struct sample *x, struct err *err)
{
    if (sampler_make_room(sum, 1, err) < 0)
        return -1;
    keep_one(sum, x, NULL, false);
    return 0;
}

void cell_sum_next_visit(struct cell_sum *sum)
{
    sum->visits++;
}

void cell_sum_fini(struct cell_sum *sum)
{
    free(sum->values);
    free(sum->visit);
    *sum = (struct cell_sum){0};
}

// Of samples of one moment their own spread, of several moments what the cell says of a repeat,
// which is sqrt(2) wider.
static int cell_sum_precision(const struct cell_sum *sum, const struct cell *c, double *percent,
                              struct err *err)
{
    struct stats st;
    double median = c->v[CELL_MEDIAN];
    *percent = 100 * fmax(c->v[CELL_HI] - median, median - c->v[CELL_LO]) / sqrt(2) / median;
    if (!sum->n || sum->visit[0] != sum->visit[sum->n - 1])
        return 0;
    if (stats_of(&st, sum->values, sum->n, err) < 0)
        return -1;
    *percent = stats_precision(&st);
    return 0;
}

bool cell_sum_any(const struct cell_sum *sum)
{
    return sum->n || sum->has_spare;
}

static int cell_sum_modes(const struct cell_sum *sum, struct modes *out, struct err *err)
{
    CLEANUP_MEM double *room = malloc(2 * ((size_t)sum->n + 1) * sizeof *room);
    if (!room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to compare %d samples", sum->n);
    int k = stats_center_visits(sum->values, sum->visit, sum->n, room, room + sum->n);
    *out = modes_find(room + sum->n, k);
    return 0;
}

int cell_sum_up(const struct cell_sum *sum, const struct spec *p, struct cell *c,
                struct evidence *evidence, struct err *err)
{
    double percent;
    const double *values = sum->n ? sum->values : &sum->spare;
    int n = sum->n ? sum->n : 1;
    *evidence = (struct evidence){.clean = sum->n};
    if (!cell_sum_any(sum))
        return err_set(err, ERR_INTERNAL, "", "a cell without samples");
    cell_clear(c);
    if (stats_cell(c, values, sum->n ? sum->visit : NULL, n, err) < 0 ||
        cell_sum_precision(sum, c, &percent, err) < 0 ||
        cell_sum_modes(sum, &evidence->modes, err) < 0)
        return -1;
    sketch_of(&c->sketch, sum->values, sum->n);
    c->v[CELL_DISTURBED] = sum->left_out; // with the one that stands in
    if (!sum->n)                          // of that one the rest is not known
        for (int f = CELL_P10; f <= CELL_MEAN; f++)
            c->v[f] = NAN;
    c->v[CELL_OVERLAP] = !sum->concurrent ? NAN : sum->n ? sum->shared_ns / sum->kept_ns : 0;
    counted_cell(&sum->counted, c);
    if (p->precision > 0) // otherwise nothing was promised
        c->v[CELL_CONVERGED] = sum->n >= p->min_samples && percent <= p->precision;
    return 0;
}

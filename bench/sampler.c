// SPDX-License-Identifier: Apache-2.0
#include "bench/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats.h"
#include "base/clock.h"
#include "bench/chase.h"

enum {
    WARM_CHUNK = 8192,  // hops between looks at the clock: below 4 ms on the slowest memory
    LINGER_HOPS = 1024, // waiting for others: about 0.1 ms
    ROOM_SPARE = 64,    // samples of others that take longer than we
    ROOM_MAX = 1 << 20, // 40 MB of samples
    CHECK_SHARE = 8,    // look at the interval again after 1/8 more samples
    PATIENCE = 4,       // times cell_ms, while there are fewer clean samples than asked for
};

int sampler_init(struct sampler *s, const struct latency_params *p, struct err *err)
{
    int64_t room = (PATIENCE + 1) * p->cell_ms * 1000 / p->sample_us + p->min_samples + ROOM_SPARE;
    *s = (struct sampler){.params = p, .room = (int)(room < ROOM_MAX ? room : ROOM_MAX)};
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

void sampler_warm(struct sampler *s, uint64_t hops, uint64_t limit_ns)
{
    uint64_t begin = clock_mono_ns(), before = begin;
    for (uint64_t done = 0; done < hops; done += WARM_CHUNK) {
        s->at = chase(s->at, WARM_CHUNK);
        uint64_t now = clock_mono_ns();
        s->hop_ns = (double)(now - before) / WARM_CHUNK;
        before = now;
        if (limit_ns && now - begin >= limit_ns)
            break;
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
static struct sample take(struct sampler *s)
{
    struct guard_mark begin, end;
    uint64_t chunk = chunk_hops(s), hops = 0, now;
    uint64_t length_ns = 1000 * (uint64_t)s->params->sample_us;
    guard_begin(&begin);
    do {
        s->at = chase(s->at, chunk);
        hops += chunk;
        now = clock_mono_ns();
    } while (now - begin.wall_ns < length_ns || hops < SAMPLE_HOPS_MIN);
    guard_end(&end);
    struct sample got = {.from = begin.wall_ns, .to = end.wall_ns};
    got.hop_ns = (double)(got.to - got.from) / (double)hops;
    got.verdict = guard_judge(&begin, &end);
    return got;
}

// Off the CPU for more than this share, a sample was no load on the memory for others.
static const double LOAD_OFF_SHARE = 0.05;

void sampler_take(struct sampler *s)
{
    struct sample got = take(s);
    if (got.verdict.off_share <= LOAD_OFF_SHARE)
        spans_add(&s->spans, got.from, got.to);
    if (got.verdict.flags & GUARD_MOVED)
        s->moves++;
    if (!got.verdict.flags)
        s->hop_ns = got.hop_ns;
    if (s->n < s->room)
        s->samples[s->n++] = got;
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
    if (n < s->params->min_samples || n < STATS_INDEPENDENT_MIN)
        return false;
    if (stats_of(&st, s->values, n, &s->failure) < 0)
        return true; // the caller sees the failure
    return stats_precision(&st) <= s->params->precision;
}

bool sampler_done(struct sampler *s)
{
    uint64_t limit_ns = 1000000 * (uint64_t)s->params->cell_ms;
    uint64_t spent_ns = s->samples[s->n - 1].to - s->samples[0].from;
    if (s->n >= s->room || spent_ns >= PATIENCE * limit_ns)
        return true;
    if (spent_ns >= limit_ns)
        return clean_values(s) >= s->params->min_samples;
    if (s->n < s->next_check || s->n < s->params->min_samples)
        return false;
    s->next_check = s->n + 1 + s->n / CHECK_SHARE;
    return precise(s);
}

static bool inside(const struct sample *x, const struct spans *together)
{
    return !together || (together->n && x->from >= together->at[0].from &&
                         x->to <= together->at[together->n - 1].to);
}

// Off-CPU share of the least disturbed sample: the bar when none is clean.
static double least_disturbed(const struct sampler *s, const struct spans *together)
{
    double bar = INFINITY;
    for (int i = 0; i < s->n; i++) {
        const struct sample *x = &s->samples[i];
        if (inside(x, together) && x->verdict.off_share < bar)
            bar = x->verdict.off_share;
    }
    return bar;
}

// Kept are clean samples, and disturbed ones up to the bar. Fills values; counts those left out.
static int keep(struct sampler *s, const struct spans *together, double bar, int *left_out,
                double *shared_ns, double *kept_ns)
{
    int n = 0;
    *left_out = 0;
    *shared_ns = *kept_ns = 0;
    for (int i = 0; i < s->n; i++) {
        const struct sample *x = &s->samples[i];
        if (!inside(x, together))
            continue;
        if (x->verdict.flags && x->verdict.off_share > bar) {
            ++*left_out;
            continue;
        }
        s->values[n++] = x->hop_ns;
        *kept_ns += (double)(x->to - x->from);
        *shared_ns += together ? (double)spans_cover(together, x->from, x->to) : 0;
    }
    return n;
}

int sampler_sum(struct sampler *s, const struct spans *together, struct cell *c, int *clean,
                struct err *err)
{
    int left_out;
    double shared_ns, kept_ns, bar = -1;
    int n = keep(s, together, bar, &left_out, &shared_ns, &kept_ns);
    *clean = n;
    if (n == 0 && isfinite(bar = least_disturbed(s, together)))
        n = keep(s, together, bar, &left_out, &shared_ns, &kept_ns);
    if (n == 0 && together) // nothing in common: sum up what there is, and say that it was alone
        return sampler_sum(s, NULL, c, clean, err) < 0 ? -1 : (c->v[CELL_OVERLAP] = 0, 0);
    if (n == 0)
        return err_set(err, ERR_INTERNAL, "", "a cell without samples");
    struct stats st;
    cell_clear(c);
    if (stats_cell(c, s->values, n, err) < 0 || stats_of(&st, s->values, n, err) < 0)
        return -1;
    c->v[CELL_DISTURBED] = left_out;
    c->v[CELL_OVERLAP] = together ? shared_ns / kept_ns : NAN;
    c->v[CELL_TIGHT] =
        *clean >= s->params->min_samples && stats_precision(&st) <= s->params->precision;
    return 0;
}

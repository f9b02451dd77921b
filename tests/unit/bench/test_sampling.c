// SPDX-License-Identifier: Apache-2.0
// Guard, spans, and what a cell is made of.
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "bench/kernels/chain.h"
#include "bench/sampling/sampler.h"
#include "tests/unit/tap.h"

static void guard(void)
{
    const struct guard_mark begin = {1000000, 500000, 7, 3, 1};
    struct guard_mark end = {3000000, 2500000, 7, 3, 1};
    CHECK(guard_judge(&begin, &end).flags == 0, "all the time on the CPU: clean");
    end.cpu_ns = 2495000;
    CHECK(guard_judge(&begin, &end).flags == 0, "0.25 %% off: clean");
    end.cpu_ns = 2480000;
    CHECK(guard_judge(&begin, &end).flags == GUARD_OFF_CPU, "1 %% off: disturbed");
    end.cpu_ns = 1500000;
    CHECK(fabs(guard_judge(&begin, &end).off_share - 0.5) < 1e-9, "half the time away is said so");
    end.cpu_ns = 2600000;
    CHECK(guard_judge(&begin, &end).off_share == 0, "the CPU clock may be ahead");
    end = (struct guard_mark){3000000, 2500000, 8, 4, 2};
    CHECK(guard_judge(&begin, &end).flags == (GUARD_PREEMPTED | GUARD_FAULTS | GUARD_MOVED),
          "switched away, faulted, moved: each is seen");
}

static void spans(void)
{
    struct spans *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    if (!a || !b) {
        CHECK(0, "no memory");
        return;
    }
    spans_add(a, 1000000, 2000000);
    spans_add(a, 2000000 + SPAN_GAP_NS, 3000000);
    CHECK(a->n == 1 && a->at[0].to == 3000000, "a gap of reading clocks is closed");
    spans_add(a, 3100000, 4000000);
    CHECK(a->n == 2, "a longer gap is a gap");
    spans_add(b, 2500000, 3500000);
    spans_cut(a, b);
    CHECK(a->n == 2 && a->at[0].from == 2500000 && a->at[0].to == 3000000 &&
              a->at[1].from == 3100000 && a->at[1].to == 3500000,
          "what is in both");
    CHECK(spans_cover(a, 2000000, 4000000) == 900000 && spans_cover(a, 2900000, 3200000) == 200000,
          "cover counts what is inside");
    b->n = 0;
    spans_cut(a, b);
    CHECK(a->n == 0 && spans_cover(a, 0, UINT64_MAX) == 0, "nothing in common");
    for (uint64_t i = 0; i < SPANS_MAX + 10; i++)
        spans_add(b, i * 1000000, i * 1000000 + 10);
    CHECK(b->n == SPANS_MAX, "what does not fit is left out");
    free(a);
    free(b);
}

static const struct spec params = {
    .precision = 1, .min_samples = 7, .sample_us = 500, .cell_ms = 20};

// Samples of 1 ms one after the other: 100, 101, … ns, as if taken.
static void fake(struct sampler *s, int n)
{
    sampler_clear(s);
    for (s->n = 0; s->n < n; s->n++)
        s->samples[s->n] = (struct sample){.from = 1000000 * (uint64_t)s->n,
                                           .to = 1000000 * (uint64_t)(s->n + 1),
                                           .hop_ns = 100 + s->n};
}

static void disturb(struct sampler *s, int i, double off)
{
    s->samples[i].verdict = (struct guard_verdict){GUARD_OFF_CPU, off};
    s->samples[i].hop_ns = 1000;
}

static void sum_up(struct sampler *s, const struct spans *together, struct cell *c, int *clean)
{
    struct err err = {0};
    struct cell_sum sum CLEANUP(cell_sum_fini) = {0};
    CHECK(sampler_keep(s, together, &sum, &err) == 0 &&
              cell_sum_up(&sum, &params, c, clean, &err) == 0,
          "a cell is summed up %s", err.text);
}

static void sums(struct sampler *s)
{
    struct cell c;
    int clean;
    fake(s, 9);
    disturb(s, 3, 0.4);
    sum_up(s, NULL, &c, &clean);
    CHECK(clean == 8 && c.v[CELL_N] == 8 && c.v[CELL_DISTURBED] == 1 && c.v[CELL_MEDIAN] == 104.5,
          "the disturbed sample is left out and counted");
    CHECK(isnan(c.v[CELL_OVERLAP]) && c.v[CELL_CONVERGED] == 0,
          "alone: no overlap; not precise: said");
    for (int i = 0; i < 4; i++)
        disturb(s, i, 0.1 * (4 - i));
    sum_up(s, NULL, &c, &clean);
    CHECK(clean == 5 && c.v[CELL_N] == 5 && c.v[CELL_DISTURBED] == 4 && c.v[CELL_MEDIAN] == 106 &&
              c.v[CELL_CONVERGED] == 0,
          "few clean samples are better than disturbed ones among them; it is not tight");
    for (int i = 0; i < 9; i++)
        disturb(s, i, 0.1 + 0.05 * i);
    sum_up(s, NULL, &c, &clean);
    CHECK(clean == 0 && c.v[CELL_N] == 1 && c.v[CELL_DISTURBED] == 8,
          "none clean: the least disturbed stands in, the others are counted");
}

static void windows(struct sampler *s)
{
    struct cell c;
    int clean;
    CLEANUP_MEM struct spans *both = calloc(1, sizeof *both);
    if (!both) {
        CHECK(0, "no memory");
        return;
    }
    fake(s, 12);
    spans_add(both, 1500000, 6000000);
    spans_add(both, 7000000, 11000000);
    sum_up(s, both, &c, &clean);
    CHECK(c.v[CELL_N] == 9, "only samples inside the common window count");
    CHECK(fabs(c.v[CELL_OVERLAP] - 8.0 / 9) < 1e-9,
          "a gap of another rank lowers the overlap: %.3f", c.v[CELL_OVERLAP]);
    both->n = 0;
    sum_up(s, both, &c, &clean);
    CHECK(c.v[CELL_OVERLAP] == 0 && c.v[CELL_N] == 12,
          "no common time: an overlap of 0, not a missing number");
}

// Three visits that agree within themselves and not with each other.
static void visits(struct sampler *s)
{
    struct err err = {0};
    struct cell c;
    int clean, bad = 0;
    struct cell_sum sum CLEANUP(cell_sum_fini) = {0};
    for (int v = 0; v < 3; v++) {
        fake(s, 20);
        for (int i = 0; i < 20; i++)
            s->samples[i].hop_ns = 100 + 10 * v + 0.01 * i;
        if (v == 1)
            disturb(s, 0, 0.5);
        bad += sampler_keep(s, NULL, &sum, &err);
    }
    bad += cell_sum_up(&sum, &params, &c, &clean, &err);
    CHECK(bad == 0 && clean == 59 && c.v[CELL_DISTURBED] == 1, "visits add up %s", err.text);
    CHECK(c.v[CELL_LO] < 80 && c.v[CELL_HI] > 140,
          "their differences widen the interval: %.1f to %.1f", c.v[CELL_LO], c.v[CELL_HI]);
    struct cell_sum none = {0};
    CHECK(cell_sum_up(&none, &params, &c, &clean, &err) < 0, "a cell never visited is an error");
}

static void real(struct sampler *s)
{
    struct cell c;
    int clean;
    struct chain chain;
    void *memory = aligned_alloc(4096, 1 << 16);
    if (!memory) {
        CHECK(0, "no memory");
        return;
    }
    chain_plan(&chain, memory, 1 << 16, 64, 0, 1);
    chain_write(&chain, 0, chain.links);
    sampler_start(s, memory);
    sampler_clear(s);
    sampler_warm(s, chain.links, 0);
    do
        sampler_take(s);
    while (!sampler_done(s));
    CHECK(s->n >= 7, "%d samples taken", s->n);
    CHECK(s->samples[0].to - s->samples[0].from >= 500000, "a sample is as long as asked for");
    sum_up(s, NULL, &c, &clean);
    CHECK(c.v[CELL_MEDIAN] > 0.3 && c.v[CELL_MEDIAN] < 100, "64 KiB take %.2f ns a hop",
          c.v[CELL_MEDIAN]);
    if (c.v[CELL_N] < 2) // a machine so busy that the least disturbed stands in
        CHECK(isnan(c.v[CELL_LO]) && isnan(c.v[CELL_HI]), "one sample has no interval");
    else
        CHECK(c.v[CELL_LO] <= c.v[CELL_MEDIAN] && c.v[CELL_MEDIAN] <= c.v[CELL_HI],
              "lo, median, hi");
    free(memory);
}

int main(void)
{
    struct sampler s = {0};
    struct err err = {0};
    guard();
    spans();
    CHECK(sampler_init(&s, &params, 1, &err) == 0, "a sampler");
    sums(&s);
    windows(&s);
    visits(&s);
    real(&s);
    sampler_fini(&s);
    return tap_done();
}

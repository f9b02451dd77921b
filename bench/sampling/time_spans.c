// SPDX-License-Identifier: Apache-2.0
// Spans are kept in order, so that cutting two sets is one walk over both.
#include "bench/sampling/time_spans.h"

void spans_add(struct spans *s, uint64_t from, uint64_t to)
{
    if (s->n && from <= s->at[s->n - 1].to + SPAN_GAP_NS)
        s->at[s->n - 1].to = to;
    else if (s->n < SPANS_MAX)
        s->at[s->n++] = (struct span){from, to};
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void spans_cut(struct spans *s, const struct spans *other)
{
    struct spans both;
    both.n = 0;
    for (int i = 0, k = 0; i < s->n && k < other->n && both.n < SPANS_MAX;) {
        uint64_t from = later(s->at[i].from, other->at[k].from);
        uint64_t to = earlier(s->at[i].to, other->at[k].to);
        if (from < to)
            both.at[both.n++] = (struct span){from, to};
        if (s->at[i].to < other->at[k].to)
            i++;
        else
            k++;
    }
    s->n = both.n;
    for (int i = 0; i < both.n; i++)
        s->at[i] = both.at[i];
}

uint64_t spans_cover(const struct spans *s, uint64_t from, uint64_t to)
{
    uint64_t sum = 0;
    for (int i = 0; i < s->n; i++) {
        uint64_t begin = later(s->at[i].from, from), end = earlier(s->at[i].to, to);
        sum += begin < end ? end - begin : 0;
    }
    return sum;
}

// SPDX-License-Identifier: Apache-2.0
// All parameters of effort are lowered by one factor, which bisection finds: the estimate grows
// with each of them. The least are the benchmark's quick values, because a cell of less effort has
// not warmed up as its method says. Repetitions are lowered last: intervals are made from their
// differences.
#include "model/budget.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model/estimate.h"

// In the order of lists. `last`: lowered when the others are at their least.
static const struct effort {
    const char *name;
    bool last;
} efforts[] = {
    {"cell_ms", false},     {"passes", false}, {"repetitions", false},
    {"min_samples", false}, {"visits", true},
};

_Static_assert(sizeof efforts / sizeof *efforts <= PLAN_SHORTENED_MAX, "room for all");

static int64_t *value_of(const struct effort *e, struct spec *s)
{
    const struct param *p = spec_param(s, e->name);
    return p ? (int64_t *)(void *)((char *)s + p->offset) : NULL;
}

// `f` 0…1: the others from their least to what was requested; 1…2: repetitions too. So 0 is all at
// the least, 2 is as requested.
static void scale(struct spec *s, const struct spec *wanted, double f)
{
    struct spec quick = *wanted;
    spec_quick(&quick);
    *s = *wanted;
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) {
        int64_t *v = value_of(&efforts[i], s), *least = value_of(&efforts[i], &quick);
        double share = efforts[i].last ? fmin(1, f) : fmax(0, f - 1);
        if (v && *v > *least)
            *v = *least + (int64_t)floor(share * (double)(*v - *least));
    }
}

static double scaled_s(struct spec *s, double f, const struct spec *wanted,
                       const struct workload *w)
{
    scale(s, wanted, f);
    return estimate_s(s, w);
}

static void note_shortened(struct plan *p, struct spec *s, const struct spec *wanted)
{
    struct spec before = *wanted;
    p->n_shortened = 0;
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) {
        const int64_t *from = value_of(&efforts[i], &before), *to = value_of(&efforts[i], s);
        if (from && to && *from != *to)
            p->shortened[p->n_shortened++] = (struct plan_shortened){efforts[i].name, *from, *to};
    }
}

int budget_fit(struct plan *p, const struct spec *s, const struct workload *w, struct err *err)
{
    enum { STEPS = 30 };
    struct spec tried;
    double low = 0, high = 2, budget = (double)s->budget_s;
    p->n_shortened = 0;
    if (!s->budget_s || scaled_s(&tried, high, s, w) <= budget)
        return 0;
    double least = scaled_s(&tried, low, s, w);
    if (least > budget)
        return err_set(err, ERR_INVALID, "budget_s",
                       "is %" PRId64 " s, but the run with the least effort takes about %.0f s: "
                       "raise it, or measure less (fewer ranks, sizes, targets or pairs)",
                       s->budget_s, ceil(least));
    for (int i = 0; i < STEPS; i++) {
        double middle = (low + high) / 2;
        *(scaled_s(&tried, middle, s, w) <= budget ? &low : &high) = middle;
    }
    p->estimate_s = scaled_s(&tried, low, s, w);
    note_shortened(p, &tried, s);
    return 0;
}

void budget_apply(const struct plan *p, struct spec *s)
{
    for (int k = 0; k < p->n_shortened; k++)
        for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) {
            int64_t *value = value_of(&efforts[i], s);
            if (value && strcmp(efforts[i].name, p->shortened[k].name) == 0)
                *value = p->shortened[k].to;
        }
}

void budget_describe(const struct plan *p, struct buf *out)
{
    for (int k = 0; k < p->n_shortened; k++)
        buf_fmt(out, "%s%s %" PRId64 " -> %" PRId64, k ? ", " : "", p->shortened[k].name,
                p->shortened[k].from, p->shortened[k].to);
}

// SPDX-License-Identifier: Apache-2.0
// All parameters of effort are lowered by one factor, which bisection finds: the estimate grows
// with each of them. The least are the benchmark's quick values, because a cell of less effort has
// not warmed up as its method says. Repetitions are lowered last: intervals are made from their
// differences. Where that is not enough, some of all pairs (of ranks, or of a rank and a target)
// are left out. Their number is a power of two, so that two runs have the same pairs although their
// estimates differ a little, and then the effort is raised again as far as the budget allows.
#include "model/budget.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/estimate.h"

static const char pairs_most[] = "pairs_most";

// In the order of lists. `last`: lowered when the others are at their least. Quick values leave the
// pairs alone.
static const struct effort {
    const char *name;
    bool last;
} efforts[] = {
    {"cell_ms", false},     {"passes", false}, {"repetitions", false},
    {"min_samples", false}, {"visits", true},  {pairs_most, true},
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
        if (v && least && *v > *least)
            *v = *least + (int64_t)floor(share * (double)(*v - *least));
    }
}

static double scaled_s(struct spec *s, double f, const struct spec *wanted,
                       const struct workload *w)
{
    scale(s, wanted, f);
    return estimate_s(s, w);
}

static bool has_choice(const struct spec *s)
{
    return spec_param(s, pairs_most) && (!spec_param(s, "pairs") || strcmp(s->pairs, "all") == 0);
}

// Makes `some` have as many pairs as fit with the least effort, or if none do the fewest of a
// choice. Returns the time that it takes then.
static double choose_pairs(struct spec *some, const struct spec *s, const struct workload *w)
{
    struct spec tried;
    double least = scaled_s(&tried, 0, s, w), budget = (double)s->budget_s;
    int64_t all = spec_pairs_of(s, w->choice), most = spec_fewer_pairs(all);
    while (has_choice(s) && least > budget && most < all && most >= w->choice_least) {
        some->pairs_most = most;
        least = scaled_s(&tried, 0, some, w);
        most = spec_fewer_pairs(most);
    }
    return least;
}

static int refuse_budget(const struct spec *s, const struct spec *some, double least,
                         const struct workload *w, struct err *err)
{
    char fewest[80] = "";
    if (some->pairs_most != s->pairs_most)
        snprintf(fewest, sizeof fewest, " and %" PRId64 " of %" PRId64 " pairs", some->pairs_most,
                 spec_pairs_of(s, w->choice));
    return err_set(err, ERR_INVALID, "budget_s",
                   "is %" PRId64 " s, but the run with the least effort%s takes about %.0f s: "
                   "raise it, or measure less (fewer ranks, sizes, targets or pairs)",
                   s->budget_s, fewest, ceil(least));
}

static void note_shortened(struct plan *p, struct spec *s, const struct spec *wanted,
                           const struct workload *w)
{
    struct spec before = *wanted;
    if (s->pairs_most != wanted->pairs_most)
        before.pairs_most = spec_pairs_of(wanted, w->choice);
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
    struct spec tried, some = *s;
    double low = 0, high = 2, budget = (double)s->budget_s;
    p->n_shortened = 0;
    if (!s->budget_s || scaled_s(&tried, high, s, w) <= budget)
        return 0;
    double least = choose_pairs(&some, s, w);
    if (least > budget)
        return refuse_budget(s, &some, least, w, err);
    for (int i = 0; i < STEPS; i++) {
        double middle = (low + high) / 2;
        *(scaled_s(&tried, middle, &some, w) <= budget ? &low : &high) = middle;
    }
    p->estimate_s = scaled_s(&tried, low, &some, w);
    note_shortened(p, &tried, s, w);
    return 0;
}

static void apply_one(struct spec *s, const char *name, int64_t to)
{
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) {
        int64_t *value = value_of(&efforts[i], s);
        if (value && strcmp(efforts[i].name, name) == 0)
            *value = to;
    }
}

void budget_apply(const struct plan *p, struct spec *s)
{
    for (int k = 0; k < p->n_shortened; k++)
        apply_one(s, p->shortened[k].name, p->shortened[k].to);
}

// Lists of runs read many plans. To parse one of 1,024 ranks takes 2 ms, to look for this member
// 0.1 ms.
void budget_apply_stored(const char *plan_json, struct spec *s)
{
    size_t n = 0;
    struct spec measured = *s;
    const char *list =
        s->budget_s && plan_json ? json_find(plan_json, strlen(plan_json), "shortened", &n) : NULL;
    if (!list)
        return;
    CLEANUP_JSON struct json *parsed = json_parse(list, n, NULL);
    for (const struct json *k = json_first(parsed); k; k = json_next(k)) {
        const char *name = json_get_text(k, "name", "");
        const struct param *p = spec_param(s, name);
        int64_t to = json_get_i64(k, "to", -1);
        if (p && (double)to >= p->min && (double)to <= p->max)
            apply_one(&measured, name, to);
    }
    if (spec_check(&measured, NULL) == 0)
        *s = measured;
}

void budget_take_pairs(struct plan *p, struct spec *s, int64_t most)
{
    int64_t ranks = p->n_ranks;
    int k = 0;
    while (k < p->n_shortened && strcmp(p->shortened[k].name, pairs_most) != 0)
        k++;
    if (k == p->n_shortened) {
        p->n_shortened++;
        p->shortened[k] = (struct plan_shortened){
            .name = pairs_most, .from = spec_pairs_of(s, ranks * (ranks - 1) / 2)};
    }
    p->shortened[k].to = s->pairs_most = most;
}

void budget_describe(const struct plan *p, struct buf *out)
{
    for (int k = 0; k < p->n_shortened; k++)
        if (strcmp(p->shortened[k].name, pairs_most) != 0)
            buf_fmt(out, "%s%s %" PRId64 " -> %" PRId64, out->len ? ", " : "", p->shortened[k].name,
                    p->shortened[k].from, p->shortened[k].to);
}

void budget_describe_pairs(const struct plan *p, int64_t budget_s, struct buf *out)
{
    for (int k = 0; k < p->n_shortened; k++)
        if (strcmp(p->shortened[k].name, pairs_most) == 0)
            budget_pairs_text(p->shortened[k].to, p->shortened[k].from, budget_s, out);
}

void budget_pairs_text(int64_t pairs, int64_t of, int64_t budget_s, struct buf *out)
{
    buf_str(out, "the budget ");
    if (budget_s)
        buf_fmt(out, "of %" PRId64 " s ", budget_s);
    buf_fmt(out, "has room for %" PRId64 " of %" PRId64 " pairs", pairs, of);
}

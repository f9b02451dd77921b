// SPDX-License-Identifier: Apache-2.0
// The interval of a run's metric is one of 95 %. In logs both runs' reach adds as the roots of sums
// of squares. Of thirty metrics one differs by chance, so false discoveries are limited.
#include "analysis/peers/run_pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/newest.h"
#include "analysis/stats/distributions.h"
#include "base/cleanup.h"

enum { PAIR_DIGITS = 6 };
#define CLEANUP_PAIR CLEANUP(run_pair_fini)
#define PAIR_975 1.96
#define PAIR_LEVEL 0.05
#define PAIR_LEAST_PERCENT 1.0

static const char *const run_pair_verdict_names[PAIR_VERDICTS] = {"no difference", "slower",
                                                                  "faster", "not known"};

static int find_metric(const struct summary_layout *l, const char *name)
{
    for (int i = 0; l && i < l->n; i++)
        if (strcmp(l->list[i].name, name) == 0)
            return i;
    return -1;
}

static struct run_pair_value pair_value_at(const struct run_side *s, int at)
{
    return (struct run_pair_value){s->run->values[at], s->run->lo[at], s->run->hi[at], 0};
}

// How far the interval reaches, in logs; NaN: not known.
static double log_reach(const struct run_pair_value *v, bool loss)
{
    if (!(v->hi >= v->value && (loss ? v->lo >= 0 : v->lo > 0)))
        return NAN;
    if (loss) // its lower end was cut off where it is below nothing
        return newest_log(v->hi, false, loss) - newest_log(v->value, false, loss);
    return (log(v->hi) - log(v->lo)) / 2;
}

// Returns the p of the difference; NaN: not known.
static double pair_metric(struct run_pair_metric *m, const struct run_pair_value *base,
                          const struct run_pair_value *target)
{
    m->base = base->value;
    m->target = target->value;
    m->percent = m->lo = m->hi = NAN;
    if (!(m->base > 0 && m->target > 0))
        return NAN;
    bool loss = m->metric && metric_is_loss(m->metric);
    double d = newest_log(m->target, false, loss) - newest_log(m->base, false, loss);
    double reach = hypot(log_reach(base, loss), log_reach(target, loss));
    m->percent = 100 * expm1(d);
    if (isnan(reach))
        return NAN;
    // As sure as p is: an interval without 0 of what does not differ would contradict it.
    double freedom = base->freedom + target->freedom;
    double wider = freedom > 0 ? dist_t_975(freedom) / PAIR_975 : 1;
    m->lo = 100 * expm1(d - wider * reach);
    m->hi = 100 * expm1(d + wider * reach);
    if (reach <= 0)
        return d == 0; // it never varied, as a count does
    double errors = fabs(d) * PAIR_975 / reach;
    return freedom > 0 ? dist_t_two_sided(errors, freedom) : erfc(errors * M_SQRT1_2);
}

static void judge_pair(struct run_pair *p, const double *q)
{
    for (int i = 0; i < p->n; i++) {
        struct run_pair_metric *m = &p->list[i];
        m->q = q[i];
        bool differs = q[i] <= PAIR_LEVEL && fabs(m->percent) >= PAIR_LEAST_PERCENT;
        bool worse = m->more ? m->percent < 0 : m->percent > 0;
        m->verdict = isnan(q[i]) ? PAIR_UNKNOWN
                     : !differs  ? PAIR_SAME
                     : worse     ? PAIR_SLOWER
                                 : PAIR_FASTER;
        p->slower += m->verdict == PAIR_SLOWER;
        p->faster += m->verdict == PAIR_FASTER;
    }
}

static int pair_no_memory(int metrics, struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for %d metrics", metrics);
}

int run_pair_judge(struct run_pair *p, const struct run_pair_value *base,
                   const struct run_pair_value *target, struct err *err)
{
    CLEANUP_MEM double *q = malloc((p->n + 1) * sizeof *q);
    CLEANUP_MEM int *order = malloc((p->n + 1) * sizeof *order);
    if (!q || !order)
        return pair_no_memory(p->n, err);
    for (int i = 0; i < p->n; i++)
        q[i] = pair_metric(&p->list[i], &base[i], &target[i]);
    dist_fdr(q, p->n, order);
    judge_pair(p, q);
    return 0;
}

int run_pair_compare(struct run_pair *out, const struct run_side *base,
                     const struct run_side *target, struct err *err)
{
    int most = base->layout ? base->layout->n : 0;
    CLEANUP_PAIR struct run_pair made = {.list = calloc(most + 1, sizeof *made.list)};
    CLEANUP_MEM struct run_pair_value *of_base = calloc(most + 1, sizeof *of_base);
    CLEANUP_MEM struct run_pair_value *of_target = calloc(most + 1, sizeof *of_target);
    if (!made.list || !of_base || !of_target)
        return pair_no_memory(most, err);
    for (int a = 0; a < most; a++) {
        const struct summary_metric *of = &base->layout->list[a];
        int b = find_metric(target->layout, of->name);
        if (b < 0) {
            made.only_base++;
            continue;
        }
        of_base[made.n] = pair_value_at(base, a);
        of_target[made.n] = pair_value_at(target, b);
        made.list[made.n++] = (struct run_pair_metric){
            .metric = of->name, .unit = of->unit, .more = metric_more_is_better(of->unit)};
    }
    made.only_target = (target->layout ? target->layout->n : 0) - made.n;
    if (made.n == 0)
        return err_set(err, ERR_CONFLICT, "target", "the runs have no metric in common");
    if (run_pair_judge(&made, of_base, of_target, err) < 0)
        return -1;
    *out = made;
    made.list = NULL;
    return 0;
}

const char *run_pair_verdict(const struct run_pair_metric *m)
{
    return run_pair_verdict_names[m->verdict];
}

void run_pair_write_json(const struct run_pair *p, struct jsonw *w)
{
    jsonw_i64(w, "slower", p->slower);
    jsonw_i64(w, "faster", p->faster);
    jsonw_i64(w, "only_base", p->only_base);
    jsonw_i64(w, "only_target", p->only_target);
    jsonw_array(w, "metrics");
    for (int i = 0; i < p->n; i++) {
        const struct run_pair_metric *m = &p->list[i];
        jsonw_object(w, NULL);
        jsonw_text(w, "metric", m->metric);
        jsonw_text(w, "unit", m->unit);
        jsonw_text(w, "better", m->more ? "more" : "less");
        jsonw_digits(w, "base", m->base, PAIR_DIGITS);
        jsonw_digits(w, "target", m->target, PAIR_DIGITS);
        jsonw_fixed(w, "percent", m->percent, 2);
        jsonw_fixed(w, "lo", m->lo, 2);
        jsonw_fixed(w, "hi", m->hi, 2);
        jsonw_digits(w, "q", m->q, PAIR_DIGITS);
        jsonw_text(w, "verdict", run_pair_verdict(m));
        jsonw_end(w);
    }
    jsonw_end(w);
}

void run_pair_fini(struct run_pair *p)
{
    free(p->list);
    *p = (struct run_pair){0};
}

// SPDX-License-Identifier: Apache-2.0
// A wave is the nodes of one class that changed on one day. Each wave gives one estimate with its
// own controls; waves are pooled by inverse variance. The error is the larger of what the nodes and
// what the waves differ by.
#include "analysis/peers/effect.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats/distributions.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"

const char *const effect_verdict_names[EFFECT_VERDICTS] = {"no", "worse", "better", "no_controls",
                                                           "few_runs"};

#define DAY_MS INT64_C(86400000)
#define MEDIAN_VARIANCE 1.57 // of a median, times n, beside a mean
#define FEW_WAVES_T 2.0      // two waves do not show what waves differ by

struct wave {
    int class;
    int64_t day;
};

struct effect_work {
    const struct effect_input *in;
    double *treated, *controls, *scratch; // differences; [nodes]
    bool *control;                        // [nodes]: of any wave
    int n_treated, n_controls;
    int waves;
    double estimate[EFFECT_WAVES_MAX], weight[EFFECT_WAVES_MAX];
    double alone; // sum of the treated nodes' changes without controls, by nodes
    int alone_n;
};

static int64_t day_of(int64_t ms)
{
    return ms / DAY_MS;
}

// log of the median of 1 to EFFECT_RUNS values, which it sorts. The median of logs is the log of
// the median, so that one logarithm is taken of five.
static double log_median(double *v, int n)
{
    for (int i = 1; i < n; i++) {
        double x = v[i];
        int k = i;
        for (; k > 0 && v[k - 1] > x; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
    return n % 2 ? log(v[n / 2]) : (log(v[n / 2 - 1]) + log(v[n / 2])) / 2;
}

// The first run before `cut`; runs are in order, the newest first, and those that do not exist (-1)
// last.
static int first_before(const int64_t *at, int runs, int64_t cut)
{
    int from = 0, end = runs;
    while (from < end) {
        int middle = (from + end) / 2;
        if (at[middle] >= cut)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

// log of the median after `cut` over that before it, of the runs nearest to it within `reach`; NaN:
// too few. + is worse.
static double change_at(const struct effect_input *in, int node, int64_t cut, int64_t reach)
{
    const float *v = in->v + (size_t)node * in->runs;
    const int64_t *at = in->at + (size_t)node * in->runs;
    double before[EFFECT_RUNS], after[EFFECT_RUNS];
    int n_before = 0, n_after = 0;
    int split = first_before(at, in->runs, cut);
    for (int r = split; r < in->runs && n_before < EFFECT_RUNS; r++) {
        if (at[r] < 0 || at[r] < cut - reach)
            break;
        if (v[r] > 0)
            before[n_before++] = v[r];
    }
    for (int r = split - 1; r >= 0 && n_after < EFFECT_RUNS && at[r] < cut + reach; r--)
        if (v[r] > 0)
            after[n_after++] = v[r];
    if (n_before < EFFECT_RUNS_MIN || n_after < EFFECT_RUNS_MIN)
        return NAN;
    double change = log_median(after, n_after) - log_median(before, n_before);
    return in->more ? -change : change;
}

// A node's usual interval; NaN: it has not two runs.
static double interval_of(const int64_t *at, int runs)
{
    int n = 0;
    while (n < runs && at[n] >= 0)
        n++;
    return n > 1 ? (double)(at[0] - at[n - 1]) / (n - 1) : NAN;
}

int effect_reach(int64_t *reach, const int64_t *at, int nodes, int runs, struct err *err)
{
    CLEANUP_MEM double *interval = calloc((size_t)nodes + 1, sizeof *interval);
    int n = 0;
    if (!interval)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", nodes);
    for (int i = 0; i < nodes; i++) {
        double usual = interval_of(at + (size_t)i * runs, runs);
        if (!isnan(usual))
            interval[n++] = usual;
    }
    double middle = n ? middle_select(interval, n) : 0;
    *reach = (int64_t)fmax(EFFECT_RUNS * middle * 1.2, EFFECT_RUNS * (double)DAY_MS);
    return 0;
}

static double deviation_of(const double *v, int n, double *scratch)
{
    for (int i = 0; i < n; i++)
        scratch[i] = v[i];
    double middle = middle_select(scratch, n);
    for (int i = 0; i < n; i++)
        scratch[i] = fabs(v[i] - middle);
    return 1.4826 * middle_select(scratch, n);
}

// When the wave's nodes changed: their median time. Fills `treated`.
static int64_t wave_treated(struct effect_work *w, const struct wave *wave, int64_t reach)
{
    int n = 0;
    w->n_treated = 0;
    for (int i = 0; i < w->in->nodes; i++)
        if (w->in->class[i] == wave->class && w->in->changed[i] > 0 &&
            day_of(w->in->changed[i]) == wave->day) {
            double d = change_at(w->in, i, w->in->changed[i], reach);
            w->scratch[n++] = (double)w->in->changed[i];
            if (!isnan(d))
                w->treated[w->n_treated++] = d;
        }
    return (int64_t)middle_select(w->scratch, n);
}

static void wave_controls(struct effect_work *w, const struct wave *wave, int64_t cut,
                          int64_t reach)
{
    int64_t clear = reach > EFFECT_CLEAR_DAYS * DAY_MS ? reach : EFFECT_CLEAR_DAYS * DAY_MS;
    w->n_controls = 0;
    for (int i = 0; i < w->in->nodes; i++) {
        int64_t changed = w->in->changed[i];
        if (w->in->class[i] != wave->class || changed < 0 ||
            (changed > 0 && changed < cut - cut % DAY_MS + clear))
            continue;
        double d = change_at(w->in, i, cut, reach);
        if (isnan(d))
            continue;
        w->control[i] = true;
        w->controls[w->n_controls++] = d;
    }
}

static void add_wave(struct effect_work *w, const struct wave *wave, int64_t reach,
                     struct effect *out)
{
    int64_t cut = wave_treated(w, wave, reach);
    wave_controls(w, wave, cut, reach);
    if (w->n_treated == 0)
        return;
    double noise = fmax(deviation_of(w->treated, w->n_treated, w->scratch),
                        deviation_of(w->controls, w->n_controls, w->scratch));
    double middle = middle_select(w->treated, w->n_treated);
    w->alone += w->n_treated * middle;
    w->alone_n += w->n_treated;
    if (w->n_controls < EFFECT_CONTROLS_MIN || out->waves == EFFECT_WAVES_MAX)
        return;
    double variance = (MEDIAN_VARIANCE / w->n_treated + MEDIAN_VARIANCE / w->n_controls) *
                      fmax(noise * noise, 1e-10);
    double estimate = middle - middle_select(w->controls, w->n_controls);
    w->estimate[out->waves] = estimate;
    w->weight[out->waves++] = 1 / variance;
    out->worse_waves += estimate > 0;
    out->treated += w->n_treated;
}

static int by_wave(const void *a, const void *b)
{
    const struct wave *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return (x->day > y->day) - (x->day < y->day);
}

static int list_waves(const struct effect_input *in, struct wave *list, struct effect *out)
{
    int n = 0, kept = 0;
    for (int i = 0; i < in->nodes; i++) {
        if (in->changed[i] <= 0)
            continue;
        list[n++] = (struct wave){in->class[i], day_of(in->changed[i])};
        if (out->first == 0 || in->changed[i] < out->first)
            out->first = in->changed[i];
        if (in->changed[i] > out->last)
            out->last = in->changed[i];
    }
    qsort(list, n, sizeof *list, by_wave);
    for (int i = 0; i < n; i++)
        if (i == 0 || by_wave(&list[i], &list[kept - 1]) != 0)
            list[kept++] = list[i];
    return kept;
}

static void pool(const struct effect_work *w, struct effect *out)
{
    double weights = 0, sum = 0, scatter = 0;
    for (int i = 0; i < out->waves; i++) {
        weights += w->weight[i];
        sum += w->weight[i] * w->estimate[i];
    }
    double mean = sum / weights, error = sqrt(1 / weights), plain = 0, t = FEW_WAVES_T;
    for (int i = 0; i < out->waves; i++)
        plain += w->estimate[i] / out->waves;
    for (int i = 0; i < out->waves; i++)
        scatter += (w->estimate[i] - plain) * (w->estimate[i] - plain);
    double df = out->waves - 1;
    if (out->waves > 2) {
        error = fmax(error, sqrt(scatter / df / out->waves));
        t = dist_t_quantile(0.975, df);
        out->p = dist_t_two_sided(mean / error, df);
    } else {
        out->p = erfc(fabs(mean / error) * M_SQRT1_2);
    }
    double sign = w->in->more ? -1 : 1;
    double one = 100 * expm1(sign * (mean - t * error)),
           other = 100 * expm1(sign * (mean + t * error));
    out->percent = 100 * expm1(sign * mean);
    out->lo = fmin(one, other);
    out->hi = fmax(one, other);
    out->verdict = fabs(mean) <= t * error ? EFFECT_NO : mean > 0 ? EFFECT_WORSE : EFFECT_BETTER;
}

int effect_find(struct effect *out, const struct effect_input *in, struct err *err)
{
    size_t n = in->nodes + 1;
    CLEANUP_MEM struct wave *waves = calloc(n, sizeof *waves);
    CLEANUP_MEM struct effect_work *w = calloc(1, sizeof *w);
    CLEANUP_MEM double *room = calloc(3 * n, sizeof *room);
    CLEANUP_MEM bool *control = calloc(n, sizeof *control);
    struct effect made = {.percent = NAN, .lo = NAN, .hi = NAN, .p = NAN};
    if (!waves || !w || !room || !control)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", in->nodes);
    *w = (struct effect_work){.in = in,
                              .treated = room,
                              .controls = room + n,
                              .scratch = room + 2 * n,
                              .control = control};
    int n_waves = list_waves(in, waves, &made);
    for (int i = 0; i < n_waves; i++)
        add_wave(w, &waves[i], in->reach, &made);
    for (int i = 0; i < in->nodes; i++)
        made.controls += control[i];
    if (made.waves) {
        pool(w, &made);
    } else if (w->alone_n) {
        made.verdict = EFFECT_NO_CONTROLS;
        made.treated = w->alone_n;
        made.percent = 100 * expm1((in->more ? -1 : 1) * w->alone / w->alone_n);
    } else {
        made.verdict = EFFECT_FEW_RUNS;
    }
    *out = made;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Two shapes are looked for: a step between the days before and the newest, and a slope over all of
// them. The one that chance explains less is taken, at the price of two tests.
#include "analysis/peers/drift.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/newest.h"
#include "analysis/stats/change_points.h"
#include "analysis/stats/distributions.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/figures.h"

#define DRIFT_DAY_MS INT64_C(86400000)
#define DRIFT_MEDIAN_ERROR 1.2533 // of a median beside a mean
#define DRIFT_DEPENDENCE_MAX 0.9
#define DRIFT_Q 0.05 // of a metric among those of the class
enum {
    DRIFT_ALL = DRIFT_DAYS + DRIFT_BEFORE,
    DRIFT_SAMPLE = 4096, // of more nodes so many: their median errs by 0.02 %
    DRIFT_FREEDOM_MIN = 3,
    DRIFT_DIGITS = 6,
};

struct drift_work {
    const struct fleet *f;
    int probe, n; // n: series
    int *series;  // of the probe
    double *x;    // [day][series]: logs, + is worse; NaN: none
    double *scratch;
    int days, before;       // all, and how many of them are before
    int64_t day[DRIFT_ALL]; // ascending
};

// One test of one shape.
struct drift_shape {
    double change, error, df, p;
};

static int drift_no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for the days of a class");
}

// ---- Days

struct day_count {
    int64_t day;
    int n;
};

static int newest_day_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

// Days of the probe with enough nodes, the newest ones.
static int drift_pick_days(struct drift_work *w, struct err *err)
{
    long runs = 0;
    int n = 0, kept = 0;
    for (int i = 0; i < w->n; i++)
        runs += w->f->one[w->series[i]].n;
    CLEANUP_MEM int64_t *day = malloc((runs + 1) * sizeof *day);
    if (!day)
        return drift_no_memory(err);
    for (int i = 0; i < w->n; i++) {
        const struct fleet_series *s = &w->f->one[w->series[i]];
        for (int r = 0; r < s->n; r++) {
            int64_t of = s->runs[r].measured_ms / DRIFT_DAY_MS;
            if (r == 0 || of != day[n - 1])
                day[n++] = of;
        }
    }
    qsort(day, n, sizeof *day, newest_day_first);
    for (int from = 0, end; from < n && kept < DRIFT_ALL; from = end) {
        for (end = from; end < n && day[end] == day[from]; end++)
            ;
        if (end - from >= DRIFT_NODES_MIN)
            w->day[kept++] = day[from];
    }
    for (int i = 0; i < kept / 2; i++) {
        int64_t other = w->day[i];
        w->day[i] = w->day[kept - 1 - i];
        w->day[kept - 1 - i] = other;
    }
    w->days = kept;
    w->before = kept - DRIFT_DAYS;
    return 0;
}

// The newest value of each day of a node, less the median of its days before. Returns that median;
// NaN: it has too few of them, and no values.
static double drift_fill_node(struct drift_work *w, int at, int column, bool more, bool loss)
{
    const struct fleet_series *s = &w->f->one[w->series[at]];
    double before[DRIFT_BEFORE];
    int k = w->days - 1, n = 0;
    for (int d = 0; d < w->days; d++)
        w->x[(size_t)d * w->n + at] = NAN;
    for (int r = 0; r < s->n && k >= 0; r++) {
        int64_t day = s->runs[r].measured_ms / DRIFT_DAY_MS;
        while (k >= 0 && w->day[k] > day)
            k--;
        const double v = fleet_run_value(&s->runs[r], column);
        if (k < 0 || w->day[k] != day || isnan(v))
            continue;
        double *x = &w->x[(size_t)k * w->n + at];
        if (isnan(*x))
            *x = newest_log(v, more, loss);
    }
    for (int d = 0; d < w->before; d++)
        if (!isnan(w->x[(size_t)d * w->n + at]))
            before[n++] = w->x[(size_t)d * w->n + at];
    double level = n >= DRIFT_NODE_DAYS_MIN ? middle_select(before, n) : (double)NAN;
    for (int d = 0; d < w->days; d++)
        w->x[(size_t)d * w->n + at] -= level;
    return level;
}

// Median over nodes of a day; NaN: too few.
static double drift_day(struct drift_work *w, int day)
{
    int n = 0;
    for (int i = 0; i < w->n; i++)
        if (!isnan(w->x[(size_t)day * w->n + i]))
            w->scratch[n++] = w->x[(size_t)day * w->n + i];
    return n >= DRIFT_NODES_MIN ? middle_select(w->scratch, n) : (double)NAN;
}

// ---- Tests

// How much longer a mean of dependent values must be for the same error.
static double dependence(const double *e, int n)
{
    double squares = 0, products = 0;
    for (int i = 0; i < n; i++)
        squares += e[i] * e[i];
    for (int i = 0; i + 1 < n; i++)
        products += e[i] * e[i + 1];
    double r = squares > 0 ? products / squares + 2.0 / n : 0; // it is estimated too low by 2/n
    r = fmin(fmax(r, 0), DRIFT_DEPENDENCE_MAX);
    return (1 + r) / (1 - r);
}

static void shape_test(struct drift_shape *s, double scatter, double longer, int n)
{
    s->error = scatter * sqrt(longer);
    s->df = fmax(n / longer - 2, DRIFT_FREEDOM_MIN);
    s->p = s->error > 0 ? dist_t_upper(s->change / s->error, s->df) : s->change > 0 ? 0 : 1;
}

static struct drift_shape test_step(const double *m, int before, int n)
{
    struct drift_shape s = {0};
    double copy[DRIFT_ALL], e[DRIFT_ALL], squares = 0;
    for (int i = 0; i < n; i++)
        copy[i] = m[i];
    double was = middle_select(copy, before), is = middle_select(copy + before, n - before);
    for (int i = 0; i < n; i++) {
        e[i] = m[i] - (i < before ? was : is);
        squares += e[i] * e[i];
    }
    s.change = is - was;
    shape_test(&s,
               DRIFT_MEDIAN_ERROR * sqrt(squares / (n - 2) * (1.0 / before + 1.0 / (n - before))),
               dependence(e, n), n);
    return s;
}

// The change between the middle of the days before and the middle of the newest.
static struct drift_shape test_slope(const double *m, const int64_t *day, int before, int n)
{
    struct drift_shape s = {0};
    double e[DRIFT_ALL], t = 0, mean = 0, tt = 0, tm = 0, squares = 0, reach = 0;
    for (int i = 0; i < n; i++) {
        t += (double)(day[i] - day[0]) / n;
        mean += m[i] / n;
    }
    for (int i = 0; i < n; i++) {
        double at = (double)(day[i] - day[0]) - t;
        tt += at * at;
        tm += at * (m[i] - mean);
        reach += i < before ? -at / before : at / (n - before);
    }
    double slope = tm / tt;
    for (int i = 0; i < n; i++) {
        e[i] = m[i] - mean - slope * ((double)(day[i] - day[0]) - t);
        squares += e[i] * e[i];
    }
    s.change = slope * reach;
    shape_test(&s, reach * sqrt(squares / (n - 2) / tt), dependence(e, n), n);
    return s;
}

static int drift_since(struct drift_metric *out, const double *m, const int64_t *day, int n,
                       struct err *err)
{
    static const struct series_options options = {
        .segment_min = 3, .level = 0.01, .threshold_percent = 1};
    CLEANUP_MEM struct change_point *points = NULL;
    double v[DRIFT_ALL];
    int searched;
    for (int i = 0; i < n; i++)
        v[i] = exp(m[i]);
    int found = series_changes(&points, &searched, v, n, &options, err);
    for (int i = 0; i < found; i++)
        if (points[i].percent > 0)
            out->since_ms = day[points[i].at] * DRIFT_DAY_MS;
    return found < 0 ? -1 : 0;
}

// Sets p, and the rest of *out but the names. p NaN: too few days.
static int drift_metric(struct drift_work *w, int column, struct drift_metric *out, struct err *err)
{
    double m[DRIFT_ALL], *level = w->scratch + w->n;
    int64_t day[DRIFT_ALL];
    bool loss = metric_is_loss(out->metric);
    int n = 0, before = 0;
    for (int i = 0; i < w->n; i++) {
        double of = drift_fill_node(w, i, column, out->more, loss);
        if (!isnan(of))
            level[out->nodes++] = of;
    }
    for (int d = 0; d < w->days; d++) {
        m[n] = drift_day(w, d);
        day[n] = w->day[d];
        before += d < w->before && !isnan(m[n]);
        n += !isnan(m[n]);
    }
    out->days = n - before;
    out->before = before;
    out->p = NAN;
    if (before < DRIFT_BEFORE_MIN || n - before < DRIFT_DAYS)
        return 0;
    struct drift_shape step = test_step(m, before, n), slope = test_slope(m, day, before, n);
    const struct drift_shape *best = slope.p < step.p ? &slope : &step;
    double sign = out->more ? -1 : 1, reach = dist_t_quantile(0.975, best->df) * best->error;
    double one = 100 * expm1(sign * (best->change - reach)),
           other = 100 * expm1(sign * (best->change + reach));
    out->from_ms = day[before] * DRIFT_DAY_MS;
    out->p = fmin(1, 2 * best->p);
    out->percent = 100 * expm1(sign * best->change);
    out->lo = fmin(one, other);
    out->hi = fmax(one, other);
    double was = middle_select(level, out->nodes);
    out->was = newest_value(was, out->more, loss);
    out->value = newest_value(was + best->change, out->more, loss);
    return best == &step ? drift_since(out, m, day, n, err) : 0;
}

// ---- A class

struct drift_list {
    int n, room;
    struct drift_metric *list;
};

static int drift_probe(struct drift_work *w, struct drift_list *l, struct err *err)
{
    const struct fleet_probe *p = &w->f->probe[w->probe];
    if (w->n < DRIFT_NODES_MIN || drift_pick_days(w, err) < 0)
        return w->n < DRIFT_NODES_MIN ? 0 : -1;
    if (w->before < DRIFT_BEFORE_MIN)
        return 0;
    CLEANUP_MEM int *values = calloc((size_t)p->metrics.n + 1, sizeof *values);
    if (!values)
        return drift_no_memory(err);
    for (int i = 0; i < w->n; i++)
        fleet_series_count(&w->f->one[w->series[i]], values);
    for (int column = 0; column < p->metrics.n; column++) {
        if (values[column] < DRIFT_NODES_MIN * (DRIFT_BEFORE_MIN + DRIFT_DAYS))
            continue;
        if (l->n == l->room) {
            int room = l->room ? 2 * l->room : 64;
            struct drift_metric *list = realloc(l->list, room * sizeof *list);
            if (!list)
                return drift_no_memory(err);
            l->list = list;
            l->room = room;
        }
        struct drift_metric *m = &l->list[l->n];
        *m = (struct drift_metric){.probe = w->probe,
                                   .metric = p->metrics.list[column],
                                   .unit = p->units[column],
                                   .more = metric_more_is_better(p->units[column])};
        if (drift_metric(w, column, m, err) < 0)
            return -1;
        l->n += !isnan(m->p);
    }
    return 0;
}

// Series of the probe, of nodes that are of this class now; of many a sample.
static void drift_pick_series(struct drift_work *w, int class)
{
    int every = 1 + fleet_class_nodes(w->f, class) / DRIFT_SAMPLE, seen = 0;
    w->n = 0;
    for (int i = 0; i < w->f->n_series; i++)
        if (w->f->one[i].probe == w->probe && w->f->node[w->f->one[i].node].class == class &&
            seen++ % every == 0)
            w->series[w->n++] = i;
}

static int drift_judge(struct drift *out, const struct drift_list *l, struct err *err)
{
    CLEANUP_MEM double *q = malloc((l->n + 1) * sizeof *q);
    CLEANUP_MEM int *order = malloc((l->n + 1) * sizeof *order);
    double mean = 0;
    if (!q || !order)
        return drift_no_memory(err);
    for (int i = 0; i < l->n; i++) {
        q[i] = l->list[i].p;
        mean += dist_cauchy_term(q[i]) / l->n;
    }
    out->tested = l->n;
    if (l->n == 0)
        return 0;
    out->p = dist_cauchy_tail(mean);
    dist_fdr(q, l->n, order);
    for (int i = 0; i < l->n; i++) {
        const struct drift_metric *m = &l->list[i];
        double worse = (m->more ? -1 : 1) * log1p(m->percent / 100);
        if (worse < DRIFT_LEAST || q[i] > DRIFT_Q)
            continue;
        if (out->worse++ == 0 || m->p < out->worst.p)
            out->worst = *m;
    }
    if (out->worse)
        out->grade = out->p <= DRIFT_SURE      ? PEERS_SURE
                     : out->p <= DRIFT_SUSPECT ? PEERS_SUSPECT
                                               : PEERS_FINE;
    return 0;
}

int drift_find(struct drift *out, const struct fleet *f, int class, struct err *err)
{
    size_t room = f->n_series + 1;
    struct drift_list l = {0};
    struct drift made = {.class = class, .grade = PEERS_FINE, .p = NAN};
    CLEANUP_MEM int *series = malloc(room * sizeof *series);
    CLEANUP_MEM double *x = malloc(room * DRIFT_ALL * sizeof *x);
    CLEANUP_MEM double *scratch = malloc(2 * room * sizeof *scratch);
    struct drift_work w = {.f = f, .series = series, .x = x, .scratch = scratch};
    int rc = series && x && scratch ? 0 : drift_no_memory(err);
    for (int p = 0; p < f->probes.n && rc == 0; p++) {
        if (f->probe[p].class != class)
            continue;
        w.probe = p;
        drift_pick_series(&w, class);
        rc = drift_probe(&w, &l, err);
    }
    if (rc == 0)
        rc = drift_judge(&made, &l, err);
    free(l.list);
    if (rc == 0)
        *out = made;
    return rc;
}

// ---- Document

void drift_sentence(const struct drift *d, struct buf *out)
{
    const struct drift_metric *m = &d->worst;
    if (!d->worse)
        return;
    buf_fmt(out,
            "%s of the class: %+.1f %% [%+.1f, %+.1f] in the newest %d days against the %d days "
            "before, in %d of %d metrics; no single node causes it",
            m->metric, percent_written(m->percent), percent_written(m->lo), percent_written(m->hi),
            m->days, m->before, d->worse, d->tested);
}

void drift_write_json(const struct drift *d, const struct fleet *f, struct jsonw *w,
                      const char *key)
{
    const struct drift_metric *m = &d->worst;
    CLEANUP_BUF struct buf text = BUF_INIT;
    drift_sentence(d, &text);
    jsonw_object(w, key);
    jsonw_text(w, "what", "drift");
    jsonw_text(w, "grade", peers_grade_names[d->grade]);
    jsonw_text(w, "text", buf_text(&text));
    jsonw_text(w, "node", NULL);
    jsonw_array(w, "nodes");
    jsonw_end(w);
    jsonw_text(w, "class", f->classes.list[d->class]);
    jsonw_i64(w, "metrics_worse", d->worse);
    jsonw_i64(w, "of", d->tested);
    jsonw_digits(w, "p", d->p, DRIFT_DIGITS);
    if (!d->worse) {
        jsonw_null(w, "worst");
        jsonw_time(w, "since", 0);
        jsonw_end(w);
        return;
    }
    jsonw_object(w, "worst");
    jsonw_text(w, "metric", m->metric);
    jsonw_text(w, "unit", m->unit);
    jsonw_text(w, "benchmark", f->probe[m->probe].benchmark);
    jsonw_text(w, "variant", f->probe[m->probe].variant);
    jsonw_fixed(w, "percent", m->percent, 2);
    jsonw_fixed(w, "lo", m->lo, 2);
    jsonw_fixed(w, "hi", m->hi, 2);
    jsonw_digits(w, "value", m->value, DRIFT_DIGITS);
    jsonw_digits(w, "was", m->was, DRIFT_DIGITS);
    jsonw_i64(w, "nodes", m->nodes);
    jsonw_i64(w, "days", m->days);
    jsonw_i64(w, "days_before", m->before);
    jsonw_end(w);
    jsonw_time(w, "since", m->since_ms);
    jsonw_end(w);
}

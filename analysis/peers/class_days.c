// SPDX-License-Identifier: Apache-2.0
// Values of all nodes are sorted by day, then by size: quartiles are places in that order.
#include "analysis/peers/class_days.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/newest.h"
#include "analysis/peers/peers.h"
#include "analysis/peers/spread.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/suggest.h"

#define CLASS_DAY_MS INT64_C(86400000)
#define DAY_BAND 1.96
enum { DAY_DIGITS = 6, DAY_RUNS_MAX = 64 }; // of a node; more than one an hour: the newest

struct day_value {
    int64_t day;
    double x; // log
};

static int days_no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for the days of a class");
}

static int days_order(const void *a, const void *b)
{
    const struct day_value *x = a, *y = b;
    if (x->day != y->day)
        return x->day < y->day ? -1 : 1;
    return (x->x > y->x) - (x->x < y->x);
}

// The probe of the class that has the metric in most runs; -1: none.
static int days_probe(const struct fleet *f, int class, const char *metric, struct err *err)
{
    struct suggestion near = SUGGESTION_FOR(metric);
    char hint[SUGGEST_TEXT_ROOM];
    CLEANUP_MEM long *runs = calloc(f->probes.n + 1, sizeof *runs);
    int best = -1;
    if (!runs)
        return days_no_memory(err);
    for (int i = 0; i < f->n_series; i++)
        runs[f->one[i].probe] += f->one[i].n;
    for (int p = 0; p < f->probes.n; p++) {
        const struct interned *names = &f->probe[p].metrics;
        if (f->probe[p].class != class)
            continue;
        for (int m = 0; m < names->n; m++)
            suggest_consider(&near, names->list[m]);
        if (interned_find(names, metric) >= 0 && (best < 0 || runs[p] > runs[best]))
            best = p;
    }
    if (best < 0)
        err_set(err, ERR_NOT_FOUND, "metric", "no node of the class has the metric \"%.64s\"%s",
                metric, suggest_text(&near, "", hint, sizeof hint));
    return best;
}

// A value a day of one node. Its runs are in order, the newest first.
static int add_node_days(struct day_value *to, const struct fleet_series *s, int column, bool loss)
{
    int n = 0;
    for (int r = 0; r < s->n;) {
        double of_day[DAY_RUNS_MAX];
        int64_t day = s->runs[r].measured_ms / CLASS_DAY_MS;
        int found = 0;
        for (; r < s->n && s->runs[r].measured_ms / CLASS_DAY_MS == day; r++) {
            const double v = fleet_run_value(&s->runs[r], column);
            if (!isnan(v) && found < DAY_RUNS_MAX)
                of_day[found++] = newest_log(v, false, loss);
        }
        if (found)
            to[n++] = (struct day_value){day, middle_select(of_day, found)};
    }
    return n;
}

// Between its neighbours in order, as most programs do.
static double quantile_of(const double *sorted, int n, double share)
{
    double at = share * (n - 1);
    int below = (int)at;
    double above = below + 1 < n ? sorted[below + 1] : sorted[below];
    return sorted[below] + (at - below) * (above - sorted[below]);
}

static struct class_day describe_day(const struct day_value *list, int n, bool loss, double *sorted)
{
    struct class_day d = {.day = list[0].day, .n = n, .low = NAN, .high = NAN};
    for (int i = 0; i < n; i++)
        sorted[i] = list[i].x;
    d.median = newest_value(quantile_of(sorted, n, 0.5), false, loss);
    d.q1 = newest_value(quantile_of(sorted, n, 0.25), false, loss);
    d.q3 = newest_value(quantile_of(sorted, n, 0.75), false, loss);
    if (n < PEERS_MIN)
        return d;
    struct spread s = spread_of(sorted, n, 0);
    d.low = fmax(0, newest_value(s.centre - DAY_BAND * s.scale, false, loss));
    d.high = newest_value(s.centre + DAY_BAND * s.scale, false, loss);
    return d;
}

static int days_fill(struct class_days *c, struct day_value *list, int n, bool loss,
                     struct err *err)
{
    CLEANUP_MEM double *sorted = malloc((n + 1) * sizeof *sorted);
    int days = 0;
    if (n)
        qsort(list, n, sizeof *list, days_order);
    for (int i = 0; i < n; i++)
        days += i == 0 || list[i].day != list[i - 1].day;
    c->list = calloc(days + 1, sizeof *c->list);
    if (!sorted || !c->list)
        return days_no_memory(err);
    for (int from = 0, end; from < n; from = end) {
        for (end = from; end < n && list[end].day == list[from].day; end++)
            ;
        c->list[c->n++] = describe_day(list + from, end - from, loss, sorted);
    }
    return 0;
}

int class_days_make(struct class_days *out, const struct fleet *f, int class, const char *metric,
                    struct err *err)
{
    int probe = days_probe(f, class, metric, err), n = 0;
    if (probe < 0)
        return -1;
    const struct fleet_probe *p = &f->probe[probe];
    int column = interned_find(&p->metrics, metric);
    struct class_days made = {.class = class,
                              .probe = probe,
                              .metric = p->metrics.list[column],
                              .unit = p->units[column],
                              .more = metric_more_is_better(p->units[column])};
    const bool loss = metric_is_loss(metric);
    CLEANUP_MEM struct day_value *list = malloc((f->runs + 1) * sizeof *list);
    if (!list)
        return days_no_memory(err);
    for (int i = 0; i < f->n_series; i++)
        if (f->one[i].probe == probe)
            n += add_node_days(list + n, &f->one[i], column, loss);
    if (days_fill(&made, list, n, loss, err) < 0) {
        class_days_fini(&made);
        return -1;
    }
    *out = made;
    return 0;
}

void class_day_write_json(const struct class_day *d, struct jsonw *w)
{
    char day[32];
    clock_rfc3339(d->day * CLASS_DAY_MS, day);
    day[10] = 0;
    jsonw_object(w, NULL);
    jsonw_text(w, "day", day);
    jsonw_i64(w, "nodes", d->n);
    jsonw_digits(w, "median", d->median, DAY_DIGITS);
    jsonw_digits(w, "q1", d->q1, DAY_DIGITS);
    jsonw_digits(w, "q3", d->q3, DAY_DIGITS);
    jsonw_digits(w, "low", d->low, DAY_DIGITS);
    jsonw_digits(w, "high", d->high, DAY_DIGITS);
    jsonw_end(w);
}

void class_days_fini(struct class_days *c)
{
    free(c->list);
    *c = (struct class_days){0};
}

// SPDX-License-Identifier: Apache-2.0
// The band of a day is made from all nodes' runs of that day. A node has few points, so all runs
// are passed over once a point.
#include "analysis/peers/fleet_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/newest.h"
#include "analysis/peers/peers.h"
#include "analysis/peers/spread.h"
#include "analysis/stats/change_points.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/suggest.h"

#define HISTORY_DAY_MS INT64_C(86400000)
#define BAND 1.96

static const struct series_options change_options = {
    .segment_min = 3, .level = 0.01, .threshold_percent = 1.2};

// Of the versions of series `best`, the one whose newest run is the newest. `others`: runs of the
// other ones that have the metric.
static int newest_version(const struct fleet *f, const struct fleet_node *n, int best,
                          const char *metric, int *column, int *others)
{
    int newest = best, all = 0;
    for (int k = 0; k < n->n; k++) {
        const struct fleet_series *s = &f->one[n->series[k]];
        const struct fleet_probe *p = &f->probe[s->probe];
        int at = interned_find(&p->metrics, metric);
        if (at < 0 ||
            (n->series[k] != best && !fleet_probes_are_versions(p, &f->probe[f->one[best].probe])))
            continue;
        int runs = fleet_series_values(s, at);
        all += runs;
        if (runs && s->runs[0].measured_ms > f->one[newest].runs[0].measured_ms) {
            newest = n->series[k];
            *column = at;
        }
    }
    *others = all - fleet_series_values(&f->one[newest], *column);
    return newest;
}

// The node's series that has the metric in most runs; -1: none. *column: where.
static int history_series(const struct fleet *f, const struct fleet_node *n, const char *metric,
                          int *column, struct err *err)
{
    struct suggestion near = SUGGESTION_FOR(metric);
    char hint[SUGGEST_TEXT_ROOM];
    int best = -1;
    for (int k = 0; k < n->n; k++) {
        const struct fleet_series *s = &f->one[n->series[k]];
        const struct interned *names = &f->probe[s->probe].metrics;
        if (f->probe[s->probe].class != n->class)
            continue;
        for (int m = 0; m < names->n; m++)
            suggest_consider(&near, names->list[m]);
        int at = interned_find(names, metric);
        if (at >= 0 && (best < 0 || s->n > f->one[best].n)) {
            best = n->series[k];
            *column = at;
        }
    }
    if (best < 0)
        err_set(err, ERR_NOT_FOUND, "metric", "the node has no metric \"%.64s\"%s", metric,
                suggest_text(&near, "", hint, sizeof hint));
    return best;
}

static int history_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void point_band(struct fleet_point *p, const struct fleet *f, int probe, int column,
                       bool loss, double *scratch)
{
    int n = 0, nodes = 0;
    int64_t day = p->measured_ms / HISTORY_DAY_MS;
    p->low = p->median = p->high = NAN;
    for (int i = 0; i < f->n_series; i++) {
        const struct fleet_series *s = &f->one[i];
        int before = n;
        for (int r = 0; r < s->n && s->probe == probe; r++) {
            double v = fleet_run_value(&s->runs[r], column);
            if (s->runs[r].measured_ms / HISTORY_DAY_MS == day && !isnan(v))
                scratch[n++] = newest_log(v, false, loss);
        }
        nodes += n > before;
    }
    if (nodes < PEERS_MIN)
        return;
    qsort(scratch, n, sizeof *scratch, history_ascending);
    struct spread band = spread_of(scratch, n, 0);
    p->median = newest_value(middle_of(scratch, n), false, loss);
    p->low = fmax(0, newest_value(band.centre - BAND * band.scale, false, loss));
    p->high = newest_value(band.centre + BAND * band.scale, false, loss);
}

static bool point_setup_differs(const void *ctx, int i)
{
    return ((const struct fleet_history *)ctx)->list[i].setup_changed;
}

static int mark_changes(struct fleet_history *h, struct err *err)
{
    CLEANUP_MEM double *v = malloc((h->n + 1) * sizeof *v);
    CLEANUP_MEM struct change_point *points = NULL;
    bool banded = true;
    int searched;
    double one = metric_one(h->metric);
    if (!v)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a history");
    for (int i = 0; i < h->n; i++)
        banded = banded && !isnan(h->list[i].median);
    for (int i = 0; i < h->n; i++)
        v[i] = (h->list[i].value + one) / (banded ? h->list[i].median + one : 1);
    int n = series_changes(&points, &searched, v, h->n, &change_options, err);
    for (int i = 0; i < n; i++) {
        struct fleet_point *p = &h->list[points[i].at];
        p->change_percent = points[i].percent;
        p->cause = setup_change_find(points[i].at, h->n, point_setup_differs, h);
    }
    return n < 0 ? -1 : 0;
}

static struct setup_hashes history_setup(const struct fleet *f, const struct fleet_series *s,
                                         const struct fleet_run *run)
{
    return (struct setup_hashes){f->classes.list[f->probe[s->probe].class],
                                 run->config < 0 ? "" : f->configs.list[run->config]};
}

static int history_fill(struct fleet_history *h, const struct fleet *f, int series, int column,
                        struct err *err)
{
    const struct fleet_series *s = &f->one[series];
    CLEANUP_MEM double *scratch = malloc((f->runs + 1) * sizeof *scratch);
    struct setup_hashes before = {"", ""}, now;
    const bool loss = metric_is_loss(h->metric);
    h->list = calloc(s->n + 1, sizeof *h->list);
    if (!scratch || !h->list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a history");
    for (int r = s->n - 1; r >= 0; r--) {
        const struct fleet_run *run = &s->runs[r];
        double value = fleet_run_value(run, column);
        if (isnan(value))
            continue; // it is no point
        now = history_setup(f, s, run);
        struct fleet_point *p = &h->list[h->n++];
        *p = (struct fleet_point){.measured_ms = run->measured_ms,
                                  .run = run->id,
                                  .value = value,
                                  .setup_changed = setup_hashes_differ(&before, &now)};
        before = now;
        point_band(p, f, s->probe, column, loss, scratch);
    }
    return mark_changes(h, err);
}

static int no_node(const struct fleet *f, const char *node, struct err *err)
{
    struct suggestion near = SUGGESTION_FOR(node);
    char hint[SUGGEST_TEXT_ROOM];
    for (int i = 0; i < f->nodes.n; i++)
        suggest_consider(&near, f->nodes.list[i]);
    return err_set(err, ERR_NOT_FOUND, "node", "there is no run of node \"%.64s\"%s", node,
                   suggest_text(&near, "", hint, sizeof hint));
}

int fleet_history_make(struct fleet_history *out, const struct fleet *f, const char *node,
                       const char *metric, struct err *err)
{
    int at = interned_find(&f->nodes, node), column = 0;
    if (at < 0)
        return no_node(f, node, err);
    int series = history_series(f, &f->node[at], metric, &column, err);
    if (series < 0)
        return -1;
    int others;
    series = newest_version(f, &f->node[at], series, metric, &column, &others);
    const struct fleet_probe *p = &f->probe[f->one[series].probe];
    struct fleet_history made = {.probe = f->one[series].probe,
                                 .others = others,
                                 .metric = p->metrics.list[column],
                                 .unit = p->units[column],
                                 .more = metric_more_is_better(p->units[column])};
    if (history_fill(&made, f, series, column, err) < 0) {
        fleet_history_fini(&made);
        return -1;
    }
    *out = made;
    return 0;
}

void fleet_history_fini(struct fleet_history *h)
{
    free(h->list);
    *h = (struct fleet_history){0};
}

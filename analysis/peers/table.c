// SPDX-License-Identifier: Apache-2.0
// Runs of a series are in order, the newest first, and its set-up began at one time. So what counts
// of a series is its beginning.
#include "analysis/peers/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/peers.h"
#include "analysis/stats/median.h"

#define TABLE_DAY_MS INT64_C(86400000)
#define INTERVALS 3.0 // of a node's runs: what is older is old
enum { TABLE_VALUES_MAX = 1 << 28 };

int fleet_series_runs(const struct fleet *f, const struct fleet_series *s,
                      long left_out[LEFT_OUT_KINDS])
{
    double gaps[64];
    int n = 0, n_gaps = 0;
    while (n < s->n && s->runs[n].measured_ms > f->node[s->node].setup_ms)
        n++;
    if (left_out)
        left_out[LEFT_OUT_SETUP] += s->n - n;
    for (int i = 0; i + 1 < n && n_gaps < 64; i++)
        gaps[n_gaps++] = (double)(s->runs[i].measured_ms - s->runs[i + 1].measured_ms);
    double usual = n_gaps ? middle_select(gaps, n_gaps) : 0;
    double window = (double)f->o.window_days * TABLE_DAY_MS;
    double reach = fmax(window, INTERVALS * usual + TABLE_DAY_MS);
    int last = n < RUNS_MIN ? n - 1 : RUNS_MIN - 1;
    if (n > 0 && f->o.now_ms > 0 && s->runs[last].measured_ms < f->o.now_ms - reach) {
        if (left_out)
            left_out[LEFT_OUT_OLD] += n;
        return 0;
    }
    return n;
}

// What goes into the table, before the arrays are there.
struct table_plan {
    int *rows;   // [node of the fleet]: row; -1: not of the class
    int *counts; // [series of the fleet]: runs; 0: not in the table
    int *probes; // [probe of the fleet]: probe of the table; -1: not in it
    int n_rows, n_probes, n_runs;
};

static void plan_nodes(struct table_plan *p, const struct fleet *f, int class,
                       long left_out[LEFT_OUT_KINDS])
{
    int enough = 0;
    for (int i = 0; i < f->probes.n; i++)
        p->probes[i] = -1;
    for (int i = 0; i < f->nodes.n; i++) {
        int most = 0;
        p->rows[i] = -1;
        if (f->node[i].class != class)
            continue;
        for (int k = 0; k < f->node[i].n; k++) {
            int at = f->node[i].series[k], probe = f->one[at].probe;
            if (f->probe[probe].class != class) {
                left_out[LEFT_OUT_SETUP] += f->one[at].n;
                continue;
            }
            p->counts[at] = fleet_series_runs(f, &f->one[at], left_out);
            if (p->counts[at] && p->probes[probe] < 0)
                p->probes[probe] = p->n_probes++;
            most = p->counts[at] > most ? p->counts[at] : most;
        }
        p->n_runs = most > p->n_runs ? most : p->n_runs;
        left_out[LEFT_OUT_RUNS] += most < RUNS_MIN;
        enough += most >= RUNS_MIN;
        p->rows[i] = p->n_rows++;
    }
    left_out[LEFT_OUT_SMALL] += enough < PEERS_MIN ? enough : 0;
}

// Nodes whose newest run has the metric.
static void table_count_nodes(const struct table_plan *p, const struct fleet *f, int probe,
                              int *nodes)
{
    memset(nodes, 0, f->probe[probe].metrics.n * sizeof *nodes);
    for (int i = 0; i < f->n_series; i++) {
        const struct fleet_series *s = &f->one[i];
        if (s->probe != probe || p->counts[i] == 0 || p->rows[s->node] < 0)
            continue;
        for (int m = 0; m < s->runs[0].n; m++)
            nodes[m] += !isnan(s->runs[0].v[m]);
    }
}

// A metric that fewer nodes have cannot be compared, where the class has more. A probe without any
// metric has no place in the arrays: one node may bring thousands of probes, and they have a place
// for each run of each node.
static int add_metrics(struct fleet_table *t, struct table_plan *p, const struct fleet *f,
                       struct err *err)
{
    int least = p->n_rows < PEERS_MIN ? 1 : PEERS_MIN, most = 1, kept = 0;
    for (int i = 0; i < f->probes.n; i++)
        most = f->probe[i].metrics.n > most ? f->probe[i].metrics.n : most;
    int *nodes = malloc(most * sizeof *nodes);
    if (!nodes)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d metrics", most);
    for (int probe = 0; probe < p->n_probes; probe++) {
        const int number = t->probe[probe], before = t->in.metrics;
        const struct fleet_probe *of = &f->probe[number];
        table_count_nodes(p, f, number, nodes);
        for (int m = 0; m < of->metrics.n; m++) {
            if (nodes[m] < least)
                continue;
            t->metric_probe[t->in.metrics] = kept;
            t->column[t->in.metrics] = m;
            t->loss[t->in.metrics] = metric_is_loss(of->metrics.list[m]);
            t->more[t->in.metrics++] = metric_more_is_better(of->units[m]);
        }
        const bool has = t->in.metrics > before;
        p->probes[number] = has ? kept : -1;
        t->probe[kept] = number;
        kept += has;
    }
    p->n_probes = kept;
    free(nodes);
    return 0;
}

static void fill_row(struct fleet_table *t, const struct fleet *f, int row, int probe, int series,
                     int count)
{
    const struct fleet_series *s = &f->one[series];
    size_t runs = t->in.runs;
    t->series[row * t->in.probes + probe] = series;
    for (int r = 0; r < count; r++)
        t->day[((size_t)row * t->in.probes + probe) * runs + r] =
            (int32_t)(s->runs[r].measured_ms / TABLE_DAY_MS);
    for (int m = 0; m < t->in.metrics; m++) {
        if (t->metric_probe[m] != probe)
            continue;
        float *v = t->v + ((size_t)row * t->in.metrics + m) * runs;
        for (int r = 0; r < count; r++)
            v[r] = t->column[m] < s->runs[r].n ? s->runs[r].v[t->column[m]] : NAN;
    }
}

static int table_fill_rows(struct fleet_table *t, const struct table_plan *p, const struct fleet *f,
                           struct err *err)
{
    size_t cells = (size_t)p->n_rows * p->n_runs, values = cells * t->in.metrics;
    if (values > TABLE_VALUES_MAX)
        return err_set(err, ERR_TOO_LARGE, "",
                       "%d nodes with %d metrics and %d runs are too many to be judged at once",
                       p->n_rows, t->in.metrics, p->n_runs);
    t->v = malloc((values + 1) * sizeof *t->v);
    t->day = malloc((cells * p->n_probes + 1) * sizeof *t->day);
    t->series = malloc(((size_t)p->n_rows * p->n_probes + 1) * sizeof *t->series);
    if (!t->v || !t->day || !t->series)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the runs of %d nodes", p->n_rows);
    for (size_t i = 0; i < values; i++)
        t->v[i] = NAN;
    memset(t->day, 0xff, cells * p->n_probes * sizeof *t->day);
    memset(t->series, 0xff, (size_t)p->n_rows * p->n_probes * sizeof *t->series);
    t->in = (struct peers_input){p->n_rows, t->in.metrics,   p->n_runs, p->n_probes, t->v,
                                 t->day,    t->metric_probe, t->more,   t->loss};
    for (int i = 0; i < f->n_series; i++) {
        int row = p->rows[f->one[i].node], probe = p->probes[f->one[i].probe];
        if (row >= 0 && probe >= 0 && p->counts[i])
            fill_row(t, f, row, probe, i, p->counts[i]);
    }
    return 0;
}

static int table_arrays(struct fleet_table *t, struct table_plan *p, const struct fleet *f,
                        struct err *err)
{
    size_t metrics = 1;
    for (int i = 0; i < f->probes.n; i++)
        metrics += p->probes[i] >= 0 ? f->probe[i].metrics.n : 0;
    t->node = malloc((p->n_rows + 1) * sizeof *t->node);
    t->probe = malloc((p->n_probes + 1) * sizeof *t->probe);
    t->column = malloc(metrics * sizeof *t->column);
    t->metric_probe = malloc(metrics * sizeof *t->metric_probe);
    t->more = malloc(metrics * sizeof *t->more);
    t->loss = malloc(metrics * sizeof *t->loss);
    if (!t->node || !t->probe || !t->column || !t->metric_probe || !t->more || !t->loss)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a class of %d nodes", p->n_rows);
    for (int i = 0; i < f->nodes.n; i++)
        if (p->rows[i] >= 0)
            t->node[p->rows[i]] = i;
    for (int i = 0; i < f->probes.n; i++)
        if (p->probes[i] >= 0)
            t->probe[p->probes[i]] = i;
    return add_metrics(t, p, f, err);
}

int fleet_table_make(struct fleet_table *t, const struct fleet *f, int class,
                     long left_out[LEFT_OUT_KINDS], struct err *err)
{
    long unused[LEFT_OUT_KINDS] = {0};
    struct fleet_table made = {.class = class};
    struct table_plan p = {malloc((f->nodes.n + 1) * sizeof(int)),
                           calloc(f->n_series + 1, sizeof(int)),
                           malloc((f->probes.n + 1) * sizeof(int)), .n_runs = 1};
    int rc = -1;
    if (!p.rows || !p.counts || !p.probes) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a class");
    } else {
        plan_nodes(&p, f, class, left_out ? left_out : unused);
        rc = table_arrays(&made, &p, f, err);
        if (rc == 0)
            rc = table_fill_rows(&made, &p, f, err);
    }
    free(p.rows);
    free(p.counts);
    free(p.probes);
    if (rc < 0)
        fleet_table_fini(&made);
    else
        *t = made;
    return rc;
}

void fleet_table_fini(struct fleet_table *t)
{
    free(t->node);
    free(t->probe);
    free(t->column);
    free(t->series);
    free(t->metric_probe);
    free(t->more);
    free(t->loss);
    free(t->v);
    free(t->day);
    *t = (struct fleet_table){0};
}

const char *fleet_table_metric(const struct fleet_table *t, const struct fleet *f, int metric)
{
    return f->probe[t->probe[t->metric_probe[metric]]].metrics.list[t->column[metric]];
}

const char *fleet_table_unit(const struct fleet_table *t, const struct fleet *f, int metric)
{
    return f->probe[t->probe[t->metric_probe[metric]]].units[t->column[metric]];
}

int fleet_table_runs(const struct fleet_table *t, int row, int probe)
{
    const int32_t *day = t->day + ((size_t)row * t->in.probes + probe) * t->in.runs;
    int n = 0;
    while (n < t->in.runs && day[n] >= 0)
        n++;
    return n;
}

const struct fleet_run *fleet_table_run(const struct fleet_table *t, const struct fleet *f, int row,
                                        int probe, int run)
{
    int series = t->series[row * t->in.probes + probe];
    return series < 0 || run >= f->one[series].n ? NULL : &f->one[series].runs[run];
}

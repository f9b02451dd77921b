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
#include "base/cleanup.h"

#define TABLE_DAY_MS INT64_C(86400000)
#define INTERVALS 3.0 // of a node's runs: what is older is old

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
    int *rows;        // [node of the fleet]: row; -1: not of the class
    int *counts;      // [series of the fleet]: runs; 0: not in the table
    int *probes;      // [probe of the fleet]: probe of the table; -1: not in it
    bool *has_metric; // [probe of the table, before those without are taken out]
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

// A metric that might go into the table.
struct table_metric {
    int nodes; // whose newest run has it
    int place; // in the order of the table
    int probe; // of the table
    int column;
    bool in;
};

static int table_count_nodes(struct table_metric *list, const struct fleet_table *t,
                             const struct table_plan *p, const struct fleet *f, int *first)
{
    int n = 0;
    for (int probe = 0; probe < p->n_probes; probe++) {
        first[probe] = n;
        for (int m = 0; m < f->probe[t->probe[probe]].metrics.n; m++, n++)
            list[n] = (struct table_metric){.place = n, .probe = probe, .column = m};
    }
    for (int i = 0; i < f->n_series; i++) {
        const struct fleet_series *s = &f->one[i];
        int probe = p->probes[s->probe];
        if (probe < 0 || p->counts[i] == 0 || p->rows[s->node] < 0)
            continue;
        const struct columns *has = s->runs[0].columns;
        for (int k = 0; has && k < has->n; k++)
            list[first[probe] + has->list[k]].nodes += !isnan(s->runs[0].v[k]);
    }
    return n;
}

static int most_nodes_first(const void *a, const void *b)
{
    const struct table_metric *x = a, *y = b;
    return x->nodes != y->nodes ? y->nodes - x->nodes : x->place - y->place;
}

static int by_table_place(const void *a, const void *b)
{
    return ((const struct table_metric *)a)->place - ((const struct table_metric *)b)->place;
}

// Bytes that a metric and a probe of so many nodes take, with what is found from them.
static size_t metric_room(const struct table_plan *p)
{
    size_t cell = (size_t)p->n_runs * sizeof(float) + NEWEST_ROOM;
    return p->n_rows * cell + sizeof(struct table_metric) + PEERS_METRIC_ROOM;
}

static size_t probe_room(const struct table_plan *p)
{
    size_t cell = (size_t)p->n_runs * sizeof(int32_t) + sizeof(int) + PEERS_ROOM;
    return p->n_rows * cell;
}

// A metric that fewer nodes have cannot be compared, where the class has more. Of the others those
// of most nodes come first: eight nodes that have thousands of metrics of their own leave the room
// to what all have.
static void choose_metrics(struct table_metric *list, int n, const struct table_plan *p,
                           const struct fleet *f, long left_out[LEFT_OUT_KINDS])
{
    const int least = p->n_rows < PEERS_MIN ? 1 : PEERS_MIN;
    const size_t room = TABLES_ROOM / (size_t)(f->nodes.n + 1) * (size_t)p->n_rows;
    size_t taken = 0;
    bool *has = p->has_metric;
    qsort(list, (size_t)n, sizeof *list, most_nodes_first);
    for (int i = 0; i < n && list[i].nodes >= least; i++) {
        struct table_metric *one = &list[i];
        taken += metric_room(p) + (has[one->probe] ? 0 : probe_room(p));
        one->in = taken <= room;
        has[one->probe] |= one->in;
        left_out[LEFT_OUT_ROOM] += !one->in;
    }
    qsort(list, (size_t)n, sizeof *list, by_table_place);
}

static void table_add_metric(struct fleet_table *t, const struct fleet_probe *of, int probe,
                             int column)
{
    const int at = t->in.metrics++;
    t->metric_probe[at] = probe;
    t->column[at] = column;
    t->loss[at] = metric_is_loss(of->metrics.list[column]);
    t->more[at] = metric_more_is_better(of->units[column]);
}

static int add_metrics(struct fleet_table *t, struct table_plan *p, const struct fleet *f,
                       size_t metrics, long left_out[LEFT_OUT_KINDS], struct err *err)
{
    CLEANUP_MEM struct table_metric *list = malloc(metrics * sizeof *list);
    CLEANUP_MEM int *first = malloc((size_t)(p->n_probes + 1) * sizeof *first);
    p->has_metric = calloc((size_t)p->n_probes + 1, sizeof *p->has_metric);
    if (!list || !first || !p->has_metric)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %zu metrics", metrics);
    const int n = table_count_nodes(list, t, p, f, first), probes = p->n_probes;
    choose_metrics(list, n, p, f, left_out);
    p->n_probes = 0;
    for (int probe = 0; probe < probes; probe++) {
        const int number = t->probe[probe];
        p->probes[number] = p->has_metric[probe] ? p->n_probes : -1;
        for (int m = 0; m < f->probe[number].metrics.n; m++)
            if (list[first[probe] + m].in)
                table_add_metric(t, &f->probe[number], p->n_probes, m);
        t->probe[p->n_probes] = number;
        p->n_probes += p->has_metric[probe];
    }
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
    for (int m = 0; m < t->in.metrics; m++)
        if (t->metric_probe[m] == probe)
            fleet_series_numbers(s, t->column[m], count,
                                 t->v + ((size_t)row * t->in.metrics + m) * runs);
}

static int table_fill_rows(struct fleet_table *t, const struct table_plan *p, const struct fleet *f,
                           struct err *err)
{
    size_t cells = (size_t)p->n_rows * p->n_runs, values = cells * t->in.metrics;
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
                        long left_out[LEFT_OUT_KINDS], struct err *err)
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
    return add_metrics(t, p, f, metrics, left_out, err);
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
        left_out = left_out ? left_out : unused;
        plan_nodes(&p, f, class, left_out);
        rc = table_arrays(&made, &p, f, left_out, err);
        if (rc == 0)
            rc = table_fill_rows(&made, &p, f, err);
    }
    free(p.rows);
    free(p.counts);
    free(p.probes);
    free(p.has_metric);
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

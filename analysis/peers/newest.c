// SPDX-License-Identifier: Apache-2.0
// One metric after the other, as a column of all nodes' runs: the logs, the days, the medians. The
// column is used again for the next metric, so 10,000 nodes with 25 runs need 6 MB beside the
// input.
#include "analysis/peers/newest.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/peers/kinds.h"
#include "analysis/stats/median.h"

// Of more nodes so many: their median errs by 0.02 % where nodes differ by 1 %, the same for all.
enum { SAMPLE = 4096 };
#define KINDS_LEAST 0.0295588 // log 1.03: kinds that are nearer do not shift a day's median

static int by_day(const void *a, const void *b)
{
    const struct newest_run *x = a, *y = b;
    if (x->day != y->day)
        return x->day < y->day ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static const int32_t *days_of(const struct peers_input *in, int node, int probe)
{
    return in->day + ((size_t)node * in->probes + probe) * in->runs;
}

static void calendar_fill(struct newest_calendar *c, const struct peers_input *in, int probe)
{
    bool sorted = true;
    c->n = c->days = 0;
    for (int i = 0; i < in->nodes; i++)
        for (int r = 0; r < in->runs; r++) {
            int32_t day = days_of(in, i, probe)[r];
            if (day < 0)
                continue;
            sorted = sorted && (c->n == 0 || c->list[c->n - 1].day <= day);
            c->list[c->n++] = (struct newest_run){day, i * in->runs + r};
        }
    if (!sorted)
        qsort(c->list, c->n, sizeof *c->list, by_day);
    for (int i = 0; i < c->n; i++)
        if (i == 0 || c->list[i].day != c->list[i - 1].day)
            c->begin[c->days++] = i;
    c->begin[c->days] = c->n;
}

int newest_column_init(struct newest_column *c, const struct peers_input *in, struct err *err)
{
    size_t cells = (size_t)in->nodes * in->runs;
    if (cells > INT32_MAX / 2)
        return err_set(err, ERR_TOO_LARGE, "", "%d nodes with %d runs each are too many", in->nodes,
                       in->runs);
    size_t bytes = (2 * cells + in->nodes) * sizeof(double) +
                   cells * (sizeof(struct newest_run) + sizeof(int)) + sizeof(int);
    *c = (struct newest_column){.in = in, .probe = -1, .memory = malloc(bytes)};
    if (!c->memory)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the runs of %d nodes", in->nodes);
    c->x = c->memory;
    c->scratch = c->x + cells;
    c->level = c->scratch + cells;
    c->calendar.list = (struct newest_run *)(c->level + in->nodes);
    c->calendar.begin = (int *)(c->calendar.list + cells);
    return 0;
}

// The first `most` values that there are, from *run on. *run becomes what follows them.
static int take_values(const double *x, int runs, int *run, int most, double *out)
{
    int n = 0;
    for (; *run < runs && n < most; ++*run)
        if (!isnan(x[*run]))
            out[n++] = x[*run];
    return n;
}

static int newest_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Exchanges only, as half of the time went into sorting five numbers.
static double middle_of_newest(double *v, int n)
{
    double low = v[0], high = v[1];
    if (n != 5)
        return middle_select(v, n);
    double a = fmin(low, high), b = fmax(low, high), c = fmin(v[2], v[3]), d = fmax(v[2], v[3]);
    double lower = fmax(a, c), upper = fmin(b, d); // neither the least nor the greatest of four
    return fmax(fmin(lower, upper), fmin(fmax(lower, upper), v[4]));
}

// The centre of each node's kind, by the medians of its newest runs as they are.
static void newest_levels(struct newest_column *c)
{
    struct kinds kinds;
    double five[NEWEST_RUNS] = {0};
    int n = 0, every = 1 + c->in->nodes / SAMPLE;
    for (int i = 0; i < c->in->nodes; i++) {
        int run = 0;
        int have =
            take_values(c->x + (size_t)i * c->in->runs, c->in->runs, &run, NEWEST_RUNS, five);
        c->level[i] = middle_of_newest(five, have);
        if (have && i % every == 0)
            c->scratch[n++] = c->level[i];
    }
    if (n == 0)
        return;
    qsort(c->scratch, n, sizeof *c->scratch, newest_by_value);
    kinds_find(&kinds, c->scratch, n, KINDS_LEAST);
    for (int i = 0; i < c->in->nodes; i++)
        if (!isnan(c->level[i]))
            c->level[i] = kinds.list[kinds_of(&kinds, c->level[i])].spread.centre;
}

// NaN: too few nodes on that day.
static double day_median(struct newest_column *c, int day)
{
    const struct newest_calendar *k = &c->calendar;
    int n = 0, nodes = 0, last = -1, every = 1 + (k->begin[day + 1] - k->begin[day]) / SAMPLE;
    for (int i = k->begin[day]; i < k->begin[day + 1]; i += every) {
        int at = k->list[i].at, node = at / c->in->runs;
        if (isnan(c->x[at]))
            continue;
        c->scratch[n++] = c->x[at] - c->level[node];
        nodes += node != last;
        last = node;
    }
    return nodes >= DAY_NODES_MIN ? middle_select(c->scratch, n) : NAN;
}

static void take_days_out(struct newest_column *c)
{
    const struct newest_calendar *k = &c->calendar;
    double newest = NAN;
    if (k->days < 2)
        return;
    newest_levels(c);
    for (int day = k->days - 1; day >= 0; day--) {
        double median = day_median(c, day);
        if (isnan(newest))
            newest = median;
        for (int i = k->begin[day]; i < k->begin[day + 1] && !isnan(median); i++)
            c->x[k->list[i].at] -= median - newest;
    }
}

void newest_column_fill(struct newest_column *c, int metric)
{
    const struct peers_input *in = c->in;
    double sign = in->more[metric] ? -1 : 1;
    for (int i = 0; i < in->nodes; i++) {
        const float *v = in->v + ((size_t)i * in->metrics + metric) * in->runs;
        for (int r = 0; r < in->runs; r++)
            c->x[(size_t)i * in->runs + r] = v[r] > 0 && isfinite(v[r]) ? sign * logf(v[r]) : NAN;
    }
    if (c->probe != in->probe[metric])
        calendar_fill(&c->calendar, in, c->probe = in->probe[metric]);
    take_days_out(c);
}

void newest_column_fini(struct newest_column *c)
{
    free(c->memory);
    c->memory = NULL;
}

// The standard deviation of so few values has a median below that of many.
static double newest_deviation(const double *v, int n)
{
    static const double median_of[] = {[3] = 0.833, [4] = 0.888, [5] = 0.916};
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    for (int i = 0; i < n; i++)
        squares += (v[i] - sum / n) * (v[i] - sum / n);
    return sqrt(squares / (n - 1)) / median_of[n];
}

double newest_noise(const struct newest_column *c)
{
    double v[NEWEST_RUNS];
    int found = 0;
    for (int i = 0; i < c->in->nodes; i++) {
        int run = 0;
        int n = take_values(c->x + (size_t)i * c->in->runs, c->in->runs, &run, NEWEST_RUNS, v);
        if (n >= RUNS_MIN)
            c->scratch[found++] = newest_deviation(v, n);
    }
    return middle_select(c->scratch, found);
}

double newest_error(int n)
{
    return 1.2533 / sqrt(n + 0.5);
}

static void column_medians(const struct newest_column *c, struct newest *out, int metric)
{
    const struct peers_input *in = c->in;
    double v[BEFORE_RUNS] = {0};
    for (int i = 0; i < in->nodes; i++) {
        const double *x = c->x + (size_t)i * in->runs;
        size_t at = (size_t)metric * in->nodes + i;
        int run = 0, n = take_values(x, in->runs, &run, NEWEST_RUNS, v);
        double now = middle_of_newest(v, n);
        out->now[at] = n >= RUNS_MIN ? now : NAN;
        if (!out->change)
            continue;
        int before = take_values(x, in->runs, &run, BEFORE_RUNS, v);
        bool known = n == NEWEST_RUNS && before >= BEFORE_MIN;
        out->change[at] = known ? now - middle_select(v, before) : NAN;
    }
}

static void newest_counts(struct newest *out, const struct peers_input *in)
{
    for (int p = 0; p < in->probes; p++)
        for (int i = 0; i < in->nodes; i++) {
            const int32_t *day = days_of(in, i, p);
            int runs = 0, days = 0;
            for (int r = 0; r < in->runs && runs < NEWEST_RUNS; r++) {
                if (day[r] < 0)
                    continue;
                bool seen = false;
                for (int k = 0; k < r; k++)
                    seen = seen || day[k] == day[r];
                days += !seen;
                runs++;
            }
            out->runs[(size_t)p * in->nodes + i] = (unsigned char)runs;
            out->days[(size_t)p * in->nodes + i] = (unsigned char)days;
        }
}

int newest_find(struct newest *out, const struct peers_input *in, bool with_change, struct err *err)
{
    struct newest_column c;
    size_t cells = (size_t)in->metrics * in->nodes, counts = (size_t)in->probes * in->nodes;
    if (newest_column_init(&c, in, err) < 0)
        return -1;
    struct newest made = {in->nodes, in->metrics, in->probes, in->probe, .memory = NULL};
    made.memory = malloc(cells * (with_change ? 2 : 1) * sizeof(double) + 2 * counts + 1);
    if (!made.memory) {
        newest_column_fini(&c);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d metrics of %d nodes", in->metrics,
                       in->nodes);
    }
    made.now = made.memory;
    made.change = with_change ? made.now + cells : NULL;
    made.runs = (unsigned char *)(made.now + cells * (with_change ? 2 : 1));
    made.days = made.runs + counts;
    for (int m = 0; m < in->metrics; m++) {
        newest_column_fill(&c, m);
        column_medians(&c, &made, m);
    }
    newest_column_fini(&c);
    newest_counts(&made, in);
    *out = made;
    return 0;
}

void newest_fini(struct newest *n)
{
    free(n->memory);
    *n = (struct newest){0};
}

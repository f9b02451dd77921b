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
    kinds_find(&kinds, c->scratch, n, KINDS_LEAST, 0);
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
    bool loss = in->loss && in->loss[metric];
    double sign = in->more[metric] ? -1 : 1;
    for (int i = 0; i < in->nodes; i++) {
        const float *v = in->v + ((size_t)i * in->metrics + metric) * in->runs;
        for (int r = 0; r < in->runs; r++)
            c->x[(size_t)i * in->runs + r] =
                v[r] > 0 && isfinite(v[r]) ? sign * logf(v[r] + (float)loss) : NAN;
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

static double sum_of_squares(const double *v, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    for (int i = 0; i < n; i++)
        squares += (v[i] - sum / n) * (v[i] - sum / n);
    return squares;
}

// The median of two deviations is below what two nodes differ by where one scatters much more than
// the other. Theirs are pooled instead, as Student's t of two nodes needs it.
double newest_noise(const struct newest_column *c)
{
    // The standard deviation of so few values has a median below that of many.
    static const double median_of[] = {[3] = 0.833, [4] = 0.888, [5] = 0.916};
    double v[NEWEST_RUNS], squares = 0;
    int found = 0, freedom = 0;
    for (int i = 0; i < c->in->nodes; i++) {
        int run = 0;
        int n = take_values(c->x + (size_t)i * c->in->runs, c->in->runs, &run, NEWEST_RUNS, v);
        if (n < RUNS_MIN)
            continue;
        double own = sum_of_squares(v, n);
        c->scratch[found++] = sqrt(own / (n - 1)) / median_of[n];
        squares += own;
        freedom += n - 1;
    }
    return found == 2 ? sqrt(squares / freedom) : middle_select(c->scratch, found);
}

double newest_log(double value, bool more, bool loss)
{
    double x = loss ? log1p(value) : log(value);
    return more ? -x : x;
}

double newest_value(double x, bool more, bool loss)
{
    x = more ? -x : x;
    return loss ? expm1(x) : exp(x);
}

double newest_error(int n)
{
    return 1.2533 / sqrt(n + 0.5);
}

// The first n values of a node: on how many days they were measured.
static int days_of_values(const double *x, const int32_t *day, int n)
{
    int32_t seen[NEWEST_RUNS];
    int days = 0;
    for (int r = 0, k; n > 0; r++) {
        if (isnan(x[r]))
            continue;
        n--;
        for (k = 0; k < days && seen[k] != day[r]; k++)
            ;
        if (k == days)
            seen[days++] = day[r];
    }
    return days;
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
        out->runs[at] = (unsigned char)n;
        out->days[at] = (unsigned char)days_of_values(x, days_of(in, i, in->probe[metric]), n);
        if (!out->change)
            continue;
        int before = take_values(x, in->runs, &run, BEFORE_RUNS, v);
        bool known = n == NEWEST_RUNS && before >= BEFORE_MIN;
        out->change[at] = known ? now - middle_select(v, before) : NAN;
    }
}

int newest_find(struct newest *out, const struct peers_input *in, bool with_change, struct err *err)
{
    struct newest_column c;
    size_t cells = (size_t)in->metrics * in->nodes;
    if (newest_column_init(&c, in, err) < 0)
        return -1;
    struct newest made = {in->nodes, in->metrics, in->probes, in->probe, .memory = NULL};
    made.memory = malloc((cells * (with_change ? 2 : 1) + in->metrics) * sizeof(double) +
                         cells * (sizeof *made.scatter + 2) + 1);
    if (!made.memory) {
        newest_column_fini(&c);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d metrics of %d nodes", in->metrics,
                       in->nodes);
    }
    made.now = made.memory;
    made.change = with_change ? made.now + cells : NULL;
    made.grain = made.now + cells * (with_change ? 2 : 1);
    made.scatter = (struct newest_scatter *)(made.grain + in->metrics);
    made.runs = (unsigned char *)(made.scatter + cells);
    made.days = made.runs + cells;
    for (int m = 0; m < in->metrics; m++) {
        newest_column_fill(&c, m);
        column_medians(&c, &made, m);
        scatter_find(made.scatter + (size_t)m * in->nodes, &made.grain[m], c.x, in->nodes, in->runs,
                     c.scratch);
    }
    newest_column_fini(&c);
    *out = made;
    return 0;
}

void newest_fini(struct newest *n)
{
    free(n->memory);
    *n = (struct newest){0};
}

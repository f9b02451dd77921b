// SPDX-License-Identifier: Apache-2.0
#include "analysis/stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

// The correlation time is itself estimated, too low when it is long for the series, and a run stops
// when it happens to look small. This widens the interval for a repeat run by what simulation shows
// to be missing (tests/unit/analysis): nothing when samples are independent, a quarter at 5 samples
// in 216.
static const double TAU_DOUBT = 60;

static int stats_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, stats_by_value);
}

double stats_quantile(const double *sorted, int n, double q)
{
    double at = (n - 1) * q;
    int below = (int)at;
    if (below >= n - 1)
        return sorted[n - 1];
    return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

static double sign_around(double v, double median)
{
    return (v > median) - (v < median);
}

static double correlation(const double *series, int n, double median, int lag)
{
    double same = 0, product = 0;
    for (int i = 0; i < n; i++)
        same += fabs(sign_around(series[i], median));
    for (int i = 0; i + lag < n; i++)
        product += sign_around(series[i], median) * sign_around(series[i + lag], median);
    // The median is the sample's own, which pulls every correlation down by about 1/n.
    return same > 0 ? product / same + 1.0 / n : 0;
}

// Sums pairs of neighbouring lags while their sum is positive (Geyer's initial positive sequence):
// in theory every such pair is positive, so the first that is not is noise.
double stats_correlation_time(const double *series, int n, double median)
{
    double sum = 0;
    for (int lag = 0; lag + 1 < n / 2; lag += 2) {
        double pair = (lag ? correlation(series, n, median, lag) : 1) +
                      correlation(series, n, median, lag + 1);
        if (pair <= 0)
            break;
        sum += pair;
    }
    double tau = 2 * sum - 1;
    return tau > 1 ? tau : 1;
}

int stats_median_rank(int n)
{
    // P(at most k of n below the median), summed from k = 0 in logarithms: 2^-n underflows.
    double log_term = -n * log(2.0), below = 0;
    int k = 0;
    for (;; k++) {
        below += exp(log_term);
        if (below > 0.025)
            return k;
        log_term += log((double)(n - k) / (k + 1));
    }
}

// The order statistic at a position from 1 that may be fractional or outside of 1…n.
static double at_position(const double *sorted, int n, double median, double position)
{
    double middle = (n + 1) / 2.0;
    if (position < 1)
        return sorted[0] - (1 - position) * (median - sorted[0]) / (middle - 1);
    if (position > n)
        return sorted[n - 1] + (position - n) * (sorted[n - 1] - median) / (middle - 1);
    return stats_quantile(sorted, n, (position - 1) / (n - 1));
}

struct interval stats_median_interval(const double *sorted, int n, double widen)
{
    double median = stats_quantile(sorted, n, 0.5), middle = (n + 1) / 2.0;
    int rank = stats_median_rank(n);
    double half = (middle - (rank > 0 ? rank : 0)) * widen;
    struct interval found = {at_position(sorted, n, median, middle - half),
                             at_position(sorted, n, median, middle + half)};
    if (found.lo < 0 && sorted[0] >= 0)
        found.lo = 0; // times are not negative
    return found;
}

static void stats_from_sorted(struct stats *s, const double *series, const double *sorted, int n)
{
    *s = (struct stats){.n = n, .median = stats_quantile(sorted, n, 0.5), .correlation_time = 1};
    s->interval = s->repeat = (struct interval){s->median, s->median};
    if (n < 2)
        return;
    s->correlation_time = stats_correlation_time(series, n, s->median);
    double widen = sqrt(s->correlation_time);
    s->interval = stats_median_interval(sorted, n, widen);
    double doubt = 1 + TAU_DOUBT * (s->correlation_time - 1) / n;
    s->repeat = stats_median_interval(sorted, n, widen * sqrt(2 * doubt));
}

static double *sorted_copy(const double *series, int n, struct err *err)
{
    double *sorted = malloc((size_t)n * sizeof *sorted);
    if (!sorted) {
        err_set(err, ERR_NO_MEMORY, "", "no memory to sort %d samples", n);
        return NULL;
    }
    memcpy(sorted, series, (size_t)n * sizeof *sorted);
    stats_sort(sorted, n);
    return sorted;
}

int stats_of(struct stats *s, const double *series, int n, struct err *err)
{
    CLEANUP_MEM double *sorted = sorted_copy(series, n, err);
    if (!sorted)
        return -1;
    stats_from_sorted(s, series, sorted, n);
    return 0;
}

double stats_precision(const struct stats *s)
{
    if (s->n < STATS_INDEPENDENT_MIN * s->correlation_time || !(s->median > 0))
        return INFINITY;
    double up = s->interval.hi - s->median, down = s->median - s->interval.lo;
    return 100 * (up > down ? up : down) / s->median;
}

// Two-sided 95 % points of Student's t with 1, 2, … degrees of freedom; beyond, nearly normal.
double stats_student(int freedom)
{
    static const double points[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447,
                                    2.365, 2.306, 2.262, 2.228, 2.201, 2.179};
    return freedom <= (int)COUNT_OF(points) ? points[freedom - 1] : 1.96 + 2.6 / freedom;
}

struct moments {
    int n;
    double mean, squares;
};

static void add_moment(struct moments *m, double v)
{
    double off = v - m->mean;
    m->mean += off / ++m->n;
    m->squares += off * (v - m->mean);
}

// Half-width for the median of a repeat run that has as many visits: the visits' medians differ by
// what changes between moments, which no number of samples at one moment can show.
int stats_between_visits(const double *series, const int *visit, int n, double *half,
                         struct err *err)
{
    struct moments m = {0};
    CLEANUP_MEM double *part = malloc((size_t)n * sizeof *part);
    *half = 0;
    if (!part)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to compare %d samples", n);
    for (int from = 0, to; from < n; from = to) {
        for (to = from; to < n && visit[to] == visit[from]; to++)
            part[to - from] = series[to];
        stats_sort(part, to - from);
        add_moment(&m, stats_quantile(part, to - from, 0.5));
    }
    if (m.n > 1)
        *half = stats_student(m.n - 1) * sqrt(m.squares / (m.n - 1)) * sqrt(2.0 / m.n);
    return 0;
}

int stats_cell(struct cell *c, const double *series, const int *visit, int n, struct err *err)
{
    CLEANUP_MEM double *sorted = sorted_copy(series, n, err);
    if (!sorted)
        return -1;
    struct stats s;
    double half = 0;
    stats_from_sorted(&s, series, sorted, n);
    if (visit && stats_between_visits(series, visit, n, &half, err) < 0)
        return -1;
    double lo = fmin(s.repeat.lo, s.median - half), hi = fmax(s.repeat.hi, s.median + half);
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += sorted[i];
    for (int i = 0; i < n; i++)
        squares += (sorted[i] - sum / n) * (sorted[i] - sum / n);
    bool alone = n < 2; // says nothing about its own spread
    const double v[CELL_FIELDS] = {
        [CELL_N] = n,
        [CELL_MEDIAN] = s.median,
        [CELL_LO] = alone                      ? NAN
                    : lo < 0 && sorted[0] >= 0 ? 0
                                               : lo, // times are not negative
        [CELL_HI] = alone ? NAN : hi,
        [CELL_MIN] = sorted[0],
        [CELL_P10] = stats_quantile(sorted, n, 0.10),
        [CELL_P90] = stats_quantile(sorted, n, 0.90),
        [CELL_P99] = stats_quantile(sorted, n, 0.99),
        [CELL_MEAN] = sum / n,
        [CELL_SD] = alone ? NAN : sqrt(squares / (n - 1)),
        [CELL_DISTURBED] = c->v[CELL_DISTURBED],
        [CELL_OVERLAP] = c->v[CELL_OVERLAP],
        [CELL_CONVERGED] = c->v[CELL_CONVERGED],
    };
    memcpy(c->v, v, sizeof v);
    return 0;
}

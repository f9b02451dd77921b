// SPDX-License-Identifier: Apache-2.0
// From the samples of a cell to its summary, in this order: quantiles, the autocorrelation
// time, the interval of the median, and what repetitions over the run add to it.
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
// Integrated autocorrelation time, in samples, at least 1: n / this is how many independent samples
// a series is worth. `series` is in order of time.
static double stats_correlation_time(const double *series, int n, double median)
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

// Interval of the median of `sorted`, its half-width in ranks times `widen`; beyond the smallest
// and largest sample it continues at the samples' mean spacing on that side. n >= 2.
static struct interval stats_median_interval(const double *sorted, int n, double widen)
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
static double visits_student(int freedom)
{
    static const double points[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447,
                                    2.365, 2.306, 2.262, 2.228, 2.201, 2.179};
    return freedom <= (int)COUNT_OF(points) ? points[freedom - 1] : 1.96 + 2.6 / freedom;
}

// Up to so many visits their standard deviation is all there is. Beyond, the median absolute
// deviation takes its place: one visit in eight that goes wrong does not widen the interval.
enum { VISITS_BY_SD = 4 };
static const double MEDIAN_BY_SD = 1.1; // the median of few visits is less sure than their mean
static const double MEDIAN_ERROR = 1.2533, MAD_TO_SIGMA = 1.4826; // under a normal law
// What Student's t lacks for a spread that is a median absolute deviation of so many values, by
// simulation (tests/unit/analysis/test_stats.c). Of an odd number the middle one deviates by 0,
// which says nothing and is left out.
static const double EVEN_LACK = 2, ODD_LACK = 0.4;

static double visits_by_sd(const double *medians, int k)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < k; i++)
        mean += medians[i] / k;
    for (int i = 0; i < k; i++)
        squares += (medians[i] - mean) * (medians[i] - mean);
    return MEDIAN_BY_SD * sqrt(squares / (k - 1));
}

static double visits_by_mad(double *medians, int k)
{
    stats_sort(medians, k);
    double median = stats_quantile(medians, k, 0.5);
    for (int i = 0; i < k; i++)
        medians[i] = fabs(medians[i] - median);
    stats_sort(medians, k);
    double mad = stats_quantile(medians + k % 2, k - k % 2, 0.5);
    return MEDIAN_ERROR * MAD_TO_SIGMA * mad;
}

static double visits_lack(int k)
{
    return k <= VISITS_BY_SD ? 1 : 1 + (k % 2 ? ODD_LACK : EVEN_LACK) / k;
}

double stats_visits_errors(int k)
{
    return sqrt(2) * visits_student(k - 1) * visits_lack(k);
}

// By simulation (tests/unit/analysis/test_stats.c): the logs of the squared deviations of k values
// vary as those of a chi square with so many.
double stats_visits_freedom(int k)
{
    static const double each = 0.37, even = 0.35, odd = 0.85;
    return k <= VISITS_BY_SD ? k - 1 : each * k + (k % 2 ? odd : even);
}

double stats_between_visits(double *medians, int k)
{
    if (k < 2)
        return 0;
    double error = k <= VISITS_BY_SD ? visits_by_sd(medians, k) : visits_by_mad(medians, k);
    return stats_visits_errors(k) * error / sqrt(k);
}

int stats_center_visits(const double *series, const int *visit, int n, double *centered,
                        double *medians)
{
    int k = 0;
    for (int from = 0, to; from < n; from = to) {
        for (to = from; to < n && (!visit || visit[to] == visit[from]); to++)
            centered[to] = series[to];
        stats_sort(centered + from, to - from);
        medians[k] = stats_quantile(centered + from, to - from, 0.5);
        for (int i = from; i < to; i++)
            centered[i] = series[i] - medians[k];
        k++;
    }
    return k;
}

// Interval for a repeat, around `median`: what the samples of one moment say, and what the moments.
static int stats_repeat_interval(struct interval *out, double median, const double *series,
                                 const int *visit, int n, struct err *err)
{
    CLEANUP_MEM double *room = malloc(2 * (size_t)n * sizeof *room);
    if (!room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to compare %d samples", n);
    double *centered = room, *medians = room + n;
    int k = stats_center_visits(series, visit, n, centered, medians);
    for (int i = 0; i < n; i++)
        centered[i] += median;
    struct stats within;
    if (stats_of(&within, centered, n, err) < 0)
        return -1;
    double half = stats_between_visits(medians, k);
    *out = (struct interval){fmin(within.repeat.lo, median - half),
                             fmax(within.repeat.hi, median + half)};
    return 0;
}

int stats_cell(struct cell *c, const double *series, const int *visit, int n, struct err *err)
{
    CLEANUP_MEM double *sorted = sorted_copy(series, n, err);
    if (!sorted)
        return -1;
    double median = stats_quantile(sorted, n, 0.5);
    struct interval repeat = {median, median};
    if (stats_repeat_interval(&repeat, median, series, visit, n, err) < 0)
        return -1;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += sorted[i];
    for (int i = 0; i < n; i++)
        squares += (sorted[i] - sum / n) * (sorted[i] - sum / n);
    bool alone = n < 2; // says nothing about its own spread
    const double v[CELL_SD + 1] = {
        // what follows is of others
        [CELL_N] = n,
        [CELL_MEDIAN] = median,
        // Times are not negative.
        [CELL_LO] = alone                             ? NAN
                    : repeat.lo < 0 && sorted[0] >= 0 ? 0
                                                      : repeat.lo,
        [CELL_HI] = alone ? NAN : repeat.hi,
        [CELL_MIN] = sorted[0],
        [CELL_P10] = stats_quantile(sorted, n, 0.10),
        [CELL_P90] = stats_quantile(sorted, n, 0.90),
        [CELL_P99] = stats_quantile(sorted, n, 0.99),
        [CELL_MEAN] = sum / n,
        [CELL_SD] = alone ? NAN : sqrt(squares / (n - 1)),
        [CELL_DISTURBED] = c->v[CELL_DISTURBED],
    };
    memcpy(c->v, v, sizeof v);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Summary of a cell's samples, and how sure it is. Pure.
//
// Quantiles interpolate between order statistics at position 1 + (n - 1) q (Hyndman and Fan's type
// 7, the default of numpy and R).
//
// The interval of the median is distribution-free: the number of samples below the true median is
// binomial (n, 1/2), so a pair of order statistics covers it with at least 95 %, whatever the
// distribution. Neighbouring samples resemble each other, so n is first divided by the integrated
// autocorrelation time of the series "above or below its median". The interval for a *repeat* run
// is wider by sqrt(2): the other run's median is as uncertain as ours.
#pragma once
#include "base/err.h"
#include "model/matrix.h"

struct interval {
    double lo, hi;
};

enum {
    // Fewer independent samples than this say too little about their own spread to be called
    // precise (docs/METHOD.md, "How sure").
    STATS_INDEPENDENT_MIN = 16,
};

void stats_sort(double *v, int n);
double stats_quantile(const double *sorted, int n, double q); // n >= 1, 0 <= q <= 1

// Positions (from 1) of the order statistics whose interval covers the median with at least 95 %;
// 0 if n is below 6, where no pair does. The upper one is n + 1 - this.
int stats_median_rank(int n);

struct stats {
    int n;
    double median;
    struct interval interval; // of the median: what the stopping rule looks at
    struct interval repeat;   // covers the median of a repeat run
    double correlation_time;  // in samples
};

// ERR_NO_MEMORY is the only error. n >= 1; with n < 2 the intervals are the median itself.
int stats_of(struct stats *s, const double *series, int n, struct err *err);
// Half-width of the stopping interval in per cent of the median; infinite while there are fewer
// independent samples than STATS_INDEPENDENT_MIN.
double stats_precision(const struct stats *s);

// What the half-width below says of the error of the median: how many standard errors of the median
// of k visits it is, and how many degrees of freedom that error has. A median absolute deviation
// has fewer than k - 1: it says less about the spread than a standard deviation. k >= 2.
double stats_visits_errors(int k);
double stats_visits_freedom(int k);

// Half-width of the interval that the differences between k visits alone give for a repeat's median
// of as many: Student's t and the median absolute deviation of the visits' medians, of few visits
// their standard deviation. `medians` are in any order, and lost. 0 with one visit.
double stats_between_visits(double *medians, int k);

// The medians of the visits (room for n), and every sample less its visit's median. Returns how
// many visits. `visit` as below.
int stats_center_visits(const double *series, const int *visit, int n, double *centered,
                        double *medians);

// Fills every field of `c` but disturbed, overlap and converged. lo and hi are the wider of what
// the samples of one moment and what the visits say. `visit` numbers the visit of each sample,
// ascending; NULL: one visit. Of one sample lo, hi and sd are NaN: how sure it is cannot be known.
int stats_cell(struct cell *c, const double *series, const int *visit, int n, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Two numbers that say the same of two parts, and different things of many: one part of 100 that
// gets nothing leaves Jain's index at 0.99.
#include "analysis/stats/fairness.h"

#include <math.h>

double fairness_jain(const double *x, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return squares > 0 ? sum * sum / (n * squares) : 1;
}

double fairness_least(const double *x, int n)
{
    double least = INFINITY, greatest = 0;
    for (int i = 0; i < n; i++) {
        least = fmin(least, x[i]);
        greatest = fmax(greatest, x[i]);
    }
    return greatest > 0 ? least / greatest : 1;
}

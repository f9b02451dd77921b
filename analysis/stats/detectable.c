// SPDX-License-Identifier: Apache-2.0
// The runs' spread is their median absolute deviation, so that a spike does not hide what the other
// runs could show.
#include "analysis/stats/detectable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/median.h"

// Under a normal law: of a median absolute deviation to the standard deviation, what that lacks for
// few values (n / (n - 0.8), Croux and Rousseeuw, 1992), and of a median of three to their mean.
static const double MAD_TO_SIGMA = 1.4826, FEW_LACK = 0.8, MEDIAN_OF_THREE = 1.16;
static const double POWER = 2.8; // 1.96 for 95 % and 0.84 for 80 of 100

struct detectable series_detectable(const double *v, int from, int n, double one)
{
    int runs = n - from;
    struct detectable d = {runs, NAN, NAN, NAN};
    double *room = runs < DETECTABLE_RUNS_MIN ? NULL : malloc((size_t)runs * sizeof *room);
    if (!room)
        return d;
    memcpy(room, v + from, (size_t)runs * sizeof *room);
    double median = middle_of(room, runs);
    for (int i = 0; i < runs; i++)
        room[i] = fabs(v[from + i] - median) / (median + one);
    double sigma = MAD_TO_SIGMA * middle_of(room, runs) * runs / (runs - FEW_LACK);
    free(room);
    d.cv_percent = 100 * sigma;
    d.one_run_percent = POWER * sqrt(2) * d.cv_percent;
    d.three_run_percent = MEDIAN_OF_THREE * d.one_run_percent / sqrt(3);
    return d;
}

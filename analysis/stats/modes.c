// SPDX-License-Identifier: Apache-2.0
// Sorted, the repetitions are cut at each gap that leaves two on either side. There are two levels
// if a gap is many times as wide as the values of the wider side are apart. How many times depends
// on the number of repetitions on the smaller side: a few slow ones may be alike by chance.
#include "analysis/stats/modes.h"

#include <math.h>

#include "analysis/stats/stats.h"
#include "base/cleanup.h"

// By number of repetitions on the smaller side, the last for all others. Set by simulation, so that
// heavy tails (12 % of the repetitions 1.2 to 2.8 times too slow) alarm in less than 1 of 100.
static const double gap_times[] = {INFINITY, INFINITY, 45, 10, 5.5, 4, 3};
static const double LEVELS_APART = 1.05;  // less is no news
static const double SPREAD_LEAST = 0.004; // three equal values are no proof of a level

struct modes modes_find(double *medians, int k)
{
    struct modes m = {0};
    double best = 1;
    stats_sort(medians, k);
    for (int low = 2; k >= MODES_REPETITIONS_MIN && low <= k - 2; low++) {
        int fewer = low < k - low ? low : k - low, last = (int)COUNT_OF(gap_times) - 1;
        double gap = log(medians[low] / medians[low - 1]);
        double spread =
            fmax(log(medians[low - 1] / medians[0]), log(medians[k - 1] / medians[low]));
        double times = gap / fmax(spread, SPREAD_LEAST) / gap_times[fewer < last ? fewer : last];
        if (gap < log(LEVELS_APART) || !(times > best))
            continue;
        best = times;
        m = (struct modes){true, stats_quantile(medians, low, 0.5),
                           stats_quantile(medians + low, k - low, 0.5), (double)(k - low) / k};
    }
    return m;
}

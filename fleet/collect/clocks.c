// SPDX-License-Identifier: Apache-2.0
// Clocks that are wrong by themselves are wrong by different amounts. So where most nodes differ
// from ours by the same, ours is the wrong one: that is one fault, not one of each node.
#include "fleet/collect/clocks.h"

#include <math.h>

#include "analysis/stats/median.h"

int64_t clocks_common(double *skews, int n, int all)
{
    int agree = 0;
    double common = middle_select(skews, n);
    for (int i = 0; i < n; i++)
        agree += fabs(skews[i] - common) <= NODE_SKEW_MAX_MS;
    bool most = agree >= CLOCKS_AGREE && agree > all / 2;
    return most && fabs(common) > NODE_SKEW_MAX_MS ? (int64_t)common : 0;
}

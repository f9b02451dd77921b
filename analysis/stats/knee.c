// SPDX-License-Identifier: Apache-2.0
// The knee is the point farthest below the line from the first point to the last, in units of
// the curve's own ranges, so that the unit of an axis does not move it.
#include "analysis/stats/knee.h"

#include <math.h>

static const double WORTH = 0.25; // rise of y over the curve
static const double CLEAR = 0.10; // distance from the line, of 1

int knee_of(const double *x, const double *y, int n)
{
    int best = -1;
    double farthest = CLEAR;
    if (n < 4)
        return -1;
    double wide = x[n - 1] - x[0], high = y[n - 1] - y[0];
    if (!(wide > 0) || !(high > WORTH * y[0]))
        return -1;
    for (int i = 1; i < n - 1; i++) {
        double below = (x[i] - x[0]) / wide - (y[i] - y[0]) / high;
        if (isfinite(below) && below > farthest) {
            farthest = below;
            best = i;
        }
    }
    return best;
}

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

double knee_busy(const double *x, const double *y, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, x[i]);
    double want = KNEE_BUSY_SHARE * most;
    for (int i = 1; most > 0 && i < n; i++)
        if (x[i] >= want && x[i - 1] < want)
            return y[i - 1] + (want - x[i - 1]) / (x[i] - x[i - 1]) * (y[i] - y[i - 1]);
    return NAN;
}

bool knee_is_loaded(double mbps)
{
    return isnan(mbps) || mbps > 0;
}

// --- Where to place points ---------------------------------------------------------------------

void load_curve_add(struct load_curve *c, int level, double x, double y)
{
    int at = 0;
    while (at < c->n && c->level[at] < level)
        at++;
    bool there = at < c->n && c->level[at] == level;
    if (!there && c->n > SPEC_STEPS_MAX)
        return;
    for (int i = c->n; !there && i > at; i--) {
        c->level[i] = c->level[i - 1];
        c->x[i] = c->x[i - 1];
        c->y[i] = c->y[i - 1];
    }
    c->n += !there;
    c->level[at] = level;
    c->x[at] = x;
    c->y[at] = y;
}

// The value at `level`, on the line between the points beside it.
static double knee_between(const struct load_curve *c, const double *v, int level)
{
    int at = 1;
    while (at < c->n - 1 && c->level[at] < level)
        at++;
    if (c->n < 2)
        return c->n ? v[0] : NAN;
    double share = (double)(level - c->level[at - 1]) / (double)(c->level[at] - c->level[at - 1]);
    return v[at - 1] + share * (v[at] - v[at - 1]);
}

static double knee_range(const double *v, int n)
{
    double lo = INFINITY, hi = -INFINITY;
    for (int i = 0; i < n; i++) {
        lo = fmin(lo, v[i]);
        hi = fmax(hi, v[i]);
    }
    return hi - lo;
}

static double knee_piece(const struct load_curve *c, int from, int to)
{
    double wide = knee_range(c->x, c->n), high = fmax(knee_range(c->y, c->n), WORTH * c->y[0]);
    double dx = knee_between(c, c->x, to) - knee_between(c, c->x, from);
    double dy = knee_between(c, c->y, to) - knee_between(c, c->y, from);
    double length = hypot(wide > 0 ? dx / wide : 0, high > 0 ? dy / high : 0);
    return isfinite(length) ? length : 0;
}

int load_curves_next(const struct load_curve *c, int curves, const int *level, int n)
{
    double longest = -1;
    int best = -1;
    if (!n || level[0] != 0)
        return 0;
    if (level[n - 1] != 100)
        return 100;
    for (int i = 1; i < n; i++) {
        double length = 0;
        for (int k = 0; k < curves; k++)
            length = fmax(length, knee_piece(&c[k], level[i - 1], level[i]));
        if (level[i] - level[i - 1] < 2 || length <= longest)
            continue;
        longest = length;
        best = (level[i - 1] + level[i]) / 2;
    }
    return best;
}

int load_curve_next(const struct load_curve *c)
{
    return load_curves_next(c, 1, c->level, c->n);
}

// SPDX-License-Identifier: Apache-2.0
// The knee of a loaded-latency curve, and where to place its points. Pure.
#pragma once
#include "model/spec.h"

// Index of the point after which latency (y) grows fastest for what bandwidth (x) it buys: the
// point farthest below the line from the first to the last, both axes scaled to 0…1 (Satopää et
// al., "Finding a Kneedle in a Haystack", 2011). -1 when there are fewer than 4 points, when x does
// not grow, or when y rises by less than a quarter over the whole curve: then there is no knee to
// speak of.
int knee_of(const double *x, const double *y, int n);

#define KNEE_BUSY_SHARE 0.8 // of the highest bandwidth: what a busy node may reach and still answer
// y where x first reaches KNEE_BUSY_SHARE of its highest value, between the points beside it; NaN
// if that is not known.
double knee_busy(const double *x, const double *y, int n);

// Whether anything was moved at full load, of which `mbps` is the bandwidth. A rank that is alone
// on its node chases at each level as if idle. What is not known (NaN) counts as moved.
bool knee_is_loaded(double mbps);

// A curve as far as it is known: points by rising level of load, 0 to 100 %.
struct load_curve {
    int n;
    int level[SPEC_STEPS_MAX + 1];
    double x[SPEC_STEPS_MAX + 1], y[SPEC_STEPS_MAX + 1];
};

// Keeps the order of levels; a level that is there already is replaced.
void load_curve_add(struct load_curve *c, int level, double x, double y);
// The level at which a further point is worth most: the middle of the longest piece of the curve,
// both axes scaled to 0…1. So points are close where latency rises steeply, and no piece is long. A
// rise of y below a quarter is not scaled up: it would be noise. Begins with idle (0) and full
// (100); -1: no two levels have another between them.
int load_curve_next(const struct load_curve *c);
// The same for several curves with common levels `level` (`n`, rising): the piece that is longest
// in any of them, by interpolation.
int load_curves_next(const struct load_curve *c, int curves, const int *level, int n);

// SPDX-License-Identifier: Apache-2.0
// The knee of a loaded-latency curve. Pure.
#pragma once

// Index of the point after which latency (y) grows fastest for what bandwidth (x) it buys: the
// point farthest below the line from the first to the last, both axes scaled to 0…1 (Satopää et
// al., "Finding a Kneedle in a Haystack", 2011). -1 when there are fewer than 4 points, when x does
// not grow, or when y rises by less than a quarter over the whole curve: then there is no knee to
// speak of.
int knee_of(const double *x, const double *y, int n);

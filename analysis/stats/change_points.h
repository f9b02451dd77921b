// SPDX-License-Identifier: Apache-2.0
// Since when? Change points of a series of one metric, run by run. After E-divisive (Matteson and
// James, 2014), on ranks instead of values: the cut with the largest standardised difference of
// mean rank is tested by permutation (fixed seed: same series, same answer), each part is searched
// again, and at the end every cut is tested once more between its neighbours. Ranks and a minimal
// length of segments keep a single spike, however high, from ever being a change. Pure.
#pragma once
#include "base/err.h"

enum { SERIES_POINTS_MAX = 100000, SERIES_CHANGES_MAX = 32 };

struct series_options {
    int segment_min;          // points on either side of a change, >= 2
    double level;             // p at most this
    double threshold_percent; // smaller changes of the median do not matter
    double one;               // added to values before they are divided: metric_one()
};
#define SERIES_DEFAULTS                                                                            \
    ((struct series_options){.segment_min = 5, .level = 0.002, .threshold_percent = 3})

struct change_point {
    int at;                        // first point after the change
    double before, after, percent; // medians of the segments on its sides
    double p;
};

// *points is malloc'ed (caller frees), ascending; NULL if none. v: finite, above 0. Returns how
// many, or -1: ERR_INVALID names the point, ERR_NO_MEMORY. *searched: these many of the newest
// values were searched. Not all, where there were more than SERIES_CHANGES_MAX changes (those are
// the newest) or so many that finding them is too much work.
int series_changes(struct change_point **points, int *searched, const double *v, int n,
                   const struct series_options *options, struct err *err);

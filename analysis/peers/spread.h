// SPDX-License-Identifier: Apache-2.0
// Centre and spread of the ordinary ones among many values, whatever the others are: up to nearly
// half of them may be anywhere. Pure.
#pragma once

struct spread {
    double centre; // median of the ordinary ones
    double scale;  // what a standard deviation would be without the others
    int n;         // values, all of them
};

// Begins with the shortest half of the values. Then takes the median and 1.4826 times the median
// absolute deviation of what lies within 3 scales, until both stay. `sorted` ascends, n >= 1. The
// scale is at least `floor`.
struct spread spread_of(const double *sorted, int n, double floor);

// A median absolute deviation of n values says as much about their scale as a standard deviation
// with so many degrees of freedom.
double spread_freedom(int n);

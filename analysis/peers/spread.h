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
// absolute deviation of what lies within 3 scales, until both stay. Among few values the scale is
// at least 0.84 / (1 + n / 300) of what their distances from each other say (Qn). It is at least
// `floor`. `sorted` ascends, n >= 1.
struct spread spread_of(const double *sorted, int n, double floor);

// Degrees of freedom of Student's t, by simulation (tests/perf/spread_tail prints how exact they
// are). What a value is above the centre, in scales: of one of the n values that the spread is of,
// n >= 8 (a far value hardly widens its own scale, and never by much).
double spread_member_freedom(int n);
// The same of a further value, and of the centre in its standard errors; n >= 3. Below 1 for n = 3.
double spread_freedom(int n);

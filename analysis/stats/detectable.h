// SPDX-License-Identifier: Apache-2.0
// How large must a change of a series be to be seen? From what its runs differ by while nothing
// changes. Pure.
#pragma once

enum { DETECTABLE_RUNS_MIN = 5 }; // fewer say too little about what runs differ by

struct detectable {
    int runs;                 // since the last change
    double cv_percent;        // what they differ by: standard deviation over median
    double one_run_percent;   // between a run and another: seen in 80 of 100 cases at 95 %
    double three_run_percent; // the same between the medians of three runs each
};

// v: above 0, in order of time, `from`: the first after the last change; `one` as in struct
// series_options. Below DETECTABLE_RUNS_MIN runs all per cent are NaN.
struct detectable series_detectable(const double *v, int from, int n, double one);

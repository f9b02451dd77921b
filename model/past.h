// SPDX-License-Identifier: Apache-2.0
// How long stored runs of the same request took. They stand for all that the speeds of an estimate
// do not know (model/estimate.h).
#pragma once
#include "model/spec.h"

struct past_run {
    int64_t run; // its number
    int n_ranks;
    double seconds;
    bool processes; // started without mpirun
    struct spec spec;
};

enum { PAST_RUNS_MAX = 3 };
struct past_runs {
    int n;
    struct past_run list[PAST_RUNS_MAX]; // the newest first, disturbed ones last
};

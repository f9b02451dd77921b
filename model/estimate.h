// SPDX-License-Identifier: Apache-2.0
// How long a run takes: arithmetic on a spec and its workload with assumed speeds, before anything
// is measured.
#pragma once
#include "model/spec.h"
#include "model/workload.h"

// Seconds that a run of `s` takes: starting the ranks, measuring, ending. `s` may differ in effort
// from the spec that the workload is made from.
double estimate_s(const struct spec *s, const struct workload *w);
// The same with all that a run may do besides, where it finds something: at least estimate_s(),
// unless the budget is less.
double estimate_most_s(const struct spec *s, const struct workload *w);
// Of a time limit so many seconds are left free, for starting `ranks` and ending them. Measuring
// ends before them (bench/session/time_limit.c), and a run that would need them is refused.
double estimate_free_s(double limit_s, int ranks);

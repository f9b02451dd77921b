// SPDX-License-Identifier: Apache-2.0
// How long a run takes: arithmetic on a spec and its workload with assumed speeds, before anything
// is measured.
#pragma once
#include "model/past.h"
#include "model/spec.h"
#include "model/workload.h"

// Seconds that a run of `s` takes: starting the ranks, measuring, ending. `s` may differ in effort
// from the spec that the workload is made from.
double estimate_s(const struct spec *s, const struct workload *w);
// The same with all that a run may do besides, where it finds something: at least estimate_s(),
// unless the budget is less.
double estimate_most_s(const struct spec *s, const struct workload *w);
// Estimates of `w` count from here on with how many times its estimate a run of the same request
// took (w->past): the median of those with as many ranks, of two the lesser. A first run on a node
// may be slow, and a busy node makes runs longer, never shorter. Without such a run they do not.
void estimate_learn(struct workload *w, const struct past_runs *past);
// Of a time limit so many seconds are left free, for starting `ranks` and ending them. Measuring
// ends before them (bench/session/time_limit.c), and a run that would need them is refused.
double estimate_free_s(double limit_s, int ranks);

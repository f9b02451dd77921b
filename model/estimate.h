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
// How many times its estimate a run of the same request took: the median of those with as many
// ranks as the workload, of two the lesser. A first run on a node may be slow, and a busy node
// makes runs longer, never shorter. Estimates of `w` count with it as w->past. Without such a run
// .run is 0.
struct found_speed estimate_past(const struct past_runs *past, const struct workload *w);
// Of a time limit so many seconds are left free, for starting `ranks` and ending them. Measuring
// ends before them (bench/session/time_limit.c), and a run that would need them is refused.
double estimate_free_s(double limit_s, int ranks);

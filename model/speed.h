// SPDX-License-Identifier: Apache-2.0
// Speeds that a time estimate assumes, and the metric of stored runs that replaces each
// (core/results/found_speeds.h). Another one is a row of the table in model/speed.c.
#pragma once
#include <stdbool.h>

#include "base/jsonw.h"
#include "model/spec.h"
#include "model/topology.h"

struct speed_info {
    const char *name;            // stable
    enum benchmark_id benchmark; // whose runs have it
    const char *metric;          // of such a run
    const char *without;         // a parameter's "name=" that makes it another metric; "": none
    double assumed;              // of the metric, in its unit
    bool is_rate;                // the metric grows when less time is taken
    bool only_own;               // no other benchmark's time follows from it
};
extern const struct speed_info speed_infos[SPEEDS];

// A stored run moves an estimate so far at most, up or down.
#define SPEED_TIMES_MOST 4.0

double speed_bound(double times); // no further from 1
// How many times the assumed time a value of the metric stands for, within the bounds. 0: the value
// is none.
double speed_times(enum speed speed, double value);
// The factor that an estimate counts with. `found`: of each speed.
double speed_factor(const struct found_speed *found, enum speed speed);
// [{"speed":"base_page","benchmark":"pagefault","run":7,"times":1.45},…]: those of `found` that
// the time of `benchmark` may follow from.
void speeds_write_json(const struct found_speed *found, enum benchmark_id benchmark,
                       struct jsonw *w, const char *key);

// SPDX-License-Identifier: Apache-2.0
// The clock of a core, seen at each repetition of a cell: a difference between ranks or between
// repetitions is then known to be one of the clock, not of the memory.
#pragma once

struct cycle_seen { // over the repetitions; starts all zero
    double least_ns, most_ns, sum_ns;
    int n;
};

// About half a millisecond of dependent instructions, after the warm-up. They touch no memory.
void reference_clock_take(struct cycle_seen *seen);
double reference_clock_mean_ns(const struct cycle_seen *seen); // NaN: never seen
// Slowest over fastest repetition; 1 if never seen.
double reference_clock_change(const struct cycle_seen *seen);

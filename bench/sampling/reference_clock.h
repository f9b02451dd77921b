// SPDX-License-Identifier: Apache-2.0
// The clock of a core, seen at each repetition of a cell: a difference between ranks or between
// repetitions is then known to be one of the clock, not of the memory.
#pragma once

struct cycle_seen { // over the repetitions; starts all zero
    double least_ns, most_ns, sum_ns;
    double loads_ns; // sum of the times of a load from L1
    int n;
};

// About a millisecond after the warm-up: dependent instructions that touch no memory, then
// dependent loads from L1.
void reference_clock_take(struct cycle_seen *seen);
double reference_clock_mean_ns(const struct cycle_seen *seen); // NaN: never seen
// A load from L1 in cycles of that clock, mean of the repetitions: 3 to 5 on the CPUs that we know,
// whatever the clock is.
double reference_clock_load_cycles(const struct cycle_seen *seen);
// Slowest over fastest repetition; 1 if never seen.
double reference_clock_change(const struct cycle_seen *seen);

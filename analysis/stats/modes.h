// SPDX-License-Identifier: Apache-2.0
// Do the repetitions of a cell have two levels? On a virtual machine the host moves the CPUs
// between two cores and one core's two threads: a cache-line transfer then takes 20 ns or 59, and
// the median is one of them by chance. Pure.
#pragma once
#include <stdbool.h>

enum { MODES_REPETITIONS_MIN = 6 }; // fewer show no two levels

struct modes {
    bool two;
    double low, high;  // medians of the two levels
    double high_share; // of the repetitions
};

// `medians` of the repetitions, above 0, in any order; they are sorted. At most 1 of 100 cells
// without two levels is said to have them (docs/METHOD.md has the simulation).
struct modes modes_find(double *medians, int k);

// SPDX-License-Identifier: Apache-2.0
// A baseline with its numbers: the middle of its runs, to compare others with.
#pragma once
#include "core/results/machine_then.h"
#include "core/results/stored_run.h"
#include "core/store/baselines.h"

struct reference {
    struct stored_run first; // its parameters, where its ranks ran
    struct matrix *list;     // the middle of all runs; owned
    int n;
    struct buf variant; // owned
    // Medians over the runs of what their ranks have (analysis/stats/median.h); NaN: not known.
    double off_cpu, clock_ghz, least_clock_ghz;
    double noise_percent;     // baseline_noise, of the matrix where it is largest; NaN: not known
    struct machine_then then; // of the last run
};

// All runs succeeded, of one benchmark, method and variant, with the same axes; else ERR_CONFLICT
// (member "runs") says which is not and why.
int reference_check(struct store *s, const struct baseline *b, struct err *err);
// The same, and the numbers.
int reference_load(struct store *s, const struct baseline *b, struct reference *out,
                   struct err *err);
void reference_fini(struct reference *r);

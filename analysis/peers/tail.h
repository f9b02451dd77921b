// SPDX-License-Identifier: Apache-2.0
// How likely a node's value is by chance: by what its peers differ by, and by what its own runs
// scatter more than theirs. All findings are made by these functions. Pure.
#pragma once
#include "analysis/peers/newest.h"
#include "analysis/peers/spread.h"

// What a node's own runs add to the error of its value or mean, beyond its peers'.
struct tail_error {
    double own, freedom;  // what they show, if they show any; degrees of freedom of that
    double chance, noisy; // how likely they do not show that the node is a noisy one; then so much
};

// p of a value that is so far above the centre of its kind. As far as it is sure that the node
// scatters more than its peers (`share`), its own error counts, else only their scale. As far as
// it may do so all the same (`chance`), the error of noisy nodes counts. `own` may be NULL.
// `change`: the value is a change, and the runs before err as well.
double tail_value(const struct spread *s, double above, const struct newest_scatter *own,
                  bool change);
// So far above the centre its p is `tail`.
double tail_reach(const struct spread *s, double tail, const struct newest_scatter *own,
                  bool change);
// In logs.
struct tail_error tail_error_of(const struct newest_scatter *own, bool change);
// p of a mean over metrics. `own` counts in full.
double tail_mean(const struct spread *s, double above, const struct tail_error *e);

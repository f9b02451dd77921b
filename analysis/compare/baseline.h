// SPDX-License-Identifier: Apache-2.0
// Several runs as one: the cell-wise median, with what the runs differ by as its interval. Pure.
//
// How much runs scatter is pooled over the cells of a matrix (in logs), since a few runs say little
// about one cell. The interval of a cell reaches 1.96 sqrt(2) s sqrt(1 + 1.57 / k) to either side,
// s the scatter and k the runs (1.57: the variance of a median against a mean's): wide enough for
// the median and for one more run, as the interval of a cell is meant. It is never narrower than
// the median of the runs' own intervals.
#pragma once
#include "model/matrix.h"

enum { BASELINE_RUNS_MAX = 16 }; // a fortnight of nightly runs; 16 x 27 MB at the very worst

// ERR_CONFLICT (member "runs") says what differs: the quantity, the unit or an axis.
int baseline_fits(const struct matrix *a, const struct matrix *b, struct err *err);

// Matrix of run r: list[r]. All with the same name, and as baseline_fits() wants them. n >= 1; one
// run gives a copy.
int baseline_middle(struct matrix *out, const struct matrix *const *list, int n, struct err *err);

// Of such matrices: per cent by which a further run as a whole may well differ from that middle (95
// %, Student's t of the runs' means): what is below is no news. NaN for fewer than three runs: they
// cannot say.
double baseline_noise(const struct matrix *const *list, int n);

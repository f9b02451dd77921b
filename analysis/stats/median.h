// SPDX-License-Identifier: Apache-2.0
// The median of a few values, and where a matrix keeps a rank or a size.
#pragma once
#include <stdint.h>

#include "model/matrix.h"
#include "model/record.h"

double middle_of(double *v, int n);       // sorts v; NaN if n is 0
double middle_if_known(double *v, int n); // NaN if one of them is, too: ends of intervals
// middle_of() in a time that grows with n only; v comes into another order.
double middle_select(double *v, int n);
int axis_index(const struct axis *a, int64_t value); // -1: none
// Memory node of a rank, else its CPU's node; -1 if not known. Of many ranks:
// analysis/stats/rank_places.h.
int64_t node_of_rank(const struct rank_info *ranks, int n, int64_t rank);

// Share of the samples of all these matrices that were left out as disturbed; NaN: not recorded.
// From SAMPLES_DOUBTFUL on a report states it first.
#define SAMPLES_DOUBTFUL 0.2
double samples_disturbed(const struct matrix *list, int n);
// The cell is doubtful: that share of its samples was left out, or all but one.
bool cell_disturbed(const struct cell *c);

// Of the rank that was off its CPU most: the share of its measuring time. NaN: not known.
double ranks_off_cpu(const struct rank_info *ranks, int n);
// Clocks of the ranks in GHz: their median, and that of the slowest. NaN: not known.
double ranks_clock(const struct rank_info *ranks, int n);
double ranks_least_clock(const struct rank_info *ranks, int n);

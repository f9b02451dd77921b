// SPDX-License-Identifier: Apache-2.0
// The samples of one cell, or of several together, as one histogram, and what follows from it.
// Pure.
#pragma once
#include "model/matrix.h"

// Of the cells in `row` and `col`; -1: of all. Returns how many of them have a sketch; 0: *out is
// untouched. Of several cells, each sample is within one bin of its place.
int pooled_cells(struct histogram *out, const struct matrix *m, int row, int col);
// The lower edge of bin i, 0 … n_bins; the last is the highest edge.
double pooled_edge(const struct histogram *h, int i);
// Within one bin of the samples' own; 0 <= q <= 1.
double pooled_quantile(const struct histogram *h, double q);

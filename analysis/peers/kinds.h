// SPDX-License-Identifier: Apache-2.0
// Hidden kinds: do the nodes of one class have two levels or more, such as two populations of
// DIMMs? Each kind is then judged by itself. One median and one spread over two kinds would call
// hundreds of good nodes slow. Pure.
#pragma once
#include "analysis/peers/spread.h"

enum {
    KINDS_MAX = 8,
    KIND_NODES_MIN = 8, // and KIND_SHARE_MIN of all: less are single nodes
};
#define KIND_SHARE_MIN 0.05
#define KIND_WIDTHS_MIN                                                                            \
    3.5 // between their means: nearer ones cannot be distinguished from one wide kind
#define KIND_SCALE_MIN 0.0025 // log: less is no spread that one could rely on

struct kind {
    int begin, end; // of the sorted values
    double below;   // values up to here belong to it; infinite: all that are left
    struct spread spread;
};

struct kinds {
    int n; // >= 1, ascending
    struct kind list[KINDS_MAX];
};

// Values are logs, ascending, n >= 1. Two normal distributions of one width are fitted to the
// middle 96 %. They are two kinds if BIC says so, each has enough nodes, their means are
// KIND_WIDTHS_MIN widths and `least` apart, and neither is more than 2.5 times as wide as that (a
// long tail is no kind). Each kind is then searched for further ones. No width and no scale is
// below `grain` (0: it is not known), nor a scale below KIND_SCALE_MIN.
void kinds_find(struct kinds *out, const double *sorted, int n, double least, double grain);
// All values as one kind.
void kinds_one(struct kinds *out, const double *sorted, int n, double grain);
int kinds_of(const struct kinds *k, double value); // the kind to which a value belongs
// The one with most values; of equal ones the lowest.
int kinds_largest(const struct kinds *k);

// SPDX-License-Identifier: Apache-2.0
// Which part of a table is unlike the rest? A slow column of eight, a slow rank, the larger sizes
// of one node: what a median over the table hides. Pure; docs/VERDICTS.md has the method.
//
// Candidates are all crossings of a set of rows and a set of columns: all, one, a node's, and,
// where the axis has an order, all from one on or up to one. The candidate that explains most (the
// largest squared t of its mean) becomes a part if that is no chance among all candidates; the
// search is then repeated in what is left, until nothing is found or there are PARTS_MAX.
//
// Two guards against false alarms. p is multiplied by the number of candidates. And where eight
// candidates of a kind exist (rows, columns, cells …), their typical t says how large chance really
// makes it: intervals that are too narrow, or ranks that all drift, raise no alarm.
#pragma once
#include <stdbool.h>

#include "base/err.h"

enum part_kind { PART_ALL, PART_ONE, PART_GROUP, PART_FROM, PART_UPTO, PART_KINDS };

struct part_set {
    enum part_kind kind;
    int at; // the row or column, or the number of the group
};

struct part {
    struct part_set rows, cols;
    int class;    // of cells, over the whole table; -1: rows and columns say which
    double p;     // of its mean, corrected for all candidates, when it was found
    double level; // median of its values
};

// `value`: logs, 0 is "as expected"; NaN: no such cell. `var`: of the value, with `df` degrees of
// freedom; NaN: not known, then what neighbours differ by stands for it.
struct parts_table {
    int rows, cols;
    const double *value, *var, *df;   // rows × cols each
    const int *row_group, *col_group; // of each row and column, -1: none; NULL: there are none
    int n_row_groups, n_col_groups;
    bool rows_ordered, cols_ordered;
    bool symmetric;           // rows and columns are the same ranks: both halves are filled alike
    const signed char *class; // of each cell, 0 or 1, -1: none; NULL: there are none
};

struct parts_options {
    double least; // log: a mean closer to 0 is no part
    double same;  // log: nor is one whose 95 % interval lies within this
    double lone;  // log: one cell alone must differ by this much
    double level; // of p
};

enum { PARTS_MAX = 8 };

struct parts {
    int n;
    bool more; // than PARTS_MAX
    struct part list[PARTS_MAX];
    int *label; // of each cell its part, -1: none; the smallest where it is in several; owned
};

// ERR_NO_MEMORY is the only error.
int parts_find(struct parts *out, const struct parts_table *t, const struct parts_options *o,
               struct err *err);
void parts_fini(struct parts *p);

// SPDX-License-Identifier: Apache-2.0
// Names of nodes as runs of numbers: "node[0001-0870]". Ten thousand names are a few bytes, and
// each run expands by counting.
#pragma once
#include "base/jsonw.h"

// Writes names as they come, joined where one is the next number of the one before.
struct name_runs {
    struct jsonw *w;          // borrowed; in an array
    char prefix[64], end[64]; // around the number
    int digits;               // of the number; 0: the name has none
    long first, last;
    int n; // names in the run
};
void name_runs_add(struct name_runs *r, const char *name);
void name_runs_end(struct name_runs *r);

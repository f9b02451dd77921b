// SPDX-License-Identifier: Apache-2.0
// Mixes of reads and writes that a loaded run can have as its load.
#pragma once
#include "model/spec.h"

// A mix, and the matrices of its curve.
struct load_mix {
    const char *name; // as in the parameter mix
    enum load_kind kind;
    const char *latency, *bandwidth;
};

// The mixes of a loaded run, each once, in the order requested. ERR_INVALID on "mix".
int mix_list(const struct spec *s, const struct load_mix *list[SPEC_MIXES_MAX], int *n,
             struct err *err);
// The mix of a matrix by its name, "latency_3r1w"; NULL: the run named none.
const struct load_mix *mix_of_matrix(const char *matrix);

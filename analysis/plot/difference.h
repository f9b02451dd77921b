// SPDX-License-Identifier: Apache-2.0
// Two runs as one picture: the verdict, the curves of both over each other, and a heat map of the
// differences of B against A. Pure.
#pragma once
#include "analysis/compare/comparison.h"
#include "analysis/plot/picture.h"
#include "base/buf.h"

struct difference_picture { // all borrowed
    struct plot plot;       // of A: run, matrix, ranks, marks
    const struct run *other;
    const struct matrix *other_matrix;
    const struct comparison *comparison; // of the two matrices
    enum verdict verdict;                // on the two runs
    const char *text;                    // what it rests on
    const struct buf *facts;             // what differs between the machines, a sentence
};

// ERR_NO_MEMORY is the only error.
int difference_write_svg(const struct difference_picture *d, struct buf *out, struct err *err);
// The differences alone as characters: `percent` and `doubtful` of the cells of p->matrix, NaN
// where there is none.
int difference_write_text(const struct plot *p, const double *percent, const bool *doubtful,
                          const struct plot_text *how, struct buf *out, struct err *err);

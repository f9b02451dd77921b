// SPDX-License-Identifier: Apache-2.0
// How samples are distributed, as a picture: a histogram, and the share of samples below each
// value. Pure; the same data give the same bytes.
#pragma once
#include "analysis/plot/picture.h"
#include "analysis/stats/pooled.h"
#include "base/buf.h"

enum { DISTRIBUTION_TITLE_ROOM = 160 };

struct distribution { // borrowed
    const struct histogram *histogram;
    const char *title, *unit;
    int cells; // whose samples these are
};

// "Concurrent latency, rank 0, working set 256M"; row or col -1: of all.
void distribution_title(const struct matrix *m, int row, int col, char *out, size_t room);
// `run` is what the heading says. ERR_NO_MEMORY is the only error.
int distribution_write_svg(const struct distribution *d, const struct run *run, struct buf *out,
                           struct err *err);
// The same in characters, without colour.
int distribution_write_text(const struct distribution *d, const struct plot_text *how,
                            struct buf *out, struct err *err);

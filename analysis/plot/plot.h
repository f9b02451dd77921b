// SPDX-License-Identifier: Apache-2.0
// A measured matrix as a picture: SVG text that shows the same in every viewer, light or dark,
// without scripts, fonts or anything else from elsewhere. Pure; the same data give the same bytes.
//
//   lines     latency by working set, ping-pong by message, bandwidth by threads, by load
//   lines     latency against the bandwidth of the load (both matrices of a loaded run), knee
//   marked heat map  all else: rank x target, rank x rank, initiator x target, rank x access
#pragma once
#include "analysis/plot/picture.h"
#include "base/buf.h"

// Each capacity of a data cache once, ascending; `t` NULL: none.
void plot_marks_from(struct plot *p, const struct topology *t);
// The matrix `name` of a run (NULL or "": the first, with the curves of all mixes of reads and
// writes where there are several), with the bandwidth that belongs to it. The other members stay as
// they are. ERR_NOT_FOUND (member "matrix") says which there are.
int plot_choose(struct plot *p, const struct matrix *list, int n, const char *name,
                struct err *err);

// Without the heading: `run` and the marks are not used. ERR_NO_MEMORY is the only error.
int plot_write_text(const struct plot *p, const struct plot_text *how, struct buf *out,
                    struct err *err);
// ERR_NO_MEMORY is the only error; `out` may hold a part then.
int plot_write_svg(const struct plot *p, struct buf *out, struct err *err);

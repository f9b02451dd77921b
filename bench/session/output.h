// SPDX-License-Identifier: Apache-2.0
// The output of rank 0: records on a channel for the daemon, or, by hand, diagnostics,
// table, CSV or JSON on stdout. It speaks only between cells, when no rank measures.
#pragma once
#include "base/err.h"
#include "bench/ranks/board.h"
#include "bench/session/emit.h"

// Opens the channel (waits for its reader), if there is one. Nothing else is known yet.
int emit_open(struct emit *e, const struct options *o, struct err *err);
// Says hello; by hand prints the diagnostics.
int emit_begin(struct emit *e, int ranks, const char *launcher, uint64_t line_bytes,
               struct err *err);
// Announces the matrices, once, before their cells. They are taken over, also on failure.
int emit_matrices(struct emit *e, const struct matrix *matrices, int n, struct err *err);
int emit_progress(struct emit *e, enum phase phase, int64_t done, int64_t total, int64_t eta_ms,
                  struct err *err);
// Of the control pairs, which are measured before it is known how many cells there are.
int emit_controls(struct emit *e, int percent, struct err *err);
int emit_cell(struct emit *e, const char *matrix, int row, int col, const struct cell *c,
              struct err *err);
int emit_pairs(struct emit *e, int64_t most, struct err *err); // fewer than planned
int emit_condition(struct emit *e, const struct condition *c, struct err *err);
// Ranks, phases and the end record; by hand the results.
int emit_end(struct emit *e, const struct board *b, struct err *err);
// The same without the end record, for a run whose time limit left out cells: emit_failure follows.
int emit_part(struct emit *e, const struct board *b, struct err *err);
// The end record of a failure (as far as the channel still takes it), or a line on stderr.
void emit_failure(struct emit *e, const struct err *why);
void emit_fini(struct emit *e);

// SPDX-License-Identifier: Apache-2.0
// Each cache line of a pair by itself: the home of a line (which slice of the cache, which agent)
// follows from its address, so lines of one pair differ. The cells of a pair are sorted, the
// fastest line first: which line that is differs from run to run, with its physical address.
#pragma once
#include "bench/sampling/sampler.h"
#include "bench/session/session.h"

struct c2c_lines {
    struct session *s; // borrowed
    int n_shapes;      // matrices
    int (*pairs)[2];   // the rows; owned
    int n_pairs;
    struct cell_sum *sums; // [row][shape][line], used by the first rank of a pair; owned
};

// For the pairs that are requested; of all, one of each class where these would be too many cells.
int c2c_lines_init(struct c2c_lines *l, struct session *s, int n_shapes, struct err *err);
void c2c_lines_fini(struct c2c_lines *l);
int c2c_lines_make(const struct c2c_lines *l, struct matrix *m, const struct shape *shape,
                   struct err *err);
int c2c_lines_row(const struct c2c_lines *l, int first, int second); // -1: none

// The first rank of a pair: a sample on a line, the end of a visit, all visits. The cells are then
// on its slot, those of a shape one after the other.
int c2c_lines_add(struct c2c_lines *l, int row, int shape, int line, const struct sample *x,
                  struct err *err);
void c2c_lines_next_visit(struct c2c_lines *l, int row, int shape);
int c2c_lines_sum_up(struct c2c_lines *l, int row, int shape, struct err *err);
// Rank 0, of the cells on that slot.
int c2c_lines_report(const struct c2c_lines *l, int row, int shape, const char *matrix,
                     struct err *err);

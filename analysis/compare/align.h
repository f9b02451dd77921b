// SPDX-License-Identifier: Apache-2.0
// The first half of a comparison: may the two be compared, and which row and column of B belongs to
// which of A? Part of analysis/compare/compare.c.
#pragma once
#include "analysis/compare/comparison.h"

// Fills rows, cols, their partners and notes. ERR_CONFLICT names everything that differs.
int compare_align(struct comparison *c, const struct compare_side *a, const struct compare_side *b,
                  const struct compare_options *o, struct err *err);
__attribute__((format(printf, 2, 3))) void compare_note(struct comparison *c, const char *fmt, ...);

// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them. Documents for programs have %g.
#pragma once

enum { FIGURES_ROOM = 48 };

// As %.*g with so many significant figures, but never with an exponent: "12.57", "8841000",
// "0.00002". Beyond 10^±15 it has one. Returns out.
char *figures_text(double v, int figures, char out[static FIGURES_ROOM]);

// Per cent as documents have it, with two places. A text rounds this to one, because readers of the
// document can only do that: 0.5495 is 0.55 in a document, and 0.6 in a table that is made from it.
double percent_written(double v);

// Four figures, in a buffer that lives as long as the block.
#define FIGURES(v) figures_text(v, 4, (char[FIGURES_ROOM]){0})

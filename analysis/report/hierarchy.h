// SPDX-License-Identifier: Apache-2.0
// What the hierarchy benchmark found, a line per rank: "L1 4.0 cycles, L2 14, … memory 98 ns, walk
// +22 ns, hop +63 ns, 12 loads at once".
#pragma once
#include "analysis/report/source.h"
#include "base/buf.h"

// Nothing for matrices of other benchmarks. Without a topology levels are numbered as they come.
// ERR_NO_MEMORY is the only error.
int hierarchy_write_lines(const struct report_source *run, struct buf *out, struct err *err);

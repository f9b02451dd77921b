// SPDX-License-Identifier: Apache-2.0
// All that rank 0 has to report of a run.
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "bench/session/options.h"
#include "model/matrix.h"
#include "model/record.h"
#include "model/shape.h"

struct emit {
    const struct options *options;    // borrowed
    int fd;                           // of the channel; -1: by hand
    struct buf line;                  // being written
    struct matrix matrix[SHAPES_MAX]; // what is measured, in this order; owned
    int n_matrices;
    struct hello hello;
    int ranks;
    struct rank_info *rank;       // [ranks]; owned
    struct conditions conditions; // of a run by hand
    struct end end;
    uint64_t started_ns;
};

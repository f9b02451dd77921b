// SPDX-License-Identifier: Apache-2.0
// Whether each rank has a CPU of its own. Launchers and batch systems decide that; ranks that share
// a CPU take turns on it and measure each other.
#pragma once
#include "base/buf.h"
#include "bench/ranks/board.h"

// Appends what is wrong and how to start the ranks instead; nothing: each rank is bound to a CPU or
// a core, and no two to the same CPU. One rank alone needs no binding.
void binding_describe(const struct slot *slots, int ranks, struct buf *out);

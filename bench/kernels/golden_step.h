// SPDX-License-Identifier: Apache-2.0
// A step through a ring of places that visits all of them, each far from the one before, and any
// first few spread evenly. Pure.
#pragma once
#include <stdint.h>

// About the golden section of `n` (at least 1) places, and coprime to it.
uint64_t golden_step(uint64_t n);

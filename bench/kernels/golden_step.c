// SPDX-License-Identifier: Apache-2.0
// By the three-gap theorem the places of any first steps have at most three different distances,
// and with the golden section these are nearly alike.
#include "bench/kernels/golden_step.h"

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t golden_step(uint64_t n)
{
    uint64_t step = (uint64_t)((double)n * 0.6180339887);
    while (common_divisor(step, n) != 1)
        step++;
    return step;
}

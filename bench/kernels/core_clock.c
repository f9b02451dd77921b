// SPDX-License-Identifier: Apache-2.0
// Two chains of known lengths are timed, one twice as long as the other. What a call and the clock
// itself take is the same in both, so their difference is cycles alone.
#include "bench/kernels/core_clock.h"

#include <math.h>
#include <stdint.h>

#include "base/clock.h"

enum {
    UNROLL = 64,
    PIECE_STEPS = 65536
}; // 13 µs at 5 GHz: reading the clock is 0.2 % of it, and subtracted

#if defined(__x86_64__)
#define ADD "add %1, %0\n\t"
#define XOR "xor %1, %0\n\t"
#elif defined(__aarch64__)
#define ADD "add %0, %0, %1\n\t"
#define XOR "eor %0, %0, %1\n\t"
#elif defined(__riscv)
#define ADD "add %0, %0, %1\n\t"
#define XOR "xor %0, %0, %1\n\t"
#elif defined(__powerpc64__)
#define ADD "add %0, %0, %1\n\t"
#define XOR "xor %0, %0, %1\n\t"
#endif

#define TIMES4(x) x x x x
#define TIMES32(x) TIMES4(TIMES4(x x))

// Takes `steps` cycles, a multiple of UNROLL, and a few more for the call. The steps alternate
// additions and exclusive-ors of two registers: no CPU folds them, as some fold additions of
// constants.
static void core_clock_steps(uint64_t steps)
{
    uint64_t value = steps, other = 0x9e3779b97f4a7c15u;
    for (uint64_t turns = steps / UNROLL; turns; turns--) {
#ifdef ADD
        __asm__ volatile(TIMES32(ADD XOR) : "+r"(value) : "r"(other));
#else
        for (int i = 0; i < UNROLL / 2; i++) {
            value += other;
            __asm__ volatile("" : "+r"(value));
            value ^= other;
            __asm__ volatile("" : "+r"(value));
        }
#endif
    }
}

// The difference of two lengths leaves out what the call and the clock take.
double core_clock_cycle_ns(int tries)
{
    double once = INFINITY, twice = INFINITY;
    for (int i = 0; i < tries; i++) {
        uint64_t begin = clock_mono_ns();
        core_clock_steps(PIECE_STEPS);
        uint64_t middle = clock_mono_ns();
        core_clock_steps(UINT64_C(2) * PIECE_STEPS);
        uint64_t end = clock_mono_ns();
        once = fmin(once, (double)(middle - begin));
        twice = fmin(twice, (double)(end - middle));
    }
    return (twice - once) / PIECE_STEPS;
}

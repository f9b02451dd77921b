// SPDX-License-Identifier: Apache-2.0
// Two chains of known lengths are timed, one twice as long as the other. What a call and the clock
// itself take is the same in both, so their difference is that of the steps alone.
#include "bench/kernels/core_clock.h"

#include <math.h>
#include <stdint.h>
#ifdef __powerpc64__
#include <sys/auxv.h>
#endif

#include "base/clock.h"

enum {
    UNROLL = 64,
    // 13 µs at 5 GHz each: reading the clock is 0.2 % of it, and subtracted.
    PIECE_STEPS = 65536,
    PIECE_LOADS = PIECE_STEPS / 4,
    // 4 KiB, in any L1. Each line has the address of another one: a load of the same address again
    // may be answered without the cache.
    RING_LINES = 64,
    RING_LINE_BYTES = 64,
    RING_JUMP = 27, // has no factor in common with the number of lines
};

#if defined(__x86_64__)
#define ADD "add %1, %0\n\t"
#define XOR "xor %1, %0\n\t"
#define LOAD "mov (%0), %0\n\t"
#elif defined(__aarch64__)
#define ADD "add %0, %0, %1\n\t"
#define XOR "eor %0, %0, %1\n\t"
#define LOAD "ldr %0, [%0]\n\t"
#elif defined(__riscv)
#define ADD "add %0, %0, %1\n\t"
#define XOR "xor %0, %0, %1\n\t"
#define LOAD "ld %0, 0(%0)\n\t"
#elif defined(__powerpc64__)
#define ADD "add %0, %0, %1\n\t"
#define XOR "xor %0, %0, %1\n\t"
#define LOAD "ld %0, 0(%0)\n\t"
#endif

// r0 is no address on powerpc64.
#ifdef __powerpc64__
#define BASE "+b"
#else
#define BASE "+r"
#endif

#define TIMES4(x) x x x x
#define TIMES32(x) TIMES4(TIMES4(x x))

// Takes `steps` steps, a multiple of UNROLL, and a few more for the call. The steps alternate
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

struct ring_line {
    struct ring_line *next;
    char rest[RING_LINE_BYTES - sizeof(void *)];
};

static _Thread_local _Alignas(RING_LINE_BYTES) struct ring_line ring[RING_LINES];

static void ring_link(void)
{
    for (int i = 0; i < RING_LINES; i++)
        ring[i].next = &ring[(i + RING_JUMP) % RING_LINES];
}

static void core_clock_loads(uint64_t loads)
{
    struct ring_line *at = ring;
    for (uint64_t turns = loads / UNROLL; turns; turns--) {
#ifdef LOAD
        __asm__ volatile(TIMES32(LOAD LOAD) : BASE(at) : : "memory");
#else
        for (int i = 0; i < UNROLL; i++) {
            at = at->next;
            __asm__ volatile("" : "+r"(at));
        }
#endif
    }
}

static double step_ns(void (*steps)(uint64_t), uint64_t piece, int tries)
{
    double once = INFINITY, twice = INFINITY;
    for (int i = 0; i < tries; i++) {
        uint64_t begin = clock_mono_ns();
        steps(piece);
        uint64_t middle = clock_mono_ns();
        steps(2 * piece);
        uint64_t end = clock_mono_ns();
        once = fmin(once, (double)(middle - begin));
        twice = fmin(twice, (double)(end - middle));
    }
    return (twice - once) / (double)piece;
}

int core_clock_step_cycles(unsigned long hwcap2)
{
    static const unsigned long arch_3_00 = 1ul << 23; // PPC_FEATURE2_ARCH_3_00
    return hwcap2 & arch_3_00 ? 2 : 1;
}

static int own_step_cycles(void)
{
#ifdef __powerpc64__
    return core_clock_step_cycles(getauxval(AT_HWCAP2));
#else
    return core_clock_step_cycles(0);
#endif
}

double core_clock_cycle_ns(int tries)
{
    return step_ns(core_clock_steps, PIECE_STEPS, tries) / own_step_cycles();
}

double core_clock_load_ns(int tries)
{
    ring_link();
    return step_ns(core_clock_loads, PIECE_LOADS, tries);
}

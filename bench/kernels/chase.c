// SPDX-License-Identifier: Apache-2.0
// The loop is unrolled 64 times, so that counting costs little beside a load from the first
// cache. Nothing else is timed.
#include "bench/kernels/chase.h"

#if defined(__x86_64__)
#define HOP "mov (%0), %0\n\t"
#elif defined(__aarch64__)
#define HOP "ldr %0, [%0]\n\t"
#endif

#define TIMES4(x) x x x x
#define TIMES64(x) TIMES4(TIMES4(TIMES4(x)))

uint64_t chase_round(uint64_t hops)
{
    return (hops + CHASE_UNROLL - 1) / CHASE_UNROLL * CHASE_UNROLL;
}

#ifdef HOP
void *chase(void *from, uint64_t hops)
{
    void *at = from;
    for (uint64_t turns = chase_round(hops) / CHASE_UNROLL; turns; turns--)
        __asm__ volatile(TIMES64(HOP) : "+r"(at) : : "memory");
    return at;
}
#else
// A volatile load cannot be dropped, and its result is the next address.
void *chase(void *from, uint64_t hops)
{
    void *at = from;
    for (uint64_t left = chase_round(hops); left; left--)
        at = *(void *volatile *)at;
    return at;
}
#endif

// SPDX-License-Identifier: Apache-2.0
// The loop over the chases is unrolled: up to a dozen the addresses are in registers, the others on
// the stack, whose loads hit the first-level cache and wait for nothing.
#include "bench/kernels/parallel_chase.h"

#include "base/cleanup.h"

// A volatile load cannot be dropped, and its result is the next address.
static inline __attribute__((always_inline)) void follow(void *at[], const int chases,
                                                         uint64_t turns)
{
    void *now[PARALLEL_CHAINS_MAX];
#pragma GCC unroll 32
    for (int i = 0; i < chases; i++)
        now[i] = at[i];
    for (; turns; turns--) {
#pragma GCC unroll 32
        for (int i = 0; i < chases; i++)
            now[i] = *(void *volatile *)now[i];
    }
#pragma GCC unroll 32
    for (int i = 0; i < chases; i++)
        at[i] = now[i];
}

#define EACH(x)                                                                                    \
    x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15) x(16) x(17)   \
        x(18) x(19) x(20) x(21) x(22) x(23) x(24) x(25) x(26) x(27) x(28) x(29) x(30) x(31) x(32)
#define FOLLOW(n)                                                                                  \
    static void follow_##n(void *at[], uint64_t turns)                                             \
    {                                                                                              \
        follow(at, n, turns);                                                                      \
    }
#define ENTRY(n) follow_##n,
EACH(FOLLOW)

static void (*const loops[])(void *at[], uint64_t turns) = {EACH(ENTRY)};
_Static_assert(COUNT_OF(loops) == PARALLEL_CHAINS_MAX, "a loop for each number of chases");

void parallel_chase(void *at[], int chases, uint64_t turns)
{
    loops[chases - 1](at, turns);
}

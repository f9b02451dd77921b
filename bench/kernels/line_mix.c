// SPDX-License-Identifier: Apache-2.0
// The loop over lines: read, or read and modified in place.
#include "bench/kernels/line_mix.h"

#if defined(__clang__)
#define KERNEL __attribute__((noinline))
#else
#define KERNEL __attribute__((noinline, noclone, optimize("O3")))
#endif

enum { LANES = 8 }; // independent sums: additions of one sum depend on each other

KERNEL double line_mix_pass(const struct line_mix *m, size_t first, size_t last)
{
    double sum[LANES] = {0};
    size_t until = (m->period - first % m->period) % m->period; // the next line to modify
    for (size_t line = first; line < last; line++, until--) {
        double *at = m->base + line * m->words, *end = at + m->words;
        if (until) {
            for (; at < end; at += LANES)
                for (int k = 0; k < LANES; k++)
                    sum[k] += at[k];
            continue;
        }
        for (; at < end; at += LANES)
            for (int k = 0; k < LANES; k++)
                at[k] += 1;
        until = m->period;
    }
    return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

size_t line_mix_writes(const struct line_mix *m, size_t first, size_t last)
{
    return (last + m->period - 1) / m->period - (first + m->period - 1) / m->period;
}

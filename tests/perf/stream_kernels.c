// SPDX-License-Identifier: Apache-2.0
// Every kernel of `bandwidth` in every instruction set of this CPU, with cached and streaming
// stores, one thread, in turn: medians of GB/s at working sets from the first cache to memory. One
// round has all variants of a kernel one after the other, so that what disturbs falls on all.
//
//   stream_kernels [ROUNDS=11] [SIZE...=24K 512K 8M 128M]
#include <stdio.h>
#include <stdlib.h>

#include "analysis/stats/median.h"
#include "base/clock.h"
#include "base/str.h"
#include "bench/kernels/stream.h"
#include "bench/memory/arena.h"

enum { ROUNDS_MAX = 101, SIZES_MAX = 16, VARIANTS_MAX = STORES * INSTRUCTIONS, LAPS = 64 << 20 };

static const char *const usual[] = {"24K", "512K", "8M", "128M"};

static double rate(const struct stream_code *code, enum stream_kernel k,
                   const struct stream_arrays *s, uint64_t laps)
{
    static volatile double sum;
    uint64_t begin = clock_mono_ns();
    for (uint64_t lap = 0; lap < laps; lap++)
        sum += stream_pass_in(code, k, s, 0, s->n);
    return stream_mb_per_s(k, (double)(s->n * laps), (double)(clock_mono_ns() - begin)) / 1000;
}

static void measure(double *memory, uint64_t bytes, enum stream_kernel k, int rounds)
{
    static double v[VARIANTS_MAX][ROUNDS_MAX];
    const struct stream_kernel_info *kernel = &stream_kernels[k];
    uint64_t laps = bytes < LAPS ? LAPS / bytes : 1;
    size_t n = bytes / sizeof(double) / (size_t)kernel->arrays / 8 * 8;
    struct stream_arrays s = stream_layout(memory, n, kernel->uses);
    stream_fill(&s, 0, n);
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < VARIANTS_MAX; i++) {
            const struct stream_code *code =
                stream_code((enum instructions)(i / STORES), (enum stores)(i % STORES));
            v[i][r] = code ? rate(code, k, &s, laps) : 0;
        }
    for (int i = STORES; i < VARIANTS_MAX; i++) { // not `auto`
        const struct stream_code *code =
            stream_code((enum instructions)(i / STORES), (enum stores)(i % STORES));
        if (code && (i % STORES == STORES_CACHED || k < STREAM_READ))
            printf("%-6s %8llu KiB  %-6s %-9s %7.1f GB/s\n", kernel->name,
                   (unsigned long long)(bytes >> 10), code->name,
                   i % STORES == STORES_CACHED ? "cached" : "streaming", middle_of(v[i], rounds));
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint64_t sizes[SIZES_MAX], rounds = 11, most = 0;
    int n = argc > 2 ? argc - 2 : (int)(sizeof usual / sizeof *usual);
    struct arena a = {0};
    struct place p;
    struct err err = {0};
    bool bound;
    if ((argc > 1 && (!str_to_u64(argv[1], &rounds) || rounds < 1 || rounds > ROUNDS_MAX)) ||
        n > SIZES_MAX)
        return 2;
    for (int i = 0; i < n; i++) {
        if (!str_to_bytes(argc > 2 ? argv[2 + i] : usual[i], 1, &sizes[i]) || sizes[i] < 4096)
            return 2;
        most = sizes[i] > most ? sizes[i] : most;
    }
    place_wanted(&p);
    if (arena_map(&a, most, PAGES_THP, &p, &bound, &err) < 0 || arena_populate(&a, 1, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < STREAM_KERNELS; k++)
            measure((double *)(void *)a.base, sizes[i], (enum stream_kernel)k, (int)rounds);
    arena_fini(&a);
    return 0;
}

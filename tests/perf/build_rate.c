// SPDX-License-Identifier: Apache-2.0
// Building a chain beside writing the same memory with the same stores and nothing to compute, in
// turn, one thread: how far from the machine's own streaming-write rate is it?
//
//   build_rate [SIZE=4G] [TURNS=7]
#include <stdio.h>
#include <stdlib.h>

#include "analysis/stats/stats.h"
#include "base/clock.h"
#include "base/str.h"
#include "bench/kernels/chain.h"
#include "bench/memory/arena.h"

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2"))) static void stream(char *to, uint64_t bytes)
{
    const __m256i v = _mm256_set1_epi64x(1);
    for (uint64_t at = 0; at < bytes; at += 64) {
        _mm256_stream_si256((__m256i *)(void *)(to + at), v);
        _mm256_stream_si256((__m256i *)(void *)(to + at + 32), v);
    }
    _mm_sfence();
}
#else
#include <string.h>

static void stream(char *to, uint64_t bytes)
{
    memset(to, 1, bytes);
}
#endif

static double rate(uint64_t bytes, uint64_t begin)
{
    return (double)bytes / (double)(clock_mono_ns() - begin); // GB/s
}

int main(int argc, char **argv)
{
    uint64_t bytes = (uint64_t)4 << 30, turns = 7;
    struct arena a = {0};
    struct place p;
    struct chain c;
    struct err err = {0};
    bool bound;
    double built[64], streamed[64];
    if ((argc > 1 && !str_to_bytes(argv[1], 1, &bytes)) ||
        (argc > 2 && (!str_to_u64(argv[2], &turns) || turns < 1 || turns > 64)))
        return 2;
    place_wanted(&p);
    if (arena_map(&a, bytes, PAGES_THP, &p, &bound, &err) < 0 || arena_populate(&a, 1, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    chain_plan(&c, a.base, bytes, 64, 0, 1);
    for (uint64_t i = 0; i < turns; i++) {
        uint64_t begin = clock_mono_ns();
        stream(a.base, bytes);
        streamed[i] = rate(bytes, begin);
        begin = clock_mono_ns();
        chain_write(&c, 0, c.links);
        built[i] = rate(bytes, begin);
    }
    stats_sort(built, (int)turns);
    stats_sort(streamed, (int)turns);
    double b = stats_quantile(built, (int)turns, 0.5),
           s = stats_quantile(streamed, (int)turns, 0.5);
    printf("build %.2f GB/s (%.3f s), streaming writes %.2f GB/s (%.3f s), ratio %.3f; medians of "
           "%d\n",
           b, (double)bytes / b / 1e9, s, (double)bytes / s / 1e9, b / s, (int)turns);
    arena_fini(&a);
    return 0;
}

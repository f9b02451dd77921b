// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/stream.h"

#include <math.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

const struct stream_kernel_info stream_kernels[STREAM_KERNELS] = {
    [STREAM_COPY] = {"copy", 2, "c = a"},    [STREAM_SCALE] = {"scale", 2, "b = s*c"},
    [STREAM_ADD] = {"add", 3, "c = a + b"},  [STREAM_TRIAD] = {"triad", 3, "a = b + s*c"},
    [STREAM_READ] = {"read", 1, "sum of a"}, [STREAM_WRITE] = {"write", 1, "c = s, non-temporal"},
};

void stream_fill(const struct stream_arrays *s, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        s->a[i] = 1;
        s->b[i] = 2;
        s->c[i] = 0;
    }
}

// The compiler must neither merge a pass with the next nor replace copy by a library call that
// picks other instructions than its neighbours (memcpy changes to non-temporal stores above some
// size).
#if defined(__clang__)
#define KERNEL __attribute__((noinline, no_builtin("memcpy", "memmove")))
#else
#define KERNEL                                                                                     \
    __attribute__((noinline, noclone, optimize("O3", "no-tree-loop-distribute-patterns")))
#endif

struct stream_loops {
    void (*copy)(const struct stream_arrays *s, size_t first, size_t last);
    void (*scale)(const struct stream_arrays *s, size_t first, size_t last);
    void (*add)(const struct stream_arrays *s, size_t first, size_t last);
    void (*triad)(const struct stream_arrays *s, size_t first, size_t last);
    double (*read_sum)(const struct stream_arrays *s, size_t first, size_t last);
};

// The width of the stores matters, not only how many there are: two of 32 bytes that fill a line
// are often merged, and then the line is not read first; four of 16 bytes less so.
#define WIDTH
#define NAMED(x) x##_baseline
#include "bench/kernels/stream_loops.h"
#if defined(__x86_64__)
#define WIDTH __attribute__((target("avx2,fma")))
#define NAMED(x) x##_avx2
#include "bench/kernels/stream_loops.h"
#endif

static const struct stream_loops *loops(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &loops_avx2;
#endif
    return &loops_baseline;
}

KERNEL static void write_around(const struct stream_arrays *s, size_t first, size_t last)
{
    double *c = s->c;
#if defined(__x86_64__)
    const __m128d value = _mm_set1_pd(STREAM_SCALAR);
    for (size_t i = first; i + 2 <= last; i += 2)
        _mm_stream_pd(c + i, value);
    _mm_sfence();
#elif defined(__aarch64__)
    for (size_t i = first; i + 2 <= last; i += 2)
        __asm__ volatile("stnp %d0, %d0, [%1]" ::"w"(STREAM_SCALAR), "r"(c + i) : "memory");
    __asm__ volatile("dmb ishst" : : : "memory"); // as chain.c: done when the pass is
#else
    for (size_t i = first; i < last; i++)
        c[i] = STREAM_SCALAR;
#endif
}

double stream_pass(enum stream_kernel k, const struct stream_arrays *s, size_t first, size_t last)
{
    const struct stream_loops *l = loops();
    void (*const passes[STREAM_KERNELS])(const struct stream_arrays *, size_t, size_t) = {
        [STREAM_COPY] = l->copy,   [STREAM_SCALE] = l->scale,     [STREAM_ADD] = l->add,
        [STREAM_TRIAD] = l->triad, [STREAM_WRITE] = write_around,
    };
    if (k == STREAM_READ)
        return l->read_sum(s, first, last);
    passes[k](s, first, last);
    return 0;
}

double stream_mb_per_s(enum stream_kernel k, double elements, double ns)
{
    return 1000 * elements * stream_kernels[k].arrays * sizeof(double) / ns;
}

void stream_begin(double want[3])
{
    want[0] = 1;
    want[1] = 2;
    want[2] = 0;
}

void stream_expect(double want[3], enum stream_kernel k)
{
    if (k == STREAM_COPY)
        want[2] = want[0];
    else if (k == STREAM_SCALE)
        want[1] = STREAM_SCALAR * want[2];
    else if (k == STREAM_ADD)
        want[2] = want[0] + want[1];
    else if (k == STREAM_TRIAD)
        want[0] = want[1] + STREAM_SCALAR * want[2];
    else if (k == STREAM_WRITE)
        want[2] = STREAM_SCALAR;
}

struct stream_check stream_verify(const struct stream_arrays *s, const double want[3])
{
    const double *arrays[3] = {s->a, s->b, s->c};
    struct stream_check check = {0};
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < s->n; i++) {
            double off = want[k] != 0 ? fabs(arrays[k][i] / want[k] - 1) : fabs(arrays[k][i]);
            check.wrong += !(off <= 1e-13);
            if (!(off <= check.worst))
                check.worst = off;
        }
    return check;
}

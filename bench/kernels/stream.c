// SPDX-License-Identifier: Apache-2.0
// A table has the loops for each width of stores that the processor offers; the widest is
// chosen at run time. After the passes the values are checked against a calculation.
#include "bench/kernels/stream.h"

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

const struct stream_kernel_info stream_kernels[STREAM_KERNELS] = {
    [STREAM_COPY] = {"copy", 2, STREAM_A | STREAM_C},   // c = a
    [STREAM_SCALE] = {"scale", 2, STREAM_B | STREAM_C}, // b = s*c
    [STREAM_ADD] = {"add", 3, STREAM_ABC},              // c = a + b
    [STREAM_TRIAD] = {"triad", 3, STREAM_ABC},          // a = b + s*c
    [STREAM_READ] = {"read", 1, STREAM_A},              // sum of a
    [STREAM_WRITE] = {"write", 1, STREAM_C},            // c = s, non-temporal
};

struct stream_arrays stream_layout(double *memory, size_t n, unsigned uses)
{
    struct stream_arrays s = {.n = n};
    double **arrays[] = {&s.a, &s.b, &s.c};
    for (int k = 0; k < 3; k++)
        if (uses >> k & 1) {
            *arrays[k] = memory;
            memory += n;
        }
    return s;
}

void stream_fill(const struct stream_arrays *s, size_t first, size_t last)
{
    double *const arrays[] = {s->a, s->b, s->c};
    double values[3];
    stream_begin(values);
    for (int k = 0; k < 3; k++)
        for (size_t i = first; arrays[k] && i < last; i++)
            arrays[k][i] = values[k];
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

enum { UNROLL = 4, SUMS = 8 };
#if defined(__clang__)
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

#define GET(T, p) (*(const T *)(const void *)(p))

// The width of the stores matters, not only how many there are: two of 32 bytes that fill a line
// are often merged, and then the line is not read first; four of 16 bytes less so.
#if defined(__x86_64__)
typedef double vector16 __attribute__((vector_size(16), aligned(8)));
typedef double vector32 __attribute__((vector_size(32), aligned(8)));
typedef double vector64 __attribute__((vector_size(64), aligned(8)));
#define AROUND_FENCE _mm_sfence()

#define WIDTH
#define NAME "scalar"
#define NAMED(x) x##_scalar
#define VECTOR double
#define AROUND(p, v)                                                                               \
    do {                                                                                           \
        long long word_;                                                                           \
        memcpy(&word_, &(v), sizeof word_);                                                        \
        _mm_stream_si64((long long *)(void *)(p), word_);                                          \
    } while (0)
#define OPAQUE(v) __asm__("" : "+x"(v))
#include "bench/kernels/stream_loops.h"

#define WIDTH
#define NAME "sse2"
#define NAMED(x) x##_sse2
#define VECTOR vector16
#define AROUND(p, v) _mm_stream_pd(p, (__m128d)(v))
#define OPAQUE(v) (void)(v)
#include "bench/kernels/stream_loops.h"

#define WIDTH __attribute__((target("avx2,fma")))
#define NAME "avx2"
#define NAMED(x) x##_avx2
#define VECTOR vector32
#define AROUND(p, v) _mm256_stream_pd(p, (__m256d)(v))
#define OPAQUE(v) (void)(v)
#include "bench/kernels/stream_loops.h"

#define WIDTH __attribute__((target("avx512f,fma")))
#define NAME "avx512"
#define NAMED(x) x##_avx512
#define VECTOR vector64
#define AROUND(p, v) _mm512_stream_pd(p, (__m512d)(v))
#define OPAQUE(v) (void)(v)
#include "bench/kernels/stream_loops.h"

#elif defined(__aarch64__)
typedef double vector16 __attribute__((vector_size(16), aligned(8)));
typedef double vector32 __attribute__((vector_size(32), aligned(8)));
// A hint only: a core may take it for a usual store.
#define AROUND_FENCE __asm__ volatile("dmb ishst" ::: "memory") // as chain.c: done when the pass is

#define WIDTH
#define NAME "scalar"
#define NAMED(x) x##_scalar
#define VECTOR double
#define OPAQUE(v) __asm__("" : "+w"(v))
#include "bench/kernels/stream_loops.h"

#define WIDTH
#define NAME "neon"
#define NAMED(x) x##_neon
#define VECTOR vector32
#define AROUND(p, v)                                                                               \
    do {                                                                                           \
        vector16 half_[2];                                                                         \
        memcpy(half_, &(v), sizeof half_);                                                         \
        __asm__ volatile("stnp %q0, %q1, [%2]" ::"w"(half_[0]), "w"(half_[1]), "r"(p) : "memory"); \
    } while (0)
#define OPAQUE(v) (void)(v)
#include "bench/kernels/stream_loops.h"

#include "bench/kernels/stream_sve.h"

#else
#define WIDTH
#define NAME "scalar"
#define NAMED(x) x##_scalar
#define VECTOR double
#define OPAQUE(v) (void)(v)
#include "bench/kernels/stream_loops.h"
#endif

// What this CPU has of an instruction set; NULL: nothing.
static const struct stream_code *instructions_code(enum instructions which)
{
    switch (which) {
    case INSTRUCTIONS_SCALAR:
        return code_scalar;
#if defined(__x86_64__)
    case INSTRUCTIONS_SSE2:
        return code_sse2;
    case INSTRUCTIONS_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? code_avx2 : NULL;
    case INSTRUCTIONS_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma") ? code_avx512
                                                                                  : NULL;
#elif defined(__aarch64__)
    case INSTRUCTIONS_NEON:
        return code_neon;
#if defined(STREAM_HAS_SVE)
    case INSTRUCTIONS_SVE:
        return getauxval(AT_HWCAP) & STREAM_HWCAP_SVE ? code_sve : NULL;
#endif
#endif
    default:
        return NULL;
    }
}

const struct stream_code *stream_code(enum instructions which, enum stores stores)
{
    const struct stream_code *found = NULL;
    for (int k = INSTRUCTIONS_AUTO + 1; k < INSTRUCTIONS; k++) { // the widest last
        const struct stream_code *code = instructions_code((enum instructions)k);
        if (code && code[stores].name && (which == INSTRUCTIONS_AUTO || (int)which == k))
            found = &code[stores];
    }
    return found;
}

void stream_code_list(enum stores stores, char *out, size_t room)
{
    *out = '\0';
    for (int k = INSTRUCTIONS_AUTO + 1; k < INSTRUCTIONS; k++) {
        const struct stream_code *code = stream_code((enum instructions)k, stores);
        size_t used = strlen(out);
        if (code)
            snprintf(out + used, room - used, "%s%s", used ? ", " : "", code->name);
    }
}

double stream_pass_in(const struct stream_code *code, enum stream_kernel k,
                      const struct stream_arrays *s, size_t first, size_t last)
{
    if (k == STREAM_READ)
        return code->read_sum(s, first, last);
    code->store[k](s, first, last);
    return 0;
}

double stream_pass(enum stream_kernel k, const struct stream_arrays *s, size_t first, size_t last)
{
    static const struct stream_code *_Atomic widest; // found once: a pass may be a few KiB
    const struct stream_code *code = atomic_load_explicit(&widest, memory_order_relaxed);
    if (!code) {
        code = stream_code(INSTRUCTIONS_AUTO, STORES_CACHED);
        atomic_store_explicit(&widest, code, memory_order_relaxed);
    }
    return stream_pass_in(code, k, s, first, last);
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
        for (size_t i = 0; arrays[k] && i < s->n; i++) {
            double off = want[k] != 0 ? fabs(arrays[k][i] / want[k] - 1) : fabs(arrays[k][i]);
            check.wrong += !(off <= 1e-13);
            if (!(off <= check.worst))
                check.worst = off;
        }
    return check;
}

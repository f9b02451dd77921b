// SPDX-License-Identifier: Apache-2.0
// The loops of bench/kernels/stream.c for SVE, whose vectors have a length that only the CPU knows:
// a predicate covers the last ones. Part of stream.c, and of nothing else.
#if defined(__has_include) && (defined(__clang__) ? __clang_major__ >= 16 : __GNUC__ >= 10)
#if __has_include(<arm_sve.h>)
#define STREAM_HAS_SVE 1
#define STREAM_HWCAP_SVE (1UL << 22) // <asm/hwcap.h>
#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("+sve")
#endif
#include <arm_sve.h>

#define SVE_LOOP(name, target, VALUE, STORE, FENCE)                                                \
    KERNEL SVE static void name##_sve(const struct stream_arrays *of, size_t first, size_t last)   \
    {                                                                                              \
        const struct stream_arrays here = *of, *s = &here;                                         \
        const size_t lanes = svcntd();                                                             \
        size_t i = first;                                                                          \
        const svbool_t all = svptrue_b64();                                                        \
        for (; i + UNROLL * lanes <= last; i += UNROLL * lanes)                                    \
            for (size_t k = 0; k < UNROLL; k++) {                                                  \
                const size_t at = i + k * lanes;                                                   \
                STORE(all, s->target + at, VALUE(all));                                            \
            }                                                                                      \
        for (; i < last; i += lanes) {                                                             \
            const svbool_t some = svwhilelt_b64((uint64_t)i, (uint64_t)last);                      \
            const size_t at = i;                                                                   \
            STORE(some, s->target + at, VALUE(some));                                              \
        }                                                                                          \
        FENCE;                                                                                     \
    }
#define SVE __attribute__((target("+sve")))
#define SVE_COPY(p) svld1_f64(p, s->a + at)
#define SVE_SCALE(p) svmul_n_f64_x(p, svld1_f64(p, s->c + at), STREAM_SCALAR)
#define SVE_ADD(p) svadd_f64_x(p, svld1_f64(p, s->a + at), svld1_f64(p, s->b + at))
#define SVE_TRIAD(p)                                                                               \
    svmla_n_f64_x(p, svld1_f64(p, s->b + at), svld1_f64(p, s->c + at), STREAM_SCALAR)
#define SVE_CONSTANT(p) svdup_n_f64(STREAM_SCALAR)

SVE_LOOP(copy, c, SVE_COPY, svst1_f64, (void)0)
SVE_LOOP(scale, b, SVE_SCALE, svst1_f64, (void)0)
SVE_LOOP(add, c, SVE_ADD, svst1_f64, (void)0)
SVE_LOOP(triad, a, SVE_TRIAD, svst1_f64, (void)0)
SVE_LOOP(copy_around, c, SVE_COPY, svstnt1_f64, AROUND_FENCE)
SVE_LOOP(scale_around, b, SVE_SCALE, svstnt1_f64, AROUND_FENCE)
SVE_LOOP(add_around, c, SVE_ADD, svstnt1_f64, AROUND_FENCE)
SVE_LOOP(triad_around, a, SVE_TRIAD, svstnt1_f64, AROUND_FENCE)
SVE_LOOP(write_around, c, SVE_CONSTANT, svstnt1_f64, AROUND_FENCE)

// Vectors of unknown length cannot stand in an array.
KERNEL SVE static double read_sum_sve(const struct stream_arrays *s, size_t first, size_t last)
{
    const double *a = s->a;
    const size_t lanes = svcntd();
    const svbool_t all = svptrue_b64();
    svfloat64_t s0 = svdup_n_f64(0), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    size_t i = first;
    for (; i + SUMS * lanes <= last; i += SUMS * lanes) {
        s0 = svadd_f64_x(all, s0, svld1_f64(all, a + i));
        s1 = svadd_f64_x(all, s1, svld1_f64(all, a + i + lanes));
        s2 = svadd_f64_x(all, s2, svld1_f64(all, a + i + 2 * lanes));
        s3 = svadd_f64_x(all, s3, svld1_f64(all, a + i + 3 * lanes));
        s4 = svadd_f64_x(all, s4, svld1_f64(all, a + i + 4 * lanes));
        s5 = svadd_f64_x(all, s5, svld1_f64(all, a + i + 5 * lanes));
        s6 = svadd_f64_x(all, s6, svld1_f64(all, a + i + 6 * lanes));
        s7 = svadd_f64_x(all, s7, svld1_f64(all, a + i + 7 * lanes));
    }
    for (; i < last; i += lanes) {
        const svbool_t some = svwhilelt_b64((uint64_t)i, (uint64_t)last);
        s0 = svadd_f64_m(some, s0, svld1_f64(some, a + i));
    }
    s0 = svadd_f64_x(all, svadd_f64_x(all, s0, s1), svadd_f64_x(all, s2, s3));
    s4 = svadd_f64_x(all, svadd_f64_x(all, s4, s5), svadd_f64_x(all, s6, s7));
    return svaddv_f64(all, svadd_f64_x(all, s0, s4));
}

static const struct stream_code code_sve[STORES] = {
    [STORES_CACHED] = {"sve",
                       {copy_sve, scale_sve, add_sve, triad_sve, NULL, write_around_sve},
                       read_sum_sve},
    [STORES_STREAMING] = {"sve",
                          {copy_around_sve, scale_around_sve, add_around_sve, triad_around_sve,
                           NULL, write_around_sve},
                          read_sum_sve},
};
#if !defined(__clang__)
#pragma GCC pop_options
#endif
#endif
#endif

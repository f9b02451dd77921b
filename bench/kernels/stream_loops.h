// SPDX-License-Identifier: Apache-2.0
// The loops of bench/kernels/stream.c, which includes this once for each instruction set:
//   WIDTH         attributes: what the compiler may use
//   NAMED(x)      what the loop is called then
//   VECTOR        a vector of doubles, or a double
//   AROUND(p, v)  stores v at p around the caches; undefined: there is no such store
//   OPAQUE(v)     keeps the compiler from making vectors of doubles
// No include guard, on purpose.

#define LANES (sizeof(VECTOR) / sizeof(double))

// Elements that no whole vector of the target covers are stored one by one, first and last. Between
// them UNROLL vectors a turn: the counter must not be the limit where a cache delivers a vector a
// cycle.
#define SWEEP(target, VALUE, PUT)                                                                  \
    do {                                                                                           \
        double *restrict to = target;                                                              \
        size_t at = first;                                                                         \
        for (; at < last && (uintptr_t)(to + at) % sizeof(VECTOR); at++)                           \
            to[at] = VALUE(double);                                                                \
        for (; at + UNROLL * LANES <= last; at += UNROLL * LANES) {                                \
            const size_t turn = at;                                                                \
            UNROLLED                                                                               \
            for (size_t k_ = 0; k_ < UNROLL; k_++) {                                               \
                at = turn + k_ * LANES;                                                            \
                VECTOR v_ = VALUE(VECTOR);                                                         \
                OPAQUE(v_);                                                                        \
                PUT(to + at, v_);                                                                  \
            }                                                                                      \
            at = turn;                                                                             \
        }                                                                                          \
        for (; at < last; at++)                                                                    \
            to[at] = VALUE(double);                                                                \
    } while (0)

#define FROM(T, array) GET(T, array + at)
#define VALUE_COPY(T) FROM(T, s->a)
#define VALUE_SCALE(T) (STREAM_SCALAR * FROM(T, s->c))
#define VALUE_ADD(T) (FROM(T, s->a) + FROM(T, s->b))
#define VALUE_TRIAD(T) (FROM(T, s->b) + STREAM_SCALAR * FROM(T, s->c))
#define VALUE_CONSTANT(T) ((T){0} + STREAM_SCALAR)
#define THROUGH(p, v) (*(VECTOR *)(void *)(p) = (v))

#define LOOP(name, target, VALUE, PUT, FENCE)                                                      \
    KERNEL WIDTH static void NAMED(name)(const struct stream_arrays *of, size_t first,             \
                                         size_t last)                                              \
    {                                                                                              \
        const struct stream_arrays here = *of, *s = &here;                                         \
        SWEEP(s->target, VALUE, PUT);                                                              \
        FENCE;                                                                                     \
    }

LOOP(copy, c, VALUE_COPY, THROUGH, (void)0)
LOOP(scale, b, VALUE_SCALE, THROUGH, (void)0)
LOOP(add, c, VALUE_ADD, THROUGH, (void)0)
LOOP(triad, a, VALUE_TRIAD, THROUGH, (void)0)
#ifdef AROUND
LOOP(copy_around, c, VALUE_COPY, AROUND, AROUND_FENCE)
LOOP(scale_around, b, VALUE_SCALE, AROUND, AROUND_FENCE)
LOOP(add_around, c, VALUE_ADD, AROUND, AROUND_FENCE)
LOOP(triad_around, a, VALUE_TRIAD, AROUND, AROUND_FENCE)
LOOP(write_around, c, VALUE_CONSTANT, AROUND, AROUND_FENCE)
#else
LOOP(write_around, c, VALUE_CONSTANT, THROUGH, (void)0)
#endif

// Independent sums: additions of one sum depend on each other, 3 to 5 cycles each, and two loads a
// cycle are usual. SUMS of them are never the limit.
KERNEL WIDTH static double NAMED(read_sum)(const struct stream_arrays *s, size_t first, size_t last)
{
    const double *a = s->a;
    VECTOR sum[SUMS] = {0};
    double rest = 0;
    size_t i = first;
    for (; i < last && (uintptr_t)(a + i) % sizeof(VECTOR); i++)
        rest += a[i];
    for (; i + SUMS * LANES <= last; i += SUMS * LANES) {
        UNROLLED
        for (size_t k = 0; k < SUMS; k++) {
            VECTOR v = GET(VECTOR, a + i + k * LANES);
            OPAQUE(v);
            sum[k] += v;
        }
    }
    for (; i < last; i++)
        rest += a[i];
    for (size_t k = 1; k < SUMS; k++)
        sum[0] += sum[k];
    for (size_t k = 0; k < LANES; k++)
        rest += ((const double *)&sum[0])[k];
    return rest;
}

static const struct stream_code NAMED(code)[STORES] = {
    [STORES_CACHED] = {NAME,
                       {NAMED(copy), NAMED(scale), NAMED(add), NAMED(triad), NULL,
                        NAMED(write_around)},
                       NAMED(read_sum)},
#ifdef AROUND
    [STORES_STREAMING] = {NAME,
                          {NAMED(copy_around), NAMED(scale_around), NAMED(add_around),
                           NAMED(triad_around), NULL, NAMED(write_around)},
                          NAMED(read_sum)},
#endif
};

#undef LANES
#undef SWEEP
#undef FROM
#undef VALUE_COPY
#undef VALUE_SCALE
#undef VALUE_ADD
#undef VALUE_TRIAD
#undef VALUE_CONSTANT
#undef THROUGH
#undef LOOP
#undef WIDTH
#undef NAME
#undef NAMED
#undef VECTOR
#undef AROUND
#undef OPAQUE

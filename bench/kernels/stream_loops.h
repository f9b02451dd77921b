// SPDX-License-Identifier: Apache-2.0
// The loops of bench/kernels/stream.c, which includes this once for each width of vectors: WIDTH is
// what the compiler may use, NAMED(x) what the loop is called then. No include guard, on purpose.

KERNEL WIDTH static void NAMED(copy)(const struct stream_arrays *s, size_t first, size_t last)
{
    const double *restrict a = s->a;
    double *restrict c = s->c;
    for (size_t i = first; i < last; i++)
        c[i] = a[i];
}

KERNEL WIDTH static void NAMED(scale)(const struct stream_arrays *s, size_t first, size_t last)
{
    const double *restrict c = s->c;
    double *restrict b = s->b;
    for (size_t i = first; i < last; i++)
        b[i] = STREAM_SCALAR * c[i];
}

KERNEL WIDTH static void NAMED(add)(const struct stream_arrays *s, size_t first, size_t last)
{
    const double *restrict a = s->a, *restrict b = s->b;
    double *restrict c = s->c;
    for (size_t i = first; i < last; i++)
        c[i] = a[i] + b[i];
}

KERNEL WIDTH static void NAMED(triad)(const struct stream_arrays *s, size_t first, size_t last)
{
    const double *restrict b = s->b, *restrict c = s->c;
    double *restrict a = s->a;
    for (size_t i = first; i < last; i++)
        a[i] = b[i] + STREAM_SCALAR * c[i];
}

// Eight independent sums: additions of one sum depend on each other and would be the limit.
KERNEL WIDTH static double NAMED(read_sum)(const struct stream_arrays *s, size_t first, size_t last)
{
    const double *a = s->a;
    double sum[8] = {0};
    for (size_t i = first; i + 8 <= last; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += a[i + (size_t)k];
    return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

static const struct stream_loops NAMED(loops) = {
    NAMED(copy), NAMED(scale), NAMED(add), NAMED(triad), NAMED(read_sum),
};

#undef WIDTH
#undef NAMED

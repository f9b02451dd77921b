// SPDX-License-Identifier: Apache-2.0
// One element at a time in 64 bits; blocks in 32 bits when the numbers fit, written as plain loops
// of fixed length that compilers turn into vectors, and compiled twice: for any CPU and for AVX2
// (which has the 32-bit multiply of eight lanes).
#include "bench/kernels/permutation.h"

#include <stdbool.h>

// SplitMix64 (Steele, Lea, Flood 2014): round constants from the seed.
static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Newton's iteration doubles the number of right bits: 3, 6, 12, 24, 48, 96.
static uint64_t odd_inverse(uint64_t m)
{
    uint64_t x = m;
    for (int i = 0; i < 5; i++)
        x *= 2 - m * x;
    return x;
}

static unsigned bits_for(uint64_t n)
{
    unsigned bits = 1;
    while (bits < 64 && ((uint64_t)1 << bits) < n)
        bits++;
    return bits;
}

void perm_init_rounds(struct perm *p, uint64_t n, uint64_t seed, int rounds)
{
    unsigned bits = bits_for(n);
    uint64_t state = seed;
    *p = (struct perm){
        .n = n, .mask = ~(uint64_t)0 >> (64 - bits), .shift = (bits + 1) / 2, .rounds = rounds};
    for (int r = 0; r < PERM_ROUNDS; r++) {
        p->round[r].mul = splitmix(&state) | 1;
        p->round[r].inverse = odd_inverse(p->round[r].mul);
        p->round[r].add = splitmix(&state);
    }
}

void perm_init(struct perm *p, uint64_t n, uint64_t seed)
{
    perm_init_rounds(p, n, seed, PERM_ROUNDS);
}

static uint64_t forward(const struct perm *p, uint64_t x)
{
    for (int r = 0; r < p->rounds; r++) {
        x = (x * p->round[r].mul + p->round[r].add) & p->mask;
        x ^= x >> p->shift;
    }
    return x;
}

static uint64_t backward(const struct perm *p, uint64_t y)
{
    for (int r = p->rounds - 1; r >= 0; r--) {
        y ^= y >> p->shift;
        y = ((y - p->round[r].add) * p->round[r].inverse) & p->mask;
    }
    return y;
}

uint64_t perm_at(const struct perm *p, uint64_t x)
{
    do {
        x = forward(p, x);
    } while (x >= p->n);
    return x;
}

uint64_t perm_inverse(const struct perm *p, uint64_t y)
{
    do {
        y = backward(p, y);
    } while (y >= p->n);
    return y;
}

uint64_t perm_next(const struct perm *p, uint64_t a)
{
    uint64_t at = perm_inverse(p, a) + 1;
    return perm_at(p, at == p->n ? 0 : at);
}

// The constants in 32 bits; locals of a loop, so that they stay in registers.
struct perm32 {
    uint32_t mask, shift;
    uint32_t mul[PERM_ROUNDS], inverse[PERM_ROUNDS], add[PERM_ROUNDS];
};

#define INLINE static inline __attribute__((always_inline))

INLINE struct perm32 constants_of(const struct perm *p)
{
    struct perm32 q = {.mask = (uint32_t)p->mask, .shift = p->shift};
    for (int r = 0; r < PERM_ROUNDS; r++) {
        q.mul[r] = (uint32_t)p->round[r].mul;
        q.inverse[r] = (uint32_t)p->round[r].inverse;
        q.add[r] = (uint32_t)p->round[r].add;
    }
    return q;
}

INLINE void backward_block(const struct perm32 *q, uint32_t *restrict y, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t v = y[i];
#pragma GCC unroll 4
        for (int r = PERM_ROUNDS - 1; r >= 0; r--) {
            v ^= v >> q->shift;
            v = ((v - q->add[r]) * q->inverse[r]) & q->mask;
        }
        y[i] = v;
    }
}

INLINE void forward_block(const struct perm32 *q, uint32_t *restrict x, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t v = x[i];
#pragma GCC unroll 4
        for (int r = 0; r < PERM_ROUNDS; r++) {
            v = (v * q->mul[r] + q->add[r]) & q->mask;
            v ^= v >> q->shift;
        }
        x[i] = v;
    }
}

// Elements that left [0, n) continue walking: those of a block together, and again those of them
// that are still outside. A branch for each would be guessed wrong half of the time. When n is a
// power of two there are none.
INLINE void walk_block(const struct perm *p, const struct perm32 *q, uint32_t *restrict v, bool on)
{
    enum { LANES = 8 };
    uint32_t at[PERM_BLOCK], x[PERM_BLOCK] = {0}, last = (uint32_t)(p->n - 1);
    int left = 0;
    for (int i = 0; i < PERM_BLOCK; i++) {
        at[left] = (uint32_t)i;
        left += v[i] > last;
    }
    while (left) {
        int whole = (left + LANES - 1) / LANES * LANES, still = 0;
        for (int i = 0; i < left; i++)
            x[i] = v[at[i]];
        if (on)
            forward_block(q, x, whole);
        else
            backward_block(q, x, whole);
        for (int i = 0; i < left; i++) {
            v[at[i]] = x[i];
            at[still] = at[i];
            still += x[i] > last;
        }
        left = still;
    }
}

INLINE void block_32(const struct perm *p, uint32_t first, bool next, uint64_t *restrict out)
{
    struct perm32 q = constants_of(p);
    uint32_t v[PERM_BLOCK], last = (uint32_t)(p->n - 1);
    for (int i = 0; i < PERM_BLOCK; i++)
        v[i] = first + (uint32_t)i;
    if (next) {
        backward_block(&q, v, PERM_BLOCK);
        if (p->n <= p->mask)
            walk_block(p, &q, v, false);
        for (int i = 0; i < PERM_BLOCK; i++)
            v[i] = v[i] == last ? 0 : v[i] + 1;
    }
    forward_block(&q, v, PERM_BLOCK);
    if (p->n <= p->mask)
        walk_block(p, &q, v, true);
    for (int i = 0; i < PERM_BLOCK; i++)
        out[i] = v[i];
}

// gcc at -O2 and in debug builds would leave the loops as they are.
#if defined(__GNUC__) && !defined(__clang__)
#define VECTORISE optimize("O3")
#else
#define VECTORISE
#endif

__attribute__((VECTORISE)) static void next_any(const struct perm *p, uint32_t first, uint64_t *out)
{
    block_32(p, first, true, out);
}

__attribute__((VECTORISE)) static void at_any(const struct perm *p, uint32_t first, uint64_t *out)
{
    block_32(p, first, false, out);
}

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#define VECTORISE_AVX2 target("avx2"), optimize("O3")
#else
#define VECTORISE_AVX2 target("avx2")
#endif
__attribute__((VECTORISE_AVX2)) static void next_avx2(const struct perm *p, uint32_t first,
                                                      uint64_t *out)
{
    block_32(p, first, true, out);
}

__attribute__((VECTORISE_AVX2)) static void at_avx2(const struct perm *p, uint32_t first,
                                                    uint64_t *out)
{
    block_32(p, first, false, out);
}

static void block_fast(const struct perm *p, uint32_t first, bool next, uint64_t *out)
{
    if (__builtin_cpu_supports("avx2"))
        (next ? next_avx2 : at_avx2)(p, first, out);
    else
        (next ? next_any : at_any)(p, first, out);
}
#else
static void block_fast(const struct perm *p, uint32_t first, bool next, uint64_t *out)
{
    (next ? next_any : at_any)(p, first, out);
}
#endif

static bool fits_32(const struct perm *p)
{
    return p->mask <= UINT32_MAX && p->rounds == PERM_ROUNDS;
}

void perm_next_block(const struct perm *p, uint64_t first, uint64_t out[static PERM_BLOCK])
{
    if (fits_32(p)) {
        block_fast(p, (uint32_t)first, true, out);
        return;
    }
    for (int i = 0; i < PERM_BLOCK; i++)
        out[i] = perm_next(p, first + (uint64_t)i);
}

void perm_at_block(const struct perm *p, uint64_t first, uint64_t out[static PERM_BLOCK])
{
    if (fits_32(p)) {
        block_fast(p, (uint32_t)first, false, out);
        return;
    }
    for (int i = 0; i < PERM_BLOCK; i++)
        out[i] = perm_at(p, first + (uint64_t)i);
}

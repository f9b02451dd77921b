// SPDX-License-Identifier: Apache-2.0
// Streaming stores: a full line is written without reading it first and without evicting anything,
// so that building costs what writing the memory costs, and no part of the chain starts in a cache.
#include "bench/chain.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

void chain_plan(struct chain *c, void *base, uint64_t bytes, uint64_t stride, uint64_t seed)
{
    *c = (struct chain){.base = base, .links = bytes / stride, .stride = stride};
    perm_init(&c->order, c->links, seed);
}

void *chain_link(const struct chain *c, uint64_t index)
{
    return c->base + index * c->stride;
}

uint64_t chain_index(const struct chain *c, const void *link)
{
    return (uint64_t)((const char *)link - c->base) / c->stride;
}

uint64_t chain_expect(const struct chain *c, uint64_t index, uint64_t hops)
{
    uint64_t at = (perm_inverse(&c->order, index) + hops % c->links) % c->links;
    return perm_at(&c->order, at);
}

typedef void (*line_writer)(const struct chain *c, uint64_t first, const uint64_t *next, int n);

#if defined(__x86_64__)

static void write_words(const struct chain *c, uint64_t first, const uint64_t *next, int n)
{
    for (int i = 0; i < n; i++)
        _mm_stream_si64((long long *)chain_link(c, first + (uint64_t)i),
                        (long long)(uintptr_t)chain_link(c, next[i]));
}

static void write_lines_sse2(const struct chain *c, uint64_t first, const uint64_t *next, int n)
{
    const __m128i zero = _mm_setzero_si128();
    for (int i = 0; i < n; i++) {
        __m128i *line = chain_link(c, first + (uint64_t)i);
        _mm_stream_si128(line, _mm_cvtsi64_si128((long long)(uintptr_t)chain_link(c, next[i])));
        _mm_stream_si128(line + 1, zero);
        _mm_stream_si128(line + 2, zero);
        _mm_stream_si128(line + 3, zero);
    }
}

__attribute__((target("avx2"))) static void write_lines_avx2(const struct chain *c, uint64_t first,
                                                             const uint64_t *next, int n)
{
    const __m256i zero = _mm256_setzero_si256();
    char *to = chain_link(c, first);
    for (int i = 0; i < n; i++, to += c->stride) {
        __m256i *line = (__m256i *)(void *)to;
        long long link = (long long)(uintptr_t)(c->base + next[i] * c->stride);
        _mm256_stream_si256(line, _mm256_set_epi64x(0, 0, 0, link));
        _mm256_stream_si256(line + 1, zero);
    }
}

static line_writer pick_writer(const struct chain *c)
{
    if (c->stride % 64)
        return write_words;
    return __builtin_cpu_supports("avx2") ? write_lines_avx2 : write_lines_sse2;
}

static void writes_done(void)
{
    _mm_sfence();
}

#elif defined(__aarch64__)

static void write_words(const struct chain *c, uint64_t first, const uint64_t *next, int n)
{
    for (int i = 0; i < n; i++)
        *(void **)chain_link(c, first + (uint64_t)i) = chain_link(c, next[i]);
}

static void write_lines_stnp(const struct chain *c, uint64_t first, const uint64_t *next, int n)
{
    for (int i = 0; i < n; i++)
        __asm__ volatile("stnp %1, xzr, [%0]\n\t"
                         "stnp xzr, xzr, [%0, #16]\n\t"
                         "stnp xzr, xzr, [%0, #32]\n\t"
                         "stnp xzr, xzr, [%0, #48]"
                         :
                         : "r"(chain_link(c, first + (uint64_t)i)), "r"(chain_link(c, next[i]))
                         : "memory");
}

static line_writer pick_writer(const struct chain *c)
{
    return c->stride % 64 ? write_words : write_lines_stnp;
}

static void writes_done(void)
{
    __asm__ volatile("dmb ishst" : : : "memory");
}

#else

static void write_words(const struct chain *c, uint64_t first, const uint64_t *next, int n)
{
    for (int i = 0; i < n; i++)
        *(void **)chain_link(c, first + (uint64_t)i) = chain_link(c, next[i]);
}

static line_writer pick_writer(const struct chain *c)
{
    (void)c;
    return write_words;
}

static void writes_done(void)
{
    __sync_synchronize();
}

#endif

void chain_write(const struct chain *c, uint64_t from, uint64_t to)
{
    line_writer write = pick_writer(c);
    uint64_t next[PERM_BLOCK], at = from;
    for (; at + PERM_BLOCK <= to; at += PERM_BLOCK) {
        perm_next_block(&c->order, at, next);
        write(c, at, next, PERM_BLOCK);
    }
    for (; at < to; at++) {
        next[0] = perm_next(&c->order, at);
        write(c, at, next, 1);
    }
    writes_done();
}

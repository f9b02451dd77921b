// SPDX-License-Identifier: Apache-2.0
// Streaming stores: a full line is written without reading it first and without evicting anything,
// so that building costs what writing the memory costs, and no part of the chain starts in a cache.
#include "bench/kernels/chain.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

void chain_plan(struct chain *c, void *base, uint64_t bytes, uint64_t stride, uint64_t locality,
                uint64_t seed)
{
    uint64_t links = bytes / stride, most = locality / stride;
    uint64_t blocks = most && most < links ? (links + most - 1) / most : 1;
    uint64_t block = links / blocks;
    *c = (struct chain){
        .base = base, .stride = stride, .line = 64, .block = block, .links = block * blocks};
    perm_init(&c->order, block, seed);
}

void chain_set_line(struct chain *c, uint64_t bytes)
{
    c->line = bytes && bytes % 64 == 0 ? bytes : 64;
}

void *chain_link(const struct chain *c, uint64_t index)
{
    return c->base + index * c->stride;
}

// Where in the order a link is.
static uint64_t position_of(const struct chain *c, const void *link)
{
    uint64_t index = (uint64_t)((const char *)link - c->base) / c->stride;
    uint64_t begin = index - index % c->block;
    return begin + perm_inverse(&c->order, index - begin);
}

void chain_load_before(const struct chain *c, const void *link, uint64_t n)
{
    uint64_t next[PERM_BLOCK], first = (position_of(c, link) + c->links - n) % c->links;
    uint64_t begin = first - first % c->block, at = first - begin;
    while (n) {
        uint64_t left = c->block - at < n ? c->block - at : n;
        uint64_t count = left < PERM_BLOCK ? 1 : PERM_BLOCK;
        if (count == PERM_BLOCK)
            perm_at_block(&c->order, at, next);
        else
            next[0] = perm_at(&c->order, at);
        for (uint64_t i = 0; i < count; i++)
            (void)*(void *volatile *)chain_link(c, begin + next[i]);
        n -= count;
        at += count;
        if (at < c->block)
            continue;
        at = 0;
        begin = begin + c->block < c->links ? begin + c->block : 0;
    }
}

typedef void (*line_writer)(const struct chain *c, uint64_t first, const uint64_t *next, int n);

#if defined(__x86_64__)

static void write_words(const struct chain *c, uint64_t first, const uint64_t *next, int n)
{
    for (int i = 0; i < n; i++)
        _mm_stream_si64((long long *)chain_link(c, first + (uint64_t)i),
                        (long long)(uintptr_t)chain_link(c, next[i]));
}

// Lines of x86-64 have 64 bytes.
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

static void write_64_bytes(void *to, const void *link)
{
    __asm__ volatile("stnp %1, xzr, [%0]\n\t"
                     "stnp xzr, xzr, [%0, #16]\n\t"
                     "stnp xzr, xzr, [%0, #32]\n\t"
                     "stnp xzr, xzr, [%0, #48]"
                     :
                     : "r"(to), "r"(link)
                     : "memory");
}

static void write_lines_stnp(const struct chain *c, uint64_t first, const uint64_t *next, int n)
{
    for (int i = 0; i < n; i++) {
        char *line = chain_link(c, first + (uint64_t)i);
        write_64_bytes(line, chain_link(c, next[i]));
        for (uint64_t at = 64; at < c->line; at += 64)
            write_64_bytes(line + at, NULL);
    }
}

static line_writer pick_writer(const struct chain *c)
{
    return c->stride % c->line ? write_words : write_lines_stnp;
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

static void write_lines(const struct chain *c, uint64_t first, const uint64_t *next, int n)
{
    for (int i = 0; i < n; i++) {
        void *line = chain_link(c, first + (uint64_t)i);
        memset(line, 0, c->line);
        *(void **)line = chain_link(c, next[i]);
    }
}

static line_writer pick_writer(const struct chain *c)
{
    return c->stride % c->line ? write_words : write_lines;
}

static void writes_done(void)
{
    __sync_synchronize();
}

#endif

// Successors within a block become indices of the whole chain; the one that would close the block's
// own cycle goes to the next block's first instead.
static void leave_block(const struct chain *c, uint64_t begin, uint64_t *next, int n)
{
    uint64_t first = perm_at(&c->order, 0);
    uint64_t after = begin + c->block < c->links ? begin + c->block : 0;
    for (int i = 0; i < n; i++)
        next[i] += next[i] == first ? after : begin;
}

static void write_block(const struct chain *c, line_writer write, uint64_t begin, uint64_t from,
                        uint64_t to)
{
    uint64_t next[PERM_BLOCK];
    bool whole = c->block == c->links;
    for (uint64_t at = from; at < to;) {
        int n = to - at >= PERM_BLOCK ? PERM_BLOCK : 1;
        if (n == PERM_BLOCK)
            perm_next_block(&c->order, at, next);
        else
            next[0] = perm_next(&c->order, at);
        if (!whole)
            leave_block(c, begin, next, n);
        write(c, begin + at, next, n);
        at += (uint64_t)n;
    }
}

void chain_write(const struct chain *c, uint64_t from, uint64_t to)
{
    line_writer write = pick_writer(c);
    for (uint64_t at = from; at < to;) {
        uint64_t begin = at - at % c->block;
        uint64_t end = begin + c->block < to ? begin + c->block : to;
        write_block(c, write, begin, at - begin, end - begin);
        at = end;
    }
    writes_done();
}

void *chain_write_strided(void *base, uint64_t bytes, uint64_t line, uint64_t stride)
{
    char *first = base;
    for (uint64_t offset = 0; offset < stride; offset += line)
        for (uint64_t at = offset; at < bytes; at += stride) {
            uint64_t next = at + stride < bytes ? at + stride : (offset + line) % stride;
            *(void **)(void *)(first + at) = first + next;
        }
    return first;
}

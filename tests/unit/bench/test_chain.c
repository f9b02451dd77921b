// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/chain.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/kernels/chase.h"
#include "bench/kernels/core_clock.h"
#include "bench/kernels/parallel_chase.h"
#include "tests/unit/bench/follow.h"
#include "tests/unit/tap.h"

// Walks from link 0 until it is back; the number of hops, or 0 if it leaves the chain.
static uint64_t lap(const struct chain *c)
{
    char *at = c->base;
    uint64_t hops = 0;
    do {
        memcpy(&at, (void *)at, sizeof(char *));
        hops++;
        uint64_t offset = (uint64_t)(at - c->base);
        if (offset >= c->links * c->stride || offset % c->stride || hops > c->links)
            return 0;
    } while (at != c->base);
    return hops;
}

static bool one_cycle(void *memory, uint64_t bytes, uint64_t stride, uint64_t seed)
{
    struct chain c;
    chain_plan(&c, memory, bytes, stride, 0, seed);
    memset(memory, 0, bytes);
    chain_write(&c, 0, c.links);
    return c.links == bytes / stride && lap(&c) == c.links;
}

static void cycles(void *memory)
{
    static const uint64_t strides[] = {64, 72, 128, 136, 256, 4096};
    int bad = 0, tried = 0;
    for (uint64_t links = 1; links <= 700; links++, tried++)
        bad += !one_cycle(memory, links * 64, 64, links);
    CHECK(bad == 0, "one cycle through every number of links to %d", tried);
    for (int i = 0; i < 6; i++) {
        bad = 0;
        for (uint64_t bytes = 8 * strides[i]; bytes < 1 << 20; bytes += bytes / 3 + 40)
            bad += !one_cycle(memory, bytes, strides[i], bytes);
        CHECK(bad == 0, "one cycle at a stride of %d, odd sizes too", (int)strides[i]);
    }
    for (uint64_t bytes = 1024; bytes <= 64 << 20; bytes *= 2)
        CHECK(one_cycle(memory, bytes, 64, 3), "one cycle through %d KiB", (int)(bytes >> 10));
}

// --- The links before one -----------------------------------------------------------------------

// Of memory that was not touched, what was loaded is there. Each link has a page of its own.
static bool loads_the_links_before(const struct chain *c, const uint64_t *order, uint64_t at,
                                   uint64_t n)
{
    uint64_t bytes = c->links * c->stride, bad = 0;
    unsigned char *there = calloc(c->links, 1), *want = calloc(c->links, 1);
    struct chain fresh = *c;
    fresh.base = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!there || !want || fresh.base == MAP_FAILED || madvise(fresh.base, bytes, MADV_NOHUGEPAGE))
        abort();
    chain_load_before(&fresh, chain_link(&fresh, order[at]), n);
    if (mincore(fresh.base, bytes, there))
        abort();
    for (uint64_t i = 1; i <= n; i++)
        want[order[(at + c->links - i) % c->links]] = 1;
    for (uint64_t i = 0; i < c->links; i++)
        bad += (there[i] & 1) != want[i];
    munmap(fresh.base, bytes);
    free(there);
    free(want);
    return bad == 0;
}

static void before(char *memory, uint64_t links, uint64_t locality)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), tried = 0, bad = 0;
    struct chain c;
    char *at = memory;
    uint64_t *order = calloc(links, sizeof *order);
    if (!order)
        abort();
    chain_plan(&c, memory, links * page, page, locality * page, 5);
    chain_write(&c, 0, c.links);
    for (uint64_t i = 0; i < c.links; i++) {
        order[i] = (uint64_t)(at - memory) / page;
        memcpy(&at, (void *)at, sizeof at);
    }
    for (uint64_t k = 0; k < c.links; k += 1 + c.links / 7)
        for (uint64_t n = 0; n <= c.links; n += 1 + c.links / 9, tried++)
            bad += !loads_the_links_before(&c, order, k, n);
    CHECK(tried > 1 && bad == 0 && loads_the_links_before(&c, order, 0, c.links),
          "the links before one of %d, shuffled by %d: loaded, and no others", (int)links,
          (int)c.block);
    free(order);
}

struct part {
    pthread_t thread;
    const struct chain *chain;
    uint64_t from, to;
};

static void *write_part(void *context)
{
    const struct part *p = context;
    chain_write(p->chain, p->from, p->to);
    return NULL;
}

static void slices(char *memory)
{
    enum { PARTS = 3, BYTES = 12345 * 64 };
    struct chain whole, sliced;
    struct part parts[PARTS];
    char *copy = aligned_alloc(64, BYTES);
    if (!copy) {
        CHECK(0, "no memory");
        return;
    }
    chain_plan(&whole, memory, BYTES, 64, 0, 9);
    chain_write(&whole, 0, whole.links);
    memcpy(copy, memory, BYTES);
    memset(memory, 0xff, BYTES);
    chain_plan(&sliced, memory, BYTES, 64, 0, 9);
    for (uint64_t i = 0; i < PARTS; i++) {
        parts[i] = (struct part){.chain = &sliced,
                                 .from = sliced.links * i / PARTS,
                                 .to = sliced.links * (i + 1) / PARTS};
        pthread_create(&parts[i].thread, NULL, write_part, &parts[i]);
    }
    for (int i = 0; i < PARTS; i++)
        pthread_join(parts[i].thread, NULL);
    CHECK(memcmp(copy, memory, BYTES) == 0, "slices by three threads make the same chain");
    free(copy);
}

// Shuffled within blocks: still one cycle, and every hop but a block's last stays in its block.
static void localities(void *memory)
{
    static const uint64_t blocks[] = {512, 4096, 12288, 65536, 1 << 20};
    for (int i = 0; i < 5; i++) {
        struct chain c;
        uint64_t outside = 0;
        chain_plan(&c, memory, (3 << 20) + 12345, 64, blocks[i], 7);
        memset(memory, 0, 4 << 20);
        chain_write(&c, 0, c.links);
        CHECK(c.block * 64 <= blocks[i] && c.links + c.links / c.block > ((3 << 20) + 12345) / 64,
              "blocks of at most %d bytes have the whole working set", (int)blocks[i]);
        CHECK(c.links % c.block == 0 && lap(&c) == c.links, "one cycle in blocks of %d bytes",
              (int)blocks[i]);
        for (uint64_t a = 0; a < c.links; a++)
            outside += chain_expect(&c, a, 1) / c.block != a / c.block;
        CHECK(outside == c.links / c.block, "and each block is left once");
        CHECK(chain_index(&c, chase(chain_link(&c, 3), 6400)) == chain_expect(&c, 3, 6400),
              "the order is as foretold");
    }
    struct chain c;
    chain_plan(&c, memory, 4 << 20, 64, 3 << 20, 7);
    CHECK(c.block == 32768 && c.links == 65536, "4 MiB within 3 MiB: two blocks, nothing left out");
    chain_plan(&c, memory, 4 << 20, 64, 1 << 20, 7);
    CHECK(c.block == 16384 && c.links == 65536, "what divides the whole is the block");
    chain_plan(&c, memory, 1 << 20, 64, 2 << 20, 7);
    CHECK(c.block == c.links, "a block larger than the whole is the whole");
}

static void hops(void *memory)
{
    static const uint64_t counts[] = {64, 128, 1024, 65536, 1000000};
    struct chain c;
    chain_plan(&c, memory, 8 << 20, 64, 0, 21);
    chain_write(&c, 0, c.links);
    for (int i = 0; i < 5; i++) {
        void *end = chase(chain_link(&c, 5), counts[i]);
        CHECK(chain_index(&c, end) == chain_expect(&c, 5, chase_round(counts[i])),
              "%d hops end where the order says", (int)counts[i]);
    }
    CHECK(chase_round(1) == CHASE_UNROLL && chase_round(CHASE_UNROLL) == CHASE_UNROLL,
          "hops are rounded up");
}

// No byte of a link's line keeps what it had, and nothing beyond the line is written.
static void whole_lines(char *memory)
{
    static const uint64_t strides[] = {64, 128, 192, 4096};
    for (int i = 0; i < 4; i++) {
        struct chain c;
        uint64_t old = 0, lost = 0, bytes = 300 * strides[i];
        chain_plan(&c, memory, bytes, strides[i], 0, 5);
        memset(memory, 0xff, bytes);
        chain_write(&c, 0, c.links);
        for (uint64_t at = 0; at < bytes; at++) {
            bool of_line = at % strides[i] >= sizeof(void *) && at % strides[i] < c.line;
            old += of_line && memory[at];
            lost += at % strides[i] >= c.line && memory[at] != (char)0xff;
        }
        CHECK(old == 0 && lost == 0, "whole lines at a stride of %d: %d bytes left, %d beyond",
              (int)strides[i], (int)old, (int)lost);
    }
}

// Lines of 128 and 256 bytes, where the writer knows them.
static void long_lines(char *memory)
{
#if defined(__x86_64__)
    (void)memory;
    SKIP("x86-64 has lines of 64 bytes");
#else
    for (uint64_t line = 128; line <= 256; line *= 2) {
        struct chain c;
        uint64_t old = 0, bytes = 300 * line;
        chain_plan(&c, memory, bytes, line, 0, 5);
        chain_set_line(&c, line);
        memset(memory, 0xff, bytes);
        chain_write(&c, 0, c.links);
        for (uint64_t at = 0; at < bytes; at++)
            old += at % line >= sizeof(void *) && memory[at];
        CHECK(old == 0 && lap(&c) == c.links, "whole lines of %d bytes: %d left", (int)line,
              (int)old);
    }
#endif
}

static double least_ns(void *from, uint64_t n, double least)
{
    uint64_t begin = clock_mono_ns();
    chase(from, n);
    double took = (double)(clock_mono_ns() - begin);
    return took < least ? took : least;
}

// A chase that a compiler deleted takes no time at all, twice nothing is nothing. Whatever else
// runs on the CPU only adds: on a busy machine it takes some rounds until both had it to
// themselves.
static void dependent(void *memory)
{
    enum { ROUNDS = 400, HOPS = 1 << 18 };
    struct chain c;
    double one = INFINITY, two = INFINITY;
    chain_plan(&c, memory, 16 << 10, 64, 0, 2);
    chain_write(&c, 0, c.links);
    for (int i = 0; i < ROUNDS && (i < 5 || two < 1.5 * one || two > 3 * one); i++) {
        one = least_ns(c.base, HOPS, one);
        two = least_ns(c.base, 2 * HOPS, two);
    }
    CHECK(two > 1.5 * one && two < 3 * one, "twice the hops take about twice as long (%.2f)",
          two / one);
    CHECK(one / HOPS > 0.4, "a hop takes longer than a deleted one: %.2f ns", one / HOPS);
}

// Each of the chases goes its own way, as the order says.
static void parallel(void *memory)
{
    void *at[PARALLEL_CHAINS_MAX];
    struct chain c;
    int right = 0, asked = 0;
    chain_plan(&c, memory, 1 << 20, 64, 0, 5);
    chain_write(&c, 0, c.links);
    for (int n = 1; n <= PARALLEL_CHAINS_MAX; n++) {
        for (int i = 0; i < n; i++)
            at[i] = chain_link(&c, perm_at(&c.order, c.links / (uint64_t)n * (uint64_t)i));
        parallel_chase(at, n, 777);
        for (int i = 0; i < n; i++, asked++) {
            uint64_t from = perm_at(&c.order, c.links / (uint64_t)n * (uint64_t)i);
            right += chain_index(&c, at[i]) == chain_expect(&c, from, 777);
        }
    }
    CHECK_INT(right, asked, "1 to %d chases at once end where the order says", PARALLEL_CHAINS_MAX);
}

// One cycle through all lines, each the stride after the one before.
static void strided(void *memory)
{
    for (uint64_t stride = 64; stride <= 4096; stride *= 2) {
        char *from = chain_write_strided(memory, 1 << 20, 64, stride), *at = from;
        uint64_t hops = 0, far = 0;
        do {
            char *next = *(char **)(void *)at;
            far += next != at + stride;
            at = next;
            hops++;
        } while (at != from && hops <= (1 << 20) / 64);
        CHECK(hops == (1 << 20) / 64 && far == stride / 64,
              "stride %d: every line once, one jump a round", (int)stride);
    }
}

// Clocks are between 0.25 and 10 GHz, and no L1 cache needs 25 cycles.
static void core_clock(void)
{
    double cycle = core_clock_cycle_ns(200);
    CHECK(cycle > 0.1 && cycle < 4, "one cycle is %.4f ns", cycle);
    double load = core_clock_load_ns(200);
    CHECK(load > 0.1 && load < 25 * cycle, "a load from L1 takes %.4f ns", load);
    CHECK(core_clock_step_cycles(0) == 1 && core_clock_step_cycles(1ul << 31) == 1 &&
              core_clock_step_cycles(0x00800000) == 2,
          "an addition takes two cycles from POWER9 on");
}

int main(void)
{
    char *memory = aligned_alloc(4096, 64 << 20);
    CHECK(memory != NULL, "memory for chains");
    if (!memory)
        return tap_done();
    cycles(memory);
    before(memory, 1, 0);
    before(memory, 64, 0);
    before(memory, 97, 0);
    before(memory, 100, 12);
    slices(memory);
    localities(memory);
    hops(memory);
    whole_lines(memory);
    long_lines(memory);
    dependent(memory);
    parallel(memory);
    strided(memory);
    core_clock();
    free(memory);
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/permutation.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tests/unit/tap.h"

static bool bijective(uint64_t n, uint64_t seed)
{
    struct perm p;
    unsigned char *seen = calloc(n, 1);
    bool good = seen != NULL;
    perm_init(&p, n, seed);
    for (uint64_t x = 0; x < n && good; x++) {
        uint64_t y = perm_at(&p, x);
        good = y < n && !seen[y] && perm_inverse(&p, y) == x;
        if (good)
            seen[y] = 1;
    }
    free(seen);
    return good;
}

static void bijections(void)
{
    static const uint64_t big[] = {4096, 65536, 65537, 99991, 1 << 20, (1 << 20) + 1, 1234567};
    int bad = 0;
    for (uint64_t n = 1; n <= 1100; n++)
        for (uint64_t seed = 0; seed < 3; seed++)
            bad += !bijective(n, seed);
    CHECK(bad == 0, "a bijection with the right inverse for every n to 1100, three seeds");
    for (int i = 0; i < 7; i++)
        CHECK(bijective(big[i], 7), "a bijection for n = %llu", (unsigned long long)big[i]);
}

static void large(void)
{
    static const uint64_t n[] = {(1ull << 32) - 5, 1ull << 32, (1ull << 32) + 1, 1ull << 40,
                                 (1ull << 46) + 12345};
    for (int i = 0; i < 5; i++) {
        struct perm p;
        int bad = 0;
        perm_init(&p, n[i], 11);
        for (uint64_t k = 0; k < 20000; k++) {
            uint64_t x = k * 0x9e3779b97f4a7c15u % n[i], y = perm_at(&p, x);
            bad += y >= n[i] || perm_inverse(&p, y) != x;
        }
        CHECK(bad == 0, "inverts at n = %llu", (unsigned long long)n[i]);
    }
}

static void blocks(void)
{
    // Of a little more than a power of two, half of the elements walk on, and some of them again.
    static const uint64_t n[] = {256,   300,     4096,           4097,       5000,
                                 65536, 1 << 20, (1 << 20) + 77, 1ull << 32, (1ull << 32) + 512};
    for (int i = 0; i < (int)(sizeof n / sizeof *n); i++) {
        struct perm p;
        uint64_t next[PERM_BLOCK], at[PERM_BLOCK];
        int bad = 0;
        perm_init(&p, n[i], 5);
        for (uint64_t turn = 0; turn < 8; turn++) {
            uint64_t first = (n[i] - PERM_BLOCK) / 7 * turn;
            first = turn == 7 ? n[i] - PERM_BLOCK : first;
            perm_next_block(&p, first, next);
            perm_at_block(&p, first, at);
            for (uint64_t k = 0; k < PERM_BLOCK; k++)
                bad += next[k] != perm_next(&p, first + k) || at[k] != perm_at(&p, first + k);
        }
        CHECK(bad == 0, "blocks agree with single elements at n = %llu", (unsigned long long)n[i]);
    }
}

static void seeds(void)
{
    struct perm one, two, again;
    int same = 0, equal = 0;
    perm_init(&one, 4096, 1);
    perm_init(&two, 4096, 2);
    perm_init(&again, 4096, 1);
    for (uint64_t x = 0; x < 4096; x++) {
        same += perm_at(&one, x) == perm_at(&two, x);
        equal += perm_at(&one, x) == perm_at(&again, x);
    }
    CHECK(equal == 4096, "the same seed gives the same order");
    CHECK(same < 20, "another seed gives another (%d of 4096 alike, 1 expected)", same);
}

int main(void)
{
    bijections();
    large();
    blocks();
    seeds();
    return tap_done();
}

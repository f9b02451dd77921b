// SPDX-License-Identifier: Apache-2.0
// A pseudo-random permutation of [0, n) with its inverse, computed, not stored. Pure.
//
// Four rounds of multiply (odd), add and xorshift on the next power of two: each step is a
// bijection of k-bit numbers. For other n it walks the cycle: a result outside [0, n) is put in
// again, which stays a bijection of [0, n) (Black and Rogaway, "Ciphers with Arbitrary Finite
// Domains"). docs/METHOD.md has the figures beside a full shuffle.
#pragma once
#include <stdint.h>

enum {
    PERM_ROUNDS = 4,
    PERM_BLOCK = 256, // elements that are computed at once
};

struct perm {
    uint64_t n;
    uint64_t mask;  // k ones, 2^k >= n
    unsigned shift; // at least k/2, so that the xorshift is its own inverse
    int rounds;
    struct {
        uint64_t mul, inverse, add; // mul * inverse = 1 mod 2^64
    } round[PERM_ROUNDS];
};

void perm_init(struct perm *p, uint64_t n, uint64_t seed); // n >= 1
// With fewer rounds, to show what they do (tests/perf).
void perm_init_rounds(struct perm *p, uint64_t n, uint64_t seed, int rounds);

uint64_t perm_at(const struct perm *p, uint64_t x);
uint64_t perm_inverse(const struct perm *p, uint64_t y);

// The element after `a` in the cycle P(0), P(1), … P(n-1), P(0): P(P^-1(a) + 1 mod n).
uint64_t perm_next(const struct perm *p, uint64_t a);
// out[i] = perm_next(first + i) for PERM_BLOCK elements, all below n; fast where n <= 2^32.
void perm_next_block(const struct perm *p, uint64_t first, uint64_t out[static PERM_BLOCK]);
// out[i] = perm_at(first + i), likewise.
void perm_at_block(const struct perm *p, uint64_t first, uint64_t out[static PERM_BLOCK]);

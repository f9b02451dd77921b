// SPDX-License-Identifier: Apache-2.0
// A chain: one link every `stride` bytes of a piece of memory, each holding the address of the
// next, all of them one cycle in random order. Pure: touches nothing but the memory it is given.
#pragma once
#include <stdint.h>

#include "bench/kernels/permutation.h"

struct chain {
    char *base;        // aligned to 64; borrowed
    uint64_t links;    // how many
    uint64_t stride;   // bytes from link to link, a multiple of 8
    uint64_t line;     // bytes of the cache line, a multiple of 64; chain_plan sets 64
    uint64_t block;    // links among which the order is random; `links` is a multiple of it
    struct perm order; // of one block
};

// The order in which links are followed, one cycle by construction: a random cycle through each
// block of at most `locality` bytes (0, or not below `bytes`: all is one block), block after block
// in address order, and from the last to the first. Blocks are equal, the fewest that will do, so
// that the chain has all of `bytes` but fewer links than blocks. Writes nothing.
void chain_plan(struct chain *c, void *base, uint64_t bytes, uint64_t stride, uint64_t locality,
                uint64_t seed);

// Writes the links from…to-1 in address order, by stores that do not go through the caches where
// the CPU has such. Any thread may write any slice; all together make the chain. Each link's whole
// line is written if stride is a multiple of `line`. The writes are visible to other threads after
// the usual synchronisation.
void chain_write(const struct chain *c, uint64_t from, uint64_t to);

// Before chain_write: the machine's line. What is no multiple of 64 bytes counts as 64.
void chain_set_line(struct chain *c, uint64_t bytes);

// Links one every `line` bytes of [base, base + bytes), followed in address order `stride` bytes
// apart; from the end on from the next line after the first. `stride` is a multiple of `line` and
// `bytes` of `stride`. Returns the first link.
void *chain_write_strided(void *base, uint64_t bytes, uint64_t line, uint64_t stride);

void *chain_link(const struct chain *c, uint64_t index);

// Loads the `n` links before `link` in the order, the nearest last; n is at most c->links. The
// caches then have what following these links would have left. Addresses are computed, so that
// several loads are under way at once.
void chain_load_before(const struct chain *c, const void *link, uint64_t n);

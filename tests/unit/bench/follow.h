// SPDX-License-Identifier: Apache-2.0
// Where a chase must be, computed from the order of the chain instead of its links.
#pragma once
#include "bench/kernels/chain.h"

static inline uint64_t chain_index(const struct chain *c, const void *link)
{
    return (uint64_t)((const char *)link - c->base) / c->stride;
}

static inline uint64_t chain_expect(const struct chain *c, uint64_t index, uint64_t hops)
{
    uint64_t begin = index - index % c->block;
    uint64_t at = begin + perm_inverse(&c->order, index - begin);
    at = (at + hops % c->links) % c->links;
    return at - at % c->block + perm_at(&c->order, at % c->block);
}

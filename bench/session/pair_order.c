// SPDX-License-Identifier: Apache-2.0
// A tournament of ranks. In pass c, ranks i and j play whose sum is c modulo the (odd) number of
// passes; of an even number of ranks the last one plays with the rank that would play itself. Sums
// near each other join the same caches and nodes, so passes follow each other by a stride near the
// golden section: any first few are spread evenly. The pairs of a pass follow each other in the
// same way, because the last pass may not fit.
#include "bench/session/pair_order.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "bench/kernels/golden_step.h"

struct order {
    const int (*first)[2]; // borrowed
    int n_first, ranks, passes, stride, most;
    int (*pairs)[2]; // owned
    int n;
};

static void order_fini(struct order *o)
{
    free(o->pairs);
}

static bool order_has_first(const struct order *o, int a, int b)
{
    for (int i = 0; i < o->n_first; i++)
        if (o->first[i][0] == a && o->first[i][1] == b)
            return true;
    return false;
}

static void order_add(struct order *o, int a, int b)
{
    if (o->n == o->most)
        return;
    o->pairs[o->n][0] = a;
    o->pairs[o->n++][1] = b;
}

static void order_pass(struct order *o, int sum)
{
    for (int t = 0; t < o->passes && o->n < o->most; t++) {
        int a = (int)((int64_t)t * o->stride % o->passes), b = (sum - a + o->passes) % o->passes;
        b = a == b && o->ranks > o->passes ? o->ranks - 1 : b;
        if (a < b && !order_has_first(o, a, b))
            order_add(o, a, b);
    }
}

int pair_order_make(struct pair_rounds *r, const int (*first)[2], int n_first, const int *domain,
                    int ranks, int most, struct err *err)
{
    int all = ranks * (ranks - 1) / 2, passes = ranks % 2 ? ranks : ranks - 1;
    struct order o CLEANUP(order_fini) = {.first = first,
                                          .n_first = n_first,
                                          .ranks = ranks,
                                          .passes = passes,
                                          .stride = (int)golden_step((uint64_t)passes),
                                          .most = most < all ? most : all};
    o.pairs = calloc((size_t)o.most + 1, sizeof *o.pairs);
    if (!o.pairs)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", o.most);
    for (int i = 0; i < n_first; i++)
        order_add(&o, first[i][0], first[i][1]);
    for (int pass = 0; pass < passes && o.n < o.most; pass++)
        order_pass(&o, (int)((int64_t)pass * o.stride % passes));
    return pair_rounds_pack(r, (const int(*)[2])o.pairs, o.n, domain, ranks, err);
}

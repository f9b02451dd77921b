// SPDX-License-Identifier: Apache-2.0
// In pass d each rank measures the target that comes d places after its own, so a pass has each
// target about as often as each other one. Places near each other are nodes near each other, so the
// distances follow each other by a stride near the golden section, as the ranks of a pass do: the
// last pass may not fit.
#include "bench/session/target_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bench/kernels/golden_step.h"

struct targets_chosen {
    bool *chosen; // borrowed
    const int *home;
    int ranks, targets, left;
};

// False: it is chosen already, or there is no room.
static bool target_add(struct targets_chosen *c, int rank, int target)
{
    bool *at = &c->chosen[rank * c->targets + target];
    if (*at || !c->left)
        return false;
    c->left--;
    return *at = true;
}

// The way back: of the first rank there that does not have it.
static void target_add_back(struct targets_chosen *c, int from, int to)
{
    for (int r = 0; r < c->ranks; r++)
        if (c->home[r] == to && target_add(c, r, from))
            return;
}

static void target_pass(struct targets_chosen *c, int distance, int stride)
{
    for (int i = 0; i < c->ranks && c->left; i++) {
        int rank = (int)((int64_t)i * stride % c->ranks);
        int to = (c->home[rank] + distance) % c->targets;
        if (target_add(c, rank, to))
            target_add_back(c, c->home[rank], to);
    }
}

// Memory of nodes without ranks: the ranks take turns.
static void target_add_lone(struct targets_chosen *c)
{
    for (int t = 0, next = 0; t < c->targets; t++) {
        bool any = false;
        for (int r = 0; r < c->ranks; r++)
            any |= c->chosen[r * c->targets + t];
        if (!any)
            target_add(c, next++ % c->ranks, t);
    }
}

int target_order_choose(bool *chosen, const int *own, int ranks, int targets, int most,
                        struct err *err)
{
    CLEANUP_MEM int *home = calloc((size_t)ranks, sizeof *home);
    if (!home)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks);
    struct targets_chosen c = {chosen, home, ranks, targets, most};
    int stride = (int)golden_step((uint64_t)ranks), step = (int)golden_step((uint64_t)targets);
    memset(chosen, 0, (size_t)ranks * (size_t)targets * sizeof *chosen);
    for (int r = 0; r < ranks; r++) {
        home[r] = own[r] >= 0 ? own[r] : r % targets;
        target_add(&c, r, home[r]);
    }
    target_add_lone(&c);
    for (int pass = 1; pass < targets; pass++)
        target_pass(&c, (int)((int64_t)pass * step % targets), stride);
    return 0;
}

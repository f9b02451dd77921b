// SPDX-License-Identifier: Apache-2.0
// Some of all pairs of a rank and a target: each smaller choice is part of each larger one, each
// rank has its own node, each target a rank, and most ways both directions.
#include "bench/session/target_order.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static const struct machine {
    const char *name;
    int ranks, per_node, targets; // targets beyond the ranks' nodes have no CPUs
} machines[] = {
    {"24 nodes, a rank each", 24, 1, 24}, {"24 nodes, 192 ranks", 192, 8, 24},
    {"8 nodes and 8 of HBM", 8, 1, 16},   {"16 sockets", 16, 1, 16},
    {"12 ranks, one target", 12, 1, 1},   {"1,024 ranks, 64 targets", 1024, 16, 64},
};

struct cover {
    int n, lost, own, few, least_of_target, one_way;
};

// The other direction, of any rank of that node.
static bool is_back(const struct machine *m, const bool *now, const int *own, int rank, int target)
{
    for (int r = 0; r < m->ranks; r++)
        if (own[r] == target && now[r * m->targets + own[rank]])
            return true;
    return false;
}

static struct cover cover_of(const struct machine *m, const bool *now, const bool *before,
                             const int *own)
{
    struct cover c = {.few = m->targets, .least_of_target = m->ranks};
    for (int r = 0; r < m->ranks; r++) {
        int of_rank = 0;
        for (int t = 0; t < m->targets; t++) {
            int at = r * m->targets + t;
            of_rank += now[at];
            c.lost += before[at] && !now[at];
            c.one_way +=
                now[at] && own[r] >= 0 && t * m->per_node < m->ranks && !is_back(m, now, own, r, t);
        }
        c.n += of_rank;
        c.own += own[r] < 0 || now[r * m->targets + own[r]];
        c.few = of_rank < c.few ? of_rank : c.few;
    }
    for (int t = 0; t < m->targets; t++) {
        int of_target = 0;
        for (int r = 0; r < m->ranks; r++)
            of_target += now[r * m->targets + t];
        c.least_of_target = of_target < c.least_of_target ? of_target : c.least_of_target;
    }
    return c;
}

static void choices(const struct machine *m)
{
    CLEANUP_MEM int *own = calloc((size_t)m->ranks, sizeof *own);
    CLEANUP_MEM bool *before = calloc((size_t)(m->ranks * m->targets), sizeof *before);
    int all = m->ranks * m->targets, even = 0;
    struct err err = {0};
    for (int r = 0; r < m->ranks; r++)
        own[r] = r / m->per_node < m->targets ? r / m->per_node : -1;
    for (int most = m->ranks + m->targets; most < 2 * all; most += (most + 7) / 8) {
        CLEANUP_MEM bool *now = calloc((size_t)all, sizeof *now);
        int n = most < all ? most : all;
        bool made = target_order_choose(now, own, m->ranks, m->targets, n, &err) == 0;
        struct cover c = cover_of(m, now, before, own);
        CHECK(made && c.n == n && !c.lost && c.own == m->ranks && c.few >= 1 &&
                  c.least_of_target >= 1 && c.one_way <= 1,
              "%s: %d of %d pairs; %d lost, %d ranks have their own node, each has %d at least and "
              "each target %d, %d ways have one direction",
              m->name, c.n, all, c.lost, c.own, c.few, c.least_of_target, c.one_way);
        even += c.few >= n / m->ranks / 2;
        for (int k = 0; k < all; k++)
            before[k] = now[k];
    }
    CHECK(even, "%s: ranks have about as many pairs as each other", m->name);
}

int main(void)
{
    for (int i = 0; i < COUNT_OF(machines); i++)
        choices(&machines[i]);
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// Some of all pairs: each smaller choice is part of each larger one, every rank and every kind of
// pair is in it early, and no two pairs of a round share what must not be shared.
#include "bench/session/pair_order.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

enum { RANKS_MAX = 1024 };

static const struct machine {
    const char *name;
    int ranks, per_llc, per_socket;
} machines[] = {
    {"192 ranks, 24 caches", 192, 8, 96},   {"384 ranks, 48 caches", 384, 8, 192},
    {"512 ranks, 32 caches", 512, 16, 256}, {"448 ranks, 16 sockets", 448, 28, 28},
    {"33 ranks, 3 caches", 33, 11, 33},
};

static int order_make(struct pair_rounds *r, const struct machine *m, const int *domain, int most)
{
    // A pair of each class, as bench/session/pairs.c lists them.
    const int first[][2] = {{0, 1}, {0, m->per_llc}, {0, m->per_socket}};
    struct err err = {0};
    int n = m->per_llc == m->per_socket ? 2 : m->per_socket < m->ranks ? 3 : 2;
    return pair_order_make(r, first, n, domain, m->ranks, most, &err);
}

// Marks the pairs that are chosen; returns those that are twice or upside down, and those in a
// round with another of the same domain.
static int wrong_choice(const struct pair_rounds *r, const int *domain, int ranks, char *chosen)
{
    int wrong = 0, used[RANKS_MAX];
    memset(used, -1, sizeof used);
    for (int round = 0; round < r->n_rounds; round++)
        for (int p = r->begin[round]; p < r->begin[round + 1]; p++) {
            int a = r->pairs[p][0], b = r->pairs[p][1];
            wrong += a >= b || chosen[a * ranks + b]++ || used[domain[a]] == round ||
                     used[domain[b]] == round;
            used[domain[a]] = used[domain[b]] = round;
        }
    return wrong + (r->begin[r->n_rounds] != r->n_pairs);
}

struct cover {
    int few, links, links_met, inside; // pairs of the rank with fewest; two caches; of one cache
};

static struct cover cover_of(const struct pair_rounds *r, const struct machine *m)
{
    int of_rank[RANKS_MAX] = {0}, caches = m->ranks / m->per_llc;
    CLEANUP_MEM char *met = calloc((size_t)caches, (size_t)caches);
    struct cover c = {.few = r->n_pairs, .links = caches * (caches - 1) / 2};
    for (int p = 0; p < r->n_pairs; p++) {
        int a = r->pairs[p][0], b = r->pairs[p][1], x = a / m->per_llc, y = b / m->per_llc;
        of_rank[a]++;
        of_rank[b]++;
        c.inside += x == y;
        c.links_met += x != y && !met[x * caches + y];
        met[x * caches + y] = 1;
    }
    for (int i = 0; i < m->ranks; i++)
        c.few = of_rank[i] < c.few ? of_rank[i] : c.few;
    return c;
}

static void choices(const struct machine *m)
{
    int own[RANKS_MAX], llc[RANKS_MAX], one[RANKS_MAX] = {0}, all = m->ranks * (m->ranks - 1) / 2;
    CLEANUP_MEM char *before = calloc((size_t)m->ranks, (size_t)m->ranks);
    for (int i = 0; i < m->ranks; i++) {
        own[i] = i;
        llc[i] = i / m->per_llc;
    }
    for (int most = 8; most < 2 * all; most *= 2) {
        struct pair_rounds r CLEANUP(pair_rounds_fini) = {0},
                             by_llc CLEANUP(pair_rounds_fini) = {0},
                             alone CLEANUP(pair_rounds_fini) = {0};
        CLEANUP_MEM char *now = calloc((size_t)m->ranks, (size_t)m->ranks);
        CLEANUP_MEM char *same = calloc((size_t)m->ranks, (size_t)m->ranks);
        int n = most < all ? most : all, lost = 0;
        bool made = order_make(&r, m, own, most) == 0 && order_make(&by_llc, m, llc, most) == 0 &&
                    order_make(&alone, m, one, most) == 0;
        int wrong = wrong_choice(&r, own, m->ranks, now);
        wrong += wrong_choice(&by_llc, llc, m->ranks, same);
        for (int k = 0; k < m->ranks * m->ranks; k++)
            lost += (before[k] && !now[k]) || now[k] != same[k];
        CHECK(made && !wrong && !lost && r.n_pairs == n && alone.n_rounds == n,
              "%s: %d pairs in %d rounds, or %d by cache; %d wrong, %d lost", m->name, r.n_pairs,
              r.n_rounds, by_llc.n_rounds, wrong, lost);
        struct cover c = cover_of(&r, m);
        if (most >= m->ranks)
            CHECK(c.few >= 1 && c.inside && r.n_rounds <= 1.2 * n / (m->ranks / 2) + 4 &&
                      (n < m->ranks * m->ranks / m->per_llc || c.links_met == c.links),
                  "%s: of %d pairs each rank has %d, %d of %d links are met, %d inside", m->name, n,
                  c.few, c.links_met, c.links, c.inside);
        memcpy(before, now, (size_t)m->ranks * (size_t)m->ranks);
    }
}

int main(void)
{
    for (int i = 0; i < COUNT_OF(machines); i++)
        choices(&machines[i]);
    return tap_done();
}

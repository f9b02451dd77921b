// SPDX-License-Identifier: Apache-2.0
// The tournament: every pair once, and no two pairs of a round share what must not be shared.
#include "bench/session/pair_rounds.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/tap.h"

enum { RANKS_MAX = 1024 };

static int domain[RANKS_MAX];

// Wrong pairs: out of order, twice, or in a round with another of the same domain.
static int wrong_pairs(const struct pair_rounds *r, int ranks)
{
    CLEANUP_MEM char *seen = calloc((size_t)ranks, (size_t)ranks);
    int used[RANKS_MAX], wrong = 0;
    memset(used, -1, sizeof used);
    for (int round = 0; seen && round < r->n_rounds; round++)
        for (int p = r->begin[round]; p < r->begin[round + 1]; p++) {
            int a = r->pairs[p][0], b = r->pairs[p][1];
            wrong += a >= b || seen[a * ranks + b]++ || pair_rounds_of(r, p) != round;
            wrong += used[domain[a]] == round || (used[domain[b]] == round);
            used[domain[a]] = used[domain[b]] = round;
        }
    return wrong;
}

static void tournament(int ranks, int per_domain, int rounds, int widest)
{
    struct pair_rounds r CLEANUP(pair_rounds_fini) = {0};
    struct err err = {0};
    for (int i = 0; i < ranks; i++)
        domain[i] = i / per_domain;
    int made = pair_rounds_all(&r, domain, ranks, &err);
    CHECK(made == 0 && r.n_pairs == ranks * (ranks - 1) / 2 && wrong_pairs(&r, ranks) == 0,
          "%d ranks, %d a domain: every pair once, in %d rounds", ranks, per_domain, r.n_rounds);
    CHECK(r.n_rounds == rounds && r.widest == widest, "%d pairs at most at once", r.widest);
}

int main(void)
{
    // Of n ranks that share nothing: n - 1 rounds, or n with one that waits.
    static const int few[] = {2, 3, 4, 5, 7, 8, 24, 191, 192, 512, 1023, 1024};
    for (int i = 0; i < COUNT_OF(few); i++)
        tournament(few[i], 1, few[i] % 2 ? few[i] : few[i] - 1, few[i] / 2);
    tournament(8, 8, 28, 1);                       // one domain: one pair at a time
    tournament(9, 9, 36, 1);                       // the same of an odd number
    tournament(8, 2, 1 + 3 * 4, 4);                // two threads a core
    tournament(192, 8, 28 + 23 * 64, 24);          // 24 caches of 8 cores
    tournament(20, 8, 28 + (64 + 32 + 32), 2 + 1); // the last cache has 4
    tournament(1024, 16, 120 + 63 * 256, 64);
    static const int given[][2] = {{5, 1}, {0, 2}};
    struct pair_rounds r CLEANUP(pair_rounds_fini) = {0};
    struct err err = {0};
    CHECK(pair_rounds_list(&r, given, 2, &err) == 0 && r.n_rounds == 2 && r.widest == 1 &&
              r.pairs[0][0] == 1 && r.pairs[1][1] == 2,
          "pairs that are given: one a round, in their order");
    return tap_done();
}

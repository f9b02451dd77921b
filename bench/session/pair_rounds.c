// SPDX-License-Identifier: Apache-2.0
// The circle method, on domains instead of players: one domain stays, the others move on by one
// place each round, and those that stand opposite each other play. Two domains that play take as
// many rounds as they have pairs between them. Pairs inside of a domain come first, those of all
// domains at the same time.
#include "bench/session/pair_rounds.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"

// The ranks, domain by domain.
struct domains {
    int *rank;  // owned
    int *begin; // index of a domain's first rank; one more than there are domains; owned
    int n;
};

static void domains_fini(struct domains *d)
{
    free(d->rank);
    free(d->begin);
}

static int domains_of(struct domains *d, const int *domain, int ranks, struct err *err)
{
    CLEANUP_MEM bool *seen = calloc((size_t)ranks, sizeof *seen);
    d->rank = calloc((size_t)ranks, sizeof *d->rank);
    d->begin = calloc((size_t)ranks + 1, sizeof *d->begin);
    if (!seen || !d->rank || !d->begin)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d ranks", ranks);
    int n = 0;
    for (int i = 0; i < ranks; i++) {
        if (seen[i])
            continue;
        for (int k = i; k < ranks; k++) {
            if (domain[k] != domain[i])
                continue;
            d->rank[n++] = k;
            seen[k] = true;
        }
        d->begin[++d->n] = n;
    }
    return 0;
}

static int domain_size(const struct domains *d, int i)
{
    return d->begin[i + 1] - d->begin[i];
}

static void rounds_add(struct pair_rounds *r, int a, int b)
{
    r->pairs[r->n_pairs][0] = a < b ? a : b;
    r->pairs[r->n_pairs++][1] = a < b ? b : a;
}

// False: the round has no pairs.
static bool round_end(struct pair_rounds *r)
{
    int width = r->n_pairs - r->begin[r->n_rounds];
    if (!width)
        return false;
    r->widest = width > r->widest ? width : r->widest;
    r->begin[++r->n_rounds] = r->n_pairs;
    return true;
}

// The step-th pair within domain i, counted column by column.
static void add_inner(struct pair_rounds *r, const struct domains *d, int i, int step)
{
    const int *rank = d->rank + d->begin[i];
    int high = 1;
    while (step >= high)
        step -= high++;
    if (high < domain_size(d, i))
        rounds_add(r, rank[step], rank[high]);
}

static void add_between(struct pair_rounds *r, const struct domains *d, int i, int k, int step)
{
    if (step < domain_size(d, i) * domain_size(d, k))
        rounds_add(r, d->rank[d->begin[i] + step / domain_size(d, k)],
                   d->rank[d->begin[k] + step % domain_size(d, k)]);
}

// Who stands at a place of the circle in a turn: place 0 stays.
static int at_place(int place, int turn, int places)
{
    return place == 0 ? 0 : 1 + (place - 1 + turn) % (places - 1);
}

static void circle(struct pair_rounds *r, const struct domains *d)
{
    int places = d->n + d->n % 2; // an odd one out rests
    for (int turn = 0; turn < places - 1; turn++) {
        int step = 0;
        do {
            for (int place = 0; place < places / 2; place++) {
                int i = at_place(place, turn, places);
                int k = at_place(places - 1 - place, turn, places);
                if (i < d->n && k < d->n)
                    add_between(r, d, i, k, step);
            }
            step++;
        } while (round_end(r));
    }
}

static int rounds_room(struct pair_rounds *r, int pairs, struct err *err)
{
    *r = (struct pair_rounds){0};
    r->pairs = calloc((size_t)pairs + 1, sizeof *r->pairs);
    r->begin = calloc((size_t)pairs + 2, sizeof *r->begin);
    if (r->pairs && r->begin)
        return 0;
    pair_rounds_fini(r);
    return err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", pairs);
}

int pair_rounds_all(struct pair_rounds *r, const int *domain, int ranks, struct err *err)
{
    struct domains d CLEANUP(domains_fini) = {0};
    if (rounds_room(r, ranks * (ranks - 1) / 2, err) < 0)
        return -1;
    if (domains_of(&d, domain, ranks, err) < 0) {
        pair_rounds_fini(r);
        return -1;
    }
    int step = 0;
    do {
        for (int i = 0; i < d.n; i++)
            add_inner(r, &d, i, step);
        step++;
    } while (round_end(r));
    circle(r, &d);
    return 0;
}

int pair_rounds_list(struct pair_rounds *r, const int (*pairs)[2], int n, struct err *err)
{
    if (rounds_room(r, n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        rounds_add(r, pairs[i][0], pairs[i][1]);
        round_end(r);
    }
    return 0;
}

void pair_rounds_fini(struct pair_rounds *r)
{
    free(r->pairs);
    free(r->begin);
    *r = (struct pair_rounds){0};
}

int pair_rounds_of(const struct pair_rounds *r, int pair)
{
    int low = 0, high = r->n_rounds - 1;
    while (low < high) {
        int at = (low + high + 1) / 2;
        if (r->begin[at] <= pair)
            low = at;
        else
            high = at - 1;
    }
    return low;
}

int pair_rounds_width(const struct pair_rounds *r, int round)
{
    return r->begin[round + 1] - r->begin[round];
}

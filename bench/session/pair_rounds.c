// SPDX-License-Identifier: Apache-2.0
// The circle method, on domains instead of players: one domain stays, the others move on by one
// place each round, and those that stand opposite each other play. Two domains that play take as
// many rounds as they have pairs between them. Pairs inside of a domain come first, those of all
// domains at the same time.
#include "bench/session/pair_rounds.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

// --- Packed --------------------------------------------------------------------------------------

struct packing {
    int *of, n;     // the domain of each rank, numbered from 0, and how many there are; owned
    int *free_from; // of each domain, the first round that it has no pair in; owned
    bool *busy;     // [round][domain]; owned
};

static void packing_fini(struct packing *p)
{
    free(p->of);
    free(p->free_from);
    free(p->busy);
}

static void packing_number(struct packing *p, const int *domain, int ranks)
{
    for (int i = 0; i < ranks; i++) {
        int k = 0;
        while (k < i && (domain[i] < 0 || domain[k] != domain[i]))
            k++;
        p->of[i] = k < i ? p->of[k] : p->n++;
    }
}

// The first free round is below the pairs that the two domains have together.
static int packing_most_rounds(const struct packing *p, const int (*pairs)[2], int n, int *of_each)
{
    int most = 0;
    for (int i = 0; i < n; i++)
        for (int end = 0; end < 2; end++) {
            int count = ++of_each[p->of[pairs[i][end]]];
            most = count > most ? count : most;
        }
    return 2 * most;
}

static int packing_init(struct packing *p, const int (*pairs)[2], int n, const int *domain,
                        int ranks, struct err *err)
{
    CLEANUP_MEM int *of_each = calloc((size_t)ranks + 1, sizeof *of_each);
    p->of = calloc((size_t)ranks + 1, sizeof *p->of);
    p->free_from = calloc((size_t)ranks + 1, sizeof *p->free_from);
    if (of_each && p->of && p->free_from) {
        packing_number(p, domain, ranks);
        int rounds = packing_most_rounds(p, pairs, n, of_each);
        p->busy = calloc((size_t)(rounds + 1) * (size_t)(p->n + 1), sizeof *p->busy);
    }
    return p->busy ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", n);
}

static int packing_take(struct packing *p, int a, int b)
{
    int k = p->free_from[a] > p->free_from[b] ? p->free_from[a] : p->free_from[b];
    while (p->busy[(size_t)k * p->n + a] || p->busy[(size_t)k * p->n + b])
        k++;
    p->busy[(size_t)k * p->n + a] = p->busy[(size_t)k * p->n + b] = true;
    while (p->busy[(size_t)p->free_from[a] * p->n + a])
        p->free_from[a]++;
    while (p->busy[(size_t)p->free_from[b] * p->n + b])
        p->free_from[b]++;
    return k;
}

int pair_rounds_pack(struct pair_rounds *r, const int (*pairs)[2], int n, const int *domain,
                     int ranks, struct err *err)
{
    struct packing p CLEANUP(packing_fini) = {0};
    CLEANUP_MEM int *round = calloc((size_t)n + 1, sizeof *round);
    CLEANUP_MEM int *width = calloc((size_t)n + 1, sizeof *width);
    if (!round || !width)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", n);
    if (packing_init(&p, pairs, n, domain, ranks, err) < 0 || rounds_room(r, n, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        int k = round[i] = packing_take(&p, p.of[pairs[i][0]], p.of[pairs[i][1]]);
        r->n_rounds = k >= r->n_rounds ? k + 1 : r->n_rounds;
        r->widest = ++width[k] > r->widest ? width[k] : r->widest;
    }
    for (int k = 0; k < r->n_rounds; k++) {
        r->begin[k + 1] = r->begin[k] + width[k];
        width[k] = r->begin[k]; // from here on the place of its next pair
    }
    for (r->n_pairs = 0; r->n_pairs < n; r->n_pairs++)
        memcpy(r->pairs[width[round[r->n_pairs]]++], pairs[r->n_pairs], sizeof *pairs);
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

// SPDX-License-Identifier: Apache-2.0
// Does our order measure what a full shuffle measures? Several chains in the words of the same
// lines: same pages, same caches, same moment; windows of 65,536 hops in random order; the ratio of
// the medians to a Sattolo shuffle's, with a bootstrap interval, and a second Sattolo as the null.
//
//   paired [--size=1G] [--pages=thp|4k] [--windows=200] [--seed=1] [--extra]
//
// --extra adds two rounds and a linear congruential order.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/stats/stats.h"
#include "base/clock.h"
#include "base/str.h"
#include "bench/kernels/chase.h"
#include "bench/kernels/permutation.h"
#include "bench/sampling/disturbance.h"

enum { WINDOW_HOPS = 65536, ORDERS = 5, RESAMPLES = 2000, LINE = 64, WARM_HOPS = 1 << 20 };

struct order {
    const char *name;
    void (*link)(char *base, uint64_t links, int word, uint64_t seed);
    void *at;
    double *ns; // a window each, by round
};
static int rounds_kept; // of which no window was disturbed

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint64_t)(((__uint128_t)(z ^ (z >> 31)) * below) >> 64);
}

static void set_link(char *base, int word, uint64_t from, uint64_t to)
{
    *(void **)(void *)(base + from * LINE + 8 * (uint64_t)word) = base + to * LINE + 8 * word;
}

static void link_rounds(char *base, uint64_t links, int word, uint64_t seed, int rounds)
{
    struct perm p;
    perm_init_rounds(&p, links, seed, rounds);
    for (uint64_t a = 0; a < links; a++)
        set_link(base, word, a, perm_next(&p, a));
}

static void link_ours(char *base, uint64_t links, int word, uint64_t seed)
{
    link_rounds(base, links, word, seed, PERM_ROUNDS);
}

static void link_two_rounds(char *base, uint64_t links, int word, uint64_t seed)
{
    link_rounds(base, links, word, seed, 2);
}

// x -> 1664525 x + c mod 2^k, the order of visits: full period, as 1664525 = 1 mod 4 and c is odd.
static void link_lcg(char *base, uint64_t links, int word, uint64_t seed)
{
    uint64_t x = 0, c = 2 * (seed * 0x9e3779b97f4a7c15u % links) + 1;
    for (uint64_t i = 0; i < links; i++) {
        uint64_t next = (x * 1664525 + c) & (links - 1);
        set_link(base, word, x, next);
        x = next;
    }
}

// Sattolo's algorithm makes one cycle, each with the same probability.
static void link_sattolo(char *base, uint64_t links, int word, uint64_t seed)
{
    uint32_t *next = malloc(links * sizeof *next);
    if (!next)
        exit(1);
    state = seed;
    for (uint64_t i = 0; i < links; i++)
        next[i] = (uint32_t)i;
    for (uint64_t i = links - 1; i > 0; i--) {
        uint64_t k = draw(i);
        uint32_t t = next[i];
        next[i] = next[k];
        next[k] = t;
    }
    for (uint64_t i = 0; i < links; i++)
        set_link(base, word, i, next[i]);
    free(next);
}

static struct order orders[ORDERS] = {
    {.name = "sattolo", .link = link_sattolo},
    {.name = "sattolo again (null)", .link = link_sattolo},
    {.name = "prp4 (ours)", .link = link_ours},
    {.name = "two rounds", .link = link_two_rounds},
    {.name = "linear congruential", .link = link_lcg},
};

static bool window(struct order *o, double *ns)
{
    struct guard_mark begin, end;
    guard_begin(&begin);
    o->at = chase(o->at, WINDOW_HOPS);
    guard_end(&end);
    *ns = (double)(end.wall_ns - begin.wall_ns) / WINDOW_HOPS;
    return guard_judge(&begin, &end).flags == 0;
}

static void shuffle(int *turn, int n)
{
    for (int i = 0; i < n; i++) {
        int k = (int)draw((uint64_t)i + 1);
        turn[i] = i;
        turn[i] = turn[k];
        turn[k] = i;
    }
}

// Every order once a round, in random order; a round with a disturbed window does not count.
static void measure(int n, int windows)
{
    for (int i = 0; i < n; i++)
        orders[i].at = chase(orders[i].at, WARM_HOPS);
    for (int w = 0; w < windows; w++) {
        int turn[ORDERS];
        bool clean = true;
        shuffle(turn, n);
        for (int i = 0; i < n; i++)
            clean &= window(&orders[turn[i]], &orders[turn[i]].ns[rounds_kept]);
        rounds_kept += clean;
    }
}

static double median_of(const double *v, const int *rounds, double *room)
{
    for (int i = 0; i < rounds_kept; i++)
        room[i] = v[rounds ? rounds[i] : i];
    stats_sort(room, rounds_kept);
    return stats_quantile(room, rounds_kept, 0.5);
}

static void report(const struct order *o, const struct order *base, int *rounds, double *room)
{
    static double ratios[RESAMPLES];
    for (int i = 0; i < RESAMPLES; i++) {
        for (int k = 0; k < rounds_kept; k++)
            rounds[k] = (int)draw((uint64_t)rounds_kept);
        ratios[i] = median_of(o->ns, rounds, room) / median_of(base->ns, rounds, room);
    }
    stats_sort(ratios, RESAMPLES);
    double here = median_of(o->ns, NULL, room), there = median_of(base->ns, NULL, room);
    printf("%-22s %8.2f ns  ratio %.4f [%.4f, %.4f]\n", o->name, here, here / there,
           stats_quantile(ratios, RESAMPLES, 0.025), stats_quantile(ratios, RESAMPLES, 0.975));
}

static char *map(uint64_t bytes, bool thp)
{
    char *m =
        mmap(NULL, bytes + (2 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        exit(1);
    m += (2 << 20) - (uint64_t)(uintptr_t)m % (2 << 20);
    madvise(m, bytes, thp ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(m, 0, bytes);
    return m;
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, strlen(name)) == 0)
            return argv[i] + strlen(name);
    return otherwise;
}

int main(int argc, char **argv)
{
    uint64_t bytes, windows, seed;
    const char *pages = option(argc, argv, "--pages=", "thp");
    int n = option(argc, argv, "--extra", NULL) ? ORDERS : 3;
    if (!str_to_bytes(option(argc, argv, "--size=", "1G"), 1, &bytes) || bytes & (bytes - 1) ||
        !str_to_u64(option(argc, argv, "--windows=", "200"), &windows) || !windows ||
        !str_to_u64(option(argc, argv, "--seed=", "1"), &seed) || bytes > (uint64_t)LINE << 32)
        return 2;
    char *base = map(bytes, strcmp(pages, "thp") == 0);
    double *room = calloc(windows, sizeof *room);
    int *rounds = calloc(windows, sizeof *rounds);
    for (int i = 0; i < n; i++) {
        orders[i].link(base, bytes / LINE, i, seed + (uint64_t)i);
        orders[i].at = base + 8 * i;
        orders[i].ns = calloc(windows, sizeof(double));
        if (!orders[i].ns || !room || !rounds)
            return 1;
    }
    state = seed + 1000;
    measure(n, (int)windows);
    printf("%s, %s pages, %d rounds of windows of %d hops, %d undisturbed, seed %d\n",
           option(argc, argv, "--size=", "1G"), pages, (int)windows, WINDOW_HOPS, rounds_kept,
           (int)seed);
    if (rounds_kept < 30)
        return 1; // too few to say anything
    for (int i = 1; i < n; i++)
        report(&orders[i], &orders[0], rounds, room);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// How many times as often as Student's t says values are far from the centre of a class on which
// nothing is wrong: what the degrees of freedom in analysis/peers/spread.c were chosen by.
// usage: spread_tail [VALUES [NODES]...]; so many values for each class of so many nodes.
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "tests/unit/analysis/spread_levels.h"

static void print_level(const char *name, const struct spread_level *l)
{
    printf("#   %-7s", name);
    for (int i = 0; i < LEVELS; i++)
        printf("  at %8.2g: x%.2f", l->level[i], levels_rate(l, i));
    printf("\n");
}

static void print_class(int n, long values)
{
    unsigned long long seed = 8000 + n;
    struct spread_levels l = levels_find(n, values / n, seed);
    printf("# %d nodes, %ld classes, seed %llu\n", n, values / n, seed);
    if (n >= 8)
        print_level("member", &l.member);
    print_level("further", &l.further);
    print_level("centre", &l.centre);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const int usual[] = {3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,  15,
                                16, 20, 24, 28, 32, 33, 40, 48, 56, 64, 96, 128, 200};
    int64_t values = 10000000, n;
    if (argc > 1 && (!str_to_i64(argv[1], &values) || values < LEVELS_NODES_MAX))
        return 2;
    for (int i = 2; i < argc; i++) {
        if (!str_to_i64(argv[i], &n) || n < 3 || n > LEVELS_NODES_MAX)
            return 2;
        print_class((int)n, values);
    }
    for (size_t i = 0; i < COUNT_OF(usual) && argc < 3; i++)
        print_class(usual[i], values);
    return 0;
}

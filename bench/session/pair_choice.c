// SPDX-License-Identifier: Apache-2.0
// Passes: in pass p, member i of a group meets member i + p of each other group, so that no pair is
// listed twice and each pass is balanced. The first pass may be too large; then every k-th of its
// pairs is taken, others at each two groups. Small groups have fewer than k; then it is each k-th
// of the pairs of all groups, so that there is room for pairs inside of each.
#include "bench/session/pair_choice.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "bench/kernels/golden_step.h"

struct choice {
    int ranks, most, n_groups, largest;
    int *member, *begin; // the ranks, group by group; owned
    int (*pairs)[2];     // in the order of choosing; owned
    int n;
    int64_t offered; // pairs of groups that have few
};

static void choice_fini(struct choice *c)
{
    free(c->member);
    free(c->begin);
    free(c->pairs);
}

static int choice_size(const struct choice *c, int group)
{
    return c->begin[group + 1] - c->begin[group];
}

static int choice_init(struct choice *c, const int *group, int ranks, int most, struct err *err)
{
    CLEANUP_MEM bool *seen = calloc((size_t)ranks + 1, sizeof *seen);
    int all = ranks * (ranks - 1) / 2, n = 0;
    c->ranks = ranks;
    c->most = most < all ? most : all;
    c->member = calloc((size_t)ranks + 1, sizeof *c->member);
    c->begin = calloc((size_t)ranks + 2, sizeof *c->begin);
    c->pairs = calloc((size_t)c->most + 1, sizeof *c->pairs);
    if (!seen || !c->member || !c->begin || !c->pairs)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d pairs", c->most);
    for (int i = 0; i < ranks; i++) {
        for (int k = i; !seen[i] && k < ranks; k++)
            if (group[k] == group[i] && k > i)
                seen[c->member[n++] = k] = true;
            else if (k == i)
                c->member[n++] = i;
        if (n > c->begin[c->n_groups])
            c->begin[++c->n_groups] = n;
    }
    for (int g = 0; g < c->n_groups; g++)
        c->largest = choice_size(c, g) > c->largest ? choice_size(c, g) : c->largest;
    return 0;
}

static void choice_add(struct choice *c, int a, int b)
{
    if (c->n == c->most)
        return;
    c->pairs[c->n][0] = a < b ? a : b;
    c->pairs[c->n++][1] = a < b ? b : a;
}

// --- Passes --------------------------------------------------------------------------------------

// Pairs of two groups in a pass: one for each member of the smaller one.
static int choice_between(const struct choice *c, int a, int b, int pass)
{
    int x = choice_size(c, a), y = choice_size(c, b);
    return pass < (x > y ? x : y) ? (x < y ? x : y) : 0;
}

static int choice_pass_size(const struct choice *c, int pass)
{
    int n = 0;
    for (int a = 0; a < c->n_groups; a++)
        for (int b = a + 1; b < c->n_groups; b++)
            n += choice_between(c, a, b, pass);
    return n;
}

// Of groups that have fewer pairs than that, one of every so many over all groups: each time
// another one, so that it is not always the same member of a group.
static bool choice_is_due(struct choice *c, int every)
{
    int64_t at = c->offered++, turn = at / every;
    return at % every == turn * (int64_t)golden_step((uint64_t)every) % every;
}

static void choice_add_groups(struct choice *c, int a, int b, int pass, int every, int turn)
{
    int small = choice_size(c, a) <= choice_size(c, b) ? a : b, large = small == a ? b : a;
    int n = choice_between(c, a, b, pass), room = choice_size(c, large);
    for (int i = 0; i < n; i++)
        if (n < every ? choice_is_due(c, every) : (i + turn) % every == 0)
            choice_add(c, c->member[c->begin[small] + i],
                       c->member[c->begin[large] + (i + pass) % room]);
}

// The circle method on n players, an odd one out rests: who plays at a table in a turn.
static bool choice_table(int n, int turn, int table, int *a, int *b)
{
    int places = n + n % 2;
    *a = table == 0 ? 0 : 1 + (table - 1 + turn) % (places - 1);
    *b = 1 + (places - 1 - table - 1 + turn) % (places - 1);
    return *a < n && *b < n;
}

static void choice_pass_between(struct choice *c, int pass, int every)
{
    int places = c->n_groups + c->n_groups % 2, a, b;
    for (int turn = 0; turn < places - 1; turn++)
        for (int table = 0; table < places / 2; table++)
            if (choice_table(c->n_groups, turn, table, &a, &b))
                choice_add_groups(c, a, b, pass, every, turn);
}

static void choice_pass_inside(struct choice *c, int turn)
{
    int a, b;
    for (int g = 0; g < c->n_groups; g++) {
        int n = choice_size(c, g), places = n + n % 2;
        for (int table = 0; turn < places - 1 && table < places / 2; table++)
            if (choice_table(n, turn, table, &a, &b))
                choice_add(c, c->member[c->begin[g] + a], c->member[c->begin[g] + b]);
    }
}

static void choice_passes(struct choice *c)
{
    for (int pass = 0; pass <= c->largest && c->n < c->most; pass++) {
        int size = choice_pass_size(c, pass), left = c->most - c->n - (pass ? 0 : c->ranks / 2);
        left = left > 0 ? left : 1;
        if (size <= left || pass == 0)
            choice_pass_between(c, pass, size <= left ? 1 : (size + left - 1) / left);
        choice_pass_inside(c, pass);
    }
}

int pair_choice_make(struct pair_rounds *r, const int *group, const int *core, int ranks, int most,
                     struct err *err)
{
    struct choice c CLEANUP(choice_fini) = {0};
    if (choice_init(&c, group, ranks, most, err) < 0)
        return -1;
    choice_passes(&c);
    return pair_rounds_pack(r, (const int(*)[2])c.pairs, c.n, core, ranks, err);
}

// SPDX-License-Identifier: Apache-2.0
// Nodes are counted by set-up first. A value that most have is found in two passes over the
// set-ups: a vote, in which other values cancel each other out, and a count.
#include "analysis/peers/differences.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/compare/fact_changes.h"
#include "base/cleanup.h"

#define MOST 0.5
enum { USUAL_WEIGHT = 30 }; // of a fact that has none

// Nodes on one side, by set-up.
struct side {
    int *count; // [config]
    int n;      // whose facts are here
};

static long count_value(const struct fleet *f, const struct side *s, const char *name,
                        const char *value)
{
    long n = 0;
    for (int i = 0; i < f->configs.n; i++) {
        const char *has = s->count[i] ? fleet_fact(&f->config_facts[i], name) : NULL;
        n += has && strcmp(has, value) == 0 ? s->count[i] : 0;
    }
    return n;
}

// The value that more than half of them have, if there is one; else some value. NULL: none has any.
static const char *most_common(const struct fleet *f, const struct side *s, const char *name)
{
    const char *leader = NULL;
    long votes = 0;
    for (int i = 0; i < f->configs.n; i++) {
        const char *has = s->count[i] ? fleet_fact(&f->config_facts[i], name) : NULL;
        if (!has)
            continue;
        if (votes == 0)
            leader = has;
        votes += strcmp(has, leader) == 0 ? s->count[i] : -s->count[i];
        if (votes < 0) {
            leader = has;
            votes = -votes;
        }
    }
    return leader;
}

static double score_of(const struct difference *d)
{
    int weight = changes_weight(d->name);
    return (d->share - d->others_same) * (weight < 0 ? USUAL_WEIGHT : weight);
}

static int best_first(const void *a, const void *b)
{
    double x = score_of(a), y = score_of(b);
    if (x != y)
        return x > y ? -1 : 1;
    return strcmp(((const struct difference *)a)->name, ((const struct difference *)b)->name);
}

static void keep_difference(struct differences *out, const struct difference *d)
{
    if (out->n < DIFFERENCES_MAX)
        out->list[out->n++] = *d;
    else if (score_of(d) > score_of(&out->list[DIFFERENCES_MAX - 1]))
        out->list[DIFFERENCES_MAX - 1] = *d;
    qsort(out->list, out->n, sizeof *out->list, best_first);
}

static void compare_fact(struct differences *out, const struct fleet *f, const char *name,
                         const struct side *inside, const struct side *outside)
{
    struct difference d = {.name = name,
                           .value = most_common(f, inside, name),
                           .others = most_common(f, outside, name)};
    if (!d.value || !d.others || strcmp(d.value, d.others) == 0)
        return;
    long others = count_value(f, outside, name, d.others);
    d.share = (double)count_value(f, inside, name, d.value) / inside->n;
    d.others_share = (double)others / outside->n;
    d.others_same = (double)count_value(f, outside, name, d.value) / outside->n;
    if (d.share > MOST && d.others_share > MOST && others >= 2)
        keep_difference(out, &d);
}

int differences_find(struct differences *out, const struct fleet *f, const int *node, int n,
                     const unsigned char *in, struct err *err)
{
    CLEANUP_MEM int *counts = calloc(2 * (size_t)f->configs.n + 1, sizeof *counts);
    if (!counts)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the facts of %d nodes", n);
    struct side inside = {counts, 0}, outside = {counts + f->configs.n, 0};
    const struct fleet_facts *facts = NULL;
    out->n = 0;
    for (int i = 0; i < n; i++) {
        int config = f->node[node[i]].config;
        if (config < 0 || !f->config_facts[config].name)
            continue;
        struct side *side = in[i] ? &inside : &outside;
        side->count[config]++;
        side->n++;
        facts = in[i] && !facts ? &f->config_facts[config] : facts;
    }
    for (int i = 0; facts && outside.n && i < facts->n; i++)
        compare_fact(out, f, facts->name[i], &inside, &outside);
    return 0;
}

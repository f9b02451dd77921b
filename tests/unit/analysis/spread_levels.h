// SPDX-License-Identifier: Apache-2.0
// How often values of simulated classes on which nothing is wrong are farther from their centre
// than Student's t says that they are. Values are normal. Both sides count.
#pragma once
#include "analysis/peers/newest.h"
#include "analysis/peers/spread.h"
#include "tests/unit/analysis/simulate.h"

enum { LEVELS = 3, LEVELS_NODES_MAX = 1000 };

// Of one kind of distance.
struct spread_level {
    double level[LEVELS], limit[LEVELS]; // upper tail, and where it begins
    double beyond[LEVELS], all;          // values
};
struct spread_levels {
    struct spread_level member;  // one of the n values whose spread it is: 5 %, 5 %/n, 0.1 %/n
    struct spread_level further; // one more value: 5 %, 0.5 %, 0.05 %
    struct spread_level centre;  // in standard errors: 2.5 %, 0.5 %, 0.25 %
};

static void levels_begin(struct spread_level *l, double df, const double *level)
{
    *l = (struct spread_level){0};
    for (int i = 0; i < LEVELS; i++) {
        l->level[i] = level[i];
        l->limit[i] = dist_t_quantile(1 - level[i], df);
    }
}

static void levels_add(struct spread_level *l, double z)
{
    l->all += 2;
    for (int i = 0; i < LEVELS; i++)
        l->beyond[i] += fabs(z) > l->limit[i];
}

// 1: as often as it should.
static double levels_rate(const struct spread_level *l, int i)
{
    return l->beyond[i] / l->all / l->level[i];
}

// `classes` of n nodes.
static struct spread_levels levels_find(int n, long classes, unsigned long long seed)
{
    struct spread_levels made;
    double v[LEVELS_NODES_MAX];
    levels_begin(&made.member, spread_member_freedom(n), (double[]){0.05, 0.05 / n, 0.001 / n});
    levels_begin(&made.further, spread_freedom(n), (double[]){0.05, 0.005, 0.0005});
    levels_begin(&made.centre, spread_freedom(n), (double[]){0.025, 0.005, 0.0025});
    for (long k = 0; k < classes; k++) {
        for (int i = 0; i < n; i++)
            v[i] = sim_normal(&seed);
        qsort(v, n, sizeof *v, sim_order);
        struct spread s = spread_of(v, n, 1e-9);
        for (int i = 0; i < n; i++)
            levels_add(&made.member, (v[i] - s.centre) / s.scale);
        levels_add(&made.further, (sim_normal(&seed) - s.centre) / s.scale);
        levels_add(&made.centre, s.centre / s.scale / newest_error(n));
    }
    return made;
}

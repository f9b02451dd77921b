// SPDX-License-Identifier: Apache-2.0
// How often a comparison of equals cries: any cell, group or part that is slower or faster.
#pragma once
#include "analysis/compare/compare.h"

static inline bool alarming(const struct difference *d)
{
    return d->verdict == VERDICT_SLOWER || d->verdict == VERDICT_FASTER;
}

static inline bool comparison_alarms(const struct comparison *c)
{
    for (int k = 0; k < c->rows * c->cols; k++)
        if (alarming(&c->cells[k]))
            return true;
    for (int i = 0; i < c->n_groups; i++)
        if (alarming(&c->groups[i].d))
            return true;
    return c->verdict == VERDICT_SLOWER || c->verdict == VERDICT_FASTER;
}

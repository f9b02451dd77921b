// SPDX-License-Identifier: Apache-2.0
// What the change of a fact did: the nodes on which it changed, those on which it did not, and
// every metric before and after (analysis/peers/effect.h). Pure.
#pragma once
#include "analysis/peers/effect.h"
#include "analysis/peers/fleet.h"

enum { FLEET_TOGETHER_MAX = 8 };

struct fleet_change {
    const char *fact, *from, *to; // borrowed; from or to NULL: the fact was not there
    int nodes;                    // that changed
};

struct fleet_effect_metric {
    const char *metric, *unit, *benchmark, *variant; // borrowed
    bool more;                                       // is better
    struct effect effect;                            // worse or better only if q is at most 5 %
    double q;                                        // among the metrics; NaN: not known
};

struct fleet_effect {
    struct fleet_change change;
    int untouched;       // nodes that had `from` all the time
    int days;            // of change
    int64_t first, last; // changes
    int n;
    struct fleet_effect_metric *list; // worse ones first, then by p; owned
    int n_together;
    struct fleet_change together[FLEET_TOGETHER_MAX]; // what changed on the same nodes at the same
                                                      // time: it cannot be distinguished
};

// from, to NULL: the change that most nodes had. The fleet keeps runs from before and after it
// (fleet_options.runs_max). ERR_NOT_FOUND ("fact"): it changed on no node; ERR_NO_MEMORY.
int fleet_effect_find(struct fleet_effect *out, const struct fleet *f, const char *fact,
                      const char *from, const char *to, struct err *err);
void fleet_effect_fini(struct fleet_effect *e);

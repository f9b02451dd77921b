// SPDX-License-Identifier: Apache-2.0
// A few nodes side by side: the facts in which they differ, and of each metric the value of each
// node. Of two nodes also how much they differ, by the verdict on two runs. Pure.
#pragma once
#include "analysis/peers/fleet_view.h"
#include "analysis/peers/run_pair.h"

enum { SIDES_MIN = 2, SIDES_MAX = 4 }; // nodes; more do not fit beside each other on a terminal

struct sides_fact {
    const char *name;             // borrowed from the fleet, as the values
    bool is_class;                // of the hardware; else of the set-up
    const char *value[SIDES_MAX]; // [node]; NULL: not known, or this node has none
};

struct sides_metric {
    const char *metric, *unit, *benchmark, *variant; // borrowed from the fleet
    bool more;                                       // is better
    struct fleet_rank of[SIDES_MAX];                 // [node]; runs 0: it has none
    double distance;                                 // of the largest from the least, in logs
    // Of two nodes: the second beside the first. Fewer than RUNS_MIN runs of one give no verdict.
    struct run_pair_metric pair;
};

struct fleet_sides {
    const struct fleet *f; // borrowed; node i is its node i
    int nodes, n_facts, n;
    struct sides_fact *facts;  // hardware first, each by how likely it explains a difference; owned
    struct sides_metric *list; // that two nodes have or more, the most different first; owned
    int alone;                 // metrics that only one node has
    int otherwise;             // of these: that another one has by another method or version
    int slower, faster;        // of two nodes: metrics of the second
};

// Whether so many nodes can be side by side. ERR_INVALID ("nodes").
int fleet_sides_check(int nodes, struct err *err);
// All nodes of the fleet. ERR_NOT_FOUND ("nodes"): there are runs of one or none; ERR_INVALID.
int fleet_sides_make(struct fleet_sides *out, const struct fleet *f, struct err *err);
bool fleet_sides_facts_known(const struct fleet_sides *s, int node);
void fleet_sides_fini(struct fleet_sides *s);

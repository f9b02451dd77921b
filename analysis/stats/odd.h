// SPDX-License-Identifier: Apache-2.0
// What is slower than its peers: units (cores, caches, nodes, pairs) of items that were measured at
// several visits. All items of a visit were measured under the same conditions, so a unit is
// compared with its peers visit by visit: what slows all of them cancels out.
//
// The broad visits choose candidates. The visits behind them, which had no part in the choice,
// confirm: a unit is odd if it was beyond the limit at so many of them that chance does not explain
// it, where chance may disturb any quarter of the visits. Nothing is assumed of how long a
// disturbance is. Pure.
#pragma once
#include <stdbool.h>

#include "base/err.h"

// Values of items, larger is slower.
struct odd_table {
    int items, visits, broad; // visits so far, and how many of them are broad
    int room;                 // visits, at most
    double *logs;             // [items][room]: logarithms; NaN: not measured; owned
};

int odd_table_init(struct odd_table *t, int items, int room, struct err *err);
void odd_table_fini(struct odd_table *t);
void odd_table_set(struct odd_table *t, int item, int visit, double value);
int odd_table_copy(struct odd_table *to, const struct odd_table *from, struct err *err);

// Items by the number of what they belong to: members[begin[i]] … members[begin[i + 1] - 1].
struct odd_lists {
    int n;
    int *begin, *members; // owned
};
// `of` has numbers below n, or below 0: of none. NULL: each is its own.
int odd_lists_make(struct odd_lists *l, const int *of, int items, int n, struct err *err);
void odd_lists_fini(struct odd_lists *l);

// How items make units. Units with equal kinds are peers.
struct odd_level {
    int units;
    const int *unit; // [items]: the item's unit; -1: of none. NULL: each is its own
    const int *kind; // [units]
};

struct odd_unit {
    int peers;            // 0: it was not judged
    double limit;         // ratio to its peers from which on it is odd
    double spread;        // of the peers' ratios, a robust standard deviation; NaN: not known
    double ratio, lo, hi; // to its peers, and the interval of the visits' median
    int visits, above;    // of the visits that confirm: beyond the limit
    bool candidate, odd;
    double p; // that chance explains `above`, times the candidates (Holm)
};

struct odd_units {
    int n;
    struct odd_unit *list; // owned
    double *ratios;        // [n][room of the table]: logarithms, visit by visit; owned
};

// Every unit against its peers; chooses candidates. `least` is the smallest ratio to call odd, say
// 1.05. Beyond that, a unit must be beyond what its peers differ by anyway.
int odd_judge(struct odd_units *u, const struct odd_table *t, const struct odd_level *level,
              double least, struct err *err);
void odd_units_fini(struct odd_units *u);
// A candidate that still deviates at the visits that confirm, if there are any. One that chance
// made explains nothing: its cores may be slow.
bool odd_explains(const struct odd_unit *u);
// Takes what they deviate by off their items, so that a slow node's cores are not slow again.
void odd_explain(struct odd_table *t, const struct odd_level *level, const struct odd_units *u);
// Takes off every unit's deviation, where there are at least `items_least` items in it: it is no
// fault, but how far things are apart.
int odd_level_out(struct odd_table *t, const struct odd_level *level, const struct odd_units *u,
                  int items_least, struct err *err);
int odd_candidates(const struct odd_units *u);
// The candidates of all n groups together: which are odd. Chance calls one odd in a hundred runs at
// most.
int odd_confirm(struct odd_units *const *groups, int n, struct err *err);
// A candidate that is not odd, and might be with more visits: those that confirmed so far are fewer
// than it takes, and half of them or more were beyond the limit.
bool odd_is_open(const struct odd_unit *u, int candidates);

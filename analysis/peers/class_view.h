// SPDX-License-Identifier: Apache-2.0
// One class of a fleet in full: what its nodes are and how they are set up, and of each metric the
// value of every node with the median, the spread and the limit of its hidden kind. The numbers are
// those by which nodes are judged (analysis/peers/peers.h). Pure.
#pragma once
#include "analysis/peers/kinds.h"
#include "analysis/peers/newest.h"
#include "analysis/peers/table.h"
#include "base/jsonw.h"

enum {
    CLASS_VALUES_MAX = 400000, // written; metrics beyond it have no list of values
    CLASS_NAMES_MAX = 65536,   // bytes of folded names; longer ones are not written
    CLASS_SETUPS_MAX = 100,    // written, those of most nodes
};

struct class_view_kind {
    int nodes;
    double median; // a value, as below
    double spread; // per cent
    double limit;  // from here on this metric alone would make a node a finding. NaN: the class has
                   // fewer than PEERS_MIN nodes with it
};
struct class_view_metric {
    int n; // kinds, the fastest first; 0: no node has enough runs
    int largest;
    struct class_view_kind kinds[KINDS_MAX];
};
struct class_view_setup {
    int config, nodes; // config: number in the fleet
};
struct class_view {
    const struct fleet *f; // borrowed
    struct fleet_table table;
    struct newest newest;
    struct class_view_metric *metric; // [metric of the table]; owned
    int *order;                       // rows in order of names; owned
    int n_setups;
    struct class_view_setup *setup; // that of most nodes first; owned
};

// Of the fleet's class; the false discovery rate, and so the limit, counts all classes of the
// fleet. ERR_NO_MEMORY, ERR_TOO_LARGE.
int class_view_make(struct class_view *out, const struct fleet *f, int class, struct err *err);
// Its members; of the metrics `metric` alone (NULL: all).
void class_view_write_json(const struct class_view *v, const char *metric, struct jsonw *w);
void class_view_fini(struct class_view *v);

// SPDX-License-Identifier: Apache-2.0
// One class of a fleet, to look at: its numbers, its nodes in order of a metric, and its nodes by a
// fact. Pure.
#pragma once
#include "analysis/peers/newest.h"
#include "analysis/peers/table.h"

struct fleet_class_row {
    int class; // number in the fleet
    int nodes;
    int fresh;         // of them with a run of the last fleet_options.window_days
    int enough;        // of them with RUNS_MIN runs with the present set-up, not too old
    int setups;        // different ones among the nodes now
    int64_t newest_ms; // newest run
    const char *cpu;   // borrowed; NULL: not known, as below
    const char *shape;
};
// *list is malloc'ed (caller frees), the largest first. Returns how many, or -1: ERR_NO_MEMORY.
int fleet_classes(struct fleet_class_row **list, const struct fleet *f, struct err *err);
bool fleet_node_fresh(const struct fleet *f, int node);
bool fleet_node_enough(const struct fleet *f, int node);
// The class whose hash begins with `prefix`; "": the one with most nodes. ERR_NOT_FOUND: none;
// ERR_INVALID: several.
int fleet_class_find(const struct fleet *f, const char *prefix, struct err *err);
// These errors, for those who look for it elsewhere. Both return -1.
int fleet_class_unknown(const char *prefix, struct err *err);
int fleet_class_ambiguous(const char *prefix, struct err *err);

struct fleet_view {
    const struct fleet *f;
    struct fleet_table table;
    struct newest_column column; // of the metric that was looked at last
};
int fleet_view_open(struct fleet_view *v, const struct fleet *f, int class, struct err *err);
void fleet_view_close(struct fleet_view *v);
// The metric of this name, of the probe that most nodes have. ERR_NOT_FOUND names the nearest.
int fleet_view_metric(const struct fleet_view *v, const char *name, struct err *err);

struct fleet_rank {
    int node;       // number in the fleet
    int runs;       // behind the value
    double value;   // median of the newest runs, as on the newest day
    double lo, hi;  // 95 % interval of it; NaN: not known
    double percent; // of the median of all; + is more
};
struct fleet_ranking {
    int metric;
    bool more; // is better
    int n;
    int others; // nodes that have the metric only by another method or version of the metrics
    struct fleet_rank *list; // the worst first; owned
    double median, spread;   // of all; the spread in per cent
};
int fleet_ranking_make(struct fleet_ranking *out, struct fleet_view *v, int metric,
                       struct err *err);
void fleet_ranking_fini(struct fleet_ranking *r);

struct fleet_share {
    const char *value;                      // of the fact; NULL: not known of these nodes
    int nodes;                              // with RUNS_MIN runs
    double median, lo, hi;                  // over the nodes, and its interval; NaN: not known
    double percent, percent_lo, percent_hi; // of the largest group's median; 0, NaN, NaN of itself
    double q;                               // of the difference, among all groups; NaN: not known
    bool differs;                           // q is at most 5 %, and the difference at least 1 %
};
struct fleet_shares {
    int n;
    int others; // as in a ranking
    bool more;
    struct fleet_share *list; // the largest first; owned
};
// Nodes of the class by the value of a fact of their set-up or hardware. ERR_NOT_FOUND ("fact"): no
// node has it.
int fleet_shares_make(struct fleet_shares *out, struct fleet_view *v, int metric, const char *fact,
                      struct err *err);
// "largest group", "slower", "faster", "no difference" or "too few nodes".
const char *fleet_share_verdict(const struct fleet_shares *s, int i);
void fleet_shares_fini(struct fleet_shares *s);

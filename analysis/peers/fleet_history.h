// SPDX-License-Identifier: Apache-2.0
// One metric of one node over time, inside the band of its class. Pure.
#pragma once
#include "analysis/compare/setup_change.h"
#include "analysis/peers/fleet.h"

struct fleet_point {
    int64_t measured_ms, run; // run: number on the node
    double value;
    double low, median, high;  // of the class on that day: its median, and 95 % of its nodes
                               // (robustly); NaN: fewer than 8 nodes were measured
    bool setup_changed;        // since the point before (setup_hashes_differ())
    double change_percent;     // a change point: of the values from here on; 0: none
    struct setup_change cause; // of the change point
};

struct fleet_history {
    int probe;                 // number in the fleet
    const char *metric, *unit; // borrowed
    bool more;                 // is better
    int others; // runs of the metric by another method or version of the metrics: no points
    int n;
    struct fleet_point *list; // oldest first; owned
};

// All runs kept, of the node's present class: of the request that was measured most often, those
// with the method and the version of the metrics of the newest. Change points are those of the
// values less the class's. ERR_NOT_FOUND: "node" or "metric"; ERR_NO_MEMORY.
int fleet_history_make(struct fleet_history *out, const struct fleet *f, const char *node,
                       const char *metric, struct err *err);
void fleet_history_fini(struct fleet_history *h);

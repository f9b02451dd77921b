// SPDX-License-Identifier: Apache-2.0
// One metric of a class over time, a day at a time: what its nodes had on that day. A node that was
// measured several times on a day counts once, by its median. Pure.
#pragma once
#include "analysis/peers/fleet.h"
#include "base/jsonw.h"

struct class_day {
    int64_t day; // since 1970
    int n;       // nodes
    double median, q1, q3;
    double low, high; // 95 % of the nodes are between them (robustly); NaN: fewer than PEERS_MIN
};
struct class_days {
    int class, probe;          // numbers in the fleet
    const char *metric, *unit; // borrowed
    bool more;                 // is better
    int n;
    struct class_day *list; // oldest first; owned
};

// All runs kept, of the benchmark of which the class has most runs with the metric. ERR_NOT_FOUND
// ("metric") names the nearest; ERR_NO_MEMORY.
int class_days_make(struct class_days *out, const struct fleet *f, int class, const char *metric,
                    struct err *err);
void class_day_write_json(const struct class_day *d, struct jsonw *w); // one object
void class_days_fini(struct class_days *c);

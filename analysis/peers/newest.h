// SPDX-License-Identifier: Apache-2.0
// From runs to one number a node and metric: logs, days taken out, the median of the newest runs.
// Pure.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "analysis/peers/scatter.h"
#include "base/err.h"

enum {
    DAY_NODES_MIN = 20 // on a day, for the class to have a median of that day
};

// Nodes of one class. Runs of one probe (benchmark, variant, method) are in one order for all its
// metrics, the newest first.
struct peers_input {
    int nodes, metrics, runs, probes;
    const float *v;     // [node][metric][run]; NaN: none
    const int32_t *day; // [node][probe][run]: days since 1970; -1: there is no such run
    const int *probe;   // [metric]: which runs it is a number of
    const bool *more;   // [metric]: more is better
    const bool *loss;   // [metric]: metric_is_loss(); NULL: none
};

// Logs, + is worse.
struct newest {
    int nodes, metrics, probes;
    const int *probe;           // borrowed
    double *now;                // [metric][node]: NaN: fewer than RUNS_MIN runs
    double *change;             // [metric][node]: now, less the median of the runs before. NaN: not
                                // known. The pointer is NULL if it was not requested
    unsigned char *runs, *days; // [metric][node]: behind `now`, at most NEWEST_RUNS
    double *grain;              // [metric]: of few levels half a step; 0: it has many
    struct newest_scatter *scatter; // [metric][node]
    void *memory;                   // behind all of them; owned
};

// Bytes of a metric of one node.
#define NEWEST_ROOM (2 * sizeof(double) + sizeof(struct newest_scatter) + 2)

// Days out: from each value of a day with DAY_NODES_MIN nodes, what the class's median of that day
// is above its median of the newest such day is taken off. So nodes that were measured on other
// days are compared as if on one. Medians are of what nodes are above the centre of their hidden
// kind: on a day on which more nodes of one kind were measured, the class has not changed.
int newest_find(struct newest *out, const struct peers_input *in, bool with_change,
                struct err *err);
void newest_fini(struct newest *l);

struct newest_run {
    int32_t day;
    int at; // node × runs + run
};

// The runs of one probe, by day.
struct newest_calendar {
    int n, days;
    struct newest_run *list;
    int *begin; // of each day, and behind the last
};

// One metric of all nodes, with the days taken out.
struct newest_column {
    const struct peers_input *in; // borrowed
    double *x;                    // [node][run]: logs, + is worse; NaN: none
    double *scratch;              // [node][run]
    double *level;                // [node]: the centre of its kind
    struct newest_calendar calendar;
    int probe; // that the calendar is of
    void *memory;
};

int newest_column_init(struct newest_column *c, const struct peers_input *in, struct err *err);
void newest_column_fill(struct newest_column *c, int metric);
void newest_column_fini(struct newest_column *c);
// What runs of one node typically differ by: a standard deviation, the median over nodes, of two
// nodes pooled. NaN: not known. Uses `scratch`.
double newest_noise(const struct newest_column *c);
// What a metric's value is judged by, and back: its log, of a loss that of one and the loss. + is
// worse.
double newest_log(double value, bool more, bool loss);
double newest_value(double x, bool more, bool loss);
// Standard errors of the median of n values, in their standard deviation.
double newest_error(int n);

// SPDX-License-Identifier: Apache-2.0
// A metric over time as a picture, made of the response of GET /v1/history: runs with their
// intervals, the band in which the runs of a stretch lie, and each change with its cause. That of a
// collector (GET /v1/fleet/history) can have the band of the node's class, or the days of a class
// instead of runs. Pure.
#pragma once
#include "analysis/plot/picture.h"
#include "base/buf.h"
#include "base/json.h"

enum {
    HISTORY_DOTS_MAX = 400,   // runs with a dot each; more are drawn in so many columns
    HISTORY_CHANGES_MAX = 64, // changes that are marked; the daemon finds at most 32
    HISTORY_LISTED_MAX = 6,   // changes that are described below the picture, the newest
};

// Of the largest value: the axis spans so much, so that noise does not look like a mountain.
#define HISTORY_LEAST_SPAN 0.1

struct moment { // one run, or one day of a class
    int64_t run, measured_ms;
    int nodes;            // of a day
    double value, lo, hi; // NaN: not known
};

struct history_day { // of the class of the node
    int64_t noon_ms;
    double low, median, high; // 95 % of the nodes are between low and high
};

struct history_change {
    int at; // the first moment after it
    double percent, before, after;
    struct buf cause; // what changed on the machine; owned
};

// The moments between two changes.
struct stretch {
    int from, end;
    double middle, lo, hi; // median and band; lo, hi NaN: too few for a band
};

struct history_picture {
    const char *metric, *node, *variant, *unit; // borrowed from the response
    const char *what;                           // a moment is: "run" or "day"
    bool more_is_better, older; // older: there are earlier runs that the response left out
    int64_t pending;            // runs without metrics yet: changes are not known then
    int64_t others;             // runs of the metric that do not compare with these: no moments
    int64_t searched;           // for changes, the newest; 0: not known
    int n, n_changes, n_stretches, n_days;
    struct moment *moments;   // owned, as what follows
    struct history_day *days; // none: it is not known
    struct history_change *changes;
    struct stretch *stretches;
};

// `answer` must live as long as *p. ERR_UNREACHABLE ("url"): it is no history. The caller calls
// history_fini, also on failure.
int history_from_json(struct history_picture *p, const struct json *answer, struct err *err);
void history_fini(struct history_picture *p);
// The largest value is 30 times the least or more: on an even axis one outlier would make
// all other runs one line, so the axis is logarithmic, over all values.
bool history_is_wide(const struct history_picture *p);
struct range; // analysis/plot/parts.h
void history_fit_wide(const struct history_picture *p, struct range *out);
int history_write_svg(const struct history_picture *p, struct buf *out, struct err *err);
int history_write_text(const struct history_picture *p, const struct plot_text *how,
                       struct buf *out, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// What did a rollout cost? Nodes whose set-up changed, before and after, beside nodes of their
// class that did not change, over the same days: staggered difference in differences. What happened
// to all nodes on those days cancels out. Pure.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
    EFFECT_RUNS = 5,     // before and after, at most
    EFFECT_RUNS_MIN = 3, // at least
    EFFECT_CONTROLS_MIN = 20,
    EFFECT_WAVES_MAX = 400,
    EFFECT_CLEAR_DAYS = 5, // a control does not change until so many days later
};

// One metric. Times are ms since 1970.
struct effect_input {
    int nodes, runs;
    const float *v;         // [node][run]; NaN: none
    const int64_t *at;      // [node][run]: the newest first; below 0: no run
    const int *class;       // [node]: controls are of the treated nodes' class
    const int64_t *changed; // [node]: first run with the new set-up; 0: never changed; -1: it was
                            // never seen with the old one, so it is neither treated nor a control
    int64_t reach;          // how far before and after a change runs count, in ms
    bool more;              // is better
};

enum effect_verdict {
    EFFECT_NO, // the interval holds 0
    EFFECT_WORSE,
    EFFECT_BETTER,
    EFFECT_NO_CONTROLS, // no node was left untouched: what else happened then counts too
    EFFECT_FEW_RUNS,    // too few runs before or after
    EFFECT_VERDICTS
};
extern const char *const effect_verdict_names[EFFECT_VERDICTS];

struct effect {
    enum effect_verdict verdict;
    int waves;              // days of change with an estimate
    int worse_waves;        // of them: slower
    int treated;            // nodes with runs before and after
    int controls;           // nodes that were a control of any wave
    double percent, lo, hi; // of the treated nodes' value, + is more of it; before and after alone
                            // where there are no controls (lo and hi NaN)
    double p;               // NaN: not known
    int64_t first, last;    // changes
};

// A reach that fits these runs ([node][run], as in effect_input): five of the usual intervals, at
// least five days. ERR_NO_MEMORY is the only error.
int effect_reach(int64_t *reach, const int64_t *at, int nodes, int runs, struct err *err);
// ERR_NO_MEMORY is the only error.
int effect_find(struct effect *out, const struct effect_input *in, struct err *err);

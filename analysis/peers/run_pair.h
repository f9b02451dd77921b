// SPDX-License-Identifier: Apache-2.0
// Two runs, of one node or of two, metric by metric: how much they differ, and whether that is more
// than what their intervals allow. Whole runs are compared cell by cell (analysis/compare); of a
// stored one there are only its metrics. Pure.
#pragma once
#include "base/err.h"
#include "base/jsonw.h"
#include "model/summary.h"

struct run_side { // borrowed
    const struct summary *run;
    const struct summary_layout *layout;
};

enum run_pair_verdict { PAIR_SAME, PAIR_SLOWER, PAIR_FASTER, PAIR_UNKNOWN, PAIR_VERDICTS };

struct run_pair_metric {
    const char *metric, *unit; // borrowed
    bool more;                 // is better
    double base, target;
    double percent, lo, hi; // of the base, + is more; 95 % interval. NaN: not known
    double q;               // among the metrics; NaN: not known
    enum run_pair_verdict verdict;
};
struct run_pair {
    int n, slower, faster;
    int only_base, only_target;   // metrics that the other run has not
    struct run_pair_metric *list; // in the order of the base; owned
};

// A value with its 95 % interval, which is NaN where it is not known. If that is of the scatter of
// few values, `freedom` are its degrees of freedom; else 0.
struct run_pair_value {
    double value, lo, hi, freedom;
};
// Judges what `p` lists, by the values of both sides: the one verdict on two runs, or two nodes.
// ERR_NO_MEMORY.
int run_pair_judge(struct run_pair *p, const struct run_pair_value *base,
                   const struct run_pair_value *target, struct err *err);
// ERR_CONFLICT ("target"): the runs have no metric in common; ERR_NO_MEMORY.
int run_pair_compare(struct run_pair *out, const struct run_side *base,
                     const struct run_side *target, struct err *err);
const char *run_pair_verdict(const struct run_pair_metric *m); // "slower"
// The members "slower", "faster", "only_base", "only_target" and "metrics".
void run_pair_write_json(const struct run_pair *p, struct jsonw *w);
void run_pair_fini(struct run_pair *p);

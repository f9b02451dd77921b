// SPDX-License-Identifier: Apache-2.0
// Does a class as a whole get slower? Its newest days are compared with the days before, though no
// node differs from its peers: a firmware on all nodes, a warmer room. Pure.
//
// Of each node the median of its days before is taken off, so that it does not matter which nodes
// were measured on which day. A day is the median of what is left. What days differ by, which is
// common to all nodes, is measured from the days before, with their dependence on one another.
// Metrics are then tested together, since they are dependent: one p a class.
#pragma once
#include "analysis/peers/fleet.h"
#include "analysis/peers/peers.h"
#include "base/buf.h"
#include "base/jsonw.h"

enum {
    DRIFT_DAYS = 5,         // the newest
    DRIFT_BEFORE = 20,      // days before them, at most
    DRIFT_BEFORE_MIN = 10,  // at least
    DRIFT_NODES_MIN = 8,    // on a day, with days before
    DRIFT_NODE_DAYS_MIN = 3 // of a node, before
};
#define DRIFT_SUSPECT 0.001
#define DRIFT_SURE 0.0001
#define DRIFT_LEAST 0.0119286 // log 1.012: smaller changes do not matter, as for a node's own past

struct drift_metric {
    int probe;                 // number in the fleet
    const char *metric, *unit; // borrowed
    bool more;                 // is better
    int nodes;                 // behind it
    int days, before;          // days that were compared
    int64_t from_ms;           // the first of the newest days
    double value, was;         // median of the class then and before; its nodes as they are
    double percent, lo, hi;    // of `was`, + is more; 95 % interval
    double p;                  // of so much worse by chance; NaN: not known
    int64_t since_ms;          // the day from which on it is so; 0: it came slowly
};
struct drift {
    int class;
    enum peers_grade grade; // PEERS_FINE: none
    double p;               // of the class; NaN: too few days or nodes
    int tested, worse;      // metrics; worse by DRIFT_LEAST at least, with a q of at most 5 %
    struct drift_metric worst;
};

// By all runs kept, whatever the set-up: a change of it may be the cause. ERR_NO_MEMORY is the only
// error.
int drift_find(struct drift *out, const struct fleet *f, int class, struct err *err);
// Why the grade is what it is, in one sentence; nothing where nothing is worse.
void drift_sentence(const struct drift *d, struct buf *out);
// {"what":"drift","grade","text","node":null,"nodes":[],"class","metrics_worse","of","p","worst",
// "since"}: as a finding of analysis/peers/fleet_findings_text.h. Where nothing is worse the grade
// is "fine", the text empty and "worst" null.
void drift_write_json(const struct drift *d, const struct fleet *f, struct jsonw *w,
                      const char *key);

// SPDX-License-Identifier: Apache-2.0
// Which nodes are slower than their peers? Nodes of one class are compared metric by metric, within
// hidden kinds. All metrics of a node give one p, and false discoveries are limited over the nodes
// of all classes together. docs/VERDICTS.md has the method, tests/perf/outliers.c what it finds.
// Pure.
#pragma once
#include "analysis/peers/kinds.h"
#include "analysis/peers/newest.h"
#include "base/err.h"

enum { PEERS_MIN = 8 }; // of fewer there is no verdict

enum peers_grade { PEERS_FINE, PEERS_SUSPECT, PEERS_SURE, PEERS_GRADES };
extern const char *const peers_grade_names[PEERS_GRADES];

struct peers_options {
    double least;         // log: a metric must be so much worse
    double typical;       // or the median of a node's metrics this part of it
    double suspect, sure; // q at most
    double mirror;        // as many nodes on the fast side make no finding sure
    int sure_runs, sure_days;
    bool kinds; // look for hidden kinds
};
#define PEERS_DEFAULTS                                                                             \
    ((struct peers_options){.least = 0.0295588 /* log 1.03 */,                                     \
                            .typical = 0.6,                                                        \
                            .suspect = 0.05,                                                       \
                            .sure = 0.001,                                                         \
                            .mirror = 0.2,                                                         \
                            .sure_runs = NEWEST_RUNS,                                              \
                            .sure_days = 2,                                                        \
                            .kinds = true})

// Bytes at most: of a probe of one node while a class is judged, and of a metric of a class,
// against the peers and against the past.
enum { PEERS_ROOM = 64, PEERS_METRIC_ROOM = 2 * sizeof(struct kinds) };

// One class, one number a node and metric.
struct peers_table {
    int nodes, metrics, probes;
    const int *probe;                     // [metric]
    const double *x;                      // [metric][node]: logs, + is worse; NaN: none
    const unsigned char *runs, *days;     // [metric][node]: with a value, the newest ones
    const double *grain;                  // [metric]: as in struct newest; NULL: not known
    const struct newest_scatter *scatter; // [metric][node]; NULL: all nodes scatter alike
    bool change;                          // x is a change: the runs before err as well
};
// Of what was found, borrowed: the nodes' levels, or their changes.
struct peers_table peers_table_of(const struct newest *n, bool change);

struct peers_node {
    enum peers_grade grade;
    double p, q; // NaN: not tested
    int tested;  // metrics
    int worse;   // of them, significantly: q of at most `suspect` among them
    int worst;   // of the worse ones the one that differs most; else the least likely one; -1
    double worst_q;
    unsigned char *worse_in; // [metric]: it is one of the worse ones; NULL: the node is fine
    bool fast;               // as far on the fast side as a node that was found
};

// The nodes of one kind that is worse than the largest, in one metric or in several that have
// nearly the same members.
struct peers_group {
    int metric, kind;   // where the difference is largest
    int metrics;        // in so many …
    unsigned char *in;  // … [metric]: in these
    int n;              // nodes
    unsigned char *has; // [node]
};

struct peers_class {
    int nodes, metrics;
    struct peers_node *node;
    struct kinds *kinds; // [metric]; n 0: fewer than PEERS_MIN nodes have it
    int found, fast;     // nodes; fast / found is the mirror
    int n_groups;
    struct peers_group *groups;
};

struct peers {
    int n;
    struct peers_class *list;
    int tested;     // nodes with a p
    double limit_p; // of a node: up to here the false discovery rate allows `suspect`
};

// What one metric says of one node.
struct peers_place {
    double x;             // of the node
    double centre, scale; // of its kind
    double limit;         // from here on this metric alone would make it a finding
    double p;             // of this metric alone
    int peers;            // nodes of the kind
};

// ERR_NO_MEMORY is the only error.
int peers_judge(struct peers *out, const struct peers_table *classes, int n,
                const struct peers_options *o, struct err *err);
void peers_fini(struct peers *p);
struct peers_place peers_place_of(const struct peers *p, int class, const struct peers_table *t,
                                  int node, int metric, const struct peers_options *o);
// One more of its worse metrics. ERR_NO_MEMORY.
int peers_add_worse(struct peers_node *one, int metric, int metrics, struct err *err);
// What a metric of a node is above the centre of its kind; NaN: it has no value, or no peers.
double peers_above(const struct peers_class *c, const struct peers_table *t, int metric, int node);
// Of the peers of its kind so many are better; one that is as good counts half. NaN: as above, or
// it is the only one.
double peers_share_better(const struct peers_class *c, const struct peers_table *t, int metric,
                          int node);
double peers_mirror(const struct peers_class *c); // 0 where nothing was found

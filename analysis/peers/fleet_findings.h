// SPDX-License-Identifier: Apache-2.0
// What there is to say about the nodes of a fleet: which are slower than their peers or than they
// were, which belong together, by how much, how sure, since when, and what is different about them.
// This is the one verdict; tables, documents and alerts are made of it. Pure.
#pragma once
#include "analysis/peers/differences.h"
#include "analysis/peers/fleet.h"
#include "analysis/peers/peers.h"
#include "model/nodeset.h"

enum fleet_finding_what {
    FINDING_OUTLIER, // slower than its peers
    FINDING_SLOWER,  // slower than it was, beyond what changed for its peers
    FINDING_GROUP,   // nodes that are slower together: a kind of their own
    FINDING_KINDS
};
extern const char *const fleet_finding_names[FINDING_KINDS];

struct fleet_finding {
    enum fleet_finding_what what;
    enum peers_grade grade; // PEERS_FINE of a group, which is no matter of chance
    int class;              // numbers in the fleet
    int n_nodes, *nodes;    // one, but of a group; owned
    int worse, of;          // metrics: of a group those that separate it
    int n_metrics;          // their names, or at least that of the worst one, in the order of …
    const char **metrics;   // … the class: borrowed, of two benchmarks twice; the array is owned
    int probe;              // of the worst metric
    const char *metric, *unit; // the worst one; borrowed
    bool more;                 // more of it is better
    double value;              // of the node: median of its newest runs. Of a group its centre
    double peers;           // median of the peers. FINDING_SLOWER: what the node would have without
                            // the change that is its own
    double spread;          // of the peers, per cent of their median
    double limit;           // from here on this metric alone would be a finding; NaN: not known
    int n_peers;            // 0: it was judged alone
    double percent, lo, hi; // of `peers`, + is more; 95 % interval. NaN: not known
    double p, q;            // of the node; NaN of a group
    double mirror;          // nodes as far on the fast side, for each that was found in the class
    int64_t since_ms;       // 0: not known, or always so
    int n_runs;
    int64_t runs[NEWEST_RUNS]; // by number on the node, the newest first
    struct differences differs;
    int row, metric_at; // in the table of the class
};

// What the verdict is of one node, found or not.
struct fleet_judged {
    enum peers_grade grade; // against its peers or its own past, whichever is worse
    bool grouped;           // it belongs to a group that is a finding
    bool by_peers, by_past; // it was compared with them, in one metric at least
    const char *metric;     // its worst one; borrowed; NULL: it was not judged
    double worse;           // per cent by which this one is worse than its peers'; less: better
};

struct fleet_findings {
    int n;
    struct fleet_finding *list;  // sure ones first, then by how much; groups last
    struct fleet_judged *judged; // [node of the fleet]; owned
    int classes, metrics;        // that were judged
    int nodes, tested;           // of those classes; with a verdict
    int fast;                    // nodes as far on the fast side as those found
    int grades[PEERS_GRADES], groups;
    long left_out[LEFT_OUT_KINDS];
    int *columns;   // [probe of the fleet]: where its metrics begin in …
    bool *compared; // … [metric]: nodes were compared by it. Both owned
};

// ERR_NO_MEMORY.
int fleet_findings_find(struct fleet_findings *out, const struct fleet *f, struct err *err);
void fleet_findings_fini(struct fleet_findings *f);
// The node was judged by this metric too: its newest runs have it, and so have those of its peers.
bool fleet_findings_compared(const struct fleet_findings *list, const struct fleet *f, int node,
                             const char *metric);

// Which findings are wanted, of a verdict that is made over all nodes whatever is wanted.
struct fleet_findings_filter {
    const char *metric;          // it is one of the finding's metrics; NULL: any
    const struct nodeset *where; // sorted: it has one of the finding's nodes; NULL: any
    int grade;                   // PEERS_SUSPECT, PEERS_SURE: not a group; 0: any
};
// Keeps those of the list; its counts stay those of the whole verdict.
void fleet_findings_select(struct fleet_findings *list, const struct fleet *f,
                           const struct fleet_findings_filter *filter);

// A metric of one node beside its peers, in its unit.
struct fleet_place {
    int probe;
    const char *metric, *unit; // borrowed
    bool more;                 // of it is better
    int runs;                  // behind the value
    double value, peers;       // of the node, and the median of its peers; NaN: it has none
    double spread, limit;      // as in a finding
    double worse;              // per cent, as in fleet_judged; NaN: not judged
    double z;                  // by how many spreads it is worse than its peers; NaN: not judged
    double percentile;         // per cent of its peers that are better: 100, it is the worst; NaN
    int n_peers;
};

// All metrics of a node, in the order of its class, as the verdict over the whole fleet has them.
// *list is malloc'ed (caller frees). Returns how many, or -1: ERR_NO_MEMORY.
int fleet_places_find(struct fleet_place **list, const struct fleet *f, int node, struct err *err);

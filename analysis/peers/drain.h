// SPDX-License-Identifier: Apache-2.0
// Which nodes to take out of service in Slurm, and which of them to return to it. Pure: the caller
// knows what Slurm says of each node.
//
// A wrong verdict must not empty a cluster. So only sure findings of single nodes count, never a
// group; of a class at most 2 % of the nodes have our reason at the same time, and at least one
// may; and a node that was drained for another reason is left alone.
#pragma once
#include "analysis/peers/fleet_findings.h"
#include "base/buf.h"
#include "base/jsonw.h"

enum { DRAIN_CLASS_SHARE = 50 }; // one node in so many of a class: 2 %
#define DRAIN_REASON "numaprobe" // reasons of ours begin with it

enum drain_verdict {
    DRAIN_NODE,       // is to be drained
    DRAIN_RESUME,     // we drained it, and it is like its peers now
    DRAIN_NOT_KNOWN,  // what others have drained is not known
    DRAIN_NOT_A_NAME, // its name could mean other nodes to scontrol
    DRAIN_NOT_LISTED, // by Slurm
    DRAIN_OF_OTHERS,  // it has the reason of a person or another program
    DRAIN_OURS,       // we drained it before
    DRAIN_SHARE,      // of its class enough are drained
    DRAIN_VERDICTS
};

struct drain_one {
    enum drain_verdict verdict;
    int node;                            // number in the fleet
    const struct fleet_finding *finding; // borrowed; NULL of DRAIN_RESUME
    const char *reason;                  // of Slurm, borrowed; "": none, or not known
};

struct drain_plan {
    int n;
    struct drain_one *list; // in the order of the findings, nodes to resume last; owned
    int drains;             // DRAIN_NODE
    int ours;               // nodes of the fleet that have our reason
    int listed;             // that Slurm lists: limits are shares of these
    bool known;             // Slurm's reasons are
};

// `reasons`: [node of the fleet] what sinfo gives as its reason, "" for none; NULL: Slurm does not
// list it. reasons NULL: they are not known. ERR_NO_MEMORY.
int drain_plan_make(struct drain_plan *out, const struct fleet *f,
                    const struct fleet_findings *list, const char *const *reasons, struct err *err);
void drain_plan_fini(struct drain_plan *p);

// The reason that the node gets: "numaprobe +6.3% latency.n0.n1.median_ns".
void drain_reason(const struct fleet_finding *one, struct buf *out);
// A line of a shell each: a command, or a comment that says why there is none. At most `most` of
// each, and how many more there are.
void drain_write_lines(const struct drain_plan *p, const struct fleet *f, int most,
                       struct buf *out);
void drain_write_json(const struct drain_plan *p, const struct fleet *f, int most, struct jsonw *w,
                      const char *key);

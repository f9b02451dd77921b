// SPDX-License-Identifier: Apache-2.0
// A judgement as bytes: from the process that judges through the collector, which does not look
// into it, to the process that stores. And the states of nodes, which go the other way.
#pragma once
#include "base/buf.h"
#include "fleet/collect/node_states.h"
#include "fleet/judge/kept_findings.h"
#include "fleet/store/findings.h"
#include "fleet/store/store.h"
#include "nodes/named.h"

enum {
    JUDGING_NODES_FD = 3,        // of the process that judges: a memory file of judged_nodes
    JUDGING_OUT_FD = 4,          // what it writes
    JUDGING_STORE_FD = 5,        // where the store is: it may have a password
    JUDGED_BYTES_MAX = 64 << 20, // of a judgement
    JUDGED_SUMMARY_MAX = 1 << 16,
    JUDGED_DRAIN_MAX = 8 << 20, // of what it says about drains, together
};
// What the process that judges is given as its third word: the sum of these.
enum {
    JUDGING_SLURM_KNOWN = 1, // what Slurm says of the nodes is known
    JUDGING_APPLY = 2,       // it says which nodes are to be drained now
    JUDGING_STANDS_BY = 4,   // nothing is stored, and how nodes are is not known
    JUDGING_KNOWS_GONE = 8,  // a node that is not among those is gone
};

// A node as the collector sees it now.
struct judged_node {
    char name[64], other[64], version[32], why[POLLER_WHY];
    char slurm_reason[NAMED_WORD_MAX + 1];
    bool in_slurm;
    enum node_state state;
    enum fleet_outcome outcome;
    int64_t clock_off_ms, seen_ms;
    bool poisoned, too_old, duplicate, twice, asleep; // as in struct polled
};

// What the process writes: this, then its parts, in their order.
enum judged_part {
    JUDGED_COVERAGE,    // JSON for GET /v1/fleet/status
    JUDGED_DRAIN,       // JSON for GET /v1/fleet/drain
    JUDGED_DRAIN_LINES, // the same as lines of a shell
    JUDGED_DRAIN_NOW,   // lines for fleet/collect/draining.h
    JUDGED_BODY,        // the judgement
    JUDGED_PARTS
};
struct judged_head {
    uint32_t bytes[JUDGED_PARTS];
    struct fleet_store_size store;
    char problem[200];         // "": it was made
    struct fleet_tally judged; // JUDGING_STANDS_BY: of the findings that are stored
};

// The judgement: this, the unseen, the sights.
void judged_begin(struct buf *out, int n_unseen, int n_seen, int64_t now_ms);
void judged_add_unseen(struct buf *out, const struct kept_unseen *u);
void judged_add_sight(struct buf *out, const struct kept_sight *s);

struct judged_lists {
    struct kept_judgement judgement; // points into the bytes, and here
    struct kept_sight *seen;         // owned
    struct kept_unseen *unseen;      // owned
};
// The bytes must live as long. ERR_INTERNAL: they are no judgement; ERR_NO_MEMORY.
int judged_read(struct judged_lists *out, const char *bytes, size_t n, struct err *err);
void judged_lists_fini(struct judged_lists *l);

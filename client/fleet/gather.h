// SPDX-License-Identifier: Apache-2.0
// What nodes have measured, brought together to be judged: from the nodes themselves, from the
// collector of the fleet (--fleet), or (--stored) from the one daemon that has it all.
#pragma once
#include "analysis/peers/coverage.h"
#include "analysis/peers/fleet.h"
#include "client/config.h"
#include "client/fleet/collector.h"
#include "client/fleet/fan.h"

struct gathered_node { // of each node of `names`
    char version[32];  // of its daemon
    int pages;         // of its runs that were not the last
    int n_facts, next; // documents that are fetched from it, and how many of them are here
    int *facts;        // owned; numbers in gather.wanted
    int history, self; // numbers in gather.histories and gather.selves, plus 1; 0: not known
};

struct gather {
    const struct cli *cli;
    struct fleet *fleet;         // owned
    struct nodeset names;        // owned: that were requested, or that the daemon has runs of
    struct fan *fan;             // owned; NULL with --stored and --fleet
    struct gathered_node *nodes; // owned; NULL with --stored
    struct known_node *known;    // owned; [names]: with --fleet, or --stored and nodes, else NULL
    struct interned wanted;      // hashes of facts that were requested
    struct interned histories;   // that responded
    struct interned selves;      // the same, each with the name of its node
    unsigned char *senders;      // owned; [wanted]: of so many nodes
    int senders_room;
    int runs;       // of each node and benchmark
    struct err err; // no memory, noticed in a reply
};

// Fetches the newest runs of each node, and each document of facts once. Nodes that fail are in
// `fan`; *out is whole then too. Prints progress on stderr, no result. -1: nothing was gathered.
// `runs`: so many of each node and benchmark, the newest.
enum {
    GATHER_ALL_RUNS = NEWEST_RUNS + BEFORE_RUNS, // that a node is judged by
    GATHER_EFFECT_RUNS = 50,                     // as many as a node gives in one response
};
int gather_all(struct gather *out, const struct cli *c, int runs, struct err *err);
// To count nodes and runs: values are not kept.
int gather_times(struct gather *out, const struct cli *c, int runs, struct err *err);
void gather_fini(struct gather *g);
#define CLEANUP_GATHER CLEANUP(gather_fini)

// The node has sent what it has, which may be nothing.
bool gather_has_heard(const struct gather *g, int node);
// The nodes that were requested, or that the daemon has runs of. Up are those that responded; with
// --fleet those whose state the collector calls up. With --stored, or a collector on standby, that
// is not known, and none is.
int gather_coverage(const struct gather *g, struct coverage *out, struct err *err);
// No node has responded or has runs, or Ctrl-C came: there is nothing to judge.
bool gather_is_empty(const struct gather *g);

// Failures and what is odd about clocks and versions, on stderr; then the exit status, with
// `verdict` where the nodes allow one.
int gather_end(struct gather *g, int verdict);
// The same as members of a document: "wrong_clocks", "copied_histories", "failures".
void gather_write_missing(struct gather *g, struct jsonw *w);
void gather_write_json(struct gather *g, struct jsonw *w); // "nodes" before them

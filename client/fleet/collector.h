// SPDX-License-Identifier: Apache-2.0
// What the collector of a fleet (numaprobe-fleetd) has: its nodes, and their newest runs, page by
// page. The collector is not trusted more than a node is.
#pragma once
#include "analysis/peers/interned.h"
#include "client/config.h"
#include "model/nodeset.h"
#include "model/summary.h"

// A node as the collector sees it.
struct known_node {
    char name[64], version[32];
    char state[16], outcome[16]; // words of its API: "up", "stored"
    bool standby;                // the collector contacts no node: `state` is not known
    bool in_slurm;               // the collector knows what Slurm says of it …
    char slurm_reason[128];      // … such as why it is drained; "": it is not
    char *why;                   // owned: why its newest runs may be missing; NULL: they are there
    enum err_code code;          // of `why`
    bool clock_wrong;            // by a minute or more, as the collector judges it
    bool heard;                  // a page of it was stored
};

// The settings with which the collector is contacted as a daemon is; the caller frees.
// ERR_NO_MEMORY.
struct cli *collector_settings(const struct cli *c, struct err *err);

// Makes the collector the daemon that *c contacts. ERR_USAGE: --fleet does not name one.
int collector_use(struct cli *c, struct err *err);

// Appends "&where=n%5B1-9%5D", or nothing where that would be too long, or there are no nodes.
void collector_where(const struct nodeset *where, struct buf *path);

// Says that a page is not behind the one before. Returns -1.
int collector_endless(struct err *err);

// Nodes of the set (NULL: all). fn owns *n->why then, and returns -1 to end with its error.
// ERR_NOT_FOUND: a daemon responds that is no collector.
typedef int known_node_fn(void *ctx, struct known_node *n, struct err *err);
int collector_nodes(const struct cli *at, const struct nodeset *where, known_node_fn *fn, void *ctx,
                    struct err *err);
// Adds what the collector's own status says is wrong with it: its sources, its store, its clock.
int collector_problems(const struct cli *at, struct interned *texts, struct err *err);

// `newest` runs of each node and benchmark. The page is valid during the call.
typedef int known_runs_fn(void *ctx, struct summary_page *p, struct err *err);
int collector_runs(const struct cli *at, const struct nodeset *where, int newest, known_runs_fn *fn,
                   void *ctx, struct err *err);

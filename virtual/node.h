// SPDX-License-Identifier: Apache-2.0
// What a virtual node responds: the part of the node's REST API that fleet commands use. Writes
// documents, knows no sockets.
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/run.h"
#include "virtual/faults.h"
#include "virtual/world.h"

struct requested_run {
    int benchmark;
    uint64_t key;                                // hash of its Idempotency-Key; 0: none
    int64_t created_ms, started_ms, finished_ms; // UTC
    bool canceled, failed, labelled;
    bool followed; // its end was waited for: who requested it knows its number
};

// A label that a run got after it had finished. It has a number of its own in the feed.
struct virtual_note {
    int number;   // of the run, from 1
    int finished; // runs that had finished before
    char label[RUN_LABEL_MAX + 1];
};

// State of a node that the world does not have: its requested runs, and its notes.
struct virtual_node {
    int n, room;
    struct requested_run *runs; // owned
    int n_notes, notes_room;
    struct virtual_note *notes; // owned, in their order
};

struct virtual_fleet {
    struct world *world;
    struct faults faults;
    struct virtual_node *nodes; // owned
    int64_t started_ms;         // UTC
    int64_t run_ms;             // real time that a requested run takes
};

void virtual_fleet_free(struct virtual_fleet *f);

struct virtual_request {
    char method[8], path[128], query[400];
    int64_t wait_s;
    uint64_t key;     // hash of its Idempotency-Key; 0: none
    const char *body; // its bytes, ends with a NUL
    size_t body_len;
};

struct virtual_reply {
    int status;
    const char *type;
    struct buf body;
    int retry_after_s; // 0: none
    int64_t until_ms;  // not 0: nothing to send before this time (UTC), unless `wait` ends earlier
};

// Fills *r, which the caller frees. `kind` and `value` are the node's fault now.
void virtual_respond(struct virtual_fleet *f, int node, const struct virtual_request *q,
                     enum fault_kind kind, double value, int64_t now_ms, struct virtual_reply *r);

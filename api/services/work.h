// SPDX-License-Identifier: Apache-2.0
// What an answer will cost, from facts that are cheap to read: how many cells, ranks, points and
// bytes it is made of. What takes longer than WORK_INLINE_US is not done in the loop.
#pragma once
#include "http/server/worker_message.h"

enum {
    // Half of what the loop has, as this was counted on a fast machine: see WORK_CELL_NS.
    WORK_INLINE_US = 5000,
    // Of the slowest form, CSV; reports and pictures take a third of it, a comparison half of it
    // for each of its two runs.
    WORK_CELL_NS = 10000,
    WORK_CELL_FAST_NS = 3000,
    WORK_CELL_PAIR_NS = 5000,
    WORK_CELL_BYTES = 260, // of the largest form, NDJSON
    WORK_RANK_NS = 20000,
    WORK_BYTE_NS = 20,        // of logs and topologies, read and escaped
    WORK_TOPOLOGY_US = 50000, // to read a stored one: a process of its own and hwloc
};

struct work {
    enum worker_kind kind; // what a worker is to do
    int64_t us;            // 0: nothing that counts, or it will be refused
    size_t bytes;          // of the answer, at most
    bool settled;          // the answer depends on nothing but `tag`; else on all that is stored
    char tag[200];
};

// Of a route; *w is zeroed. What cannot be read costs nothing here: its handler says why. `why` is
// room for that.
typedef void work_fn(const struct request *q, struct work *w, struct err *why);

work_fn work_of_matrix, work_of_picture, work_of_export, work_of_log, work_of_compare,
    work_of_report, work_of_metrics;
work_fn changes_work, history_work, runs_work, check_work, metrics_work,
    imports_work; // beside their handlers
// Adds what run `id` costs. False: there is no such run, or it is not over.
bool work_add_run(const struct request *q, struct work *w, int64_t id, int cell_ns, bool log,
                  bool topology, struct err *why);

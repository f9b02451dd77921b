// SPDX-License-Identifier: Apache-2.0
// What the answers of this node cost, from facts that are cheap to read: how many cells, ranks,
// points and bytes they are made of.
#pragma once
#include "http/messages/work.h"

// What a worker does besides replies: struct job_kind.number.
enum job_number {
    JOB_VERDICTS = 1, // of the checks that the request needs (api/resources/check.h)
    JOB_METRICS,      // of the run that the path names (core/results/run_metrics.h)
    JOB_IMPORT,       // read the document in the file that comes with it (api/resources/imports.h)
};

enum {
    // Of the slowest form, CSV; reports and pictures take a third of it, a comparison half of it
    // for each of its two runs.
    WORK_CELL_NS = 10000,
    WORK_CELL_FAST_NS = 3000,
    WORK_CELL_PAIR_NS = 5000,
    WORK_CELL_BYTES = 260,     // of the largest form, NDJSON
    WORK_PAGE_BYTES = 4 << 20, // pictures of a report, twice as much as they were ever seen to have
    WORK_RANK_NS = 20000,
    WORK_BYTE_NS = 20,             // of logs and topologies, read and escaped
    WORK_TOPOLOGY_US = 50000,      // to read a stored one: a process of its own and hwloc
    WORK_MEASURED_BYTES = 1 << 20, // of a topology of 16 nodes with all attributes, 0.4 MB
};

work_fn work_of_matrix, work_of_picture, work_of_export, work_of_log, work_of_compare,
    work_of_compare_picture, work_of_report, work_of_report_page, work_of_metrics;
work_fn feed_work, history_work, runs_work, check_work, metrics_work, imports_work,
    topology_work; // beside their handlers
// Adds what run `id` costs. False: there is no such run, or it is not over.
bool work_add_run(const struct request *q, struct work *w, int64_t id, int cell_ns, bool log,
                  bool topology, struct err *why);

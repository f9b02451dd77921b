// SPDX-License-Identifier: Apache-2.0
// The run that a report is about.
#pragma once
#include "base/json.h"
#include "model/fingerprint.h"
#include "model/matrix.h"
#include "model/record.h"
#include "model/spec.h"
#include "model/topology.h"

struct report_source { // a run; all borrowed, and only while report_new works
    enum benchmark_id benchmark;
    const struct matrix *matrices;
    int n;
    const struct rank_info *ranks; // NULL: not known
    int n_ranks;
    const struct topology *topology;   // of the run's own time; NULL: not known
    const struct json *conditions;     // of the run, an array; NULL: not known
    const struct fingerprint *machine; // facts at the time of the run; NULL: not known
    uint64_t base_page;                // of the kernel, in bytes; 0: by these facts
    int64_t found_bytes;               // cache beyond those of the topology; 0: none was found
    int64_t size_bytes;                // that were requested; 0: auto, or not known
    enum stores stores;                // of bandwidth's copy, scale, add and triad
};

// SPDX-License-Identifier: Apache-2.0
// What GET /metrics shows of the runs that this node measured: the newest value of each series, and
// how regularly each variant of a benchmark is measured. Imports and other nodes are not shown.
#pragma once
#include <stdint.h>

#include "analysis/metrics.h"
#include "api/api.h"

enum {
    // Series shown, those of the newest runs first: four runs with the most metrics that a run may
    // have (METRICS_MAX, 512). A machine with two nodes has about 120 for all benchmarks and one
    // variant each. 2048 lines of at most 300 bytes are 0.6 MB, read and sorted in 6 ms and kept
    // until the database changes.
    GAUGES_MAX = 4 * METRICS_MAX,
    // Those beyond are counted no further: 2 ms.
    GAUGES_COUNTED_MAX = 50000,
};

struct gauge {
    const struct metric_rule *rule;
    struct metric_labels labels;
    double value; // in the base unit
    int benchmark;
    int64_t series, run_id, measured_ms;
    char *variant; // owned
};

// A benchmark as measured in one way.
struct gauge_variant {
    int benchmark;
    const char *variant; // of a gauge
    int64_t measured_ms; // of its newest run
    int64_t interval_ms; // the longest pause between its last runs; 0: they are not regular
};

struct gauges {
    int n, n_variants;
    struct gauge *list;             // those of a family together, in an order that stays
    struct gauge_variant *variants; // by benchmark and variant
    int64_t omitted;                // series beyond GAUGES_MAX
    int64_t newest_run;             // 0: nothing was measured
};

// Borrowed until the next call. NULL: see *err.
const struct gauges *gauges_get(const struct api_services *api, struct err *err);

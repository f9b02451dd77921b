// SPDX-License-Identifier: Apache-2.0
// What GET /metrics shows of the runs that this node measured: the newest value of each series, and
// how regularly each variant of a benchmark is measured. Imports and other nodes are not shown.
#pragma once
#include <stdint.h>

#include "analysis/metrics/metrics.h"
#include "api/services/services.h"

enum {
    // Series shown, those of the newest runs first. A machine with two nodes has about 120 for all
    // benchmarks, one with eight about 700. Each takes 10 us to read and write: 10 ms, once after a
    // change. Those beyond are counted (numaprobe_series_omitted).
    GAUGES_MAX = 1024,
    // Of at most so many variants, those of the newest runs: 14 of each benchmark.
    GAUGE_VARIANTS_MAX = 100,
    // Those left out are counted no further: 1 ms.
    GAUGES_COUNTED_MAX = 20000,
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
    const char *mode;    // of latency: "concurrent", "serial", or "both" for their ratios; else ""
    int64_t run_id, measured_ms; // of its newest run
    int64_t interval_ms;         // the longest pause between its last runs; 0: they are not regular
};

struct gauges {
    int n, n_variants;
    struct gauge *list;             // those of a family together, in an order that stays
    struct gauge_variant *variants; // by benchmark, variant and mode
    int64_t omitted;                // series beyond these limits
    int64_t newest_run;             // 0: nothing was measured
    int64_t reading;                // another number for each time that they were read
};

// Borrowed until the next call. NULL: see *err.
const struct gauges *gauges_get(const struct api_services *api, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Summary metrics of runs, written as points of series; core/store/history.h reads them by time.
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "model/metric.h"

struct store;

// Summary metrics of a run, for its series.
struct run_metrics {
    int version;         // of their definitions, from 1
    const char *variant; // spec_variant: runs of one variant may be lined up
    const struct metric *list;
    int n;
};

// Replaces what is stored of the run's metrics.
int store_run_metrics(struct store *s, int64_t id, const struct run_metrics *m, struct err *err);
// The run has none of that version (it cannot be read): it is not requested again.
int store_run_no_metrics(struct store *s, int version, int64_t id, struct err *err);
// A succeeded run whose metrics are not of `version`, any of them: 1 found, 0 none, -1.
int store_run_without_metrics(struct store *s, int version, int64_t *id, struct err *err);

// Inside the store, in a transaction.
int store_metrics_put(struct store *s, int64_t id, const struct run_metrics *m, struct err *err);

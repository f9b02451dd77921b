// SPDX-License-Identifier: Apache-2.0
// Reading the series of metrics by time, and what a monitoring system wants to know of all runs.
// Part of the store (core/store/store.h); series and points are written with their run.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/metric.h"
#include "model/run.h"

struct store;

struct series_info { // borrowed, for the length of a call
    int64_t id;
    const char *metric, *node, *variant, *unit;
    int64_t first_ms, last_ms; // measured
    int64_t last_run;
    double last_value;
};

struct series_filter { // NULL: any
    const char *metric, *node, *variant;
    int limit;
    int64_t until_ms; // what was measured later does not count; 0: all does
};
// By metric, node and variant; calls fn for each. *more: others fit too.
int store_series_list(struct store *s, const struct series_filter *f,
                      void (*fn)(void *ctx, const struct series_info *i), void *ctx, bool *more,
                      struct err *err);
// How many points, counting no further than `most`.
int store_series_count(struct store *s, int64_t series, int most, int *n, struct err *err);

struct history_point {
    int64_t run_id, measured_ms;
    double value, lo, hi; // NaN: not known
};
// The newest `limit` of those measured from since_ms until before until_ms (0: open), in order of
// time. *out malloc'ed. *more: there are older ones in that stretch.
int store_history(struct store *s, int64_t series, int64_t since_ms, int64_t until_ms, int limit,
                  struct history_point **out, int *n, bool *more, struct err *err);

// The hashes of the machine of a run; "": not known, or the run is gone.
struct run_setup {
    char class_hash[65], config_hash[65];
};
int store_run_setup(struct store *s, int64_t id, struct run_setup *out, struct err *err);

// When the series was measured last at or before at_ms: 1 found, 0 never, -1.
int store_series_before(struct store *s, int64_t series, int64_t at_ms, int64_t *measured_ms,
                        struct err *err);

// The newest run that was measured on `node`, in any state; imports are none: 1 found, 0 none, -1.
int store_run_latest(struct store *s, const char *node, int64_t *id, struct err *err);

// The newest run of `benchmark` that succeeded on `node`, on hardware of that hash and by that
// method; imports are none: 1 found, 0 none, -1.
int store_run_newest_like(struct store *s, const char *node, enum benchmark_id benchmark,
                          const char *class_hash, int64_t *id, struct err *err);

struct run_like { // borrowed
    const char *node;
    enum benchmark_id benchmark;
    const char *class_hash, *config_hash; // of the run's fingerprint
    const char *method;
};
// Runs are looked for in the newest RUNS_LIKE that succeeded. They were measured here, and no time
// limit left something out.
enum { RUNS_LIKE = 16 };
struct metric_wanted { // borrowed
    struct run_like like;
    const char *metric;
    const char *without; // no part of the variant; "": any variant
};
// The value in the newest of such runs that was not disturbed. Those with few samples come last: 1
// found, 0 none, -1.
int store_metric_newest_like(struct store *s, const struct metric_wanted *w, int64_t *run,
                             double *value, struct err *err);

struct run_took { // borrowed, for the length of a call
    int64_t id;
    int n_ranks;
    int64_t started_ms, finished_ms;
    bool without_mpi; // although the request did not say so
    const char *spec; // JSON
};
// Those that had no budget, the newest first, disturbed ones behind the others. fn returns false
// when it has enough.
int store_runs_like(struct store *s, const struct run_like *like,
                    bool (*fn)(void *ctx, const struct run_took *r), void *ctx, struct err *err);

struct newest_value { // borrowed, for the length of a call
    int64_t series;
    const char *metric, *variant, *unit;
    int64_t run_id, measured_ms;
    double value;
};
// The newest value of each series that was measured on `node`, those of the newest run first; calls
// fn for at most `limit`. The newest run is the one with the highest number, whatever the clock
// was.
int store_newest_values(struct store *s, const char *node, int limit,
                        void (*fn)(void *ctx, const struct newest_value *v), void *ctx,
                        struct err *err);
// How many such series there are, counting no further than `most`.
int store_newest_count(struct store *s, const char *node, int most, int64_t *n, struct err *err);

enum { RUNS_PENDING_MAX = 1000 }; // counted: 1 ms
// How many succeeded runs of `node` (NULL: of all) have metrics that are older than `version` or
// none, counting no further than `most`.
int store_runs_pending(struct store *s, int version, const char *node, int most, int64_t *n,
                       struct err *err);
// Stored runs by state.
int store_run_states(struct store *s, int64_t count[RUN_STATES], struct err *err);
// Rises with every row that this process writes: what was read before is the same while it stays.
int64_t store_version(const struct store *s);

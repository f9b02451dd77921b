// SPDX-License-Identifier: Apache-2.0
// A simulated fleet, for tests and `numaprobe fleet demo`: what each node is, what it measures, and
// which nodes are slow. Everything follows from the options and the seed, and is computed when it
// is needed: the same run of the same node always has the same values. Pure.
//
// log(value) of node i, run r, metric m is the sum of
//   the class's value of m            (each class is another kind of machine)
//   kind                              (a share of the nodes has fewer DIMMs: slower memory)
//   spread between nodes              (normal; a node's metrics are correlated)
//   spread between runs               (normal, likewise)
//   drift of the class                (per day)
//   rollout                           (a new microcode, in waves, may cost something)
//   badness                           (some nodes, in some metrics, from some run on)
// Slower means a longer latency or a lower bandwidth.
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/jsonw.h"
#include "base/param.h"
#include "model/fingerprint.h"
#include "model/metric.h"
#include "model/summary.h"

enum {
    WORLD_NODES_MAX = 60000,
    WORLD_CLASSES_MAX = 4,
    WORLD_METRICS_MAX = 24, // of one run
    WORLD_BENCHMARKS = 2,
    WORLD_NAME_ROOM = 24,
};

struct world_options {
    int64_t nodes, classes, runs, interval_s, seed, bad, bad_from, bad_metrics, waves;
    double node_percent, run_percent, correlation, drift_percent, bad_percent, kind_share,
        kind_percent, rollout_percent;
    bool kind_hidden;
    int64_t now_ms; // UTC, when the newest runs finish; not in the table
};
extern const struct param_table world_options; // of struct world_options

struct world;

// ERR_INVALID, ERR_NO_MEMORY. The caller frees.
struct world *world_new(const struct world_options *o, struct err *err);
void world_free(struct world *w);
const struct world_options *world_get_options(const struct world *w);
void world_name(const struct world *w, int node, char out[static WORLD_NAME_ROOM]); // "node017"
// A run: the round counts from 0, of each benchmark. Rounds before options.runs lie in the past;
// later ones are requested.
struct world_run {
    int node, round, benchmark; // index below WORLD_BENCHMARKS
    int64_t finished_ms;        // UTC
};
struct world_run world_past_run(const struct world *w, int node, int round, int benchmark);
int world_benchmark_find(const char *name); // -1: none
// Fills *s but for seq and id, and its metrics. Returns how many.
int world_measure(const struct world *w, const struct world_run *run, struct summary *s,
                  struct metric list[static WORLD_METRICS_MAX]);
const struct fingerprint *world_machine(const struct world *w, const struct world_run *run);
const struct facts *world_facts(const struct world *w, const char *hash); // NULL: no such facts
// Which nodes are slow and why, classes with their values, kinds, drift and rollout.
void world_write_truth(const struct world *w, struct jsonw *out);

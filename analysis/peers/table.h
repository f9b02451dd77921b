// SPDX-License-Identifier: Apache-2.0
// One class of a fleet as arrays: its nodes, the metrics that enough of them have, and their runs
// with their present set-up. Pure.
#pragma once
#include "analysis/peers/fleet.h"

struct fleet_table {
    int class;
    struct peers_input in; // points into the arrays below
    int *node;             // [row]: number in the fleet
    int *probe;            // [probe of `in`]: number in the fleet
    int *column;           // [metric]: column of its probe
    int *series;       // [row][probe]: number in the fleet; -1: none. Run r of `in` is its run r
    int *metric_probe; // [metric]
    bool *more, *loss; // [metric]
    float *v;          // [row][metric][run]
    int32_t *day;      // [row][probe][run]
};

// Bytes that the tables of all classes together may take, with what is found from them: half of
// what a process that judges may take (INGEST_MEMORY); the runs themselves take the most of the
// other half. 10,000 nodes with 25 runs have room for 270 metrics, 65,536 nodes for 40.
enum { TABLES_ROOM = 384 << 20 };

// Runs of a series that count: the newest ones, with the node's present set-up. 0: RUNS_MIN of them
// are not new enough. `left_out` as below.
int fleet_series_runs(const struct fleet *f, const struct fleet_series *s,
                      long left_out[LEFT_OUT_KINDS]);
// Where the room is not enough for all metrics, the table has those that most nodes have.
// `left_out` counts what is not in the table; NULL: not needed. ERR_NO_MEMORY.
int fleet_table_make(struct fleet_table *t, const struct fleet *f, int class,
                     long left_out[LEFT_OUT_KINDS], struct err *err);
void fleet_table_fini(struct fleet_table *t);
const char *fleet_table_metric(const struct fleet_table *t, const struct fleet *f, int metric);
const char *fleet_table_unit(const struct fleet_table *t, const struct fleet *f, int metric);
int fleet_table_runs(const struct fleet_table *t, int row, int probe); // so many
// NULL: the node has no such run.
const struct fleet_run *fleet_table_run(const struct fleet_table *t, const struct fleet *f, int row,
                                        int probe, int run);

// SPDX-License-Identifier: Apache-2.0
// Runs of many nodes, collected from pages of summaries, and the arrays that they are judged by.
// What is left out is counted by reason. Pure: the caller states the time.
//
//     struct fleet *f = fleet_new(&options, &err);
//     fleet_add_page(f, page, &err);          // of each node; any order, a run twice counts once
//     fleet_add_facts(f, facts, &err);        // documents of fleet_facts_wanted()
//     fleet_findings_find(&findings, f, &err);      // analysis/peers/fleet_findings.h
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "analysis/peers/columns.h"
#include "analysis/peers/interned.h"
#include "analysis/peers/newest.h"
#include "model/fingerprint.h"
#include "model/summary.h"

struct fleet_options {
    int64_t now_ms;       // ages count from here
    int window_days;      // the newest runs may be as old, or three of the node's usual intervals
    double disturbed_max; // share of samples
    bool forced;          // runs count that were started over a blocker
    int runs_max;         // newest ones kept of each node and probe
    bool times_only;      // no values are kept: nodes and runs are counted, and nothing is judged
};
#define FLEET_DEFAULTS                                                                             \
    ((struct fleet_options){                                                                       \
        .window_days = 14, .disturbed_max = 0.1, .runs_max = NEWEST_RUNS + BEFORE_RUNS})

// Bytes that the values of runs may take, 25 of each probe. Those of one node take NODE_ROOM: 20
// probes with 4,096 metrics each. Those of all take RUNS_ROOM, a third of what a process that
// judges may take (INGEST_MEMORY). Where that is taken, a node still has SHARE_ROOM: five probes
// with 30 metrics each. So nodes that lie about what they measured do not take the memory of all.
// Where more runs are kept, a node has as many times its room, and all have twice theirs: there
// are no tables of all metrics beside them.
enum { NODE_ROOM = 16 << 20, RUNS_ROOM = 256 << 20, SHARE_ROOM = 16 << 10 };

// Runs first, then nodes, then metrics.
enum fleet_left_out {
    LEFT_OUT_STATE,
    LEFT_OUT_DISTURBED,
    LEFT_OUT_FORCED,
    LEFT_OUT_CLASS,
    LEFT_OUT_METRICS,
    LEFT_OUT_DATE,
    LEFT_OUT_REPEATED,
    LEFT_OUT_CROWDED,
    LEFT_OUT_OLD,
    LEFT_OUT_SETUP,
    LEFT_OUT_RUNS,
    LEFT_OUT_SMALL,
    LEFT_OUT_ROOM,
    LEFT_OUT_KINDS
};
struct fleet_reason {
    const char *name; // stable, in JSON: "too_few_runs"
    const char *text; // "4 nodes with fewer than 3 runs": what follows the number, which is 1 …
    const char *many; // … or more
};
extern const struct fleet_reason fleet_reasons[LEFT_OUT_KINDS];

struct fleet_run {
    int64_t measured_ms, id;
    const struct columns *columns; // that it has, of its probe; NULL: no values are kept
    float *v;                      // [place in `columns`]; owned
    int config;                    // number in `configs`; -1: not known
};

// Runs that are comparable: of one class, benchmark, variant, method and version of the metrics.
struct fleet_probe {
    int class; // number in `classes`
    char benchmark[24], variant[256], method[40];
    int metrics_version;
    struct interned metrics;
    char (*units)[8]; // [metric]; owned
    int units_room;
    struct columns_lists lists; // that its runs have
};

// Of one request and class, measured by another method or with metrics of another version: before
// an update of numaprobe, or after it.
bool fleet_probes_are_versions(const struct fleet_probe *a, const struct fleet_probe *b);

// Of one node and probe.
struct fleet_series {
    int node, probe;
    int n, room;
    struct fleet_run *runs; // the newest first; owned
    int named;              // metrics of the probe that this node was the first to name
    float *lo, *hi;         // [as v of the newest run]: its intervals; owned
};

double fleet_run_value(const struct fleet_run *r, int column); // NaN: none, or none above 0
// What the newest n runs have, also 0; NaN: none.
void fleet_series_numbers(const struct fleet_series *s, int column, int n, float *out);
int fleet_series_values(const struct fleet_series *s, int column); // runs that have one
// Adds the values of all its runs to counts[column]. One node may name thousands of metrics that no
// other has: what goes through all nodes for each metric asks first how many have it.
void fleet_series_count(const struct fleet_series *s, int *counts);

struct fleet_node {
    int class;         // of its newest run; -1: none
    int config;        // of its newest run; -1: not known
    int64_t newest_ms; // 0: it has no run
    int64_t setup_ms;  // its newest run with another set-up; 0: none
    int n, room;
    int *series;   // owned
    int64_t taken; // bytes of its values, and of what it was the first to name
};

struct fleet_facts {
    int n;                // 0: the document is not here
    char **name, **value; // one block; owned
};

struct fleet {
    struct fleet_options o;
    struct interned nodes, probes, classes, configs;
    int n_series;
    struct fleet_node *node;
    struct fleet_probe *probe;
    struct fleet_series *one; // [n_series]
    struct fleet_facts *class_facts, *config_facts;
    int node_room, probe_room, series_room, class_room, config_room;
    int64_t taken;                 // bytes, by all nodes
    long runs;                     // kept
    long left_out[LEFT_OUT_KINDS]; // runs that were not taken
    struct columns_map map;        // of the page's layout
    int map_layout, map_probe;
    const void *map_page;
};

struct fleet *fleet_new(const struct fleet_options *o, struct err *err);
void fleet_cleanup(struct fleet **f);
#define CLEANUP_FLEET CLEANUP(fleet_cleanup)
// ERR_NO_MEMORY is the only error. What was taken before it stays.
int fleet_add_page(struct fleet *f, const struct summary_page *p, struct err *err);
// Of a class or of a set-up, whichever has this hash; of neither: nothing happens.
int fleet_add_facts(struct fleet *f, const struct facts *facts, struct err *err);
// The next hash of a class or set-up whose document is not here, from *at on, which is 0 first.
// NULL: no more.
const char *fleet_facts_wanted(const struct fleet *f, int *at);
const char *fleet_fact(const struct fleet_facts *f, const char *name); // NULL: none
// 0: some set-up or class, or one of the n documents, has the fact. ERR_NOT_FOUND ("fact") names
// the nearest one.
int fleet_fact_check(const struct fleet *f, const char *fact, struct err *err);
int fleet_facts_check(const struct fleet_facts *list, int n, const char *fact, struct err *err);
// Over what *out was; the caller frees out->name.
int fleet_facts_copy(struct fleet_facts *out, const struct facts *facts, struct err *err);
int fleet_class_nodes(const struct fleet *f, int class);

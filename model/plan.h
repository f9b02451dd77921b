// SPDX-License-Identifier: Apache-2.0
// A launch plan: which rank runs on which CPU with memory on which node. Made from a spec and a
// topology by core/planner; shown to the user before anything starts.
#pragma once
#include <stdint.h>

#include "base/jsonw.h"
#include "model/spec.h"
#include "model/speed.h"

struct plan_rank {
    int cpu;      // OS index
    int cpu_node; // -1: the CPU belongs to no node
    int mem_node; // where its memory shall be: a node, or interleaved over several
                  // (model/target.h); -1: where it is first touched
    bool loads;   // it makes the load for those that measure
};

enum { PLAN_NOTES_MAX = 8, PLAN_SHORTENED_MAX = 8 };

// A parameter of effort that was lowered to fit the budget.
struct plan_shortened {
    const char *name; // borrowed
    int64_t from, to;
};

struct plan {
    int n_ranks;
    struct plan_rank *ranks;       // owned
    int n_targets;                 // that each rank measures, where the benchmark has targets
    int targets[SPEC_TARGETS_MAX]; // nodes, then interleaved memory (model/target.h)
    char load_cpus[SPEC_TEXT_MAX]; // that make a load beside the ranks; "": none
    bool processes;                // numa_bench starts its ranks itself, without mpirun
    char launcher_why[160];        // why it does although MPI was preferred; "": it was requested
    int64_t bytes_per_loader; // of each of load_cpus or each rank that makes the load, on its node
    int64_t bytes_per_rank;   // of each other rank on its node: largest working set, rounded
    int64_t bytes_per_target; // on each target at once, of all ranks together
    int targets_at_once;      // that have so much at a time; others: one after the other
    int64_t reserved_page_bytes; // ranks and targets have reserved huge pages of so many; 0: none
    int64_t found_run;           // the run of `hierarchy` that sizes follow from; 0: none
    int64_t found_bytes;         // of the cache that it found beyond the kernel's; 0: none
    double estimate_s;           // of the run, see model/estimate.h
    double estimate_most_s;      // if it finds something that it then measures longer
    struct found_speed speeds[SPEEDS]; // that it counts with instead of assumed ones
    struct found_speed past;           // what runs of the same request correct it by
    enum benchmark_id benchmark;       // planned
    int64_t timeout_s;                 // time limit of the run
    int n_shortened;
    struct plan_shortened shortened[PLAN_SHORTENED_MAX]; // see model/budget.h
    int n_notes;
    char notes[PLAN_NOTES_MAX][200]; // what the user should know: "cpu 3 and 7 share a core"
};

void plan_fini(struct plan *p);
int64_t plan_rank_bytes(const struct plan *p, int rank); // on its node
int plan_rank_node(const struct plan *p, int rank);      // -1: no node, or several
// {"ranks":[{"rank":0,"cpu":1,"cpu_node":0,"mem_node":0},…],"targets":[…],"interleaved":[…],
//  "load_cpus":"",
//  "launcher":"mpi","bytes_per_rank":…,"bytes_per_target":…,"targets_at_once":1,
//  "bytes_per_loader":…,"reserved_page_bytes":0,
//  "sizes_from":12,"found_cache_bytes":0,"estimate_s":25.3,"estimate_most_s":25.3,
//  "estimate_from":12,"estimate_speeds":[{"speed":"base_page","benchmark":"pagefault","run":7,
//  "times":1.45}],"estimate_past":{"run":9,"times":1.2},"timeout_s":900,
//  "shortened":[{"name":"visits","from":8,"to":4}],"notes":[…]}
void plan_write_json(const struct plan *p, struct jsonw *w, const char *key);
// `found_bytes` of a stored plan; 0 if it has none.
int64_t plan_read_found(const char *plan_json);

// SPDX-License-Identifier: Apache-2.0
// A run's life: queued -> running -> succeeded | failed | canceled | interrupted.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/jsonw.h"
#include "model/record.h"
#include "model/spec.h"

enum run_state {
    RUN_QUEUED,
    RUN_RUNNING,
    RUN_SUCCEEDED,
    RUN_FAILED,
    RUN_CANCELED,
    RUN_INTERRUPTED, // the daemon or the machine went away during the run
    RUN_STATES
};

// Stored parts of a run that another version may have written, or damage changed.
enum run_part { RUN_SPEC, RUN_PLAN, RUN_CONDITIONS, RUN_PHASES, RUN_PARTS };

enum { RUN_LABEL_MAX = 63 }; // bytes: a line in a table
extern const char *const run_state_names[RUN_STATES];
int run_state_find(const char *name); // -1: none
// Printable UTF-8 of at most RUN_LABEL_MAX bytes, no blank at its ends; "" is none. ERR_INVALID
// ("label").
int run_label_check(const char *label, struct err *err);
// The name of a node (nodeset_name_check()). ERR_INVALID ("node").
int run_node_check(const char *node, struct err *err);
// "prp4-v1": at most 39 lower-case letters, digits, '.', '-', '_'; "" is not known. ERR_INVALID
// ("method").
int run_method_check(const char *method, struct err *err);
bool run_state_final(enum run_state s);

struct run {
    int64_t id;
    int64_t seq; // gapless order of finishing; 0 until final
    enum run_state state;
    struct spec spec;
    char node[64];                               // host name
    int64_t created_ms, started_ms, finished_ms; // UTC; 0: not yet
    int64_t measured_ms;           // its start here, or the date an import gave; 0: not yet
    bool imported;                 // measured elsewhere
    char label[RUN_LABEL_MAX + 1]; // what people call it; "" for none
    enum err_code error;           // ERR_NONE when all is well
    char error_member[64];
    char error_text[256]; // why it failed, was interrupted or canceled
    char method[40];      // of the measurement; "" until known
    int64_t n_ranks, n_cells;
    double phase_ms[PHASES];
    struct progress progress;             // while running; phase "" otherwise
    char waiting[200];                    // while queued: why it waits; "" otherwise
    int64_t wait_until_ms;                // then, UTC: until when; 0: without
    char class_hash[65], config_hash[65]; // of the fingerprint then; "" if not known
    char topology_hash[65];               // of hwloc's XML then; "": none kept
    char *plan_json;                      // owned; NULL until planned
    char *conditions_json; // owned; array of conditions (model/condition.h); NULL: none
    // Why a stored part cannot be read; "": it can. Of a spec that cannot be read only this
    // benchmark is known; other parts are as if there were none.
    char unreadable[RUN_PARTS][200];
    char benchmark[24];
};

enum { RUN_SECONDS_MAX = 30 * 86400 }; // the limit of a run's time is a day

// How long a run took; NaN: not known, or more than RUN_SECONDS_MAX by its times.
double run_seconds(enum run_state state, int64_t started_ms, int64_t finished_ms);
// How old a run is. `s` is 0 where the node's clock dated it ahead. `old`: it is older than
// `most_s` (0: no limit), or dated so far ahead that it would count as new until then.
enum { RUN_AHEAD_S = 3600 };
struct run_age {
    int64_t s;
    bool ahead, old; // ahead: by more than RUN_AHEAD_S
};
struct run_age run_age_at(int64_t now_ms, int64_t measured_ms, int64_t most_s);
void run_fini(struct run *r);
// The name of its benchmark, also of a run whose spec cannot be read.
const char *run_benchmark(const struct run *r);
// ERR_CONFLICT: its spec cannot be read, and why. Whoever needs the spec of a stored run checks it.
int run_check_spec(const struct run *r, struct err *err);
// Likewise of any part of it.
int run_check_parts(const struct run *r, struct err *err);
// The run without ranks and matrices; they have their own resources.
void run_write_json(const struct run *r, struct jsonw *w, const char *key);

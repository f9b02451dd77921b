// SPDX-License-Identifier: Apache-2.0
// A document with results from elsewhere becomes whole runs: tables of numa_bench and CSV (what
// they do not say is guessed, and the run's conditions say so), matrices as JSON, and our own
// exports: one run, {"runs":[…]}, or one run a line. Pure.
#pragma once
#include "base/json.h"
#include "formats/run_document.h"

enum { INTAKE_RUNS_MAX = 1000 }; // of one document: 100 bytes of stack, 1 ms of database each

struct intake_options {  // texts: NULL or "" is not given
    const char *mapping; // of a CSV: rank,cpu_id,cpu_numa,memory_numa
    const char *mode, *node, *label, *pages, *method;
    const char *file;    // where it came from; kept as the run's note, its name may give the mode
    int64_t measured_ms; // 0: not given
    int64_t now_ms;      // stands for the date where nothing gives it
};

struct intake {
    int n;
    struct run_document *list; // owned
    char (*keys)[65];          // run_document_key of each; owned
    int64_t cells;             // of all
    bool several;              // the form holds a list, even if of one
};

void intake_fini(struct intake *i);
// Are the options what they must be? ERR_INVALID names the one at fault.
int intake_check(const struct intake_options *o, struct err *err);
// ERR_INVALID: member "line N" of tables, CSV and JSON lines; "runs[N]" of a list; else the member
// of the JSON. Nothing is made then.
int intake_read(struct intake *out, const char *text, size_t len, const struct intake_options *o,
                struct err *err);
// The same of JSON that is parsed already; its members get the names of today.
int intake_from_json(struct intake *out, struct json *root, const struct intake_options *o,
                     struct err *err);

// SPDX-License-Identifier: Apache-2.0
// What a class of hardware does: per metric the median of its nodes and what they differ by, as a
// document that can be kept, sent and compared with (docs/REFERENCE.md). A single node is judged by
// it without a history of its own. Pure.
#pragma once
#include "analysis/peers/fleet.h"
#include "base/json.h"
#include "base/jsonw.h"

enum {
    REFERENCE_VERSION = 1,
    REFERENCE_NODES_MIN = 3, // of fewer the document says nothing
    REFERENCE_METRICS_MAX = 100000,
};

struct class_reference_metric {
    char class_hash[65];
    char cpu[128]; // "": not known
    char benchmark[24], variant[256], method[40];
    int metrics_version;
    char name[64], unit[8];
    double median;
    double spread, runs; // what nodes and what runs of a node differ by: log; above 0
    int nodes;
};

struct class_reference {
    int64_t created_ms; // 0: not known
    int n;
    struct class_reference_metric
        *list; // metrics of one class, benchmark and so on in one stretch; owned
};

// Of every class of the fleet with REFERENCE_NODES_MIN nodes; of hidden kinds the largest.
// ERR_NO_MEMORY, ERR_TOO_LARGE.
int class_reference_make(struct class_reference *out, const struct fleet *f, struct err *err);
void class_reference_fini(struct class_reference *r); // also a cleanup function
// Members of an object.
void class_reference_write_json(const struct class_reference *r, struct jsonw *w);
// Reads a document of any origin. ERR_INVALID names the member at fault
// ("classes[0].probes[1].metrics[2].median").
int class_reference_read(struct class_reference *out, const struct json *document, struct err *err);

// A run to be judged.
struct class_reference_run {
    const struct summary *run;
    const struct summary_layout *layout;
};

enum class_reference_state {
    REFERENCE_OK,
    REFERENCE_WARNING,
    REFERENCE_CRITICAL,
    REFERENCE_UNKNOWN
};

struct class_reference_verdict {
    enum class_reference_state state;
    char why[256];       // REFERENCE_UNKNOWN: why it cannot be compared, else ""
    int compared, worse; // metrics; worse: significantly, and by `warn` at least
    const struct class_reference_metric *worst; // of the compared ones; NULL: none
    double value;                               // of the run, there
    double percent;                             // of the median; + is more
    bool more;                                  // is better
    double slower;                              // the same as how much worse: log
    double q;                                   // among the metrics
};

// Worse by `warn` per cent or more, and beyond what nodes and runs of the class differ by (q of at
// most 5 % among the run's metrics): a warning; by `crit`: critical. ERR_NO_MEMORY is the only
// error.
int class_reference_judge(struct class_reference_verdict *out, const struct class_reference *r,
                          const struct class_reference_run *run, double warn, double crit,
                          struct err *err);

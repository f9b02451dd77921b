// SPDX-License-Identifier: Apache-2.0
// What virtual nodes do wrong, and when. One fault per line, or between semicolons:
//
//   NODES FAULT[=VALUE] [FROM-[UNTIL]]       node[001-050] drips=10 5-20
//
// NODES is a node set, or a share of all nodes ("5%"). FAULT is a name of the table in faults.c, or
// "mixed": dead, silent, slow, dripping, garbage and cut by turns. FROM and UNTIL are seconds since
// the start. Of several lines the first that fits a node and the time counts.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/jsonw.h"
#include "virtual/world.h"

enum fault_kind {
    FAULT_NONE,
    FAULT_REFUSES,     // nothing listens
    FAULT_SILENT,      // accepts, and sends nothing
    FAULT_SLOW,        // responds after VALUE s
    FAULT_DRIPS,       // VALUE bytes per second
    FAULT_GARBAGE,     // not HTTP
    FAULT_CUT,         // half a response
    FAULT_CUTS,        // VALUE per cent of the responses are cut, now this one and now that
    FAULT_LENGTH,      // declares more than it sends
    FAULT_ENDLESS,     // a body without an end
    FAULT_JSON,        // hostile JSON, in another way per node
    FAULT_NAME,        // responds as another node
    FAULT_COPY,        // has the history of the first node
    FAULT_TEXT,        // escape sequences in names, labels and texts
    FAULT_CLOCK,       // VALUE s ahead
    FAULT_GAPS,        // two of three sequence numbers are missing
    FAULT_OLDER,       // does not know form=summary
    FAULT_NEWER,       // another version, with members that we do not know
    FAULT_UNAVAILABLE, // 503, Retry-After VALUE s
    FAULT_BUSY,        // refuses runs, Retry-After VALUE s
    FAULT_FAILS,       // its runs fail
    FAULT_FLAPS,       // refuses and responds in turn, VALUE s each
    FAULT_KINDS
};

struct fault {
    double value;
    int64_t from_ms, until_ms; // since the start; until INT64_MAX: always
    uint8_t *kinds;            // of each node: enum fault_kind
    bool listens, flaps;       // some node refuses connections; in turn
};

enum { FAULTS_MAX = 64 };
struct faults {
    int n;
    struct fault list[FAULTS_MAX];
};

// Appends the faults of `text`. ERR_INVALID names the part at fault.
int faults_read(struct faults *f, const char *text, const struct world *w, struct err *err);
void faults_free(struct faults *f);
// The fault of a node now, and its value.
enum fault_kind faults_now(const struct faults *f, int node, int64_t since_ms, double *value);
bool faults_refuses(const struct faults *f, int node, int64_t since_ms);
// When some node begins or ends to refuse connections next; INT64_MAX: never again.
int64_t faults_next_change(const struct faults *f, int64_t since_ms);
void faults_write_json(const struct faults *f, const struct world *w, struct jsonw *out);

// SPDX-License-Identifier: Apache-2.0
// What the parts of a report share: each benchmark has one function that writes its findings, as
// JSON and as Markdown in one go, so that both say the same.
#pragma once
#include <stdarg.h>

#include "analysis/report/source.h"
#include "base/buf.h"
#include "base/jsonw.h"

struct report_out {
    struct jsonw w; // inside the open report object
    struct buf json, markdown;
};

typedef int report_section(struct report_out *o, const struct report_source *run,
                           const struct report_source *with, struct err *err);
#define REPORT_SECTION(id, name) report_section section_##name;
BENCHMARK_LIST(REPORT_SECTION) // section_latency …
#undef REPORT_SECTION

const struct matrix *report_matrix(const struct report_source *s, const char *name); // NULL: none

// A heading and its findings: report_head, then for each finding report_finding, its numbers by
// jsonw, report_say; report_tail at the end. The sentence stands in the JSON too, as "text".
void report_head(struct report_out *o, const char *title);
struct jsonw *report_finding(struct report_out *o, const char *kind);
__attribute__((format(printf, 2, 3))) void report_say(struct report_out *o, const char *fmt, ...);
void report_tail(struct report_out *o);
// A sentence as a line of Markdown and as the member `key`, or as an element of an array (NULL).
__attribute__((format(printf, 3, 0))) void report_sentence(struct report_out *o, const char *key,
                                                           const char *fmt, va_list ap);

// The member "target": a node's number, or the name of interleaved memory.
void report_target(struct jsonw *w, int64_t target);

// Node of the rank's CPU; -1 if not known.
int64_t report_cpu_node(const struct report_source *s, int64_t rank);
// The distinct nodes that `count` ranks or nodes of an axis stand for, in their order.
struct report_nodes {
    int n;
    int64_t node[64];
};
struct report_nodes report_nodes_of(const struct report_source *s, const struct axis *a);

// A few cells as one: their median, and the widest interval; NaN where there are none.
struct report_value {
    double v, lo, hi;
};
enum { REPORT_CELLS_MAX = 1024 };
struct report_value report_value_of(const struct matrix *m, const bool *row_in, int col);
// Surely apart by the intervals, and by at least `share` of the smaller value.
bool report_apart(struct report_value a, struct report_value b, double share);
// Findings about what the firmware claims of memory (HMAT) that the run measured, verified and
// undisturbed; none where it claims nothing. `heading` NULL: among the findings of a section, else
// a section of its own. `with` may be NULL.
int report_claims(struct report_out *o, const char *heading, const struct report_source *run,
                  const struct report_source *with, struct err *err);
// Of a table of pairs some may be missing (pairs_most): says how many have a value. False: all
// have.
bool report_coverage(struct report_out *o, const struct matrix *m);
// Says which memory nodes and which ranks (or initiators, the rows) are unlike the others from near
// and from far, and marks the columns of such nodes in `odd_target`.
int report_parts(struct report_out *o, const struct report_source *s, const struct matrix *m,
                 bool *odd_target, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// All findings about one run, or a serial and concurrent pair, as JSON for machines and as Markdown
// that reads like a colleague's summary. Every claim carries its numbers. Pure.
#pragma once
#include "analysis/anomaly.h"
#include "analysis/contention.h"
#include "analysis/curve.h"
#include "analysis/groups.h"

struct report_mode {
    const struct matrix *matrix; // borrowed; NULL: this mode was not measured
    struct curve curve;
    struct groups groups;
    struct anomalies anomalies;
};

struct report_placement {
    bool known;
    int ranks, wrong_memory, migrated; // wrong: less than 99 % of the pages where wanted
    double disturbed_share;            // of all samples; NaN: not known
};

struct report {
    struct report_mode serial, concurrent;
    bool have_contention;
    struct contention contention;
    struct report_placement placement;
};

// A matrix, `ranks` and `topology` may be NULL; at least one matrix is needed (ERR_INVALID). The
// report borrows the matrices. On the heap: it is large.
struct report *report_new(const struct matrix *serial, const struct matrix *concurrent,
                          const struct rank_info *ranks, int n_ranks,
                          const struct topology *topology, struct err *err);
void report_free(struct report *r); // NULL is fine
void report_write_json(const struct report *r, struct jsonw *w, const char *key);
void report_write_markdown(const struct report *r, struct buf *out);

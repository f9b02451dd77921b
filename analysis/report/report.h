// SPDX-License-Identifier: Apache-2.0
// All findings about one run of any benchmark, or a pair of a serial and a concurrent latency run,
// as JSON for machines and as Markdown that reads like a colleague's summary. Every claim carries
// its numbers. Pure.
#pragma once
#include "analysis/report/source.h"
#include "base/buf.h"
#include "base/jsonw.h"

struct report;

// `with` is NULL, or the other run of a pair: one has serial only, the other concurrent only, at
// the same places (ERR_CONFLICT on "with"). ERR_INVALID: the run has no matrix to report on.
struct report *report_new(const struct report_source *run, const struct report_source *with,
                          struct err *err);
void report_free(struct report *r); // NULL is fine
void report_write_json(const struct report *r, struct jsonw *w, const char *key);
void report_write_markdown(const struct report *r, struct buf *out);

// SPDX-License-Identifier: Apache-2.0
// A report as one HTML file to send: verdict, findings, pictures, tables, conditions and facts. It
// has no script and refers to nothing outside of itself. Pure.
#pragma once
#include "analysis/report/report.h"
#include "base/buf.h"
#include "model/run.h"

enum {
    PAGE_RUNS_MAX = 2,
    PAGE_PICTURES_MAX = 8, // of each run
    PAGE_ROWS_MAX = 128,   // of each table; what is left out is said
    PAGE_COLS_MAX = 48,
};

struct page_run { // borrowed
    const struct run *run;
    const struct report_source *source;
};

struct page { // borrowed
    const char *title;
    const char *verdict; // against a baseline; NULL: there is none
    bool worse;          // it is bad news
    const struct report *report;
    int n;
    struct page_run runs[PAGE_RUNS_MAX];
};

// ERR_NO_MEMORY is the only error.
int page_write(const struct page *p, struct buf *out, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Inside the store only: runs out of PostgreSQL, in its binary form. The columns are named here,
// for what writes them too.
#pragma once
#include "base/buf.h"
#include "fleet/store/engine.h"

struct pg;

// The order of the fields on the wire, those that rows are sorted by first. That of the columns
// (schema/fleet/pg) differs.
#define PG_RUN_VALUES "node, kind, measured, seq, feed, run, machine, state, flags, disturbed"
#define PG_RUN_ALL PG_RUN_VALUES ", received, finished, seconds, arrival, label, v, w"
enum {
    PG_VALUE_COLUMNS = 11, // and v
    PG_RUN_COLUMNS = 17,
    PG_ARRAY_HEAD = 20,                  // bytes of an array before its elements
    PG_FIRST_MONTH = (2020 - 1970) * 12, // before it: run_older
};
static const int64_t pg_epoch_ms = 946684800000; // PostgreSQL's times count from 2000

// As the engine's read.
int pg_read_runs(struct pg *c, const struct fleet_reading *r, fleet_row_fn *fn, void *ctx,
                 struct err *err);
// As the engine's arrivals.
int pg_read_arrivals(struct pg *c, int64_t after, int64_t until, fleet_row_fn *fn, void *ctx,
                     struct err *err);
// " AND measured TEST 'TIME'"; nothing for 0 and INT64_MAX, which are no limit.
void pg_sql_time(struct buf *sql, const char *test, int64_t ms);

// SPDX-License-Identifier: Apache-2.0
// Inside the store only: the statements that are prepared once for each connection. Their text is
// in statements.c; whoever runs one binds its parameters and reads its columns.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/store/sqlite.h"
#include "model/matrix.h"

enum store_query {
    Q_INSERT,
    Q_BY_KEY,
    Q_GET,
    Q_SIZE,
    Q_NEXT,
    Q_QUEUE_LENGTH,
    Q_STATE,
    Q_SETUP,
    Q_STARTED,
    Q_FINISHED,
    Q_NEXT_SEQ,
    Q_FEED,
    Q_CHANGES,
    Q_TOUCH,
    Q_CLOCK_STEPS,
    Q_OLD,
    Q_AFTER,
    Q_AGE_GET,
    Q_AGE_PUT,
    Q_AGE_GAP_PUT,
    Q_AGE_GAPS_OLD,
    Q_AGE_SINCE,
    Q_RUNNING,
    Q_DELETE_CELLS,
    Q_DELETE,
    Q_FINGERPRINT_PUT,
    Q_FINGERPRINT_GET,
    Q_TOPOLOGY_PUT,
    Q_MATRIX_PUT,
    Q_MATRIX_GET,
    Q_MATRIX_COUNT,
    Q_SERIES_PUT,
    Q_METRIC_PUT,
    Q_METRIC_CLEAR,
    Q_METRICS_DONE,
    Q_METRICS_MISSING,
    Q_SERIES_COUNT,
    Q_HISTORY,
    Q_SERIES_BEFORE,
    Q_LATEST,
    Q_NEWEST_LIKE,
    Q_METRIC_LIKE,
    Q_RUNS_LIKE,
    Q_NEWEST_VALUES,
    Q_NEWEST_COUNT,
    Q_PENDING,
    Q_PENDING_OF_NODE,
    Q_STATES,
    Q_BASELINES,
    Q_BASELINE_PUT,
    Q_BASELINE_RUN_PUT,
    Q_BASELINE_DROP,
    Q_BASELINE_OF_RUN,
    Q_IMPORTED,
    Q_IMPORT_BY_KEY,
    Q_IMPORT_TWIN,
    Q_LABEL,
    Q_SEQ,
    Q_NOTE,
    Q_TOPOLOGY_GET,
    Q_TOPOLOGY_BY_HASH,
    Q_SUMMARY,
    Q_SUMMARY_METRICS,
    Q_SUMMARY_COUNT,
    Q_LOG_PUT,
    Q_LOG_GET,
    Q_RANK_PUT, // made from record_rank_slots
    Q_RANK_GET,
    Q_CELL_PUT, // made from cell_fields
    Q_CELL_GET,
    STORE_QUERIES
};

// A stored text that is served as it is: NULL as it is, and empty where it is not JSON.
#define JSON_COLUMN(name) "iif(" name " IS NULL OR json_valid(" name ")," name ",'')"
#define RUN_TEXTS JSON_COLUMN("plan") "," JSON_COLUMN("conditions")
#define RUN_COLUMNS                                                                                \
    "id,seq,state,node,created_ms,started_ms,finished_ms,method,n_ranks,n_cells,class_hash,"       \
    "config_hash,error,error_member,error_text,spec," RUN_TEXTS ",phases,measured_ms,source,"      \
    "label,topology_hash,benchmark"

// All of enum store_query. On failure some are prepared: statements_finalize() in any case.
int statements_prepare(sqlite3 *db, sqlite3_stmt **queries, struct err *err);
void statements_finalize(sqlite3_stmt **queries);

// Only the conditions that are requested, so that each combination finds its index.
struct store_condition {
    bool asked;
    const char *text;
};
void store_where(struct buf *out, const struct store_condition *list, size_t n);

// What a value of the field is multiplied with to be stored as an integer.
double store_cell_scale(enum cell_field f);

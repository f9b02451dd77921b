// SPDX-License-Identifier: Apache-2.0
// Inside the store only: what its files share.
#pragma once
#include <stdbool.h>

#include "core/sqlite.h"
#include "core/store.h"

enum store_query {
    Q_INSERT,
    Q_BY_KEY,
    Q_GET,
    Q_LIST,
    Q_NEXT,
    Q_QUEUE_LENGTH,
    Q_STATE,
    Q_STARTED,
    Q_FINISHED,
    Q_NEXT_SEQ,
    Q_TOUCH,
    Q_RUNNING,
    Q_DELETE,
    Q_FINGERPRINT_PUT,
    Q_FINGERPRINT_GET,
    Q_TOPOLOGY_PUT,
    Q_MATRIX_PUT,
    Q_MATRIX_GET,
    Q_MATRIX_COUNT,
    Q_RANK_PUT,
    Q_RANK_GET,
    Q_LOG_PUT,
    Q_LOG_GET,
    Q_CELL_PUT, // made from cell_fields
    Q_CELL_GET,
    STORE_QUERIES
};

struct store {
    sqlite3 *db;
    int lock;
    char path[512];
    sqlite3_stmt *queries[STORE_QUERIES];
};

int store_begin(struct store *s, struct err *err);
// Commits if `result` is 0, else rolls back; returns -1 if anything failed.
int store_end(struct store *s, int result, struct err *err);
int store_result_put(struct store *s, int64_t id, const struct run_result *r, struct err *err);
// "median_milli", "n", "overlap_e4": column of a field, and 1000, 1, 10000.
void store_cell_column(enum cell_field f, char *out, size_t room);
double store_cell_scale(enum cell_field f);

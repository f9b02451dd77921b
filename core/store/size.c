// SPDX-License-Identifier: Apache-2.0
// Numbers of ranks and cells stand in the run's row; lengths of texts are taken from the head of
// their first page.
#include "core/store/size.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "core/store/db.h"

// Of a text, by the head of its first page: length() would read all of it. 0: there is none.
static int64_t text_bytes(struct store *s, const char *table, const char *column, int64_t rowid)
{
    sqlite3_blob *blob = NULL;
    int64_t n = 0;
    if (rowid && sqlite3_blob_open(s->db, "main", table, column, rowid, 0, &blob) == SQLITE_OK)
        n = sqlite3_blob_bytes(blob);
    sqlite3_blob_close(blob);
    return n;
}

int store_run_size(struct store *s, int64_t id, struct run_size *out, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_SIZE];
    if (sq_bind(q, err, "i", id) < 0)
        return -1;
    int row = sq_step(q, err);
    if (row <= 0)
        return row;
    struct run_size got = {.ranks = sqlite3_column_int64(q, 0),
                           .cells = sqlite3_column_int64(q, 1),
                           .final = sqlite3_column_type(q, 2) != SQLITE_NULL};
    snprintf(got.label, sizeof got.label, "%s", sq_text(q, 3));
    snprintf(got.topology_hash, sizeof got.topology_hash, "%s", sq_text(q, 4));
    if (sq_row_whole(q, err) < 0)
        return -1;
    got.topology_bytes = text_bytes(s, "topology", "xml", sqlite3_column_int64(q, 5));
    got.log_bytes = text_bytes(s, "log", "text", id);
    *out = got;
    return 1;
}

int store_total(struct store *s, enum store_total what, int most, int64_t *n, struct err *err)
{
    static const char *const tables[] = {[STORE_SERIES] = "series", [STORE_POINTS] = "metric"};
    char text[96];
    snprintf(text, sizeof text, "SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d)", tables[what],
             most);
    return sq_number(s->db, text, n, err);
}

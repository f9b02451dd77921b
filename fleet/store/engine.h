// SPDX-License-Identifier: Apache-2.0
// Inside the store only: what an engine does. Statements that both understand are text, with the
// parameters $1, $2 … in the order of their first use. What must be fast is a function of its own:
// rows of runs in and out, and moves of places.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "fleet/store/store.h"
#include "model/run.h"

enum cell_type { CELL_NULL, CELL_INT, CELL_REAL, CELL_TEXT, CELL_BYTES };
struct fleet_cell {
    enum cell_type type;
    int64_t i; // CELL_BYTES: how many
    double d;
    const char *t; // "" unless CELL_TEXT or CELL_BYTES; valid during the call
};
#define CELL_I(x) ((struct fleet_cell){CELL_INT, (x), 0, ""})
#define CELL_T(x) ((struct fleet_cell){CELL_TEXT, 0, 0, (x)})
#define CELL_B(x, n) ((struct fleet_cell){CELL_BYTES, (int64_t)(n), 0, (const char *)(x)})
enum { FLEET_CELLS_MAX = 25 };

enum {
    ROW_IMPORTED = 1,
    ROW_FORCED = 2,
    ROW_UNDATED = 4, // the date of its measurement is not known
    ROW_AHEAD = 8,   // it was measured by a clock that is ahead
};
// A run as it is stored. Numbers of nodes, kinds, feeds and machines are those of the dictionaries.
struct fleet_row {
    int64_t arrival; // its number among all that were stored
    int node, kind, feed, machine;
    int64_t at_ms; // what it is ordered by
    int64_t received_ms, finished_ms, seq, run;
    int state, flags;
    int disturbed;  // 1e-4; -1: not known
    double seconds; // NaN: not known
    const char *label;
    const char *history; // of `arrivals` alone: the feed's
    int n;
    float *v, *lo, *hi; // borrowed
};
typedef int fleet_row_fn(void *ctx, const struct fleet_row *row, struct err *err);

// The row of a feed as it becomes, if its place is still `was`.
struct fleet_move {
    int feed, node, twin, state;
    int64_t was, next, last_ms, skew_ms;
    const char *version;
};

// Which runs are read: in order of node and kind, the newest first.
struct fleet_reading {
    int first, last;                    // numbers of nodes
    const bool *nodes, *kind, *machine; // [number - 1]; NULL: all
    int n_kinds, n_machines;
    int class; // that of `machine`, as `span` counts them; 0: all
    int64_t since_ms, until_ms;
    int64_t seq;      // 0: all
    int newest;       // of each node and kind; 0: all
    bool own;         // only runs that succeeded and that the node measured itself
    bool measured;    // only runs that began on the node, whatever became of them
    bool values_only; // lo and hi are NULL; arrival, received, finished, seconds and label mean
                      // nothing
};

// Is a part of each transaction that deletes runs before $1: whoever reads them in several
// transactions sees that they are gone.
#define FLEET_SQL_DELETED                                                                          \
    "INSERT INTO meta (name, value) VALUES ('deletions', 1), ('deleted_before', "                  \
    "CAST($1 AS bigint)) ON CONFLICT (name) DO UPDATE SET value = CASE WHEN meta.name = "          \
    "'deletions' THEN meta.value + 1 WHEN excluded.value > meta.value THEN excluded.value "        \
    "ELSE meta.value END"

// Of a query with one number; ctx: an int64_t.
static inline int fleet_number(void *ctx, const struct fleet_cell *row, struct err *err)
{
    (void)err;
    *(int64_t *)ctx = row[0].i;
    return 0;
}

struct fleet_engine {
    bool uri;                                         // `where` is a URI; else a path
    int (*check)(const char *where, struct err *err); // its form; NULL: any will do
    // NULL and an error. A writer has the lock, and the schema is up to date.
    void *(*open)(const char *where, enum fleet_store_use use, struct err *err);
    void (*close)(void *db);
    // Begins a transaction; connects anew if the connection was lost. 1: the database may have
    // changed below this process since its last transaction; 0: it has not; -1.
    int (*begin)(void *db, bool write, struct err *err);
    // result 0: commits. Returns -1 if that failed, or if `result` is not 0.
    int (*end)(void *db, int result, struct err *err);
    // Any statement; fn (may be NULL) is called for each row, and returns -1 to end with its error.
    int (*query)(void *db, const char *sql, const struct fleet_cell *in, int n,
                 int (*fn)(void *ctx, const struct fleet_cell *row, struct err *err), void *ctx,
                 struct err *err);
    // A statement without rows that is done by the end of the transaction, which may give its
    // error.
    int (*post)(void *db, const char *sql, const struct fleet_cell *in, int n, struct err *err);
    int (*put_rows)(void *db, const struct fleet_row *rows, int n, struct err *err);
    int (*move)(void *db, const struct fleet_move *moves, int n, struct err *err); // ERR_CONFLICT
    int (*read)(void *db, const struct fleet_reading *r, fleet_row_fn *fn, void *ctx,
                struct err *err);
    // Rows with after < arrival <= until, in order.
    int (*arrivals)(void *db, int64_t after, int64_t until, fleet_row_fn *fn, void *ctx,
                    struct err *err);
    // *ms: when the oldest run was measured of those at `from_ms` or later, the beginning of a
    // month, or another time in its month; it stays as it is if there is none.
    int (*oldest)(void *db, int64_t from_ms, int n_nodes, int64_t *ms, struct err *err);
    // Rows before `before_ms`, the beginning of a month, are deleted. Transactions are its own.
    int (*retain)(void *db, int64_t before_ms, int n_nodes, int64_t *deleted, struct err *err);
    int (*bytes)(void *db, int64_t *bytes, struct err *err);
};

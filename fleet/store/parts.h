// SPDX-License-Identifier: Apache-2.0
// Inside the store only: the handle, and transactions over what is in memory and in the database.
#pragma once
#include "fleet/store/book.h"
#include "fleet/store/engine.h"

enum { STORE_ROWS = 2 * SUMMARY_RUNS_MAX }; // given to the engine at once

struct fleet_store {
    const struct fleet_engine *engine;
    void *db; // the engine's
    enum fleet_store_use use;
    struct book book;
    struct fleet_row rows[STORE_ROWS]; // not given to the engine yet
    int n_rows;
    int layouts[SUMMARY_LAYOUTS_MAX]; // numbers of those of the page; 0: not looked up
    int64_t n_put;                    // rows of the transaction
    bool changed;                     // something else than places
    struct buf json;
    int archive; // enum fleet_archive: what is wanted of the runs that are stored
};

// As fleet_store_open(), also a database into which a history is being moved.
struct fleet_store *fleet_open_any(const char *where, enum fleet_store_use use, struct err *err);
// Begins with a book that is up to date.
int fleet_begin(struct fleet_store *s, struct err *err);
// result 0: commits. -1: rolled back, and the book is read again by the next transaction.
int fleet_end(struct fleet_store *s, int result, struct err *err);
// Wants the run, if runs like it are archived.
int archive_row(struct fleet_store *s, const struct fleet_row *row, struct err *err);
// A statement without rows.
int fleet_exec(struct fleet_store *s, const char *sql, const struct fleet_cell *in, int n,
               struct err *err);
// The number of a node, which is made if it is new. -1.
int store_node(struct fleet_store *s, const char *name, int64_t since_ms, struct err *err);

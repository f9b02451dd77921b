// SPDX-License-Identifier: Apache-2.0
// Inside the store only: SQLite with our error values. The one door to sqlite3.h.
#pragma once
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

// As sqlite3_open_v2, with extended error codes. Its statements wait at most SQ_BUSY_MS for another
// program that has the database locked, and a fifth of a second where locks cannot be had at all.
// *out may be set on failure too, and is closed by the caller.
enum { SQ_BUSY_MS = 5000 };
int sq_open(sqlite3 **out, const char *path, int flags, struct err *err);
void sq_wait(sqlite3 *db, int ms); // so long from now on
// What SQLite said, as an error: ERR_STORAGE for what a person can fix (disk full, I/O, read-only,
// busy, no database at all), ERR_DAMAGED, ERR_NO_MEMORY, else ERR_INTERNAL. Returns -1.
int sq_fail(struct err *err, sqlite3 *db, int rc, const char *what);
// ERR_DAMAGED for what no statement shows. Returns -1.
int sq_damaged(struct err *err, sqlite3 *db, const char *text);
// Called from sq_fail and sq_damaged when statements of this connection find the database damaged
// (ERR_DAMAGED); fn NULL: none any more. One connection of a process has it: the one that writes.
void sq_on_damage(sqlite3 *db, void (*fn)(void *ctx), void *ctx);
int sq_exec(sqlite3 *db, const char *sql, struct err *err);
// PRAGMA quick_check, or integrity_check, which also holds indexes against tables and takes several
// times as long: ERR_DAMAGED says what is wrong first.
int sq_check(sqlite3 *db, bool thorough, struct err *err);
// Writes all of the database to a file that is empty or not there.
int sq_copy(sqlite3 *db, const char *to, struct err *err);
// First column of the first row as a number.
int sq_number(sqlite3 *db, const char *sql, int64_t *out, struct err *err);

// Binds from parameter 1 on, by kind: i int64_t, t const char * (NULL: NULL; must live until the
// step), d double (NaN: NULL), z int64_t (0: NULL).
int sq_bind(sqlite3_stmt *q, struct err *err, const char *kinds, ...);
int sq_step(sqlite3_stmt *q, struct err *err); // 1: a row, 0: done, -1
int sq_done(sqlite3_stmt *q, struct err *err); // steps once, expects no row, resets
// Never NULL: "" without memory. The next sq_step of q then fails; a caller that uses the text
// before that calls sq_row_whole, -1: a text of the row had no memory.
const char *sq_text(sqlite3_stmt *q, int column);
int sq_row_whole(sqlite3_stmt *q, struct err *err);
void sq_reset(sqlite3_stmt *q);
void sq_reset_cleanup(sqlite3_stmt **q);
#define CLEANUP_RESET CLEANUP(sq_reset_cleanup)
void sq_finalize_cleanup(sqlite3_stmt **q);
#define CLEANUP_FINALIZE CLEANUP(sq_finalize_cleanup)

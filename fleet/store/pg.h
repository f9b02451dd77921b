// SPDX-License-Identifier: Apache-2.0
// Inside the store only: a connection to PostgreSQL with our error values. The one door to libpq.
// ERR_UNAVAILABLE: the connection was lost, or could not be made; what a transaction did is gone.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fleet/store/engine.h"

struct pg;

// What can be checked without a connection. ERR_USAGE, without any part of the URI.
int pg_check_uri(const char *uri, struct err *err);
struct pg *pg_open(const char *uri, struct err *err);
void pg_close(struct pg *c); // NULL is fine
bool pg_alive(const struct pg *c);
int pg_reopen(struct pg *c, struct err *err); // as pg_open, with another connection
void pg_give_up(struct pg *c);                // it is not alive any more

int pg_exec(struct pg *c, const char *sql, struct err *err); // any number of statements
// As the engine's query. *rows (may be NULL): how many rows the statement changed or gave.
int pg_query(struct pg *c, const char *sql, const struct fleet_cell *in, int n,
             int (*fn)(void *ctx, const struct fleet_cell *row, struct err *err), void *ctx,
             int64_t *rows, struct err *err);

// A statement without rows, sent without waiting: nodes that are new would cost a way to the server
// and back each. Its error appears with a later call, at the latest with COMMIT.
int pg_post(struct pg *c, const char *sql, const struct fleet_cell *in, int n, struct err *err);
// Waits for what was posted. All others do so by themselves.
int pg_settle(struct pg *c, struct err *err);

// COPY … FROM STDIN: begin, any number of bytes, end. After a failure the transaction is broken.
int pg_copy_begin(struct pg *c, const char *sql, struct err *err);
int pg_copy_bytes(struct pg *c, const unsigned char *bytes, size_t n, struct err *err);
int pg_copy_end(struct pg *c, struct err *err);
// COPY … TO STDOUT, one or several in a text: fn gets what the server sends, a row or a frame's
// head or end at a time. The server begins with the next statement while rows of one are taken.
// After an error of fn all that is left of the text is read.
int pg_copy_out(struct pg *c, const char *sql,
                int (*fn)(void *ctx, const unsigned char *bytes, size_t n, struct err *err),
                void *ctx, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Output: rows of cells, written by one of four writers. Texts from a server are made safe here.
#pragma once
#include "client/cli.h"

struct column {
    const char *name;  // machine name: JSON member, CSV head
    const char *title; // for people
    bool number;       // right-aligned; bare in JSON
};

enum { COLUMNS_MAX = 12 };

struct grid {
    const struct column *columns;
    int n_columns, n_rows, room;
    char **cells; // owned; n_rows × n_columns
    bool failed;
};

void grid_init(struct grid *g, const struct column *columns, int n);
void grid_fini(struct grid *g);
#define CLEANUP_GRID CLEANUP(grid_fini)
// Adds a cell to the row in the making; text NULL is "nothing".
__attribute__((format(printf, 2, 3))) void grid_cell(struct grid *g, const char *fmt, ...);
void grid_print(const struct grid *g, const struct cli *c);

// Control bytes and broken UTF-8 become '?', so that no server writes to the terminal.
void print_safe(struct buf *out, const char *text);
void print_buf(const struct buf *b);       // to stdout, whole
void print_json(const struct json *value); // one line
// Each element of the array on a line of its own.
void print_ndjson(const struct json *array);
// "1.5 GiB"
void print_bytes(char *out, size_t room, double bytes);

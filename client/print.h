// SPDX-License-Identifier: Apache-2.0
// Output: rows of cells, written by one of four writers. Texts from a server are made safe here.
#pragma once
#include <stdio.h>

#include "client/config.h"

struct column {
    const char *name;  // machine name: JSON member, CSV head
    const char *title; // for people; NULL: a table has no such column
    bool number;       // right-aligned; bare in JSON
    bool shrinks;      // its texts may be cut where a table is wider than the terminal
    // How a cell of a table looks where colour is allowed: an SGR such as PRINT_RED, or NULL.
    const char *(*paint)(const char *text);
    bool rounded; // people see four significant digits of its numbers, programs six
    // Where a table is wider than the terminal:
    bool spare; // it is left out, the first one first
    bool wraps; // the last column: its texts take several lines
};

#define PRINT_RED "31"
#define PRINT_GREEN "32"
#define PRINT_YELLOW "33"
#define PRINT_BOLD "1"

enum { COLUMNS_MAX = 16 };
#define PRINT_SPARK_SPAN 0.1

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
// Six digits, for programs; nothing where the number is not known.
void grid_number(struct grid *g, double v);
void grid_print(const struct grid *g, const struct cli *c);

// Columns of the terminal that stdout is, now: its window may have changed while a command waited.
// 0: it is none, and nothing has to fit.
int print_width(const struct cli *c);
// "label       text", the text wrapped under itself where standard output is a terminal.
void print_labelled(const struct cli *c, const char *label, const char *text);
// A text of at most `room` characters, one that was cut in `out`.
const char *print_cut_to(const char *text, int room, struct buf *out);
// A line, cut where the terminal ends.
void print_cut(const struct cli *c, const char *line);
// Folds at commas and blanks where the terminal ends. `first` stands before the first line, `next`
// before the others.
void print_folded(const struct cli *c, const char *text, const char *first, const char *next);
// A paragraph, wrapped likewise; lines after the first are indented by `indent`.
void print_paragraph(const struct cli *c, const char *text, int indent);

// A line to stdout or stderr; on a terminal in lines of its width, those after the first indented.
void print_line_to(const struct cli *c, FILE *to, const char *text);
// A line of a list ("  - text") or a paragraph, wrapped where the terminal ends.
void print_item(const struct cli *c, const char *line);

void print_buf(const struct buf *b); // to stdout, whole
// There was no memory for something that should have been printed: the command has failed.
bool print_lost(void);
// Of a command whose answer is no table, and of one whose answer is text alone. Called before
// anything is done: ERR_USAGE for the formats that it has not; where such a format is the usual
// one, the command prints text. `what`: "a label is".
int print_refuse_csv(const struct cli *c, const char *what, struct err *err);
int print_refuse_all_but_text(const struct cli *c, const char *what, struct err *err);
// Prints the answer where the output is JSON. False: it is not, and nothing is printed.
bool print_if_json(const struct cli *c, const struct json *answer);
void print_json(const struct json *value);    // one line
void print_json_text(const struct buf *json); // likewise, of what a jsonw has written
// One block character a value, "▁▂▃▅▇█", a space for NaN: lowest to highest, but never less than
// PRINT_SPARK_SPAN of the highest, so that noise does not look like a mountain; values without a
// difference lie in the middle. UTF-8: ask print_unicode first.
void print_sparkline(struct buf *out, const double *v, int n);
// May stdout get characters beyond ASCII? It is a terminal and the environment names UTF-8.
bool print_unicode(const struct cli *c);
// May stdout get colour? --colour decides; auto: a terminal, and NO_COLOR is not set.
bool print_colour(const struct cli *c);
// "25 s", "12 min", "3.2 h".
void print_duration(char *out, size_t room, double seconds);
// Of a plan: "takes about 11 s, up to 25 s if it finds something".
void print_estimate(struct buf *out, const struct json *plan);

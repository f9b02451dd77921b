// SPDX-License-Identifier: Apache-2.0
// Parameter tables: each parameter's name, kind, limits, default and help stand in one const table,
// and everything reads it: the JSON member of a request, the --option of a program, the help text,
// the catalogue, the manual. A table describes members of one plain struct by offset.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/jsonw.h"

enum param_kind {
    PARAM_BOOL,  // bool
    PARAM_INT,   // int64_t, min…max
    PARAM_REAL,  // double, min…max
    PARAM_BYTES, // uint64_t, "64", "4K"; min…max; a bare number counts bytes
    PARAM_ENUM,  // int: index into `choices`
    PARAM_TEXT,  // char[room]; a JSON integer is taken as its decimal text
};

struct param {
    const char *name;   // snake_case; the option is --name with '-' for '_'
    const char *option; // the option where it is another word: "run-timeout"; NULL
    const char *alias;  // an option that is accepted besides, in no help; NULL
    char letter;        // of the short option, 'o' for -o; 0: none
    enum param_kind kind;
    size_t offset;
    size_t room;                // PARAM_TEXT: bytes with the NUL
    double min, max;            // PARAM_INT, PARAM_REAL, PARAM_BYTES
    const char *const *choices; // PARAM_ENUM: NULL-terminated
    const char *def;            // default, as text
    const char *unit;           // "ms", "%", "bytes" or NULL; texts may have it. "s": also m, h, d
    const char *metavar;        // "LIST", "N" …; NULL: after the kind
    const char *implied;        // the value of an option without "=…"; NULL: it needs one
    char joins;  // PARAM_TEXT: stands between the values of an option, or of a line of a file, that
                 // is given again; 0: see param_given. ' ': values are words
    bool filled; // PARAM_TEXT: an option with an empty value is an error, because it would mean
                 // what leaving it out means. See param_target
    // PARAM_TEXT: returns -1 if a text that is not empty is no value. Its error states what is
    // wrong without the name. NULL: all texts are values.
    int (*check)(const char *text, struct err *err);
    const char *help; // one or more sentences
    bool live;        // of a daemon's configuration: takes effect when it is read again
    bool effort;      // how long, how well or by whom, not what: results with other values compare
};

// The row of a text whose name is that of its member, and which is empty by default.
#define PARAM_TEXT_ROW(type, member, ...)                                                          \
    {                                                                                              \
        .name = #member, .kind = PARAM_TEXT, .offset = offsetof(type, member),                     \
        .room = sizeof(((type *)NULL)->member), .def = "", __VA_ARGS__                             \
    }

struct param_table {
    const struct param *params;
    int n;
};

const struct param *param_find(const struct param_table *t, const char *name);
const struct param *param_find_option(const struct param_table *t,
                                      const char *option); // "min-samples"
// "min-samples": the option without its dashes. Returns out.
enum { PARAM_OPTION_ROOM = 64 };
const char *param_option(const struct param *p, char out[static PARAM_OPTION_ROOM]);
void param_defaults(const struct param_table *t, void *object);

// Errors are ERR_INVALID with the parameter's name as member, and say what would be right.
int param_set_text(const struct param *p, void *object, const char *text, struct err *err);
// The same for a query, where a number has no unit, as in JSON.
int param_set_query(const struct param *p, void *object, const char *text, struct err *err);
int param_set_json(const struct param *p, void *object, const struct json *value, struct err *err);

void param_get_text(const struct param *p, const void *object, char *out, size_t room);
void param_write_value(const struct param *p, const void *object, struct jsonw *w);
// {"name":…,"kind":…,"default":…,"min":…,"max":…,"choices":[…],"unit":…,"help":…}
void param_write_catalogue(const struct param *p, struct jsonw *w);
void param_print_paragraph(const char *text, FILE *out); // wrapped at 80
// Two columns, wrapped at 80.
void param_print_help(const struct param_table *t, FILE *out);

// As a file of "name = value" lines under their help; values that are the defaults' are commented
// out.
void param_print_file(const struct param_table *t, const void *object, const void *defaults,
                      FILE *out);

// Reads such a file to its end and calls `set` for each setting; -1 of it ends that. A file that
// cannot be read (a directory, an I/O error in the middle), a line of more than PARAM_LINE_MAX
// bytes and what is no text are errors too: what was read before them is no configuration. *line:
// the one at fault.
enum { PARAM_LINE_MAX = 4200 }; // so each setting of a program fits one line
typedef int param_set_fn(void *ctx, const char *name, const char *value, struct err *err);
int param_read_file(FILE *f, param_set_fn *set, void *ctx, int *line, struct err *err);

// A table and the object that it describes.
struct param_target {
    const struct param_table *table;
    void *object;
    bool filled; // param_parse_args: all its texts are `filled`
};

// Options that were given so far, of one or several calls of param_parse_args for one command line.
enum { PARAM_GIVEN_MAX = 160 };
struct param_given {
    int n;
    const struct param *list[PARAM_GIVEN_MAX];
};

// What a command line may hold, and the operands found in it.
struct param_args {
    const struct param_target *targets; // the first that has an option gets it
    int n_targets;
    char **operands; // room for `most`, to be pointed into argv; NULL: none, stop at the first
    int most, n;     // n: operands found
    // An option that is there is refused with another value, unless it joins its values or is a
    // flag: of --quick --no-quick the last counts. NULL: the last counts of all.
    struct param_given *given;
    // NULL, or offered each --option that no table has; value: after '=' or NULL. Returns 1 taken,
    // 0 unknown, -1 error.
    int (*other)(void *context, const char *option, const char *value, struct err *err);
    void *context;
};

// Reads argv from *next on: --name=value, --name value, --flag and --no-flag (bool), -x value and
// -xvalue (`letter`); "--" ends the options. With room for operands, these stand anywhere, one too
// many or an unknown -x is an error, and *next becomes argc; without, *next becomes the index of
// the first word that is no option. ERR_USAGE names the option in text and member; what was read
// before it is set.
int param_parse_args(struct param_args *a, int argc, char **argv, int *next, struct err *err);

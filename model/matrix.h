// SPDX-License-Identifier: Apache-2.0
// A measured matrix: rows × columns of cells. For latency: rows are ranks, columns working sets
// in bytes, the value is ns a load. Every cell carries how sure we are of it.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "model/sketch.h"

enum cell_field {
    CELL_N,         // samples kept
    CELL_DISTURBED, // samples that something disturbed; they are left out, or the least stands in
    CELL_MEDIAN,
    CELL_LO, // 95 % interval of the median, widened by what a repeat adds; see docs/METHOD.md for
             // how well that holds on a machine that drifts
    CELL_HI,
    CELL_MIN,
    CELL_P10,
    CELL_P90,
    CELL_P99,
    CELL_MEAN,
    CELL_SD,
    CELL_OVERLAP, // share of this cell's kept measuring time with all ranks chasing; NaN in serial
                  // mode
    CELL_CONVERGED, // 1: the interval reached the requested precision; 0: the time limit came first
    CELL_MISSES,    // of the last-level cache per hop, by the CPU's counters; so the next three
    CELL_WALKS,     // misses of the data TLB
    CELL_CYCLES,
    CELL_CONFIRMED, // 1: the misses are those of the working set's size; 0: they are not
    CELL_FIELDS
};

struct cell {
    double v[CELL_FIELDS]; // NaN: not known (an import may have only the median)
    struct sketch sketch;  // how its samples are distributed
};

#define CELL_VALUE_LEAST 0.001 // values are stored in thousandths: less would be 0

enum cell_kind { CELL_IS_COUNT, CELL_IS_VALUE, CELL_IS_SHARE, CELL_IS_RATE };

// Codec of a cell: records, database, JSON and CSV all iterate this.
struct cell_field_info {
    const char *name;
    enum cell_kind kind; // COUNT: integer; VALUE: in the matrix's unit; SHARE: 0…1;
                         // RATE: a number per hop
    int digits;          // after the point, in JSON and CSV
    const char *help;
};
extern const struct cell_field_info cell_fields[CELL_FIELDS];

struct axis {
    char name[16]; // "rank", "working_set"
    char unit[8];  // "", "bytes"
    int n;
    int64_t *values; // owned; what they count: model/shape.h
};

// Values of axis "operation": atomic operations, then locks.
enum operation {
    OPERATION_FETCH_ADD,
    OPERATION_CAS,
    OPERATION_EXCHANGE,
    OPERATION_TAS,
    OPERATION_TICKET,
    OPERATION_MCS,
    AXIS_OPERATIONS
};
extern const char *const operation_names[AXIS_OPERATIONS];
bool operation_is_lock(enum operation operation);

enum access { ACCESS_OWN, ACCESS_SHARED, ACCESS_CROSSED, AXIS_ACCESSES }; // values of axis "access"
// Values of axis "aspect": what is compared. The last is of pairs of cores.
enum aspect { ASPECT_L2, ASPECT_MEMORY, ASPECT_BANDWIDTH, ASPECT_TRANSFER, AXIS_ASPECTS };

// Two ranks as one value of axis "pair", a node and a target (model/target.h) of axis "path".
int64_t axis_pair(int first, int second);
void axis_unpair(int64_t value, int *first, int *second);
enum { AXIS_LABEL_ROOM = 128 };
// How people read value i: "3-17", "0->2", "crossed", "own", "interleave:0-3", or the number. Axes
// whose values are not plain numbers: axis_is_named; JSON has "labels" beside their "values".
void axis_label(const struct axis *a, int i, char *out, size_t room);
bool axis_is_named(const struct axis *a);
void axis_csv(const struct axis *a, int i, struct buf *out); // ",label", in quotes if it needs them

struct matrix {
    char name[24];     // unique in the run: "concurrent", "serial"
    char quantity[16]; // "latency"
    char unit[8];      // "ns"
    struct axis row, col;
    struct cell *cells; // row.n × col.n, row-major; owned
};

enum { MATRIX_CELLS_MAX = 1 << 18 }; // 1024 ranks × 48 sizes × 2 and room: 46 MB of cells

int matrix_init(struct matrix *m, const char *name, const char *quantity, const char *unit,
                int rows, int cols, struct err *err); // all cells NaN, axis values 0
void matrix_fini(struct matrix *m);
int64_t matrices_cells(const struct matrix *list, int n); // of all together
struct cell *matrix_at(const struct matrix *m, int row, int col);
void cell_clear(struct cell *c); // all NaN
// Its undisturbed samples: n, or 0 where that one is disturbed too and stands in for others. Then
// the cell has no mean.
double cell_kept(const struct cell *c);
bool cell_histogram(const struct cell *c, struct histogram *h); // false: it has no sketch

void cell_write_csv(const struct cell *c, struct buf *out); // ",7,11.530,…": empty if not known
void cell_write_members(const struct cell *c, struct jsonw *w);      // into an open object
void cell_write_distribution(const struct cell *c, struct jsonw *w); // a member, if it has one
int cell_read_members(struct cell *c, const struct json *object, struct err *err); // checks ranges
// Whether its values can be those of one cell: quantiles rise, lo is at most hi, counts are whole,
// converged and confirmed are 0 or 1. ERR_INVALID names the member.
int cell_check(const struct cell *c, struct err *err);

// {"name","quantity","unit","rows":{"name","unit","values"},"cols":{…},"cells":[[{cell}…]…]}
// Cells have their distributions too if `whole`.
void matrix_write_json(const struct matrix *m, struct jsonw *w, const char *key, bool whole);
int matrix_from_json(struct matrix *m, const struct json *object, struct err *err);
// The same without cells, inside an open object; reading gives a matrix whose cells are all NaN.
void matrix_write_head_members(const struct matrix *m, struct jsonw *w);
int matrix_head_from_json(struct matrix *m, const struct json *object, struct err *err);
int matrix_axes_from_json(struct matrix *m, const struct json *object, struct err *err); // no cells
// CSV: one header "matrix,rank,working_set_bytes,<cell fields with unit>", one line a cell.
// Matrices of several units have no unit in the header, but a last column "unit". Axes that they do
// not share are "row" and "column", and so are two axes of one name. No matrices have a head too.
void matrices_write_csv(const struct matrix *list, int n, struct buf *out);
// One JSON object a cell a line: {"matrix","rank","working_set",…}. Two axes of one name are "row"
// and "column". An axis with labels has "pair_label" behind "pair".
void matrix_write_ndjson(const struct matrix *m, struct buf *out);

// SPDX-License-Identifier: Apache-2.0
// A matrix owns its cells and the values of its axes. Its JSON has one form for storage, export
// and the API.
#include "model/matrix.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const struct cell_field_info cell_fields[CELL_FIELDS] = {
    [CELL_N] = {"n", CELL_IS_COUNT, 0, "samples kept"},
    [CELL_DISTURBED] = {"disturbed", CELL_IS_COUNT, 0,
                        "samples that were disturbed: left out, unless a cell has no other"},
    [CELL_MEDIAN] = {"median", CELL_IS_VALUE, 3, "median of the kept samples"},
    [CELL_LO] = {"lo", CELL_IS_VALUE, 3,
                 "95 % interval of the median, widened for a repeat in the same minutes, low end"},
    [CELL_HI] = {"hi", CELL_IS_VALUE, 3,
                 "95 % interval of the median, widened for a repeat in the same minutes, high end"},
    [CELL_MIN] = {"min", CELL_IS_VALUE, 3, "smallest kept sample"},
    [CELL_P10] = {"p10", CELL_IS_VALUE, 3, "10th percentile"},
    [CELL_P90] = {"p90", CELL_IS_VALUE, 3, "90th percentile"},
    [CELL_P99] = {"p99", CELL_IS_VALUE, 3, "99th percentile"},
    [CELL_MEAN] = {"mean", CELL_IS_VALUE, 3, "mean"},
    [CELL_SD] = {"sd", CELL_IS_VALUE, 3, "standard deviation"},
    [CELL_OVERLAP] = {"overlap", CELL_IS_SHARE, 4,
                      "share of the measuring time with all ranks chasing"},
    [CELL_CONVERGED] = {"converged", CELL_IS_COUNT, 0,
                        "1: reached the requested precision; 0: the time limit came first"},
    [CELL_MISSES] = {"misses_per_hop", CELL_IS_RATE, 3,
                     "misses of the last-level cache per hop, by the CPU's counters"},
    [CELL_WALKS] = {"walks_per_hop", CELL_IS_RATE, 3, "misses of the data TLB per hop"},
    [CELL_CYCLES] = {"cycles_per_hop", CELL_IS_RATE, 3, "cycles of the core per hop"},
    [CELL_CONFIRMED] = {"confirmed", CELL_IS_COUNT, 0,
                        "1: the misses are those of the working set's size; 0: they are not"},
};

void cell_clear(struct cell *c)
{
    for (int f = 0; f < CELL_FIELDS; f++)
        c->v[f] = NAN;
    c->sketch = (struct sketch){0};
}

double cell_kept(const struct cell *c)
{
    bool stands_in = c->v[CELL_N] == 1 && c->v[CELL_DISTURBED] >= 1 && isnan(c->v[CELL_MEAN]);
    return stands_in ? 0 : c->v[CELL_N];
}

bool cell_histogram(const struct cell *c, struct histogram *h)
{
    return sketch_read(h, &c->sketch, c->v[CELL_N], c->v[CELL_MIN]);
}

static int axis_init(struct axis *a, int n)
{
    a->values = calloc((size_t)n, sizeof *a->values);
    a->n = n;
    return a->values ? 0 : -1;
}

int64_t matrices_cells(const struct matrix *list, int n)
{
    int64_t cells = 0;
    for (int i = 0; i < n; i++)
        cells += (int64_t)list[i].row.n * list[i].col.n;
    return cells;
}

static int init_axes(struct matrix *m, const char *name, const char *quantity, const char *unit,
                     int rows, int cols, struct err *err)
{
    *m = (struct matrix){0};
    if (rows < 1 || cols < 1 || (int64_t)rows * cols > MATRIX_CELLS_MAX)
        return err_set(err, ERR_INVALID, "matrix", "%d x %d cells: must be from 1 to %d", rows,
                       cols, MATRIX_CELLS_MAX);
    snprintf(m->name, sizeof m->name, "%s", name);
    snprintf(m->quantity, sizeof m->quantity, "%s", quantity);
    snprintf(m->unit, sizeof m->unit, "%s", unit);
    if (axis_init(&m->row, rows) == 0 && axis_init(&m->col, cols) == 0)
        return 0;
    matrix_fini(m);
    return err_set(err, ERR_NO_MEMORY, "", "no memory for a matrix of %d x %d", rows, cols);
}

static int init_cells(struct matrix *m, struct err *err)
{
    const size_t count = (size_t)m->row.n * (size_t)m->col.n;
    m->cells = calloc(count, sizeof *m->cells);
    if (!m->cells)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a matrix of %d x %d", m->row.n,
                       m->col.n);
    for (size_t i = 0; i < count; i++)
        cell_clear(&m->cells[i]);
    return 0;
}

int matrix_init(struct matrix *m, const char *name, const char *quantity, const char *unit,
                int rows, int cols, struct err *err)
{
    if (init_axes(m, name, quantity, unit, rows, cols, err) < 0)
        return -1;
    if (init_cells(m, err) == 0)
        return 0;
    matrix_fini(m);
    return -1;
}

void matrix_fini(struct matrix *m)
{
    free(m->cells);
    free(m->row.values);
    free(m->col.values);
    *m = (struct matrix){0};
}

struct cell *matrix_at(const struct matrix *m, int row, int col)
{
    return &m->cells[(size_t)row * (size_t)m->col.n + (size_t)col];
}

static bool is_counted(const struct cell *c)
{
    for (int f = CELL_MISSES; f < CELL_FIELDS; f++)
        if (!isnan(c->v[f]))
            return true;
    return false;
}

// Most machines count nothing: four nulls would make each cell half as long again.
void cell_write_members(const struct cell *c, struct jsonw *w)
{
    int n = is_counted(c) ? CELL_FIELDS : CELL_MISSES;
    for (int f = 0; f < n; f++)
        jsonw_fixed(w, cell_fields[f].name, c->v[f], cell_fields[f].digits);
}

void cell_write_distribution(const struct cell *c, struct jsonw *w)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct histogram h;
    if (!cell_histogram(c, &h))
        return;
    sketch_write_text(&h, &text);
    buf_needs(w->out, &text);
    jsonw_text(w, "distribution", buf_text(&text));
}

// Of older versions there is none.
static int read_distribution(struct cell *c, const struct json *object, struct err *err)
{
    const struct json *m = json_get(object, "distribution");
    if (!m || json_is_null(m))
        return 0;
    if (!json_text(m))
        return err_set(err, ERR_INVALID, "distribution", "must be a text");
    return sketch_from_text(&c->sketch, json_text(m), c->v[CELL_N], c->v[CELL_MIN], err);
}

static double most_of(enum cell_kind kind)
{
    static const double most[] = {[CELL_IS_COUNT] = 1e9,
                                  [CELL_IS_VALUE] = 1e12,
                                  [CELL_IS_SHARE] = 1.0001,
                                  [CELL_IS_RATE] = 1e9};
    return most[kind];
}

static bool in_range(enum cell_kind kind, double v)
{
    return v >= 0 && v <= most_of(kind);
}

static int check_rising(const struct cell *c, enum cell_field below, enum cell_field above,
                        struct err *err)
{
    if (!(c->v[below] > c->v[above])) // of NaN this is false
        return 0;
    return err_set(err, ERR_INVALID, cell_fields[below].name, "must be at most %s, %.9g; got %.9g",
                   cell_fields[above].name, c->v[above], c->v[below]);
}

static bool is_flag(int field)
{
    return field == CELL_CONVERGED || field == CELL_CONFIRMED;
}

int cell_check(const struct cell *c, struct err *err)
{
    static const enum cell_field rising[] = {CELL_MIN, CELL_P10, CELL_MEDIAN, CELL_P90, CELL_P99};
    for (size_t i = 0; i < COUNT_OF(rising); i++)
        for (size_t k = i + 1; k < COUNT_OF(rising); k++)
            if (check_rising(c, rising[i], rising[k], err) < 0)
                return -1;
    for (int f = 0; f < CELL_FIELDS; f++) {
        const double v = c->v[f];
        if (isnan(v) || cell_fields[f].kind != CELL_IS_COUNT)
            continue;
        if (is_flag(f) && v != 0 && v != 1)
            return err_set(err, ERR_INVALID, cell_fields[f].name, "must be 0, 1 or null; got %.9g",
                           v);
        if (v != floor(v))
            return err_set(err, ERR_INVALID, cell_fields[f].name,
                           "must be a whole number; got %.9g", v);
    }
    return check_rising(c, CELL_LO, CELL_HI, err);
}

int cell_read_members(struct cell *c, const struct json *object, struct err *err)
{
    struct cell got;
    cell_clear(&got);
    for (int f = 0; f < CELL_FIELDS; f++) {
        const struct json *m = json_get(object, cell_fields[f].name);
        if (!m || json_is_null(m))
            continue;
        if (!json_number(m, &got.v[f]) || !in_range(cell_fields[f].kind, got.v[f]))
            return err_set(err, ERR_INVALID, cell_fields[f].name,
                           "must be a number from 0 to %.9g, or null",
                           most_of(cell_fields[f].kind));
    }
    if (!isfinite(got.v[CELL_MEDIAN]))
        return err_set(err, ERR_INVALID, "median", "is missing");
    if (got.v[CELL_MEDIAN] > 0 && got.v[CELL_MEDIAN] < CELL_VALUE_LEAST)
        return err_set(err, ERR_INVALID, "median",
                       "is so small that it would be stored as 0; the least is 0.001");
    if (read_distribution(&got, object, err) < 0)
        return -1;
    *c = got;
    return 0;
}

static void write_labels(const struct axis *a, struct jsonw *w)
{
    char label[AXIS_LABEL_ROOM];
    jsonw_array(w, "labels");
    for (int i = 0; i < a->n; i++) {
        axis_label(a, i, label, sizeof label);
        jsonw_text(w, NULL, label);
    }
    jsonw_end(w);
}

static void write_axis(const struct axis *a, struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    jsonw_text(w, "name", a->name);
    jsonw_text(w, "unit", a->unit);
    jsonw_array(w, "values");
    for (int i = 0; i < a->n; i++)
        jsonw_i64(w, NULL, a->values[i]);
    jsonw_end(w);
    if (axis_is_named(a))
        write_labels(a, w);
    jsonw_end(w);
}

void matrix_write_head_members(const struct matrix *m, struct jsonw *w)
{
    jsonw_text(w, "name", m->name);
    jsonw_text(w, "quantity", m->quantity);
    jsonw_text(w, "unit", m->unit);
    write_axis(&m->row, w, "rows");
    write_axis(&m->col, w, "cols");
}

void matrix_write_json(const struct matrix *m, struct jsonw *w, const char *key, bool whole)
{
    jsonw_object(w, key);
    matrix_write_head_members(m, w);
    jsonw_array(w, "cells");
    for (int r = 0; r < m->row.n; r++) {
        jsonw_array(w, NULL);
        for (int c = 0; c < m->col.n; c++) {
            jsonw_object(w, NULL);
            cell_write_members(matrix_at(m, r, c), w);
            if (whole)
                cell_write_distribution(matrix_at(m, r, c), w);
            jsonw_end(w);
        }
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_end(w);
}

static int read_axis(struct axis *a, const struct json *object, const char *member, struct err *err)
{
    snprintf(a->name, sizeof a->name, "%s", json_get_text(object, "name", ""));
    snprintf(a->unit, sizeof a->unit, "%s", json_get_text(object, "unit", ""));
    int i = 0;
    for (const struct json *v = json_first(json_get(object, "values")); v && i < a->n;
         v = json_next(v))
        if (!json_i64(v, &a->values[i++]))
            return err_set(err, ERR_INVALID, member, "value %d is not an integer", i - 1);
    return 0;
}

static int matrix_read_cells(struct matrix *m, const struct json *rows, struct err *err)
{
    int r = 0;
    for (const struct json *row = json_first(rows); row; row = json_next(row), r++) {
        if (json_count(row) != m->col.n)
            return err_set(err, ERR_INVALID, "cells", "row %d has %d cells, expected %d", r,
                           json_count(row), m->col.n);
        int c = 0;
        for (const struct json *v = json_first(row); v; v = json_next(v), c++)
            if (!json_is_null(json_get(v, "median")) &&
                cell_read_members(matrix_at(m, r, c), v, err) < 0)
                return err_prefix(err, "cell %d,%d", r, c);
    }
    return 0;
}

int matrix_axes_from_json(struct matrix *m, const struct json *object, struct err *err)
{
    const struct json *rows = json_get(object, "rows"), *cols = json_get(object, "cols");
    int nrows = json_count(json_get(rows, "values")), ncols = json_count(json_get(cols, "values"));
    struct matrix got CLEANUP(matrix_fini) = {0};
    if (init_axes(&got, json_get_text(object, "name", ""), json_get_text(object, "quantity", ""),
                  json_get_text(object, "unit", ""), nrows, ncols, err) < 0)
        return -1;
    if (read_axis(&got.row, rows, "rows", err) < 0 || read_axis(&got.col, cols, "cols", err) < 0)
        return -1;
    *m = got;
    got = (struct matrix){0};
    return 0;
}

int matrix_head_from_json(struct matrix *m, const struct json *object, struct err *err)
{
    if (matrix_axes_from_json(m, object, err) < 0)
        return -1;
    if (init_cells(m, err) == 0)
        return 0;
    matrix_fini(m);
    return -1;
}

int matrix_from_json(struct matrix *m, const struct json *object, struct err *err)
{
    struct matrix got CLEANUP(matrix_fini) = {0};
    if (matrix_head_from_json(&got, object, err) < 0)
        return -1;
    const struct json *cells = json_get(object, "cells");
    if (json_count(cells) != got.row.n)
        return err_set(err, ERR_INVALID, "cells", "has %d rows, expected %d", json_count(cells),
                       got.row.n);
    if (matrix_read_cells(&got, cells, err) < 0)
        return -1;
    *m = got;
    got = (struct matrix){0};
    return 0;
}

// Between ranks both axes are "rank": two columns or members of one name are one for most readers.
static bool axes_are_named_alike(const struct axis *a, const struct axis *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->unit, b->unit);
}

// The lines of all matrices have one head. What they do not share is not named in it.
struct csv_head {
    bool row, col, unit; // they share that name
};

static struct csv_head csv_head_of(const struct matrix *list, int n)
{
    // No matrices share nothing: a reader of many runs finds the head of a run without cells too.
    struct csv_head h = {.row = n, .col = n, .unit = n};
    for (int i = 0; i < n; i++) {
        h.row = h.row && axes_are_named_alike(&list[i].row, &list[0].row);
        h.col = h.col && axes_are_named_alike(&list[i].col, &list[0].col);
        h.unit = h.unit && !strcmp(list[i].unit, list[0].unit);
    }
    if (n && h.row && h.col && axes_are_named_alike(&list[0].row, &list[0].col))
        h.row = h.col = false;
    return h;
}

static void csv_name(const char *name, const char *unit, struct buf *out)
{
    buf_fmt(out, ",%s%s%s", name, *unit ? "_" : "", unit);
}

static void csv_write_head(const struct csv_head *h, const struct matrix *m, struct buf *out)
{
    buf_str(out, "matrix");
    csv_name(h->row ? m->row.name : "row", h->row ? m->row.unit : "", out);
    csv_name(h->col ? m->col.name : "column", h->col ? m->col.unit : "", out);
    for (int f = 0; f < CELL_FIELDS; f++)
        csv_name(cell_fields[f].name,
                 h->unit && cell_fields[f].kind == CELL_IS_VALUE ? m->unit : "", out);
    buf_str(out, h->unit ? "\n" : ",unit\n");
}

void cell_write_csv(const struct cell *c, struct buf *out)
{
    for (int f = 0; f < CELL_FIELDS; f++)
        if (isfinite(c->v[f]))
            buf_fmt(out, ",%.*f", cell_fields[f].digits, c->v[f]);
        else
            buf_char(out, ',');
}

static void csv_write_cells(const struct csv_head *h, const struct matrix *m, struct buf *out)
{
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++) {
            buf_str(out, m->name);
            axis_csv(&m->row, r, out);
            axis_csv(&m->col, c, out);
            cell_write_csv(matrix_at(m, r, c), out);
            if (!h->unit)
                buf_fmt(out, ",%s", m->unit);
            buf_char(out, '\n');
        }
}

void matrices_write_csv(const struct matrix *list, int n, struct buf *out)
{
    const struct csv_head h = csv_head_of(list, n);
    csv_write_head(&h, list, out);
    for (int i = 0; i < n; i++)
        csv_write_cells(&h, &list[i], out);
}

// Where CSV has a label, a line has it beside the value, as matrices in JSON do.
static void ndjson_axis(const struct axis *a, int i, const char *name, struct jsonw *w)
{
    char label[AXIS_LABEL_ROOM], member[AXIS_LABEL_ROOM];
    jsonw_i64(w, name, a->values[i]);
    if (!axis_is_named(a))
        return;
    snprintf(member, sizeof member, "%s_label", name);
    axis_label(a, i, label, sizeof label);
    jsonw_text(w, member, label);
}

void matrix_write_ndjson(const struct matrix *m, struct buf *out)
{
    const bool pairs = axes_are_named_alike(&m->row, &m->col);
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++) {
            struct jsonw w = jsonw_to(out);
            jsonw_object(&w, NULL);
            jsonw_text(&w, "matrix", m->name);
            jsonw_text(&w, "quantity", m->quantity);
            jsonw_text(&w, "unit", m->unit);
            ndjson_axis(&m->row, r, pairs ? "row" : m->row.name, &w);
            ndjson_axis(&m->col, c, pairs ? "column" : m->col.name, &w);
            cell_write_members(matrix_at(m, r, c), &w);
            jsonw_end(&w);
            buf_char(out, '\n');
        }
}

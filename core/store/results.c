// SPDX-License-Identifier: Apache-2.0
// The numbers of a run: matrices with a row a cell, ranks, log.
#include "core/store/results.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "core/store/db.h"
#include "core/store/unreadable.h"

static void axis_text(const struct axis *a, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "name", a->name);
    jsonw_text(&w, "unit", a->unit);
    jsonw_array(&w, "values");
    for (int i = 0; i < a->n; i++)
        jsonw_i64(&w, NULL, a->values[i]);
    jsonw_end(&w);
    jsonw_end(&w);
}

int store_cell_put(struct store *s, int64_t id, int matrix, int row, int col, const struct cell *c,
                   struct err *err)
{
    sqlite3_stmt *q = s->queries[Q_CELL_PUT];
    if (sq_bind(q, err, "iiii", id, (int64_t)matrix, (int64_t)row, (int64_t)col) < 0)
        return -1;
    for (int f = 0; f < CELL_FIELDS; f++) {
        int rc = isfinite(c->v[f])
                     ? sqlite3_bind_int64(q, f + 5, llround(c->v[f] * store_cell_scale(f)))
                     : sqlite3_bind_null(q, f + 5);
        if (rc != SQLITE_OK)
            return sq_fail(err, s->db, rc, "bind");
    }
    int rc = c->sketch.size ? sqlite3_bind_blob(q, CELL_FIELDS + 5, c->sketch.bytes, c->sketch.size,
                                                SQLITE_STATIC)
                            : sqlite3_bind_null(q, CELL_FIELDS + 5);
    return rc == SQLITE_OK ? sq_done(q, err) : sq_fail(err, s->db, rc, "bind");
}

static int put_matrix(struct store *s, int64_t id, int at, const struct matrix *m, bool cells,
                      struct err *err)
{
    CLEANUP_BUF struct buf rows = BUF_INIT, cols = BUF_INIT;
    axis_text(&m->row, &rows);
    axis_text(&m->col, &cols);
    sqlite3_stmt *q = s->queries[Q_MATRIX_PUT];
    if (!buf_ok(&rows) || !buf_ok(&cols))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a matrix");
    if (sq_bind(q, err, "iittttt", id, (int64_t)at, m->name, m->quantity, m->unit, buf_text(&rows),
                buf_text(&cols)) < 0 ||
        sq_done(q, err) < 0)
        return -1;
    for (int r = 0; cells && r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++)
            if (store_cell_put(s, id, at, r, c, matrix_at(m, r, c), err) < 0)
                return -1;
    return 0;
}

static void nodes_text(const struct rank_info *r, struct buf *out)
{
    buf_char(out, '[');
    for (int i = 0; i < r->n_nodes; i++)
        buf_fmt(out, "%s[%" PRId64 ",%" PRId64 ",%" PRId64 "]", i ? "," : "", r->nodes[i].node,
                r->nodes[i].pages, r->nodes[i].process_kib);
    buf_char(out, ']');
}

// Binds a member of a rank to parameter `at`.
static int bind_slot(sqlite3_stmt *q, int at, const struct record_slot *slot,
                     const struct rank_info *r)
{
    const void *member = (const char *)r + slot->offset;
    if (slot->kind == SLOT_I64)
        return sqlite3_bind_int64(q, at, *(const int64_t *)member);
    if (slot->kind != SLOT_TEXT)
        return sqlite3_bind_double(q, at, *(const double *)member); // NaN becomes NULL
    return sqlite3_bind_text(q, at, member, -1, SQLITE_STATIC);
}

int store_rank_put(struct store *s, int64_t id, const struct rank_info *r, struct err *err)
{
    CLEANUP_BUF struct buf nodes = BUF_INIT;
    nodes_text(r, &nodes);
    sqlite3_stmt *q = s->queries[Q_RANK_PUT];
    if (!buf_ok(&nodes))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a rank");
    if (sq_bind(q, err, "iit", id, (int64_t)r->address, buf_text(&nodes)) < 0)
        return -1;
    for (int i = 0; i < RECORD_RANK_SLOTS; i++) {
        int rc = bind_slot(q, i + 4, &record_rank_slots[i], r);
        if (rc != SQLITE_OK)
            return sq_fail(err, s->db, rc, "bind");
    }
    return sq_done(q, err);
}

int store_result_put(struct store *s, int64_t id, const struct run_result *r, struct err *err)
{
    for (int i = 0; i < r->n_matrices; i++)
        if (put_matrix(s, id, i, &r->matrices[i], !r->staged, err) < 0)
            return -1;
    for (int i = 0; !r->staged && i < r->n_ranks; i++)
        if (store_rank_put(s, id, &r->ranks[i], err) < 0)
            return -1;
    if (!r->log || !*r->log)
        return 0;
    sqlite3_stmt *q = s->queries[Q_LOG_PUT];
    return sq_bind(q, err, "it", id, r->log) < 0 ? -1 : sq_done(q, err);
}

static int read_sketch(sqlite3_stmt *q, int column, struct sketch *s, struct err *err)
{
    const void *bytes = sqlite3_column_blob(q, column);
    int n = sqlite3_column_bytes(q, column);
    if (n > SKETCH_BYTES_MAX)
        return err_set(err, ERR_CONFLICT, "", "the stored distribution of a cell cannot be read");
    s->size = (unsigned char)n;
    if (bytes)
        memcpy(s->bytes, bytes, (size_t)n);
    return 0;
}

static int get_cells(struct store *s, int64_t id, int at, struct matrix *m, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_CELL_GET];
    if (sq_bind(q, err, "ii", id, (int64_t)at) < 0)
        return -1;
    int row;
    while ((row = sq_step(q, err)) > 0) {
        int r = sqlite3_column_int(q, 0), c = sqlite3_column_int(q, 1);
        if (r < 0 || r >= m->row.n || c < 0 || c >= m->col.n)
            return err_set(err, ERR_CONFLICT, "", "the stored cell %d,%d is not of its matrix", r,
                           c);
        for (int f = 0; f < CELL_FIELDS; f++)
            if (sqlite3_column_type(q, f + 2) != SQLITE_NULL)
                matrix_at(m, r, c)->v[f] =
                    (double)sqlite3_column_int64(q, f + 2) / store_cell_scale(f);
        if (read_sketch(q, CELL_FIELDS + 2, &matrix_at(m, r, c)->sketch, err) < 0)
            return -1;
    }
    return row;
}

// The head of a matrix goes through the codec that records use.
static int read_head(sqlite3_stmt *q, struct matrix *m, bool cells, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "name", sq_text(q, 0));
    jsonw_text(&w, "quantity", sq_text(q, 1));
    jsonw_text(&w, "unit", sq_text(q, 2));
    jsonw_raw(&w, "rows", sq_text(q, 3));
    jsonw_raw(&w, "cols", sq_text(q, 4));
    jsonw_end(&w);
    if (sq_row_whole(q, err) < 0)
        return -1;
    if (!buf_ok(&text))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a matrix");
    CLEANUP_JSON struct json *o = json_parse(buf_text(&text), text.len, err);
    if (o && (cells ? matrix_head_from_json(m, o, err) : matrix_axes_from_json(m, o, err)) == 0)
        return 0;
    return store_unreadable(err, "the head of a stored matrix cannot be read");
}

static int count_of(sqlite3_stmt *q, int64_t id, int *n, struct err *err)
{
    if (sq_bind(q, err, "i", id) < 0)
        return -1;
    int row = sq_step(q, err);
    if (row > 0)
        *n = sqlite3_column_int(q, 0);
    sq_reset(q);
    return row < 0 ? -1 : 0;
}

static int results_read_matrices(struct store *s, int64_t id, struct matrix *list, int n,
                                 bool cells, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_MATRIX_GET];
    if (sq_bind(q, err, "i", id) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (sq_step(q, err) != 1 || read_head(q, &list[i], cells, err) < 0 ||
            (cells && get_cells(s, id, i, &list[i], err) < 0))
            return -1;
    return 0;
}

static int results_get_matrices(struct store *s, int64_t id, bool cells, struct matrix **out,
                                int *n, struct err *err)
{
    int count = 0;
    if (count_of(s->queries[Q_MATRIX_COUNT], id, &count, err) < 0)
        return -1;
    struct matrix *list = calloc((size_t)count + 1, sizeof *list);
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for matrices");
    if (results_read_matrices(s, id, list, count, cells, err) < 0) {
        store_matrices_free(list, count);
        return -1;
    }
    *out = list;
    *n = count;
    return 0;
}

int store_matrices_get(struct store *s, int64_t id, struct matrix **out, int *n, struct err *err)
{
    return results_get_matrices(s, id, true, out, n, err);
}

int store_matrix_axes_get(struct store *s, int64_t id, struct matrix **out, int *n, struct err *err)
{
    return results_get_matrices(s, id, false, out, n, err);
}

void store_matrices_free(struct matrix *list, int n)
{
    for (int i = 0; list && i < n; i++)
        matrix_fini(&list[i]);
    free(list);
}

static int results_read_nodes(const char *text, struct rank_info *r, struct err *err)
{
    CLEANUP_JSON struct json *list = json_parse(text, strlen(text), err);
    if (!list)
        return store_unreadable(err, "the stored nodes of a rank cannot be read");
    for (const struct json *n = json_first(list); n && r->n_nodes < RANK_NODES_MAX;
         n = json_next(n)) {
        const struct json *node = json_first(n), *pages = node ? json_next(node) : NULL;
        const struct json *kib = pages ? json_next(pages) : NULL;
        if (!json_i64(node, &r->nodes[r->n_nodes].node) ||
            !json_i64(pages, &r->nodes[r->n_nodes].pages) ||
            !json_i64(kib, &r->nodes[r->n_nodes].process_kib))
            return err_set(err, ERR_CONFLICT, "", "the stored nodes of a rank cannot be read");
        r->n_nodes++;
    }
    return 0;
}

static void results_read_slot(sqlite3_stmt *q, int column, const struct record_slot *slot,
                              struct rank_info *r)
{
    void *member = (char *)r + slot->offset;
    if (slot->kind == SLOT_I64)
        *(int64_t *)member = sqlite3_column_int64(q, column);
    else if (slot->kind != SLOT_TEXT)
        *(double *)member =
            sqlite3_column_type(q, column) == SQLITE_NULL ? NAN : sqlite3_column_double(q, column);
    else
        snprintf(member, slot->room, "%s", sq_text(q, column));
}

// Columns in the order of prepare_ranks in store.c.
static int results_read_rank(sqlite3_stmt *q, struct rank_info *r, struct err *err)
{
    *r = (struct rank_info){.address = (uint64_t)sqlite3_column_int64(q, 0)};
    for (int i = 0; i < RECORD_RANK_SLOTS; i++)
        results_read_slot(q, i + 2, &record_rank_slots[i], r);
    const char *nodes = sq_text(q, 1);
    return sq_row_whole(q, err) < 0 ? -1 : results_read_nodes(nodes, r, err);
}

int store_ranks_get(struct store *s, int64_t id, struct rank_info **out, int *n, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_RANK_GET];
    if (sq_bind(q, err, "i", id) < 0)
        return -1;
    CLEANUP_MEM struct rank_info *list = calloc(1, sizeof *list);
    int count = 0, row = 0;
    while (list && (row = sq_step(q, err)) > 0) {
        struct rank_info *more = realloc(list, ((size_t)count + 2) * sizeof *list);
        if (!more)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for ranks");
        list = more;
        if (results_read_rank(q, &list[count++], err) < 0)
            return -1;
    }
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for ranks");
    if (row < 0)
        return -1;
    *out = steal_ptr(&list);
    *n = count;
    return 0;
}

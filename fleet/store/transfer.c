// SPDX-License-Identifier: Apache-2.0
// Small tables go in one transaction, row by row: which tables there are, and their columns, says
// the file itself. Runs follow in the order of their arrival, as many in a transaction as make it
// worth while, and whole runs node by node.
#include "fleet/store/transfer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/str.h"
#include "fleet/store/parts.h"

enum {
    TRANSFER_TABLES = 32,
    TRANSFER_ROWS = 2000,   // given to the engine at once
    TRANSFER_COMMIT = 5000, // numbers of arrivals in a transaction, or one node's whole runs
};

struct transfer_sum {
    int64_t rows;
    uint64_t hash; // the sum of the rows' hashes: in any order
};

struct transfer_table {
    int n;        // columns
    bool by_node; // large: read node by node
    char name[64], read[900], write[900];
};

struct transfer {
    struct fleet_store *from, *to;
    struct transfer_table tables[TRANSFER_TABLES];
    int n_tables;
    struct fleet_row rows[TRANSFER_ROWS];
    size_t at[TRANSFER_ROWS]; // where the values of a row begin; its label follows them
    int n_rows;
    float *values;
    size_t n_values, room;
    fleet_transfer_fn *progress;
    void *ctx;
    struct fleet_transfer state;
};

static void transfer_fini(struct transfer *t)
{
    fleet_store_close(t->from);
    fleet_store_close(t->to);
    free(t->values);
}

static void transfer_moved(struct transfer *t, int64_t rows)
{
    t->state.done += rows;
    t->progress(t->ctx, &t->state);
}

// ---- Statements

static int transfer_query(struct fleet_store *s, const char *sql, const struct fleet_cell *in,
                          int n,
                          int (*fn)(void *ctx, const struct fleet_cell *row, struct err *err),
                          void *ctx, struct err *err)
{
    return s->engine->query(s->db, sql, in, n, fn, ctx, err);
}

// -1 in *out: there is no such row.
static int transfer_meta_get(struct fleet_store *s, const char *name, int64_t *out, struct err *err)
{
    *out = -1;
    return fleet_meta(s, name, out, err);
}

static int transfer_meta_set(struct fleet_store *s, const char *name, int64_t value,
                             struct err *err)
{
    const struct fleet_cell in[] = {CELL_T(name), CELL_I(value)};
    return fleet_exec(s,
                      "INSERT INTO meta (name, value) VALUES ($1, $2) "
                      "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                      in, COUNT_OF(in), err);
}

// ---- Tables

static int transfer_table_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct transfer *t = ctx;
    if (t->n_tables == TRANSFER_TABLES || row[2].i > FLEET_CELLS_MAX)
        return err_set(err, ERR_INTERNAL, "", "table %.60s: too many tables or columns", row[0].t);
    struct transfer_table *k = &t->tables[t->n_tables++];
    char marks[120] = "";
    k->n = (int)row[2].i;
    for (int i = 0; i < k->n; i++)
        snprintf(marks + strlen(marks), sizeof marks - strlen(marks), "%s$%d", i ? ", " : "",
                 i + 1);
    snprintf(k->name, sizeof k->name, "%s", row[0].t);
    k->by_node = strcmp(k->name, "archive") == 0;
    snprintf(k->read, sizeof k->read, "SELECT %s FROM %s%s", row[1].t, row[0].t,
             k->by_node ? " WHERE node = $1" : "");
    snprintf(k->write, sizeof k->write, "INSERT INTO %s (%s) VALUES (%s)", row[0].t, row[1].t,
             marks);
    return 0;
}

// `run` is read by the engines, and `meta` is copied at the end.
static int tables_find(struct transfer *t, struct err *err)
{
    static const char sql[] =
        "SELECT m.name, '\"' || group_concat(p.name, '\", \"') || '\"', count(*) "
        "FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS p "
        "WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name NOT IN ('meta', 'run') "
        "GROUP BY m.name ORDER BY m.name";
    return transfer_query(t->from, sql, NULL, 0, transfer_table_row, t, err);
}

struct table_copy {
    struct transfer *t;
    const struct transfer_table *table;
};

static int transfer_cells(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct table_copy *c = ctx;
    return fleet_exec(c->t->to, c->table->write, row, c->table->n, err);
}

// Statements are sent without waiting. What fails is of the table that was written last only if its
// statements are waited for.
static int transfer_settle(struct transfer *t, struct err *err)
{
    return transfer_query(t->to, "SELECT 1", NULL, 0, NULL, NULL, err);
}

// node 0: those that are not read node by node.
static int tables_copy(struct transfer *t, int node, struct err *err)
{
    for (int i = 0; i < t->n_tables; i++) {
        struct table_copy c = {t, &t->tables[i]};
        if (t->tables[i].by_node == (node > 0) &&
            (transfer_query(t->from, t->tables[i].read, &CELL_I(node), node > 0, transfer_cells, &c,
                            err) < 0 ||
             transfer_settle(t, err) < 0))
            return err_prefix(err, "table %s", t->tables[i].name);
    }
    return 0;
}

// ---- Beginning

static int transfer_clear(struct transfer *t, struct err *err)
{
    char sql[100];
    for (int i = 0; i < t->n_tables; i++) {
        snprintf(sql, sizeof sql, "TRUNCATE %s", t->tables[i].name);
        if (fleet_exec(t->to, sql, NULL, 0, err) < 0)
            return -1;
    }
    return fleet_exec(t->to, "TRUNCATE run", NULL, 0, err) < 0 ? -1 : transfer_settle(t, err);
}

static int own_history(struct err *err)
{
    return err_set(err, ERR_CONFLICT, "move_to",
                   "that database has a history of its own: move into an empty one");
}

// A collector that no node has responded to can have campaigns and findings. What opening a
// database writes is no history.
static int transfer_is_empty(struct transfer *t, bool *empty, struct err *err)
{
    char sql[120];
    *empty = true;
    for (int i = 0; i < t->n_tables && *empty; i++) {
        const char *name = t->tables[i].name;
        int64_t rows = 0;
        if (strcmp(name, "identity") == 0 || strcmp(name, "skipped") == 0)
            continue;
        snprintf(sql, sizeof sql, "SELECT count(*) FROM (SELECT 1 FROM %s LIMIT 1) AS one", name);
        if (transfer_query(t->to, sql, NULL, 0, fleet_number, &rows, err) < 0)
            return -1;
        *empty = !rows;
    }
    return 0;
}

// *done: nothing is to be copied any more; it was killed after the last commit.
static int transfer_first(struct transfer *t, int64_t version, bool *done, struct err *err)
{
    int64_t moving, own, nodes = 0;
    bool empty;
    if (transfer_meta_get(t->to, "moving", &moving, err) < 0 ||
        transfer_meta_get(t->to, "version", &own, err) < 0 ||
        transfer_query(t->to, "SELECT count(*) FROM node", NULL, 0, fleet_number, &nodes, err) <
            0 ||
        transfer_is_empty(t, &empty, err) < 0)
        return -1;
    *done = moving < 0 && nodes && own == version;
    if (*done || moving == version)
        return 0;
    if (moving < 0 && !empty)
        return own_history(err);
    return transfer_clear(t, err) < 0 || tables_copy(t, 0, err) < 0 ||
                   transfer_meta_set(t->to, "moved", 0, err) < 0 ||
                   transfer_meta_set(t->to, "moved_nodes", 0, err) < 0
               ? -1
               : transfer_meta_set(t->to, "moving", version, err);
}

// ---- Runs

static int transfer_put(struct transfer *t, struct err *err)
{
    int n = t->n_rows;
    for (int i = 0; i < n; i++) {
        struct fleet_row *r = &t->rows[i];
        r->v = t->values + t->at[i];
        r->lo = r->v + r->n;
        r->hi = r->lo + r->n;
        r->label = (const char *)(r->hi + r->n);
    }
    t->n_rows = 0;
    t->n_values = 0;
    if (n && t->to->engine->put_rows(t->to->db, t->rows, n, err) < 0)
        return -1;
    transfer_moved(t, n);
    return 0;
}

// The label is the engine's until the next row.
static int transfer_add(struct transfer *t, const struct fleet_row *r, struct err *err)
{
    size_t n = (size_t)r->n, label = (strlen(r->label) + sizeof(float)) / sizeof(float);
    if (t->n_values + 3 * n + label > t->room) {
        size_t room = 2 * (t->n_values + 3 * n + label);
        float *values = realloc(t->values, room * sizeof *values);
        if (!values)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for runs");
        t->values = values;
        t->room = room;
    }
    float *to = t->values + t->n_values;
    if (n) {
        memcpy(to, r->v, n * sizeof *to);
        memcpy(to + n, r->lo, n * sizeof *to);
        memcpy(to + 2 * n, r->hi, n * sizeof *to);
    }
    memcpy(to + 3 * n, r->label, strlen(r->label) + 1);
    t->rows[t->n_rows] = *r;
    t->at[t->n_rows++] = t->n_values;
    t->n_values += 3 * n + label;
    return 0;
}

static int copy_row_of_run(void *ctx, const struct fleet_row *row, struct err *err)
{
    struct transfer *t = ctx;
    if (transfer_add(t, row, err) < 0)
        return -1;
    return t->n_rows == TRANSFER_ROWS ? transfer_put(t, err) : 0;
}

static int transfer_read_runs(struct fleet_store *s, int node, int nodes, fleet_row_fn *fn,
                              void *ctx, struct err *err)
{
    const struct fleet_reading r = {
        .first = node ? node : 1, .last = node ? node : nodes, .until_ms = INT64_MAX};
    return s->engine->read(s->db, &r, fn, ctx, err);
}

// A collector above that reads a feed from its start reads runs in the order of their arrival: they
// are written in this order too. *moved: the last one.
static int copy_arrivals(struct transfer *t, int64_t *moved, bool *more, struct err *err)
{
    static const char sql[] = "SELECT coalesce(min(arrival), 0) FROM run WHERE arrival > $1";
    int64_t next = 0;
    if (transfer_query(t->from, sql, &CELL_I(*moved), 1, fleet_number, &next, err) < 0)
        return -1;
    *more = next > 0;
    if (!*more)
        return 0;
    *moved = next + TRANSFER_COMMIT - 1;
    return t->from->engine->arrivals(t->from->db, next - 1, *moved, copy_row_of_run, t, err) < 0 ||
                   transfer_put(t, err) < 0
               ? -1
               : transfer_meta_set(t->to, "moved", *moved, err);
}

static int copy_runs(struct transfer *t, struct err *err)
{
    const struct fleet_engine *e = t->to->engine;
    int64_t moved;
    if (transfer_meta_get(t->to, "moved", &moved, err) < 0 ||
        transfer_query(t->to, "SELECT count(*) FROM run", NULL, 0, fleet_number, &t->state.done,
                       err) < 0)
        return -1;
    for (bool more = true; more;)
        if (e->begin(t->to->db, true, err) < 0 ||
            e->end(t->to->db, copy_arrivals(t, &moved, &more, err), err) < 0)
            return -1;
    return 0;
}

// What is large beside the runs: node by node.
static int copy_node_tables(struct transfer *t, int node, struct err *err)
{
    return tables_copy(t, node, err) < 0 ? -1 : transfer_meta_set(t->to, "moved_nodes", node, err);
}

static int copy_nodes(struct transfer *t, int nodes, struct err *err)
{
    const struct fleet_engine *e = t->to->engine;
    int64_t moved;
    if (transfer_meta_get(t->to, "moved_nodes", &moved, err) < 0)
        return -1;
    for (int node = moved < 0 ? 1 : (int)moved + 1; node <= nodes; node++)
        if (e->begin(t->to->db, true, err) < 0 ||
            e->end(t->to->db, copy_node_tables(t, node, err), err) < 0)
            return -1;
    return 0;
}

// ---- Comparing

static uint64_t hash_and(uint64_t hash, const void *data, size_t n)
{
    return (hash ^ hash_words(data, n)) * 1099511628211u;
}

struct table_sum {
    struct transfer_sum sum;
    int columns;
};

static int sum_cells(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct table_sum *s = ctx;
    uint64_t hash = 1;
    (void)err;
    for (int i = 0; i < s->columns; i++) {
        bool text = row[i].type == CELL_TEXT;
        const int64_t head[] = {row[i].type, text ? 0 : row[i].i};
        hash = hash_and(hash, head, sizeof head);
        if (row[i].type == CELL_REAL)
            hash = hash_and(hash, &row[i].d, sizeof row[i].d);
        if (text || row[i].type == CELL_BYTES)
            hash = hash_and(hash, row[i].t, text ? strlen(row[i].t) : (size_t)row[i].i);
    }
    s->sum.rows++;
    s->sum.hash += hash;
    return 0;
}

struct run_sum {
    struct transfer_sum sum;
    struct transfer *t;
};

static int sum_run(void *ctx, const struct fleet_row *r, struct err *err)
{
    struct run_sum *s = ctx;
    const int64_t numbers[] = {r->node,        r->kind,        r->feed, r->machine, r->at_ms,
                               r->received_ms, r->finished_ms, r->seq,  r->run,     r->state,
                               r->flags,       r->disturbed,   r->n,    r->arrival};
    uint64_t hash = hash_and(1, numbers, sizeof numbers);
    (void)err;
    hash = hash_and(hash, &r->seconds, isnan(r->seconds) ? 0 : sizeof r->seconds);
    hash = hash_and(hash, r->label, strlen(r->label));
    hash = hash_and(hash, r->v, (size_t)r->n * sizeof *r->v);
    hash = hash_and(hash, r->lo, (size_t)r->n * sizeof *r->lo);
    hash = hash_and(hash, r->hi, (size_t)r->n * sizeof *r->hi);
    s->sum.hash += hash;
    if (++s->sum.rows % TRANSFER_COMMIT == 0)
        transfer_moved(s->t, TRANSFER_COMMIT);
    return 0;
}

static int sums_equal(const char *table, const struct transfer_sum *a, const struct transfer_sum *b,
                      struct err *err)
{
    return a->rows == b->rows && a->hash == b->hash
               ? 0
               : err_set(err, ERR_DAMAGED, "move_to",
                         "table %s is not the same: %lld row%s in the file, %lld in PostgreSQL",
                         table, (long long)a->rows, str_plural(a->rows), (long long)b->rows);
}

static int compare_table(struct transfer *t, const struct transfer_table *k, int node,
                         struct err *err)
{
    struct table_sum a = {.columns = k->n}, b = a;
    return transfer_query(t->from, k->read, &CELL_I(node), node > 0, sum_cells, &a, err) < 0 ||
                   transfer_query(t->to, k->read, &CELL_I(node), node > 0, sum_cells, &b, err) < 0
               ? -1
               : sums_equal(k->name, &a.sum, &b.sum, err);
}

static int compare_tables(struct transfer *t, int nodes, struct err *err)
{
    for (int i = 0; i < t->n_tables; i++) {
        bool by_node = t->tables[i].by_node;
        for (int node = by_node; node <= (by_node ? nodes : 0); node++)
            if (compare_table(t, &t->tables[i], node, err) < 0)
                return -1;
    }
    return 0;
}

static int transfer_compare(struct transfer *t, int nodes, struct err *err)
{
    struct run_sum a = {.t = t}, b = a;
    t->state = (struct fleet_transfer){"comparing", 0, 2 * t->state.all};
    if (compare_tables(t, nodes, err) < 0 ||
        transfer_read_runs(t->from, 0, nodes, sum_run, &a, err) < 0 ||
        transfer_read_runs(t->to, 0, nodes, sum_run, &b, err) < 0)
        return -1;
    return sums_equal("run", &a.sum, &b.sum, err);
}

// ---- All of it

static int copy_mark(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct transfer *t = ctx;
    return transfer_meta_set(t->to, row[0].t, row[1].i, err);
}

// All rows of `meta`, whatever their names:
// - arrived: numbers that clients of the feed have read are given to no other run.
// - deletions, deleted_before: an export that continues in the new database sees what was deleted.
// - retained and archive_retained, each with …_before: no more months are deleted in that day.
// - runs: of this, the rows that were moved are what counts.
// - version: was read before anything else. With it the new database is whole.
static int copy_marks(struct transfer *t, int64_t version, struct err *err)
{
    static const char read[] = "SELECT name, value FROM meta",
                      own[] = "DELETE FROM meta WHERE name IN ('moving', 'moved', 'moved_nodes')";
    return transfer_query(t->from, read, NULL, 0, copy_mark, t, err) < 0 ||
                   fleet_exec(t->to, own, NULL, 0, err) < 0 ||
                   transfer_meta_set(t->to, "runs", t->state.all / 2, err) < 0 ||
                   transfer_meta_set(t->to, "version", version, err) < 0
               ? -1
               : 0;
}

// A move that had finished is only compared: a collector may have written new marks since.
static int transfer_conclude(struct transfer *t, int nodes, int64_t version, bool done,
                             struct err *err)
{
    return transfer_compare(t, nodes, err) < 0 ? -1 : done ? 0 : copy_marks(t, version, err);
}

// What differs can be what the collector wrote to the file after an earlier attempt.
static int transfer_differs(struct transfer *t, struct err *err)
{
    const struct fleet_engine *e = t->to->engine;
    struct err own = *err;
    if (e->begin(t->to->db, true, err) < 0 ||
        e->end(t->to->db, transfer_meta_set(t->to, "moving", 0, err), err) < 0)
        return -1;
    return err_set(err, ERR_DAMAGED, "move_to", "%.180s; repeated, it begins anew", own.text);
}

static int transfer_run(struct transfer *t, struct err *err)
{
    const struct fleet_engine *e = t->to->engine;
    int64_t version, nodes;
    bool done = false;
    if (transfer_meta_get(t->from, "version", &version, err) < 0 ||
        transfer_query(t->from, "SELECT count(*) FROM node", NULL, 0, fleet_number, &nodes, err) <
            0 ||
        transfer_query(t->from, "SELECT count(*) FROM run", NULL, 0, fleet_number, &t->state.all,
                       err) < 0 ||
        tables_find(t, err) < 0 || e->begin(t->to->db, true, err) < 0 ||
        e->end(t->to->db, transfer_first(t, version, &done, err), err) < 0)
        return -1;
    if (!done && (copy_runs(t, err) < 0 || copy_nodes(t, (int)nodes, err) < 0))
        return -1;
    if (e->begin(t->to->db, true, err) < 0)
        return -1;
    if (e->end(t->to->db, transfer_conclude(t, (int)nodes, version, done, err), err) == 0)
        return 0;
    if (err->code != ERR_DAMAGED)
        return -1;
    return done ? own_history(err) : transfer_differs(t, err);
}

// Each is a store by itself; which of the two settings is at fault is said here.
static struct fleet_store *transfer_open(const char *uri, const char *member, struct err *err)
{
    struct fleet_store *s = fleet_open_any(uri, FLEET_STORE_WRITE, err);
    if (!s && err)
        snprintf(err->member, sizeof err->member, "%s", member);
    return s;
}

static int transfer_check(const char *from, const char *to, struct err *err)
{
    struct stat file;
    if (strstr(from, "://"))
        return err_set(err, ERR_INVALID, "store",
                       "is a database already; --move-to copies a file of SQLite into PostgreSQL");
    if (access(from, R_OK) < 0 || stat(from, &file) < 0)
        return err_set(err, ERR_INVALID, "store", "cannot read %.150s: %s", from, strerror(errno));
    if (!S_ISREG(file.st_mode))
        return err_set(err, ERR_INVALID, "store", "%.150s is not a file", from);
    if (!fleet_store_is_postgresql(to))
        return err_set(err, ERR_INVALID, "move_to",
                       "must be a database, such as postgresql://fleet@db/fleet");
    return 0;
}

int fleet_store_transfer(const char *from, const char *to, fleet_transfer_fn *progress, void *ctx,
                         struct err *err)
{
    CLEANUP_MEM struct transfer *t = calloc(1, sizeof *t);
    if (!t)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to move a history");
    t->progress = progress;
    t->ctx = ctx;
    t->state.step = "copying";
    int rc = -1;
    if (transfer_check(from, to, err) == 0 && (t->from = transfer_open(from, "store", err)) &&
        (t->to = transfer_open(to, "move_to", err)))
        rc = transfer_run(t, err);
    if (t->to && rc < 0 && err && strcmp(err->member, "store") == 0)
        *err->member = '\0'; // of either
    transfer_fini(t);
    return rc;
}

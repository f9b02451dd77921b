// SPDX-License-Identifier: Apache-2.0
// The engine on SQLite. One connection writes and does every checkpoint; readers never do
// (core/store/connection.c says why). synchronous is NORMAL: a power cut takes back whole
// transactions, and the places in the feeds with them, so that nodes send the same pages again. The
// first transaction of a writer is on the disk before it is done: it reserves numbers of arrivals,
// which must never be given twice.
#include "fleet/store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/store/migrate.h"
#include "core/store/sqlite.h"
#include "fleet/store/frozen.h"
#include "fleet/store/pack.h"
#include "fleet/store/writer.h"
#include "model/metric.h"
#include "schema/schema.h"

enum {
    LITE_APPLICATION = 0x6e706c74, // "nplt"
    LITE_STATEMENTS = 48,
    LITE_NODES_AT_ONCE = 256, // deleted from in a transaction
};

static const struct migration lite_migration = {LITE_APPLICATION, schema_fleet_sqlite, "store",
                                                "note"};

struct lite {
    sqlite3 *db;
    int lock;             // -1: a reader
    bool seen;            // a transaction of this handle has begun before
    bool eased;           // synchronous is NORMAL
    struct frozen frozen; // of a reader
    struct {
        const char *sql; // compared as text; borrowed
        sqlite3_stmt *q;
    } kept[LITE_STATEMENTS];
    int n_kept;
    float values[3 * METRICS_MAX]; // of the row that is read
    unsigned char v[4 * METRICS_MAX],
        w[PACK_WIDTHS_BYTES(METRICS_MAX)]; // of the row that is written
};

static const char sql_put[] =
    "INSERT INTO run (node, kind, measured_ms, seq, feed, machine, received_ms, finished_ms, run, "
    "state, flags, disturbed, seconds, label, v, w, arrival) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
static const char sql_move[] =
    "UPDATE feed SET node = ?1, twin = ?2, next = ?3, last_ms = ?4, skew_ms = ?5, version = ?6, "
    "state = ?7 WHERE id = ?8 AND next = ?9";
static const char sql_next_kind[] =
    "SELECT kind FROM run WHERE node = ?1 AND kind > ?2 ORDER BY kind LIMIT 1";
#define LITE_RUN                                                                                   \
    "node, kind, measured_ms, seq, feed, machine, received_ms, finished_ms, run, state, flags, "   \
    "disturbed, seconds, label, v, w, arrival"
static const char sql_read[] =
    "SELECT " LITE_RUN
    " FROM run WHERE node = ?1 AND kind = ?2 AND measured_ms >= ?3 AND measured_ms < ?4 "
    "AND (?5 = 0 OR seq = ?5) "
    "ORDER BY measured_ms DESC, seq DESC, feed DESC";
static const char sql_arrivals[] =
    "SELECT " LITE_RUN ", (SELECT history FROM feed WHERE feed.id = run.feed) FROM run "
    "WHERE arrival > ?1 AND arrival <= ?2 ORDER BY arrival";
static const char sql_delete[] =
    "DELETE FROM run WHERE node = ?1 AND kind IN (SELECT id FROM kind) AND measured_ms < ?2";
// Of each kind: a seek, as with the deletion.
static const char sql_oldest[] =
    "SELECT min((SELECT measured_ms FROM run WHERE node = ?1 AND kind = kind.id AND "
    "measured_ms >= ?2 ORDER BY measured_ms LIMIT 1)) AS oldest FROM kind HAVING oldest NOT NULL";

// ---- Opening

static void lite_writer_text(const char *path, char out[static FLEET_WRITER_ROOM])
{
    sqlite3 *db = NULL;
    int64_t version = 0;
    if (sq_open(&db, path, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == 0) {
        sq_number(db, "PRAGMA user_version", &version, NULL);
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    fleet_writer_text(version, embedded_count(schema_fleet_sqlite), out);
    sqlite3_close(db);
}

static int lite_lock(struct lite *l, const char *path, struct err *err)
{
    char name[600], holder[32] = "", writer[FLEET_WRITER_ROOM];
    snprintf(name, sizeof name, "%s-lock", path);
    CLEANUP_FD int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return err_set(err, ERR_STORAGE, "store", "%s: %s", name, strerror(errno));
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK)
        return err_set(err, ERR_STORAGE, "store", "%s cannot be locked (%s): use a local disk",
                       name, strerror(errno));
    if (!locked) {
        file_read_text(name, holder, sizeof holder);
        lite_writer_text(path, writer);
        return err_set(err, ERR_CONFLICT, "store", "another process (%s) writes to %s%s",
                       *holder ? holder : "unknown", *writer ? "the file" : path, writer);
    }
    if (ftruncate(fd, 0) == 0)
        dprintf(fd, "%d\n", (int)getpid());
    l->lock = steal_fd(&fd);
    return 0;
}

// As SQLite would make it, but not readable for all; closed before SQLite opens it.
static int lite_make_file(const char *path, struct err *err)
{
    CLEANUP_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    return fd < 0 ? err_set(err, ERR_STORAGE, "store", "%s: %s", path, strerror(errno)) : 0;
}

static int lite_exec_list(sqlite3 *db, const char *const *list, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++)
        if (sq_exec(db, list[i], err) < 0)
            return -1;
    return 0;
}

static int lite_open_writer(struct lite *l, const char *path, struct err *err)
{
    static const char *const settings[] = {
        "PRAGMA page_size=8192",          "PRAGMA auto_vacuum=INCREMENTAL",
        "PRAGMA journal_mode=WAL",        "PRAGMA synchronous=FULL",
        "PRAGMA trusted_schema=OFF",      "PRAGMA cell_size_check=ON",
        "PRAGMA cache_size=-16384",       "PRAGMA journal_size_limit=67108864",
        "PRAGMA wal_autocheckpoint=4000",
    };
    if (lite_lock(l, path, err) < 0 || migrate_check_file(path, &lite_migration, err) < 0 ||
        lite_make_file(path, err) < 0)
        return -1;
    if (sq_open(&l->db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, err) < 0 ||
        lite_exec_list(l->db, settings, COUNT_OF(settings), err) < 0 ||
        migrate_run(l->db, path, &lite_migration, err) < 0)
        return -1;
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return 0;
}

static int lite_open_file(struct lite *l, const char *path, struct err *err)
{
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;
    char uri[FROZEN_URI_MAX];
    frozen_find(&l->frozen, path);
    if (!l->frozen.is)
        return sq_open(&l->db, path, flags, err);
    frozen_uri(&l->frozen, uri);
    return sq_open(&l->db, uri, flags | SQLITE_OPEN_URI, err);
}

static int lite_open_reader(struct lite *l, const char *path, struct err *err)
{
    static const char *const settings[] = {"PRAGMA query_only=ON", "PRAGMA trusted_schema=OFF",
                                           "PRAGMA cache_size=-32768"};
    int64_t version = 0;
    if (access(path, F_OK) < 0)
        return err_set(err, ERR_STORAGE, "store", "%s: %s", path, strerror(errno));
    if (migrate_check_file(path, &lite_migration, err) < 0 || lite_open_file(l, path, err) < 0)
        return -1;
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (lite_exec_list(l->db, settings, COUNT_OF(settings), err) < 0 ||
        sq_number(l->db, "PRAGMA user_version", &version, err) < 0)
        return frozen_has_log(path)
                   ? err_set(err, ERR_STORAGE, "store",
                             "%s-wal has changes, and can be read only where files "
                             "can be created beside it: make its folder writable",
                             path)
                   : -1;
    if (migrate_check_tables(l->db, path, version, &lite_migration, err) < 0)
        return -1;
    int64_t known = embedded_count(schema_fleet_sqlite);
    return version != known ? err_set(err, ERR_STORAGE, "store",
                                      "the file has schema %" PRId64 ", this program reads %" PRId64
                                      "; the process that writes migrates it: if it is of an older "
                                      "numaprobe, update that one",
                                      version, known)
                            : 0;
}

static void lite_close_file(struct lite *l)
{
    for (int i = 0; i < l->n_kept; i++)
        sqlite3_finalize(l->kept[i].q);
    l->n_kept = 0;
    sqlite3_close(l->db);
    l->db = NULL;
    l->seen = false;
}

static void lite_close(void *db)
{
    struct lite *l = db;
    if (!l)
        return;
    lite_close_file(l);
    fd_cleanup(&l->lock);
    free(l);
}

static void *lite_open(const char *where, enum fleet_store_use use, struct err *err)
{
    struct lite *l = calloc(1, sizeof *l);
    if (!l) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the store");
        return NULL;
    }
    l->lock = -1;
    if (strlen(where) < FROZEN_PATH_MAX - 12
            ? (use == FLEET_STORE_WRITE ? lite_open_writer(l, where, err)
                                        : lite_open_reader(l, where, err)) == 0
            : err_set(err, ERR_STORAGE, "store", "the path is too long") == 0)
        return l;
    lite_close(l);
    return NULL;
}

// ---- Statements

static sqlite3_stmt *lite_statement(struct lite *l, const char *sql, struct err *err)
{
    for (int i = 0; i < l->n_kept; i++)
        if (l->kept[i].sql == sql || strcmp(l->kept[i].sql, sql) == 0)
            return l->kept[i].q;
    sqlite3_stmt *q = NULL;
    if (l->n_kept == LITE_STATEMENTS) {
        err_set(err, ERR_INTERNAL, "", "the store has too many statements");
        return NULL;
    }
    int rc = sqlite3_prepare_v3(l->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &q, NULL);
    if (rc != SQLITE_OK) {
        sq_fail(err, l->db, rc, "prepare");
        return NULL;
    }
    l->kept[l->n_kept].sql = sql;
    l->kept[l->n_kept++].q = q;
    return q;
}

// A reader of a file that never changes, as far as that still holds. After an error it has no file.
static int lite_thaw(struct lite *l, struct err *err)
{
    char path[FROZEN_PATH_MAX];
    if (l->db && (!l->frozen.is || !frozen_no_more(&l->frozen)))
        return 0;
    snprintf(path, sizeof path, "%s", l->frozen.path);
    lite_close_file(l);
    if (lite_open_reader(l, path, err) == 0)
        return 0;
    lite_close_file(l);
    return -1;
}

static int lite_begin(void *db, bool write, struct err *err)
{
    struct lite *l = db;
    if (!write && lite_thaw(l, err) < 0)
        return -1;
    if (sq_exec(l->db, write ? "BEGIN IMMEDIATE" : "BEGIN", err) < 0)
        return -1;
    bool first = !l->seen;
    l->seen = true;
    return first;
}

static int lite_end(void *db, int result, struct err *err)
{
    struct lite *l = db;
    if (result == 0 && l->frozen.is && frozen_no_more(&l->frozen))
        result = err_set(err, ERR_UNAVAILABLE, "store",
                         "the store could be written to again while it was read: try again");
    if (result == 0 && sq_exec(l->db, "COMMIT", err) == 0) {
        if (!l->eased && l->lock >= 0)
            sqlite3_exec(l->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
        l->eased = true;
        return 0;
    }
    if (!sqlite3_get_autocommit(l->db))
        sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

static int lite_bind_text(sqlite3_stmt *q, int at, const char *text)
{
    CLEANUP_BUF struct buf repaired = BUF_INIT;
    const char *whole = pack_text(text, &repaired);
    return sqlite3_bind_text(q, at, whole, -1, whole == text ? SQLITE_STATIC : SQLITE_TRANSIENT);
}

static int lite_bind(sqlite3_stmt *q, const struct fleet_cell *in, int n)
{
    int rc = SQLITE_OK;
    for (int i = 0; i < n && rc == SQLITE_OK; i++)
        switch (in[i].type) {
        case CELL_NULL:
            rc = sqlite3_bind_null(q, i + 1);
            break;
        case CELL_INT:
            rc = sqlite3_bind_int64(q, i + 1, in[i].i);
            break;
        case CELL_REAL:
            rc = sqlite3_bind_double(q, i + 1, in[i].d);
            break;
        case CELL_TEXT:
            rc = lite_bind_text(q, i + 1, in[i].t);
            break;
        case CELL_BYTES:
            rc = sqlite3_bind_blob64(q, i + 1, in[i].t, (sqlite3_uint64)in[i].i, SQLITE_STATIC);
            break;
        }
    return rc;
}

static void lite_cells(sqlite3_stmt *q, struct fleet_cell *row)
{
    for (int i = 0; i < sqlite3_column_count(q) && i < FLEET_CELLS_MAX; i++)
        switch (sqlite3_column_type(q, i)) {
        case SQLITE_INTEGER:
            row[i] = CELL_I(sqlite3_column_int64(q, i));
            row[i].d = (double)row[i].i;
            break;
        case SQLITE_FLOAT:
            row[i] = (struct fleet_cell){CELL_REAL, 0, sqlite3_column_double(q, i), ""};
            break;
        case SQLITE_TEXT:
            row[i] = CELL_T(sq_text(q, i));
            break;
        case SQLITE_BLOB:
            row[i] = CELL_B(sqlite3_column_blob(q, i), sqlite3_column_bytes(q, i));
            break;
        default:
            row[i] = (struct fleet_cell){.t = ""};
        }
}

static int lite_query(void *db, const char *sql, const struct fleet_cell *in, int n,
                      int (*fn)(void *ctx, const struct fleet_cell *row, struct err *err),
                      void *ctx, struct err *err)
{
    struct lite *l = db;
    struct fleet_cell row[FLEET_CELLS_MAX];
    CLEANUP_RESET sqlite3_stmt *q = lite_statement(l, sql, err);
    if (!q)
        return -1;
    int rc = lite_bind(q, in, n), more;
    if (rc != SQLITE_OK)
        return sq_fail(err, l->db, rc, "bind");
    while ((more = sq_step(q, err)) > 0) {
        lite_cells(q, row);
        if (sq_row_whole(q, err) < 0 || (fn && fn(ctx, row, err) < 0))
            return -1;
    }
    return more;
}

static int lite_post(void *db, const char *sql, const struct fleet_cell *in, int n, struct err *err)
{
    return lite_query(db, sql, in, n, NULL, NULL, err);
}

// ---- Runs

static int lite_bind_array(struct lite *l, sqlite3_stmt *q, const struct fleet_row *r)
{
    if (r->n == 0)
        return SQLITE_OK; // both stay NULL
    int bytes = pack_widths(r->v, r->lo, r->hi, r->n, l->w);
    for (int i = 0; i < r->n; i++)
        pack_float(l->v + 4 * i, r->v[i]);
    int rc = sqlite3_bind_blob(q, 15, l->v, 4 * r->n, SQLITE_STATIC);
    return rc == SQLITE_OK ? sqlite3_bind_blob(q, 16, l->w, bytes, SQLITE_STATIC) : rc;
}

static int lite_put_row(struct lite *l, sqlite3_stmt *q, const struct fleet_row *r, struct err *err)
{
    if (sq_bind(q, err, "iiiiiiiziii", (int64_t)r->node, (int64_t)r->kind, r->at_ms, r->seq,
                (int64_t)r->feed, (int64_t)r->machine, r->received_ms, r->finished_ms, r->run,
                (int64_t)r->state, (int64_t)r->flags) < 0)
        return -1;
    int rc = r->disturbed < 0 ? SQLITE_OK : sqlite3_bind_int(q, 12, r->disturbed);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_double(q, 13, r->seconds); // NaN becomes NULL
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(q, 14, r->label, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = lite_bind_array(l, q, r);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(q, 17, r->arrival);
    return rc == SQLITE_OK ? sq_done(q, err) : sq_fail(err, l->db, rc, "bind");
}

static int lite_put_rows(void *db, const struct fleet_row *rows, int n, struct err *err)
{
    struct lite *l = db;
    CLEANUP_RESET sqlite3_stmt *q = lite_statement(l, sql_put, err);
    if (!q)
        return -1;
    for (int i = 0; i < n; i++)
        if (lite_put_row(l, q, &rows[i], err) < 0)
            return -1;
    return 0;
}

static int lite_move(void *db, const struct fleet_move *moves, int n, struct err *err)
{
    struct lite *l = db;
    CLEANUP_RESET sqlite3_stmt *q = lite_statement(l, sql_move, err);
    if (!q)
        return -1;
    for (int i = 0; i < n; i++) {
        const struct fleet_move *m = &moves[i];
        if (sq_bind(q, err, "iiiiitiii", (int64_t)m->node, (int64_t)m->twin, m->next, m->last_ms,
                    m->skew_ms, m->version, (int64_t)m->state, (int64_t)m->feed, m->was) < 0 ||
            sq_done(q, err) < 0)
            return -1;
        if (sqlite3_changes(l->db) != 1)
            return err_set(err, ERR_CONFLICT, "", "another process has moved feed %d", m->feed);
    }
    return 0;
}

// Values and intervals, unpacked.
static int lite_read_arrays(struct lite *l, sqlite3_stmt *q, bool values_only, struct fleet_row *r,
                            struct err *err)
{
    const unsigned char *v = sqlite3_column_blob(q, 14), *w = sqlite3_column_blob(q, 15);
    int bytes = sqlite3_column_bytes(q, 14), n = bytes / 4;
    float *lo = l->values + n, *hi = l->values + 2 * n;
    bool sound = bytes % 4 == 0 && n <= METRICS_MAX && (!n || (v && w));
    for (int i = 0; i < n && sound; i++)
        l->values[i] = unpack_float(v + 4 * i);
    if (!sound ||
        (!values_only && !unpack_widths(w, sqlite3_column_bytes(q, 15), l->values, n, lo, hi)))
        return err_set(err, ERR_DAMAGED, "", "run %" PRId64 " of feed %d has no proper values",
                       r->seq, r->feed);
    r->n = n;
    r->v = l->values;
    r->lo = values_only ? NULL : lo;
    r->hi = values_only ? NULL : hi;
    return 0;
}

static int lite_read_row(struct lite *l, sqlite3_stmt *q, bool values_only, struct fleet_row *r,
                         struct err *err)
{
    *r = (struct fleet_row){
        .node = sqlite3_column_int(q, 0),
        .kind = sqlite3_column_int(q, 1),
        .at_ms = sqlite3_column_int64(q, 2),
        .seq = sqlite3_column_int64(q, 3),
        .feed = sqlite3_column_int(q, 4),
        .machine = sqlite3_column_int(q, 5),
        .received_ms = sqlite3_column_int64(q, 6),
        .finished_ms = sqlite3_column_int64(q, 7),
        .run = sqlite3_column_int64(q, 8),
        .state = sqlite3_column_int(q, 9),
        .flags = sqlite3_column_int(q, 10),
        .disturbed = sqlite3_column_type(q, 11) == SQLITE_NULL ? -1 : sqlite3_column_int(q, 11),
        .seconds =
            sqlite3_column_type(q, 12) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(q, 12),
        .label = sq_text(q, 13),
        .arrival = sqlite3_column_int64(q, 16),
    };
    return sq_row_whole(q, err) < 0 ? -1 : lite_read_arrays(l, q, values_only, r, err);
}

static bool lite_is_in(const bool *set, int n, int number)
{
    return !set || (number >= 1 && number <= n && set[number - 1]);
}

static bool lite_is_wanted(const struct fleet_reading *r, int machine, int state, int flags)
{
    return lite_is_in(r->machine, r->n_machines, machine) &&
           !(r->own && (state != RUN_SUCCEEDED || flags & ROW_IMPORTED)) &&
           !(r->measured && flags & (ROW_IMPORTED | ROW_UNDATED));
}

static int lite_read_kind(struct lite *l, const struct fleet_reading *r, int node, int kind,
                          fleet_row_fn *fn, void *ctx, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = lite_statement(l, sql_read, err);
    struct fleet_row row;
    int more, taken = 0;
    if (!q)
        return -1;
    if (sq_bind(q, err, "iiiii", (int64_t)node, (int64_t)kind, r->since_ms, r->until_ms, r->seq) <
        0)
        return -1;
    while ((more = sq_step(q, err)) > 0) {
        if (!lite_is_wanted(r, sqlite3_column_int(q, 5), sqlite3_column_int(q, 9),
                            sqlite3_column_int(q, 10)))
            continue;
        if (lite_read_row(l, q, r->values_only, &row, err) < 0 || fn(ctx, &row, err) < 0)
            return -1;
        if (++taken == r->newest)
            return 0;
    }
    return more;
}

// From kind to kind by the index: a node has few of them, whatever its runs.
static int lite_read_node(struct lite *l, const struct fleet_reading *r, int node, fleet_row_fn *fn,
                          void *ctx, struct err *err)
{
    sqlite3_stmt *q = lite_statement(l, sql_next_kind, err);
    int64_t kind = 0;
    if (!q)
        return -1;
    for (;;) {
        int more = sq_bind(q, err, "ii", (int64_t)node, kind) < 0 ? -1 : sq_step(q, err);
        kind = more > 0 ? sqlite3_column_int64(q, 0) : 0;
        sq_reset(q);
        if (more <= 0)
            return more;
        if (lite_is_in(r->kind, r->n_kinds, (int)kind) &&
            lite_read_kind(l, r, node, (int)kind, fn, ctx, err) < 0)
            return -1;
    }
}

static int lite_read(void *db, const struct fleet_reading *r, fleet_row_fn *fn, void *ctx,
                     struct err *err)
{
    for (int node = r->first; node <= r->last; node++)
        if (lite_is_in(r->nodes, r->last, node) && lite_read_node(db, r, node, fn, ctx, err) < 0)
            return -1;
    return 0;
}

static int lite_arrivals(void *db, int64_t after, int64_t until, fleet_row_fn *fn, void *ctx,
                         struct err *err)
{
    struct lite *l = db;
    struct fleet_row row;
    int more;
    CLEANUP_RESET sqlite3_stmt *q = lite_statement(l, sql_arrivals, err);
    if (!q || sq_bind(q, err, "ii", after, until) < 0)
        return -1;
    while ((more = sq_step(q, err)) > 0) {
        if (lite_read_row(l, q, false, &row, err) < 0)
            return -1;
        row.history = sq_text(q, 17);
        if (fn(ctx, &row, err) < 0)
            return -1;
    }
    return more;
}

// ---- Upkeep

static int lite_oldest(void *db, int64_t from_ms, int n_nodes, int64_t *ms, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = lite_statement(db, sql_oldest, err);
    int more = q ? 0 : -1;
    for (int node = 1; node <= n_nodes && more >= 0; node++) {
        if (sq_bind(q, err, "ii", (int64_t)node, from_ms) < 0)
            return -1;
        while ((more = sq_step(q, err)) > 0)
            if (sqlite3_column_int64(q, 0) < *ms)
                *ms = sqlite3_column_int64(q, 0);
        sqlite3_reset(q);
    }
    return more;
}

static int lite_delete(struct lite *l, int first, int last, int64_t before_ms, int64_t *deleted,
                       struct err *err)
{
    const int64_t before = *deleted;
    CLEANUP_RESET sqlite3_stmt *q = lite_statement(l, sql_delete, err);
    if (!q)
        return -1;
    for (int node = first; node <= last; node++) {
        if (sq_bind(q, err, "ii", (int64_t)node, before_ms) < 0 || sq_done(q, err) < 0)
            return -1;
        *deleted += sqlite3_changes(l->db);
    }
    return *deleted == before ? 0 : lite_post(l, FLEET_SQL_DELETED, &CELL_I(before_ms), 1, err);
}

static int lite_retain(void *db, int64_t before_ms, int n_nodes, int64_t *deleted, struct err *err)
{
    struct lite *l = db;
    *deleted = 0;
    for (int first = 1; first <= n_nodes; first += LITE_NODES_AT_ONCE) {
        int last =
            first + LITE_NODES_AT_ONCE - 1 < n_nodes ? first + LITE_NODES_AT_ONCE - 1 : n_nodes;
        if (sq_exec(l->db, "BEGIN IMMEDIATE", err) < 0 ||
            lite_end(l, lite_delete(l, first, last, before_ms, deleted, err), err) < 0)
            return -1;
    }
    return sq_exec(l->db, "PRAGMA incremental_vacuum", err);
}

static int lite_bytes(void *db, int64_t *bytes, struct err *err)
{
    struct lite *l = db;
    int64_t pages, page;
    if (sq_number(l->db, "PRAGMA page_count", &pages, err) < 0 ||
        sq_number(l->db, "PRAGMA page_size", &page, err) < 0)
        return -1;
    *bytes = pages * page;
    return 0;
}

const struct fleet_engine fleet_sqlite = {
    .open = lite_open,
    .close = lite_close,
    .begin = lite_begin,
    .end = lite_end,
    .query = lite_query,
    .post = lite_post,
    .put_rows = lite_put_rows,
    .move = lite_move,
    .read = lite_read,
    .arrivals = lite_arrivals,
    .oldest = lite_oldest,
    .retain = lite_retain,
    .bytes = lite_bytes,
};

// SPDX-License-Identifier: Apache-2.0
// The engine on PostgreSQL. The writer holds an advisory lock for as long as its connection lives.
// A lost connection is made anew by the next transaction; whether the last commit was done then
// shows in the places of the feeds, which are read again.
#include "fleet/store/postgresql.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fleet/store/months.h"
#include "fleet/store/pack.h"
#include "fleet/store/pg.h"
#include "fleet/store/pg_read.h"
#include "fleet/store/writer.h"
#include "model/metric.h"
#include "schema/schema.h"

// Bytes of COPY's binary form: https://www.postgresql.org/docs/15/sql-copy.html
enum {
    PGX_BYTES = 256 << 10,
    PGX_FLOAT4 = 700, // type numbers: pg_type.dat
    PGX_ROW_MAX = 1024 + METRICS_MAX * 8 + PACK_WIDTHS_BYTES(METRICS_MAX),
    PGX_MONTHS = 12 * 1000,
    PGX_FIRST_YEAR = 1970 + PG_FIRST_MONTH / 12, // before it: run_older
    PGX_MONTHS_AHEAD = 2,
};
_Static_assert(PGX_ROW_MAX < PGX_BYTES, "a row fits");

struct pgx {
    struct pg *c;
    bool write, fresh;
    bool month[PGX_MONTHS]; // there is a partition; counted from January of PGX_FIRST_YEAR
    bool months_here;       // they were read
    unsigned char bytes[PGX_BYTES];
    size_t n;
};

// ---- Opening

static int pgx_version(struct pgx *p, int64_t *version, struct err *err)
{
    int64_t there = 0;
    *version = 0;
    if (pg_query(p->c, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('schema_version')",
                 NULL, 0, fleet_number, &there, NULL, err) < 0)
        return -1;
    return there ? pg_query(p->c, "SELECT version FROM schema_version", NULL, 0, fleet_number,
                            version, NULL, err)
                 : 0;
}

struct pgx_holder {
    char text[160];
};

static int pgx_holder_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct pgx_holder *holder = ctx;
    (void)err;
    snprintf(holder->text, sizeof holder->text, "process %s of PostgreSQL (%s) uses %s", row[0].t,
             row[1].t, row[2].t);
    return 0;
}

// Who uses a table of ours, since when a step of the upgrade waits in vain: whose table it waits
// for is not known any more. It is tried again.
static int pgx_explain_upgrade(struct pgx *p, struct err *err)
{
    static const char sql[] =
        "SELECT CAST(a.pid AS text), concat_ws(', ', nullif(a.application_name, ''), a.usename), "
        "'table ' || CAST(c.relname AS text) FROM pg_locks AS l JOIN pg_stat_activity AS a "
        "USING (pid) JOIN pg_class AS c ON c.oid = l.relation "
        "WHERE l.granted AND c.relkind IN ('r', 'p') "
        "AND a.datname = current_database() AND a.pid <> pg_backend_pid() "
        "AND c.relnamespace = CAST(current_schema() AS regnamespace) "
        "ORDER BY a.backend_start, c.relname LIMIT 1";
    struct pgx_holder holder = {"another process uses a table"};
    if (!err || err->code != ERR_CONFLICT)
        return -1;
    pg_query(p->c, sql, NULL, 0, pgx_holder_row, &holder, NULL, NULL);
    return err_set(err, ERR_TIMEOUT, "store", "the upgrade waits for a table: %s", holder.text);
}

// Whoever waits to change a table keeps all others from reading it: the wait is short.
static int pgx_step(struct pgx *p, const struct embedded *step, int64_t version, struct err *err)
{
    char set[100];
    snprintf(set, sizeof set, "UPDATE schema_version SET version = %" PRId64, version);
    if (pg_exec(p->c, "BEGIN; SET LOCAL lock_timeout = '2s'", err) < 0)
        return -1;
    if (pg_exec(p->c,
                "CREATE TABLE IF NOT EXISTS schema_version (version int NOT NULL);"
                "INSERT INTO schema_version SELECT 0 WHERE NOT EXISTS "
                "(SELECT 1 FROM schema_version)",
                err) == 0 &&
        pg_exec(p->c, step->data, err) == 0 && pg_exec(p->c, set, err) == 0 &&
        pg_exec(p->c, "COMMIT", err) == 0)
        return 0;
    pg_exec(p->c, "ROLLBACK", NULL);
    return err && err->code == ERR_CONFLICT ? pgx_explain_upgrade(p, err)
                                            : err_prefix(err, "migration %s", step->name);
}

// As migrate_check_tables(): programs that were never released made less under the same number.
static int pgx_check_tables(struct pgx *p, int64_t version, struct err *err)
{
    int64_t there = 1;
    if (version > 0 &&
        pg_query(p->c, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('note')", NULL, 0,
                 fleet_number, &there, NULL, err) < 0)
        return -1;
    return there ? 0
                 : err_set(err, ERR_STORAGE, "store",
                           "the database was written by a numaprobe from before the first release "
                           "(schema %" PRId64 " without the table \"note\"); it is left alone: "
                           "run that version, or give another store",
                           version);
}

static int pgx_migrate(struct pgx *p, struct err *err)
{
    int64_t version, known = embedded_count(schema_fleet_pg);
    if (pgx_version(p, &version, err) < 0 ||
        (version <= known && pgx_check_tables(p, version, err) < 0))
        return -1;
    if (version > known || (!p->write && version != known))
        return err_set(err, ERR_STORAGE, "store",
                       "the database has schema %" PRId64 ", this program knows %" PRId64 "%s",
                       version, known,
                       version > known ? "; it is left alone: run the newer numaprobe"
                                       : "; the process that writes migrates it: if it is of an "
                                         "older numaprobe, update that one");
    for (; version < known; version++)
        if (pgx_step(p, &schema_fleet_pg[version], version + 1, err) < 0)
            return -1;
    return 0;
}

// A process that was killed keeps the lock until the server has seen that: the wait is for that.
static int pgx_lock(struct pgx *p, struct err *err)
{
    if (pg_exec(p->c,
                "SET lock_timeout = '2s'; SELECT pg_advisory_lock(8102099357864587365); "
                "SET lock_timeout = 0",
                err) == 0)
        return 0;
    if (!err || err->code != ERR_CONFLICT)
        return -1;
    int64_t version = 0;
    char writer[FLEET_WRITER_ROOM] = "";
    if (pgx_version(p, &version, NULL) == 0)
        fleet_writer_text(version, embedded_count(schema_fleet_pg), writer);
    return err_set(err, ERR_CONFLICT, "store", "another process writes to the database%s", writer);
}

// What each connection needs, whatever the server, the database or the role sets. Times end long
// statements and idle connections of others; with the writer's connection its lock would go.
// Statements are short: to start workers for them takes longer than they.
static const char pgx_settings[] =
    "SET timezone = 'UTC'; SET DateStyle = 'ISO'; SET bytea_output = 'hex'; "
    "SET extra_float_digits = 1; SET standard_conforming_strings = on; "
    "SET default_transaction_isolation = 'read committed'; SET statement_timeout = 0; "
    "SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0; "
    "SET work_mem = '64MB'; SET max_parallel_workers_per_gather = 0";

static int pgx_session(struct pgx *p, struct err *err)
{
    p->fresh = true;
    p->months_here = false;
    if (pg_exec(p->c, pgx_settings, err) < 0)
        return -1;
    return p->write && pgx_lock(p, err) < 0 ? -1 : pgx_migrate(p, err);
}

static void pgx_close(void *db)
{
    struct pgx *p = db;
    if (p)
        pg_close(p->c);
    free(p);
}

static void *pgx_open(const char *where, enum fleet_store_use use, struct err *err)
{
    struct pgx *p = calloc(1, sizeof *p);
    if (!p) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the store");
        return NULL;
    }
    p->write = use == FLEET_STORE_WRITE;
    p->c = pg_open(where, err);
    if (p->c && pgx_session(p, err) == 0)
        return p;
    pgx_close(p);
    return NULL;
}

// ---- Transactions

// A connection without the lock, or to tables that are not ours, must not look usable to the next
// transaction.
static int pgx_reconnect(struct pgx *p, struct err *err)
{
    if (pg_reopen(p->c, err) == 0 && pgx_session(p, err) == 0)
        return 0;
    pg_give_up(p->c);
    return -1;
}

// That the server is gone is only seen by sending: BEGIN may be sent again.
static int pgx_begin(void *db, bool write, struct err *err)
{
    struct pgx *p = db;
    const char *sql = write ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
    if (!pg_alive(p->c) && pgx_reconnect(p, err) < 0)
        return -1;
    if (pg_exec(p->c, sql, err) < 0 &&
        (pg_alive(p->c) || pgx_reconnect(p, err) < 0 || pg_exec(p->c, sql, err) < 0))
        return -1;
    bool fresh = p->fresh;
    p->fresh = false;
    return fresh;
}

static int pgx_end(void *db, int result, struct err *err)
{
    struct pgx *p = db;
    if (result == 0 && pg_exec(p->c, "COMMIT", err) == 0)
        return 0;
    p->months_here = false;
    pg_settle(p->c, NULL);
    pg_exec(p->c, "ROLLBACK", NULL);
    return -1;
}

static int pgx_post(void *db, const char *sql, const struct fleet_cell *in, int n, struct err *err)
{
    struct pgx *p = db;
    return pg_post(p->c, sql, in, n, err);
}

static int pgx_query(void *db, const char *sql, const struct fleet_cell *in, int n,
                     int (*fn)(void *ctx, const struct fleet_cell *row, struct err *err), void *ctx,
                     struct err *err)
{
    struct pgx *p = db;
    return pg_query(p->c, sql, in, n, fn, ctx, NULL, err);
}

// ---- Partitions

static int pgx_month_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct pgx *p = ctx;
    int year, month;
    (void)err;
    if (sscanf(row[0].t, "run_%4d_%2d", &year, &month) == 2) {
        int at = (year - PGX_FIRST_YEAR) * 12 + month - 1;
        if (at >= 0 && at < PGX_MONTHS)
            p->month[at] = true;
    }
    return 0;
}

static int pgx_months_read(struct pgx *p, struct err *err)
{
    memset(p->month, 0, sizeof p->month);
    if (pg_query(p->c,
                 "SELECT c.relname::text FROM pg_inherits AS i JOIN pg_class AS c "
                 "ON c.oid = i.inhrelid WHERE i.inhparent = 'run'::regclass",
                 NULL, 0, pgx_month_row, p, NULL, err) < 0)
        return -1;
    p->months_here = true;
    return 0;
}

// Made beside `run` and then attached, so that readers of `run` need not wait.
static int pgx_month_make(struct pgx *p, int month, struct err *err)
{
    char sql[500];
    int year = PGX_FIRST_YEAR + month / 12, next = PGX_FIRST_YEAR + (month + 1) / 12;
    if (month < 0 || month >= PGX_MONTHS || p->month[month])
        return 0;
    snprintf(sql, sizeof sql,
             "CREATE TABLE run_%04d_%02d (LIKE run INCLUDING DEFAULTS INCLUDING CONSTRAINTS); "
             "ALTER TABLE run ATTACH PARTITION run_%04d_%02d FOR VALUES "
             "FROM ('%04d-%02d-01T00:00:00Z') TO ('%04d-%02d-01T00:00:00Z')",
             year, month % 12 + 1, year, month % 12 + 1, year, month % 12 + 1, next,
             (month + 1) % 12 + 1);
    if (pg_exec(p->c, sql, err) < 0)
        return -1;
    p->month[month] = true;
    return 0;
}

static int pgx_months_make(struct pgx *p, const struct fleet_row *rows, int n, struct err *err)
{
    if (!p->months_here && pgx_months_read(p, err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        int month = month_of(rows[i].at_ms) - PG_FIRST_MONTH;
        bool ahead = month == month_of(rows[i].received_ms) - PG_FIRST_MONTH;
        if (month >= 0 && month < PGX_MONTHS && p->month[month])
            continue;
        for (int k = 0; k <= (ahead ? PGX_MONTHS_AHEAD : 0); k++)
            if (pgx_month_make(p, month + k, err) < 0)
                return -1;
    }
    return 0;
}

// ---- Rows in

static void put_i2(struct pgx *p, int v)
{
    pack_u16(p->bytes + p->n, (uint16_t)v);
    p->n += 2;
}

static void put_i4(struct pgx *p, int v)
{
    pack_u32(p->bytes + p->n, (uint32_t)v);
    p->n += 4;
}

static void put_i8(struct pgx *p, int64_t v)
{
    pack_u64(p->bytes + p->n, (uint64_t)v);
    p->n += 8;
}

// Fields: their length, and the bytes; -1: NULL.
static void field_i2(struct pgx *p, int v)
{
    put_i4(p, 2);
    put_i2(p, v);
}

static void field_i4(struct pgx *p, int v)
{
    put_i4(p, 4);
    put_i4(p, v);
}

static void field_i8(struct pgx *p, int64_t v)
{
    put_i4(p, 8);
    put_i8(p, v);
}

static void field_time(struct pgx *p, int64_t ms)
{
    field_i8(p, (ms - pg_epoch_ms) * 1000);
}

static void field_double(struct pgx *p, double d)
{
    int64_t bits;
    memcpy(&bits, &d, sizeof bits);
    if (isnan(d))
        put_i4(p, -1);
    else
        field_i8(p, bits);
}

static void field_text(struct pgx *p, const char *text)
{
    size_t n = strlen(text);
    put_i4(p, (int)n);
    memcpy(p->bytes + p->n, text, n);
    p->n += n;
}

// real[] and bytea. An array costs both sides a call per element.
static void field_values(struct pgx *p, const struct fleet_row *r)
{
    if (r->n == 0) {
        put_i4(p, -1);
        put_i4(p, -1);
        return;
    }
    put_i4(p, PG_ARRAY_HEAD + r->n * 8);
    put_i4(p, 1); // dimension
    put_i4(p, 0); // no NULL
    put_i4(p, PGX_FLOAT4);
    put_i4(p, r->n);
    put_i4(p, 1); // the first index
    for (int i = 0; i < r->n; i++) {
        put_i4(p, 4);
        pack_float(p->bytes + p->n, r->v[i]);
        p->n += 4;
    }
    int bytes = pack_widths(r->v, r->lo, r->hi, r->n, p->bytes + p->n + 4);
    put_i4(p, bytes);
    p->n += bytes;
}

static int copy_open(struct pgx *p, const char *sql, struct err *err)
{
    static const unsigned char head[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";
    if (pg_copy_begin(p->c, sql, err) < 0)
        return -1;
    memcpy(p->bytes, head, sizeof head);
    p->n = sizeof head;
    return 0;
}

static int copy_flush(struct pgx *p, size_t room, struct err *err)
{
    if (p->n + room <= sizeof p->bytes)
        return 0;
    size_t n = p->n;
    p->n = 0;
    return pg_copy_bytes(p->c, p->bytes, n, err);
}

static int copy_close(struct pgx *p, struct err *err)
{
    put_i2(p, -1);
    return copy_flush(p, sizeof p->bytes, err) < 0 ? -1 : pg_copy_end(p->c, err);
}

static void copy_row(struct pgx *p, const struct fleet_row *r)
{
    put_i2(p, PG_RUN_COLUMNS);
    field_i4(p, r->node);
    field_i4(p, r->kind);
    field_time(p, r->at_ms);
    field_i8(p, r->seq);
    field_i4(p, r->feed);
    field_i8(p, r->run);
    field_i4(p, r->machine);
    field_i2(p, r->state);
    field_i2(p, r->flags);
    if (r->disturbed < 0)
        put_i4(p, -1);
    else
        field_i2(p, r->disturbed);
    field_time(p, r->received_ms);
    if (r->finished_ms)
        field_time(p, r->finished_ms);
    else
        put_i4(p, -1);
    field_double(p, r->seconds);
    field_i8(p, r->arrival);
    field_text(p, r->label);
    field_values(p, r);
}

static int pgx_put_rows(void *db, const struct fleet_row *rows, int n, struct err *err)
{
    struct pgx *p = db;
    if (pgx_months_make(p, rows, n, err) < 0 ||
        copy_open(p, "COPY run (" PG_RUN_ALL ") FROM STDIN (FORMAT binary)", err) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        if (copy_flush(p, PGX_ROW_MAX, err) < 0)
            return -1;
        copy_row(p, &rows[i]);
    }
    return copy_close(p, err);
}

// "{1,2,3}" of a member of all moves.
static void moves_numbers(struct buf *out, const struct fleet_move *moves, int n, size_t offset,
                          size_t bytes)
{
    for (int i = 0; i < n; i++) {
        const char *at = (const char *)&moves[i] + offset;
        int64_t v = bytes == sizeof(int) ? *(const int *)at : *(const int64_t *)at;
        buf_fmt(out, "%c%" PRId64, i ? ',' : '{', v);
    }
    buf_char(out, '}');
}

static void moves_versions(struct buf *out, const struct fleet_move *moves, int n)
{
    for (int i = 0; i < n; i++) {
        buf_str(out, i ? ",\"" : "{\"");
        for (const char *c = moves[i].version; *c; c++) {
            if (*c == '"' || *c == '\\')
                buf_char(out, '\\');
            buf_char(out, *c);
        }
        buf_char(out, '"');
    }
    buf_char(out, '}');
}

// One statement for all: a temporary table would cost several milliseconds per transaction.
static int pgx_move(void *db, const struct fleet_move *moves, int n, struct err *err)
{
    static const char sql[] =
        "UPDATE feed SET node = moved.node, twin = moved.twin, state = moved.state, "
        "next = moved.next, last_ms = moved.last_ms, skew_ms = moved.skew_ms, "
        "version = moved.version FROM unnest($1::int[], $2::int[], $3::int[], $4::int[], "
        "$5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[]) "
        "AS moved (feed, node, twin, state, was, next, last_ms, skew_ms, version) "
        "WHERE feed.id = moved.feed AND feed.next = moved.was";
#define MEMBER(m)                                                                                  \
    {                                                                                              \
        offsetof(struct fleet_move, m), sizeof moves->m                                            \
    }
    static const struct {
        size_t offset, bytes;
    } members[] = {MEMBER(feed), MEMBER(node), MEMBER(twin),    MEMBER(state),
                   MEMBER(was),  MEMBER(next), MEMBER(last_ms), MEMBER(skew_ms)};
#undef MEMBER
    struct pgx *p = db;
    struct buf lists[COUNT_OF(members) + 1] = {0};
    struct fleet_cell in[COUNT_OF(lists)];
    int64_t moved = 0;
    for (size_t i = 0; i < COUNT_OF(members); i++)
        moves_numbers(&lists[i], moves, n, members[i].offset, members[i].bytes);
    moves_versions(&lists[COUNT_OF(members)], moves, n);
    bool whole = true;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        whole = whole && buf_ok(&lists[i]);
        in[i] = CELL_T(buf_text(&lists[i]));
    }
    int result = whole ? pg_query(p->c, sql, in, COUNT_OF(in), NULL, NULL, &moved, err)
                       : err_set(err, ERR_NO_MEMORY, "", "no memory to store places");
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        buf_free(&lists[i]);
    if (result < 0)
        return -1;
    return moved == n ? 0
                      : err_set(err, ERR_CONFLICT, "", "another process has moved %lld of %d feeds",
                                (long long)(n - moved), n);
}

static int pgx_arrivals(void *db, int64_t after, int64_t until, fleet_row_fn *fn, void *ctx,
                        struct err *err)
{
    struct pgx *p = db;
    return pg_read_arrivals(p->c, after, until, fn, ctx, err);
}

// ---- Upkeep

struct pgx_name {
    char text[24];
};

static struct pgx_name pgx_month_name(int month)
{
    struct pgx_name name;
    snprintf(name.text, sizeof name.text, "run_%04d_%02d", PGX_FIRST_YEAR + month / 12,
             month % 12 + 1);
    return name;
}

static int pgx_oldest_older(struct pgx *p, int64_t from_ms, int64_t *ms, struct err *err)
{
    CLEANUP_BUF struct buf sql = BUF_INIT;
    buf_str(&sql, "SELECT CAST(floor(extract(epoch FROM min(measured))) AS bigint) * 1000 "
                  "FROM run_older WHERE true");
    pg_sql_time(&sql, ">=", from_ms);
    buf_str(&sql, " HAVING count(*) > 0");
    return pg_query(p->c, buf_text(&sql), NULL, 0, fleet_number, ms, NULL, err);
}

static int pgx_oldest(void *db, int64_t from_ms, int n_nodes, int64_t *ms, struct err *err)
{
    struct pgx *p = db;
    const int64_t none = *ms;
    int first = month_of(from_ms) - PG_FIRST_MONTH;
    (void)n_nodes;
    if (first < 0 && pgx_oldest_older(p, from_ms, ms, err) < 0)
        return -1;
    if (pgx_months_read(p, err) < 0)
        return -1;
    for (int month = first < 0 ? 0 : first; *ms == none && month < PGX_MONTHS; month++) {
        char sql[100];
        int64_t there = 0;
        if (!p->month[month])
            continue;
        snprintf(sql, sizeof sql, "SELECT count(*) FROM (SELECT 1 FROM %s LIMIT 1) AS r",
                 pgx_month_name(month).text);
        if (pg_query(p->c, sql, NULL, 0, fleet_number, &there, NULL, err) < 0)
            return -1;
        if (there)
            *ms = month_begin_ms(PG_FIRST_MONTH + month);
    }
    return 0;
}

// Whoever waits to drop a month keeps all others from reading: a copy of the database may take an
// hour.
static int pgx_drop(struct pgx *p, int month, int64_t *deleted, struct err *err)
{
    const struct pgx_name name = pgx_month_name(month);
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", name.text);
    if (pg_query(p->c, sql, NULL, 0, fleet_number, deleted, NULL, err) < 0)
        return -1;
    snprintf(sql, sizeof sql, "SET LOCAL lock_timeout = '500ms'; DROP TABLE %s", name.text);
    return pg_exec(p->c, sql, err);
}

static int pgx_delete_older(struct pgx *p, int64_t before_ms, int64_t *deleted, struct err *err)
{
    CLEANUP_BUF struct buf sql = BUF_INIT;
    buf_str(&sql, "DELETE FROM run_older WHERE true");
    pg_sql_time(&sql, "<", before_ms);
    return pg_query(p->c, buf_text(&sql), NULL, 0, NULL, NULL, deleted, err);
}

static int pgx_read(void *db, const struct fleet_reading *r, fleet_row_fn *fn, void *ctx,
                    struct err *err)
{
    struct pgx *p = db;
    return pg_read_runs(p->c, r, fn, ctx, err);
}

// month -1: what is older than all months.
static int pgx_retain_part(struct pgx *p, int month, int64_t before_ms, int64_t *deleted,
                           struct err *err)
{
    if ((month < 0 ? pgx_delete_older(p, before_ms, deleted, err)
                   : pgx_drop(p, month, deleted, err)) < 0)
        return -1;
    return *deleted
               ? pg_query(p->c, FLEET_SQL_DELETED, &CELL_I(before_ms), 1, NULL, NULL, NULL, err)
               : 0;
}

// Who holds the lock that a deletion waited for in vain. A month can be dropped only while no one
// reads `run` either. Returns -1.
static int pgx_explain_lock(struct pgx *p, int month, struct err *err)
{
    struct pgx_holder holder = {"another process uses it"};
    const struct pgx_name name = month < 0 ? (struct pgx_name){"run_older"} : pgx_month_name(month);
    char sql[500];
    if (!err || err->code != ERR_CONFLICT)
        return -1;
    snprintf(sql, sizeof sql,
             "SELECT CAST(a.pid AS text), concat_ws(', ', nullif(a.application_name, ''), "
             "a.usename), 'it' FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) WHERE "
             "l.granted "
             "AND a.datname = current_database() AND a.pid <> pg_backend_pid() AND l.relation IN "
             "(to_regclass('run'), to_regclass('%s')) ORDER BY a.backend_start LIMIT 1",
             name.text);
    pg_query(p->c, sql, NULL, 0, pgx_holder_row, &holder, NULL, NULL);
    return err_set(err, ERR_CONFLICT, "", "table %s cannot be deleted: %s", name.text, holder.text);
}

static int pgx_retain(void *db, int64_t before_ms, int n_nodes, int64_t *deleted, struct err *err)
{
    struct pgx *p = db;
    int end = month_of(before_ms) - PG_FIRST_MONTH;
    (void)n_nodes;
    *deleted = 0;
    if (before_ms <= 0)
        return 0;
    if (pgx_months_read(p, err) < 0)
        return -1;
    for (int month = -1; month < 0 || (month < end && month < PGX_MONTHS); month++) {
        int64_t n = 0;
        if (month >= 0 && !p->month[month])
            continue;
        if (pg_exec(p->c, "BEGIN", err) < 0)
            return -1;
        if (pgx_end(p, pgx_retain_part(p, month, before_ms, &n, err), err) < 0)
            return pgx_explain_lock(p, month, err);
        *deleted += n;
    }
    p->months_here = false;
    return 0;
}

static int pgx_bytes(void *db, int64_t *bytes, struct err *err)
{
    struct pgx *p = db;
    return pg_query(p->c, "SELECT pg_database_size(current_database())", NULL, 0, fleet_number,
                    bytes, NULL, err);
}

const struct fleet_engine fleet_postgresql = {
    .uri = true,
    .check = pg_check_uri,
    .open = pgx_open,
    .close = pgx_close,
    .begin = pgx_begin,
    .end = pgx_end,
    .query = pgx_query,
    .post = pgx_post,
    .put_rows = pgx_put_rows,
    .move = pgx_move,
    .read = pgx_read,
    .arrivals = pgx_arrivals,
    .oldest = pgx_oldest,
    .retain = pgx_retain,
    .bytes = pgx_bytes,
};

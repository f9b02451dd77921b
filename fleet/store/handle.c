// SPDX-License-Identifier: Apache-2.0
// Opens an engine by the form of `where`, and keeps the book (fleet/store/book.h) in step with the
// database: what a failed transaction had added to it is forgotten with all else.
#include "fleet/store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "fleet/store/parts.h"
#include "fleet/store/postgresql.h"
#include "fleet/store/sqlite.h"

static const struct fleet_engine *const engines[] = {
#if FLEET_POSTGRESQL
    &fleet_postgresql,
#endif
    &fleet_sqlite,
};

bool fleet_store_is_postgresql(const char *where)
{
    return str_starts(where, "postgresql://") || str_starts(where, "postgres://");
}

static const struct fleet_engine *engine_of(const char *where, struct err *err)
{
    for (size_t i = 0; i < COUNT_OF(engines); i++)
        if (engines[i]->uri ? fleet_store_is_postgresql(where) : !strstr(where, "://"))
            return engines[i];
    err_set(err, ERR_INVALID, "store",
            "must be a path, or postgresql://… if this program was built with PostgreSQL");
    return NULL;
}

int fleet_store_check(const char *where, struct err *err)
{
    const struct fleet_engine *e = engine_of(where, err);
    return e && (!e->check || e->check(where, err) == 0) ? 0 : -1;
}

static int found_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    (void)row;
    (void)err;
    *(bool *)ctx = true;
    return 0;
}

static int store_check_whole(struct fleet_store *s, struct err *err)
{
    bool moving = false;
    if (s->engine->query(s->db, "SELECT value FROM meta WHERE name = 'moving'", NULL, 0, found_row,
                         &moving, err) < 0)
        return -1;
    return moving ? err_set(err, ERR_STORAGE, "store",
                            "the move into this database is not finished: repeat --move-to")
                  : 0;
}

struct fleet_store *fleet_store_open(const char *where, enum fleet_store_use use, struct err *err)
{
    struct fleet_store *s = fleet_open_any(where, use, err);
    if (!s || store_check_whole(s, err) == 0)
        return s;
    fleet_store_close(s);
    return NULL;
}

struct fleet_store *fleet_open_any(const char *where, enum fleet_store_use use, struct err *err)
{
    const struct fleet_engine *e = engine_of(where, err);
    struct fleet_store *s = e ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        if (e)
            err_set(err, ERR_NO_MEMORY, "", "no memory for the store");
        return NULL;
    }
    s->engine = e;
    s->use = use;
    s->db = e->open(where, use, err);
    if (s->db)
        return s;
    fleet_store_close(s);
    return NULL;
}

void fleet_store_close(struct fleet_store *s)
{
    if (!s)
        return;
    s->engine->close(s->db);
    book_fini(&s->book);
    owners_fini(&s->owners);
    buf_free(&s->json);
    free(s);
}

// A writer that begins on a database whose newest transactions may have been lost leaves numbers
// out: those of runs that are lost may be known to others, and would be given to other runs.
static int skip_arrivals(struct fleet_store *s, struct err *err)
{
    static const char *const steps[] = {
        "UPDATE skipped SET high = high + 262144 "
        "WHERE high = (SELECT value FROM meta WHERE name = 'arrived')",
        "INSERT INTO skipped (low, high) SELECT value, value + 262144 FROM meta "
        "WHERE name = 'arrived' "
        "AND NOT EXISTS (SELECT 1 FROM skipped WHERE skipped.high = meta.value + 262144)",
        "UPDATE meta SET value = value + 262144 WHERE name = 'arrived'"};
    int result = 0;
    for (size_t i = 0; i < COUNT_OF(steps) && result == 0; i++)
        result = fleet_exec(s, steps[i], NULL, 0, err);
    return s->engine->end(s->db, result, err);
}

static int begin_writing(struct fleet_store *s, struct err *err)
{
    int moved = s->engine->begin(s->db, true, err), ever = moved;
    while (moved > 0 && (moved = skip_arrivals(s, err)) == 0)
        moved = s->engine->begin(s->db, true, err);
    return moved < 0 ? -1 : ever;
}

int fleet_begin(struct fleet_store *s, struct err *err)
{
    bool write = s->use == FLEET_STORE_WRITE;
    int moved = write ? begin_writing(s, err) : s->engine->begin(s->db, false, err);
    if (moved < 0)
        return -1;
    if (moved || !s->book.here)
        book_fini(&s->book);
    s->n_rows = 0;
    s->n_put = 0;
    s->n_arrived = 0;
    s->changed = false;
    return (!write || !s->book.here) && book_read(&s->book, s->engine, s->db, write, err) < 0
               ? fleet_end(s, -1, err)
               : 0;
}

int fleet_end(struct fleet_store *s, int result, struct err *err)
{
    const struct fleet_cell counts[] = {CELL_I(s->n_put), CELL_I(s->n_arrived)};
    if (result == 0 && s->use == FLEET_STORE_WRITE && (s->changed || s->n_put))
        result = fleet_exec(s,
                            "UPDATE meta SET value = value + CASE name WHEN 'runs' "
                            "THEN CAST($1 AS bigint) WHEN 'arrived' THEN CAST($2 AS bigint) "
                            "ELSE 1 END WHERE name IN ('version', 'runs', 'arrived')",
                            counts, COUNT_OF(counts), err);
    if (s->engine->end(s->db, result, err) == 0)
        return 0;
    book_fini(&s->book);
    return -1;
}

int fleet_exec(struct fleet_store *s, const char *sql, const struct fleet_cell *in, int n,
               struct err *err)
{
    return s->engine->post(s->db, sql, in, n, err);
}

int fleet_meta(struct fleet_store *s, const char *name, int64_t *out, struct err *err)
{
    return s->engine->query(s->db, "SELECT value FROM meta WHERE name = $1", &CELL_T(name), 1,
                            fleet_number, out, err);
}

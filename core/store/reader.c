// SPDX-License-Identifier: Apache-2.0
// The connection is read-only, never checkpoints, and sees one state of the database between begin
// and end. The worker process uses it.
#include "core/store/reader.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/store/db.h"

static int open_reader(struct store *s, struct err *err)
{
    if (sq_open(&s->db, s->path, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, err) < 0)
        return -1;
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return sq_exec(s->db, "PRAGMA query_only=ON", err) < 0 ||
                   sq_exec(s->db, "PRAGMA trusted_schema=OFF", err) < 0
               ? -1
               : statements_prepare(s->db, s->queries, err);
}

struct store *store_reader_open(const char *path, struct err *err)
{
    struct store *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the store");
        return NULL;
    }
    s->reader = true;
    s->lock = s->dir_lock = -1;
    snprintf(s->path, sizeof s->path, "%s", path);
    if (open_reader(s, err) == 0)
        return s;
    store_close(s);
    return NULL;
}

int store_reader_begin(struct store *s, int64_t version, struct err *err)
{
    s->reader_version = version;
    return sq_exec(s->db, "BEGIN", err);
}

void store_reader_end(struct store *s)
{
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

void store_reader_saw_damage(struct store *s)
{
    if (s->on_damage)
        s->on_damage(s->damage_ctx);
}

int64_t store_openings(const struct store *s)
{
    return s->openings;
}

// SPDX-License-Identifier: Apache-2.0
// Foreign keys are off in such a transaction, because the rows have no run. It need not reach the
// disk by itself: the transaction that makes the run visible syncs the log.
#include "core/store/loose.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/store/db.h"
#include "core/store/transaction.h"

// Cells and ranks are written before their run, and stay when it goes: without foreign keys. What
// no run has need not be on disk when a piece is committed: the last transaction syncs the log.
int store_loose_begin(struct store *s, struct err *err)
{
    if (sq_exec(s->db, "PRAGMA foreign_keys=OFF", err) < 0 ||
        sq_exec(s->db, "PRAGMA synchronous=NORMAL", err) < 0)
        return -1;
    return store_begin(s, err);
}

int store_loose_end(struct store *s, int result, struct err *err)
{
    int rc = store_end(s, result, err);
    struct err why;
    if (sq_exec(s->db, "PRAGMA synchronous=FULL", &why) == 0 &&
        sq_exec(s->db, "PRAGMA foreign_keys=ON", &why) == 0)
        return rc;
    if (rc == 0 && err)
        *err = why;
    return -1;
}

int store_leftover_put(struct store *s, int64_t id, struct err *err)
{
    char sql[120];
    snprintf(sql, sizeof sql,
             "INSERT OR REPLACE INTO counter (name,value) VALUES ('leftover:%" PRId64 "',%" PRId64
             ")",
             id, id);
    return sq_exec(s->db, sql, err);
}

int store_leftover_drop(struct store *s, int64_t id, struct err *err)
{
    char sql[80];
    snprintf(sql, sizeof sql, "DELETE FROM counter WHERE name = 'leftover:%" PRId64 "'", id);
    return sq_exec(s->db, sql, err);
}

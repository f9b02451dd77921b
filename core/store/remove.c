// SPDX-License-Identifier: Apache-2.0
// A small run goes in one transaction. Of a large one the row goes first, with a mark for its
// cells; they follow in pieces, a row of a matrix at a time.
#include "core/store/remove.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "core/store/baselines.h"
#include "core/store/db.h"
#include "core/store/loose.h"
#include "core/store/runs.h"
#include "core/store/size.h"
#include "core/store/stage.h"
#include "core/store/transaction.h"

int store_run_remove(struct store *s, int64_t id, struct err *err)
{
    sqlite3_stmt *cells = s->queries[Q_DELETE_CELLS], *run = s->queries[Q_DELETE];
    if (sq_bind(cells, err, "i", id) < 0 || sq_done(cells, err) < 0)
        return -1;
    return sq_bind(run, err, "i", id) < 0 ? -1 : sq_done(run, err);
}

int store_run_unlink(struct store *s, int64_t id, struct err *err)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "DELETE FROM matrix WHERE run_id = %" PRId64
             "; DELETE FROM log WHERE run_id = %" PRId64 "; DELETE FROM run WHERE id = %" PRId64,
             id, id, id);
    if (sq_exec(s->db, "PRAGMA foreign_keys=OFF", err) < 0)
        return -1;
    int rc = store_begin(s, err);
    if (rc == 0) {
        rc = store_leftover_put(s, id, err) < 0 || sq_exec(s->db, sql, err) < 0 ? -1 : 0;
        rc = store_end(s, rc, err);
    }
    return sq_exec(s->db, "PRAGMA foreign_keys=ON", rc < 0 ? NULL : err) < 0 ? -1 : rc;
}

int store_run_delete(struct store *s, int64_t id, struct err *err)
{
    int state = store_run_state(s, id, err);
    if (state < 0)
        return -1;
    if (!run_state_final((enum run_state)state))
        return err_set(err, ERR_CONFLICT, "", "run %" PRId64 " is %s; cancel it first", id,
                       run_state_names[state]);
    struct run_size size = {0};
    if (store_baseline_free_of(s, id, err) < 0 || store_run_size(s, id, &size, err) < 0)
        return -1;
    if (size.cells > STORE_STAGE_CELLS)
        return store_run_unlink(s, id, err);
    if (store_begin(s, err) < 0)
        return -1;
    int rc = store_run_remove(s, id, err);
    if (store_end(s, rc, err) < 0)
        return -1;
    sqlite3_exec(s->db, "PRAGMA incremental_vacuum(64)", NULL, NULL, NULL); // the file shrinks
    return 0;
}

// Cells of the next row of a matrix; 0: there are none.
static int remove_row(struct store *s, int64_t id, struct err *err)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "DELETE FROM cell WHERE run_id = %" PRId64 " AND (matrix,row) = (SELECT matrix,row "
             "FROM cell WHERE run_id = %" PRId64 " ORDER BY matrix,row LIMIT 1)",
             id, id);
    return sq_exec(s->db, sql, err) < 0 ? -1 : sqlite3_changes(s->db);
}

static int remove_rest(struct store *s, int64_t id, struct err *err)
{
    char sql[80];
    snprintf(sql, sizeof sql, "DELETE FROM rank WHERE run_id = %" PRId64, id);
    return sq_exec(s->db, sql, err) < 0 ? -1 : store_leftover_drop(s, id, err);
}

static int remove_some(struct store *s, int64_t id, int64_t budget_ms, struct err *err)
{
    const int64_t end = clock_mono_ms() + budget_ms;
    int removed;
    do
        removed = remove_row(s, id, err);
    while (removed > 0 && clock_mono_ms() < end);
    return removed ? removed : remove_rest(s, id, err);
}

int store_leftover_step(struct store *s, int64_t budget_ms, struct err *err)
{
    int64_t id = 0;
    if (s->staging ||
        sq_number(s->db,
                  "SELECT coalesce((SELECT value FROM counter WHERE name >= 'leftover:' "
                  "AND name < 'leftover;' LIMIT 1), 0)",
                  &id, err) < 0)
        return s->staging ? 0 : -1;
    if (!id)
        return 0;
    if (store_loose_begin(s, err) < 0)
        return store_loose_end(s, -1, NULL);
    int rc = remove_some(s, id, budget_ms, err);
    return store_loose_end(s, rc < 0 ? -1 : 0, err) < 0 ? -1 : 1;
}

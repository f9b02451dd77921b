// SPDX-License-Identifier: Apache-2.0
// Numbers are given first, each with a mark that it belongs to no run; then the cells and ranks
// come in pieces; then one transaction makes all runs and removes the marks.
#include "core/store/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/store/db.h"
#include "core/store/loose.h"
#include "core/store/queue.h"
#include "core/store/results.h"
#include "core/store/runs.h"
#include "core/store/transaction.h"

static int64_t next_number(struct store *s, struct err *err)
{
    int64_t id = 0;
    if (sq_exec(s->db,
                "INSERT INTO sqlite_sequence (name,seq) SELECT 'run',0 "
                "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'run');"
                "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'run'",
                err) < 0 ||
        sq_number(s->db, "SELECT seq FROM sqlite_sequence WHERE name = 'run'", &id, err) < 0)
        return -1;
    s->new_id = id;
    return id;
}

static int give_numbers(struct store *s, struct store_stage *st, struct err *err)
{
    for (int i = 0; i < st->n; i++) {
        int found = store_import_find(s, &st->list[i], &st->ids[i], err);
        if (found < 0)
            return -1;
        if (found)
            continue;
        st->numbers[i] = next_number(s, err);
        if (st->numbers[i] < 0 || store_leftover_put(s, st->numbers[i], err) < 0)
            return -1;
    }
    return 0;
}

// What an earlier try has left behind goes.
static int begin_result(struct store *s, struct store_stage *st, struct err *err)
{
    char sql[120];
    snprintf(sql, sizeof sql,
             "DELETE FROM cell WHERE run_id = %" PRId64
             "; DELETE FROM rank WHERE run_id = %" PRId64,
             st->run, st->run);
    st->numbers[0] = st->run;
    return store_leftover_put(s, st->run, err) < 0 ? -1 : sq_exec(s->db, sql, err);
}

int store_stage_begin(struct store *s, struct store_stage *st, struct err *err)
{
    if (s->staging)
        return err_set(err, ERR_UNAVAILABLE, "", "another large run is being stored; try again");
    st->numbers = calloc((size_t)st->n, sizeof *st->numbers);
    if (!st->numbers)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d runs", st->n);
    st->openings = s->openings;
    st->created_ms = clock_wall_ms();
    int rc = store_begin(s, err);
    if (rc == 0)
        rc = store_end(s, st->run ? begin_result(s, st, err) : give_numbers(s, st, err), err);
    if (rc == 0)
        s->staging = st;
    return rc;
}

int store_stage_begin_result(struct store *s, struct store_stage *st, int64_t run,
                             struct run_result *result, struct err *err)
{
    result->staged = false;
    *st = (struct store_stage){.run = run, .own.result = result, .n = 1, .results = result};
    st->list = &st->own;
    if (store_stage_begin(s, st, err) == 0)
        return 0;
    store_stage_end(s, st);
    return -1;
}

void store_stage_end(struct store *s, struct store_stage *st)
{
    if (s->staging == st)
        s->staging = NULL;
    free(st->numbers);
    st->numbers = NULL;
}

// The cells of a row, or a rank. 1: there is more, 0: all are stored, -1.
static int put_next(struct store *s, struct store_stage *st, struct err *err)
{
    while (st->at < st->n) {
        const struct run_result *r = st->list[st->at].result;
        const int64_t id = st->numbers[st->at];
        const struct matrix *m = st->matrix < r->n_matrices ? &r->matrices[st->matrix] : NULL;
        if (!id || (!m && st->rank == r->n_ranks)) {
            st->at++;
            st->matrix = st->row = st->rank = 0;
        } else if (!m) {
            return store_rank_put(s, id, &r->ranks[st->rank++], err) < 0 ? -1 : 1;
        } else if (st->row == m->row.n) {
            st->matrix++;
            st->row = 0;
        } else {
            for (int c = 0; c < m->col.n; c++)
                if (store_cell_put(s, id, st->matrix, st->row, c, matrix_at(m, st->row, c), err) <
                    0)
                    return -1;
            st->row++;
            return 1;
        }
    }
    return 0;
}

static int put_some(struct store *s, struct store_stage *st, struct err *err)
{
    const int64_t end = clock_mono_ms() + STORE_STAGE_MS;
    int more;
    do
        more = put_next(s, st, err);
    while (more > 0 && clock_mono_ms() < end);
    return more;
}

// A run that was given its number before others were made is no sign of a clock that was set back.
static int put_runs(struct store *s, struct store_stage *st, struct err *err)
{
    int64_t steps = 0;
    char sql[80];
    if (sq_number(s->db, "SELECT value FROM counter WHERE name = 'clock_steps'", &steps, err) < 0)
        return -1;
    for (int i = 0; i < st->n; i++) {
        const struct store_number as = {st->numbers[i], st->created_ms};
        int found = store_import_find(s, &st->list[i], &st->ids[i], err);
        if (found < 0)
            return -1;
        st->again[i] = found;
        st->results[i].staged = true;
        if (!found && (!as.id || store_import_put(s, &st->list[i], &as, &st->ids[i], err) < 0 ||
                       store_leftover_drop(s, as.id, err) < 0))
            return as.id ? -1 : err_set(err, ERR_CONFLICT, "", "a run was deleted meanwhile");
    }
    snprintf(sql, sizeof sql, "UPDATE counter SET value = %" PRId64 " WHERE name = 'clock_steps'",
             steps);
    return sq_exec(s->db, sql, err);
}

static int finish_run(struct store *s, struct store_stage *st, struct err *err)
{
    st->results->staged = true;
    return store_finish(s, st->run, st->results, err) < 0 ? -1
                                                          : store_leftover_drop(s, st->run, err);
}

// The last transaction.
static int make_runs(struct store *s, struct store_stage *st, struct err *err)
{
    if (store_begin(s, err) < 0 ||
        store_end(s, st->run ? finish_run(s, st, err) : put_runs(s, st, err), err) < 0)
        return -1;
    if (st->run)
        store_queue_drop(s, st->run);
    return 0;
}

int store_stage_step(struct store *s, struct store_stage *st, struct err *err)
{
    if (st->openings != s->openings)
        return err_set(err, ERR_UNAVAILABLE, "", "the database was replaced meanwhile; try again");
    if (st->at == st->n)
        return make_runs(s, st, err);
    if (store_loose_begin(s, err) < 0)
        return store_loose_end(s, -1, NULL);
    int rc = put_some(s, st, err);
    return store_loose_end(s, rc < 0 ? -1 : 0, err) < 0 ? -1 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// Summary metrics of runs, as series that can be read by time.
#include "core/store/metrics.h"

#include <inttypes.h>
#include <math.h>

#include "base/cleanup.h"
#include "core/store/db.h"
#include "core/store/transaction.h"

static double milli(double v)
{
    return isfinite(v) ? nearbyint(v * 1000) : NAN;
}

static int bind_milli(sqlite3_stmt *q, int at, double v)
{
    return isfinite(v) ? sqlite3_bind_int64(q, at, (int64_t)milli(v)) : sqlite3_bind_null(q, at);
}

static int put_one(struct store *s, int64_t id, const char *variant, const struct metric *m,
                   struct err *err)
{
    sqlite3_stmt *series = s->queries[Q_SERIES_PUT], *q = s->queries[Q_METRIC_PUT];
    if (sq_bind(series, err, "ttti", m->name, variant, m->unit, id) < 0 ||
        sq_done(series, err) < 0 || sq_bind(q, err, "tti", m->name, variant, id) < 0)
        return -1;
    const double values[] = {m->value, m->lo, m->hi};
    for (int i = 0; i < 3; i++) {
        int rc = bind_milli(q, 4 + i, values[i]);
        if (rc != SQLITE_OK)
            return sq_fail(err, s->db, rc, "bind");
    }
    return sq_done(q, err);
}

// Says that the run has metrics of this version.
static int mark(struct store *s, int version, int64_t id, struct err *err)
{
    sqlite3_stmt *q = s->queries[Q_METRICS_DONE];
    return sq_bind(q, err, "ii", id, (int64_t)version) < 0 ? -1 : sq_done(q, err);
}

int store_metrics_put(struct store *s, int64_t id, const struct run_metrics *m, struct err *err)
{
    sqlite3_stmt *clear = s->queries[Q_METRIC_CLEAR];
    if (sq_bind(clear, err, "i", id) < 0 || sq_done(clear, err) < 0)
        return -1;
    for (int i = 0; i < m->n; i++)
        if (isfinite(m->list[i].value) && put_one(s, id, m->variant, &m->list[i], err) < 0)
            return -1;
    if (mark(s, m->version, id, err) < 0)
        return -1;
    return sqlite3_changes(s->db) == 1
               ? 0
               : err_set(err, ERR_NOT_FOUND, "", "there is no run %" PRId64, id);
}

int store_run_metrics(struct store *s, int64_t id, const struct run_metrics *m, struct err *err)
{
    if (store_begin(s, err) < 0)
        return -1;
    return store_end(s, store_metrics_put(s, id, m, err), err);
}

int store_run_no_metrics(struct store *s, int version, int64_t id, struct err *err)
{
    return store_begin(s, err) < 0 ? -1 : store_end(s, mark(s, version, id, err), err);
}

int store_run_without_metrics(struct store *s, int version, int64_t *id, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_METRICS_MISSING];
    if (sq_bind(q, err, "i", (int64_t)version) < 0)
        return -1;
    int row = sq_step(q, err);
    if (row > 0)
        *id = sqlite3_column_int64(q, 0);
    return row;
}

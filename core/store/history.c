// SPDX-License-Identifier: Apache-2.0
// Reading only: each function runs one statement that an index answers without reading a whole
// table (tests/unit/core/store/test_queries.c).
#include "core/store/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/store/db.h"

static double from_milli(sqlite3_stmt *q, int column)
{
    return sqlite3_column_type(q, column) == SQLITE_NULL
               ? NAN
               : (double)sqlite3_column_int64(q, column) / 1000;
}

static struct series_info series_at(sqlite3_stmt *q)
{
    return (struct series_info){.id = sqlite3_column_int64(q, 0),
                                .metric = sq_text(q, 1),
                                .node = sq_text(q, 2),
                                .variant = sq_text(q, 3),
                                .unit = sq_text(q, 4),
                                .first_ms = sqlite3_column_int64(q, 5),
                                .last_ms = sqlite3_column_int64(q, 6),
                                .last_run = sqlite3_column_int64(q, 7),
                                .last_value = from_milli(q, 8)};
}

static void series_sql(const struct series_filter *f, struct buf *sql)
{
    const struct store_condition conditions[] = {
        {f->metric, "s.metric = ?1"}, {f->node, "s.node = ?2"}, {f->variant, "s.variant = ?3"}};
    buf_str(sql, "SELECT s.id,s.metric,s.node,s.variant,s.unit,"
                 "(SELECT min(measured_ms) FROM metric WHERE series = s.id),"
                 "m.measured_ms,m.run_id,m.value_milli "
                 "FROM series AS s CROSS JOIN metric AS m ON m.series = s.id "
                 "AND (m.measured_ms,m.run_id) = (SELECT measured_ms,run_id FROM metric "
                 "WHERE series = s.id AND measured_ms <= ?5 "
                 "ORDER BY measured_ms DESC, run_id DESC LIMIT 1) ");
    store_where(sql, conditions, COUNT_OF(conditions));
    buf_str(sql, "ORDER BY s.metric, s.node, s.variant LIMIT ?4");
}

static int series_prepare(struct store *s, const struct series_filter *f, sqlite3_stmt **q,
                          struct err *err)
{
    CLEANUP_BUF struct buf sql = BUF_INIT;
    series_sql(f, &sql);
    if (!buf_ok(&sql))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a statement");
    int rc = sqlite3_prepare_v2(s->db, buf_text(&sql), -1, q, NULL);
    if (rc != SQLITE_OK)
        return sq_fail(err, s->db, rc, "list of series");
    return sq_bind(*q, err, "tttii", f->metric, f->node, f->variant, (int64_t)f->limit + 1,
                   f->until_ms ? f->until_ms : INT64_MAX);
}

int store_series_list(struct store *s, const struct series_filter *f,
                      void (*fn)(void *ctx, const struct series_info *i), void *ctx, bool *more,
                      struct err *err)
{
    CLEANUP_FINALIZE sqlite3_stmt *q = NULL;
    if (series_prepare(s, f, &q, err) < 0)
        return -1;
    int row, n = 0;
    while ((row = sq_step(q, err)) > 0 && n++ < f->limit) {
        const struct series_info i = series_at(q);
        fn(ctx, &i);
    }
    if (row < 0)
        return -1;
    *more = row > 0;
    return 0;
}

int store_series_count(struct store *s, int64_t series, int most, int *n, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_SERIES_COUNT];
    if (sq_bind(q, err, "ii", series, (int64_t)most) < 0 || sq_step(q, err) < 0)
        return -1;
    *n = sqlite3_column_int(q, 0);
    return 0;
}

static struct history_point point_at(sqlite3_stmt *q)
{
    return (struct history_point){.run_id = sqlite3_column_int64(q, 1),
                                  .measured_ms = sqlite3_column_int64(q, 0),
                                  .value = from_milli(q, 2),
                                  .lo = from_milli(q, 3),
                                  .hi = from_milli(q, 4)};
}

static void reverse(struct history_point *list, int n)
{
    for (int i = 0; i < n / 2; i++) {
        struct history_point kept = list[i];
        list[i] = list[n - 1 - i];
        list[n - 1 - i] = kept;
    }
}

int store_history(struct store *s, int64_t series, int64_t since_ms, int64_t until_ms, int limit,
                  struct history_point **out, int *n, bool *more, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_HISTORY];
    CLEANUP_MEM struct history_point *list = calloc((size_t)limit, sizeof *list);
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a history");
    if (sq_bind(q, err, "iiii", series, since_ms, until_ms ? until_ms : INT64_MAX,
                (int64_t)limit + 1) < 0)
        return -1;
    int row, got = 0;
    while ((row = sq_step(q, err)) > 0 && got < limit)
        list[got++] = point_at(q);
    if (row < 0)
        return -1;
    reverse(list, got);
    *out = steal_ptr(&list);
    *n = got;
    *more = row > 0;
    return 0;
}

// 1: a row, whose first column is *n; 0: none.
static int one_number(sqlite3_stmt *q, int64_t *n, struct err *err)
{
    int row = sq_step(q, err);
    if (row > 0)
        *n = sqlite3_column_int64(q, 0);
    return row;
}

int store_run_setup(struct store *s, int64_t id, struct run_setup *out, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_SETUP];
    *out = (struct run_setup){0};
    int row = sq_bind(q, err, "i", id) < 0 ? -1 : sq_step(q, err);
    if (row <= 0)
        return row;
    snprintf(out->class_hash, sizeof out->class_hash, "%s", sq_text(q, 0));
    snprintf(out->config_hash, sizeof out->config_hash, "%s", sq_text(q, 1));
    return sq_row_whole(q, err);
}

int store_series_before(struct store *s, int64_t series, int64_t at_ms, int64_t *measured_ms,
                        struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_SERIES_BEFORE];
    return sq_bind(q, err, "ii", series, at_ms) < 0 ? -1 : one_number(q, measured_ms, err);
}

int store_run_latest(struct store *s, const char *node, int64_t *id, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_LATEST];
    return sq_bind(q, err, "t", node) < 0 ? -1 : one_number(q, id, err);
}

int store_run_newest_like(struct store *s, const char *node, enum benchmark_id benchmark,
                          const char *class_hash, int64_t *id, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_NEWEST_LIKE];
    const struct benchmark *b = &benchmarks[benchmark];
    return sq_bind(q, err, "tttt", node, b->name, class_hash, b->method) < 0
               ? -1
               : one_number(q, id, err);
}

// The first parameters of both statements that look for runs like others.
#define LIKE_KINDS "ttttti"
#define LIKE_VALUES(like)                                                                          \
    (like)->node, benchmarks[(like)->benchmark].name, (like)->class_hash, (like)->config_hash,     \
        (like)->method, (int64_t)RUNS_LIKE

int store_metric_newest_like(struct store *s, const struct metric_wanted *w, int64_t *run,
                             double *value, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_METRIC_LIKE];
    // instr() finds an empty text everywhere.
    const char *without = *w->without ? w->without : "\n";
    if (sq_bind(q, err, LIKE_KINDS "tt", LIKE_VALUES(&w->like), w->metric, without) < 0)
        return -1;
    int row = one_number(q, run, err);
    *value = row > 0 ? from_milli(q, 1) : 0;
    return row;
}

int store_runs_like(struct store *s, const struct run_like *like,
                    bool (*fn)(void *ctx, const struct run_took *r), void *ctx, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_RUNS_LIKE];
    int row;
    if (sq_bind(q, err, LIKE_KINDS, LIKE_VALUES(like)) < 0)
        return -1;
    while ((row = sq_step(q, err)) > 0) {
        const struct run_took r = {.id = sqlite3_column_int64(q, 0),
                                   .n_ranks = sqlite3_column_int(q, 1),
                                   .started_ms = sqlite3_column_int64(q, 2),
                                   .finished_ms = sqlite3_column_int64(q, 3),
                                   .without_mpi = sqlite3_column_int(q, 4) > 0,
                                   .spec = sq_text(q, 5)};
        if (!fn(ctx, &r))
            return 0;
    }
    return row;
}

int store_newest_values(struct store *s, const char *node, int limit,
                        void (*fn)(void *ctx, const struct newest_value *v), void *ctx,
                        struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_NEWEST_VALUES];
    int row;
    if (sq_bind(q, err, "ti", node, (int64_t)limit) < 0)
        return -1;
    while ((row = sq_step(q, err)) > 0) {
        const struct newest_value v = {.series = sqlite3_column_int64(q, 0),
                                       .metric = sq_text(q, 1),
                                       .variant = sq_text(q, 2),
                                       .unit = sq_text(q, 3),
                                       .run_id = sqlite3_column_int64(q, 4),
                                       .measured_ms = sqlite3_column_int64(q, 5),
                                       .value = from_milli(q, 6)};
        fn(ctx, &v);
    }
    return row;
}

int store_newest_count(struct store *s, const char *node, int most, int64_t *n, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_NEWEST_COUNT];
    return sq_bind(q, err, "ti", node, (int64_t)most) < 0 || one_number(q, n, err) < 0 ? -1 : 0;
}

int store_runs_pending(struct store *s, int version, const char *node, int most, int64_t *n,
                       struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[node ? Q_PENDING_OF_NODE : Q_PENDING];
    int bound = node ? sq_bind(q, err, "iit", (int64_t)version, (int64_t)most, node)
                     : sq_bind(q, err, "ii", (int64_t)version, (int64_t)most);
    return bound < 0 || one_number(q, n, err) < 0 ? -1 : 0;
}

int store_run_states(struct store *s, int64_t count[RUN_STATES], struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_STATES];
    int row;
    memset(count, 0, RUN_STATES * sizeof *count);
    while ((row = sq_step(q, err)) > 0) {
        int state = run_state_find(sq_text(q, 0));
        if (state >= 0)
            count[state] = sqlite3_column_int64(q, 1);
    }
    return row;
}

int64_t store_version(const struct store *s)
{
    if (s->reader)
        return s->reader_version;
    // 2^40 changes of one database: a thousand a second for 34 years.
    return (s->openings << 40) + (s->db ? sqlite3_total_changes64(s->db) : 0);
}

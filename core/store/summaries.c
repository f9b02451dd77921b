// SPDX-License-Identifier: Apache-2.0
// Metrics come in the order of their series, which is the same for all runs of a node and variant:
// so they share a layout.
#include "core/store/summaries.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/store/db.h"

void summary_values_fini(struct summary_values *v)
{
    free(v->list);
    *v = (struct summary_values){0};
}

#define COPY(field, column) snprintf(field, sizeof(field), "%s", sq_text(q, column))

// Columns in the order of Q_SUMMARY.
static int read_summary(sqlite3_stmt *q, struct summary *out, struct err *err)
{
    struct summary s = {.id = sqlite3_column_int64(q, 0), .seq = sqlite3_column_int64(q, 1)};
    s.state = (enum run_state)run_state_find(sq_text(q, 2));
    COPY(s.benchmark, 3);
    COPY(s.node, 4);
    COPY(s.method, 5);
    s.n_ranks = sqlite3_column_int64(q, 6);
    COPY(s.class_hash, 7);
    COPY(s.config_hash, 8);
    COPY(s.topology_hash, 9);
    const int64_t started_ms = sqlite3_column_int64(q, 10);
    s.finished_ms = sqlite3_column_int64(q, 11);
    s.duration_s = run_seconds(s.state, started_ms, s.finished_ms);
    s.measured_ms = sqlite3_column_int64(q, 12);
    s.imported = strcmp(sq_text(q, 13), "imported") == 0;
    COPY(s.label, 14);
    s.metrics_version = sqlite3_column_int(q, 15);
    s.disturbed = NAN;
    s.forced = sqlite3_column_int(q, 16) > 0;
    if (sq_row_whole(q, err) < 0)
        return -1;
    *out = s;
    return 0;
}

static int get_row(struct store *s, int64_t id, struct summary *out, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_SUMMARY];
    if (sq_bind(q, err, "i", id) < 0)
        return -1;
    int row = sq_step(q, err);
    if (row == 0)
        return err_set(err, ERR_NOT_FOUND, "", "there is no run %" PRId64, id);
    return row < 0 ? -1 : read_summary(q, out, err);
}

static int values_make_room(struct summary_values *v, struct err *err)
{
    if (v->n < v->room)
        return 0;
    int room = v->room ? 2 * v->room : 64;
    struct metric *more = realloc(v->list, (size_t)room * sizeof *more);
    if (!more)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for metrics");
    v->list = more;
    v->room = room;
    return 0;
}

static double thousandths(sqlite3_stmt *q, int column)
{
    return sqlite3_column_type(q, column) == SQLITE_NULL
               ? NAN
               : (double)sqlite3_column_int64(q, column) / 1000;
}

// Columns in the order of Q_SUMMARY_METRICS.
static int read_metric(sqlite3_stmt *q, struct summary_values *v, struct err *err)
{
    if (values_make_room(v, err) < 0)
        return -1;
    struct metric *m = &v->list[v->n];
    COPY(m->name, 0);
    COPY(m->unit, 1);
    m->value = thousandths(q, 3);
    m->lo = thousandths(q, 4);
    m->hi = thousandths(q, 5);
    v->n++;
    return sq_row_whole(q, err);
}

static bool is_disturbed_ratio(const char *metric, const char *benchmark)
{
    size_t n = strlen(benchmark);
    return strncmp(metric, benchmark, n) == 0 && strcmp(metric + n, ".disturbed_ratio") == 0;
}

static int get_metrics(struct store *s, int64_t id, struct summary *out, struct summary_values *v,
                       struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_SUMMARY_METRICS];
    int row;
    v->n = 0;
    if (sq_bind(q, err, "i", id) < 0)
        return -1;
    while ((row = sq_step(q, err)) > 0) {
        if (!v->n)
            summary_set_variant(out, sq_text(q, 2));
        if (read_metric(q, v, err) < 0)
            return -1;
        if (is_disturbed_ratio(v->list[v->n - 1].name, out->benchmark))
            out->disturbed = v->list[v->n - 1].value;
    }
    return row;
}

int store_summary_get(struct store *s, int64_t id, struct summary *out,
                      struct summary_values *values, struct err *err)
{
    struct summary got;
    if (get_row(s, id, &got, err) < 0 || get_metrics(s, id, &got, values, err) < 0)
        return -1;
    values->pending = got.state == RUN_SUCCEEDED && !got.metrics_version;
    *out = got;
    return 0;
}

int store_note_get(struct store *s, int64_t id, int64_t seq, struct summary_note *out,
                   struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_NOTE];
    if (sq_bind(q, err, "i", id) < 0)
        return -1;
    int row = sq_step(q, err);
    if (row == 0)
        return err_set(err, ERR_NOT_FOUND, "", "there is no run %" PRId64, id);
    if (row < 0)
        return -1;
    *out = (struct summary_note){.seq = seq,
                                 .run_seq = sqlite3_column_int64(q, 0),
                                 .run = id,
                                 .baseline = sqlite3_column_int(q, 2)};
    COPY(out->label, 1);
    return sq_row_whole(q, err);
}

int store_summary_count(struct store *s, int64_t id, int64_t *n, struct err *err)
{
    CLEANUP_RESET sqlite3_stmt *q = s->queries[Q_SUMMARY_COUNT];
    if (sq_bind(q, err, "i", id) < 0 || sq_step(q, err) < 0)
        return -1;
    *n = sqlite3_column_int64(q, 0);
    return 0;
}

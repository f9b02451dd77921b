// SPDX-License-Identifier: Apache-2.0
// COPY gives rows in its binary form: https://www.postgresql.org/docs/15/sql-copy.html.
//
// The newest runs of each node and kind are looked for in stretches of months, the newest first, as
// far back as they are needed: one statement over all months would sort the whole history. `span`
// names the months in which there are any. What a stretch gave is kept until all are read, because
// a reader gets its rows node by node.
#include "fleet/store/pg_read.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fleet/store/months.h"
#include "fleet/store/pack.h"
#include "fleet/store/pg.h"
#include "model/metric.h"

enum { NODES_AT_ONCE = 512 }; // what is sorted or kept of them is some MB, and needs no disk
static const char newest_first[] = "measured DESC, seq DESC, feed DESC";

struct pg_reader {
    fleet_row_fn *fn;
    void *ctx;
    const unsigned char *at, *end;
    bool headed, broken, values_only;
    bool arrivals;                 // the feed's history follows each row
    float values[3 * METRICS_MAX]; // of the row that is read
    char label[RUN_LABEL_MAX + 1], history[40];
};

static struct pg_reader *reader_new(const struct fleet_reading *r, fleet_row_fn *fn, void *ctx,
                                    struct err *err)
{
    struct pg_reader *made = calloc(1, sizeof *made);
    if (!made) {
        err_set(err, ERR_NO_MEMORY, "", "no memory to read");
        return NULL;
    }
    made->fn = fn;
    made->ctx = ctx;
    made->values_only = r->values_only;
    return made;
}

// ---- Rows

// The next field: its bytes and length; -1: NULL. A form that is not ours sets `broken`.
static int field_next(struct pg_reader *r, const unsigned char **bytes)
{
    int32_t n = -1;
    *bytes = NULL;
    if (r->end - r->at < 4)
        r->broken = true;
    else {
        n = (int32_t)unpack_u32(r->at);
        r->at += 4;
    }
    if (n > r->end - r->at)
        r->broken = true;
    if (r->broken || n < 0)
        return -1;
    *bytes = r->at;
    r->at += n;
    return n;
}

static int64_t field_number(struct pg_reader *r, int64_t otherwise)
{
    const unsigned char *b;
    int n = field_next(r, &b);
    return n == 8   ? (int64_t)unpack_u64(b)
           : n == 4 ? (int32_t)unpack_u32(b)
           : n == 2 ? (int16_t)(b[0] << 8 | b[1])
                    : otherwise;
}

static int64_t next_time(struct pg_reader *r)
{
    int64_t us = field_number(r, INT64_MIN);
    return us == INT64_MIN ? 0 : us / 1000 + pg_epoch_ms;
}

static double next_double(struct pg_reader *r)
{
    const unsigned char *b;
    double d = NAN;
    if (field_next(r, &b) == 8) {
        uint64_t bits = unpack_u64(b);
        memcpy(&d, &bits, sizeof d);
    }
    return d;
}

static void next_values(struct pg_reader *r, struct fleet_row *row)
{
    const unsigned char *v, *w;
    float *to = r->values;
    int bytes = field_next(r, &v), wide = field_next(r, &w);
    int n = bytes < PG_ARRAY_HEAD ? 0 : (int32_t)unpack_u32(v + 12);
    if (n < 0 || n > METRICS_MAX || (n && bytes != PG_ARRAY_HEAD + n * 8))
        r->broken = true;
    if (r->broken)
        return;
    for (int i = 0; i < n; i++)
        to[i] = unpack_float(v + PG_ARRAY_HEAD + 8 * i + 4);
    row->n = n;
    row->v = to;
    if (r->values_only)
        return;
    if (!unpack_widths(w, wide < 0 ? 0 : wide, to, n, to + n, to + 2 * n))
        r->broken = true;
    row->lo = to + n;
    row->hi = to + 2 * n;
}

static const char *field_text_into(struct pg_reader *r, char *out, size_t room)
{
    const unsigned char *b;
    int n = field_next(r, &b);
    if (n >= (int)room)
        r->broken = true;
    snprintf(out, room, "%.*s", n < 0 || r->broken ? 0 : n, b ? (const char *)b : "");
    return out;
}

// In the order of PG_RUN_HEAD.
static void next_row(struct pg_reader *r, struct fleet_row *row)
{
    row->node = (int)field_number(r, 0);
    row->kind = (int)field_number(r, 0);
    row->at_ms = next_time(r);
    row->received_ms = next_time(r);
    row->finished_ms = next_time(r);
    row->seq = field_number(r, 0);
    row->run = field_number(r, 0);
    row->seconds = next_double(r);
    row->feed = (int)field_number(r, 0);
    row->machine = (int)field_number(r, 0);
    row->state = (int)field_number(r, 0);
    row->flags = (int)field_number(r, 0);
    row->disturbed = (int)field_number(r, -1);
    row->label = field_text_into(r, r->label, sizeof r->label);
    row->arrival = field_number(r, 0);
    next_values(r, row);
    if (r->arrivals)
        row->history = field_text_into(r, r->history, sizeof r->history);
}

static int row_form(struct err *err)
{
    return err_set(err, ERR_DAMAGED, "", "a row of run has another form");
}

// The fields of the row in a message. Before the first one is the head of 19 bytes, and a count of
// -1 is the end. 1: there is a row; 0: none.
static int row_begin(struct pg_reader *r, const unsigned char *bytes, size_t n, struct err *err)
{
    enum { HEAD = 19 };
    r->at = bytes;
    r->end = bytes + n;
    if (!r->headed) {
        r->headed = true;
        r->at += n < HEAD ? n : HEAD;
    }
    if (r->end - r->at < 2)
        return 0;
    int columns = (int16_t)(r->at[0] << 8 | r->at[1]);
    r->at += 2;
    if (columns == -1)
        return 0;
    return columns == PG_RUN_COLUMNS + r->arrivals ? 1 : row_form(err);
}

static int row_give(struct pg_reader *r, struct err *err)
{
    struct fleet_row row = {0};
    next_row(r, &row);
    return r->broken ? row_form(err) : r->fn(r->ctx, &row, err);
}

static int row_message(void *ctx, const unsigned char *bytes, size_t n, struct err *err)
{
    int there = row_begin(ctx, bytes, n, err);
    return there > 0 ? row_give(ctx, err) : there;
}

// ---- Statements

static void sql_numbers(struct buf *sql, const char *column, const bool *set, int first, int last)
{
    if (!set)
        return;
    buf_fmt(sql, " AND %s IN (0", column);
    for (int number = first; number <= last; number++)
        if (set[number - 1])
            buf_fmt(sql, ",%d", number);
    buf_char(sql, ')');
}

void pg_sql_time(struct buf *sql, const char *test, int64_t ms)
{
    char text[32];
    if (ms <= 0 || ms == INT64_MAX)
        return;
    clock_rfc3339(ms, text);
    buf_fmt(sql, " AND measured %s '%s'", test, text);
}

static const char *sql_ends(const struct fleet_reading *r)
{
    return r->values_only ? "v, NULL::bytea" : PG_RUN_ENDS;
}

// What of a node is wanted, but for its number.
static void sql_wanted(struct buf *sql, const struct fleet_reading *r)
{
    if (r->own)
        buf_fmt(sql, " AND state = %d AND flags & %d = 0", RUN_SUCCEEDED, ROW_IMPORTED);
    if (r->seq)
        buf_fmt(sql, " AND seq = %" PRId64, r->seq);
    pg_sql_time(sql, ">=", r->since_ms);
    pg_sql_time(sql, "<", r->until_ms);
    sql_numbers(sql, "kind", r->kind, 1, r->n_kinds);
    sql_numbers(sql, "machine", r->machine, 1, r->n_machines);
}

static int sql_copy(struct pg *c, const struct buf *sql,
                    int (*fn)(void *ctx, const unsigned char *bytes, size_t n, struct err *err),
                    void *ctx, struct err *err)
{
    return buf_ok(sql) ? pg_copy_out(c, buf_text(sql), fn, ctx, err)
                       : err_set(err, ERR_NO_MEMORY, "", "no memory to read");
}

// Nodes first to last.
static int read_part(struct pg *c, const struct fleet_reading *r, int first, int last,
                     struct pg_reader *to, struct err *err)
{
    CLEANUP_BUF struct buf sql = BUF_INIT;
    buf_fmt(&sql, "COPY (SELECT " PG_RUN_HEAD ", %s FROM run WHERE node BETWEEN %d AND %d",
            sql_ends(r), first, last);
    sql_numbers(&sql, "node", r->nodes, first, last);
    sql_wanted(&sql, r);
    buf_fmt(&sql, " ORDER BY node, kind, %s) TO STDOUT (FORMAT binary)", newest_first);
    to->headed = false;
    return sql_copy(c, &sql, row_message, to, err);
}

static int read_all(struct pg *c, const struct fleet_reading *r, struct pg_reader *to,
                    struct err *err)
{
    for (int first = r->first; first <= r->last; first += NODES_AT_ONCE) {
        int last = r->last - first < NODES_AT_ONCE ? r->last : first + NODES_AT_ONCE - 1;
        if (read_part(c, r, first, last, to, err) < 0)
            return -1;
    }
    return 0;
}

int pg_read_arrivals(struct pg *c, int64_t after, int64_t until, fleet_row_fn *fn, void *ctx,
                     struct err *err)
{
    CLEANUP_BUF struct buf sql = BUF_INIT;
    CLEANUP_MEM struct pg_reader *to = reader_new(&(struct fleet_reading){0}, fn, ctx, err);
    if (!to)
        return -1;
    to->arrivals = true;
    buf_fmt(&sql,
            "COPY (SELECT " PG_RUN_HEAD ", " PG_RUN_ENDS ", (SELECT history FROM feed "
            "WHERE feed.id = run.feed) FROM run WHERE arrival > %" PRId64 " AND arrival <= %" PRId64
            " ORDER BY arrival) TO STDOUT (FORMAT binary)",
            after, until);
    return sql_copy(c, &sql, row_message, to, err);
}

// ---- The newest of each node and kind

struct newest {
    const struct fleet_reading *r;
    struct pg_reader *to;
    struct newest_pair {
        int node, kind;
        int first, last; // months that have runs
        int need;        // runs that are not here yet
        int head, tail;  // of its rows; -1: none
    } * pairs;           // by node and kind; owned
    int n_pairs, pairs_room;
    struct newest_row {
        size_t at; // in `bytes`
        size_t n;
        int next; // of the pair, older; -1: none
    } * rows;     // owned
    int n_rows, rows_room;
    struct buf bytes; // of the rows
    int at;           // the pair of the row before
    bool *kinds;      // [number - 1]: those of a statement; owned
};

static void newest_runs_fini(struct newest *w)
{
    free(w->pairs);
    free(w->rows);
    free(w->kinds);
    buf_free(&w->bytes);
}

static int newest_room(void *list, int *room, int n, size_t bytes, struct err *err)
{
    enum { FIRST_ROOM = 1024 };
    if (n < *room)
        return 0;
    int more = *room ? 2 * *room : FIRST_ROOM;
    void *made = realloc(*(void **)list, (size_t)more * bytes);
    if (!made)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the newest runs");
    *(void **)list = made;
    *room = more;
    return 0;
}

static int newest_pair(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct newest *w = ctx;
    const struct fleet_reading *r = w->r;
    int node = (int)row[0].i, kind = (int)row[1].i;
    if (r->nodes && !r->nodes[node - 1])
        return 0;
    if (kind < 1 || kind > r->n_kinds || (r->kind && !r->kind[kind - 1]))
        return 0;
    if (newest_room(&w->pairs, &w->pairs_room, w->n_pairs, sizeof *w->pairs, err) < 0)
        return -1;
    w->pairs[w->n_pairs++] = (struct newest_pair){.node = node,
                                                  .kind = kind,
                                                  .first = (int)row[2].i,
                                                  .last = (int)row[3].i,
                                                  .need = r->newest,
                                                  .head = -1,
                                                  .tail = -1};
    return 0;
}

// Runs of the pair may be in these months, and are needed.
static bool pair_wants(const struct newest_pair *p, int low, int high)
{
    return p->need && p->first <= high && low <= p->last;
}

// A row begins with its node and its kind, and rows come in the order of the pairs.
static int newest_message(void *ctx, const unsigned char *bytes, size_t n, struct err *err)
{
    enum { NODE_AT = 4, KIND_AT = 12, BEGIN = 16 };
    struct newest *w = ctx;
    int there = row_begin(w->to, bytes, n, err);
    const unsigned char *row = w->to->at;
    if (there <= 0)
        return there;
    if (w->to->end - row < BEGIN)
        return row_form(err);
    int node = (int)unpack_u32(row + NODE_AT), kind = (int)unpack_u32(row + KIND_AT);
    while (w->at < w->n_pairs && (w->pairs[w->at].node < node ||
                                  (w->pairs[w->at].node == node && w->pairs[w->at].kind < kind)))
        w->at++;
    struct newest_pair *p = w->at < w->n_pairs ? &w->pairs[w->at] : NULL;
    if (!p || p->node != node || p->kind != kind || !p->need)
        return 0;
    if (newest_room(&w->rows, &w->rows_room, w->n_rows, sizeof *w->rows, err) < 0)
        return -1;
    *(p->tail < 0 ? &p->head : &w->rows[p->tail].next) = w->n_rows;
    p->tail = w->n_rows;
    p->need--;
    w->rows[w->n_rows++] =
        (struct newest_row){.at = w->bytes.len, .n = (size_t)(w->to->end - row), .next = -1};
    buf_add(&w->bytes, row, (size_t)(w->to->end - row));
    return buf_ok(&w->bytes) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the newest runs");
}

// " AND node IN (…)": those that need runs of these months. Their kinds become flags, and *most is
// how many runs of a kind are needed. False: none.
static bool newest_nodes(struct newest *w, int low, int high, struct buf *sql, int *most)
{
    int before = 0;
    *most = 0;
    memset(w->kinds, 0, (size_t)w->r->n_kinds * sizeof *w->kinds);
    for (int i = 0; i < w->n_pairs; i++) {
        const struct newest_pair *p = &w->pairs[i];
        if (!pair_wants(p, low, high))
            continue;
        if (p->node != before)
            buf_fmt(sql, before ? ",%d" : " AND node IN (%d", p->node);
        before = p->node;
        w->kinds[p->kind - 1] = true;
        *most = p->need > *most ? p->need : *most;
    }
    if (before)
        buf_char(sql, ')');
    return before != 0;
}

// The months low to high. Those before PG_FIRST_MONTH are one: run_older.
static int newest_stretch(struct newest *w, struct pg *c, int low, int high, struct err *err)
{
    const struct fleet_reading *r = w->r;
    CLEANUP_BUF struct buf sql = BUF_INIT, nodes = BUF_INIT;
    int most;
    if (!newest_nodes(w, low, high, &nodes, &most))
        return 0;
    buf_fmt(&sql,
            "COPY (SELECT " PG_RUN_HEAD ", %s FROM (SELECT " PG_RUN_HEAD ", " PG_RUN_ENDS
            ", row_number() OVER (PARTITION BY node, kind ORDER BY %s) AS place FROM run "
            "WHERE true%s",
            sql_ends(r), newest_first, buf_text(&nodes));
    sql_numbers(&sql, "kind", w->kinds, 1, r->n_kinds);
    sql_wanted(&sql, r);
    pg_sql_time(&sql, ">=", low < PG_FIRST_MONTH ? 0 : month_begin_ms(low));
    pg_sql_time(&sql, "<", month_begin_ms(high + 1));
    buf_fmt(&sql, ") AS r WHERE place <= %d ORDER BY node, kind, %s) TO STDOUT (FORMAT binary)",
            most, newest_first);
    w->to->headed = false;
    w->at = 0;
    return sql_copy(c, &sql, newest_message, w, err);
}

// The first two stretches are a month, where most fleets have what is needed. The others get twice
// as long each, so that a run of years ago is found in a few steps.
static int newest_stretches(struct newest *w, struct pg *c, int from, int to, struct err *err)
{
    enum { SHORT = 2 };
    for (int high = to, length = 1, n = 0; high >= from; high -= length) {
        length = n++ < SHORT ? 1 : 2 * length;
        int low = high - length + 1 > from ? high - length + 1 : from;
        if (newest_stretch(w, c, low, high, err) < 0)
            return -1;
    }
    return 0;
}

static int newest_give(struct newest *w, struct err *err)
{
    for (int i = 0; i < w->n_pairs; i++)
        for (int at = w->pairs[i].head; at >= 0; at = w->rows[at].next) {
            w->to->at = (const unsigned char *)w->bytes.data + w->rows[at].at;
            w->to->end = w->to->at + w->rows[at].n;
            if (row_give(w->to, err) < 0)
                return -1;
        }
    return 0;
}

// Nodes first to last.
static int newest_part(struct newest *w, struct pg *c, int first, int last, struct err *err)
{
    const struct fleet_cell in[] = {CELL_I(first), CELL_I(last), CELL_I(w->r->class)};
    int from = 0, to = -1;
    w->n_pairs = w->n_rows = 0;
    buf_reset(&w->bytes);
    if (pg_query(c,
                 "SELECT node, kind, min(first_month), max(last_month) FROM span "
                 "WHERE node BETWEEN $1 AND $2 AND (CAST($3 AS int) = 0 OR class = $3) "
                 "GROUP BY node, kind ORDER BY node, kind",
                 in, COUNT_OF(in), newest_pair, w, NULL, err) < 0)
        return -1;
    for (int i = 0; i < w->n_pairs; i++) {
        struct newest_pair *p = &w->pairs[i];
        p->first = p->first < PG_FIRST_MONTH ? PG_FIRST_MONTH - 1 : p->first;
        p->last = p->last < PG_FIRST_MONTH ? PG_FIRST_MONTH - 1 : p->last;
        from = i == 0 || p->first < from ? p->first : from;
        to = p->last > to ? p->last : to;
    }
    return newest_stretches(w, c, from, to, err) < 0 ? -1 : newest_give(w, err);
}

static int read_newest(struct pg *c, const struct fleet_reading *r, struct pg_reader *to,
                       struct err *err)
{
    struct newest w CLEANUP(newest_runs_fini) = {.r = r, .to = to};
    w.kinds = calloc((size_t)r->n_kinds + 1, sizeof *w.kinds);
    if (!w.kinds)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to read");
    for (int first = r->first; first <= r->last; first += NODES_AT_ONCE) {
        int last = r->last - first < NODES_AT_ONCE ? r->last : first + NODES_AT_ONCE - 1;
        if (newest_part(&w, c, first, last, err) < 0)
            return -1;
    }
    return 0;
}

int pg_read_runs(struct pg *c, const struct fleet_reading *r, fleet_row_fn *fn, void *ctx,
                 struct err *err)
{
    CLEANUP_MEM struct pg_reader *to = reader_new(r, fn, ctx, err);
    if (!to)
        return -1;
    return r->newest ? read_newest(c, r, to, err) : read_all(c, r, to, err);
}

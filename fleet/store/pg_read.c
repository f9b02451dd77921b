// SPDX-License-Identifier: Apache-2.0
// COPY gives rows in its binary form: https://www.postgresql.org/docs/15/sql-copy.html.
//
// The server does not sort: that took it a third of a statement. The rows of some nodes, a part,
// are kept until the last of them has come, and are sorted here. How many nodes that are follows
// from what the nodes before them had. A part that brings more than may be kept is read again as
// smaller ones.
//
// The newest runs of each node and kind are looked for in stretches of days, the newest first, as
// far back as they are needed: one statement over all months would sort the whole history. `span`
// names the months in which there are any. What a stretch gave is kept until all are read, because
// a reader gets its rows node by node.
#include "fleet/store/pg_read.h"

#include <inttypes.h>
#include <limits.h>
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

enum {
    NODES_AT_ONCE = 512,  // at most, of a part
    NODES_AT_FIRST = 16,  // of the first part: what its nodes have is not known
    KEPT_BYTES = 8 << 20, // of rows of a part: 400 nodes of 60 runs of 30 metrics. One node has all
                          // that it has
    PARTS_AT_ONCE = 4,    // statements that are sent together: the server reads for the next one
                          // while rows of this one are taken
};
static const char newest_first[] = "measured DESC, seq DESC, feed DESC";

// A row as it came, and what rows are sorted by.
struct kept_row {
    int node, kind, feed;
    int64_t measured, seq;
    size_t at, n; // bytes
};

struct pg_reader {
    fleet_row_fn *fn;
    void *ctx;
    const unsigned char *at, *end;
    bool headed, broken, values_only;
    bool arrivals;                 // the feed's history follows each row
    float values[3 * METRICS_MAX]; // of the row that is read
    char label[RUN_LABEL_MAX + 1], history[40];
    struct kept_row *kept; // owned
    int n_kept, kept_room;
    struct buf bytes; // of those
    // Of what is read in parts:
    int nodes;       // of a part
    int part, over;  // the one that comes; the first that was too large, PARTS_AT_ONCE: none was
    size_t received; // bytes of rows
};

static void reader_free(struct pg_reader **r)
{
    if (*r) {
        free((*r)->kept);
        buf_free(&(*r)->bytes);
    }
    free(*r);
}
#define CLEANUP_READER CLEANUP(reader_free)

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
    const unsigned char *v, *w = NULL;
    float *to = r->values;
    int bytes = field_next(r, &v), wide = r->values_only ? 0 : field_next(r, &w);
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

// In the order of PG_RUN_ALL, or of PG_RUN_VALUES and v.
static void next_row(struct pg_reader *r, struct fleet_row *row)
{
    row->node = (int)field_number(r, 0);
    row->kind = (int)field_number(r, 0);
    row->at_ms = next_time(r);
    row->seq = field_number(r, 0);
    row->feed = (int)field_number(r, 0);
    row->run = field_number(r, 0);
    row->machine = (int)field_number(r, 0);
    row->state = (int)field_number(r, 0);
    row->flags = (int)field_number(r, 0);
    row->disturbed = (int)field_number(r, -1);
    if (!r->values_only) {
        row->received_ms = next_time(r);
        row->finished_ms = next_time(r);
        row->seconds = next_double(r);
        row->arrival = field_number(r, 0);
    }
    row->label = r->values_only ? "" : field_text_into(r, r->label, sizeof r->label);
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
    if (columns == -1) {
        r->headed = false; // another statement's rows may follow
        return 0;
    }
    int wanted = r->values_only ? PG_VALUE_COLUMNS : PG_RUN_COLUMNS + r->arrivals;
    return columns == wanted ? 1 : row_form(err);
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

// ---- Rows that are kept until they are sorted

static int no_memory_to_keep(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "", "no memory for the runs of a node");
}

static int read_room(void *list, int *room, int n, size_t bytes, struct err *err)
{
    enum { FIRST_ROOM = 1024 };
    if (n < *room)
        return 0;
    int more = *room ? 2 * *room : FIRST_ROOM;
    void *made = realloc(*(void **)list, (size_t)more * bytes);
    if (!made)
        return no_memory_to_keep(err);
    *(void **)list = made;
    *room = more;
    return 0;
}

// The row that begins at r->at. Its first columns are those that rows are sorted by, and never
// NULL, so that their places are known.
static int row_key(const struct pg_reader *r, struct kept_row *key, struct err *err)
{
    enum { NODE_AT = 4, KIND_AT = 12, MEASURED_AT = 20, SEQ_AT = 32, FEED_AT = 44, KEY_BYTES = 48 };
    if (r->end - r->at < KEY_BYTES)
        return row_form(err);
    *key = (struct kept_row){.node = (int)unpack_u32(r->at + NODE_AT),
                             .kind = (int)unpack_u32(r->at + KIND_AT),
                             .feed = (int)unpack_u32(r->at + FEED_AT),
                             .measured = (int64_t)unpack_u64(r->at + MEASURED_AT),
                             .seq = (int64_t)unpack_u64(r->at + SEQ_AT),
                             .n = (size_t)(r->end - r->at)};
    return 0;
}

static int row_keep(struct pg_reader *r, const struct kept_row *key, struct err *err)
{
    if (read_room(&r->kept, &r->kept_room, r->n_kept, sizeof *r->kept, err) < 0)
        return -1;
    r->kept[r->n_kept] = *key;
    r->kept[r->n_kept++].at = r->bytes.len;
    buf_add(&r->bytes, r->at, key->n);
    return buf_ok(&r->bytes) ? 0 : no_memory_to_keep(err);
}

// As a reading wants them: by node and kind, the newest first.
static int reading_order(const void *a, const void *b)
{
    const struct kept_row *p = a, *q = b;
    if (p->node != q->node)
        return p->node < q->node ? -1 : 1;
    if (p->kind != q->kind)
        return p->kind < q->kind ? -1 : 1;
    if (p->measured != q->measured)
        return p->measured > q->measured ? -1 : 1;
    if (p->seq != q->seq)
        return p->seq > q->seq ? -1 : 1;
    return (p->feed < q->feed) - (p->feed > q->feed);
}

static void kept_drop(struct pg_reader *r)
{
    r->n_kept = 0;
    buf_reset(&r->bytes);
}

static int kept_give(struct pg_reader *r, struct err *err)
{
    if (r->n_kept)
        qsort(r->kept, r->n_kept, sizeof *r->kept, reading_order);
    for (int i = 0; i < r->n_kept; i++) {
        r->at = (const unsigned char *)r->bytes.data + r->kept[i].at;
        r->end = r->at + r->kept[i].n;
        if (row_give(r, err) < 0)
            return -1;
    }
    kept_drop(r);
    return 0;
}

// What was kept of the part is given, unless it or one before it was too large.
static int part_end(struct pg_reader *r, struct err *err)
{
    return r->part++ < r->over ? kept_give(r, err) : 0;
}

static int part_message(void *ctx, const unsigned char *bytes, size_t n, struct err *err)
{
    struct pg_reader *r = ctx;
    struct kept_row key;
    int there = row_begin(r, bytes, n, err);
    if (there <= 0)
        return there < 0 || r->headed ? there : part_end(r, err);
    if (row_key(r, &key, err) < 0)
        return -1;
    r->received += key.n;
    if (r->part < r->over && r->nodes > 1 && r->bytes.len + key.n > KEPT_BYTES) {
        r->over = r->part;
        kept_drop(r);
    }
    return r->part < r->over ? row_keep(r, &key, err) : 0;
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

// What is not wanted is not sent.
static const char *sql_columns(const struct fleet_reading *r)
{
    return r->values_only ? PG_RUN_VALUES ", v" : PG_RUN_ALL;
}

// What of a node is wanted, but for its number.
static void sql_wanted(struct buf *sql, const struct fleet_reading *r)
{
    if (r->own)
        buf_fmt(sql, " AND state = %d AND flags & %d = 0", RUN_SUCCEEDED, ROW_IMPORTED);
    if (r->measured)
        buf_fmt(sql, " AND flags & %d = 0", ROW_IMPORTED | ROW_UNDATED);
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

static void sql_part(struct buf *sql, const struct fleet_reading *r, int first, int last)
{
    buf_fmt(sql, "COPY (SELECT %s FROM run WHERE node BETWEEN %d AND %d", sql_columns(r), first,
            last);
    sql_numbers(sql, "node", r->nodes, first, last);
    sql_wanted(sql, r);
    buf_str(sql, ") TO STDOUT (FORMAT binary);");
}

// The next parts are as large as the nodes of these suggest, and at most eight times as large.
static int part_nodes(const struct pg_reader *r, int asked)
{
    size_t of_node = r->received / asked + 1;
    int fit = (int)(KEPT_BYTES / 2 / of_node), most = 8 * r->nodes;
    if (r->over < PARTS_AT_ONCE)
        most = r->nodes / 2;
    fit = fit < most ? fit : most;
    return fit < 1 ? 1 : fit < NODES_AT_ONCE ? fit : NODES_AT_ONCE;
}

static int read_all(struct pg *c, const struct fleet_reading *r, struct pg_reader *to,
                    struct err *err)
{
    CLEANUP_BUF struct buf sql = BUF_INIT;
    int first = r->first;
    for (to->nodes = NODES_AT_FIRST; first <= r->last;) {
        int next = first;
        buf_reset(&sql);
        for (int part = 0; part < PARTS_AT_ONCE && next <= r->last; part++) {
            int last = r->last - next < to->nodes ? r->last : next + to->nodes - 1;
            sql_part(&sql, r, next, last);
            next = last + 1;
        }
        to->part = 0;
        to->over = PARTS_AT_ONCE;
        to->received = 0;
        if (sql_copy(c, &sql, part_message, to, err) < 0)
            return -1;
        int asked = next - first;
        first = to->over < PARTS_AT_ONCE ? first + to->over * to->nodes : next;
        to->nodes = part_nodes(to, asked);
    }
    return 0;
}

int pg_read_arrivals(struct pg *c, int64_t after, int64_t until, fleet_row_fn *fn, void *ctx,
                     struct err *err)
{
    CLEANUP_BUF struct buf sql = BUF_INIT;
    CLEANUP_READER struct pg_reader *to = reader_new(&(struct fleet_reading){0}, fn, ctx, err);
    if (!to)
        return -1;
    to->arrivals = true;
    buf_fmt(&sql,
            "COPY (SELECT " PG_RUN_ALL ", (SELECT history FROM feed "
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
    } * pairs;           // by node and kind; owned
    int n_pairs, pairs_room;
    int64_t end_ms; // when the newest runs were measured; 0: not looked up
    int at;         // the pair of the row before
    bool *kinds;    // [number - 1]: those of a statement; owned
};

static void newest_runs_fini(struct newest *w)
{
    free(w->pairs);
    free(w->kinds);
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
    if (read_room(&w->pairs, &w->pairs_room, w->n_pairs, sizeof *w->pairs, err) < 0)
        return -1;
    w->pairs[w->n_pairs++] = (struct newest_pair){.node = node,
                                                  .kind = kind,
                                                  .first = (int)row[2].i,
                                                  .last = (int)row[3].i,
                                                  .need = r->newest};
    return 0;
}

// Runs of the pair may be in these months, and are needed.
static bool pair_wants(const struct newest_pair *p, int low, int high)
{
    return p->need && p->first <= high && low <= p->last;
}

// Rows come in the order of the pairs, the newest first.
static int newest_message(void *ctx, const unsigned char *bytes, size_t n, struct err *err)
{
    struct newest *w = ctx;
    struct kept_row key;
    int there = row_begin(w->to, bytes, n, err);
    if (there <= 0)
        return there;
    if (row_key(w->to, &key, err) < 0)
        return -1;
    while (w->at < w->n_pairs &&
           (w->pairs[w->at].node < key.node ||
            (w->pairs[w->at].node == key.node && w->pairs[w->at].kind < key.kind)))
        w->at++;
    struct newest_pair *p = w->at < w->n_pairs ? &w->pairs[w->at] : NULL;
    if (!p || p->node != key.node || p->kind != key.kind || !p->need)
        return 0;
    p->need--;
    return row_keep(w->to, &key, err);
}

// " AND node …": those that need runs of these months. Their kinds become flags, and *most is how
// many runs of a kind are needed. False: none.
static bool newest_nodes(struct newest *w, int low, int high, struct buf *sql, int *most)
{
    int first = 0, before = 0, n = 0;
    *most = 0;
    memset(w->kinds, 0, (size_t)w->r->n_kinds * sizeof *w->kinds);
    for (int i = 0; i < w->n_pairs; i++) {
        const struct newest_pair *p = &w->pairs[i];
        if (!pair_wants(p, low, high))
            continue;
        if (p->node != before) {
            buf_fmt(sql, n++ ? ",%d" : " AND node IN (%d", p->node);
            first = first ? first : p->node;
        }
        before = p->node;
        w->kinds[p->kind - 1] = true;
        *most = p->need > *most ? p->need : *most;
    }
    if (n == before - first + 1) { // an index takes a range in one step
        buf_reset(sql);
        buf_fmt(sql, " AND node BETWEEN %d AND %d", first, before);
    } else if (n) {
        buf_char(sql, ')');
    }
    return n > 0;
}

// Measured in [low, high). low 0: also all that is older.
static int newest_stretch(struct newest *w, struct pg *c, int64_t low_ms, int64_t high_ms,
                          struct err *err)
{
    const struct fleet_reading *r = w->r;
    CLEANUP_BUF struct buf sql = BUF_INIT, nodes = BUF_INIT;
    int most, low = low_ms ? month_of(low_ms) : PG_FIRST_MONTH - 1,
              high = high_ms == INT64_MAX ? INT_MAX : month_of(high_ms - 1);
    if (!newest_nodes(w, low, high, &nodes, &most))
        return 0;
    buf_fmt(&sql,
            "COPY (SELECT %s FROM (SELECT " PG_RUN_ALL
            ", row_number() OVER (PARTITION BY node, kind ORDER BY %s) AS place FROM run "
            "WHERE true%s",
            sql_columns(r), newest_first, buf_text(&nodes));
    sql_numbers(&sql, "kind", w->kinds, 1, r->n_kinds);
    sql_wanted(&sql, r);
    pg_sql_time(&sql, ">=", low_ms);
    pg_sql_time(&sql, "<", high_ms);
    buf_fmt(&sql, ") AS r WHERE place <= %d ORDER BY node, kind, %s) TO STDOUT (FORMAT binary)",
            most, newest_first);
    w->at = 0;
    return sql_copy(c, &sql, newest_message, w, err);
}

static int newest_time(void *ctx, const struct fleet_cell *row, struct err *err)
{
    (void)err;
    *(int64_t *)ctx = row[0].type == CELL_NULL ? 0 : row[0].i;
    return 0;
}

// Where stretches begin: near the newest run, by a sample of the newest month's blocks. It decides
// how much is read, and not what is found: the first stretch has no end.
static int newest_end(struct newest *w, struct pg *c, int month, struct err *err)
{
    CLEANUP_BUF struct buf sql = BUF_INIT;
    if (w->end_ms)
        return 0;
    buf_str(&sql, "SELECT CAST(extract(epoch FROM max(measured)) AS bigint) * 1000 "
                  "FROM run TABLESAMPLE SYSTEM (1) WHERE true");
    pg_sql_time(&sql, ">=", month < PG_FIRST_MONTH ? 0 : month_begin_ms(month));
    pg_sql_time(&sql, "<", month_begin_ms(month + 1));
    if (!buf_ok(&sql))
        return no_memory_to_keep(err);
    if (pg_query(c, buf_text(&sql), NULL, 0, newest_time, &w->end_ms, NULL, err) < 0)
        return -1;
    if (!w->end_ms)
        w->end_ms = month_begin_ms(month + 1);
    return 0;
}

// A node that measures once a day has what is needed in the first stretch. Each of the others is
// twice as long as the one before, so that a run of years ago is found in a few steps.
static int newest_stretches(struct newest *w, struct pg *c, int from, int to, struct err *err)
{
    enum { DAY_MS = 86400000 };
    int64_t first = from < PG_FIRST_MONTH ? 0 : month_begin_ms(from), high = INT64_MAX, low;
    if (newest_end(w, c, to, err) < 0)
        return -1;
    first = w->r->since_ms > first ? w->r->since_ms : first;
    low = w->end_ms < month_begin_ms(to + 1) ? w->end_ms : month_begin_ms(to + 1);
    for (int64_t length = (w->r->newest + 1) * (int64_t)DAY_MS; high > first; length *= 2) {
        low = low - length > first ? low - length : first;
        if (low < month_begin_ms(PG_FIRST_MONTH))
            low = 0;
        if (newest_stretch(w, c, low, high, err) < 0)
            return -1;
        high = low;
    }
    return 0;
}

// Nodes first to last.
static int newest_part(struct newest *w, struct pg *c, int first, int last, struct err *err)
{
    const struct fleet_cell in[] = {CELL_I(first), CELL_I(last), CELL_I(w->r->class)};
    int from = 0, to = -1;
    w->n_pairs = 0;
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
    if (w->n_pairs && newest_stretches(w, c, from, to, err) < 0)
        return -1;
    return kept_give(w->to, err);
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
    CLEANUP_READER struct pg_reader *to = reader_new(r, fn, ctx, err);
    if (!to)
        return -1;
    return r->newest ? read_newest(c, r, to, err) : read_all(c, r, to, err);
}

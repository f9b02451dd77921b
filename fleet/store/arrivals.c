// SPDX-License-Identifier: Apache-2.0
// Numbers of arrivals are given one after the other, so a page is a range of them: of runs, and of
// notes about them, which come from a table of their own. Where a range is
// empty, because its runs were deleted or its numbers were skipped, the next run is found by
// doubling and halving: a question whether a range has any run costs a few blocks of an index.
#include "fleet/store/parts.h"

#include <stdio.h>
#include <string.h>

struct arrivals_reader {
    struct fleet_store *store;
    struct fleet_arrivals *a;
    int (*fn)(void *ctx, const struct summary *run, const struct summary_layout *layout,
              struct err *err);
    int (*note)(void *ctx, const struct summary_note *note, struct err *err);
    void *ctx;
    int n;      // runs and notes that were given out
    bool ended; // fn wants no more
};

static int arrival_row(void *ctx, const struct fleet_row *row, struct err *err)
{
    struct arrivals_reader *r = ctx;
    const struct book *b = &r->store->book;
    struct summary s;
    if (r->ended)
        return 0; // an engine ends with what it has begun
    if (row_summary(b, row, &s, err) < 0)
        return -1;
    s.seq = row->arrival;
    s.node_seq = row->seq;
    snprintf(s.node_history, sizeof s.node_history, "%s", row->history);
    int result = r->fn(r->ctx, &s, s.layout < 0 ? NULL : &b->layout[s.layout], err);
    r->ended = result > 0;
    if (result)
        return result < 0 ? -1 : 0;
    r->a->next = row->arrival;
    r->n++;
    return 0;
}

static int any_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    (void)row;
    (void)err;
    *(bool *)ctx = true;
    return 0;
}

static int any_arrival(struct fleet_store *s, int64_t after, int64_t until, bool *any,
                       struct err *err)
{
    static const char sql[] =
        "SELECT arrival FROM run WHERE arrival > $1 AND arrival <= $2 "
        "UNION ALL SELECT arrival FROM note WHERE arrival > $1 AND arrival <= $2 LIMIT 1";
    const struct fleet_cell in[] = {CELL_I(after), CELL_I(until)};
    *any = false;
    return s->engine->query(s->db, sql, in, 2, any_row, any, err);
}

// After `from` there is no run before the one in (*low, *low + limit]; *low = last: there is none.
static int next_arrival(struct fleet_store *s, int64_t from, int64_t last, int limit, int64_t *low,
                        struct err *err)
{
    int64_t high = from, step = limit;
    bool any = false;
    for (*low = from; !any && high < last; step *= 2) {
        *low = high;
        high = last - high < step ? last : high + step;
        if (any_arrival(s, *low, high, &any, err) < 0)
            return -1;
    }
    if (!any)
        *low = last;
    while (any && high - *low > limit) {
        int64_t middle = *low + (high - *low) / 2;
        bool below;
        if (any_arrival(s, *low, middle, &below, err) < 0)
            return -1;
        *(below ? &high : low) = middle;
    }
    return 0;
}

struct skips {
    int64_t low, high, n;
};

static int skip_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct skips *k = ctx;
    (void)err;
    k->n += (row[1].i < k->high ? row[1].i : k->high) - (row[0].i > k->low ? row[0].i : k->low);
    return 0;
}

// Of the numbers between, those that no run ever had.
static int count_skipped(struct fleet_store *s, int64_t after, int64_t next, int64_t *n,
                         struct err *err)
{
    struct skips k = {after, next, 0};
    const struct fleet_cell in[] = {CELL_I(after), CELL_I(next)};
    int result =
        s->engine->query(s->db, "SELECT low, high FROM skipped WHERE high > $1 AND low < $2", in, 2,
                         skip_row, &k, err);
    *n = k.n;
    return result;
}

static int arrivals_head_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct fleet_arrivals *a = ctx;
    (void)err;
    snprintf(a->identity, sizeof a->identity, "%s", row[0].t);
    a->last = row[1].i;
    return 0;
}

// As the feed of a node does it.
static int arrivals_check(const struct fleet_arrivals *a, struct err *err)
{
    if (a->history && strcmp(a->history, a->identity) != 0)
        return err_set(err, ERR_CONFLICT, "history_id",
                       "this is another history, %s; read it from after=0", a->identity);
    if (a->after > a->last)
        return err_set(err, ERR_CONFLICT, "after",
                       "the feed ends at %lld. The store is another one, or was restored from an "
                       "older copy; read it from after=0",
                       (long long)a->last);
    return 0;
}

static int arrivals_read(struct arrivals_reader *r, struct err *err)
{
    struct fleet_arrivals *a = r->a;
    struct fleet_store *s = r->store;
    static const char head[] =
        "SELECT identity.history, meta.value FROM identity, meta WHERE meta.name = 'arrived'";
    int64_t from = a->after, until = from, skipped;
    if (s->engine->query(s->db, head, NULL, 0, arrivals_head_row, a, err) < 0 ||
        arrivals_check(a, err) < 0)
        return -1;
    for (int turn = 0; turn < 2 && !r->n && !r->ended && from < a->last; turn++) {
        if (turn && next_arrival(s, until, a->last, a->limit, &from, err) < 0)
            return -1;
        until = a->last - from < a->limit ? a->last : from + a->limit;
        if (from < until && s->engine->arrivals(s->db, from, until, arrival_row, r, err) < 0)
            return -1;
        int64_t last = r->ended ? a->next : until;
        if (from < last && notes_read(s, from, last, r->note, r->ctx, &r->n, err) < 0)
            return -1;
    }
    if (!r->ended)
        a->next = until;
    if (count_skipped(s, a->after, a->next, &skipped, err) < 0)
        return -1;
    a->deleted = a->next - a->after - r->n - skipped;
    return 0;
}

int fleet_store_arrivals(struct fleet_store *s, struct fleet_arrivals *a,
                         int (*fn)(void *ctx, const struct summary *run,
                                   const struct summary_layout *layout, struct err *err),
                         int (*note)(void *ctx, const struct summary_note *note, struct err *err),
                         void *ctx, struct err *err)
{
    struct arrivals_reader r = {.store = s, .a = a, .fn = fn, .note = note, .ctx = ctx};
    a->next = a->after;
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(s, arrivals_read(&r, err), err);
}

// SPDX-License-Identifier: Apache-2.0
// Pages of another collector's feed. The same run can come several ways: from its node, and through
// collectors that follow one another. Its history and its number there say that it is the same.
// What came through collectors is at most `top` of its history, and what came from the node at most
// `next`. Only runs below these are looked up.
#include "fleet/store/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

// The row of a collector.
struct collected {
    int64_t id; // 0: there is none
    char history[40];
    int64_t next, stored, others, lost;
};

// ---- Whose run it is

// The node of a history that is known; 0: it is another live node's.
static int known_node(struct fleet_store *s, int feed, int node, const char *name)
{
    const struct book_feed *f = feed_at(s, feed);
    if (same_name(s->book.nodes.list[f->node - 1], name))
        node = f->node;
    else if (f->state != FLEET_FEED_CLOSED)
        return 0;
    if (f->node != node)
        feed_leave(s, node);
    if (f->node != node || (!s->book.node[node - 1].feed && f->state == FLEET_FEED_CLOSED))
        feed_open(s, feed, node);
    return node;
}

// A collector that is followed names nodes as it likes. It must not give one that is another
// source's a new history, or write an old one on.
static bool may_bring(const struct fleet_store *s, const struct fleet_page *p,
                      const struct summary *r, int node, int feed)
{
    int present = node ? s->book.node[node - 1].feed : 0;
    return !present || present == feed || !is_anothers(s, r->node, p->name);
}

// *node 0: the run is left out.
static int place_run(struct fleet_store *s, const struct fleet_page *p, const struct summary *r,
                     int *node, int *feed, struct err *err)
{
    *feed = interned_find(&s->book.feeds, r->node_history) + 1;
    *node = interned_find(&s->book.nodes, r->node) + 1;
    if (!*node && (s->book.nodes.n >= FLEET_STORE_NODES_MAX ||
                   (*node = store_node(s, r->node, p->received_ms, err)) < 0))
        return *node;
    if (!may_bring(s, p, r, *node, *feed)) {
        *node = 0;
        return 0;
    }
    if (*feed) {
        *node = known_node(s, *feed, *node, r->node);
        return 0;
    }
    if (brought_all(s, *node)) {
        *node = 0;
        return 0;
    }
    *feed = feed_make(s, p, r->node_history, "", *node, err);
    if (*feed < 0)
        return -1;
    feed_leave(s, *node);
    feed_open(s, *feed, *node);
    return 0;
}

// ---- Runs

static int collected_put_run(struct fleet_store *s, const struct fleet_page *p,
                             const struct summary *r, int node, int feed, struct fleet_ack *ack,
                             struct err *err)
{
    struct book_feed *f = feed_at(s, feed);
    int put = page_put_run(s, r, p, node, feed, err);
    if (put <= 0) {
        ack->others += put == 0; // this node is crowded; others are not to suffer
        return put;
    }
    ack->stored++;
    f->top = r->node_seq > f->top ? r->node_seq : f->top;
    return rows_kept(s, s->n_rows - 1, err);
}

// How many runs from `first` on are of one history, in its order.
static int group_length(const struct summary_page *page, int first)
{
    int n = 1;
    for (const struct summary *r = &page->runs[first]; first + n < page->n_runs; n++, r++)
        if (strcmp(r[1].node_history, r->node_history) != 0 || strcmp(r[1].node, r->node) != 0 ||
            r[1].node_seq <= r->node_seq)
            break;
    return n;
}

static int put_group(struct fleet_store *s, const struct fleet_page *p, int first, int n,
                     struct fleet_ack *ack, struct err *err)
{
    bool known[SUMMARY_RUNS_MAX] = {false};
    const struct summary *runs = &p->page->runs[first];
    int node, feed;
    if (place_run(s, p, runs, &node, &feed, err) < 0)
        return -1;
    if (!node) {
        ack->others += n;
        return 0;
    }
    const struct book_feed *f = feed_at(s, feed);
    if (runs->node_seq <= (f->top > f->next ? f->top : f->next) &&
        runs_known(s, p, first, n, node, feed, known, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (!known[i] && collected_put_run(s, p, &runs[i], node, feed, ack, err) < 0)
            return -1;
    return spans_flush(s, node, err);
}

// ---- Notes

// The node of a note whose history is known, and is that node's; 0: the note is passed over.
static int note_node(struct fleet_store *s, const struct summary_note *n, int *feed)
{
    *feed = interned_find(&s->book.feeds, n->node_history) + 1;
    int node = *feed ? feed_at(s, *feed)->node : 0;
    return node && same_name(s->book.nodes.list[node - 1], n->node) ? node : 0;
}

static int collected_put_notes(struct fleet_store *s, const struct fleet_page *p, struct err *err)
{
    const struct summary_note *list = p->page->notes;
    for (int i = 0, n; i < p->page->n_notes; i += n) {
        int feed, node = note_node(s, &list[i], &feed);
        for (n = 1; i + n < p->page->n_notes; n++)
            if (strcmp(list[i + n].node_history, list[i].node_history) != 0 ||
                strcmp(list[i + n].node, list[i].node) != 0)
                break;
        if (node && notes_put(s, p, i, n, node, feed, err) < 0)
            return -1;
    }
    return 0;
}

static int store_tops(struct fleet_store *s, const struct summary_page *page, struct err *err)
{
    for (int i = 0; i < page->n_runs; i++) {
        int feed = interned_find(&s->book.feeds, page->runs[i].node_history) + 1;
        struct book_feed *f = feed ? feed_at(s, feed) : NULL;
        if (!f || f->top == f->top_was)
            continue;
        const struct fleet_cell in[] = {CELL_I(f->top), CELL_I(feed)};
        if (fleet_exec(s, "UPDATE feed SET top = $1 WHERE id = $2", in, COUNT_OF(in), err) < 0)
            return -1;
        f->top_was = f->top;
    }
    return 0;
}

// ---- The page

static bool is_refused(const struct fleet_page *p, struct fleet_ack *ack)
{
    bool sound = page_is_sound(p);
    for (int i = 0; i < p->page->n_runs && sound; i++)
        sound = *p->page->runs[i].node && *p->page->runs[i].node_history;
    if (!*p->page->history_id)
        ack->outcome = FLEET_NAMELESS;
    else if (!sound)
        ack->outcome = FLEET_GARBLED;
    return ack->outcome != FLEET_STORED;
}

static int collected_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct collected *c = ctx;
    (void)err;
    c->id = row[0].i;
    snprintf(c->history, sizeof c->history, "%s", row[1].t);
    c->next = row[2].i;
    c->stored = row[3].i;
    c->others = row[4].i;
    c->lost = row[5].i;
    return 0;
}

static int collected_find(struct fleet_store *s, const struct fleet_page *p, struct collected *c,
                          struct err *err)
{
    static const char find[] =
        "SELECT id, history, next, stored, others, lost FROM collector WHERE name = $1";
    static const char make[] =
        "INSERT INTO collector (id, name, history, next, first_ms, last_ms, skew_ms, version, "
        "stored, others, lost) SELECT coalesce(max(id), 0) + 1, CAST($1 AS text), CAST($2 AS "
        "text), 0, "
        "CAST($3 AS bigint), 0, 0, '', 0, 0, 0 "
        "FROM collector";
    const struct fleet_cell in[] = {CELL_T(p->name), CELL_T(p->page->history_id),
                                    CELL_I(p->received_ms)};
    for (int i = 0; i < 2 && !c->id; i++)
        if ((i && fleet_exec(s, make, in, COUNT_OF(in), err) < 0) ||
            s->engine->query(s->db, find, in, 1, collected_row, c, err) < 0)
            return -1;
    return c->id ? 0 : err_set(err, ERR_DAMAGED, "", "table collector: a new row is not there");
}

// Whether the page begins where the collector stands. One that was restored from a copy, or is new,
// is read from its beginning: what is known is left out.
static bool is_in_place(const struct fleet_page *p, struct collected *c, struct fleet_ack *ack)
{
    bool same = strcmp(c->history, p->page->history_id) == 0;
    if (!same) {
        ack->outcome = FLEET_REINSTALLED;
        ack->next = 0;
    } else if (c->next != p->after && (p->after || p->page->last >= c->next)) {
        ack->outcome = FLEET_BEHIND;
        ack->next = c->next;
    }
    return ack->outcome == FLEET_STORED || (!same && p->after == 0);
}

static int collected_store(struct fleet_store *s, const struct fleet_page *p,
                           const struct collected *c, const struct fleet_ack *ack, struct err *err)
{
    static const char sql[] =
        "UPDATE collector SET history = $1, next = $2, last_ms = $3, skew_ms = $4, version = $5, "
        "stored = $6, others = $7, lost = $8 WHERE id = $9";
    const struct fleet_cell in[] = {CELL_T(p->page->history_id),
                                    CELL_I(p->page->next),
                                    CELL_I(p->received_ms),
                                    CELL_I(p->skew_ms),
                                    CELL_T(p->page->version),
                                    CELL_I(c->stored + ack->stored),
                                    CELL_I(c->others + ack->others),
                                    CELL_I(ack->lost),
                                    CELL_I(c->id)};
    return fleet_exec(s, sql, in, COUNT_OF(in), err);
}

int put_collected(struct fleet_store *s, const struct fleet_page *p, struct fleet_ack *ack,
                  struct err *err)
{
    struct collected c = {0};
    *ack = (struct fleet_ack){.outcome = FLEET_STORED, .next = p->after};
    if (is_refused(p, ack))
        return 0;
    if (collected_find(s, p, &c, err) < 0)
        return -1;
    ack->lost = c.lost;
    if (!is_in_place(p, &c, ack))
        return 0;
    enum fleet_outcome outcome = ack->outcome;
    ack->outcome = FLEET_STORED;
    if (rows_room(s, p->page->n_runs, err) < 0)
        return -1;
    memset(s->layouts, 0, sizeof s->layouts);
    for (int i = 0, n; i < p->page->n_runs; i += n) {
        n = group_length(p->page, i);
        if (put_group(s, p, i, n, ack, err) < 0)
            return -1;
    }
    if (collected_put_notes(s, p, err) < 0)
        return -1;
    ack->outcome = outcome;
    ack->notes = p->page->n_notes;
    ack->next = p->page->next;
    ack->lost += p->page->deleted;
    return store_tops(s, p->page, err) < 0 ? -1 : collected_store(s, p, &c, ack, err);
}

// ---- Where they stand

struct collector_reader {
    int (*fn)(void *ctx, const struct fleet_collector *c, struct err *err);
    void *ctx;
};

static int collector_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct collector_reader *r = ctx;
    const struct fleet_collector c = {.name = row[0].t,
                                      .history = row[1].t,
                                      .version = row[2].t,
                                      .next = row[3].i,
                                      .first_ms = row[4].i,
                                      .last_ms = row[5].i,
                                      .skew_ms = row[6].i,
                                      .stored = row[7].i,
                                      .others = row[8].i,
                                      .lost = row[9].i};
    return r->fn(r->ctx, &c, err);
}

int fleet_store_collectors(struct fleet_store *s,
                           int (*fn)(void *ctx, const struct fleet_collector *c, struct err *err),
                           void *ctx, struct err *err)
{
    static const char sql[] = "SELECT name, history, version, next, first_ms, last_ms, skew_ms, "
                              "stored, others, lost FROM collector ORDER BY id";
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(s,
                     s->engine->query(s->db, sql, NULL, 0, collector_row,
                                      &(struct collector_reader){fn, ctx}, err),
                     err);
}

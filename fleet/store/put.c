// SPDX-License-Identifier: Apache-2.0
// Pages are placed one by one in the book: whose history it is, and whether the page begins where
// that history stands. Then their runs, and all places that moved, go to the engine together.
#include "fleet/store/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

const struct fleet_outcome_info fleet_outcomes[FLEET_OUTCOMES] = {
    [FLEET_STORED] = {"stored", "stored"},
    [FLEET_BEHIND] = {"behind", "the feed stands elsewhere; it is read again from there"},
    [FLEET_REINSTALLED] = {"reinstalled", "the node has a new history; it is read from its start"},
    [FLEET_RENAMED] = {"renamed", "the history of a node that is gone continues under a new name"},
    [FLEET_TWIN] = {"twin", "another live node has the same history: the database was cloned with "
                            "an image; delete it on one of them"},
    [FLEET_ALIEN] = {"alien", "a node of another name sent the page"},
    [FLEET_REWOUND] = {"rewound", "the node's history ends before what is stored: its database was "
                                  "restored from a copy"},
    [FLEET_NAMELESS] = {"nameless", "the node's numaprobe is too old to name its history"},
    [FLEET_GARBLED] = {"garbled", "the page has numbers that no feed has"},
    [FLEET_CROWDED] = {"crowded", "the node sent too many different kinds of runs, machines and "
                                  "lists of metrics, or histories"},
};

// ---- Feeds

// The node is no twin of any other node any more.
static void feed_unclaim(struct fleet_store *s, int node)
{
    for (int i = 0; i < s->book.feeds.n; i++)
        if (s->book.feed[i].twin == node)
            feed_open(s, i + 1, s->book.feed[i].node);
}

// What becomes of a page of a history that another node has, or had.
static enum fleet_outcome feed_claim(struct fleet_store *s, int feed, int node,
                                     struct fleet_ack *ack)
{
    struct book_feed *f = feed_at(s, feed);
    snprintf(ack->other, sizeof ack->other, "%s", s->book.nodes.list[f->node - 1]);
    if (f->state == FLEET_FEED_CLOSED) {
        feed_leave(s, node);
        feed_open(s, feed, node);
        return FLEET_RENAMED;
    }
    if (!f->twin) {
        f->twin = node;
        f->state = FLEET_FEED_TWIN;
        f->dirty = true;
        s->changed = true;
    }
    return FLEET_TWIN;
}

// The feed of the page, whose place is where the page begins if the outcome is one that stores.
static int feed_find(struct fleet_store *s, const struct fleet_page *p, int node, int *feed,
                     struct fleet_ack *ack, struct err *err)
{
    struct book_node *n = &s->book.node[node - 1];
    *feed = interned_find(&s->book.feeds, p->page->history_id) + 1;
    struct book_feed *f = *feed ? feed_at(s, *feed) : NULL;
    if (f && f->node != node) {
        ack->outcome = feed_claim(s, *feed, node, ack);
        return 0;
    }
    if (f && f->state == FLEET_FEED_TWIN) {
        ack->outcome = FLEET_TWIN;
        snprintf(ack->other, sizeof ack->other, "%s", s->book.nodes.list[f->twin - 1]);
        return 0;
    }
    bool had = n->feed != 0;
    if (!f && brought_all(s, node)) {
        ack->outcome = FLEET_CROWDED;
        return 0;
    }
    if (!f && p->after != 0) {
        ack->outcome = had ? FLEET_REINSTALLED : FLEET_BEHIND;
        return 0;
    }
    if (!f && (*feed = feed_make(s, p, p->page->history_id, p->page->version, node, err)) < 0)
        return -1;
    ack->outcome = had && n->feed != *feed ? FLEET_REINSTALLED : FLEET_STORED;
    if (n->feed != *feed) {
        feed_leave(s, node);
        feed_unclaim(s, node);
        feed_open(s, *feed, node);
    }
    return 0;
}

// ---- Runs

static bool run_is_of(const struct summary *r, const struct fleet_page *p)
{
    return !*r->node || same_name(r->node, p->name);
}

// Of a crowded page no run is stored.
static int page_put_runs(struct fleet_store *s, const struct fleet_page *p, int node, int feed,
                         struct fleet_ack *ack, struct err *err)
{
    bool known[SUMMARY_RUNS_MAX] = {false};
    if ((feed_at(s, feed)->top > p->after &&
         runs_known(s, p, 0, p->page->n_runs, node, feed, known, err) < 0) ||
        rows_room(s, p->page->n_runs, err) < 0)
        return -1;
    int before = s->n_rows;
    memset(s->layouts, 0, sizeof s->layouts);
    for (int i = 0; i < p->page->n_runs && ack->outcome != FLEET_CROWDED; i++) {
        const struct summary *r = &p->page->runs[i];
        bool ours = run_is_of(r, p);
        // What is known came through another collector.
        int put = ours && !known[i] ? page_put_run(s, r, p, node, feed, err) : 1;
        if (put < 0)
            return -1;
        ack->others += !ours;
        ack->outcome = put ? ack->outcome : FLEET_CROWDED;
    }
    if (ack->outcome == FLEET_CROWDED)
        s->n_rows = before;
    ack->stored = s->n_rows - before;
    if (rows_kept(s, before, err) < 0 || spans_flush(s, node, err) < 0)
        return -1;
    return ack->outcome == FLEET_CROWDED ? 0
                                         : notes_put(s, p, 0, p->page->n_notes, node, feed, err);
}

// ---- Pages

// Pages that are not of this node, or of no history, change nothing.
static bool page_is_refused(const struct fleet_page *p, struct fleet_ack *ack)
{
    if (*p->page->node && !same_name(p->page->node, p->name)) {
        ack->outcome = FLEET_ALIEN;
        snprintf(ack->other, sizeof ack->other, "%s", p->page->node);
    } else if (!*p->page->history_id) {
        ack->outcome = FLEET_NAMELESS;
    } else if (!page_is_sound(p)) {
        ack->outcome = FLEET_GARBLED;
    }
    return ack->outcome != FLEET_STORED;
}

static bool outcome_stores(enum fleet_outcome o)
{
    return o == FLEET_STORED || o == FLEET_REINSTALLED || o == FLEET_RENAMED;
}

static int put_page(struct fleet_store *s, const struct fleet_page *p, struct fleet_ack *ack,
                    struct err *err)
{
    int feed, node;
    *ack = (struct fleet_ack){.outcome = FLEET_STORED, .next = p->after};
    if (page_is_refused(p, ack))
        return 0;
    if ((node = store_node(s, p->name, p->received_ms, err)) < 0 ||
        feed_find(s, p, node, &feed, ack, err) < 0)
        return -1;
    if (!feed) {
        ack->next = 0;
        return 0;
    }
    struct book_feed *f = feed_at(s, feed);
    ack->next = f->next;
    if (!outcome_stores(ack->outcome))
        return 0;
    if (f->next != p->after) {
        ack->outcome = ack->outcome == FLEET_STORED ? FLEET_BEHIND : ack->outcome;
        return 0;
    }
    if (p->page->last < p->after) {
        ack->outcome = FLEET_REWOUND;
        return 0;
    }
    if (page_put_runs(s, p, node, feed, ack, err) < 0)
        return -1;
    if (ack->outcome == FLEET_CROWDED)
        return 0;
    ack->notes = p->page->n_notes;
    ack->next = f->next = p->page->next;
    f->last_ms = p->received_ms;
    f->skew_ms = p->skew_ms;
    snprintf(f->version, sizeof f->version, "%s", p->page->version);
    f->dirty = true;
    return 0;
}

// All feeds that changed. The book says which; a put touches at most a few of all of them.
static int feeds_flush(struct fleet_store *s, struct err *err)
{
    struct fleet_move moves[FLEET_STORE_PAGES_MAX];
    int n = 0;
    for (int i = 0; i < s->book.feeds.n; i++) {
        struct book_feed *f = &s->book.feed[i];
        if (!f->dirty)
            continue;
        if (n == FLEET_STORE_PAGES_MAX) {
            if (s->engine->move(s->db, moves, n, err) < 0)
                return -1;
            n = 0;
        }
        moves[n++] = (struct fleet_move){i + 1,   f->node,    f->twin,    (int)f->state, f->was,
                                         f->next, f->last_ms, f->skew_ms, f->version};
        f->was = f->next;
        f->dirty = false;
    }
    return n ? s->engine->move(s->db, moves, n, err) : 0;
}

static int put_pages(struct fleet_store *s, const struct fleet_page *pages, int n,
                     struct fleet_ack *acks, struct err *err)
{
    for (int i = 0; i < n; i++) {
        s->n_unkept = 0;
        if ((pages[i].collector ? put_collected : put_page)(s, &pages[i], &acks[i], err) < 0)
            return -1;
        acks[i].unkept = s->n_unkept;
    }
    return rows_flush(s, err) < 0 || feeds_flush(s, err) < 0 ? -1 : 0;
}

int fleet_store_put(struct fleet_store *s, const struct fleet_page *pages, int n,
                    struct fleet_ack *acks, struct err *err)
{
    if (n > FLEET_STORE_PAGES_MAX)
        return err_set(err, ERR_INTERNAL, "", "%d pages at once, at most %d", n,
                       FLEET_STORE_PAGES_MAX);
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(s, put_pages(s, pages, n, acks, err), err);
}

static int leave_nodes(struct fleet_store *s, const char *const *names, int n, struct err *err)
{
    for (int i = 0; i < n; i++) {
        int node = interned_find(&s->book.nodes, names[i]) + 1;
        if (node) {
            feed_unclaim(s, node);
            feed_leave(s, node);
        }
    }
    return feeds_flush(s, err);
}

int fleet_store_gone(struct fleet_store *s, const char *const *names, int n, struct err *err)
{
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(s, leave_nodes(s, names, n, err), err);
}

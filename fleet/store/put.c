// SPDX-License-Identifier: Apache-2.0
// Pages are placed one by one in the book: whose history it is, and whether the page begins where
// that history stands. Then their runs, and all places that moved, go to the engine together.
#include "fleet/store/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "fleet/store/months.h"

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
                                  "lists of metrics"},
};

// "n1" and "n1.cluster.example" are one node.
bool same_name(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    size_t shorter = n < m ? n : m;
    return strncmp(a, b, shorter) == 0 && (n == m || (n > m ? a[m] : b[n]) == '.');
}

bool page_is_sound(const struct fleet_page *f)
{
    const struct summary_page *p = f->page;
    int64_t at = f->after;
    if (p->after != f->after || p->next < p->after || (p->more && p->next == p->after))
        return false;
    for (int i = 0; i < p->n_runs; i++) {
        if (p->runs[i].seq <= at || p->runs[i].seq > p->next)
            return false;
        at = p->runs[i].seq;
    }
    return true;
}

// ---- Feeds

struct book_feed *feed_at(struct fleet_store *s, int number)
{
    return &s->book.feed[number - 1];
}

void feed_open(struct fleet_store *s, int feed, int node)
{
    struct book_feed *f = feed_at(s, feed);
    f->node = node;
    f->twin = 0;
    f->state = FLEET_FEED_OPEN;
    f->dirty = true;
    s->book.node[node - 1].feed = feed;
    s->changed = true;
}

// The node has another history now, or is gone. A twin of the old one is the only one left.
void feed_leave(struct fleet_store *s, int node)
{
    int feed = s->book.node[node - 1].feed;
    if (!feed)
        return;
    struct book_feed *f = feed_at(s, feed);
    s->book.node[node - 1].feed = 0;
    f->state = FLEET_FEED_CLOSED;
    f->dirty = true;
    s->changed = true;
    if (f->twin && !s->book.node[f->twin - 1].feed)
        feed_open(s, feed, f->twin);
    f->twin = 0;
}

// The node is no twin of any other node any more.
static void feed_unclaim(struct fleet_store *s, int node)
{
    for (int i = 0; i < s->book.feeds.n; i++)
        if (s->book.feed[i].twin == node)
            feed_open(s, i + 1, s->book.feed[i].node);
}

int feed_make(struct fleet_store *s, const struct fleet_page *p, const char *history,
              const char *version, int node, struct err *err)
{
    bool fresh;
    int number = book_feed(&s->book, history, &fresh, err);
    if (number < 0)
        return -1;
    const struct fleet_cell row[] = {CELL_I(number),         CELL_I(node),       CELL_T(history),
                                     CELL_I(p->received_ms), CELL_I(p->skew_ms), CELL_T(version)};
    if (fleet_exec(s,
                   "INSERT INTO feed (id, node, history, next, first_ms, last_ms, skew_ms, "
                   "version, state) VALUES ($1, $2, $3, 0, $4, 0, $5, $6, 0)",
                   row, COUNT_OF(row), err) < 0)
        return -1;
    return number;
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

void count_new(struct fleet_store *s, int node, struct fleet_ack *ack)
{
    if (++s->book.node[node - 1].brought > FLEET_STORE_NEW_MAX)
        ack->outcome = FLEET_CROWDED;
}

static int page_put_layout(struct fleet_store *s, const struct summary_layout *l, int node,
                           int *number, struct fleet_ack *ack, struct err *err)
{
    bool fresh;
    *number = book_layout(&s->book, l, &s->json, &fresh, err);
    if (*number < 0 || !fresh)
        return *number < 0 ? -1 : 0;
    const struct fleet_cell row[] = {CELL_I(*number), CELL_I(node),
                                     CELL_T(s->book.layouts.list[*number - 1]),
                                     CELL_T(buf_text(&s->json))};
    count_new(s, node, ack);
    return fleet_exec(s, "INSERT INTO layout (id, origin, hash, metrics) VALUES ($1, $2, $3, $4)",
                      row, COUNT_OF(row), err);
}

static int page_put_kind(struct fleet_store *s, const struct summary *r, int layout, int node,
                         int *number, struct fleet_ack *ack, struct err *err)
{
    struct book_kind k = {layout, r->metrics_version, r->n_ranks, "", "", ""};
    bool fresh;
    snprintf(k.benchmark, sizeof k.benchmark, "%s", r->benchmark);
    snprintf(k.method, sizeof k.method, "%s", r->method);
    snprintf(k.variant, sizeof k.variant, "%s", r->variant);
    *number = book_kind(&s->book, &k, &fresh, err);
    if (*number < 0 || !fresh)
        return *number < 0 ? -1 : 0;
    const struct fleet_cell row[] = {
        CELL_I(*number),   CELL_I(node),        CELL_I(layout),   CELL_I(k.metrics_version),
        CELL_I(k.n_ranks), CELL_T(k.benchmark), CELL_T(k.method), CELL_T(k.variant)};
    count_new(s, node, ack);
    return fleet_exec(s,
                      "INSERT INTO kind (id, origin, layout, metrics_version, n_ranks, benchmark, "
                      "method, variant) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                      row, COUNT_OF(row), err);
}

static int page_put_machine(struct fleet_store *s, const struct summary *r, int node, int *number,
                            struct fleet_ack *ack, struct err *err)
{
    struct book_machine m;
    bool fresh;
    snprintf(m.hash[FLEET_CLASS], sizeof m.hash[0], "%s", r->class_hash);
    snprintf(m.hash[FLEET_CONFIG], sizeof m.hash[0], "%s", r->config_hash);
    snprintf(m.hash[FLEET_TOPOLOGY], sizeof m.hash[0], "%s", r->topology_hash);
    *number = book_machine(&s->book, &m, &fresh, err);
    if (*number < 0 || !fresh)
        return *number < 0 ? -1 : 0;
    const struct fleet_cell row[] = {CELL_I(*number), CELL_I(node), CELL_T(m.hash[FLEET_CLASS]),
                                     CELL_T(m.hash[FLEET_CONFIG]), CELL_T(m.hash[FLEET_TOPOLOGY])};
    count_new(s, node, ack);
    return fleet_exec(s,
                      "INSERT INTO machine (id, origin, class, config, topology) "
                      "VALUES ($1, $2, $3, $4, $5)",
                      row, COUNT_OF(row), err);
}

// A node has no more spans than kinds, but for the classes of machines that it had.
static int page_put_span(struct fleet_store *s, const struct fleet_row *row, struct fleet_ack *ack,
                         struct err *err)
{
    int month = month_of(row->at_ms);
    const struct book_span span = {.kind = row->kind,
                                   .class = s->book.machine[row->machine - 1].class,
                                   .first = month,
                                   .last = month,
                                   .dirty = true};
    if (book_span(&s->book, row->node, &span, err) < 0)
        return -1;
    if (s->book.node[row->node - 1].n_spans > FLEET_STORE_NEW_MAX)
        ack->outcome = FLEET_CROWDED;
    return 0;
}

int spans_flush(struct fleet_store *s, int node, struct err *err)
{
    struct book_node *n = &s->book.node[node - 1];
    for (int i = 0; i < n->n_spans; i++) {
        struct book_span *p = &n->span[i];
        const struct fleet_cell row[] = {CELL_I(node), CELL_I(p->kind), CELL_I(p->class),
                                         CELL_I(p->first), CELL_I(p->last)};
        if (p->dirty &&
            fleet_exec(s,
                       "INSERT INTO span (node, kind, class, first_month, last_month) "
                       "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (node, kind, class) DO UPDATE "
                       "SET first_month = excluded.first_month, last_month = excluded.last_month",
                       row, COUNT_OF(row), err) < 0)
            return -1;
        p->dirty = false;
    }
    return 0;
}

int rows_flush(struct fleet_store *s, struct err *err)
{
    int n = s->n_rows;
    s->n_rows = 0;
    s->n_put += n;
    s->n_arrived += n;
    for (int i = 0; i < n; i++)
        s->rows[i].arrival = ++s->book.arrived;
    return n ? s->engine->put_rows(s->db, s->rows, n, err) : 0;
}

int rows_room(struct fleet_store *s, int n, struct err *err)
{
    return s->n_rows + n > STORE_ROWS ? rows_flush(s, err) : 0;
}

static void row_dates(struct fleet_row *row, const struct summary *r, int64_t received_ms)
{
    int64_t latest = received_ms + FLEET_STORE_AHEAD_MS;
    row->received_ms = received_ms;
    row->finished_ms = r->finished_ms > latest ? received_ms : r->finished_ms;
    row->at_ms = r->measured_ms > 0 ? r->measured_ms : row->finished_ms;
    row->at_ms = row->at_ms > 0 ? row->at_ms : received_ms;
    if (r->measured_ms <= 0)
        row->flags |= ROW_UNDATED;
    if (row->at_ms > latest) {
        row->at_ms = received_ms;
        row->flags |= ROW_AHEAD;
    }
}

static struct fleet_row row_of(const struct summary *r, const struct fleet_page *p, int node,
                               int feed)
{
    struct fleet_row row = {.node = node,
                            .feed = feed,
                            .seq = p->collector ? r->node_seq : r->seq,
                            .run = r->id,
                            .state = r->state,
                            .flags = r->imported * ROW_IMPORTED | r->forced * ROW_FORCED,
                            .disturbed = -1,
                            .seconds = r->duration_s,
                            .label = r->label,
                            .v = r->values,
                            .lo = r->lo,
                            .hi = r->hi};
    if (!isnan(r->disturbed))
        row.disturbed = (int)lround(r->disturbed * 1e4);
    if (r->layout >= 0)
        row.n = p->page->layouts[r->layout].n;
    row_dates(&row, r, p->received_ms);
    return row;
}

static bool run_is_of(const struct summary *r, const struct fleet_page *p)
{
    return !*r->node || same_name(r->node, p->name);
}

int page_put_run(struct fleet_store *s, const struct summary *r, const struct fleet_page *p,
                 int node, int feed, struct fleet_ack *ack, struct err *err)
{
    struct fleet_row row = row_of(r, p, node, feed);
    int layout = r->layout < 0 ? 0 : s->layouts[r->layout];
    if (r->layout >= 0 && !layout) {
        if (page_put_layout(s, &p->page->layouts[r->layout], node, &layout, ack, err) < 0)
            return -1;
        s->layouts[r->layout] = layout;
    }
    if (page_put_kind(s, r, layout, node, &row.kind, ack, err) < 0 ||
        page_put_machine(s, r, node, &row.machine, ack, err) < 0 ||
        page_put_span(s, &row, ack, err) < 0)
        return -1;
    s->rows[s->n_rows++] = row;
    return archive_row(s, &row, err);
}

// A node's set-ups, as rollouts are read from them. Runs come in the order in which they were
// measured; one that a clock dates before the present set-up began says nothing about it.
int put_setup(struct fleet_store *s, const struct fleet_row *row, struct err *err)
{
    struct book_node *n = &s->book.node[row->node - 1];
    bool known = *s->book.machine[row->machine - 1].hash[FLEET_CONFIG];
    if (!known || row->flags & ROW_IMPORTED || row->machine == n->machine ||
        (n->machine && row->at_ms <= n->setup_ms))
        return 0;
    const struct fleet_cell until[] = {CELL_I(row->at_ms), CELL_I(row->node), CELL_I(n->setup_ms)};
    const struct fleet_cell fresh[] = {CELL_I(row->node), CELL_I(row->at_ms), CELL_I(row->machine)};
    if (n->machine &&
        fleet_exec(s, "UPDATE setup SET until_ms = $1 WHERE node = $2 AND from_ms = $3", until,
                   COUNT_OF(until), err) < 0)
        return -1;
    n->machine = row->machine;
    n->setup_ms = row->at_ms;
    return fleet_exec(s, "INSERT INTO setup (node, from_ms, machine) VALUES ($1, $2, $3)", fresh,
                      COUNT_OF(fresh), err);
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
        if (!run_is_of(r, p))
            ack->others++;
        else if (known[i])
            continue; // it came through another collector
        else if (page_put_run(s, r, p, node, feed, ack, err) < 0)
            return -1;
    }
    if (ack->outcome == FLEET_CROWDED)
        s->n_rows = before;
    ack->stored = s->n_rows - before;
    for (int i = before; i < s->n_rows; i++)
        if (put_setup(s, &s->rows[i], err) < 0)
            return -1;
    return spans_flush(s, node, err);
}

// ---- Pages

int store_node(struct fleet_store *s, const char *name, int64_t since_ms, struct err *err)
{
    bool fresh;
    int number = book_node(&s->book, name, &fresh, err);
    if (number < 0 || !fresh)
        return number;
    const struct fleet_cell row[] = {CELL_I(number), CELL_T(name), CELL_I(since_ms)};
    s->changed = true;
    return fleet_exec(s, "INSERT INTO node (id, name, since_ms) VALUES ($1, $2, $3)", row,
                      COUNT_OF(row), err) < 0
               ? -1
               : number;
}

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
    for (int i = 0; i < n; i++)
        if ((pages[i].collector ? put_collected : put_page)(s, &pages[i], &acks[i], err) < 0)
            return -1;
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

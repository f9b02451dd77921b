// SPDX-License-Identifier: Apache-2.0
// Rows become pages again. An engine gives rows by node and kind, the newest first; the layouts of
// a page are the book's own, so that no name of a metric is copied.
#include "fleet/store/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "base/str.h"

struct window_page {
    struct fleet_store *store;
    int (*fn)(void *ctx, const struct summary_page *page, struct err *err);
    void *ctx;
    int node;   // 0: none yet
    bool ended; // fn wants no more
    struct summary_page page;
    bool values_only;
    int room;      // runs
    float *values; // of all runs; owned
    size_t n_values, values_room;
    size_t *at; // [run]: its place in `values`; owned
};

static const char *book_name(const struct interned *list, int number)
{
    return number >= 1 && number <= list->n ? list->list[number - 1] : NULL;
}

static void window_page_fini(struct window_page *w)
{
    free(w->page.runs);
    free(w->values);
    free(w->at);
}

// The pointers are set when no array moves any more.
static int window_emit(struct window_page *w, struct err *err)
{
    struct summary_page *p = &w->page;
    if (!w->node)
        return 0;
    for (int i = 0; i < p->n_runs; i++) {
        struct summary *r = &p->runs[i];
        int n = r->layout < 0 ? 0 : p->layouts[r->layout].n;
        r->values = w->values + w->at[i];
        r->lo = r->values + n;
        r->hi = r->lo + n;
    }
    int result = w->fn(w->ctx, p, err);
    p->n_runs = 0;
    w->n_values = 0;
    w->node = 0;
    w->ended = result > 0;
    return result < 0 ? -1 : 0;
}

static int window_room(struct window_page *w, int n, struct err *err)
{
    if (w->page.n_runs == w->room) {
        int room = w->room ? 2 * w->room : 32;
        struct summary *runs = realloc(w->page.runs, room * sizeof *runs);
        w->page.runs = runs ? runs : w->page.runs;
        size_t *at = realloc(w->at, room * sizeof *at);
        w->at = at ? at : w->at;
        if (!runs || !at)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for a node's runs");
        w->room = room;
    }
    if (w->n_values + 3 * n + 1 > w->values_room) {
        size_t room = 2 * (w->n_values + 3 * n + 1);
        float *values = realloc(w->values, room * sizeof *values);
        if (!values)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for a node's runs");
        w->values = values;
        w->values_room = room;
    }
    return 0;
}

static int row_damaged(const struct fleet_row *row, struct err *err)
{
    return err_set(err, ERR_DAMAGED, "", "run %lld of feed %d does not fit the tables beside it",
                   (long long)row->seq, row->feed);
}

static void summary_of(const struct book *b, const struct fleet_row *row, struct summary *s)
{
    const struct book_kind *k = &b->kind[row->kind - 1];
    const struct book_machine *m = &b->machine[row->machine - 1];
    *s = (struct summary){.seq = row->seq,
                          .id = row->run,
                          .metrics_version = k->metrics_version,
                          .state = (enum run_state)row->state,
                          .imported = row->flags & ROW_IMPORTED,
                          .forced = row->flags & ROW_FORCED,
                          .measured_ms = row->flags & ROW_UNDATED ? 0 : row->at_ms,
                          .finished_ms = row->finished_ms,
                          .duration_s = row->seconds,
                          .n_ranks = k->n_ranks,
                          .disturbed = row->disturbed < 0 ? (double)NAN : row->disturbed * 1e-4,
                          .layout = k->layout - 1};
    snprintf(s->node, sizeof s->node, "%s", book_name(&b->nodes, row->node));
    snprintf(s->label, sizeof s->label, "%s", row->label);
    memcpy(s->benchmark, k->benchmark, sizeof s->benchmark);
    memcpy(s->method, k->method, sizeof s->method);
    memcpy(s->variant, k->variant, sizeof s->variant);
    memcpy(s->class_hash, m->hash[FLEET_CLASS], sizeof s->class_hash);
    memcpy(s->config_hash, m->hash[FLEET_CONFIG], sizeof s->config_hash);
    memcpy(s->topology_hash, m->hash[FLEET_TOPOLOGY], sizeof s->topology_hash);
}

static bool row_fits(const struct book *b, const struct fleet_row *row)
{
    if (row->node < 1 || row->node > b->nodes.n || row->kind < 1 || row->kind > b->kinds.n ||
        row->machine < 1 || row->machine > b->machines.n || row->state < 0 ||
        row->state >= RUN_STATES)
        return false;
    int layout = b->kind[row->kind - 1].layout;
    return row->n == (layout ? b->layout[layout - 1].n : 0);
}

int row_summary(const struct book *b, const struct fleet_row *row, struct summary *out,
                struct err *err)
{
    if (!row_fits(b, row))
        return row_damaged(row, err);
    summary_of(b, row, out);
    out->values = row->v;
    out->lo = row->lo;
    out->hi = row->hi;
    return 0;
}

static int window_row(void *ctx, const struct fleet_row *row, struct err *err)
{
    struct window_page *w = ctx;
    const struct book *b = &w->store->book;
    if (!row_fits(b, row))
        return row_damaged(row, err);
    if (row->node != w->node && window_emit(w, err) < 0)
        return -1;
    if (w->ended)
        return 0; // an engine ends with what it has begun
    if (window_room(w, row->n, err) < 0)
        return -1;
    if (row->node != w->node) {
        w->node = row->node;
        w->page.next = row->node;
        snprintf(w->page.node, sizeof w->page.node, "%s", book_name(&b->nodes, row->node));
    }
    float *to = w->values + w->n_values;
    if (row->n) {
        memcpy(to, row->v, row->n * sizeof *to);
        for (int i = row->n; i < 3 * row->n && !row->lo; i++)
            to[i] = NAN;
        if (row->lo)
            memcpy(to + row->n, row->lo, row->n * sizeof *to);
        if (row->hi)
            memcpy(to + 2 * row->n, row->hi, row->n * sizeof *to);
    }
    w->at[w->page.n_runs] = w->n_values;
    w->n_values += 3 * row->n;
    struct summary *run = &w->page.runs[w->page.n_runs++];
    summary_of(b, row, run);
    if (w->values_only) {
        run->duration_s = NAN;
        run->finished_ms = 0;
        run->label[0] = '\0';
    }
    return 0;
}

// Flags per number of a dictionary. NULL in *set: all of them are wanted.
static int pick_kinds(const struct book *b, const char *benchmark, bool **set, struct err *err)
{
    if (!benchmark)
        return 0;
    *set = calloc(b->kinds.n + 1, sizeof **set);
    if (!*set)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to read");
    for (int i = 0; i < b->kinds.n; i++)
        (*set)[i] = strcmp(b->kind[i].benchmark, benchmark) == 0;
    return 0;
}

static int pick_machines(const struct book *b, const char *class, bool **set, struct err *err)
{
    if (!class)
        return 0;
    *set = calloc(b->machines.n + 1, sizeof **set);
    if (!*set)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to read");
    for (int i = 0; i < b->machines.n; i++)
        (*set)[i] = str_starts(b->machine[i].hash[FLEET_CLASS], class);
    return 0;
}

static int pick_nodes(const struct book *b, const char *one, const struct nodeset *wanted,
                      bool **set, struct err *err)
{
    if (!one && !wanted)
        return 0;
    *set = calloc(b->nodes.n + 1, sizeof **set);
    if (!*set)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to read");
    for (int i = 0; i < b->nodes.n; i++)
        (*set)[i] = (!one || strcmp(b->nodes.list[i], one) == 0) &&
                    (!wanted || nodeset_has(wanted, b->nodes.list[i]));
    return 0;
}

struct held_nodes {
    const bool *wanted; // [number - 1]; NULL: all
    bool *nodes;
    int n;
};

static int held_node(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct held_nodes *h = ctx;
    int at = (int)row[0].i - 1;
    (void)err;
    if (at >= 0 && at < h->n)
        h->nodes[at] = !h->wanted || h->wanted[at];
    return 0;
}

// The number of the one class whose hash begins so.
static int number_of_class(const struct interned *classes, const char *prefix, struct err *err)
{
    int found = 0;
    for (int i = 0; i < classes->n; i++) {
        if (!str_starts(classes->list[i], prefix))
            continue;
        if (found)
            return fleet_class_ambiguous(prefix, err);
        found = i + 1;
    }
    return found ? found : fleet_class_unknown(prefix, err);
}

// Nodes that never had a run of the class are not looked through. The number of the class.
static int pick_class(struct fleet_store *s, const char *hash, bool **nodes, struct err *err)
{
    const struct book *b = &s->book;
    int class = number_of_class(&b->classes, hash, err);
    CLEANUP_MEM bool *held = calloc(b->nodes.n + 1, sizeof *held);
    struct held_nodes h = {*nodes, held, b->nodes.n};
    if (!held)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to read");
    if (class < 0)
        return -1;
    if (s->engine->query(s->db, "SELECT DISTINCT node FROM span WHERE class = $1", &CELL_I(class),
                         1, held_node, &h, err) < 0)
        return -1;
    free(*nodes);
    *nodes = steal_ptr(&held);
    return class;
}

// The next stretch of nodes that has a wanted one, of at most `most`. False: there is none.
static bool next_nodes(struct fleet_reading *r, int n_nodes, int most)
{
    r->first = r->last + 1;
    while (r->first <= n_nodes && r->nodes && !r->nodes[r->first - 1])
        r->first++;
    r->last = n_nodes - r->first < most ? n_nodes : r->first + most - 1;
    while (r->last > r->first && r->nodes && !r->nodes[r->last - 1])
        r->last--;
    return r->first <= n_nodes;
}

static int window_read(struct fleet_store *s, const struct fleet_window *w,
                       struct window_page *page, struct err *err)
{
    enum { PARTIAL_NODES = 32 };
    const struct book *b = &s->book;
    CLEANUP_MEM bool *nodes = NULL;
    CLEANUP_MEM bool *kinds = NULL;
    CLEANUP_MEM bool *machines = NULL;
    struct fleet_reading r = {.last = w->after,
                              .n_kinds = b->kinds.n,
                              .n_machines = b->machines.n,
                              .since_ms = w->since_ms,
                              .until_ms = w->until_ms ? w->until_ms : INT64_MAX,
                              .seq = w->seq,
                              .newest = w->newest,
                              .own = w->own,
                              .measured = w->measured,
                              .values_only = w->values_only};
    if (pick_nodes(b, w->node, w->nodes, &nodes, err) < 0 ||
        pick_kinds(b, w->benchmark, &kinds, err) < 0 ||
        pick_machines(b, w->class_hash, &machines, err) < 0)
        return -1;
    if (w->class_hash && (r.class = pick_class(s, w->class_hash, &nodes, err)) < 0)
        return -1;
    r.nodes = nodes;
    r.kind = kinds;
    r.machine = machines;
    page->page.n_layouts = b->layouts.n;
    page->page.layouts = b->layout;
    page->page.last = b->nodes.n;
    int most = w->partial ? PARTIAL_NODES : b->nodes.n;
    while (!page->ended && next_nodes(&r, b->nodes.n, most))
        if (s->engine->read(s->db, &r, window_row, page, err) < 0 || window_emit(page, err) < 0)
            return -1;
    return 0;
}

int fleet_store_window(struct fleet_store *s, const struct fleet_window *w,
                       int (*fn)(void *ctx, const struct summary_page *page, struct err *err),
                       void *ctx, struct err *err)
{
    struct window_page page CLEANUP(window_page_fini) = {
        .store = s, .fn = fn, .ctx = ctx, .values_only = w->values_only};
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(s, window_read(s, w, &page, err), err);
}

// ---- A metric of a node

struct spots {
    struct fleet_store *store;
    int *column; // [kind - 1]: of the metric; -1: it has none; owned
    int n, room;
    struct spot {
        int64_t at_ms, seq, run;
        int feed, kind, machine, flags, disturbed;
        float value, lo, hi;
    } * list; // owned
};

static void spots_fini(struct spots *l)
{
    free(l->column);
    free(l->list);
}

static int spots_row(void *ctx, const struct fleet_row *row, struct err *err)
{
    struct spots *l = ctx;
    if (!row_fits(&l->store->book, row))
        return row_damaged(row, err);
    if (row->state != RUN_SUCCEEDED)
        return 0;
    if (l->n == l->room) {
        int room = l->room ? 2 * l->room : 256;
        void *list = realloc(l->list, room * sizeof *l->list);
        if (!list)
            return err_set(err, ERR_NO_MEMORY, "", "no memory for a node's runs");
        l->list = list;
        l->room = room;
    }
    int at = l->column[row->kind - 1];
    l->list[l->n++] = (struct spot){.at_ms = row->at_ms,
                                    .seq = row->seq,
                                    .run = row->run,
                                    .feed = row->feed,
                                    .kind = row->kind,
                                    .machine = row->machine,
                                    .flags = row->flags,
                                    .disturbed = row->disturbed,
                                    .value = row->v[at],
                                    .lo = row->lo[at],
                                    .hi = row->hi[at]};
    return 0;
}

static int spots_order(const void *a, const void *b)
{
    const struct spot *p = a, *q = b;
    const int64_t one[] = {p->at_ms, p->seq, p->feed}, other[] = {q->at_ms, q->seq, q->feed};
    for (size_t i = 0; i < COUNT_OF(one); i++)
        if (one[i] != other[i])
            return one[i] < other[i] ? -1 : 1;
    return 0;
}

// Which kinds have the metric, and where.
static int spots_columns(struct spots *l, const char *metric, bool *kinds, struct err *err)
{
    const struct book *b = &l->store->book;
    l->column = calloc(b->kinds.n + 1, sizeof *l->column);
    if (!l->column)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to read");
    for (int i = 0; i < b->kinds.n; i++) {
        int layout = b->kind[i].layout;
        for (int k = 0; layout && k < b->layout[layout - 1].n && !kinds[i]; k++)
            if (strcmp(b->layout[layout - 1].list[k].name, metric) == 0) {
                kinds[i] = true;
                l->column[i] = k;
            }
    }
    return 0;
}

static int spots_emit(const struct spots *l,
                      int (*fn)(void *ctx, const struct fleet_store_point *p, struct err *err),
                      void *ctx, struct err *err)
{
    const struct book *b = &l->store->book;
    for (int i = 0; i < l->n; i++) {
        const struct spot *p = &l->list[i];
        const struct book_kind *k = &b->kind[p->kind - 1];
        const struct book_machine *m = &b->machine[p->machine - 1];
        struct fleet_store_point out = {
            .measured_ms = p->at_ms,
            .seq = p->seq,
            .id = p->run,
            .value = p->value,
            .lo = p->lo,
            .hi = p->hi,
            .unit = b->layout[k->layout - 1].list[l->column[p->kind - 1]].unit,
            .benchmark = k->benchmark,
            .variant = k->variant,
            .method = k->method,
            .class_hash = m->hash[FLEET_CLASS],
            .config_hash = m->hash[FLEET_CONFIG],
            .metrics_version = k->metrics_version,
            .forced = p->flags & ROW_FORCED,
            .imported = p->flags & ROW_IMPORTED,
            .disturbed = p->disturbed < 0 ? (double)NAN : p->disturbed * 1e-4};
        if (fn(ctx, &out, err) < 0)
            return -1;
    }
    return 0;
}

static int spots_read(struct fleet_store *s, const struct fleet_line *line, struct spots *l,
                      struct err *err)
{
    const struct book *b = &s->book;
    int node = interned_find(&b->nodes, line->node) + 1;
    struct fleet_reading r = {.first = node,
                              .last = node,
                              .n_kinds = b->kinds.n,
                              .since_ms = line->since_ms,
                              .until_ms = line->until_ms ? line->until_ms : INT64_MAX};
    CLEANUP_MEM bool *kinds = calloc(b->kinds.n + 1, sizeof *kinds);
    if (!kinds)
        return err_set(err, ERR_NO_MEMORY, "", "no memory to read");
    if (!node || spots_columns(l, line->metric, kinds, err) < 0)
        return node ? -1 : 0;
    r.kind = kinds;
    if (s->engine->read(s->db, &r, spots_row, l, err) < 0)
        return -1;
    if (l->n)
        qsort(l->list, l->n, sizeof *l->list, spots_order);
    return 0;
}

int fleet_store_series(struct fleet_store *s, const struct fleet_line *line,
                       int (*fn)(void *ctx, const struct fleet_store_point *p, struct err *err),
                       void *ctx, struct err *err)
{
    struct spots l CLEANUP(spots_fini) = {.store = s};
    if (fleet_begin(s, err) < 0)
        return -1;
    int result = spots_read(s, line, &l, err);
    if (result == 0)
        result = spots_emit(&l, fn, ctx, err);
    return fleet_end(s, result, err);
}

// ---- Set-ups

struct setup_reader {
    const struct book *book;
    const bool *nodes; // [number - 1]; NULL: all
    int (*fn)(void *ctx, const struct fleet_store_setup *p, struct err *err);
    void *ctx;
};

static int setup_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    const struct setup_reader *r = ctx;
    const struct book *b = r->book;
    if (row[0].i < 1 || row[0].i > b->nodes.n || row[3].i < 1 || row[3].i > b->machines.n)
        return err_set(err, ERR_DAMAGED, "", "table setup: a row has no node or no machine");
    if (r->nodes && !r->nodes[row[0].i - 1])
        return 0;
    const struct book_machine *m = &b->machine[row[3].i - 1];
    return r->fn(r->ctx,
                 &(struct fleet_store_setup){.node = b->nodes.list[row[0].i - 1],
                                             .class_hash = m->hash[FLEET_CLASS],
                                             .config_hash = m->hash[FLEET_CONFIG],
                                             .from_ms = row[1].i,
                                             .until_ms = row[2].i},
                 err);
}

int fleet_store_setups(struct fleet_store *s, const struct nodeset *nodes,
                       int (*fn)(void *ctx, const struct fleet_store_setup *p, struct err *err),
                       void *ctx, struct err *err)
{
    static const char sql[] = "SELECT node, from_ms, coalesce(until_ms, 0), machine FROM setup "
                              "WHERE node BETWEEN $1 AND $2 ORDER BY node, from_ms";
    CLEANUP_MEM bool *wanted = NULL;
    if (fleet_begin(s, err) < 0)
        return -1;
    int result = pick_nodes(&s->book, NULL, nodes, &wanted, err);
    int first = 1, last = s->book.nodes.n;
    while (wanted && first <= last && !wanted[first - 1])
        first++;
    while (wanted && first <= last && !wanted[last - 1])
        last--;
    const struct fleet_cell in[] = {CELL_I(first), CELL_I(last)};
    struct setup_reader r = {&s->book, wanted, fn, ctx};
    if (result == 0)
        result = s->engine->query(s->db, sql, in, COUNT_OF(in), setup_row, &r, err);
    return fleet_end(s, result, err);
}

// ---- Feeds

struct feed_reader {
    int (*fn)(void *ctx, const struct fleet_feed *f, struct err *err);
    void *ctx;
};

static int feed_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct feed_reader *r = ctx;
    struct fleet_feed f = {.name = row[0].t,
                           .history = row[1].t,
                           .version = row[2].t,
                           .twin = row[3].t,
                           .state = (enum fleet_feed_state)row[4].i,
                           .next = row[5].i,
                           .first_ms = row[6].i,
                           .last_ms = row[7].i,
                           .skew_ms = row[8].i};
    return r->fn(r->ctx, &f, err);
}

int fleet_store_feeds(struct fleet_store *s, bool closed,
                      int (*fn)(void *ctx, const struct fleet_feed *f, struct err *err), void *ctx,
                      struct err *err)
{
    static const char sql[] =
        "SELECT node.name, coalesce(feed.history, ''), coalesce(feed.version, ''), "
        "coalesce(twin.name, ''), coalesce(feed.state, 0), coalesce(feed.next, 0), "
        "coalesce(feed.first_ms, node.since_ms), coalesce(feed.last_ms, 0), "
        "coalesce(feed.skew_ms, 0) FROM node "
        "LEFT JOIN feed ON feed.node = node.id AND (feed.state <> 1 OR CAST($1 AS integer) = 1) "
        "LEFT JOIN node AS twin ON twin.id = feed.twin ORDER BY node.id, feed.id";
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(s,
                     s->engine->query(s->db, sql, &CELL_I(closed), 1, feed_row,
                                      &(struct feed_reader){fn, ctx}, err),
                     err);
}

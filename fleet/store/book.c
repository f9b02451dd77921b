// SPDX-License-Identifier: Apache-2.0
// Numbers are given in order and never taken back, so a number and a place in an array are the same
// thing. A table with a gap was changed by another program.
#include "fleet/store/book.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/jsonw.h"

struct book_load {
    struct book *book;
    int rows; // of the table, so far
};

void book_fini(struct book *b)
{
    for (int i = 0; i < b->layouts.n; i++)
        free(b->layout[i].list);
    for (int i = 0; i < b->nodes.n; i++)
        free(b->node[i].span);
    struct interned *const lists[] = {&b->nodes,    &b->feeds,   &b->kinds,
                                      &b->machines, &b->layouts, &b->classes};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        interned_fini(lists[i]);
    free(b->node);
    free(b->feed);
    free(b->kind);
    free(b->machine);
    free(b->layout);
    *b = (struct book){0};
}

// Room for one more, before it is added.
static int book_room(void *array, int *room, int n, size_t bytes, struct err *err)
{
    if (n < *room)
        return 0;
    int more = *room ? 2 * *room : 16;
    void *made = realloc(*(void **)array, more * bytes);
    if (!made)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the store");
    *(void **)array = made;
    *room = more;
    return 0;
}

static int book_add(struct interned *list, const char *key, void *array, int *room, size_t bytes,
                    bool known_only, bool *fresh, struct err *err)
{
    int n = list->n;
    *fresh = false;
    if (known_only)
        return interned_find(list, key) + 1;
    if (book_room(array, room, n, bytes, err) < 0)
        return -1;
    int at = interned_add(list, key, err);
    if (at < 0)
        return -1;
    *fresh = at == n;
    if (*fresh)
        memset(*(char **)array + n * bytes, 0, bytes);
    return at + 1;
}

int book_node(struct book *b, const char *name, bool *fresh, struct err *err)
{
    return book_add(&b->nodes, name, &b->node, &b->node_room, sizeof *b->node, false, fresh, err);
}

int book_feed(struct book *b, const char *history, bool *fresh, struct err *err)
{
    return book_add(&b->feeds, history, &b->feed, &b->feed_room, sizeof *b->feed, false, fresh,
                    err);
}

int book_kind(struct book *b, const struct book_kind *k, bool known_only, bool *fresh,
              struct err *err)
{
    char key[400];
    snprintf(key, sizeof key, "%d %d %lld %s %s %s", k->layout, k->metrics_version,
             (long long)k->n_ranks, k->benchmark, k->method, k->variant);
    int number =
        book_add(&b->kinds, key, &b->kind, &b->kind_room, sizeof *b->kind, known_only, fresh, err);
    if (number > 0 && *fresh)
        b->kind[number - 1] = *k;
    return number;
}

int book_machine(struct book *b, const struct book_machine *m, bool known_only, bool *fresh,
                 struct err *err)
{
    char key[3 * 66];
    snprintf(key, sizeof key, "%s %s %s", m->hash[0], m->hash[1], m->hash[2]);
    int number = book_add(&b->machines, key, &b->machine, &b->machine_room, sizeof *b->machine,
                          known_only, fresh, err);
    if (number < 0 || !*fresh)
        return number;
    int class = interned_add(&b->classes, m->hash[FLEET_CLASS], err);
    if (class < 0)
        return -1;
    b->machine[number - 1] = *m;
    b->machine[number - 1].class = class + 1;
    return number;
}

int book_span(struct book *b, int node, const struct book_span *s, struct err *err)
{
    struct book_node *n = &b->node[node - 1];
    struct book_span *at = n->span, *end = n->span + n->n_spans;
    while (at < end && (at->kind != s->kind || at->class != s->class))
        at++;
    if (at < end && at->first <= s->first && s->last <= at->last)
        return 1;
    if (at < end) {
        at->first = s->first < at->first ? s->first : at->first;
        at->last = s->last > at->last ? s->last : at->last;
        at->dirty = true;
        return 1;
    }
    if (n->n_spans >= FLEET_STORE_NEW_MAX)
        return 0;
    if (book_room(&n->span, &n->spans_room, n->n_spans, sizeof *n->span, err) < 0)
        return -1;
    n->span[n->n_spans++] = *s;
    return 1;
}

static int layout_copy(struct book *b, int number, const struct summary_layout *l, struct err *err)
{
    struct summary_layout *to = &b->layout[number - 1];
    to->list = calloc(l->n + 1, sizeof *to->list);
    if (!to->list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the store");
    memcpy(to->list, l->list, l->n * sizeof *to->list);
    to->n = l->n;
    return number;
}

int book_layout(struct book *b, const struct summary_layout *l, struct buf *json, bool known_only,
                bool *fresh, struct err *err)
{
    char hash[65];
    buf_reset(json);
    struct jsonw w = jsonw_to(json);
    jsonw_array(&w, NULL);
    for (int i = 0; i < l->n; i++) {
        jsonw_array(&w, NULL);
        jsonw_text(&w, NULL, l->list[i].name);
        jsonw_text(&w, NULL, l->list[i].unit);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    if (!buf_ok(json))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the store");
    text_hash(buf_text(json), hash);
    int number = book_add(&b->layouts, hash, &b->layout, &b->layout_room, sizeof *b->layout,
                          known_only, fresh, err);
    return number < 0 || !*fresh ? number : layout_copy(b, number, l, err);
}

// ---- Reading the tables

// Every row has the next number, and is new.
static int book_check(const struct book_load *l, int64_t id, int number, bool fresh,
                      const char *table, struct err *err)
{
    if (number < 0)
        return -1;
    return fresh && id == number && id == l->rows
               ? 0
               : err_set(err, ERR_DAMAGED, "", "table %s: row %lld is not the next one", table,
                         (long long)id);
}

static int load_node(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct book_load *l = ctx;
    bool fresh;
    l->rows++;
    int number = book_node(l->book, row[1].t, &fresh, err);
    return book_check(l, row[0].i, number, fresh, "node", err);
}

static void brought(struct book *b, int64_t node)
{
    if (node >= 1 && node <= b->nodes.n)
        b->node[node - 1].brought++;
}

static int layout_parse(struct book *b, const char *json, const char *hash, struct buf *text,
                        bool *fresh, struct err *err)
{
    CLEANUP_JSON struct json *list = json_parse(json, strlen(json), err);
    int n = json_count(list), at = 0;
    if (!list)
        return -1;
    CLEANUP_MEM struct summary_metric *metrics = calloc(n + 1, sizeof *metrics);
    if (!metrics)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the store");
    for (const struct json *m = json_first(list); m; m = json_next(m), at++) {
        const char *name = json_text(json_first(m)), *unit = json_text(json_next(json_first(m)));
        snprintf(metrics[at].name, sizeof metrics[at].name, "%s", name ? name : "");
        snprintf(metrics[at].unit, sizeof metrics[at].unit, "%s", unit ? unit : "");
    }
    int number = book_layout(b, &(struct summary_layout){n, metrics}, text, false, fresh, err);
    return number > 0 && *fresh && strcmp(b->layouts.list[number - 1], hash) != 0
               ? err_set(err, ERR_DAMAGED, "", "table layout: row %d is not what its hash says",
                         number)
               : number;
}

static int load_layout(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct book_load *l = ctx;
    CLEANUP_BUF struct buf text = BUF_INIT;
    bool fresh;
    l->rows++;
    int number = layout_parse(l->book, row[3].t, row[2].t, &text, &fresh, err);
    if (book_check(l, row[0].i, number, fresh, "layout", err) < 0)
        return -1;
    brought(l->book, row[1].i);
    return 0;
}

static int load_kind(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct book_load *l = ctx;
    struct book_kind k = {
        .layout = (int)row[2].i, .metrics_version = (int)row[3].i, .n_ranks = row[4].i};
    bool fresh;
    l->rows++;
    snprintf(k.benchmark, sizeof k.benchmark, "%s", row[5].t);
    snprintf(k.method, sizeof k.method, "%s", row[6].t);
    snprintf(k.variant, sizeof k.variant, "%s", row[7].t);
    if (k.layout < 0 || k.layout > l->book->layouts.n)
        return err_set(err, ERR_DAMAGED, "", "table kind: row %lld has no layout",
                       (long long)row[0].i);
    int number = book_kind(l->book, &k, false, &fresh, err);
    if (book_check(l, row[0].i, number, fresh, "kind", err) < 0)
        return -1;
    brought(l->book, row[1].i);
    return 0;
}

static int load_machine(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct book_load *l = ctx;
    struct book_machine m;
    bool fresh;
    l->rows++;
    for (int i = 0; i < 3; i++)
        snprintf(m.hash[i], sizeof m.hash[i], "%s", row[2 + i].t);
    int number = book_machine(l->book, &m, false, &fresh, err);
    if (book_check(l, row[0].i, number, fresh, "machine", err) < 0)
        return -1;
    brought(l->book, row[1].i);
    return 0;
}

static int load_feed(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct book_load *l = ctx;
    struct book *b = l->book;
    bool fresh;
    l->rows++;
    int number = book_feed(b, row[3].t, &fresh, err);
    if (book_check(l, row[0].i, number, fresh, "feed", err) < 0)
        return -1;
    struct book_feed *f = &b->feed[number - 1];
    *f = (struct book_feed){.node = (int)row[1].i,
                            .twin = (int)row[2].i,
                            .next = row[4].i,
                            .was = row[4].i,
                            .last_ms = row[5].i,
                            .skew_ms = row[6].i,
                            .state = (enum fleet_feed_state)row[8].i,
                            .top = row[9].i,
                            .top_was = row[9].i};
    snprintf(f->version, sizeof f->version, "%s", row[7].t);
    if (f->node < 1 || f->node > b->nodes.n || f->twin < 0 || f->twin > b->nodes.n)
        return err_set(err, ERR_DAMAGED, "", "table feed: row %d has no node", number);
    if (f->state != FLEET_FEED_CLOSED)
        b->node[f->node - 1].feed = number;
    brought(b, f->node);
    return 0;
}

static int load_arrived(void *ctx, const struct fleet_cell *row, struct err *err)
{
    (void)err;
    ((struct book_load *)ctx)->book->arrived = row[0].i;
    return 0;
}

// In order of time, so that the newest set-up of a node stays.
static int load_setup(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct book *b = ((struct book_load *)ctx)->book;
    if (row[0].i < 1 || row[0].i > b->nodes.n || row[2].i < 1 || row[2].i > b->machines.n)
        return err_set(err, ERR_DAMAGED, "", "table setup: a row has no node or no machine");
    if (row[3].i < SETUP_GOOD_UNKNOWN || row[3].i > SETUP_GOOD_SEEN)
        return err_set(err, ERR_DAMAGED, "", "table setup: a row has another `good` than 0 to 2");
    struct book_node *n = &b->node[row[0].i - 1];
    n->setup_ms = row[1].i;
    n->machine = (int)row[2].i;
    n->good = (enum setup_good)row[3].i;
    return 0;
}

static int load_span(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct book *b = ((struct book_load *)ctx)->book;
    if (row[0].i < 1 || row[0].i > b->nodes.n || row[1].i < 1 || row[1].i > b->kinds.n ||
        row[2].i < 1 || row[2].i > b->classes.n)
        return err_set(err, ERR_DAMAGED, "", "table span: a row has no node, kind or class");
    const struct book_span span = {.kind = (int)row[1].i,
                                   .class = (int)row[2].i,
                                   .first = (int)row[3].i,
                                   .last = (int)row[4].i};
    return book_span(b, (int)row[0].i, &span, err) < 0 ? -1 : 0;
}

int book_read(struct book *b, const struct fleet_engine *e, void *db, bool writer, struct err *err)
{
    const struct interned none = {0};
    const struct {
        const char *sql;
        int (*fn)(void *ctx, const struct fleet_cell *row, struct err *err);
        const struct interned *list;
    } tables[] = {
        // Those from `feed` on are the writer's.
        {"SELECT id, name FROM node WHERE id > $1 ORDER BY id", load_node, &b->nodes},
        {"SELECT id, origin, hash, metrics FROM layout WHERE id > $1 ORDER BY id", load_layout,
         &b->layouts},
        {"SELECT id, origin, layout, metrics_version, n_ranks, benchmark, method, variant "
         "FROM kind WHERE id > $1 ORDER BY id",
         load_kind, &b->kinds},
        {"SELECT id, origin, class, config, topology FROM machine WHERE id > $1 ORDER BY id",
         load_machine, &b->machines},
        {"SELECT id, node, twin, history, next, last_ms, skew_ms, version, state, top FROM feed "
         "WHERE id > $1 ORDER BY id",
         load_feed, &b->feeds},
        {"SELECT node, from_ms, machine, good FROM setup WHERE node > $1 ORDER BY node, from_ms",
         load_setup, &none},
        {"SELECT node, kind, class, first_month, last_month FROM span WHERE node > $1", load_span,
         &none},
        {"SELECT value FROM meta WHERE name = 'arrived' AND value >= $1", load_arrived, &none},
    };
    enum { OF_READERS = 4 };
    for (size_t i = 0; i < (writer ? COUNT_OF(tables) : (size_t)OF_READERS); i++) {
        struct book_load l = {b, tables[i].list->n};
        if (e->query(db, tables[i].sql, &CELL_I(l.rows), 1, tables[i].fn, &l, err) < 0)
            return -1;
    }
    b->here = true;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Whose history a feed is, and which of its histories a node has now.
#include "fleet/store/parts.h"

#include <string.h>

#include "base/cleanup.h"

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
    return notes_are_sound(f);
}

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
    s->book.node[node - 1].brought++;
    return number;
}

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

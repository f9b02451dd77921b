// SPDX-License-Identifier: Apache-2.0
// Lists are few, and are found by their hash.
#include "analysis/peers/columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

int columns_search(const struct columns *c, int column)
{
    int lo = 0, hi = c->n - 1;
    while (lo <= hi) {
        int at = (lo + hi) / 2;
        if (c->list[at] == column)
            return at;
        if (c->list[at] < column)
            lo = at + 1;
        else
            hi = at - 1;
    }
    return -1;
}

int columns_map_room(struct columns_map *m, int n, struct err *err)
{
    if (n <= m->room)
        return 0;
    int *column = realloc(m->column, (size_t)n * sizeof *column);
    m->column = column ? column : m->column;
    int *from = realloc(m->from, (size_t)n * sizeof *from);
    m->from = from ? from : m->from;
    if (!column || !from)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d metrics", n);
    m->room = n;
    return 0;
}

static int by_column(const void *a, const void *b, void *column)
{
    const int x = *(const int *)a, y = *(const int *)b, *of = column;
    return of[x] != of[y] ? (of[x] > of[y]) - (of[x] < of[y]) : (x > y) - (x < y);
}

// The metrics that have a column, by that; of two with the same one the last. Returns how many.
static int sort_map(struct columns_map *m, int n)
{
    int found = 0, kept = 0, last = -1;
    bool sorted = true;
    for (int i = 0; i < n; i++) {
        if (m->column[i] < 0)
            continue;
        sorted = sorted && m->column[i] > last;
        last = m->column[i];
        m->from[found++] = i;
    }
    if (!sorted)
        qsort_r(m->from, (size_t)found, sizeof *m->from, by_column, m->column);
    for (int k = 0; k < found; k++) {
        if (kept && m->column[m->from[kept - 1]] == m->column[m->from[k]])
            kept--;
        m->from[kept++] = m->from[k];
    }
    return kept;
}

static bool is_list(const struct columns *c, const struct columns_map *m, int n, uint64_t hash)
{
    if (c->hash != hash || c->n != n)
        return false;
    for (int k = 0; k < n; k++)
        if (c->list[k] != m->column[m->from[k]])
            return false;
    return true;
}

static struct columns *add_columns(struct columns_lists *lists, int n)
{
    if (lists->n == lists->room) {
        int room = lists->room ? 2 * lists->room : 2;
        struct columns **list = realloc(lists->list, (size_t)room * sizeof *list);
        if (!list)
            return NULL;
        lists->list = list;
        lists->room = room;
    }
    struct columns *made = malloc(sizeof *made + (size_t)n * sizeof *made->list);
    if (made)
        lists->list[lists->n++] = made;
    return made;
}

int columns_map_to(struct columns_map *m, int n, struct columns_lists *lists, int *added,
                   struct err *err)
{
    const int kept = sort_map(m, n);
    uint64_t hash = 0;
    *added = 0;
    for (int k = 0; k < kept; k++)
        hash = hash_mix(hash + (uint64_t)m->column[m->from[k]]);
    for (int i = 0; i < lists->n; i++)
        if (is_list(lists->list[i], m, kept, hash)) {
            m->to = lists->list[i];
            return 0;
        }
    struct columns *made = add_columns(lists, kept);
    if (!made)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d metrics", kept);
    made->n = kept;
    made->hash = hash;
    for (int k = 0; k < kept; k++)
        made->list[k] = m->column[m->from[k]];
    m->to = made;
    *added = (int)(sizeof *made + (size_t)kept * sizeof *made->list);
    return 0;
}

void columns_map_fini(struct columns_map *m)
{
    free(m->column);
    free(m->from);
    *m = (struct columns_map){0};
}

void columns_lists_fini(struct columns_lists *lists)
{
    for (int i = 0; i < lists->n; i++)
        free(lists->list[i]);
    free(lists->list);
    *lists = (struct columns_lists){0};
}

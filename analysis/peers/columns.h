// SPDX-License-Identifier: Apache-2.0
// Which metrics of its probe a run has. Nodes of one probe need not have the same, and each run has
// room for its own only: a node that names thousands makes those of others no longer. Pure.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

// Columns of a probe, ascending. Most runs of a probe share one list.
struct columns {
    int n;
    uint64_t hash;
    int list[];
};

struct columns_lists { // {0} is empty
    int n, room;
    struct columns **list; // owned
};

// From the order in which a page has the metrics of a run to that of its list. {0} is empty.
struct columns_map {
    int *column; // [metric of the page]: its column; -1: none
    int *from;   // [place in the list]: metric of the page
    int room;
    const struct columns *to; // the list, of columns_lists
};

int columns_search(const struct columns *c, int column);

// Place of a column in the list; -1: it is not there. In most lists it is the column's number.
static inline int columns_place(const struct columns *c, int column)
{
    return column < c->n && c->list[column] == column ? column : columns_search(c, column);
}

// Room for n metrics of a page. ERR_NO_MEMORY.
int columns_map_room(struct columns_map *m, int n, struct err *err);
// Fills `from` and `to` of the first n of `column`; the list is that of `lists`, or is added.
// *added: its bytes; 0: it was there. ERR_NO_MEMORY.
int columns_map_to(struct columns_map *m, int n, struct columns_lists *lists, int *added,
                   struct err *err);
void columns_map_fini(struct columns_map *m);
void columns_lists_fini(struct columns_lists *lists);

// SPDX-License-Identifier: Apache-2.0
// A hash table with open addressing, at most half full.
#include "analysis/peers/interned.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static int *interned_slot(const struct interned *s, const char *text)
{
    size_t at = hash_keyed(text, strlen(text)) % s->slots;
    while (s->slot[at] && strcmp(s->list[s->slot[at] - 1], text) != 0)
        at = (at + 1) % s->slots;
    return &s->slot[at];
}

int interned_find(const struct interned *s, const char *text)
{
    return s->slots ? *interned_slot(s, text) - 1 : -1;
}

static int interned_grow(struct interned *s)
{
    int room = s->room ? 2 * s->room : 32;
    char **list = realloc(s->list, room * sizeof *list);
    if (!list)
        return -1;
    s->list = list;
    int *slot = calloc(2 * (size_t)room, sizeof *slot);
    if (!slot)
        return -1;
    free(s->slot);
    s->slot = slot;
    s->slots = 2 * room;
    s->room = room;
    for (int i = 0; i < s->n; i++)
        *interned_slot(s, s->list[i]) = i + 1;
    return 0;
}

int interned_add(struct interned *s, const char *text, struct err *err)
{
    int found = interned_find(s, text);
    if (found >= 0)
        return found;
    char *copy = strdup(text);
    if (!copy || (s->n == s->room && interned_grow(s) < 0)) {
        free(copy);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for one more name");
    }
    s->list[s->n] = copy;
    *interned_slot(s, copy) = s->n + 1;
    return s->n++;
}

void interned_fini(struct interned *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->list[i]);
    free(s->list);
    free(s->slot);
    *s = (struct interned){0};
}

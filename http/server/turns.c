// SPDX-License-Identifier: Apache-2.0
// A list of clients, each with the list of what waits for it. The first client moves to the end
// when it has had its turn.
#include "http/server/turns.h"

#include <stdlib.h>

struct turn_client {
    TAILQ_ENTRY(turn_client) entry;
    uint64_t key;
    int n;
    TAILQ_HEAD(, turn) waiting;
};

void turns_init(struct turns *all)
{
    TAILQ_INIT(&all->clients);
    all->n = 0;
    all->added = 0;
}

static struct turn_client *turns_find(const struct turns *all, uint64_t key)
{
    struct turn_client *c;
    TAILQ_FOREACH(c, &all->clients, entry)
    if (c->key == key)
        break;
    return c;
}

int turns_of(const struct turns *all, uint64_t client)
{
    const struct turn_client *c = turns_find(all, client);
    return c ? c->n : 0;
}

struct turn *turns_oldest(const struct turns *all, uint64_t client)
{
    const struct turn_client *c = turns_find(all, client);
    return c ? TAILQ_FIRST(&c->waiting) : NULL;
}

static struct turn_client *turns_find_or_add(struct turns *all, uint64_t key)
{
    struct turn_client *c = turns_find(all, key);
    if (c || !(c = calloc(1, sizeof *c)))
        return c;
    c->key = key;
    TAILQ_INIT(&c->waiting);
    TAILQ_INSERT_TAIL(&all->clients, c, entry);
    return c;
}

static void turn_waits(struct turns *all, struct turn *t, struct turn_client *c)
{
    t->client = c;
    c->n++;
    all->n++;
}

bool turns_add(struct turns *all, struct turn *t, uint64_t client)
{
    struct turn_client *c = turns_find_or_add(all, client);
    if (!c)
        return false;
    t->number = ++all->added;
    TAILQ_INSERT_TAIL(&c->waiting, t, entry);
    turn_waits(all, t, c);
    return true;
}

bool turns_return(struct turns *all, struct turn *t, uint64_t client)
{
    struct turn_client *c = turns_find_or_add(all, client);
    struct turn *later;
    if (!c)
        return false;
    TAILQ_REMOVE(&all->clients, c, entry);
    TAILQ_INSERT_HEAD(&all->clients, c, entry);
    TAILQ_FOREACH(later, &c->waiting, entry)
    if (later->number > t->number)
        break;
    if (later)
        TAILQ_INSERT_BEFORE(later, t, entry);
    else
        TAILQ_INSERT_TAIL(&c->waiting, t, entry);
    turn_waits(all, t, c);
    return true;
}

void turns_remove(struct turns *all, struct turn *t)
{
    struct turn_client *c = t->client;
    if (!c)
        return;
    TAILQ_REMOVE(&c->waiting, t, entry);
    t->client = NULL;
    all->n--;
    if (--c->n)
        return;
    TAILQ_REMOVE(&all->clients, c, entry);
    free(c);
}

static struct turn_client *first(const struct turns *all, bool (*may)(void *ctx, uint64_t client),
                                 void *ctx)
{
    struct turn_client *c;
    TAILQ_FOREACH(c, &all->clients, entry)
    if (may(ctx, c->key))
        break;
    return c;
}

bool turns_any(const struct turns *all, bool (*may)(void *ctx, uint64_t client), void *ctx)
{
    return first(all, may, ctx) != NULL;
}

struct turn *turns_next(struct turns *all, bool (*may)(void *ctx, uint64_t client), void *ctx)
{
    struct turn_client *c = first(all, may, ctx);
    if (!c)
        return NULL;
    struct turn *t = TAILQ_FIRST(&c->waiting);
    TAILQ_REMOVE(&all->clients, c, entry);
    TAILQ_INSERT_TAIL(&all->clients, c, entry);
    turns_remove(all, t);
    return t;
}

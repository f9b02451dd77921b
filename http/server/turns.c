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

bool turns_add(struct turns *all, struct turn *t, uint64_t client)
{
    struct turn_client *c = turns_find(all, client);
    if (!c) {
        c = calloc(1, sizeof *c);
        if (!c)
            return false;
        c->key = client;
        TAILQ_INIT(&c->waiting);
        TAILQ_INSERT_TAIL(&all->clients, c, entry);
    }
    TAILQ_INSERT_TAIL(&c->waiting, t, entry);
    t->client = c;
    c->n++;
    all->n++;
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

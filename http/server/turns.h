// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: what waits stands in a queue per client, and the clients take turns.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct turn_client;
struct turn {
    TAILQ_ENTRY(turn) entry;
    struct turn_client *client; // NULL: it does not wait
    uint64_t number;            // that it was added with
};

struct turns {
    TAILQ_HEAD(turn_clients, turn_client) clients; // the next one first
    int n;
    uint64_t added;
};

void turns_init(struct turns *all);
// How many of this client wait.
int turns_of(const struct turns *all, uint64_t client);
struct turn *turns_oldest(const struct turns *all, uint64_t client); // NULL: none waits
bool turns_add(struct turns *all, struct turn *t, uint64_t client);  // false: no memory
// Its turn came, and it could not use it: it waits where it was, before those that came later.
bool turns_return(struct turns *all, struct turn *t, uint64_t client); // false: no memory
void turns_remove(struct turns *all, struct turn *t);                  // fine if it does not wait
bool turns_any(const struct turns *all, bool (*may)(void *ctx, uint64_t client), void *ctx);
// The first of the next client that `may` take its turn; it waits no longer. NULL: there is none.
struct turn *turns_next(struct turns *all, bool (*may)(void *ctx, uint64_t client), void *ctx);

// SPDX-License-Identifier: Apache-2.0
// A small table of replies that finished runs got. All of it is dropped when the database has
// changed.
#include "api/services/run_bodies.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "core/store/history.h"

struct run_bodies {
    struct store *store;
    int64_t version;
    size_t bytes;
    struct {
        int64_t id; // 0: empty
        struct shared_body *body;
    } slots[RUN_BODIES_MAX]; // a run has one place: its number modulo their count
};

struct run_bodies *run_bodies_new(struct store *s, struct err *err)
{
    struct run_bodies *b = calloc(1, sizeof *b);
    if (!b) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the bodies of runs");
        return NULL;
    }
    b->store = s;
    b->version = store_version(s);
    return b;
}

static void run_bodies_forget_all(struct run_bodies *b)
{
    for (int i = 0; i < RUN_BODIES_MAX; i++) {
        shared_body_unref(steal_ptr(&b->slots[i].body));
        b->slots[i].id = 0;
    }
    b->bytes = 0;
    b->version = store_version(b->store);
}

void run_bodies_free(struct run_bodies *b)
{
    if (!b)
        return;
    run_bodies_forget_all(b);
    free(b);
}

bool run_bodies_has(struct run_bodies *b, int64_t id)
{
    if (b->version != store_version(b->store))
        run_bodies_forget_all(b);
    return b->slots[id % RUN_BODIES_MAX].id == id;
}

struct shared_body *run_bodies_get(struct run_bodies *b, int64_t id)
{
    return run_bodies_has(b, id) ? shared_body_ref(b->slots[id % RUN_BODIES_MAX].body) : NULL;
}

static size_t bytes_of(const struct shared_body *s)
{
    return s ? sizeof *s + s->n : 0;
}

void run_bodies_put(struct run_bodies *b, int64_t id, const struct buf *body)
{
    int at = (int)(id % RUN_BODIES_MAX);
    if (b->version != store_version(b->store) ||
        sizeof(struct shared_body) + body->len > RUN_BODIES_BYTES)
        return;
    struct shared_body *copy = shared_body_new(body->data, body->len);
    if (!copy)
        return;
    if (b->bytes - bytes_of(b->slots[at].body) + bytes_of(copy) > RUN_BODIES_BYTES)
        run_bodies_forget_all(b);
    b->bytes += bytes_of(copy) - bytes_of(b->slots[at].body);
    shared_body_unref(b->slots[at].body);
    b->slots[at].id = id;
    b->slots[at].body = copy;
}

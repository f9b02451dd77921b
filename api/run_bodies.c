// SPDX-License-Identifier: Apache-2.0
#include "api/run_bodies.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "core/store_history.h"

struct run_bodies {
    struct store *store;
    int64_t version;
    size_t bytes;
    struct {
        int64_t id; // 0: empty
        struct buf body;
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

static void forget_all(struct run_bodies *b)
{
    for (int i = 0; i < RUN_BODIES_MAX; i++) {
        buf_free(&b->slots[i].body);
        b->slots[i].id = 0;
    }
    b->bytes = 0;
    b->version = store_version(b->store);
}

void run_bodies_free(struct run_bodies *b)
{
    if (!b)
        return;
    forget_all(b);
    free(b);
}

bool run_bodies_has(struct run_bodies *b, int64_t id)
{
    if (b->version != store_version(b->store))
        forget_all(b);
    return b->slots[id % RUN_BODIES_MAX].id == id;
}

bool run_bodies_get(struct run_bodies *b, int64_t id, struct buf *body)
{
    if (!run_bodies_has(b, id))
        return false;
    const struct buf *kept = &b->slots[id % RUN_BODIES_MAX].body;
    buf_add(body, kept->data, kept->len);
    return buf_ok(body);
}

void run_bodies_put(struct run_bodies *b, int64_t id, const struct buf *body)
{
    CLEANUP_BUF struct buf copy = BUF_INIT;
    int at = (int)(id % RUN_BODIES_MAX);
    buf_add(&copy, body->data, body->len);
    if (b->version != store_version(b->store) || !buf_ok(&copy) || copy.room > RUN_BODIES_BYTES)
        return;
    if (b->bytes - b->slots[at].body.room + copy.room > RUN_BODIES_BYTES)
        forget_all(b);
    b->bytes += copy.room - b->slots[at].body.room;
    buf_free(&b->slots[at].body);
    b->slots[at].id = id;
    b->slots[at].body = copy;
    copy = BUF_INIT;
}

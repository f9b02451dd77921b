// SPDX-License-Identifier: Apache-2.0
// Opening for good: the directory, its locks, the database, and a fresh one where it is damaged.
#include "core/store/store.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/store/connection.h"
#include "core/store/damage.h"
#include "core/store/db.h"
#include "core/store/lock.h"
#include "core/store/queue.h"
#include "core/store/transaction.h"

// A single read that fails looks like damage: it is read twice.
static int open_twice(struct store *s, struct err *err)
{
    if (store_db_open(s, err) == 0)
        return 0;
    if (err->code != ERR_DAMAGED)
        return -1;
    store_db_close(s, false);
    return store_db_open(s, err);
}

int store_reopen(struct store *s, struct err *err)
{
    if (store_files_ours(s, err) < 0)
        return -1;
    store_db_close(s, false);
    if (open_twice(s, err) < 0) {
        store_db_close(s, false);
        return -1;
    }
    store_on_damage(s, s->on_damage, s->damage_ctx);
    return 0;
}

// Sets a damaged one aside, once.
static int open_or_replace(struct store *s, struct err *err)
{
    if (open_twice(s, err) == 0)
        return 0;
    struct err why = *err;
    return why.code == ERR_DAMAGED && store_set_aside(s, why.text, err) >= 0 ? 0 : -1;
}

struct store *store_open(const char *dir, struct err *err)
{
    struct store *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the store");
        return NULL;
    }
    s->lock = s->dir_lock = -1;
    snprintf(s->dir, sizeof s->dir, "%s", dir);
    snprintf(s->path, sizeof s->path, "%s/numaprobe.db", s->dir);
    if (store_dir_make(dir, err) == 0 && store_lock_take(s, err) == 0 &&
        open_or_replace(s, err) == 0)
        return s;
    store_db_close(s, false);
    store_close(s);
    return NULL;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    store_db_close(s, !s->reader);
    buf_free(&s->carry);
    while (s->n_queue)
        store_queue_drop(s, s->queue[0].id);
    store_lock_drop(s);
    free(s);
}

const char *store_path(const struct store *s)
{
    return s->path;
}

bool store_writable(struct store *s, struct err *err)
{
    if (store_begin(s, err) < 0)
        return false;
    bool ok = sq_done(s->queries[Q_TOUCH], err) == 0;
    store_end(s, -1, NULL);
    return ok;
}

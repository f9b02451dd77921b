// SPDX-License-Identifier: Apache-2.0
// Each run is kept as the statement that inserts it: what is in memory then needs no database to
// be turned into rows again, and no row can be kept that a fresh database would refuse.
#include "core/store/queue.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "core/store/db.h"
#include "model/spec.h"

static bool spec_is_good(const char *text)
{
    struct spec spec;
    CLEANUP_JSON struct json *o = json_parse(text, strlen(text), NULL);
    return o && spec_from_json(&spec, o, NULL, NULL) == 0;
}

static void queue_put(struct store *s, sqlite3_stmt *q)
{
    if (s->n_queue == STORE_QUEUE_KEPT || !spec_is_good(sq_text(q, 5)))
        return;
    char *line = sqlite3_mprintf(
        "INSERT INTO run (id,state,benchmark,node,created_ms,idempotency_key,spec) VALUES "
        "(%lld,'queued',%Q,%Q,%lld,%Q,%Q);",
        (long long)sqlite3_column_int64(q, 0), sq_text(q, 1), sq_text(q, 2),
        (long long)sqlite3_column_int64(q, 3), sqlite3_column_text(q, 4), sq_text(q, 5));
    if (line)
        s->queue[s->n_queue++] = (struct store_queued){sqlite3_column_int64(q, 0), line};
}

void store_queue_keep(struct store *s, int64_t from_id)
{
    sqlite3_stmt *q = NULL;
    sqlite3_prepare_v2(s->db,
                       "SELECT id,benchmark,node,created_ms,idempotency_key,spec FROM run "
                       "WHERE state = 'queued' AND id >= ?1 ORDER BY id",
                       -1, &q, NULL);
    if (q && sqlite3_bind_int64(q, 1, from_id) == SQLITE_OK)
        while (sqlite3_step(q) == SQLITE_ROW)
            queue_put(s, q);
    sqlite3_finalize(q);
}

void store_queue_drop(struct store *s, int64_t id)
{
    for (int i = 0; i < s->n_queue; i++)
        if (s->queue[i].id == id) {
            sqlite3_free(s->queue[i].sql);
            s->n_queue--;
            memmove(&s->queue[i], &s->queue[i + 1], (size_t)(s->n_queue - i) * sizeof s->queue[0]);
            return;
        }
}

void store_queue_sql(const struct store *s, struct buf *out)
{
    for (int i = 0; i < s->n_queue; i++)
        buf_str(out, s->queue[i].sql);
}

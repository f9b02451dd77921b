// SPDX-License-Identifier: Apache-2.0
// Runs that were measured elsewhere. Such a run never was in the queue, but it passes through its
// states in one transaction, so that the same code gives it its seq and stores its numbers.
#include "core/store/imports.h"

#include <stdio.h>

#include "core/store/db.h"
#include "core/store/transaction.h"

enum { KEY_BYTES = 96 }; // "import:" and 64 digits

// Keys of imports stand beside those of requests.
static const char *imports_key_of(const struct run_import *i, char text[KEY_BYTES])
{
    if (i->key == NULL)
        return NULL;
    snprintf(text, KEY_BYTES, "import:%s", i->key);
    return text;
}

// 1: an id, 0: no row, -1.
static int id_of(sqlite3_stmt *q, int64_t *id, struct err *err)
{
    int row = sq_step(q, err);
    if (row > 0)
        *id = sqlite3_column_int64(q, 0);
    sq_reset(q);
    return row;
}

int store_import_find(struct store *s, const struct run_import *i, int64_t *id, struct err *err)
{
    char text[KEY_BYTES];
    const char *key = imports_key_of(i, text);
    sqlite3_stmt *q = s->queries[Q_IMPORT_BY_KEY];
    if (key != NULL) {
        int found = sq_bind(q, err, "t", key) < 0 ? -1 : id_of(q, id, err);
        if (found != 0)
            return found;
    }
    if (i->started_ms == 0)
        return 0;
    q = s->queries[Q_IMPORT_TWIN];
    return sq_bind(q, err, "tii", i->node, i->started_ms, i->result->finished_ms) < 0
               ? -1
               : id_of(q, id, err);
}

static int put_machine(struct store *s, const struct run_import *i, struct err *err)
{
    if (i->class_json != NULL &&
        (store_facts_put(s, i->class_hash, "class", i->class_json, err) < 0 ||
         store_facts_put(s, i->config_hash, "config", i->config_json, err) < 0))
        return -1;
    return i->topology_xml == NULL ? 0
                                   : store_topology_put(s, i->topology_hash, i->topology_xml, err);
}

int store_import_put(struct store *s, const struct run_import *i, const struct store_number *as,
                     int64_t *id, struct err *err)
{
    char text[KEY_BYTES];
    bool facts = i->class_json != NULL;
    sqlite3_stmt *q = s->queries[Q_IMPORTED];
    if (store_insert(s, i->spec, i->node, imports_key_of(i, text), as, id, err) < 0 ||
        put_machine(s, i, err) < 0 ||
        sq_bind(q, err, "iitztttt", *id, i->measured_ms, i->label, i->started_ms, i->plan_json,
                facts ? i->class_hash : NULL, facts ? i->config_hash : NULL,
                i->topology_hash) < 0 ||
        sq_done(q, err) < 0)
        return -1;
    return store_finish(s, *id, i->result, err);
}

static int put_all(struct store *s, const struct run_import *list, int n, int64_t *ids, bool *again,
                   struct err *err)
{
    for (int k = 0; k < n; k++) {
        int found = store_import_find(s, &list[k], &ids[k], err);
        if (found < 0 || (found == 0 && store_import_put(s, &list[k], NULL, &ids[k], err) < 0))
            return -1;
        again[k] = found;
    }
    return 0;
}

int store_runs_import(struct store *s, const struct run_import *list, int n, int64_t *ids,
                      bool *again, struct err *err)
{
    if (store_begin(s, err) < 0)
        return -1;
    return store_end(s, put_all(s, list, n, ids, again, err), err);
}

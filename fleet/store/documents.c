// SPDX-License-Identifier: Apache-2.0
// Documents that many runs refer to by their hash, and what there is to say about the whole store.
// A document is taken only if its hash is that of its content: a node cannot describe others.
#include "fleet/store/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/jsonw.h"

struct wanted {
    int (*fn)(void *ctx, const char *hash, const char *node, struct err *err);
    void *ctx;
};

static int wanted_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    struct wanted *w = ctx;
    return w->fn(w->ctx, row[0].t, row[1].t, err);
}

int fleet_store_wanted(struct fleet_store *s, int most,
                       int (*fn)(void *ctx, const char *hash, const char *node, struct err *err),
                       void *ctx, struct err *err)
{
    static const char sql[] =
        // Each node's newest come first: one that names ever new ones keeps no other out.
        "SELECT w.hash, node.name, row_number() OVER (PARTITION BY machine.origin "
        "ORDER BY w.id DESC, w.what) AS nth FROM (SELECT what, hash, max(id) AS id FROM ("
        "SELECT 0 AS what, class AS hash, id FROM machine "
        "UNION ALL SELECT 1, config, id FROM machine) AS e "
        "WHERE hash <> '' AND NOT EXISTS (SELECT 1 FROM document WHERE document.hash = e.hash) "
        "GROUP BY what, hash) AS w JOIN machine ON machine.id = w.id "
        "JOIN node ON node.id = machine.origin ORDER BY nth, w.id DESC, w.what LIMIT $1";
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(
        s,
        s->engine->query(s->db, sql, &CELL_I(most), 1, wanted_row, &(struct wanted){fn, ctx}, err),
        err);
}

static int document_put(struct fleet_store *s, const char *hash, const char *body, struct err *err)
{
    const struct fleet_cell row[] = {CELL_T(hash), CELL_T(body)};
    if (fleet_begin(s, err) < 0)
        return -1;
    s->changed = true;
    return fleet_end(s,
                     fleet_exec(s,
                                "INSERT INTO document (hash, body) VALUES ($1, $2) "
                                "ON CONFLICT DO NOTHING",
                                row, COUNT_OF(row), err),
                     err);
}

int fleet_store_facts_put(struct fleet_store *s, const struct facts *facts, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    CLEANUP_MEM struct facts *sealed = malloc(sizeof *sealed);
    if (!sealed)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for facts");
    *sealed = *facts;
    facts_seal(sealed);
    if (strcmp(sealed->hash, facts->hash) != 0)
        return err_set(err, ERR_INVALID, "hash", "is not that of the facts");
    struct jsonw w = jsonw_to(&text);
    facts_write_json(facts, &w, NULL);
    if (!buf_ok(&text))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for facts");
    return document_put(s, facts->hash, buf_text(&text), err);
}

static int document_row(void *ctx, const struct fleet_cell *row, struct err *err)
{
    (void)err;
    buf_str(ctx, row[0].t);
    return 0;
}

int fleet_store_document(struct fleet_store *s, const char *hash, struct buf *out, struct err *err)
{
    size_t before = out->len;
    if (fleet_begin(s, err) < 0 ||
        fleet_end(s,
                  s->engine->query(s->db, "SELECT body FROM document WHERE hash = $1",
                                   &CELL_T(hash), 1, document_row, out, err),
                  err) < 0)
        return -1;
    if (!buf_ok(out))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a document");
    return out->len > before ? 0 : err_set(err, ERR_NOT_FOUND, "hash", "no document has this hash");
}

// ---- The whole store

int64_t fleet_store_version(struct fleet_store *s, struct err *err)
{
    int64_t version = 0;
    if (fleet_begin(s, err) < 0 || fleet_end(s, fleet_meta(s, "version", &version, err), err) < 0)
        return -1;
    return version;
}

static int size_read(struct fleet_store *s, struct fleet_store_size *z, struct err *err)
{
    const struct book *b = &s->book;
    z->nodes = b->nodes.n;
    z->kinds = b->kinds.n;
    z->machines = b->machines.n;
    z->layouts = b->layouts.n;
    return s->engine->bytes(s->db, &z->bytes, err) < 0 ||
                   fleet_meta(s, "runs", &z->runs, err) < 0 ||
                   s->engine->query(s->db, "SELECT count(*) FROM feed", NULL, 0, fleet_number,
                                    &z->feeds, err) < 0
               ? -1
               : 0;
}

int fleet_store_size(struct fleet_store *s, struct fleet_store_size *out, struct err *err)
{
    struct fleet_store_size z = {0};
    if (fleet_begin(s, err) < 0 || fleet_end(s, size_read(s, &z, err), err) < 0)
        return -1;
    *out = z;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// The same scenarios on each engine of the store. What they say must be the same byte by byte.
#pragma once
#include "base/cleanup.h"
#include "fleet/store/store.h"
#include "tests/unit/core/dir.h"
#include "tests/unit/fleet/cluster.h"
#include "tests/unit/fleet/pages.h"
#include "tests/unit/tap.h"

static struct fleet_store *s; // of the engine at work; scenarios may open it again
static struct err err;
static struct buf said; // by the scenarios of one engine

__attribute__((unused)) static struct fleet_ack put(const char *name, const char *history,
                                                    int64_t after, int64_t last)
{
    struct maker m = maker_at(name, history, after, last);
    return made_page_put(s, &m, &err);
}

static void engine_run(const char *where, void (*scenarios)(const char *where))
{
    err = (struct err){0};
    s = fleet_store_open(where, FLEET_STORE_WRITE, &err);
    CHECK(s != NULL, "opens %s: %s", where, err.text);
    if (!s)
        return;
    scenarios(where);
    fleet_store_close(s);
}

static void engines_compare(const struct buf *a, const struct buf *b)
{
    size_t at = 0;
    CHECK_INT(a->len, b->len, "both engines say as much");
    while (at < a->len && at < b->len && a->data[at] == b->data[at])
        at++;
    CHECK(at == a->len && at == b->len, "and the same, byte by byte");
    if (at < a->len || at < b->len)
        printf("# at %zu: %.100s# and: %.100s\n", at, buf_text(a) + at, buf_text(b) + at);
}

// The scenarios run on a new SQLite file, then on a new PostgreSQL where there is one.
static void engines_run(void (*scenarios)(const char *where))
{
    char dir[64], path[128];
    struct cluster c CLEANUP(cluster_stop) = {0};
    CLEANUP_BUF struct buf first = BUF_INIT;
    dir_make(dir);
    snprintf(path, sizeof path, "%s/fleet.db", dir);
    engine_run(path, scenarios);
    first = said;
    said = BUF_INIT;
    if (cluster_start(&c)) {
        engine_run(c.uri, scenarios);
        engines_compare(&first, &said);
    } else {
        SKIP("no PostgreSQL on this machine, or the program was built without it");
    }
    buf_free(&said);
    dir_remove(dir);
}

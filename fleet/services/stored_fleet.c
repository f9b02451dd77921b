// SPDX-License-Identifier: Apache-2.0
// Runs first, then the documents of facts that they name: ten thousand nodes of one class have one.
#include "fleet/services/stored_fleet.h"

#include <stdio.h>
#include <stdlib.h>

#include "analysis/peers/fleet_order.h"
#include "base/cleanup.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_facts.h"

int where_read(const struct request *q, struct nodeset *out, bool *given, struct err *err)
{
    const char *where = request_query(q, "where");
    *given = where != NULL;
    if (!where || nodeset_parse(out, where, NULL, err) == 0)
        return 0;
    snprintf(err->member, sizeof err->member, "where");
    return -1;
}

struct stored_pages {
    struct fleet *fleet;
    long runs;
};

static int add_page(void *ctx, const struct summary_page *page, struct err *err)
{
    struct stored_pages *p = ctx;
    p->runs += page->n_runs;
    if (p->runs > STORED_RUNS_MAX)
        return err_set(err, ERR_TOO_LARGE, "where",
                       "these are more than %d runs; request fewer nodes, or a shorter time",
                       STORED_RUNS_MAX);
    return fleet_add_page(p->fleet, page, err);
}

static int add_documents(struct fleet_store *store, struct fleet *f, struct err *err)
{
    CLEANUP_MEM struct facts *facts = malloc(sizeof *facts);
    if (!facts)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for facts");
    for (int i = 0; fleet_facts_wanted(f, i);) {
        CLEANUP_JSON struct json *document = NULL;
        if (stored_facts_read(store, fleet_facts_wanted(f, i), facts, &document, err) < 0 ||
            (document && fleet_add_facts(f, facts, err) < 0))
            return -1;
        i += !document; // it stays wanted
    }
    return 0;
}

struct fleet *stored_fleet_of(struct fleet_store *store, const struct fleet_options *o,
                              const struct fleet_window *w, struct err *err)
{
    CLEANUP_FLEET struct fleet *f = fleet_new(o, err);
    struct stored_pages pages = {.fleet = f};
    if (!f || fleet_store_window(store, w, add_page, &pages, err) < 0 ||
        add_documents(store, f, err) < 0 || fleet_arrange(f, err) < 0)
        return NULL;
    return steal_ptr(&f);
}

struct fleet *stored_fleet_read(const struct request *q, const struct fleet_options *o,
                                const struct fleet_window *w, struct err *err)
{
    CLEANUP_NODESET struct nodeset where = {0};
    struct fleet_window window = *w;
    bool given;
    if (where_read(q, &where, &given, err) < 0)
        return NULL;
    window.nodes = given ? &where : NULL;
    return stored_fleet_of(fleet_of(q)->store, o, &window, err);
}

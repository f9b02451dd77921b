// SPDX-License-Identifier: Apache-2.0
// What is judged: the newest runs of all nodes are read from the store into the arrays of
// analysis/peers, and its verdict is written as the client writes it. In the process that reads.
#include "fleet/resources/resources.h"

#include <stdlib.h>

#include "analysis/peers/fleet_findings.h"
#include "analysis/peers/fleet_findings_text.h"
#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "fleet/services/services.h"
#include "fleet/services/stored_facts.h"

enum {
    WINDOW_DAYS_MAX = 3650,
    READ_US = 500000, // of ten thousand nodes: never in the loop
    READ_BYTES = 8 << 20,
};

void fleetd_work(const struct request *q, struct work *w, struct err *why)
{
    (void)q;
    (void)why;
    w->us = READ_US;
    w->bytes = READ_BYTES;
}

static int add_page(void *ctx, const struct summary_page *page, struct err *err)
{
    return fleet_add_page(ctx, page, err);
}

// Documents are small and few: ten thousand nodes of one class have one of its facts.
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

// The newest runs of all nodes. A class that is requested is looked for by the store.
static struct fleet *fleet_read(const struct request *q, struct err *err)
{
    const struct fleet_services *s = fleet_of(q);
    struct fleet_options o = FLEET_DEFAULTS;
    int64_t days = o.window_days;
    if (request_query_int(q, "window_days", 1, WINDOW_DAYS_MAX, &days, err) < 0)
        return NULL;
    o.now_ms = clock_wall_ms();
    o.window_days = (int)days;
    const struct fleet_window w = {.class_hash = request_query(q, "class"), .newest = o.runs_max};
    CLEANUP_FLEET struct fleet *f = fleet_new(&o, err);
    if (!f || fleet_store_window(s->store, &w, add_page, f, err) < 0 ||
        add_documents(s->store, f, err) < 0)
        return NULL;
    return steal_ptr(&f);
}

int fleetd_outliers(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_FLEET struct fleet *f = fleet_read(q, err);
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct fleet_findings list = {0};
    if (!f || fleet_findings_find(&list, f, err) < 0)
        return -1;
    fleet_findings_write_json(&list, f, &w, NULL);
    fleet_findings_fini(&list);
    return reply_json(r, 200, &body, err);
}

int fleetd_classes(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_FLEET struct fleet *f = fleet_read(q, err);
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_MEM struct fleet_class_row *rows = NULL;
    struct jsonw w = jsonw_to(&body);
    int n = f ? fleet_classes(&rows, f, err) : -1;
    if (n < 0)
        return -1;
    jsonw_object(&w, NULL);
    jsonw_array(&w, "classes");
    for (int i = 0; i < n; i++) {
        jsonw_object(&w, NULL);
        jsonw_text(&w, "class", f->classes.list[rows[i].class]);
        jsonw_text(&w, "cpu", rows[i].cpu);
        jsonw_text(&w, "shape", rows[i].shape);
        jsonw_i64(&w, "nodes", rows[i].nodes);
        jsonw_i64(&w, "fresh", rows[i].fresh);
        jsonw_i64(&w, "enough_runs", rows[i].enough);
        jsonw_i64(&w, "setups", rows[i].setups);
        jsonw_time(&w, "newest", rows[i].newest_ms);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

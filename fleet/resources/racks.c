// SPDX-License-Identifier: Apache-2.0
// Racks: groups of groups_file whose names begin with "rack", as campaigns know them. In the
// process that reads, because the collector itself waits for no disk.
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "fleet/resources/resources.h"
#include "fleet/services/name_runs.h"
#include "fleet/services/services.h"
#include "nodes/sources.h"

enum { KEPT_MS = 60000, RACKS_US = 20000, RACKS_BYTES = 2 << 20 };

// The file has no version that the loop knows: a response is used for a minute.
void fleetd_racks_work(const struct request *q, struct work *w, struct err *why)
{
    (void)q;
    (void)why;
    w->us = RACKS_US;
    w->bytes = RACKS_BYTES;
    w->settled = true;
    snprintf(w->tag, sizeof w->tag, "racks %lld", (long long)(clock_wall_ms() / KEPT_MS));
}

static void write_rack(void *ctx, const char *group, const struct nodeset *nodes)
{
    struct jsonw *w = ctx;
    struct name_runs names = {.w = w};
    jsonw_object(w, NULL);
    jsonw_text(w, "rack", group);
    jsonw_array(w, "nodes");
    for (int i = 0; i < nodes->n; i++)
        name_runs_add(&names, nodes->names[i]);
    name_runs_end(&names);
    jsonw_end(w);
    jsonw_end(w);
}

int fleetd_racks(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_array(&w, "racks");
    if (fleet_groups_each(fleet_of(q)->groups_file, "rack", write_rack, &w, err) < 0)
        return -1;
    jsonw_end(&w);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

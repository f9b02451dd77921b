// SPDX-License-Identifier: Apache-2.0
// Started by http/server/worker.c. It opens the store for reading when the first request comes.
#include "fleet/reading_main.h"

#include "fleet/routes.h"
#include "fleet/services/services.h"
#include "http/server/worker_process.h"

struct reading {
    struct fleet_services services;
    const char *where;
};

static int reading_reply(void *ctx, const struct worker_question *asked, struct request *q,
                         int body, struct worker_answer *a, struct err *err)
{
    struct reading *r = ctx;
    (void)asked;
    (void)body;
    if (!r->services.store)
        r->services.store = fleet_store_open(r->where, FLEET_STORE_READ, err);
    return r->services.store ? worker_process_reply(q, a, err) : -1;
}

int reading_main(int argc, char **argv)
{
    if (!worker_process_limit() || argc != 3)
        return 2;
    struct reading r = {.where = argv[2]};
    const struct http_service service = {.routes = fleet_routes, .context = &r.services};
    return worker_process_run(&service, reading_reply, &r);
}

// SPDX-License-Identifier: Apache-2.0
// Started by http/server/worker.c. It opens the store for reading when the first request comes.
#include "fleet/reading_main.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/os/child.h"
#include "fleet/routes.h"
#include "fleet/services/class_metrics.h"
#include "fleet/services/gzip.h"
#include "fleet/services/services.h"
#include "http/server/worker_process.h"

struct reading {
    struct fleet_services services;
    char where[FLEET_STORE_WHERE_MAX];
};

static int reply_class_metrics(const struct request *q, struct worker_answer *a, struct err *err)
{
    CLEANUP_BUF struct buf image = BUF_INIT;
    if (class_metrics_make(q, clock_wall_ms(), &image, err) < 0)
        return -1;
    a->bytes = image.len;
    return worker_file(image.data, image.len, err);
}

static int reading_reply(void *ctx, const struct worker_question *asked, struct request *q,
                         int body, struct worker_answer *a, struct err *err)
{
    struct reading *r = ctx;
    (void)body;
    if (!r->services.store)
        r->services.store = fleet_store_open(r->where, FLEET_STORE_READ, err);
    if (!r->services.store)
        return -1;
    return asked->kind == CLASS_METRICS_JOB ? reply_class_metrics(q, a, err)
                                            : worker_process_reply(q, a, err);
}

int reading_main(int argc, char **argv)
{
    struct reading r = {0};
    if (!worker_process_limit() || argc != 3 ||
        !child_read_text(READING_STORE_FD, r.where, sizeof r.where))
        return 2;
    r.services.groups_file = argv[2];
    const struct http_service service = {
        .routes = fleet_routes, .context = &r.services, .gzip = gzip_pack};
    int rc = worker_process_run(&service, reading_reply, &r);
    fleet_store_close(r.services.store);
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// A whole run, byte for byte as its node exported it. In the process that reads.
#include "fleet/resources/resources.h"

#include "base/cleanup.h"
#include "fleet/services/services.h"
#include "fleet/store/archive.h"

enum { ARCHIVE_US = 200000 }; // 32 MiB are decompressed in 0.1 s

void fleetd_archive_work(const struct request *q, struct work *w, struct err *why)
{
    (void)q;
    (void)why;
    w->us = ARCHIVE_US;
    w->bytes = FLEET_ARCHIVE_BYTES_MAX;
}

int fleetd_archive(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (fleet_store_archive_get(fleet_of(q)->store, q->name, q->arg, &body, err) < 0)
        return -1;
    return reply_text(r, "application/json", &body, err);
}

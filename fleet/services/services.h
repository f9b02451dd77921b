// SPDX-License-Identifier: Apache-2.0
// What handlers of the collector work on. Requests about the history are served by a process that
// reads the store; it has nothing else.
#pragma once
#include "fleet/campaigns/campaigns.h"
#include "fleet/collect/judging.h"
#include "fleet/collect/naming.h"
#include "fleet/collect/poller.h"
#include "fleet/store/store.h"
#include "http/messages/service.h"

// In the collector `store` and `groups_file` are NULL; in the process that reads everything else
// is.
struct fleet_services {
    const struct fleetd_config *config;
    struct poller *poller;
    struct naming *naming;
    struct campaigns *campaigns;
    struct judging *judging;
    struct fleet_store *store;
    const char *groups_file;
    int64_t started_ms; // UTC
};

// ERR_UNAVAILABLE ("sources"): which nodes there are is not known yet.
static inline int sources_begin(struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "sources", "a source is being read for the first time");
}

static inline const struct fleet_services *fleet_of(const struct request *q)
{
    return q->service->context;
}

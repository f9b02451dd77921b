// SPDX-License-Identifier: Apache-2.0
// The REST interface of the collector: its table of routes, and what handlers share.
#pragma once
#include "fleet/naming.h"
#include "fleet/poller.h"
#include "fleet/store/store.h"
#include "http/messages/service.h"

// In the collector `store` is NULL, in the process that reads `poller` and `naming` are.
struct fleet_services {
    const struct fleetd_config *config;
    struct poller *poller;
    struct naming *naming;
    struct fleet_store *store;
    int64_t started_ms; // UTC
};

extern const struct route fleet_routes[]; // ends with method NULL

static inline const struct fleet_services *fleet_of(const struct request *q)
{
    return q->service->context;
}

handler_fn fleetd_alive, fleetd_ready, fleetd_openapi, fleetd_status, fleetd_node_list, fleetd_node,
    fleetd_outliers, fleetd_classes;
work_fn fleetd_work;

// SPDX-License-Identifier: Apache-2.0
// Patterns are tried from the top.
#include "fleet/routes.h"

#include "fleet/resources/resources.h"
#include "http/messages/alive.h"

const struct route fleet_routes[] = {
    {"GET", "/", fleetd_page, NULL, SCOPE_NONE},
    {"GET", "/web/{name}", fleetd_page, NULL, SCOPE_NONE},
    {"GET", "/healthz", http_alive, NULL, SCOPE_NONE},
    {"GET", "/readyz", fleetd_ready, NULL, SCOPE_READ},
    {"GET", "/openapi.json", fleetd_openapi, NULL, SCOPE_READ},
    {"GET", "/v1/fleet/status", fleetd_status, NULL, SCOPE_READ},
    {"GET", "/v1/fleet/nodes", fleetd_node_list, "state,where,limit,cursor", SCOPE_READ},
    {"GET", "/v1/fleet/nodes/{name}", fleetd_node, NULL, SCOPE_READ},
    {"GET", "/v1/fleet/nodes/{name}/metrics", fleetd_node_metrics, "window_days", SCOPE_READ,
     .work = fleetd_work},
    {"GET", "/v1/fleet/states", fleetd_states, NULL, SCOPE_READ},
    {"GET", "/v1/fleet/tiles", fleetd_tiles, "window_days,class", SCOPE_READ, .work = fleetd_work},
    {"GET", "/v1/fleet/classes", fleetd_classes, NULL, SCOPE_READ, .work = fleetd_work},
    {"GET", "/v1/fleet/outliers", fleetd_outliers, "window_days,class", SCOPE_READ,
     .work = fleetd_work},
    {"GET", "/v1/fleet/ranking", fleetd_ranking, "metric,class,where,order,limit", SCOPE_READ,
     .work = fleetd_work},
    {"GET", "/v1/fleet/compare", fleetd_compare, "by,metric,class,where,base,target", SCOPE_READ,
     .work = fleetd_work},
    {"GET", "/v1/fleet/rollouts", fleetd_rollouts, "fact,since,until,where,limit", SCOPE_READ,
     .work = fleetd_work},
    {"GET", "/v1/fleet/effect", fleetd_effect, "fact,from,to,since,until,where", SCOPE_READ,
     .work = fleetd_work},
    {"GET", "/v1/fleet/runs", fleetd_runs, "form,newest,where,since,class,limit,cursor", SCOPE_READ,
     .work = fleetd_work},
    {"GET", "/v1/facts/{hash}", fleetd_facts, NULL, SCOPE_READ, .work = fleetd_work},
    {"GET", "/v1/fleet/history", fleetd_history, "metric,node,since,until", SCOPE_READ,
     .work = fleetd_work},
    {"POST", "/v1/fleet/campaigns", fleetd_campaign_start, NULL, SCOPE_RUN},
    {"GET", "/v1/fleet/campaigns", fleetd_campaign_list, "active,limit,cursor", SCOPE_READ,
     .work = fleetd_work},
    {"GET", "/v1/fleet/campaigns/{id}", fleetd_campaign, "state,limit,cursor", SCOPE_READ,
     .work = fleetd_work},
    {"POST", "/v1/fleet/campaigns/{id}/cancel", fleetd_campaign_cancel, NULL, SCOPE_RUN},
    {"GET", "/v1/fleet/archive/{name}/{id}", fleetd_archive, NULL, SCOPE_READ,
     .work = fleetd_archive_work},
    {NULL, NULL, NULL, NULL, SCOPE_NONE},
};

// SPDX-License-Identifier: Apache-2.0
#include "api/resources.h"
#include "api/router.h"

const struct route routes[] = {
    {"GET", "/", page_index, NULL, "The dashboard"},
    {"GET", "/app.js", page_script, NULL, "The dashboard's script"},
    {"GET", "/style.css", page_style, NULL, "The dashboard's style sheet"},
    {"GET", "/healthz", health_alive, NULL, "Is the daemon alive?"},
    {"GET", "/readyz", health_ready, "verbose", "Can it accept and store runs?"},
    {"GET", "/openapi.json", openapi_get, NULL, "This contract"},
    {"GET", "/v1/node", node_get, NULL, "What this node is and how it is set up"},
    {"GET", "/v1/topology", topology_get, NULL, "CPUs, caches, NUMA nodes, distances"},
    {"GET", "/v1/topology.xml", topology_xml, NULL, "The topology as hwloc writes it"},
    {"GET", "/v1/benchmarks", benchmarks_get, NULL, "Benchmarks, parameters, limits, defaults"},
    {"GET", "/v1/availability", availability_get, "*", "Would a run be admitted now?"},
    {"GET", "/v1/runs", runs_list, "state,benchmark,since,until,limit,cursor",
     "Runs, newest first"},
    {"POST", "/v1/runs", runs_create, "dry_run,wait", "Ask for a run"},
    {"GET", "/v1/runs/{id}", runs_show, "wait", "One run"},
    {"DELETE", "/v1/runs/{id}", runs_delete, NULL, "Delete a run that is over"},
    {"POST", "/v1/runs/{id}/cancel", runs_cancel, NULL, "Cancel a run"},
    {"GET", "/v1/runs/{id}/events", runs_events, NULL, "Follow a run as Server-Sent Events"},
    {"GET", "/v1/runs/{id}/matrix", matrix_get, NULL, "The measured matrices, by Accept"},
    {"GET", "/v1/runs/{id}/matrix.json", matrix_json, NULL, "The measured matrices as JSON"},
    {"GET", "/v1/runs/{id}/matrix.csv", matrix_csv, NULL, "The measured matrices as CSV"},
    {"GET", "/v1/runs/{id}/matrix.ndjson", matrix_ndjson, NULL, "One JSON object a cell a line"},
    {"GET", "/v1/runs/{id}/log", log_get, NULL, "What the processes of the run printed"},
    {0},
};

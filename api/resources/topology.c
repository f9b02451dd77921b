// SPDX-License-Identifier: Apache-2.0
// GET /v1/topology and /v1/topology.xml: the machine as numaprobe sees it, and as hwloc wrote
// it, with measured values where ?measured= names the runs. GET /v1/topology.svg: the picture of
// both. GET /v1/topologies/{hash}: the machine of stored runs.
#include <string.h>

#include "analysis/plot/topology_picture.h"
#include "api/resources/resources.h"

#include "api/services/measured_values.h"
#include "api/services/work.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"

// A worker has the machine as the daemon read it.
static int topology_look(const struct api_services *api, struct err *err)
{
    return api->runner ? runner_look_at_machine(api->runner, err) : 0;
}

// The picture has the newest values, if there are any, also where the request names no runs.
static bool wants_values(const struct request *q)
{
    const char *which = request_query(q, "measured");
    return which ? strcmp(which, "none") != 0 : strcmp(q->path, "/v1/topology.svg") == 0;
}

void topology_work(const struct request *q, struct work *w, struct err *why)
{
    const struct api_services *api = api_of(q);
    if (!wants_values(q) || topology_look(api, why) < 0)
        return;
    // The runs are known only when they are looked for. hwloc reads the XML, theirs and this one.
    w->us = WORK_TOPOLOGY_US;
    w->bytes = WORK_MEASURED_BYTES;
}

int topology_get(struct request *q, struct reply *r, struct err *err)
{
    const struct api_services *api = api_of(q);
    struct measured_nodes measured CLEANUP(measured_nodes_fini) = {0};
    CLEANUP_BUF struct buf body = BUF_INIT;
    const char *which = request_query(q, "measured");
    if (topology_look(api, err) < 0 ||
        (which && measured_nodes_load(api->store, api->machine, which, &measured, err) < 0))
        return -1;
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    topology_write_members(&api->machine->topology, &w);
    if (which)
        measured_values_write_json(&measured, &w, "measured");
    jsonw_end(&w);
    r->store = true;
    return reply_json(r, 200, &body, err);
}

static int xml_with_values(const struct api_services *api, const char *which, char **out,
                           struct err *err)
{
    struct measured_nodes measured CLEANUP(measured_nodes_fini) = {0};
    return measured_nodes_load(api->store, api->machine, which, &measured, err) < 0
               ? -1
               : measured_values_xml(api->machine, &measured, out, err);
}

int topology_xml(struct request *q, struct reply *r, struct err *err)
{
    const struct api_services *api = api_of(q);
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_MEM char *with_values = NULL;
    const char *which = request_query(q, "measured");
    if (topology_look(api, err) < 0)
        return -1;
    if (!api->machine->topology_xml)
        return err_set(err, ERR_NOT_FOUND, "", "hwloc gave no XML for this machine");
    if (which && xml_with_values(api, which, &with_values, err) < 0)
        return -1;
    buf_str(&body, with_values ? with_values : api->machine->topology_xml);
    r->store = true;
    return reply_text(r, "application/xml", &body, err);
}

// "idle latency: run 17 of 2026-11-20 10:00 UTC · triad bandwidth: run 18 of …"
static void picture_heading(const struct measured_nodes *n, struct buf *out)
{
    const enum node_cost_kind drawn[] = {node_costs_latency(&n->costs),
                                         node_costs_bandwidth(&n->costs)};
    for (size_t k = 0; k < COUNT_OF(drawn); k++)
        for (int i = 0; drawn[k] != NODE_COST_KINDS && i < n->n_runs; i++) {
            char when[32] = "";
            const struct run *run = &n->runs[i].run;
            if (!n->runs[i].of[drawn[k]])
                continue;
            buf_fmt(out, "%s%s: run %lld", out->len ? " · " : "", node_cost_kinds[drawn[k]].words,
                    (long long)run->id);
            if (run->measured_ms) {
                clock_rfc3339(run->measured_ms, when);
                buf_fmt(out, " of %.10s %.5s UTC", when, when + 11);
            }
        }
}

// 1: there are values, 0: none was wanted or the newest are none.
static int picture_values(const struct request *q, struct measured_nodes *out, struct err *err)
{
    const struct api_services *api = api_of(q);
    const char *which = request_query(q, "measured");
    struct err why = {0};
    if (!wants_values(q))
        return 0;
    if (measured_nodes_load(api->store, api->machine, which ? which : "last", out, &why) == 0)
        return 1;
    if (!which && why.code == ERR_NOT_FOUND)
        return 0;
    *err = why;
    return -1;
}

int topology_svg(struct request *q, struct reply *r, struct err *err)
{
    const struct api_services *api = api_of(q);
    struct measured_nodes measured CLEANUP(measured_nodes_fini) = {0};
    CLEANUP_BUF struct buf body = BUF_INIT, heading = BUF_INIT;
    int64_t width = TOPOLOGY_WIDTH;
    if (topology_look(api, err) < 0 ||
        (request_query(q, "width") &&
         request_query_int(q, "width", TOPOLOGY_WIDTH_MIN, TOPOLOGY_WIDTH_MAX, &width, err) < 0))
        return -1;
    int has = picture_values(q, &measured, err);
    if (has < 0)
        return -1;
    if (has)
        picture_heading(&measured, &heading);
    const struct topology_picture p = {.topology = &api->machine->topology,
                                       .costs = has ? &measured.costs : NULL,
                                       .node = api->machine->hostname,
                                       .heading = buf_text(&heading),
                                       .width = (int)width};
    if (topology_picture_write(&p, &body, err) < 0)
        return -1;
    r->store = true;
    return reply_text(r, "image/svg+xml", &body, err);
}

int topologies_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_MEM char *xml = NULL;
    if (store_topology_by_hash(api_of(q)->store, q->name, &xml, err) < 0)
        return err->code != ERR_NOT_FOUND
                   ? -1
                   : err_set(err, ERR_NOT_FOUND, "",
                             "no stored run has a topology with this hash. It is deleted with the "
                             "last run that has it");
    buf_str(&body, xml);
    r->store = r->immutable = true;
    return reply_text(r, "application/xml", &body, err);
}

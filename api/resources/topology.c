// SPDX-License-Identifier: Apache-2.0
// GET /v1/topology and /v1/topology.xml: the machine as numaprobe sees it, and as hwloc wrote
// it. GET /v1/topologies/{hash}: the machine of stored runs.
#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/jsonw.h"

int topology_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (runner_look_at_machine(api_of(q)->runner, err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&body);
    topology_write_json(&api_of(q)->machine->topology, &w, NULL);
    r->store = true;
    return reply_json(r, 200, &body, err);
}

int topology_xml(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    if (runner_look_at_machine(api_of(q)->runner, err) < 0)
        return -1;
    const char *xml = api_of(q)->machine->topology_xml;
    if (!xml)
        return err_set(err, ERR_NOT_FOUND, "", "hwloc gave no XML for this machine");
    buf_str(&body, xml);
    r->store = true;
    return reply_text(r, "application/xml", &body, err);
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

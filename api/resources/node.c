// SPDX-License-Identifier: Apache-2.0
// GET /v1/node: this machine's facts and the findings of doctor.
#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "core/node/checkup.h"

enum { FINDINGS_MAX = 24 }; // there are about ten kinds

static void write_findings(const struct topology *t, struct jsonw *w)
{
    struct finding list[FINDINGS_MAX];
    int n = machine_findings(t, "", list, FINDINGS_MAX);
    findings_write_json(list, n, w, "findings");
}

int node_get(struct request *q, struct reply *r, struct err *err)
{
    const struct machine *m = api_of(q)->machine;
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct fingerprint now = {0};
    if (runner_look_at_machine(api_of(q)->runner, err) < 0)
        return -1;
    fingerprint_read(&now, &m->topology, "");
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "node", m->hostname);
    jsonw_text(&w, "version", NUMAPROBE_VERSION);
    jsonw_text(&w, "cpu_model", m->topology.cpu_model);
    jsonw_text(&w, "job_account", runner_account(api_of(q)->runner));
    fingerprint_write_json(&now, &w, "fingerprint");
    write_findings(&m->topology, &w);
    jsonw_end(&w);
    r->store = true;
    return reply_json(r, 200, &body, err);
}

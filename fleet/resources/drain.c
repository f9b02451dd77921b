// SPDX-License-Identifier: Apache-2.0
// The last judgement has made it, so that a response costs a copy. The lines are those of
// numaprobe fleet drain.
#include "fleet/resources/resources.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "fleet/services/services.h"

static int refuse_unjudged(const struct fleet_services *s, struct err *err)
{
    return poller_stands_by(s->poller)
               ? err_set(err, ERR_UNAVAILABLE, "store",
                         "this collector is standby and suggests nothing: request the one that "
                         "writes")
               : err_set(err, ERR_UNAVAILABLE, "store", "the fleet was not judged yet; try again");
}

int fleetd_drain(struct request *q, struct reply *r, struct err *err)
{
    const struct fleet_services *s = fleet_of(q);
    const struct judging_summary judged = judging_summary(s->judging);
    const struct naming_source *slurm = naming_slurm(s->naming);
    static const char *const types[] = {"application/json", "text/plain"};
    int form = request_accept_one(q, types, COUNT_OF(types), err);
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    if (form < 0)
        return -1;
    if (!judged.judged_ms)
        return refuse_unjudged(s, err);
    if (form > 0) {
        buf_add(&body, buf_text(judged.drain_lines), judged.drain_lines->len);
        return reply_text(r, "text/plain; charset=utf-8", &body, err);
    }
    jsonw_object(&w, NULL);
    jsonw_time(&w, "judged", judged.judged_ms);
    jsonw_bool(&w, "applied", s->config->drain == FLEETD_DRAIN_APPLY);
    jsonw_text(&w, "problem", judged.drain_problem);
    jsonw_time(&w, "slurm_read", slurm ? slurm->read_ms : 0);
    jsonw_raw(&w, "drain", buf_text(judged.drain));
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

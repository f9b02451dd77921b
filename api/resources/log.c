// SPDX-License-Identifier: Apache-2.0
// GET /v1/runs/{id}/log: what the processes of a run printed, as text.
#include "api/resources/resources.h"
#include "base/cleanup.h"

int log_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_MEM char *text = NULL;
    if ((api_of(q)->runner ? runner_log_get(api_of(q)->runner, q->arg, &text, err)
                           : store_log_get(api_of(q)->store, q->arg, &text, err)) < 0)
        return -1;
    buf_str(&body, text ? text : "");
    r->store = true;
    return reply_text(r, "text/plain; charset=utf-8", &body, err);
}

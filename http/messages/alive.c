// SPDX-License-Identifier: Apache-2.0
// Alive is not ready: a program with a full disk is alive and must not be restarted for it.
#include "http/messages/alive.h"

#include "base/cleanup.h"

int http_alive(struct request *q, struct reply *r, struct err *err)
{
    (void)q;
    CLEANUP_BUF struct buf body = BUF_INIT;
    buf_str(&body, "{\"status\":\"ok\",\"version\":\"" NUMAPROBE_VERSION "\"}");
    return reply_json(r, 200, &body, err);
}

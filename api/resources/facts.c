// SPDX-License-Identifier: Apache-2.0
// GET /v1/facts/{hash}: what a machine was, by the hash that runs name. It is the hash of the
// content, so a client may keep it for good.
#include "api/resources/resources.h"
#include "base/cleanup.h"

int facts_get(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_MEM char *json = NULL;
    if (store_fingerprint_json(api_of(q)->store, q->name, &json, err) < 0)
        return err->code != ERR_NOT_FOUND
                   ? -1
                   : err_set(err, ERR_NOT_FOUND, "",
                             "no stored run has facts with this hash. They are deleted with the "
                             "last run that has them");
    buf_str(&body, json);
    r->store = r->immutable = true;
    return reply_json(r, 200, &body, err);
}

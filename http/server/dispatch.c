// SPDX-License-Identifier: Apache-2.0
#include "http/server/dispatch.h"

#include <string.h>

#include "api/resources/resources.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/access/access.h"

enum {
    RETRY_BUSY_S = 10,   // a probe of small sizes
    RETRY_QUEUE_S = 60,  // a probe of large ones
    RETRY_DAMAGED_S = 1, // the database is set aside as soon as this is answered
};

const struct route *route_of(struct request *q, const char **allow, struct err *err)
{
    struct route_args args = {0};
    if (q->route)
        return q->route;
    q->route = route_find(routes, q->method, q->path, &args, allow, err);
    q->arg = args.id;
    memcpy(q->name, args.name, sizeof q->name);
    return q->route;
}

int dispatch_try(struct request *q, struct reply *r, struct err *err)
{
    const struct route *route = route_of(q, &r->allow, err);
    if (!route || access_check(q, route->scope, err) < 0 || route_check_query(route, q, err) < 0)
        return -1;
    return route->handler(q, r, err);
}

// The list of what is in the way, for a run that was refused; NULL if it cannot be told.
static const char *blockers_of(const struct admission *why, bool named, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    admission_write_json(why->list, why->n, named, &w, NULL);
    return buf_ok(out) ? buf_text(out) : NULL;
}

void dispatch_fail(struct request *q, struct reply *r, const struct err *err)
{
    CLEANUP_BUF struct buf blockers = BUF_INIT;
    const struct admission *why = runner_refusal(q->api->runner);
    bool refused = (err->code == ERR_BUSY || err->code == ERR_NO_MEMORY_NODE) && why->n > 0;
    if (refused)
        r->retry_after_s = why->retry_after_s;
    if (err->code == ERR_UNAVAILABLE)
        r->retry_after_s = RETRY_BUSY_S;
    if (err->code == ERR_DAMAGED)
        r->retry_after_s = RETRY_DAMAGED_S;
    if (err->code == ERR_QUEUE_FULL)
        r->retry_after_s = RETRY_QUEUE_S;
    static struct log_budget failures; // any client can cause them: 503 is one
    if (err_info(err->code)->http >= 500 && log_may(&failures, clock_mono_ms()))
        log_error("request.failed", err);
    reply_problem(r, q, err, refused ? blockers_of(why, access_sees_names(q), &blockers) : NULL);
}

int dispatch_allows(struct request *q, struct err *err)
{
    const char *allow;
    const struct route *route = route_of(q, &allow, NULL);
    return route ? access_check(q, route->scope, err) : 0; // what is not there is said later
}

void dispatch(struct request *q, struct reply *r)
{
    struct err err = {0};
    if (dispatch_try(q, r, &err) < 0)
        dispatch_fail(q, r, &err);
}

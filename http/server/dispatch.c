// SPDX-License-Identifier: Apache-2.0
// Finds the route, checks the scope and the query, calls the handler, and writes the problem
// document where one of them fails.
#include "http/server/dispatch.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/access/access.h"

const struct route *route_of(struct request *q, const char **allow, struct err *err)
{
    struct route_args args = {0};
    if (q->route)
        return q->route;
    q->route = route_find(q->service->routes, q->method, q->path, &args, allow, err);
    q->arg = args.id;
    memcpy(q->name, args.name, sizeof q->name);
    return q->route;
}

int dispatch_try(struct request *q, struct reply *r, struct err *err)
{
    const struct route *route = route_of(q, &r->allow, err);
    if (!route || access_check(q, route->scope, err) < 0 || route_check_query(route, q, err) < 0 ||
        route_check_body(route, q, err) < 0)
        return -1;
    return route->handler(q, r, err);
}

void dispatch_fail(struct request *q, struct reply *r, const struct err *err)
{
    struct problem_more more = {.json = BUF_INIT};
    if (q->service->explain)
        q->service->explain(q, err, &more);
    if (more.retry_after_s)
        r->retry_after_s = more.retry_after_s;
    static struct log_budget failures; // any client can cause them: 503 is one
    if (err_info(err->code)->http >= 500 && log_may(&failures, clock_mono_ms()))
        log_error("request.failed", err);
    reply_problem(r, q, err, &more);
    buf_free(&more.json);
}

int dispatch_allows(struct request *q, struct err *err)
{
    const char *allow;
    const struct route *route = route_of(q, &allow, NULL);
    return route ? access_check(q, route->scope, err) : 0; // what is not there is said later
}

bool dispatch_still_allows(struct request *q, struct err *err)
{
    return !*q->token || (access_identify(q, err) == 0 && dispatch_allows(q, err) == 0);
}

void dispatch(struct request *q, struct reply *r)
{
    struct err err = {0};
    if (dispatch_try(q, r, &err) < 0)
        dispatch_fail(q, r, &err);
}

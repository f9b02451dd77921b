// SPDX-License-Identifier: Apache-2.0
// From a complete request to its reply: route, handler, problem. Knows no sockets.
#pragma once
#include "http/messages/service.h"

// The route of a request, found once: fills its route, arg and name. NULL as route_find.
const struct route *route_of(struct request *q, const char **allow, struct err *err);
// May this client do what the route is for? Asked before a body is read; dispatch() asks again.
int dispatch_allows(struct request *q, struct err *err);
// Likewise, later: its token may have been revoked, or have got another scope, since it came.
bool dispatch_still_allows(struct request *q, struct err *err);
// The two halves of dispatch(): the handler's answer, and what a failure looks like.
int dispatch_try(struct request *q, struct reply *r, struct err *err);
void dispatch_fail(struct request *q, struct reply *r, const struct err *err);
// Fills the reply; on failure with a problem document.
void dispatch(struct request *q, struct reply *r);

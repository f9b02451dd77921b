// SPDX-License-Identifier: Apache-2.0
// From a complete request to its reply: route, handler, problem. Knows no sockets.
#pragma once
#include "api/router.h"

// May this client do what the route is for? Asked before a body is read; dispatch() asks again.
int dispatch_allows(const struct request *q, struct err *err);
// Fills the reply; on failure with a problem document.
void dispatch(struct request *q, struct reply *r);

// SPDX-License-Identifier: Apache-2.0
// From a complete request to its reply: route, handler, problem. Knows no sockets.
#pragma once
#include "api/router.h"

// Fills the reply; on failure with a problem document.
void dispatch(struct request *q, struct reply *r);

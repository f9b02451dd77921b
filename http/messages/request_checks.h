// SPDX-License-Identifier: Apache-2.0
// What a request must be before it reaches a route: clear framing, meant for us, not sent by a web
// page of another site.
#pragma once
#include "http/messages/request.h"

// Method, header syntax, framing. After an error the connection must be closed.
int check_framing(const struct request *q, struct err *err);
// Host, Origin, Sec-Fetch-Site.
int check_source(const struct request *q, struct err *err);
// Content-Length (before the body comes) and Content-Type, and no conditions of a change.
int check_body_headers(const struct request *q, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// The web page of any program. The page is index.html at /, and refers to all other files as
// web/NAME. So it also works behind a proxy that puts the program below a path.
#pragma once
#include "http/messages/router.h"

// GET / and GET /web/{name}: a file of `files`. ERR_NOT_FOUND: it is none of them.
int http_page(struct request *q, struct reply *r, const struct embedded *files, struct err *err);

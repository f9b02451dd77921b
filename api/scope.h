// SPDX-License-Identifier: Apache-2.0
// What a client may do. The one place where that is decided.
#pragma once
#include "api/http.h"

enum scope { SCOPE_READ, SCOPE_RUN, SCOPE_ADMIN };

// ERR_FORBIDDEN, on `member` ("" for the whole request), unless the client has the scope. Everybody
// may read and run; the administrator is who comes by the unix socket as root or as the daemon's
// own account.
int scope_check(const struct request *q, enum scope want, const char *member, struct err *err);

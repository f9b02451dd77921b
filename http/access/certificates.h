// SPDX-License-Identifier: Apache-2.0
// What a client may do by its certificate of TLS, which the library has verified: a list of common
// names and scopes, "CN=fleetd.example:read,CN=ops.example:run". A collector of ten thousand nodes
// needs no token on them.
#pragma once
#include "http/access/tokens.h"

// ERR_INVALID, member "tls_client_scope": it is no such list, or names a client twice.
int certificates_check(const char *list, struct err *err);
// Of a list that was checked. SCOPE_NONE: it does not name the client. Upper and lower case differ.
enum scope certificates_scope(const char *list, const char *common_name);

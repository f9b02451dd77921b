// SPDX-License-Identifier: Apache-2.0
// Who may do what: by the account at the other end of the unix socket, by token, or as anybody.
#pragma once
#include <sys/types.h>

#include "http/access/tokens.h"
#include "http/messages/http.h"

// What the other end of a unix socket may do by the account that the kernel names: everything if
// it is root or the daemon's own, what its groups may, else what anybody may.
enum scope access_of_account(const struct api_access *a, int fd);
// Adds to q->granted what the token says that came with the request. ERR_UNAUTHORIZED: a token that
// is none; it does not fall back to what anybody may.
int access_identify(struct request *q, struct err *err);
// ERR_UNAUTHORIZED: a token is needed; ERR_FORBIDDEN: this one is not enough.
int access_check(const struct request *q, enum scope needed, struct err *err);
// Whose request it is, so that another one's words are not taken for his: "token:NAME", "uid:1000",
// or "any" for all of whom nothing is known.
enum { ACCESS_CLIENT_ROOM = TOKEN_NAME_MAX + 8 };
void access_write_client(const struct request *q, char out[static ACCESS_CLIENT_ROOM]);
// May the client see names and numbers of other accounts' processes? Who may measure, and asks on
// the unix socket.
bool access_sees_names(const struct request *q);
// Of one member of a request that is allowed otherwise: ERR_FORBIDDEN.
int access_check_member(const struct request *q, enum scope needed, const char *member,
                        struct err *err);

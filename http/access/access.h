// SPDX-License-Identifier: Apache-2.0
// Who may do what: by account (unix socket), by token, or by what every client may do.
#pragma once
#include <sys/types.h>

#include "http/access/tokens.h"
#include "http/messages/request.h"

// Who may do what without a token.
struct access_rules {
    struct tokens *tokens;        // borrowed; NULL: there are none
    enum scope anonymous;         // of everybody on loopback and on the unix socket
    gid_t run_group, admin_group; // whose members may on the unix socket; (gid_t)-1: none
    const char *certificates;     // what clients may by their certificates (certificates.h)
    bool socket_open;        // everybody may connect to the unix socket, and is asked who he is
    bool insecure_plaintext; // serve others than loopback without TLS
    bool insecure_anonymous; // let them read without a token
};

// What the other end of a unix socket may do by the account that the kernel names: everything if
// it is root or the daemon's own, what its groups may, else what every client may.
enum scope access_of_account(const struct access_rules *a, int fd);
// Adds to q->granted what the token says that came with the request. ERR_UNAUTHORIZED: a token that
// is none; such a client does not fall back to what every client may do.
int access_identify(struct request *q, struct err *err);
// ERR_UNAUTHORIZED: a token is needed; ERR_FORBIDDEN: this one is not enough. SCOPE_PUSH is only
// what a token of this very scope may: it names its nodes, so that no other scope includes it.
int access_check(const struct request *q, enum scope needed, struct err *err);
// ERR_FORBIDDEN: the token of the request does not name the node.
int access_check_node(const struct request *q, const char *node, struct err *err);
// Who sent the request, so that no client can take another one's keys: "token:NAME", "cert:NAME",
// "uid:1000", or "any" for all of whom nothing is known.
enum { ACCESS_CLIENT_ROOM = TOKEN_NAME_MAX + 8 };
void access_write_client(const struct request *q, char out[static ACCESS_CLIENT_ROOM]);
// May the client see names and numbers of other accounts' processes? Who may measure, and asks on
// the unix socket.
bool access_sees_names(const struct request *q);
// Of one member of a request that is allowed otherwise: ERR_FORBIDDEN.
int access_check_member(const struct request *q, enum scope needed, const char *member,
                        struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Listening sockets of our own: close-on-exec, non-blocking.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/err.h"

enum { LISTEN_HOST_ROOM = 56 };

struct listen_socket {
    int fd;                      // owned
    char text[112];              // "127.0.0.1:7780", with the real port; of a unix socket its path
    char host[LISTEN_HOST_ROOM]; // "127.0.0.1", "[::1]": as in a Host header
    bool loopback, tls;
};

struct listen_address {
    struct sockaddr_storage a;
    char host[LISTEN_HOST_ROOM];
    bool tls;
    bool six_alone; // of [::]: another address has its port for IPv4
};

// "127.0.0.1:7780", "[::1]:0", "localhost:7780", each with "https://" before it for TLS. Beyond
// loopback ERR_INVALID (member "listen") unless `beyond` or TLS. 127.0.0.1 mapped into IPv6 is
// loopback.
int listen_parse(struct listen_address *out, const char *text, bool beyond, struct err *err);
int listen_tcp(struct listen_socket *out, const struct listen_address *on, struct err *err);
// ERR_INVALID (member "socket"): no unix socket can be there.
int listen_check_path(const char *path, struct err *err);
// Mode 0666 if `open`, else 0660. A socket that is there already is removed first.
int listen_unix(struct listen_socket *out, const char *path, bool open, struct err *err);
// A socket that another program made and that listens already: checked, made non-blocking, and
// taken over. A unix socket has no host, and its path in `text`. ERR_INVALID: it is no listening
// stream socket, or beyond loopback without `beyond`; it is the caller's then.
int listen_passed(struct listen_socket *out, int fd, bool beyond, struct err *err);
// The address at which a connection came in, as in a Host header: of a socket that listens on all
// addresses, one of them. Another socket's is its own.
void listen_near(const struct listen_socket *s, int connection, char host[LISTEN_HOST_ROOM]);

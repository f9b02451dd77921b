// SPDX-License-Identifier: Apache-2.0
// Listening sockets of our own: close-on-exec, non-blocking, loopback or unix only.
#pragma once
#include <stdint.h>

#include <stddef.h>

#include "base/err.h"

struct listen_socket {
    int fd;         // owned
    char text[112]; // "127.0.0.1:7780", with the real port; of a unix socket its path
    char host[56];  // "127.0.0.1", "[::1]": as in a Host header
};

// "127.0.0.1:7780", "[::1]:0", "localhost:7780". ERR_INVALID (member "listen") beyond loopback.
int listen_tcp(struct listen_socket *out, const char *address, struct err *err);
// Mode 0660. A socket that is there already is removed first.
int listen_unix(struct listen_socket *out, const char *path, struct err *err);
// A socket of somebody else's that listens already: checked, made non-blocking, and taken over.
// A unix socket has no host, and its path in `text`. ERR_INVALID: it is no listening stream socket,
// or beyond loopback; it is the caller's then.
int listen_passed(struct listen_socket *out, int fd, struct err *err);
// Of the process at the other end of a connection of the unix socket; -1: not known.
int64_t listen_peer_uid(int fd);

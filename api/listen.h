// SPDX-License-Identifier: Apache-2.0
// Listening sockets of our own: close-on-exec, non-blocking, loopback or unix only.
#pragma once
#include <stddef.h>

#include "base/err.h"

struct listen_socket {
    int fd;        // owned
    char text[64]; // "127.0.0.1:7780", with the real port
    char host[56]; // "127.0.0.1", "[::1]": as in a Host header
};

// "127.0.0.1:7780", "[::1]:0", "localhost:7780". ERR_INVALID (member "listen") beyond loopback.
int listen_tcp(struct listen_socket *out, const char *address, struct err *err);
// Mode 0660. A socket that is there already is removed first.
int listen_unix(struct listen_socket *out, const char *path, struct err *err);

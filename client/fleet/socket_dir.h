// SPDX-License-Identifier: Apache-2.0
// A directory for forwarded sockets that only this account can enter: in $XDG_RUNTIME_DIR, or else
// in /tmp. It is removed with this process; what a killed one has left is removed by the next.
#pragma once
#include "base/err.h"

struct socket_dir {
    char path[64]; // short: a socket's path has at most 107 bytes
    int fd;        // holds the lock that says it is in use; -1: there is none
};
#define SOCKET_DIR_NONE ((struct socket_dir){.fd = -1})

int socket_dir_make(struct socket_dir *d, struct err *err);
void socket_dir_remove(struct socket_dir *d); // with the sockets in it

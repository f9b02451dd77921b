// SPDX-License-Identifier: Apache-2.0
// Virtual nodes behind sockets: one listener per node, each on an address of its own of
// 127.0.0.0/8, all on one port, in one process with one loop. Loopback only. For tests and for
// `numaprobe fleet demo`, which starts it in a child.
//
//     struct virtual_child c;
//     if (virtual_start(&c, &options, &err) < 0) …     // all nodes listen when it returns
//     virtual_url(0, c.port, url);                     // "http://127.1.0.1:40123"
//     virtual_stop(&c);
#pragma once
#include <sys/types.h>

#include "base/err.h"
#include "base/param.h"
#include "virtual/world.h"

// What lies between the bytes of a connection and its socket, such as TLS.
struct virtual_channel {
    void *(*open)(int node, int fd);                            // NULL: the connection is closed
    ssize_t (*receive)(void *opened, void *out, size_t room);   // as recv()
    ssize_t (*send)(void *opened, const void *bytes, size_t n); // as send()
    void (*close)(void *opened);                                // before the socket
};

struct virtual_options {
    struct world_options world; // has a table of its own
    int64_t port, run_ms;
    char faults[4096]; // virtual/faults.h
    char truth[256], hosts[256];
    const struct virtual_channel *channel; // NULL: the sockets themselves
};
extern const struct param_table virtual_options; // of the other members
// All defaults; the newest runs finished now.
void virtual_defaults(struct virtual_options *o);

enum { VIRTUAL_URL_ROOM = 40 };
void virtual_url(int node, int port, char out[static VIRTUAL_URL_ROOM]);

// Serves until stop_fd is readable or at its end. `ready` is called once when all nodes listen and
// the truth is written. ERR_INVALID, ERR_SYSTEM, ERR_NO_MEMORY.
typedef void virtual_ready(void *ctx, int port);
int virtual_serve(const struct virtual_options *o, int stop_fd, virtual_ready *ready, void *ctx,
                  struct err *err);

// The same in a child process, which ends with its parent.
struct virtual_child {
    pid_t pid;
    int port;
    int stop_fd; // closed: the child ends
};
int virtual_start(struct virtual_child *c, const struct virtual_options *o, struct err *err);
void virtual_stop(struct virtual_child *c); // waits for its end

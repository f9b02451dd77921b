// SPDX-License-Identifier: Apache-2.0
// Unix sockets of daemons on other nodes, each forwarded by an ssh of its own: nothing to open and
// no tokens, because the node's kernel reports which account connects. All of it happens in the
// caller's loop:
//
//     struct via_ssh *v = via_ssh_new(&options, on_event, ctx, &err);
//     via_ssh_start(v, 3, "n3", &err);          // on_event(ctx, 3, SOCKET or NULL, why) follows
//     poll(via_ssh_fd(v)); via_ssh_turn(v);     // when it is readable
//     via_ssh_stop(v, 3);                       // after the last request to the node
//     via_ssh_free(v);
//
// ssh never prompts: it has no terminal and BatchMode. It ends with this process, whatever ends it.
#pragma once
#include "base/err.h"

enum { VIA_SSH_NODES_MAX = 65536 };

struct via_ssh_options {
    const char *program; // "ssh"; found in $PATH
    const char *socket;  // of the daemon, on the nodes; NULL: the system's
    int at_once;         // ssh processes at the same time; further nodes wait for a place
    int connect_s;       // limit of connecting, and of the time until the socket is there
};

struct via_ssh;

// socket: connect to it, until via_ssh_stop(). NULL: it failed, or, after a socket, it has ended;
// *why (ERR_UNREACHABLE, ERR_TIMEOUT or ERR_UNAVAILABLE) states the reason without the node's name.
// It may call via_ssh_start and via_ssh_stop.
typedef void via_ssh_event(void *ctx, int node, const char *socket, const struct err *why);

// Texts are borrowed until via_ssh_free. NULL: no directory for the sockets, or no file
// descriptors.
struct via_ssh *via_ssh_new(const struct via_ssh_options *o, via_ssh_event *event, void *ctx,
                            struct err *err);
void via_ssh_free(struct via_ssh *v); // ends all; NULL is fine

// node: the caller's number, below VIA_SSH_NODES_MAX, that has no tunnel. The event comes from
// via_ssh_turn, never from here. ERR_INVALID: no name of a node.
int via_ssh_start(struct via_ssh *v, int node, const char *name, struct err *err);
void via_ssh_stop(struct via_ssh *v, int node); // without a tunnel: nothing happens
int via_ssh_fd(const struct via_ssh *v);        // readable: call via_ssh_turn
void via_ssh_turn(struct via_ssh *v);           // never waits
// After a request through the socket failed: what ssh says about it, such as that there is no
// daemon's socket on the node. "": nothing.
const char *via_ssh_why(struct via_ssh *v, int node);

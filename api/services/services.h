// SPDX-License-Identifier: Apache-2.0
// The HTTP interface: what it needs and how to start it.
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "core/node/machine.h"
#include "core/os/loop.h"
#include "core/run/runner.h"
#include "core/store/store.h"
#include "core/upkeep/upkeep.h"
#include "http/access/tokens.h"

// Who may do what without a token.
struct api_access {
    struct tokens *tokens;        // borrowed
    enum scope anonymous;         // of everybody on loopback and on the unix socket
    gid_t run_group, admin_group; // whose members may on the unix socket; (gid_t)-1: none
    bool socket_open;        // everybody may connect to the unix socket, and is asked who he is
    bool insecure_plaintext; // serve others than loopback without TLS
    bool insecure_anonymous; // let them read without a token
};

struct api_services { // borrowed
    struct loop *loop;
    struct store *store;
    struct machine *machine;
    struct runner *runner;
    struct keeper *keeper;
    struct api_access access;
    struct run_bodies *bodies; // the server's own
};

// How many connections a listener serves at once: a quarter for one account, three quarters for one
// address; half as many may wait for runs (http/server/connections.h). Each costs CONNECTION_MEMORY
// of listeners.c at the worst: 16 KiB, with the 128 that may be there beyond the limit for a moment
// 5 MiB by default and 258 MiB at the most.
enum { CONNECTIONS_MIN = 16, CONNECTIONS_MAX = 16384 };

struct api_config {
    int connections;    // CONNECTIONS_MIN…CONNECTIONS_MAX
    const char *listen; // "127.0.0.1:7780,[::1]:7780"; "" for none
    const char *names;  // hosts that the daemon is asked as, besides loopback; comma-separated
    const char *tls_certificate, *tls_key, *tls_client_ca; // files in PEM; "" for none
    const char *socket; // path of a unix socket; "" for none. A stale one is removed: the caller
                        // holds the store's lock, so nobody else serves it.
    // Sockets that listen already, handed over by systemd: TCP ones are served in the place of
    // `listen`, unix ones in the place of `socket`. They are the server's, and their paths are not:
    // who made them removes them.
    const int *passed;
    int n_passed;
};

struct server;
struct server *server_new(const struct api_services *s, const struct api_config *c,
                          struct err *err);
void server_free(struct server *s); // answers who waits, then closes; NULL is fine
const char *server_addresses(const struct server *s); // "127.0.0.1:7780,…", with real ports
const char *server_socket(const struct server *s);    // path of the unix socket; "" for none

// SPDX-License-Identifier: Apache-2.0
// A server of HTTP in a loop that others use too. A loop has one server at most.
#pragma once
#include <stdbool.h>

#include "core/os/loop.h"
#include "http/access/access.h"
#include "http/messages/service.h"

// How many connections a listener serves at once: a quarter for one account, three quarters for one
// address; half as many may wait (connections.h). Each costs CONNECTION_MEMORY of listeners.c at
// the worst: 16 KiB, with the 128 that may be there beyond the limit for a moment 5 MiB by default
// and 258 MiB at the most.
enum { CONNECTIONS_MIN = 16, CONNECTIONS_MAX = 16384 };

struct http_config {
    int connections;    // CONNECTIONS_MIN…CONNECTIONS_MAX
    const char *listen; // "127.0.0.1:7780,[::1]:7780"; "" for none
    const char *names;  // hosts that the daemon is asked as, besides loopback; comma-separated
    const char *tls_certificate, *tls_key, *tls_client_ca; // files in PEM; "" for none
    const char *socket; // path of a unix socket; "" for none. A stale one is removed: the caller
                        // has made sure that no other process serves it.
    // Sockets that listen already, handed over by systemd: TCP ones are served in the place of
    // `listen`, unix ones in the place of `socket`. They are the server's, and their paths are not:
    // who made them removes them.
    const int *passed;
    int n_passed;
};

struct server;
// Borrows loop, service and what the configuration and the rules point to.
struct server *server_new(struct loop *loop, const struct http_service *service,
                          const struct access_rules *access, const struct http_config *c,
                          struct err *err);
void server_free(struct server *s); // answers requests that wait, then closes; NULL is fine
const char *server_addresses(const struct server *s); // "127.0.0.1:7780,…", with real ports
const char *server_socket(const struct server *s);    // path of the unix socket; "" for none
// A job of the service's own: no request waits for it. The worker gets it as GET `path`, and what
// it has made goes to kind->take() with `of`. False: it cannot be done now.
bool server_add_job(struct server *s, const struct job_kind *kind, const char *path, int64_t of,
                    int64_t us);

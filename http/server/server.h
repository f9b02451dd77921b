// SPDX-License-Identifier: Apache-2.0
// A server of HTTP in a loop that others use too. A loop has one server at most.
#pragma once
#include <stdbool.h>

#include "core/os/loop.h"
#include "http/access/access.h"
#include "http/messages/service.h"
#include "http/server/config.h"

struct server;
// Borrows loop, service and what the configuration and the rules point to.
struct server *server_new(struct loop *loop, const struct http_service *service,
                          const struct access_rules *access, const struct http_config *c,
                          struct err *err);
// Empties `listen` or `socket` where sockets that were passed replace it.
int server_replaced(struct http_config *c, bool insecure_plaintext, struct err *err);
// What server_new() would refuse, but for what only binding shows.
int server_check(const struct http_config *c, bool insecure_plaintext, struct err *err);
// What it only logs: certificates that are not valid now. -1 and why.
int server_doubt(const struct http_config *c, struct err *why);
// At a reload: reads the files of TLS again. New connections use them, and those that are open
// end with their next response. The log has until when a new certificate is valid. -1: one of them
// is wrong, or not valid now, and those in use stay. `c` must have a certificate, and a client CA,
// if the start had one.
int server_renew_tls(struct server *s, const struct http_config *c, struct err *err);
void server_free(struct server *s); // answers requests that wait, then closes; NULL is fine
const char *server_addresses(const struct server *s); // "127.0.0.1:7780,…", with real ports
const char *server_socket(const struct server *s);    // path of the unix socket; "" for none
// A job of the service's own: no request waits for it. The worker gets it as GET `path`, and what
// it has made goes to kind->take() with `of`. False: it cannot be done now.
bool server_add_job(struct server *s, const struct job_kind *kind, const char *path, int64_t of,
                    int64_t us);

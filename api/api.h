// SPDX-License-Identifier: Apache-2.0
// The HTTP interface of a node: what it needs and how to start it.
#pragma once
#include "api/services/services.h"
#include "http/server/server.h"

struct api;
// Borrows the services; their `bodies` and `tokens` are filled in here.
struct api *api_new(const struct api_services *s, const struct access_rules *access,
                    const struct http_config *c, struct err *err);
void api_free(struct api *a); // answers requests that wait, then closes; NULL is fine
// As server_renew_tls().
int api_renew_tls(struct api *a, const struct http_config *c, struct err *err);
const char *api_addresses(const struct api *a); // "127.0.0.1:7780,…", with real ports
const char *api_socket(const struct api *a);    // path of the unix socket; "" for none

// SPDX-License-Identifier: Apache-2.0
// TLS of the listeners that are written https://…: its files, and whose certificate a client shows.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "http/server/config.h"

// The certificate, the key and the client CA of a server, as their files were when they were read.
// Connections share those with which their handshake began.
struct tls;

// *out is NULL if no certificate is configured. ERR_INVALID: a certificate without a key or with
// that of another one, a key that everybody may read, or what is no PEM file.
int tls_open(struct tls **out, const struct http_config *c, struct err *err);
// Reads the files again. 1: they are others now, and *t is of them. 0: they are the same, or there
// is no TLS. -1: as tls_open() or tls_valid_now(), and *t is as before.
int tls_renew(struct tls **t, const struct http_config *c, struct err *err);
void tls_release(struct tls *t); // the last one frees it; NULL is fine
// ERR_INVALID: a certificate of the chain has expired, or is not valid yet. A server starts
// with it, and its clients refuse it. NULL is fine.
int tls_valid_now(const struct tls *t, struct err *err);
int64_t tls_valid_until_ms(const struct tls *t); // all of the chain; wall clock
bool tls_wants_clients(const struct tls *t);     // with certificates; NULL: false
// The handshake of this gnutls session will use it. Returns what is to be released when the session
// is gone. NULL: no memory.
struct tls *tls_begin(struct tls *t, void *session);
// For MHD_OPTION_HTTPS_CERT_CALLBACK: a session without tls_begin() fails.
void *tls_no_certificate(void);
// The settings whose values are the paths, for errors.
struct tls_names {
    const char *certificate, *key, *ca;
};
// Of a client: the certificate that it shows, and whose servers it trusts. Errors as tls_open, and
// with `now` as tls_valid_now.
int tls_client_check(const struct tls_names *names, const char *certificate, const char *key,
                     const char *ca, bool now, struct err *err);
// The client of this gnutls session has shown a certificate of one whom we trust.
bool tls_is_known(void *session);
// The common name of that certificate. Returns false, and "", if it has none, several, or one of
// `room` bytes or more.
bool tls_common_name(void *session, char *out, size_t room);

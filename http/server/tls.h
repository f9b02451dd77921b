// SPDX-License-Identifier: Apache-2.0
// TLS of the listeners that are written https://…: its files, and whose certificate a client shows.
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct tls_files { // in PEM; empty: not given
    struct buf certificate, key, client_ca;
};

// Paths; "" for none. ERR_INVALID: a certificate without a key or with that of another one, a key
// that everybody may read, or what is no PEM file.
int tls_read(struct tls_files *t, const char *certificate, const char *key, const char *client_ca,
             struct err *err);
// The files that are there now, as tls_read. ERR_CONFLICT: one, which `member` names, is another
// one.
int tls_unchanged(const struct tls_files *t, const char *certificate, const char *key,
                  const char *client_ca, struct err *err);
// ERR_INVALID: a certificate of the chain has expired, or is not valid yet. A server starts
// with it, and its clients refuse it.
int tls_valid_now(const struct tls_files *t, struct err *err);
// The settings whose values are the paths, for errors.
struct tls_names {
    const char *certificate, *key, *ca;
};
// Of a client: the certificate that it shows, and whose servers it trusts. Errors as tls_read, and
// with `now` as tls_valid_now.
int tls_client_check(const struct tls_names *names, const char *certificate, const char *key,
                     const char *ca, bool now, struct err *err);
void tls_files_free(struct tls_files *t);
// The client of this gnutls session has shown a certificate of one whom we trust.
bool tls_is_known(void *session);
// The common name of that certificate. Returns false, and "", if it has none, several, or one of
// `room` bytes or more.
bool tls_common_name(void *session, char *out, size_t room);

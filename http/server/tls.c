// SPDX-License-Identifier: Apache-2.0
// Reads the files of TLS. The library does the rest.
#include "http/server/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { PEM_MAX = 1 << 20 }; // the certificates of every public authority have 220 KiB

static int read_pem(struct buf *out, const char *path, const char *member, mode_t forbidden,
                    struct err *err)
{
    char block[4096];
    struct stat st;
    ssize_t n;
    if (!*path)
        return 0;
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, ERR_INVALID, member, "%.150s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > PEM_MAX || st.st_mode & forbidden)
        return err_set(err, ERR_INVALID, member, "%.150s must be a file of at most 1 MiB%s", path,
                       forbidden ? " that others cannot use (chmod o= it)" : "");
    while ((n = read(fd, block, sizeof block)) > 0)
        buf_add(out, block, (size_t)n);
    if (n < 0 || !buf_ok(out))
        return err_set(err, ERR_INVALID, member, "%.150s cannot be read", path);
    if (!strstr(buf_text(out), "-----BEGIN "))
        return err_set(err, ERR_INVALID, member, "%.150s is not in PEM", path);
    return 0;
}

static gnutls_datum_t datum_of(const struct buf *b)
{
    return (gnutls_datum_t){(unsigned char *)b->data, (unsigned)b->len};
}

static const struct tls_names server_names = {"tls_certificate", "tls_key", "tls_client_ca"};

static int read_files(struct tls_files *t, const struct tls_names *names, const char *certificate,
                      const char *key, const char *ca, struct err *err)
{
    enum { OTHERS = 07 };
    if (!*certificate != !*key)
        return err_set(err, ERR_INVALID, *key ? names->key : names->certificate,
                       "%s and %s belong together", names->certificate, names->key);
    if (read_pem(&t->certificate, certificate, names->certificate, 0, err) < 0 ||
        read_pem(&t->key, key, names->key, OTHERS, err) < 0)
        return -1;
    return read_pem(&t->client_ca, ca, names->ca, 0, err);
}

// Of files that do not fit the libraries would only say that they cannot start, or connect.
static int files_fit(const struct tls_files *t, const struct tls_names *names, struct err *err)
{
    const gnutls_datum_t certificate = datum_of(&t->certificate), key = datum_of(&t->key),
                         ca = datum_of(&t->client_ca);
    gnutls_certificate_credentials_t both;
    int pair = 0, trusted = 1;
    if (gnutls_certificate_allocate_credentials(&both) < 0)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for certificates");
    if (certificate.size)
        pair = gnutls_certificate_set_x509_key_mem(both, &certificate, &key, GNUTLS_X509_FMT_PEM);
    if (ca.size)
        trusted = gnutls_certificate_set_x509_trust_mem(both, &ca, GNUTLS_X509_FMT_PEM);
    gnutls_certificate_free_credentials(both);
    if (pair < 0)
        return err_set(err, ERR_INVALID, names->certificate, "%s and %s cannot be used: %s",
                       names->certificate, names->key, gnutls_strerror(pair));
    if (trusted < 1)
        return err_set(err, ERR_INVALID, names->ca, "%s has no certificate", names->ca);
    return 0;
}

static int certificate_valid_now(gnutls_x509_crt_t certificate, const char *member, struct err *err)
{
    const int64_t now = clock_wall_ms(),
                  from = (int64_t)gnutls_x509_crt_get_activation_time(certificate) * 1000,
                  until = (int64_t)gnutls_x509_crt_get_expiration_time(certificate) * 1000;
    char time[32];
    if (now >= from && now <= until)
        return 0;
    clock_rfc3339(now < from ? from : until, time);
    return err_set(err, ERR_INVALID, member,
                   now < from ? "%s: is valid from %.19sZ on; the clock or the file is wrong"
                              : "%s: expired at %.19sZ; renew it",
                   member, time);
}

// Each of the chain.
static int chain_valid_now(const struct buf *chain, const char *member, struct err *err)
{
    const gnutls_datum_t pem = datum_of(chain);
    gnutls_x509_crt_t *list = NULL;
    unsigned n = 0;
    int rc = 0;
    if (!pem.size || gnutls_x509_crt_list_import2(&list, &n, &pem, GNUTLS_X509_FMT_PEM, 0) < 0)
        return 0; // files_fit() has said so
    for (unsigned i = 0; i < n; i++) {
        if (rc == 0)
            rc = certificate_valid_now(list[i], member, err);
        gnutls_x509_crt_deinit(list[i]);
    }
    gnutls_free(list);
    return rc;
}

int tls_valid_now(const struct tls_files *t, struct err *err)
{
    return chain_valid_now(&t->certificate, server_names.certificate, err);
}

int tls_read(struct tls_files *t, const char *certificate, const char *key, const char *client_ca,
             struct err *err)
{
    if (*client_ca && !*certificate)
        return err_set(err, ERR_INVALID, "tls_client_ca", "tls_client_ca needs a tls_certificate");
    if (read_files(t, &server_names, certificate, key, client_ca, err) < 0)
        return -1;
    return t->certificate.len ? files_fit(t, &server_names, err) : 0;
}

static bool same_bytes(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len) == 0);
}

int tls_unchanged(const struct tls_files *t, const char *certificate, const char *key,
                  const char *client_ca, struct err *err)
{
    struct tls_files now = {0};
    int rc = tls_read(&now, certificate, key, client_ca, err);
    const char *other = rc < 0                                           ? NULL
                        : !same_bytes(&t->certificate, &now.certificate) ? server_names.certificate
                        : !same_bytes(&t->key, &now.key)                 ? server_names.key
                        : !same_bytes(&t->client_ca, &now.client_ca)     ? server_names.ca
                                                                         : NULL;
    tls_files_free(&now);
    return other ? err_set(err, ERR_CONFLICT, other, "the file has changed") : rc;
}

int tls_client_check(const struct tls_names *names, const char *certificate, const char *key,
                     const char *ca, bool now, struct err *err)
{
    struct tls_files t = {0};
    int rc = read_files(&t, names, certificate, key, ca, err);
    if (rc == 0)
        rc = files_fit(&t, names, err);
    if (rc == 0 && now)
        rc = chain_valid_now(&t.certificate, names->certificate, err);
    tls_files_free(&t);
    return rc;
}

void tls_files_free(struct tls_files *t)
{
    if (t->key.data)
        explicit_bzero(t->key.data, t->key.len);
    buf_free(&t->certificate);
    buf_free(&t->key);
    buf_free(&t->client_ca);
}

bool tls_is_known(void *session)
{
    unsigned status = ~0U;
    return session && gnutls_certificate_verify_peers2(session, &status) == 0 && status == 0;
}

bool tls_common_name(void *session, char *out, size_t room)
{
    unsigned n = 0;
    size_t bytes = room, other = 0;
    gnutls_x509_crt_t certificate;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);
    *out = '\0';
    if (!chain || !n || gnutls_x509_crt_init(&certificate) < 0)
        return false;
    bool found = gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER) == 0 &&
                 gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, out,
                                               &bytes) == 0 &&
                 strlen(out) == bytes && // no NUL within it
                 gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 1, 0, NULL,
                                               &other) == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
    gnutls_x509_crt_deinit(certificate);
    if (!found)
        *out = '\0';
    return found;
}

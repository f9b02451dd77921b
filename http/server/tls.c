// SPDX-License-Identifier: Apache-2.0
// Reads the files of TLS. The HTTP library makes a session for each connection, and this gives the
// session what its handshake needs: one set of gnutls credentials, which the connections that began
// with it share. So a reload can put another set in its place while connections are open.
#include "http/server/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
    PEM_MAX = 1 << 20, // the certificates of every public authority have 220 KiB
    DIGEST = 32,       // of SHA-256
};

struct tls_files { // in PEM; empty: not given
    struct buf certificate, key, client_ca;
};

struct tls {
    int users; // the server, and connections
    gnutls_certificate_credentials_t credentials;
    bool wants_clients;
    struct tls_digest {
        unsigned char pair[DIGEST], client_ca[DIGEST];
    } digest; // of the files
};

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

static void files_free(struct tls_files *t)
{
    if (t->key.data)
        explicit_bzero(t->key.data, t->key.len);
    buf_free(&t->certificate);
    buf_free(&t->key);
    buf_free(&t->client_ca);
}

// By their public parts. The library signs something to find out, which takes 14 ms of the loop
// with a key of 4096 bits.
static int pair_check(gnutls_certificate_credentials_t credentials)
{
    unsigned char of_key[DIGEST], of_certificate[DIGEST];
    size_t n = sizeof of_key, m = sizeof of_certificate;
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crt_t *chain = NULL;
    unsigned length = 0;
    int rc = gnutls_certificate_get_x509_key(credentials, 0, &key);
    if (rc == 0)
        rc = gnutls_certificate_get_x509_crt(credentials, 0, &chain, &length);
    if (rc == 0)
        rc = gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, of_key, &n);
    if (rc == 0)
        rc = gnutls_x509_crt_get_key_id(chain[0], GNUTLS_KEYID_USE_SHA256, of_certificate, &m);
    if (rc == 0 && (n != m || memcmp(of_key, of_certificate, n) != 0))
        rc = GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
    for (unsigned i = 0; chain && i < length; i++)
        gnutls_x509_crt_deinit(chain[i]);
    gnutls_free(chain);
    gnutls_x509_privkey_deinit(key);
    return rc;
}

static int pair_set(gnutls_certificate_credentials_t credentials, const struct tls_files *t)
{
    const gnutls_datum_t certificate = datum_of(&t->certificate), key = datum_of(&t->key);
    if (!certificate.size)
        return 0;
    gnutls_certificate_set_flags(credentials, GNUTLS_CERTIFICATE_SKIP_KEY_CERT_MATCH);
    int rc =
        gnutls_certificate_set_x509_key_mem(credentials, &certificate, &key, GNUTLS_X509_FMT_PEM);
    return rc < 0 ? rc : pair_check(credentials);
}

// Of files that do not fit the libraries would only say that they cannot start, or connect.
static int files_fit(const struct tls_files *t, const struct tls_names *names,
                     gnutls_certificate_credentials_t *out, struct err *err)
{
    const gnutls_datum_t ca = datum_of(&t->client_ca);
    gnutls_certificate_credentials_t both;
    if (gnutls_certificate_allocate_credentials(&both) < 0)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for certificates");
    int pair = pair_set(both, t), trusted = 1, rc = 0;
    if (ca.size)
        trusted = gnutls_certificate_set_x509_trust_mem(both, &ca, GNUTLS_X509_FMT_PEM);
    if (pair < 0)
        rc = err_set(err, ERR_INVALID, names->certificate, "%s and %s cannot be used: %s",
                     names->certificate, names->key, gnutls_strerror(pair));
    else if (trusted < 1)
        rc = err_set(err, ERR_INVALID, names->ca, "%s has no certificate", names->ca);
    if (rc < 0)
        gnutls_certificate_free_credentials(both);
    else
        *out = both;
    return rc;
}

// Of each certificate of the chain there is a time from which, and one until which it is valid.
struct validity {
    int64_t from_ms, until_ms; // all of them are
};

static int validity_of(gnutls_certificate_credentials_t credentials, struct validity *out)
{
    gnutls_x509_crt_t *chain = NULL;
    unsigned n = 0;
    *out = (struct validity){INT64_MIN, INT64_MAX};
    if (gnutls_certificate_get_x509_crt(credentials, 0, &chain, &n) < 0)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        const int64_t from = (int64_t)gnutls_x509_crt_get_activation_time(chain[i]) * 1000,
                      until = (int64_t)gnutls_x509_crt_get_expiration_time(chain[i]) * 1000;
        out->from_ms = from > out->from_ms ? from : out->from_ms;
        out->until_ms = until < out->until_ms ? until : out->until_ms;
        gnutls_x509_crt_deinit(chain[i]);
    }
    gnutls_free(chain);
    return 0;
}

static int chain_valid_now(gnutls_certificate_credentials_t credentials, const char *member,
                           struct err *err)
{
    const int64_t now = clock_wall_ms();
    struct validity v;
    char time[32];
    if (validity_of(credentials, &v) < 0 || (now >= v.from_ms && now <= v.until_ms))
        return 0; // there may be none
    const bool expired = now > v.until_ms;
    clock_rfc3339(expired ? v.until_ms : v.from_ms, time);
    return err_set(err, ERR_INVALID, member,
                   expired ? "%s: expired at %.19sZ; renew it"
                           : "%s: is valid from %.19sZ on; the clock or the file is wrong",
                   member, time);
}

static int digest_of(const struct buf *const *files, size_t n, unsigned char digest[static DIGEST])
{
    gnutls_hash_hd_t hash;
    int rc = gnutls_hash_init(&hash, GNUTLS_DIG_SHA256);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = gnutls_hash(hash, &files[i]->len, sizeof files[i]->len);
        if (rc == 0 && files[i]->len)
            rc = gnutls_hash(hash, files[i]->data, files[i]->len);
    }
    gnutls_hash_deinit(hash, digest);
    return rc;
}

static int files_digest(const struct tls_files *t, struct tls_digest *d)
{
    const struct buf *const pair[] = {&t->certificate, &t->key}, *const ca[] = {&t->client_ca};
    int rc = digest_of(pair, COUNT_OF(pair), d->pair);
    return rc < 0 ? rc : digest_of(ca, COUNT_OF(ca), d->client_ca);
}

// What a server has.
static int server_files(struct tls_files *t, const struct http_config *c, struct err *err)
{
    if (*c->tls_client_ca && !*c->tls_certificate)
        return err_set(err, ERR_INVALID, "tls_client_ca", "tls_client_ca needs a tls_certificate");
    return read_files(t, &server_names, c->tls_certificate, c->tls_key, c->tls_client_ca, err);
}

// NULL and why.
static struct tls *tls_new(const struct tls_files *files, struct err *err)
{
    struct tls *t = calloc(1, sizeof *t);
    if (!t || files_digest(files, &t->digest) < 0)
        err_set(err, ERR_NO_MEMORY, "", "no memory for certificates");
    else if (files_fit(files, &server_names, &t->credentials, err) == 0) {
        t->users = 1;
        t->wants_clients = files->client_ca.len > 0;
        return t;
    }
    free(t);
    return NULL;
}

int tls_open(struct tls **out, const struct http_config *c, struct err *err)
{
    struct tls_files files = {0};
    struct tls *t = NULL;
    int rc = server_files(&files, c, err);
    if (rc == 0 && files.certificate.len)
        rc = (t = tls_new(&files, err)) ? 0 : -1;
    files_free(&files);
    if (rc == 0)
        *out = t;
    return rc;
}

int tls_renew(struct tls **t, const struct http_config *c, struct err *err)
{
    struct tls_files files = {0};
    struct tls_digest digest;
    struct tls *next = NULL;
    int rc = *t ? server_files(&files, c, err) : 0;
    const bool known = *t && rc == 0 && files_digest(&files, &digest) == 0,
               same = !*t || (known && memcmp(&digest, &(*t)->digest, sizeof digest) == 0),
               same_pair = known && memcmp(digest.pair, (*t)->digest.pair, DIGEST) == 0;
    if (rc == 0 && !same && !(next = tls_new(&files, err)))
        rc = -1;
    if (next && !same_pair) // one that is in use already refuses no other client CA
        rc = tls_valid_now(next, err);
    files_free(&files);
    if (rc < 0 || same) {
        tls_release(next);
        return rc;
    }
    tls_release(*t);
    *t = next;
    return 1;
}

int tls_valid_now(const struct tls *t, struct err *err)
{
    return t ? chain_valid_now(t->credentials, server_names.certificate, err) : 0;
}

int64_t tls_valid_until_ms(const struct tls *t)
{
    struct validity v;
    return validity_of(t->credentials, &v) < 0 ? INT64_MAX : v.until_ms;
}

bool tls_wants_clients(const struct tls *t)
{
    return t && t->wants_clients;
}

struct tls *tls_begin(struct tls *t, void *session)
{
    if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, t->credentials) < 0)
        return NULL;
    if (t->wants_clients)
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
    t->users++;
    return t;
}

void tls_release(struct tls *t)
{
    if (!t || --t->users > 0)
        return;
    gnutls_certificate_free_credentials(t->credentials);
    free(t);
}

static int no_certificate(gnutls_session_t session, const gnutls_datum_t *ca, int n_ca,
                          const gnutls_pk_algorithm_t *kinds, int n_kinds, gnutls_pcert_st **chain,
                          unsigned *length, gnutls_privkey_t *key)
{
    (void)session, (void)ca, (void)n_ca, (void)kinds, (void)n_kinds;
    (void)chain, (void)length, (void)key;
    return -1;
}

void *tls_no_certificate(void)
{
    gnutls_certificate_retrieve_function2 *const function = no_certificate;
    void *out;
    _Static_assert(sizeof out == sizeof function, "POSIX has it so");
    memcpy(&out, &function, sizeof out);
    return out;
}

int tls_client_check(const struct tls_names *names, const char *certificate, const char *key,
                     const char *ca, bool now, struct err *err)
{
    struct tls_files t = {0};
    gnutls_certificate_credentials_t credentials;
    int rc = read_files(&t, names, certificate, key, ca, err);
    if (rc == 0)
        rc = files_fit(&t, names, &credentials, err);
    files_free(&t);
    if (rc < 0)
        return -1;
    if (now)
        rc = chain_valid_now(credentials, names->certificate, err);
    gnutls_certificate_free_credentials(credentials);
    return rc;
}

// One that its authority made for servers alone (extended key usage) is no client's.
bool tls_is_known(void *session)
{
    static char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
    gnutls_typed_vdata_st wanted = {
        .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)purpose, .size = 0};
    unsigned status = ~0U;
    return session && gnutls_certificate_verify_peers(session, &wanted, 1, &status) == 0 &&
           status == 0;
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

// SPDX-License-Identifier: Apache-2.0
// Files of TLS that are replaced while sessions use them. Both ends of each session are here, and a
// pair of sockets is between them. Certificates are made on the way.
#include "http/server/tls.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/tap.h"

enum { DAY_S = 24 * 3600, PEM_ROOM = 8192 };

static char folder[] = "/tmp/numaprobe-test-tls.XXXXXX";
static char certificate_path[64], key_path[64], ca_path[64];
static const struct http_config config = {
    .tls_certificate = certificate_path, .tls_key = key_path, .tls_client_ca = ca_path};
static const struct http_config plain = {.tls_certificate = "", .tls_key = "", .tls_client_ca = ""};

// ---- certificates

struct identity {
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t crt;
    char pem[PEM_ROOM], key_pem[PEM_ROOM];
};

static const struct signer {
    const char *name;
    int from_s, until_s; // since now
} valid = {"daemon", -DAY_S, DAY_S}, renewed = {"renewed", -DAY_S, 2 * DAY_S},
  expired = {"expired", -2 * DAY_S, -DAY_S}, early = {"early", DAY_S, 2 * DAY_S};

// A certificate that signs itself, so that it is its own authority.
static void identity_make(struct identity *out, const struct signer *of)
{
    const int64_t now = clock_wall_ms() / 1000;
    size_t n = sizeof out->pem - 1, m = sizeof out->key_pem - 1;
    memset(out, 0, sizeof *out);
    gnutls_x509_privkey_init(&out->key);
    gnutls_x509_privkey_generate(out->key, GNUTLS_PK_ECDSA,
                                 GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    gnutls_x509_crt_init(&out->crt);
    gnutls_x509_crt_set_version(out->crt, 3);
    gnutls_x509_crt_set_serial(out->crt, "\1", 1);
    gnutls_x509_crt_set_activation_time(out->crt, (time_t)(now + of->from_s));
    gnutls_x509_crt_set_expiration_time(out->crt, (time_t)(now + of->until_s));
    gnutls_x509_crt_set_key(out->crt, out->key);
    gnutls_x509_crt_set_ca_status(out->crt, 1);
    gnutls_x509_crt_set_dn_by_oid(out->crt, GNUTLS_OID_X520_COMMON_NAME, 0, of->name,
                                  (unsigned)strlen(of->name));
    gnutls_x509_crt_sign2(out->crt, out->crt, out->key, GNUTLS_DIG_SHA256, 0);
    CHECK(gnutls_x509_crt_export(out->crt, GNUTLS_X509_FMT_PEM, out->pem, &n) == 0 &&
              gnutls_x509_privkey_export(out->key, GNUTLS_X509_FMT_PEM, out->key_pem, &m) == 0,
          "a certificate of %s", of->name);
}

static void identity_free(struct identity *i)
{
    gnutls_x509_crt_deinit(i->crt);
    gnutls_x509_privkey_deinit(i->key);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "we");
    if (!f || fputs(text, f) == EOF || fclose(f) == EOF || chmod(path, mode) < 0)
        perror(path);
}

static void use_files(const struct identity *of, const struct identity *clients)
{
    write_file(certificate_path, of->pem, 0644);
    write_file(key_path, of->key_pem, 0600);
    write_file(ca_path, clients->pem, 0644);
}

// ---- sessions

struct ends {
    int fds[2];
    gnutls_session_t server, client;
    gnutls_certificate_credentials_t library, own; // the HTTP library's, and the client's
    struct tls *held;
};

static void end_init(gnutls_session_t *s, unsigned flags, int fd,
                     gnutls_certificate_credentials_t credentials)
{
    gnutls_init(s, flags | GNUTLS_NONBLOCK);
    gnutls_set_default_priority(*s);
    gnutls_credentials_set(*s, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_int(*s, fd);
}

// As the HTTP library makes a session. t NULL: without tls_begin().
static void ends_begin(struct ends *e, struct tls *t, const struct identity *client)
{
    gnutls_certificate_retrieve_function2 *none;
    void *const address = tls_no_certificate();
    *e = (struct ends){.fds = {-1, -1}};
    memcpy(&none, &address, sizeof none);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, e->fds) < 0)
        perror("socketpair");
    gnutls_certificate_allocate_credentials(&e->library);
    gnutls_certificate_set_retrieve_function2(e->library, none);
    gnutls_certificate_allocate_credentials(&e->own);
    gnutls_certificate_set_x509_key(e->own, (gnutls_x509_crt_t[]){client->crt}, 1, client->key);
    end_init(&e->server, GNUTLS_SERVER, e->fds[0], e->library);
    end_init(&e->client, GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT, e->fds[1], e->own);
    if (t)
        e->held = tls_begin(t, e->server);
}

// Whether it was finished at both ends.
static bool ends_shake(struct ends *e)
{
    int server = GNUTLS_E_AGAIN, client = GNUTLS_E_AGAIN;
    for (int i = 0; i < 20 && (server || client); i++) {
        if (client == GNUTLS_E_AGAIN)
            client = gnutls_handshake(e->client);
        if (server == GNUTLS_E_AGAIN)
            server = gnutls_handshake(e->server);
        if ((client && client != GNUTLS_E_AGAIN) || (server && server != GNUTLS_E_AGAIN))
            return false;
    }
    return !server && !client;
}

static void ends_close(struct ends *e)
{
    gnutls_deinit(e->server);
    gnutls_deinit(e->client);
    tls_release(e->held);
    gnutls_certificate_free_credentials(e->library);
    gnutls_certificate_free_credentials(e->own);
    fd_cleanup(&e->fds[0]);
    fd_cleanup(&e->fds[1]);
}

// Whose certificate the client was shown.
static const char *server_of(const struct ends *e)
{
    static char name[64];
    return tls_common_name(e->client, name, sizeof name) ? name : "";
}

// ---- tests

static void nothing(void)
{
    struct tls *t = NULL;
    struct err err = {0};
    CHECK(tls_open(&t, &plain, &err) == 0 && !t, "no certificate");
    CHECK(tls_renew(&t, &plain, &err) == 0 && !t && tls_valid_now(t, &err) == 0 &&
              !tls_wants_clients(t),
          "nor one at a reload");
    tls_release(t);
}

static void replaced(const struct identity *old, const struct identity *new)
{
    struct tls *t = NULL, *first;
    struct ends before, after, open;
    struct err err = {0};
    use_files(old, old);
    CHECK(tls_open(&t, &config, &err) == 0 && t && tls_wants_clients(t), "opened: %s", err.text);
    first = t;
    CHECK(tls_renew(&t, &config, &err) == 0 && t == first, "the same files: %s", err.text);
    ends_begin(&open, t, old);
    CHECK(ends_shake(&open) && tls_is_known(open.server), "a session");
    ends_begin(&before, t, old);
    gnutls_handshake(before.client);
    gnutls_handshake(before.server);
    use_files(new, new);
    CHECK(tls_renew(&t, &config, &err) == 1 && t != first, "other files: %s", err.text);
    CHECK(tls_valid_until_ms(t) / 1000 - clock_wall_ms() / 1000 > DAY_S + 3600, "valid for longer");
    ends_begin(&after, t, new);
    CHECK(ends_shake(&before) && ends_shake(&after), "handshakes before and after it");
    CHECK_STR(server_of(&before), "daemon", "the one that had begun has the old certificate");
    CHECK_STR(server_of(&after), "renewed", "the next one has the new certificate");
    CHECK(tls_is_known(before.server) && tls_is_known(open.server),
          "clients that were known stay so");
    CHECK(tls_is_known(after.server), "a client of the new authority is known");
    ends_close(&after);
    ends_begin(&after, t, old);
    CHECK(ends_shake(&after) && !tls_is_known(after.server), "one of the old authority is not");
    tls_release(t);
    CHECK(tls_is_known(before.server) && tls_is_known(open.server), "as long as they are there");
    ends_close(&after);
    ends_close(&before);
    ends_close(&open);
}

static void refused(const struct identity *good, const struct identity *other)
{
    static struct identity late, soon;
    struct tls *t = NULL, *first;
    struct err err = {0};
    identity_make(&late, &expired);
    identity_make(&soon, &early);
    use_files(good, good);
    CHECK(tls_open(&t, &config, &err) == 0, "opened: %s", err.text);
    first = t;
    const struct {
        const char *certificate, *key, *ca, *member, *text;
        mode_t mode; // of the key
    } cases[] = {
        {other->pem, good->key_pem, good->pem, "tls_certificate", "do not match", 0600},
        {good->pem, other->key_pem, good->pem, "tls_certificate", "do not match", 0600},
        {good->pem, good->key_pem, good->pem, "tls_key", "others cannot use", 0604},
        {good->pem, "", good->pem, "tls_key", "not in PEM", 0600},
        {good->key_pem, good->key_pem, good->pem, "tls_certificate", "cannot be used", 0600},
        {good->pem, good->pem, good->pem, "tls_certificate", "cannot be used", 0600},
        {good->pem, good->key_pem, good->key_pem, "tls_client_ca", "no certificate", 0600},
        {late.pem, late.key_pem, good->pem, "tls_certificate", "expired at", 0600},
        {soon.pem, soon.key_pem, good->pem, "tls_certificate", "is valid from", 0600},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_file(certificate_path, cases[i].certificate, 0644);
        write_file(key_path, cases[i].key, cases[i].mode);
        write_file(ca_path, cases[i].ca, 0644);
        int rc = tls_renew(&t, &config, &err);
        CHECK(rc == -1 && t == first && strstr(err.text, cases[i].text), "case %zu: %s", i,
              err.text);
        CHECK_STR(err.member, cases[i].member, "its setting");
    }
    unlink(key_path);
    CHECK(tls_renew(&t, &config, &err) == -1 && t == first, "no file: %s", err.text);
    use_files(good, good);
    CHECK(tls_renew(&t, &config, &err) == 0 && t == first, "what is in use came back");
    use_files(&late, good);
    tls_release(t);
    CHECK(tls_open(&t, &config, &err) == 0 && tls_valid_now(t, &err) < 0, "a start takes it");
    CHECK(tls_renew(&t, &config, &err) == 0, "and a reload continues with it");
    tls_release(t);
    identity_free(&late);
    identity_free(&soon);
}

static void without(const struct identity *client)
{
    struct ends e;
    ends_begin(&e, NULL, client);
    CHECK(!ends_shake(&e), "a session that was given nothing has no certificate");
    ends_close(&e);
}

int main(void)
{
    static struct identity old, new;
    if (!mkdtemp(folder))
        return 1;
    snprintf(certificate_path, sizeof certificate_path, "%s/daemon.pem", folder);
    snprintf(key_path, sizeof key_path, "%s/daemon.key", folder);
    snprintf(ca_path, sizeof ca_path, "%s/clients.pem", folder);
    identity_make(&old, &valid);
    identity_make(&new, &renewed);
    nothing();
    replaced(&old, &new);
    refused(&old, &new);
    without(&old);
    identity_free(&old);
    identity_free(&new);
    unlink(certificate_path);
    unlink(key_path);
    unlink(ca_path);
    rmdir(folder);
    return tap_done();
}

// SPDX-License-Identifier: Apache-2.0
// All nodes have one key: what a handshake costs does not depend on whose it is, and ten thousand
// keys take a second to make.
#include "tests/fleet/node_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { VALID_DAYS = 2, PEM_ROOM = 4096 };

// Of the process; nothing of it is freed.
static struct {
    gnutls_x509_privkey_t ca_key, key;
    gnutls_x509_crt_t ca;
    gnutls_certificate_credentials_t *nodes; // [node]
    gnutls_priority_t priorities;
    gnutls_datum_t ticket_key;
} all;

struct node_channel {
    gnutls_session_t session;
    bool begun; // the handshake is done
};

static int tls_fail(int rc, const char *what, struct err *err)
{
    return rc >= 0 ? 0 : err_set(err, ERR_SYSTEM, "", "%s: %s", what, gnutls_strerror(rc));
}

// ---- Certificates -------------------------------------------------------------------------------

static int make_key(gnutls_x509_privkey_t *key)
{
    int rc = gnutls_x509_privkey_init(key);
    return rc < 0 ? rc
                  : gnutls_x509_privkey_generate(
                        *key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
}

static int begin_certificate(gnutls_x509_crt_t *out, gnutls_x509_privkey_t key, const char *name,
                             uint32_t number)
{
    const time_t now = (time_t)(clock_wall_ms() / 1000);
    unsigned char serial[5] = {0};
    int rc = gnutls_x509_crt_init(out);
    if (rc < 0)
        return rc;
    memcpy(serial + 1, &number, sizeof number);
    serial[0] = 1;
    if ((rc = gnutls_x509_crt_set_version(*out, 3)) < 0 ||
        (rc = gnutls_x509_crt_set_serial(*out, serial, sizeof serial)) < 0 ||
        (rc = gnutls_x509_crt_set_activation_time(*out, now - 3600)) < 0 ||
        (rc = gnutls_x509_crt_set_expiration_time(*out, now + VALID_DAYS * 24 * 3600)) < 0 ||
        (rc = gnutls_x509_crt_set_key(*out, key)) < 0)
        return rc;
    return gnutls_x509_crt_set_dn_by_oid(*out, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                         (unsigned)strlen(name));
}

static int make_ca(void)
{
    int rc;
    if ((rc = make_key(&all.ca_key)) < 0 || (rc = make_key(&all.key)) < 0 ||
        (rc = begin_certificate(&all.ca, all.ca_key, "virtual nodes", 0)) < 0 ||
        (rc = gnutls_x509_crt_set_ca_status(all.ca, 1)) < 0 ||
        (rc = gnutls_x509_crt_set_key_usage(all.ca, GNUTLS_KEY_KEY_CERT_SIGN)) < 0)
        return rc;
    return gnutls_x509_crt_sign2(all.ca, all.ca, all.ca_key, GNUTLS_DIG_SHA256, 0);
}

static int name_node(gnutls_x509_crt_t crt, const char *name, int node)
{
    char url[VIRTUAL_URL_ROOM], address[VIRTUAL_URL_ROOM];
    struct in_addr binary;
    virtual_url(node, 0, url);
    snprintf(address, sizeof address, "%.*s", (int)strcspn(url + strlen("http://"), ":"),
             url + strlen("http://"));
    inet_pton(AF_INET, address, &binary);
    int rc = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, name,
                                                  (unsigned)strlen(name), GNUTLS_FSAN_SET);
    return rc < 0 ? rc
                  : gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, &binary,
                                                         sizeof binary, GNUTLS_FSAN_APPEND);
}

static int make_node(int node)
{
    char name[32];
    gnutls_x509_crt_t crt = NULL;
    snprintf(name, sizeof name, "virtual-%d", node + 1);
    int rc = begin_certificate(&crt, all.key, name, (uint32_t)node + 1);
    if (rc >= 0 && (rc = name_node(crt, name, node)) >= 0 &&
        (rc = gnutls_x509_crt_sign2(crt, all.ca, all.ca_key, GNUTLS_DIG_SHA256, 0)) >= 0 &&
        (rc = gnutls_certificate_allocate_credentials(&all.nodes[node])) >= 0)
        rc = gnutls_certificate_set_x509_key(all.nodes[node], &crt, 1, all.key);
    gnutls_x509_crt_deinit(crt);
    return rc;
}

static int write_ca(const char *path, struct err *err)
{
    char pem[PEM_ROOM];
    size_t n = sizeof pem;
    CLEANUP_FILE FILE *f = fopen(path, "we");
    int rc = gnutls_x509_crt_export(all.ca, GNUTLS_X509_FMT_PEM, pem, &n);
    if (rc < 0)
        return tls_fail(rc, "the certificate of the CA", err);
    if (!f || fwrite(pem, 1, n, f) != n || fflush(f) != 0)
        return err_sys(err, "cannot write %.200s", path);
    return 0;
}

// ---- Connections --------------------------------------------------------------------------------

static void channel_close(void *opened)
{
    struct node_channel *c = opened;
    if (c->begun)
        gnutls_bye(c->session, GNUTLS_SHUT_WR);
    gnutls_deinit(c->session);
    free(c);
}

static void *channel_open(int node, int fd)
{
    struct node_channel *c = calloc(1, sizeof *c);
    if (!c || gnutls_init(&c->session, GNUTLS_SERVER | GNUTLS_NONBLOCK) < 0) {
        free(c);
        return NULL;
    }
    if (gnutls_priority_set(c->session, all.priorities) < 0 ||
        gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, all.nodes[node]) < 0 ||
        gnutls_session_ticket_enable_server(c->session, &all.ticket_key) < 0) {
        channel_close(c);
        return NULL;
    }
    gnutls_transport_set_int(c->session, fd);
    return c;
}

// What GnuTLS returns, as recv() and send() do.
static ssize_t as_of_socket(ssize_t n)
{
    if (n >= 0)
        return n;
    errno = n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? EAGAIN : ECONNRESET;
    return -1;
}

static ssize_t channel_receive(void *opened, void *out, size_t room)
{
    struct node_channel *c = opened;
    if (!c->begun) {
        int rc = gnutls_handshake(c->session);
        if (rc < 0 && (gnutls_error_is_fatal(rc) || rc == GNUTLS_E_AGAIN))
            return as_of_socket(rc);
        c->begun = rc == 0;
    }
    return as_of_socket(gnutls_record_recv(c->session, out, room));
}

static ssize_t channel_send(void *opened, const void *bytes, size_t n)
{
    struct node_channel *c = opened;
    return as_of_socket(gnutls_record_send(c->session, bytes, n));
}

static const struct virtual_channel channel = {
    .open = channel_open,
    .receive = channel_receive,
    .send = channel_send,
    .close = channel_close,
};

int node_tls_begin(struct virtual_options *o, const char *ca_path, struct err *err)
{
    // As http/server/listeners.c has it.
    static const char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    int nodes = (int)o->world.nodes;
    all.nodes = calloc((size_t)nodes, sizeof *all.nodes);
    if (!all.nodes)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d certificates", nodes);
    int rc = gnutls_priority_init(&all.priorities, priorities, NULL);
    if (rc >= 0)
        rc = gnutls_session_ticket_key_generate(&all.ticket_key);
    if (rc >= 0)
        rc = make_ca();
    for (int i = 0; i < nodes && rc >= 0; i++)
        rc = make_node(i);
    if (rc < 0)
        return tls_fail(rc, "the certificates of the nodes", err);
    o->channel = &channel;
    return write_ca(ca_path, err);
}

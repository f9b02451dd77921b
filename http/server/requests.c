// SPDX-License-Identifier: Apache-2.0
// A request as it arrives: the target, then the headers, then the body. What can be refused is
// refused before the body comes.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http/access/access.h"
#include "http/access/certificates.h"
#include "http/messages/request_checks.h"
#include "http/server/dispatch.h"
#include "http/server/parts.h"

enum {
    BODIES_MAX = 48 << 20,      // of all large bodies under way together: two imports
    BODY_DISCARD_MAX = 1 << 20, // of a body without a length: then the connection is cut
};

static enum MHD_Result collect_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    struct request *q = ctx;
    (void)kind;
    if (q->n_headers == HTTP_HEADERS_MAX)
        return MHD_NO;
    q->headers[q->n_headers++] = (struct http_pair){name, value ? value : ""};
    return MHD_YES;
}

// What a body may be is its route's to say. A path that leads nowhere is refused when the body is
// in.
static void find_limits(struct request *q)
{
    const char *allow;
    const struct route *route = route_of(q, &allow, NULL);
    q->body_max = route && route->body_max ? route->body_max : HTTP_BODY_MAX;
    q->body_inline = route ? route->body_inline : 0;
    q->body_types = route && route->body_types ? route->body_types : "application/json";
}

// What the common name of a certificate that is known may do. A token that comes too says it anew.
static void grant_certificate(struct exchange *x, void *session)
{
    const char *list = x->server->access.certificates;
    char name[sizeof x->q.certificate] = "";
    enum scope scope = list && *list && tls_common_name(session, name, sizeof name)
                           ? certificates_scope(list, name)
                           : SCOPE_NONE;
    if (scope <= x->q.granted)
        return;
    x->q.granted = scope;
    memcpy(x->q.certificate, name, sizeof name);
}

// With tls_client_ca a client of TLS must be known by its certificate.
static int check_certificate(struct exchange *x, struct err *err)
{
    if (!x->listener->socket.tls || !tls_wants_clients(x->server->tls))
        return 0;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (info && tls_is_known(info->tls_session)) {
        grant_certificate(x, info->tls_session);
        return 0;
    }
    return err_set(err, ERR_UNAUTHORIZED, "", "a client certificate is required");
}

static bool announces_body(const struct request *q)
{
    return request_header(q, "Content-Length") || request_header(q, "Transfer-Encoding");
}

static int check_call(struct exchange *x, struct err *err)
{
    struct request *q = &x->q;
    int n = MHD_get_connection_values(x->mhd, MHD_HEADER_KIND, NULL, NULL);
    if (n > HTTP_HEADERS_MAX)
        return err_set(err, ERR_BAD_REQUEST, "", "more than %d headers", HTTP_HEADERS_MAX);
    MHD_get_connection_values(x->mhd, MHD_HEADER_KIND, collect_header, q);
    if (check_framing(q, err) < 0 || request_split(q, err) < 0)
        return -1;
    find_limits(q);
    if (check_certificate(x, err) < 0)
        return -1;
    if (check_source(q, err) < 0 || access_identify(q, err) < 0 || dispatch_allows(q, err) < 0)
        return -1;
    // A body that no route reads is not waited for: any client could send one, a byte at a time.
    if (announces_body(q) && !route_of(q, &x->r.allow, err))
        return -1;
    return check_body_headers(q, err);
}

// The library takes lines of chunks that end in LF alone, and extensions of chunks. A program that
// reads such a body in another way finds nothing behind it: it is the last of its connection.
static void allow_body(struct exchange *x)
{
    x->last = request_header(&x->q, "Transfer-Encoding") != NULL;
    if (!announces_body(&x->q))
        return;
    connection_receives(x->connection, true);
    connection_allow(x->connection, connection_time(CONNECTION_BODY_MS, x->q.body_max));
}

// Versions before 1.0 leave the head in place and are not strict about it (request_checks.c).
static void find_head(struct exchange *x, const char *target, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    x->q.http_1_0 = strcmp(version, "HTTP/1.1") < 0;
    if (*MHD_get_version() == '0')
        x->q.head = (struct http_head){x->q.method, target, version, info ? info->header_size : 0};
}

static enum MHD_Result requests_begin(struct exchange *x, struct listener *l,
                                      struct MHD_Connection *mhd, const char *method,
                                      const char *target, const char *version)
{
    struct err err = {0};
    x->begun = true;
    x->listener = l;
    x->mhd = mhd;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->connection = info ? info->socket_context : NULL;
    if (!x->connection || x->connection->cut)
        return MHD_NO;
    connection_head_whole(x->connection);
    x->paid = x->connection->paid;
    x->connection->paid = false;
    x->q.method = method;
    find_head(x, target, version);
    listen_near(&l->socket, x->connection->fd, x->bound);
    x->q.bound = x->bound;
    x->q.names = x->server->names;
    x->q.own_names = l->socket.loopback ? NULL : x->server->own_names;
    x->q.tls = l->socket.tls;
    x->q.granted = x->connection->scope;
    x->q.uid = x->connection->peer.uid;
    x->q.pid = x->connection->peer.pid;
    x->q.service = x->server->service;
    x->q.tokens = x->server->access.tokens;
    x->q.path = x->q.uri;
    if (check_call(x, &err) < 0) {
        exchange_charge(x, 0);
        return exchange_send_error(x, &err, true); // before the body: the library then closes
    }
    allow_body(x);
    return MHD_YES;
}

// A document that a worker reads goes into a memory file as it comes. -1: there is no memory.
static int to_file(struct exchange *x, const char *data, size_t n)
{
    struct buf *begun = &x->q.body;
    if (x->body_fd < 0) {
        x->body_fd = memfd_create("numaprobe-body", MFD_CLOEXEC);
        if (x->body_fd < 0 || write(x->body_fd, begun->data, begun->len) != (ssize_t)begun->len)
            return -1;
        buf_free(begun);
    }
    return write(x->body_fd, data, n) == (ssize_t)n ? 0 : -1;
}

static enum MHD_Result collect_body(struct exchange *x, const char *data, size_t n)
{
    x->received += n;
    if (x->received > HTTP_BODY_MAX && x->received <= x->q.body_max) {
        x->crowded |= x->server->bodies + n > BODIES_MAX;
        x->held += x->crowded ? 0 : n;
        x->server->bodies += x->crowded ? 0 : n;
    }
    if (x->received <= x->q.body_max && !x->crowded) {
        if (!x->q.body_inline || x->received <= x->q.body_inline)
            buf_add(&x->q.body, data, n);
        else if (to_file(x, data, n) < 0)
            buf_fail(&x->q.body);
        x->q.body_bytes = x->received;
    }
    return x->received > x->q.body_max + BODY_DISCARD_MAX ? MHD_NO : MHD_YES;
}

static int check_body(const struct exchange *x, struct err *err)
{
    if (x->received > x->q.body_max)
        return err_set(err, ERR_TOO_LARGE, "", "the body may have %zu bytes", x->q.body_max);
    if (x->crowded)
        return err_set(err, ERR_UNAVAILABLE, "",
                       "too many large request bodies are in progress; try again later");
    if (!buf_ok(&x->q.body))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the body");
    return 0;
}

static enum MHD_Result requests_finish(struct exchange *x)
{
    struct err err;
    connection_receives(x->connection, false);
    return check_body(x, &err) < 0 ? exchange_send_error(x, &err, true) : exchange_answer(x);
}

enum MHD_Result exchange_on_access(void *listener, struct MHD_Connection *mhd, const char *url,
                                   const char *method, const char *version, const char *data,
                                   size_t *size, void **exchange)
{
    struct exchange *x = *exchange;
    if (!x)
        return MHD_NO; // no memory for the exchange: the connection is closed
    if (!x->begun)
        return requests_begin(x, listener, mhd, method, url, version);
    if (*size) {
        size_t n = *size;
        *size = 0;
        return collect_body(x, data, n);
    }
    return requests_finish(x);
}

// The first that we hear of a request: its raw target, not decoded.
void *exchange_on_uri(void *listener, const char *uri, struct MHD_Connection *mhd)
{
    struct server *s = ((struct listener *)listener)->server;
    struct exchange *x = calloc(1, sizeof *x);
    (void)mhd;
    if (!x)
        return NULL;
    x->q.uri = strdup(uri);
    if (!x->q.uri) {
        free(x);
        return NULL;
    }
    x->server = s;
    x->body_fd = -1;
    LIST_INSERT_HEAD(&s->exchanges, x, entry);
    snprintf(x->q.id, sizeof x->q.id, "%08" PRIx32 "%08" PRIx64, s->salt,
             ++s->requests & 0xffffffff);
    return x;
}

void exchange_on_completed(void *listener, struct MHD_Connection *mhd, void **exchange,
                           enum MHD_RequestTerminationCode why)
{
    struct exchange *x = *exchange;
    (void)listener;
    (void)mhd;
    (void)why;
    if (!x)
        return;
    *exchange = NULL;
    LIST_REMOVE(x, entry);
    connection_head_next(x->connection);
    exchange_end_wait(x);
    exchange_leave_queues(x);
    answer_unref(x->made);
    fd_cleanup(&x->body_fd);
    x->server->answers_sent -= x->sends_large;
    exchange_close_source(x);
    reply_fini(&x->r);
    buf_free(&x->q.body);
    x->server->bodies -= x->held;
    x->server->answers_own -= x->held_answer;
    free(x->q.uri);
    free(x);
}

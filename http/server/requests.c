// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "http/access/access.h"
#include "http/messages/request_checks.h"
#include "http/server/dispatch.h"
#include "http/server/parts.h"

enum {
    BODIES_MAX = 48 << 20,      // of all large bodies under way together: two imports
    BODY_DISCARD_MAX = 1 << 20, // of a body without a length: then the line is cut
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

// With tls_client_ca a client of TLS must be known by its certificate; what it may do, tokens say.
static int check_certificate(struct call *c, struct err *err)
{
    if (!c->listener->socket.tls || !c->server->tls.client_ca.len)
        return 0;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (info && tls_is_known(info->tls_session))
        return 0;
    return err_set(err, ERR_UNAUTHORIZED, "", "this daemon wants a certificate of its clients");
}

static bool announces_body(const struct request *q)
{
    return request_header(q, "Content-Length") || request_header(q, "Transfer-Encoding");
}

static int check_call(struct call *c, struct err *err)
{
    struct request *q = &c->q;
    int n = MHD_get_connection_values(c->connection, MHD_HEADER_KIND, NULL, NULL);
    if (n > HTTP_HEADERS_MAX)
        return err_set(err, ERR_BAD_REQUEST, "", "more than %d headers", HTTP_HEADERS_MAX);
    MHD_get_connection_values(c->connection, MHD_HEADER_KIND, collect_header, q);
    if (check_framing(q, err) < 0 || request_split(q, err) < 0)
        return -1;
    find_limits(q);
    if (check_certificate(c, err) < 0)
        return -1;
    if (check_source(q, err) < 0 || access_identify(q, err) < 0 || dispatch_allows(q, err) < 0)
        return -1;
    // A body that no route reads is not waited for: anybody could send one, a byte at a time.
    if (announces_body(q) && !route_of(q, &c->r.allow, err))
        return -1;
    return check_body_headers(q, err);
}

// The library takes lines of chunks that end in LF alone, and extensions of chunks. Whoever reads
// such a body in another way finds nothing behind it: it is the last of its connection.
static void allow_body(struct call *c)
{
    c->last = request_header(&c->q, "Transfer-Encoding") != NULL;
    if (announces_body(&c->q))
        line_allow(c->line, line_time(LINE_BODY_MS, c->q.body_max));
}

// Versions before 1.0 leave the head in place and are not strict about it (request_checks.c).
static void find_head(struct call *c, const char *target, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    c->q.http_1_0 = strcmp(version, "HTTP/1.1") < 0;
    if (*MHD_get_version() == '0')
        c->q.head = (struct http_head){c->q.method, target, version, info ? info->header_size : 0};
}

static enum MHD_Result server_call_begin(struct call *c, struct listener *l,
                                         struct MHD_Connection *connection, const char *method,
                                         const char *target, const char *version)
{
    struct err err = {0};
    c->begun = true;
    c->listener = l;
    c->connection = connection;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    c->line = info ? info->socket_context : NULL;
    if (!c->line || c->line->cut)
        return MHD_NO;
    line_head_whole(c->line);
    c->paid = c->line->paid;
    c->line->paid = false;
    c->q.method = method;
    find_head(c, target, version);
    c->q.bound = l->socket.host;
    c->q.names = c->server->names;
    c->q.tls = l->socket.tls;
    c->q.granted = c->line->scope;
    c->q.uid = c->line->peer.uid;
    c->q.service = c->server->service;
    c->q.tokens = c->server->access.tokens;
    c->q.path = c->q.uri;
    if (check_call(c, &err) < 0) {
        call_charge(c, 0);
        return call_send_error(c, &err, true); // before the body: the library then closes
    }
    allow_body(c);
    return MHD_YES;
}

// A document that a worker reads goes into a memory file as it comes. -1: there is no memory.
static int to_file(struct call *c, const char *data, size_t n)
{
    struct buf *begun = &c->q.body;
    if (c->body_fd < 0) {
        c->body_fd = memfd_create("numaprobe-body", MFD_CLOEXEC);
        if (c->body_fd < 0 || write(c->body_fd, begun->data, begun->len) != (ssize_t)begun->len)
            return -1;
        buf_free(begun);
    }
    return write(c->body_fd, data, n) == (ssize_t)n ? 0 : -1;
}

static enum MHD_Result collect_body(struct call *c, const char *data, size_t n)
{
    c->received += n;
    if (c->received > HTTP_BODY_MAX && c->received <= c->q.body_max) {
        c->crowded |= c->server->bodies + n > BODIES_MAX;
        c->held += c->crowded ? 0 : n;
        c->server->bodies += c->crowded ? 0 : n;
    }
    if (c->received <= c->q.body_max && !c->crowded) {
        if (!c->q.body_inline || c->received <= c->q.body_inline)
            buf_add(&c->q.body, data, n);
        else if (to_file(c, data, n) < 0)
            buf_fail(&c->q.body);
        c->q.body_bytes = c->received;
    }
    return c->received > c->q.body_max + BODY_DISCARD_MAX ? MHD_NO : MHD_YES;
}

static int check_body(const struct call *c, struct err *err)
{
    if (c->received > c->q.body_max)
        return err_set(err, ERR_TOO_LARGE, "", "the body may have %zu bytes", c->q.body_max);
    if (c->crowded)
        return err_set(err, ERR_UNAVAILABLE, "", "other large bodies are under way; try again");
    if (!buf_ok(&c->q.body))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the body");
    return 0;
}

static enum MHD_Result server_call_finish(struct call *c)
{
    struct err err;
    return check_body(c, &err) < 0 ? call_send_error(c, &err, true) : call_answer(c);
}

enum MHD_Result call_on_access(void *listener, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **call)
{
    struct call *c = *call;
    if (!c)
        return MHD_NO; // no memory for the call: the line is closed
    if (!c->begun)
        return server_call_begin(c, listener, connection, method, url, version);
    if (*size) {
        size_t n = *size;
        *size = 0;
        return collect_body(c, data, n);
    }
    return server_call_finish(c);
}

// The first that we hear of a request: its raw target, before anybody decodes it.
void *call_on_uri(void *listener, const char *uri, struct MHD_Connection *connection)
{
    struct server *s = ((struct listener *)listener)->server;
    struct call *c = calloc(1, sizeof *c);
    (void)connection;
    if (!c)
        return NULL;
    c->q.uri = strdup(uri);
    if (!c->q.uri) {
        free(c);
        return NULL;
    }
    c->server = s;
    c->body_fd = -1;
    LIST_INSERT_HEAD(&s->calls, c, entry);
    snprintf(c->q.id, sizeof c->q.id, "%08" PRIx32 "%08" PRIx64, s->salt,
             ++s->requests & 0xffffffff);
    return c;
}

void call_on_completed(void *listener, struct MHD_Connection *connection, void **call,
                       enum MHD_RequestTerminationCode why)
{
    struct call *c = *call;
    (void)listener;
    (void)connection;
    (void)why;
    if (!c)
        return;
    *call = NULL;
    LIST_REMOVE(c, entry);
    line_head_next(c->line);
    call_end_wait(c);
    call_leave_heavy(c);
    call_leaves_turn(c);
    answer_unref(c->made);
    call_drop_pieces(c);
    fd_cleanup(&c->body_fd);
    c->server->answers_sent -= c->sends_large;
    call_close_source(c);
    reply_fini(&c->r);
    buf_free(&c->q.body);
    c->server->bodies -= c->held;
    c->server->answers_own -= c->held_answer;
    free(c->q.uri);
    free(c);
}

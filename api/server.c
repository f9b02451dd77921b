// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd inside our loop; the only file that knows it.
//
// Each listener is one daemon of the library in external epoll mode. Its epoll descriptor lies in
// our epoll; before every wait of the loop each daemon runs once and says how long it may sleep.
// A request that waits is a suspended connection: it costs memory and nothing else.
//
// Connections are taken in here, not by the library: after one that could not be had (no
// descriptor, no memory) it takes in no other one until some connection ends, and a stream of
// events may last for hours.
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/access.h"
#include "api/api.h"
#include "api/audit.h"
#include "api/check.h"
#include "api/counts.h"
#include "api/dispatch.h"
#include "api/events.h"
#include "api/line.h"
#include "api/listen.h"
#include "api/router.h"
#include "api/run_bodies.h"
#include "api/tls.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

// How many connections there may be is the configuration's to say (api.h).
enum {
    LISTENERS_MAX = 8,
    // Headers as they came and as the library lists them: 8 KiB of a cookie-laden browser twice.
    CONNECTION_MEMORY = 16384,
    // Waiters are told so many a round, about 2 ms, and other requests have their turn between.
    WAKE_BATCH = 64,
    DESCRIPTORS_SPARE = 256,    // besides connections: database, a run, a backup, the library's
    CROWD = 64,                 // so many connections at once: 1 MiB that came and may go again
    IDLE_TIMEOUT_S = 30,        // of silence; how long each step may take at all says line.h
    BODIES_MAX = 48 << 20,      // of all large bodies under way together: two imports
    BODY_DISCARD_MAX = 1 << 20, // of a body without a length: then the line is cut
    STREAM_BLOCK = 4096,
    RETRY_BACKUP_S = 30,   // a gigabyte and its way to the client
    ACCEPT_BATCH = 64,     // taken in a round, before those that are there have their turn
    ACCEPT_PAUSE_MS = 100, // when one cannot be taken in: the others wait in the backlog
};

struct listener {
    struct server *server;
    struct MHD_Daemon *mhd;
    struct listen_socket socket; // owned
    int n;                       // connections
    struct loop_watch *watch;    // of mhd
    struct loop_watch *incoming; // of the socket; NULL while none is taken in
    struct loop_timer *pause;
};

struct server {
    struct api_services api;
    int n;
    struct listener listeners[LISTENERS_MAX];
    struct buf addresses;
    const char *names;                 // borrowed, of the configuration
    char *socket_path;                 // owned; NULL: none
    uint64_t requests;                 // numbers them
    uint32_t salt;                     // tells the ids of two daemons apart
    size_t bodies;                     // bytes of large bodies under way
    int connections;                   // of a listener
    int waiting;                       // suspended for long: long polls and event streams
    struct call *waking, **waking_end; // due to be resumed, in the order in which they were woken
    struct call *calls;                // all requests under way
    struct lines lines;                // all connections
    struct audit audit;
    struct tls_files tls;
    bool stopping;
};

// One request with its reply, from its first line until the reply is sent.
struct call {
    struct call *next, *prev; // of server->calls
    struct call *next_waking; // of server->waking
    struct server *server;
    struct listener *listener;
    struct MHD_Connection *connection;
    struct line *line; // of the connection; NULL: there was no memory for it
    struct request q;
    struct reply r;
    struct waiter *waiter;
    struct stream *stream;
    struct backup *backup;
    struct loop_watch *hangup; // of a client that waits
    size_t received;
    size_t held; // of server->bodies
    bool begun, suspended, counted, gone, crowded;
};

// ---- waiting ----

// Nothing ends a suspended connection but this, so the call is there when its turn comes.
static void resume(void *ctx)
{
    struct call *c = ctx;
    if (!c->suspended)
        return;
    c->suspended = false;
    c->next_waking = NULL;
    *c->server->waking_end = c;
    c->server->waking_end = &c->next_waking;
}

static void wake_some(struct server *s)
{
    for (int i = 0; s->waking && i < WAKE_BATCH; i++) {
        struct call *c = s->waking;
        s->waking = c->next_waking;
        if (!s->waking)
            s->waking_end = &s->waking;
        MHD_resume_connection(c->connection);
    }
}

// Who waits for us is not late.
static void suspend(struct call *c)
{
    c->suspended = true;
    line_allow(c->line, -1);
    MHD_suspend_connection(c->connection);
}

static int count_waiter(struct call *c, struct err *err)
{
    if (c->server->stopping || c->server->waiting >= c->server->connections / 2)
        return err_set(err, ERR_UNAVAILABLE, "", "%d clients wait already; try again, or poll",
                       c->server->waiting);
    c->server->waiting++;
    c->counted = true;
    return 0;
}

static void uncount_waiter(struct call *c)
{
    c->server->waiting -= c->counted;
    c->counted = false;
}

// ---- replies ----

static void add_header(struct MHD_Response *m, const char *name, const char *value)
{
    if (value && *value)
        MHD_add_response_header(m, name, value);
}

static void add_number(struct MHD_Response *m, const char *name, int n)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    if (n > 0)
        MHD_add_response_header(m, name, text);
}

// What a browser may do with a reply that it shows as a page of its own.
static const struct {
    const char *type, *policy;
} page_policies[] = {
    {"text/html",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
     "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    // A picture has its colours in itself and needs nothing else.
    {"image/svg+xml",
     "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
     "frame-ancestors 'none'; sandbox"},
};

static void add_page_headers(struct MHD_Response *m, const struct reply *r)
{
    const char *policy = "default-src 'none'; frame-ancestors 'none'; sandbox";
    for (size_t i = 0; r->type && i < COUNT_OF(page_policies); i++)
        if (str_starts(r->type, page_policies[i].type)) {
            policy = page_policies[i].policy;
            add_header(m, "Referrer-Policy", "no-referrer");
        }
    add_header(m, "Content-Security-Policy", policy);
    add_header(m, "Cross-Origin-Resource-Policy", "same-origin");
}

static void add_headers(struct MHD_Response *m, const struct call *c, const char *etag)
{
    const struct reply *r = &c->r;
    add_header(m, "Content-Type", r->status == 204 ? NULL : r->type);
    add_header(m, "X-Request-Id", c->q.id);
    add_header(m, "X-Content-Type-Options", "nosniff");
    add_header(m, "Cache-Control", *etag ? "no-cache" : "no-store");
    add_header(m, "ETag", etag);
    add_header(m, "Vary", r->store ? "Accept" : NULL);
    add_header(m, "Allow", r->allow);
    add_header(m, "WWW-Authenticate", r->status == 401 ? "Bearer realm=\"numaprobe\"" : NULL);
    add_header(m, "Location", r->location);
    add_header(m, "Connection", r->close ? "close" : NULL);
    add_number(m, "Retry-After", r->retry_after_s);
    add_page_headers(m, r);
}

static uint64_t reply_bytes(const struct reply *r)
{
    return r->file ? r->file->size : r->body.len;
}

static struct MHD_Response *body_response(struct reply *r, bool without)
{
    if (r->file && !without)
        return MHD_create_response_from_buffer(r->file->size, (void *)(uintptr_t)r->file->data,
                                               MHD_RESPMEM_PERSISTENT);
    size_t n = without ? 0 : r->body.len;
    if (!n)
        return MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    struct MHD_Response *m =
        MHD_create_response_from_buffer(n, r->body.data, MHD_RESPMEM_MUST_FREE);
    if (m)
        r->body = BUF_INIT; // the library frees it
    return m;
}

static enum MHD_Result queue(struct call *c, struct MHD_Response *m, int status, const char *etag)
{
    if (!m)
        return MHD_NO;
    add_headers(m, c, etag);
    counts_add(status);
    enum MHD_Result ok = MHD_queue_response(c->connection, (unsigned)status, m);
    MHD_destroy_response(m);
    return ok;
}

static enum MHD_Result send_whole(struct call *c)
{
    char etag[24];
    reply_etag(&c->r, etag, sizeof etag);
    bool same = reply_matches(request_header(&c->q, "If-None-Match"), etag);
    int status = same ? 304 : c->r.status;
    audit_request(&c->server->audit, &c->q, c->line, status, clock_mono_ms());
    line_allow(c->line, line_time(LINE_ANSWER_MS, reply_bytes(&c->r)));
    return queue(c, body_response(&c->r, same), status, etag);
}

static enum MHD_Result send_error(struct call *c, const struct err *err, bool close)
{
    reply_problem(&c->r, &c->q, err, NULL);
    c->r.close = close;
    return send_whole(c);
}

// ---- clients that go while they wait: nobody looks at a suspended connection, so we do ----

static void on_hangup(void *ctx, uint32_t events)
{
    struct call *c = ctx;
    (void)events;
    loop_unwatch(c->hangup);
    c->hangup = NULL;
    backup_free(c->backup);
    c->backup = NULL;
    c->gone = true;
    resume(c);
}

static int watch_hangup(struct call *c, struct err *err)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!info)
        return err_set(err, ERR_INTERNAL, "", "the connection has no descriptor");
    c->hangup = loop_watch_fd(c->server->api.loop, info->connect_fd, EPOLLRDHUP, on_hangup, c, err);
    return c->hangup ? 0 : -1;
}

// ---- event streams ----

static ssize_t read_stream(void *ctx, uint64_t pos, char *out, size_t room)
{
    struct call *c = ctx;
    (void)pos;
    if (c->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    ssize_t n = stream_read(c->stream, out, room);
    if (n > 0)
        return n;
    if (n < 0 || c->server->stopping)
        return MHD_CONTENT_READER_END_OF_STREAM;
    suspend(c);
    return 0;
}

// Takes one of the places of those who wait; false: `err` says why not.
static bool may_wait(struct call *c, struct err *err)
{
    if (count_waiter(c, err) < 0)
        return false;
    if (watch_hangup(c, err) == 0)
        return true;
    uncount_waiter(c);
    return false;
}

static enum MHD_Result cannot_wait(struct call *c, const struct err *err)
{
    loop_unwatch(steal_ptr(&c->hangup));
    uncount_waiter(c);
    return send_error(c, err, false);
}

static enum MHD_Result send_stream(struct call *c)
{
    struct err err;
    if (!may_wait(c, &err))
        return send_error(c, &err, false);
    c->stream = stream_new(&c->server->api, c->r.run_id, c->r.after, resume, c, &err);
    if (!c->stream)
        return cannot_wait(c, &err);
    line_allow(c->line, -1); // it lasts as long as its run; heartbeats find who has gone
    return queue(
        c, MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, c, NULL),
        200, "");
}

static enum MHD_Result start_waiting(struct call *c)
{
    struct err err;
    if (!may_wait(c, &err))
        return send_error(c, &err, false);
    c->waiter = waiter_new(&c->server->api, c->r.run_id, c->r.wait_ms, resume, c, &err);
    if (!c->waiter)
        return cannot_wait(c, &err);
    suspend(c);
    return MHD_YES;
}

// ---- backups

static enum MHD_Result start_backup(struct call *c)
{
    struct err err;
    if (strcmp(c->q.method, "HEAD") == 0) // nothing is copied to say how long it would be
        return send_whole(c);
    c->backup = keeper_backup(c->server->api.keeper, resume, c, &err);
    if (!c->backup || watch_hangup(c, &err) < 0) {
        c->r.retry_after_s = err.code == ERR_CONFLICT ? RETRY_BACKUP_S : 0;
        return send_error(c, &err, false);
    }
    suspend(c);
    return MHD_YES;
}

static enum MHD_Result send_backup(struct call *c)
{
    struct err err;
    int64_t bytes = 0;
    loop_unwatch(c->hangup);
    c->hangup = NULL;
    if (c->gone)
        return MHD_NO;
    int fd = backup_take(c->backup, &bytes, &err);
    if (fd < 0)
        return send_error(c, &err, false);
    struct MHD_Response *m = MHD_create_response_from_fd64((uint64_t)bytes, fd);
    if (!m) {
        close(fd);
        return MHD_NO;
    }
    add_header(m, "Content-Disposition", "attachment; filename=\"numaprobe.db\"");
    line_allow(c->line, line_time(LINE_ANSWER_MS, (uint64_t)bytes));
    return queue(c, m, 200, "");
}

static enum MHD_Result answer(struct call *c)
{
    if (c->backup || c->gone)
        return send_backup(c);
    if (c->waiter) {
        waiter_free(steal_ptr(&c->waiter));
        loop_unwatch(steal_ptr(&c->hangup));
        uncount_waiter(c);
        c->q.again = true;
    }
    reply_fini(&c->r);
    dispatch(&c->q, &c->r);
    if (c->r.kind == REPLY_WAIT && !c->server->stopping)
        return start_waiting(c);
    if (c->r.kind == REPLY_STREAM)
        return send_stream(c);
    if (c->r.kind == REPLY_BACKUP && !c->server->stopping)
        return start_backup(c);
    return send_whole(c);
}

// ---- requests ----

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

static int check_call(struct call *c, struct err *err)
{
    struct request *q = &c->q;
    int n = MHD_get_connection_values(c->connection, MHD_HEADER_KIND, NULL, NULL);
    if (n > HTTP_HEADERS_MAX)
        return err_set(err, ERR_BAD_REQUEST, "", "more than %d headers", HTTP_HEADERS_MAX);
    MHD_get_connection_values(c->connection, MHD_HEADER_KIND, collect_header, q);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    q->head_bytes = info ? info->header_size : SIZE_MAX;
    if (check_framing(q, err) < 0 || request_split(q, err) < 0)
        return -1;
    find_limits(q);
    if (check_certificate(c, err) < 0)
        return -1;
    if (check_source(q, err) < 0 || access_identify(q, err) < 0 || dispatch_allows(q, err) < 0)
        return -1;
    return check_body_headers(q, err);
}

static void allow_body(struct call *c)
{
    if (request_header(&c->q, "Content-Length") || request_header(&c->q, "Transfer-Encoding"))
        line_allow(c->line, line_time(LINE_BODY_MS, c->q.body_max));
}

static enum MHD_Result begin(struct call *c, struct listener *l, struct MHD_Connection *connection,
                             const char *method)
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
    c->q.method = method;
    c->q.bound = l->socket.host;
    c->q.names = c->server->names;
    c->q.tls = l->socket.tls;
    c->q.granted = c->line->scope;
    c->q.api = &c->server->api;
    c->q.path = c->q.uri;
    if (check_call(c, &err) < 0)
        return send_error(c, &err, true); // before the body: the library then closes
    allow_body(c);
    return MHD_YES;
}

static enum MHD_Result collect_body(struct call *c, const char *data, size_t n)
{
    c->received += n;
    if (c->received > HTTP_BODY_MAX && c->received <= c->q.body_max) {
        c->crowded |= c->server->bodies + n > BODIES_MAX;
        c->held += c->crowded ? 0 : n;
        c->server->bodies += c->crowded ? 0 : n;
    }
    if (c->received <= c->q.body_max && !c->crowded)
        buf_add(&c->q.body, data, n);
    return c->received > c->q.body_max + BODY_DISCARD_MAX ? MHD_NO : MHD_YES;
}

static enum MHD_Result finish(struct call *c)
{
    struct err err;
    if (c->received > c->q.body_max) {
        err_set(&err, ERR_TOO_LARGE, "", "the body may have %zu bytes", c->q.body_max);
        return send_error(c, &err, true);
    }
    if (c->crowded) {
        err_set(&err, ERR_UNAVAILABLE, "", "other large bodies are under way; try again");
        return send_error(c, &err, true);
    }
    if (!buf_ok(&c->q.body)) {
        err_set(&err, ERR_NO_MEMORY, "", "no memory for the body");
        return send_error(c, &err, true);
    }
    return answer(c);
}

static enum MHD_Result on_access(void *ctx, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **call)
{
    struct call *c = *call;
    (void)url;
    (void)version;
    if (!c)
        return MHD_NO; // no memory for the call: the line is closed
    if (!c->begun)
        return begin(c, ctx, connection, method);
    if (*size) {
        size_t n = *size;
        *size = 0;
        return collect_body(c, data, n);
    }
    return finish(c);
}

static void link_call(struct call *c)
{
    c->next = c->server->calls;
    if (c->next)
        c->next->prev = c;
    c->server->calls = c;
}

static void unlink_call(struct call *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->server->calls = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

// The first that we hear of a request: its raw target, before anybody decodes it.
static void *on_uri(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    struct listener *l = ctx;
    struct call *c = calloc(1, sizeof *c);
    (void)connection;
    if (!c)
        return NULL;
    c->q.uri = strdup(uri);
    if (!c->q.uri) {
        free(c);
        return NULL;
    }
    c->server = l->server;
    link_call(c);
    snprintf(c->q.id, sizeof c->q.id, "%08" PRIx32 "%08" PRIx64, l->server->salt,
             ++l->server->requests & 0xffffffff);
    return c;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **call,
                         enum MHD_RequestTerminationCode why)
{
    struct call *c = *call;
    (void)ctx;
    (void)connection;
    (void)why;
    if (!c)
        return;
    *call = NULL;
    unlink_call(c);
    line_allow(c->line, LINE_KEPT_MS);
    waiter_free(c->waiter);
    stream_free(c->stream);
    loop_unwatch(c->hangup);
    backup_free(c->backup);
    uncount_waiter(c);
    reply_fini(&c->r);
    buf_free(&c->q.body);
    c->server->bodies -= c->held;
    if (c->held)
        malloc_trim(0); // what was parsed lay in small pieces, which the library would keep
    free(c->q.uri);
    free(c);
}

static enum scope scope_of(const struct listener *l, int fd)
{
    const struct api_access *a = &l->server->api.access;
    if (!*l->socket.host)
        return access_of_account(a, fd);
    if (l->socket.loopback)
        return a->anonymous;
    return a->insecure_anonymous && a->anonymous >= SCOPE_READ ? SCOPE_READ : SCOPE_NONE;
}

// When a crowd has gone, what it was served from goes back too: the library would keep it.
static void give_back(struct lines *all)
{
    if (all->most < CROWD || all->n > all->most / 4)
        return;
    all->most = all->n;
    malloc_trim(0);
}

static void hold_back(struct listener *l)
{
    loop_unwatch(l->incoming);
    l->incoming = NULL;
}

static void on_incoming(void *ctx, uint32_t events)
{
    struct listener *l = ctx;
    (void)events;
    for (int i = 0; i < ACCEPT_BATCH && l->n < l->server->connections; i++) {
        struct sockaddr_storage from;
        socklen_t n = sizeof from;
        int fd = accept4(l->socket.fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            MHD_add_connection(l->mhd, fd, (struct sockaddr *)&from, n); // closes it if it fails
            continue;
        }
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
            return;
        log_event(LOG_LVL_WARN, "http.accept", "listen=%s text=\"%s\"", l->socket.text,
                  strerror(errno));
        hold_back(l);
        loop_timer_set(l->pause, ACCEPT_PAUSE_MS);
        return;
    }
    if (l->n >= l->server->connections)
        hold_back(l); // until one ends
}

static void take_in(struct listener *l)
{
    if (l->incoming || l->n >= l->server->connections || l->server->stopping)
        return;
    l->incoming = loop_watch_fd(l->server->api.loop, l->socket.fd, EPOLLIN, on_incoming, l, NULL);
    if (!l->incoming)
        loop_timer_set(l->pause, ACCEPT_PAUSE_MS);
}

static void pause_over(void *ctx, uint32_t events)
{
    (void)events;
    take_in(ctx);
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct listener *l = ctx;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        l->n++;
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct line *line =
            line_new(&l->server->lines, l, info->connect_fd, *l->socket.host == '\0');
        if (line)
            line->scope = scope_of(l, info->connect_fd);
        *socket_context = line;
        return;
    }
    line_free(*socket_context);
    *socket_context = NULL;
    give_back(&l->server->lines);
    l->n--;
    take_in(l);
}

// ---- life ----

static size_t keep_escapes(void *ctx, struct MHD_Connection *connection, char *s)
{
    (void)ctx;
    (void)connection;
    return strlen(s); // we decode ourselves, and only the query
}

static void on_message(void *ctx, const char *fmt, va_list ap)
{
    char text[300];
    (void)ctx;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    vsnprintf(text, sizeof text, fmt, ap);
#pragma GCC diagnostic pop
    text[strcspn(text, "\n")] = '\0';
    log_event(LOG_LVL_DEBUG, "http", "text=\"%s\"", text);
}

static void on_ready(void *ctx, uint32_t events)
{
    (void)ctx;
    (void)events; // run_all comes before the next wait
}

// Runs every daemon after each round of the loop; the time until the next deadline of one.
static int64_t run_all(void *ctx)
{
    struct server *s = ctx;
    wake_some(s);
    int64_t least = s->waking ? 0 : -1;
    for (int i = 0; i < s->n; i++) {
        MHD_UNSIGNED_LONG_LONG ms;
        MHD_run(s->listeners[i].mhd);
        if (MHD_get_timeout(s->listeners[i].mhd, &ms) == MHD_YES &&
            (least < 0 || (int64_t)ms < least))
            least = (int64_t)ms;
    }
    return least;
}

static char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

static struct MHD_Daemon *start_mhd(struct listener *l)
{
    struct tls_files *t = &l->server->tls;
    const int n = l->server->connections;
    // What ends the list comes sooner without TLS, or without certificates of clients.
    struct MHD_OptionItem tls[] = {
        {l->socket.tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, t->certificate.data},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, t->key.data},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
        {t->client_ca.len ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, t->client_ca.data},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
            MHD_USE_NO_LISTEN_SOCKET | (l->socket.tls ? MHD_USE_TLS : 0),
        0, NULL, NULL, on_access, l, MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)n, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)(n - n / 4), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_uri, l,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, l, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

// Takes over the socket.
static int add_listener(struct server *s, const struct listen_socket *socket, struct err *err)
{
    struct listener *l = &s->listeners[s->n];
    if (s->n == LISTENERS_MAX) {
        close(socket->fd);
        return err_set(err, ERR_INVALID, "listen", "more than %d sockets", s->n);
    }
    *l = (struct listener){.server = s, .socket = *socket};
    l->mhd = start_mhd(l);
    if (!l->mhd) {
        close(socket->fd);
        return err_set(err, ERR_INTERNAL, "", "the HTTP library cannot serve %s", socket->text);
    }
    s->n++;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    if (*socket->host)
        buf_fmt(&s->addresses, "%s%s", s->addresses.len ? "," : "", socket->text);
    l->watch = loop_watch_fd(s->api.loop, info->epoll_fd, EPOLLIN, on_ready, l, err);
    l->pause = l->watch ? loop_timer_new(s->api.loop, pause_over, l, err) : NULL;
    l->incoming =
        l->pause ? loop_watch_fd(s->api.loop, socket->fd, EPOLLIN, on_incoming, l, err) : NULL;
    return l->incoming ? 0 : -1;
}

static int add_tcp(struct server *s, const char *list, struct err *err)
{
    while (*list) {
        char one[80];
        struct listen_socket socket;
        size_t n = strcspn(list, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, list);
        list += n + (list[n] == ',');
        if (s->n == LISTENERS_MAX - 1)
            return err_set(err, ERR_INVALID, "listen", "more than %d addresses", s->n);
        if (!s->tls.certificate.len && str_starts(one, "https:"))
            return err_set(err, ERR_INVALID, "listen", "%s needs tls_certificate and tls_key", one);
        if (listen_tcp(&socket, one, s->api.access.insecure_plaintext, err) < 0 ||
            add_listener(s, &socket, err) < 0)
            return -1;
    }
    return 0;
}

static int add_unix(struct server *s, const char *path, struct err *err)
{
    struct listen_socket socket;
    if (!*path)
        return 0;
    s->socket_path = strdup(path);
    if (!s->socket_path)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a listener");
    if (listen_unix(&socket, path, s->api.access.socket_open, err) < 0) {
        free(steal_ptr(&s->socket_path)); // not ours: it must not be removed
        return -1;
    }
    return add_listener(s, &socket, err);
}

// What systemd listens on already. One kind of sockets is settled by them; of the other kind the
// configuration says.
static int add_passed(struct server *s, const struct api_config *c, bool *tcp, bool *local,
                      struct err *err)
{
    for (int i = 0; i < c->n_passed; i++) {
        struct listen_socket socket;
        if (listen_passed(&socket, c->passed[i], s->api.access.insecure_plaintext, err) < 0 ||
            add_listener(s, &socket, err) < 0)
            return -1;
        if (*socket.host)
            *tcp = true;
        else
            *local = true;
    }
    return 0;
}

// A full house must leave descriptors to the database and to runs.
static int have_descriptors(const struct server *s, struct err *err)
{
    const rlim_t need = (rlim_t)s->n * (rlim_t)s->connections + DESCRIPTORS_SPARE;
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) < 0)
        return err_sys(err, "cannot see how many descriptors there may be");
    if (now.rlim_cur >= need)
        return 0;
    if (now.rlim_max < need)
        return err_set(
            err, ERR_INVALID, "connections",
            "connections = %d on %d sockets need %llu descriptors and the limit is %llu: "
            "ask for fewer, or raise it (LimitNOFILE=, ulimit -Hn)",
            s->connections, s->n, (unsigned long long)need, (unsigned long long)now.rlim_max);
    now.rlim_cur = need;
    return setrlimit(RLIMIT_NOFILE, &now) < 0
               ? err_sys(err, "cannot have %llu descriptors", (unsigned long long)need)
               : 0;
}

static int start(struct server *s, const struct api_config *c, struct err *err)
{
    bool tcp = false, local = false;
    if (tls_read(&s->tls, c->tls_certificate, c->tls_key, c->tls_client_ca, err) < 0)
        return -1;
    if (getrandom(&s->salt, sizeof s->salt, 0) != sizeof s->salt)
        return err_sys(err, "no random numbers");
    if (lines_init(&s->lines, s->api.loop, s->connections / 4, err) < 0 ||
        add_passed(s, c, &tcp, &local, err) < 0)
        return -1;
    if (add_tcp(s, tcp ? "" : c->listen, err) < 0 || add_unix(s, local ? "" : c->socket, err) < 0)
        return -1;
    if (!s->n)
        return err_set(err, ERR_INVALID, "listen", "there is neither an address nor a socket");
    if (!buf_ok(&s->addresses))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a listener");
    if (have_descriptors(s, err) < 0)
        return -1;
    loop_set_prepare(s->api.loop, run_all, s);
    return 0;
}

struct server *server_new(const struct api_services *api, const struct api_config *c,
                          struct err *err)
{
    struct server *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the server");
        return NULL;
    }
    s->api = *api;
    s->names = c->names;
    s->connections = c->connections;
    s->waking_end = &s->waking;
    s->api.bodies = run_bodies_new(api->store, err);
    if (!s->api.bodies || start(s, c, err) < 0) {
        server_free(s);
        return NULL;
    }
    return s;
}

const char *server_addresses(const struct server *s)
{
    return buf_text(&s->addresses);
}

const char *server_socket(const struct server *s)
{
    for (int i = 0; i < s->n; i++)
        if (!*s->listeners[i].socket.host)
            return s->listeners[i].socket.text;
    return "";
}

// The library must not be stopped while a connection is suspended: answer those that wait first.
static void wake_all(struct server *s)
{
    for (struct call *c = s->calls; c; c = c->next)
        resume(c);
    do
        run_all(s);
    while (s->waking);
    run_all(s); // the first round takes them back, the second sends what is left
}

void server_free(struct server *s)
{
    if (!s)
        return;
    s->stopping = true;
    loop_set_prepare(s->api.loop, NULL, NULL);
    wake_all(s);
    for (int i = 0; i < s->n; i++) {
        struct listener *l = &s->listeners[i];
        loop_unwatch(l->watch);
        hold_back(l);
        loop_timer_free(l->pause);
        MHD_stop_daemon(l->mhd);
        close(l->socket.fd);
    }
    lines_fini(&s->lines);
    tls_files_free(&s->tls);
    run_bodies_free(s->api.bodies);
    if (s->socket_path)
        unlink(s->socket_path);
    free(s->socket_path);
    buf_free(&s->addresses);
    free(s);
}

// SPDX-License-Identifier: Apache-2.0
// Requests of the command line: where the daemon is, its token and certificates come from the
// settings. The body goes to memory, a file or a reader of events.
#include "client/http.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/problem.h"
#include "client/socket.h"
#include "client/token.h"
#include "fetch/fetch.h"

enum {
    EVENT_MAX = 1 << 20, // bytes of one event of a stream
    CONNECT_MS = 10000,
    // The daemon sends a heartbeat every 15 s: three missed ones are a dead connection.
    STREAM_SILENT_S = 50,
};

volatile int http_interrupted;

void http_reply_free(struct http_reply *r)
{
    buf_free(&r->body);
}

// One request, and what its parts point to.
struct http_request {
    struct fetch_request q;
    struct fetch_limits limits;
    struct fetch_tls tls;
    struct buf url; // lists of CPUs of availability take kilobytes
    char token[TOKEN_ROOM];
};

static void request_end(struct http_request *r)
{
    explicit_bzero(r->token, sizeof r->token);
    buf_free(&r->url);
}

// Path of "unix:/path" or "unix:///path", else NULL.
static const char *socket_path(const char *url)
{
    if (!str_starts(url, "unix:"))
        return NULL;
    const char *path = url + strlen("unix:");
    while (path[0] == '/' && path[1] == '/')
        path++;
    return path;
}

// "unix:/path" or "http(s)://host:port".
static int set_address(struct http_request *r, const char *base, const char *path, struct err *err)
{
    r->q.socket = socket_path(base);
    if (r->q.socket)
        base = "http://localhost";
    size_t n = strlen(base);
    while (n && base[n - 1] == '/')
        n--;
    // curl takes an address without a scheme as http, and so do we.
    buf_fmt(&r->url, "%s%.*s%s", strstr(base, "://") ? "" : "http://", (int)n, base, path);
    r->q.url = buf_text(&r->url);
    return buf_ok(&r->url) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
}

static int request_begin(struct http_request *r, const struct cli *c, const char *method,
                         const char *path, struct err *err)
{
    if (token_find(c, r->token, err) < 0 || set_address(r, c->url, path, err) < 0)
        return -1;
    r->tls = (struct fetch_tls){c->cacert, c->cert, c->key};
    // No least rate: a request may wait for its run, and the user chose the time.
    r->limits = fetch_defaults;
    r->limits.body_max = HTTP_BODY_MAX;
    r->limits.connect_ms = CONNECT_MS;
    r->limits.total_ms = (int)c->timeout_s * 1000;
    r->limits.least_rate = 0;
    r->q.method = method;
    r->q.token = r->token;
    r->q.tls = &r->tls;
    r->q.limits = &r->limits;
    r->q.interrupted = &http_interrupted;
    return 0;
}

static int connect_error(const struct cli *c, struct err *err)
{
    const char *path = c->url_assumed ? SOCKET_OF_SYSTEM : socket_path(c->url);
    if (path && socket_denied(path))
        return socket_set_denied(path, err);
    if (c->url_option)
        return err_set(err, ERR_UNREACHABLE, "url", "nothing responds at %.120s (%s)", c->url,
                       c->url_option);
    return err_set(
        err, ERR_UNREACHABLE, "url",
        "no daemon responds at %.120s. Start it with: systemctl start numaprobed (or name "
        "its address with --url)",
        c->url);
}

static int request_error(const struct cli *c, enum fetch_error e, struct err *err)
{
    if (e == FETCH_TLS_UNTRUSTED)
        problem_hint("--cacert=FILE names the certificate of the authority that signed it (PEM)");
    switch (e) {
    case FETCH_INTERRUPTED:
        return err_set(err, ERR_TIMEOUT, "", "interrupted");
    case FETCH_BODY_TOO_LARGE:
        return err_set(err, ERR_UNREACHABLE, "url", "the response of %s is larger than %d MiB",
                       c->url, HTTP_BODY_MAX >> 20);
    case FETCH_BAD_URL:
        return err_set(err, ERR_USAGE, "",
                       "%s: must be http://HOST:PORT, https://HOST:PORT or unix:/PATH", c->url);
    case FETCH_NO_MEMORY:
        return err_set(err, ERR_NO_MEMORY, "", "%s", fetch_error_info(e)->text);
    case FETCH_REFUSED:
    case FETCH_NO_ROUTE:
    case FETCH_DENIED:
        return connect_error(c, err);
    default:
        return err_set(err, ERR_UNREACHABLE, "url", "%.120s: %s", c->url,
                       fetch_error_info(e)->text);
    }
}

// Makes the request; *out gets the status and the body.
static enum fetch_error request_make(const struct http_request *r, struct http_reply *out)
{
    CLEANUP_RESPONSE struct fetch_response got = {0};
    enum fetch_error e = fetch_one(&r->q, &got);
    out->status = got.status;
    out->body = got.body;
    got.body = BUF_INIT;
    return e;
}

static int perform(const struct http_request *r, const struct cli *c, struct http_reply *out,
                   struct err *err)
{
    enum fetch_error e = request_make(r, out);
    return e ? request_error(c, e, err) : 0;
}

int http_call(const struct cli *c, const char *method, const char *path, const char *body,
              const char *header, struct http_reply *out, struct err *err)
{
    struct http_request r CLEANUP(request_end) = {0};
    int n = 0;
    if (request_begin(&r, c, method, path, err) < 0)
        return -1;
    if (body || strcmp(method, "POST") == 0) {
        r.q.headers[n++] = "Content-Type: application/json";
        r.q.body = body;
        r.q.body_len = body ? strlen(body) : 0;
    }
    r.q.headers[n] = header;
    return perform(&r, c, out, err);
}

int http_post(const struct cli *c, const char *path, const char *type, const struct buf *body,
              struct http_reply *out, struct err *err)
{
    struct http_request r CLEANUP(request_end) = {0};
    char header[80];
    if (request_begin(&r, c, "POST", path, err) < 0)
        return -1;
    snprintf(header, sizeof header, "Content-Type: %s", type);
    r.q.headers[0] = header;
    r.q.body = buf_text(body);
    r.q.body_len = body->len;
    return perform(&r, c, out, err);
}

void http_escape(struct buf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (isalnum(*p) || strchr("-._~", *p))
            buf_char(out, (char)*p);
        else
            buf_fmt(out, "%%%02X", *p);
}

static enum err_code code_of(const char *type, long status)
{
    const char *slug = strrchr(type, '/');
    for (int k = 0; slug && k < ERR_CODES; k++)
        if (strcmp(err_info(k)->slug, slug + 1) == 0)
            return (enum err_code)k;
    return status == 404                    ? ERR_NOT_FOUND
           : status == 409                  ? ERR_BUSY
           : status == 401 || status == 403 ? ERR_FORBIDDEN
                                            : ERR_INTERNAL;
}

int http_problem(const struct http_reply *r, struct err *err)
{
    CLEANUP_JSON struct json *j = json_parse(buf_text(&r->body), r->body.len, NULL);
    const char *detail = json_get_text(j, "detail", NULL);
    if (!detail)
        return err_set(err, r->status == 404 ? ERR_NOT_FOUND : ERR_INTERNAL, "url",
                       "the server responded with %ld and no explanation: is it numaprobed?",
                       r->status);
    const char *member = json_get_text(j, "member", "");
    return err_set(err, code_of(json_get_text(j, "type", ""), r->status), member, "%s", detail);
}

int http_json(const struct cli *c, const char *method, const char *path, const char *body,
              struct json **out, struct err *err)
{
    CLEANUP_REPLY struct http_reply r = {0};
    if (http_call(c, method, path, body, NULL, &r, err) < 0)
        return -1;
    if (r.status < 200 || r.status > 299)
        return http_problem(&r, err);
    *out = json_parse_within(buf_text(&r.body), r.body.len, HTTP_JSON_MAX, err);
    if (*out)
        return 0;
    if (err && err->code != ERR_NO_MEMORY)
        err->code = ERR_UNREACHABLE;
    return err_prefix(err, "the response of %.100s", c->url);
}

struct file_taker {
    int fd, sys; // sys: errno of the write that failed
};

static bool take_file(void *ctx, const char *data, size_t n)
{
    struct file_taker *t = ctx;
    for (size_t done = 0; done < n;) {
        ssize_t w = write(t->fd, data + done, n - done);
        if (w < 0 && errno != EINTR) {
            t->sys = errno;
            return false;
        }
        done += w > 0 ? (size_t)w : 0;
    }
    return true;
}

int http_download(const struct cli *c, const char *path, int fd, struct http_reply *out,
                  struct err *err)
{
    struct http_request r CLEANUP(request_end) = {0};
    struct file_taker file = {.fd = fd};
    if (request_begin(&r, c, "GET", path, err) < 0)
        return -1;
    r.limits.total_ms = 0;
    r.q.take = take_file;
    r.q.take_ctx = &file;
    enum fetch_error e = request_make(&r, out);
    errno = file.sys;
    if (e == FETCH_STOPPED)
        return err_sys(err, "cannot write the file");
    return e ? request_error(c, e, err) : 0;
}

struct stream {
    event_fn *fn;
    void *ctx;
    struct buf line, data; // lines are cut here
    char event[32], id[32];
    bool stopped, too_large;
};

static void stream_end(struct stream *s)
{
    buf_free(&s->line);
    buf_free(&s->data);
}

static void stream_field(struct stream *s, const char *line)
{
    if (str_starts(line, "event: "))
        snprintf(s->event, sizeof s->event, "%s", line + 7);
    else if (str_starts(line, "id: "))
        snprintf(s->id, sizeof s->id, "%s", line + 4);
    else if (str_starts(line, "data: "))
        buf_str(&s->data, line + 6);
    else if (!*line && s->data.len) {
        s->stopped = !s->fn(s->ctx, s->event, s->id, buf_text(&s->data), s->data.len);
        buf_reset(&s->data);
    }
}

static bool take_stream(void *ctx, const char *data, size_t n)
{
    struct stream *s = ctx;
    buf_add(&s->line, data, n);
    s->too_large = !buf_ok(&s->line) || s->line.len > EVENT_MAX || s->data.len > EVENT_MAX;
    if (s->too_large)
        return false;
    for (char *end;
         !s->stopped && s->line.len && (end = memchr(s->line.data, '\n', s->line.len));) {
        *end = '\0';
        size_t used = (size_t)(end - s->line.data) + 1;
        if (used > 1 && end[-1] == '\r')
            end[-1] = '\0';
        stream_field(s, s->line.data);
        buf_drop(&s->line, used);
    }
    return !s->stopped;
}

int http_events(const struct cli *c, const char *path, const char *last_id, event_fn *fn, void *ctx,
                struct err *err)
{
    CLEANUP_REPLY struct http_reply reply = {0};
    struct http_request r CLEANUP(request_end) = {0};
    struct stream stream CLEANUP(stream_end) = {.fn = fn, .ctx = ctx};
    char header[64];
    if (request_begin(&r, c, "GET", path, err) < 0)
        return -1;
    r.q.headers[0] = "Accept: text/event-stream";
    if (last_id && *last_id) {
        snprintf(header, sizeof header, "Last-Event-ID: %.40s", last_id);
        r.q.headers[1] = header;
    }
    r.limits.total_ms = 0;
    r.limits.least_rate = 1;
    r.limits.slow_s = STREAM_SILENT_S;
    r.q.take = take_stream;
    r.q.take_ctx = &stream;
    enum fetch_error e = request_make(&r, &reply);
    if (stream.stopped || (!e && reply.status == 200))
        return 0;
    if (!e)
        return err_set(err, ERR_UNAVAILABLE, "", "the event stream was refused (%ld)",
                       reply.status);
    return request_error(c, stream.too_large ? FETCH_BODY_TOO_LARGE : e, err);
}

// SPDX-License-Identifier: Apache-2.0
// One transfer at a time with libcurl's easy interface. The body goes to a buffer, a file or a
// reader of events; each has its limit.
#include "client/http.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/socket.h"
#include "client/token.h"

volatile int http_interrupted;

void http_reply_free(struct http_reply *r)
{
    buf_free(&r->body);
}

struct transfer {
    CURL *curl;
    struct curl_slist *headers;
    CURLcode refused; // the first option that curl could not take
    struct http_reply *reply;
    // Event stream: lines are cut here.
    event_fn *fn;
    void *ctx;
    struct buf line, data;
    char event[32], id[32];
    bool stopped;
    int fd; // http_download
    int write_error;
};

static void transfer_end(struct transfer *t)
{
    curl_slist_free_all(t->headers);
    curl_easy_cleanup(t->curl);
    buf_free(&t->line);
    buf_free(&t->data);
}

static size_t http_take_body(char *data, size_t one, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    if (t->reply->body.len + n * one > HTTP_BODY_MAX)
        return 0;
    buf_add(&t->reply->body, data, n * one);
    return buf_ok(&t->reply->body) ? n * one : 0;
}

static int check_interrupt(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)ctx, (void)a, (void)b, (void)c, (void)d;
    return http_interrupted;
}

// Texts are copied: without memory a token, a certificate or the key that makes a request one of
// its own would silently not be sent.
static void set_text(struct transfer *t, CURLoption option, const char *text)
{
    CURLcode rc = curl_easy_setopt(t->curl, option, text);
    if (!t->refused)
        t->refused = rc;
}

static void add_header(struct transfer *t, const char *header)
{
    struct curl_slist *more = curl_slist_append(t->headers, header);
    if (more)
        t->headers = more;
    else
        t->refused = CURLE_OUT_OF_MEMORY;
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
static void set_address(struct transfer *t, const char *base, const char *path)
{
    char url[1200];
    const char *unix_socket = socket_path(base);
    if (unix_socket) {
        set_text(t, CURLOPT_UNIX_SOCKET_PATH, unix_socket);
        base = "http://localhost";
    }
    size_t n = strlen(base);
    while (n && base[n - 1] == '/')
        n--;
    snprintf(url, sizeof url, "%.*s%s", (int)n, base, path);
    set_text(t, CURLOPT_URL, url);
}

static int set_trust(struct transfer *t, const struct cli *c, struct err *err)
{
    char token[TOKEN_ROOM];
    if (token_find(c, token, err) < 0)
        return -1;
    if (*token) {
        curl_easy_setopt(t->curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        set_text(t, CURLOPT_XOAUTH2_BEARER, token);
        explicit_bzero(token, sizeof token);
    }
    if (*c->cacert)
        set_text(t, CURLOPT_CAINFO, c->cacert);
    if (*c->cert)
        set_text(t, CURLOPT_SSLCERT, c->cert);
    if (*c->key)
        set_text(t, CURLOPT_SSLKEY, c->key);
    curl_easy_setopt(t->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    return 0;
}

static int transfer_begin(struct transfer *t, const struct cli *c, const char *method,
                          const char *path, struct err *err)
{
    t->curl = curl_easy_init();
    if (!t->curl)
        return err_set(err, ERR_NO_MEMORY, "", "curl cannot start");
    set_address(t, c->url, path);
    set_text(t, CURLOPT_CUSTOMREQUEST, method);
    set_text(t, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(t->curl, CURLOPT_FOLLOWLOCATION, 0L);
    set_text(t, CURLOPT_PROXY, "");
    curl_easy_setopt(t->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t->curl, CURLOPT_CONNECTTIMEOUT, 10L);
    set_text(t, CURLOPT_USERAGENT, "numaprobe/" NUMAPROBE_VERSION);
    curl_easy_setopt(t->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(t->curl, CURLOPT_XFERINFOFUNCTION, check_interrupt);
    return set_trust(t, c, err);
}

static CURLcode go(struct transfer *t)
{
    curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, t->headers);
    return t->refused ? t->refused : curl_easy_perform(t->curl);
}

static int connect_error(const struct cli *c, struct err *err)
{
    const char *path = c->url_assumed ? SOCKET_OF_SYSTEM : socket_path(c->url);
    if (path && socket_denied(path))
        return socket_set_denied(path, err);
    return err_set(
        err, ERR_UNREACHABLE, "url",
        "no daemon responds at %.120s. Start it with: systemctl start numaprobed (or name "
        "its address with --url)",
        c->url);
}

static int transfer_error(const struct cli *c, CURLcode rc, struct err *err)
{
    if (http_interrupted)
        return err_set(err, ERR_TIMEOUT, "", "interrupted");
    if (rc == CURLE_WRITE_ERROR || rc == CURLE_FILESIZE_EXCEEDED)
        return err_set(err, ERR_UNREACHABLE, "url", "the response of %s is larger than %d MiB",
                       c->url, HTTP_BODY_MAX >> 20);
    if (rc == CURLE_OUT_OF_MEMORY)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the request");
    if (rc == CURLE_COULDNT_CONNECT)
        return connect_error(c, err);
    return err_set(err, ERR_UNREACHABLE, "url", "%.120s: %s", c->url, curl_easy_strerror(rc));
}

static int perform(struct transfer *t, const struct cli *c, struct err *err)
{
    curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, http_take_body);
    curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(t->curl, CURLOPT_TIMEOUT, (long)c->timeout_s);
    CURLcode rc = go(t);
    if (rc != CURLE_OK)
        return transfer_error(c, rc, err);
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->reply->status);
    return 0;
}

int http_call(const struct cli *c, const char *method, const char *path, const char *body,
              const char *header, struct http_reply *out, struct err *err)
{
    struct transfer t CLEANUP(transfer_end) = {.reply = out};
    if (transfer_begin(&t, c, method, path, err) < 0)
        return -1;
    if (body || strcmp(method, "POST") == 0) {
        add_header(&t, "Content-Type: application/json");
        curl_easy_setopt(t.curl, CURLOPT_POSTFIELDS, body ? body : "");
    }
    if (header)
        add_header(&t, header);
    return perform(&t, c, err);
}

int http_post(const struct cli *c, const char *path, const char *type, const struct buf *body,
              struct http_reply *out, struct err *err)
{
    struct transfer t CLEANUP(transfer_end) = {.reply = out};
    char header[80];
    if (transfer_begin(&t, c, "POST", path, err) < 0)
        return -1;
    snprintf(header, sizeof header, "Content-Type: %s", type);
    add_header(&t, header);
    curl_easy_setopt(t.curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
    curl_easy_setopt(t.curl, CURLOPT_POSTFIELDS, buf_text(body));
    return perform(&t, c, err);
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
    if (!*out) {
        err->code = ERR_UNREACHABLE;
        return err_prefix(err, "the response of %.100s", c->url);
    }
    return 0;
}

// curl hands out whole blocks: write may take them in parts.
static size_t http_take_file(char *data, size_t one, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    long status = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        return http_take_body(data, one, n, ctx);
    for (size_t done = 0; done < n * one;) {
        ssize_t w = write(t->fd, data + done, n * one - done);
        if (w < 0 && errno != EINTR) {
            t->write_error = errno;
            return 0;
        }
        done += w > 0 ? (size_t)w : 0;
    }
    return n * one;
}

int http_download(const struct cli *c, const char *path, int fd, struct http_reply *out,
                  struct err *err)
{
    struct transfer t CLEANUP(transfer_end) = {.reply = out, .fd = fd};
    if (transfer_begin(&t, c, "GET", path, err) < 0)
        return -1;
    curl_easy_setopt(t.curl, CURLOPT_WRITEFUNCTION, http_take_file);
    curl_easy_setopt(t.curl, CURLOPT_WRITEDATA, &t);
    curl_easy_setopt(t.curl, CURLOPT_TCP_KEEPALIVE, 1L);
    CURLcode rc = go(&t);
    errno = t.write_error;
    if (rc == CURLE_WRITE_ERROR && errno)
        return err_sys(err, "cannot write the file");
    if (rc != CURLE_OK)
        return transfer_error(c, rc, err);
    curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &out->status);
    return 0;
}

static void stream_field(struct transfer *t, const char *line)
{
    if (str_starts(line, "event: "))
        snprintf(t->event, sizeof t->event, "%s", line + 7);
    else if (str_starts(line, "id: "))
        snprintf(t->id, sizeof t->id, "%s", line + 4);
    else if (str_starts(line, "data: "))
        buf_str(&t->data, line + 6);
    else if (!*line && t->data.len) {
        t->stopped = !t->fn(t->ctx, t->event, t->id, buf_text(&t->data), t->data.len);
        buf_reset(&t->data);
    }
}

static size_t take_stream(char *data, size_t one, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    buf_add(&t->line, data, n * one);
    if (!buf_ok(&t->line) || t->line.len > 1 << 20 || t->data.len > 1 << 20)
        return 0;
    for (char *end;
         !t->stopped && t->line.len && (end = memchr(t->line.data, '\n', t->line.len));) {
        *end = '\0';
        size_t used = (size_t)(end - t->line.data) + 1;
        if (used > 1 && end[-1] == '\r')
            end[-1] = '\0';
        stream_field(t, t->line.data);
        buf_drop(&t->line, used);
    }
    return t->stopped ? 0 : n * one;
}

int http_events(const struct cli *c, const char *path, const char *last_id, event_fn *fn, void *ctx,
                struct err *err)
{
    struct http_reply reply = {0};
    struct transfer t CLEANUP(transfer_end) = {.reply = &reply, .fn = fn, .ctx = ctx};
    if (transfer_begin(&t, c, "GET", path, err) < 0)
        return -1;
    char header[64];
    add_header(&t, "Accept: text/event-stream");
    if (last_id && *last_id) {
        snprintf(header, sizeof header, "Last-Event-ID: %.40s", last_id);
        add_header(&t, header);
    }
    curl_easy_setopt(t.curl, CURLOPT_WRITEFUNCTION, take_stream);
    curl_easy_setopt(t.curl, CURLOPT_WRITEDATA, &t);
    // The daemon sends a heartbeat every 15 s: three missed ones are a dead connection.
    curl_easy_setopt(t.curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(t.curl, CURLOPT_LOW_SPEED_TIME, 50L);
    CURLcode rc = go(&t);
    long status = 0;
    curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &status);
    if (t.stopped)
        return 0;
    if (rc == CURLE_OK && status == 200)
        return 0;
    if (rc == CURLE_OK)
        return err_set(err, ERR_UNAVAILABLE, "", "the event stream was refused (%ld)", status);
    return transfer_error(c, rc, err);
}

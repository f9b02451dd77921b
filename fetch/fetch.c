// SPDX-License-Identifier: Apache-2.0
// One transfer is one easy handle of libcurl, set up the same way for one request and for many.
// Many use libcurl's socket interface: libcurl names the sockets and the time it waits for, we keep
// them in an epoll set of our own with one timer, and so the user watches a single descriptor.
//
// libcurl's own caches cost time per request that grows with the number of hosts. With 10,000 hosts
// they are switched off: addresses are not kept (DNS_CACHE_TIMEOUT 0), connections are closed
// (FORBID_REUSE) unless more requests follow, and libcurl never sees more handles than are in
// flight. Our queue costs the same per request, however long it is.
//
// Numeric addresses and Unix sockets need no look-up. For other names libcurl starts a thread with
// getaddrinfo per transfer. So there are at most as many threads as requests in flight, no request
// waits for another one's name, and the system's settings (nsswitch, mDNS, hosts) apply. A request
// that ends before its name is found leaves the thread behind instead of waiting for it
// (QUICK_EXIT).
#include "fetch/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

enum {
    // A turn serves so many sockets and begins so many requests, of 50 to 100 us each. Where there
    // are more, the next turn starts at once: a loop that has other work does that between them,
    // and its other work waits for half a millisecond.
    TURN_SHARED = 4,
    TURN_ALONE = 16, // where there is no other work
    HEADERS_MAX = COUNT_OF(((struct fetch_request *)0)->headers),
    WAIT_MS = 1000, // fetch_run looks at its flag so often
    ADDRESS_ROOM = 64,
};

struct call { // a request of many: queued, or in a transfer
    struct call *next;
    struct fetch_request q;
    fetch_done *fn;
    void *ctx;
    char texts[]; // what q points to
};

struct transfer {
    CURL *curl;
    struct curl_slist *headers, *connect_to;
    CURLcode refused; // the first option that libcurl could not take
    const struct fetch_request *q;
    const struct fetch_limits *limits;
    struct fetch_response out;
    size_t head, body;      // bytes so far
    bool head_whole;        // its empty line has come
    bool unwatched;         // the kernel did not take its socket, and nothing would wake us for it
    enum fetch_error ended; // why one of our functions ended it; FETCH_OK: none did
    int64_t date_s;
    struct call *call;
    struct transfer *next; // in the list of free ones
};

struct fetch {
    CURLM *multi;
    int epoll, timer, kick; // kick: something was queued while a transfer is free
    struct fetch_limits limits;
    int in_flight, unfinished;
    struct transfer *transfers, *free;
    struct call *first, *last;
    bool kicked, stopping;
    bool unwatched;   // so is a transfer
    int64_t trust_ms; // what was read of CA bundles before counts no more, monotonic; 0: all does
};

bool fetch_response_busy(const struct fetch_response *r)
{
    return r->error == FETCH_OK && (r->status == 429 || r->status == 503);
}

void fetch_response_free(struct fetch_response *r)
{
    buf_free(&r->body);
}

// What libcurl calls during a transfer. 0 or a short count ends it.

static size_t end_with(struct transfer *t, enum fetch_error e)
{
    t->ended = e;
    return 0;
}

static int transfer_status(const struct transfer *t)
{
    long status = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static size_t on_body(char *data, size_t one, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    n *= one;
    t->body += n;
    if (t->q->take && transfer_status(t) == 200)
        return t->q->take(t->q->take_ctx, data, n) ? n : end_with(t, FETCH_STOPPED);
    if (t->out.body.len + n > t->limits->body_max)
        return end_with(t, FETCH_BODY_TOO_LARGE);
    buf_add(&t->out.body, data, n);
    return buf_ok(&t->out.body) ? n : end_with(t, FETCH_NO_MEMORY);
}

// Line by line, the status line and those of interim responses included.
static size_t on_header(char *line, size_t one, size_t n, void *ctx)
{
    static const char date[] = "Date:";
    struct transfer *t = ctx;
    char value[64];
    n *= one;
    t->head += n;
    if (t->head > t->limits->head_max)
        return end_with(t, FETCH_HEAD_TOO_LARGE);
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) // also behind an interim response
        t->head_whole = false;
    else if (*line == '\r' || *line == '\n')
        t->head_whole = true;
    if (n >= sizeof date - 1 && strncasecmp(line, date, sizeof date - 1) == 0) {
        snprintf(value, sizeof value, "%.*s", (int)(n - sizeof date + 1), line + sizeof date - 1);
        t->date_s = curl_getdate(value, NULL);
    }
    return n;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct transfer *t = ctx;
    (void)a, (void)b, (void)c, (void)d;
    if (!t->q->interrupted || !*t->q->interrupted)
        return 0;
    t->ended = FETCH_INTERRUPTED;
    return 1;
}

// Setting up a transfer.

// Texts are copied: without memory a token, a certificate or the key that makes a request one of
// its own would silently not be sent.
static void set_text(struct transfer *t, CURLoption option, const char *text)
{
    CURLcode rc = curl_easy_setopt(t->curl, option, text);
    if (!t->refused)
        t->refused = rc;
}

static void add_text(struct transfer *t, struct curl_slist **list, const char *text)
{
    struct curl_slist *more = curl_slist_append(*list, text);
    if (more)
        *list = more;
    else
        t->refused = CURLE_OUT_OF_MEMORY;
}

static void add_header(struct transfer *t, const char *header)
{
    add_text(t, &t->headers, header);
}

// Of any host and port of the URL, to the same port.
static void connect_elsewhere(struct transfer *t, const char *address)
{
    char to[ADDRESS_ROOM];
    bool six = strchr(address, ':');
    snprintf(to, sizeof to, "::%s%s%s:", six ? "[" : "", address, six ? "]" : "");
    add_text(t, &t->connect_to, to);
    curl_easy_setopt(t->curl, CURLOPT_CONNECT_TO, t->connect_to);
}

static void set_long(struct transfer *t, CURLoption option, long value)
{
    curl_easy_setopt(t->curl, option, value);
}

static void set_request_limits(struct transfer *t)
{
    const struct fetch_limits *l = t->limits;
    set_long(t, CURLOPT_CONNECTTIMEOUT_MS, l->connect_ms);
    set_long(t, CURLOPT_TIMEOUT_MS, l->total_ms);
    set_long(t, CURLOPT_TCP_KEEPALIVE, !l->total_ms);
    set_long(t, CURLOPT_LOW_SPEED_LIMIT, l->least_rate);
    set_long(t, CURLOPT_LOW_SPEED_TIME, l->slow_s);
    if (!t->q->take)
        curl_easy_setopt(t->curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)l->body_max);
}

static void set_functions(struct transfer *t)
{
    curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(t->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(t->curl, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(t->curl, CURLOPT_PRIVATE, t);
    if (!t->q->interrupted)
        return;
    set_long(t, CURLOPT_NOPROGRESS, 0);
    curl_easy_setopt(t->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(t->curl, CURLOPT_XFERINFODATA, t);
}

// One bundle is trusted, the one that is named or the system's, and not the system's folder of
// certificates beside it. libcurl keeps a bundle that it has read only where there is no folder,
// and else it reads all of the system's certificates for each connection.
static void set_bundle(struct transfer *t, const char *named)
{
    const char *builtin = NULL;
    curl_easy_getinfo(t->curl, CURLINFO_CAINFO, &builtin);
    if (*named)
        set_text(t, CURLOPT_CAINFO, named);
    if (*named || builtin)
        set_text(t, CURLOPT_CAPATH, NULL);
}

// A session that is resumed is not verified again, and its server knows us by the certificate that
// was shown then.
static void set_trust(struct transfer *t)
{
    const struct fetch_tls none = {0}, *tls = t->q->tls ? t->q->tls : &none;
    if (t->q->token && *t->q->token) {
        set_long(t, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        set_text(t, CURLOPT_XOAUTH2_BEARER, t->q->token);
    }
    set_bundle(t, tls->cacert ? tls->cacert : "");
    if (tls->cert && *tls->cert)
        set_text(t, CURLOPT_SSLCERT, tls->cert);
    if (tls->key && *tls->key)
        set_text(t, CURLOPT_SSLKEY, tls->key);
    set_long(t, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    set_long(t, CURLOPT_SSL_SESSIONID_CACHE, 0);
}

static void set_body(struct transfer *t)
{
    const struct fetch_request *q = t->q;
    for (size_t k = 0; k < HEADERS_MAX && q->headers[k]; k++)
        add_header(t, q->headers[k]);
    if (q->body || strcmp(q->method ? q->method : "GET", "POST") == 0) {
        curl_easy_setopt(t->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
        curl_easy_setopt(t->curl, CURLOPT_POSTFIELDS, q->body ? q->body : "");
    }
    curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, t->headers);
}

// False: libcurl cannot take it all.
static bool transfer_set(struct transfer *t, const struct fetch_request *q,
                         const struct fetch_limits *limits)
{
    t->q = q;
    t->limits = q->limits ? q->limits : limits;
    set_text(t, CURLOPT_URL, q->url);
    if (q->socket)
        set_text(t, CURLOPT_UNIX_SOCKET_PATH, q->socket);
    if (q->address)
        connect_elsewhere(t, q->address);
    set_text(t, CURLOPT_CUSTOMREQUEST, q->method ? q->method : "GET");
    set_text(t, CURLOPT_PROTOCOLS_STR, "http,https");
    set_text(t, CURLOPT_PROXY, "");
    set_text(t, CURLOPT_USERAGENT, "numaprobe/" NUMAPROBE_VERSION);
    set_long(t, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    set_long(t, CURLOPT_FOLLOWLOCATION, 0);
    set_long(t, CURLOPT_NOSIGNAL, 1);
    set_long(t, CURLOPT_QUICK_EXIT, 1);
    set_long(t, CURLOPT_DNS_CACHE_TIMEOUT, 0);
    set_long(t, CURLOPT_FORBID_REUSE, !q->more);
    set_request_limits(t);
    set_functions(t);
    set_trust(t);
    set_body(t);
    return !t->refused;
}

// Ready for the next request; the handle keeps its memory and, for a request that follows, its
// connection.
static void transfer_reset(struct transfer *t)
{
    CURL *curl = t->curl;
    if (curl)
        curl_easy_reset(curl);
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->connect_to);
    fetch_response_free(&t->out);
    *t = (struct transfer){.curl = curl};
}

static void transfer_free(struct transfer *t)
{
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->connect_to);
    curl_easy_cleanup(t->curl);
    fetch_response_free(&t->out);
}

// What a transfer ended with.

static enum fetch_error unconnected_error(const struct transfer *t)
{
    switch (t->out.sys) {
    case EACCES:
    case EPERM:
        return FETCH_DENIED;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
        return FETCH_NO_ROUTE;
    default:
        return FETCH_REFUSED;
    }
}

static int64_t info_us(const struct transfer *t, CURLINFO which)
{
    curl_off_t value = 0;
    curl_easy_getinfo(t->curl, which, &value);
    return value;
}

static enum fetch_error timeout_error(const struct transfer *t)
{
    const struct fetch_response *r = &t->out;
    if (!r->connect_us)
        return FETCH_NO_CONNECTION;
    if (!r->first_us)
        return FETCH_SILENT;
    // libcurl has one code for its two limits. The rate over all says more than which came first.
    return (int64_t)(t->head + t->body) * 1000000 < r->total_us * t->limits->least_rate
               ? FETCH_SLOW
               : FETCH_TIMEOUT;
}

// libcurl has one code for a chain that does not verify and for a chain of another host. A name is
// compared before the result of the chain is kept: that is then X509_V_OK, or still unspecified.
static enum fetch_error trust_error(const struct transfer *t)
{
    enum { UNSPECIFIED = 1 }; // OpenSSL's X509_V_ERR_UNSPECIFIED
    long verified = 0;
    curl_easy_getinfo(t->curl, CURLINFO_SSL_VERIFYRESULT, &verified);
    return verified > UNSPECIFIED ? FETCH_TLS_UNTRUSTED : FETCH_TLS_NAME;
}

static enum fetch_error transfer_error(const struct transfer *t, CURLcode rc)
{
    if (t->ended)
        return t->ended;
    switch (rc) {
    case CURLE_OK: // also when the connection ended between two headers
        return t->head_whole ? FETCH_OK : FETCH_BROKEN;
    case CURLE_URL_MALFORMAT:
        return FETCH_BAD_URL;
    case CURLE_COULDNT_RESOLVE_HOST:
        return FETCH_NO_NAME;
    case CURLE_COULDNT_CONNECT:
        return unconnected_error(t);
    case CURLE_OPERATION_TIMEDOUT:
        return timeout_error(t);
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        return FETCH_BROKEN;
    case CURLE_UNSUPPORTED_PROTOCOL: // a response without a status line
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        return FETCH_NOT_HTTP;
    case CURLE_FILESIZE_EXCEEDED:
        return FETCH_BODY_TOO_LARGE;
    case CURLE_SSL_CONNECT_ERROR:
        return FETCH_TLS;
    case CURLE_PEER_FAILED_VERIFICATION:
        return trust_error(t);
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return FETCH_TLS_FILES;
    case CURLE_OUT_OF_MEMORY: // also for a header of more than 100 KiB, without on_header
        return t->out.first_us && !t->head_whole ? FETCH_HEAD_TOO_LARGE : FETCH_NO_MEMORY;
#if LIBCURL_VERSION_NUM >= 0x080600
    case CURLE_TOO_LARGE:
        return FETCH_HEAD_TOO_LARGE;
#endif
    default:
        return FETCH_FAILED;
    }
}

static void read_times(struct transfer *t)
{
    struct fetch_response *r = &t->out;
    int64_t sent = info_us(t, CURLINFO_PRETRANSFER_TIME_T);
    long sys = 0;
    r->connect_us = info_us(t, CURLINFO_APPCONNECT_TIME_T);
    if (!r->connect_us)
        r->connect_us = info_us(t, CURLINFO_CONNECT_TIME_T);
    r->first_us = info_us(t, CURLINFO_STARTTRANSFER_TIME_T);
    r->total_us = info_us(t, CURLINFO_TOTAL_TIME_T);
    curl_easy_getinfo(t->curl, CURLINFO_OS_ERRNO, &sys);
    r->sys = (int)sys;
    if (t->date_s > 0) {
        int64_t middle_ms = (r->total_us - (sent + r->first_us) / 2) / 1000;
        r->dated = true;
        r->skew_ms = t->date_s * 1000 - (clock_wall_ms() - middle_ms);
    }
}

// Fills t->out but for the body, which is there already.
static void transfer_finish(struct transfer *t, CURLcode rc)
{
    struct fetch_response *r = &t->out;
    const char *type = NULL;
    curl_off_t after = 0;
    read_times(t);
    r->error = transfer_error(t, rc);
    if (r->error) {
        buf_free(&r->body);
        return;
    }
    r->status = transfer_status(t);
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_TYPE, &type);
    snprintf(r->content_type, sizeof r->content_type, "%s", type ? type : "");
    curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &after);
    r->retry_after_s = after > 0 ? (int)(after < INT32_MAX ? after : INT32_MAX) : 0;
}

static bool url_is_http(const char *url)
{
    return str_starts(url, "http://") || str_starts(url, "https://");
}

enum fetch_error fetch_one(const struct fetch_request *q, struct fetch_response *out)
{
    struct transfer t CLEANUP(transfer_free) = {.curl = curl_easy_init()};
    *out = (struct fetch_response){.error = FETCH_NO_MEMORY};
    if (!url_is_http(q->url))
        return out->error = FETCH_BAD_URL;
    if (!t.curl || !transfer_set(&t, q, &fetch_defaults))
        return out->error;
    CURLcode rc = curl_easy_perform(t.curl);
    transfer_finish(&t, rc);
    *out = t.out;
    t.out.body = BUF_INIT;
    return out->error;
}

// Many at once.

// What libcurl calls never fails: for one socket it would end all requests, and report one of them.

static void kick(struct fetch *f)
{
    if (!f->kicked)
        f->kicked = eventfd_write(f->kick, 1) == 0;
}

static int on_socket(CURL *curl, curl_socket_t fd, int what, void *ctx, void *known)
{
    struct fetch *f = ctx;
    struct epoll_event event = {.data.fd = fd};
    struct transfer *t = NULL;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(f->epoll, EPOLL_CTL_DEL, fd, NULL); // it may be closed already
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
    if (epoll_ctl(f->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0) {
        if (!known)
            curl_multi_assign(f->multi, fd, ctx);
        return 0;
    }
    curl_easy_getinfo(curl, CURLINFO_PRIVATE, &t);
    if (t) {
        t->unwatched = f->unwatched = true;
        kick(f);
    }
    return 0;
}

static int on_next_timeout(CURLM *multi, long ms, void *ctx)
{
    const struct fetch *f = ctx;
    // 0 ms is now, and 0 ns would switch the timer off.
    struct itimerspec at = {.it_value = {ms > 0 ? ms / 1000 : 0, ms > 0    ? ms % 1000 * 1000000
                                                                 : ms == 0 ? 1
                                                                           : 0}};
    (void)multi;
    timerfd_settime(f->timer, 0, &at, NULL); // takes such a time
    return 0;
}

static int epoll_watch(const struct fetch *f, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd < 0 ? -1 : epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &event);
}

// Their handles are made when they are needed first: a fleet may be smaller than the limit.
static bool make_transfers(struct fetch *f)
{
    f->transfers = calloc((size_t)f->in_flight, sizeof *f->transfers);
    for (int i = 0; f->transfers && i < f->in_flight; i++) {
        f->transfers[i].next = f->free;
        f->free = &f->transfers[i];
    }
    return f->transfers && (f->multi = curl_multi_init());
}

static void fetch_cleanup(struct fetch **f)
{
    fetch_free(*f);
}

struct fetch *fetch_new(int in_flight, const struct fetch_limits *limits, struct err *err)
{
    struct fetch *f CLEANUP(fetch_cleanup) = calloc(1, sizeof *f);
    if (f)
        *f = (struct fetch){.epoll = -1, .timer = -1, .kick = -1, .in_flight = in_flight};
    if (!f || !make_transfers(f)) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for %d requests at once", in_flight);
        return NULL;
    }
    f->limits = limits ? *limits : fetch_defaults;
    f->epoll = epoll_create1(EPOLL_CLOEXEC);
    f->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    f->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (f->epoll < 0 || epoll_watch(f, f->timer) < 0 || epoll_watch(f, f->kick) < 0) {
        err_sys(err, "cannot wait for requests");
        return NULL;
    }
    curl_multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(f->multi, CURLMOPT_SOCKETDATA, f);
    curl_multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, on_next_timeout);
    curl_multi_setopt(f->multi, CURLMOPT_TIMERDATA, f);
    // Connections of requests with `more`: each transfer may keep one.
    curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)in_flight);
    return steal_ptr(&f);
}

// The texts of a request, one behind the other in *to; NULL stays NULL.
static const char *keep_text(char **to, const char *text)
{
    if (!text)
        return NULL;
    size_t n = strlen(text) + 1;
    char *kept = memcpy(*to, text, n);
    *to += n;
    return kept;
}

static size_t text_room(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static struct call *call_new(const struct fetch_request *q)
{
    size_t room = text_room(q->method) + text_room(q->url) + text_room(q->socket) +
                  text_room(q->address) + text_room(q->token);
    for (size_t k = 0; k < HEADERS_MAX; k++)
        room += text_room(q->headers[k]);
    struct call *c = malloc(sizeof *c + room);
    if (!c)
        return NULL;
    char *to = c->texts;
    *c = (struct call){.q = *q};
    c->q.method = keep_text(&to, q->method);
    c->q.url = keep_text(&to, q->url);
    c->q.socket = keep_text(&to, q->socket);
    c->q.address = keep_text(&to, q->address);
    c->q.token = keep_text(&to, q->token);
    for (size_t k = 0; k < HEADERS_MAX; k++)
        c->q.headers[k] = keep_text(&to, q->headers[k]);
    return c;
}

// The next turn starts at once if something is queued that can begin.
static void fetch_kick(struct fetch *f)
{
    if (f->first && f->free)
        kick(f);
}

int fetch_start(struct fetch *f, const struct fetch_request *q, fetch_done *fn, void *ctx,
                struct err *err)
{
    if (!url_is_http(q->url))
        return err_set(err, ERR_INVALID, "url", "%.120s: must begin with http:// or https://",
                       q->url);
    if (f->stopping)
        return err_set(err, ERR_CONFLICT, "", "requests are being stopped");
    struct call *c = call_new(q);
    if (!c)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the request");
    c->fn = fn;
    c->ctx = ctx;
    if (f->last)
        f->last->next = c;
    else
        f->first = c;
    f->last = c;
    f->unfinished++;
    fetch_kick(f);
    return 0;
}

int fetch_fd(const struct fetch *f)
{
    return f->epoll;
}

static struct call *queue_take(struct fetch *f)
{
    struct call *c = f->first;
    if (c && !(f->first = c->next))
        f->last = NULL;
    return c;
}

// The last step of every request, begun or not.
static void call_end(struct fetch *f, struct call *c, struct fetch_response *r)
{
    f->unfinished--;
    c->fn(c->ctx, r);
    fetch_response_free(r);
    free(c);
}

static void transfer_end(struct fetch *f, struct transfer *t)
{
    struct call *c = t->call;
    struct fetch_response r = t->out;
    t->out.body = BUF_INIT;
    transfer_reset(t);
    t->next = f->free;
    f->free = t;
    call_end(f, c, &r);
}

// libcurl keeps a bundle for a day by its name. One that it has kept for longer than since
// fetch_trust_again() is read again, and then kept. It counts in seconds: within the first one each
// connection would have to read the bundle for itself, which takes milliseconds if it is large.
static void set_kept(struct transfer *t, const struct fetch *f)
{
#if LIBCURL_VERSION_NUM >= 0x075700 // before 7.87 none is kept
    enum { DAY_S = 24 * 3600 };
    const int64_t s = f->trust_ms ? (clock_mono_ms() - f->trust_ms - 1) / 1000 : DAY_S;
    if (s >= 1 && s < DAY_S)
        set_long(t, CURLOPT_CA_CACHE_TIMEOUT, (long)s);
#else
    (void)t, (void)f;
#endif
}

static bool transfer_begin(struct fetch *f, struct transfer *t)
{
    if ((!t->curl && !(t->curl = curl_easy_init())) || !transfer_set(t, &t->call->q, &f->limits))
        return false;
    set_kept(t, f);
    return curl_multi_add_handle(f->multi, t->curl) == CURLM_OK;
}

static void begin_queued(struct fetch *f, int left)
{
    for (struct call *c; left > 0 && f->free && (c = queue_take(f)); left--) {
        struct transfer *t = f->free;
        f->free = t->next;
        t->call = c;
        if (transfer_begin(f, t))
            continue;
        if (t->curl)
            curl_multi_remove_handle(f->multi, t->curl); // if it was added in part
        t->out.error = FETCH_NO_MEMORY;
        transfer_end(f, t);
    }
    fetch_kick(f);
}

static void end_finished(struct fetch *f)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(f->multi, &left));) {
        CURLcode rc = m->data.result;
        struct transfer *t = NULL;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
        transfer_finish(t, rc);
        curl_multi_remove_handle(f->multi, t->curl);
        transfer_end(f, t);
    }
}

static void end_early(struct fetch *f, struct transfer *t, enum fetch_error why)
{
    curl_multi_remove_handle(f->multi, t->curl);
    t->ended = why;
    transfer_finish(t, CURLE_OK);
    transfer_end(f, t);
}

static void end_unwatched(struct fetch *f)
{
    const bool any = f->unwatched;
    f->unwatched = false; // ending one may make another one so
    for (int i = 0; any && i < f->in_flight; i++)
        if (f->transfers[i].unwatched)
            end_early(f, &f->transfers[i], FETCH_NO_MEMORY);
}

// Without memory libcurl stops in the middle: it has not named all sockets that it waits for, nor
// the next time. So requests might never end.
static void multi_act(struct fetch *f, curl_socket_t fd, int ready)
{
    int running;
    if (curl_multi_socket_action(f->multi, fd, ready, &running) == CURLM_OK)
        return;
    for (int i = 0; i < f->in_flight; i++)
        if (f->transfers[i].call)
            f->transfers[i].unwatched = f->unwatched = true;
}

static void serve_socket(struct fetch *f, const struct epoll_event *e)
{
    int ready = (e->events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                (e->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                (e->events & EPOLLERR ? CURL_CSELECT_ERR : 0);
    multi_act(f, e->data.fd, ready);
}

static int turn_of(struct fetch *f, int most)
{
    struct epoll_event events[TURN_ALONE];
    uint64_t times;
    int n = epoll_wait(f->epoll, events, most, 0);
    for (int i = 0; i < n; i++)
        if (events[i].data.fd == f->kick)
            f->kicked = eventfd_read(f->kick, &times) < 0;
        else if (events[i].data.fd != f->timer)
            serve_socket(f, &events[i]);
        else if (read(f->timer, &times, sizeof times) > 0)
            multi_act(f, CURL_SOCKET_TIMEOUT, 0);
    end_finished(f);
    end_unwatched(f);
    begin_queued(f, most);
    return f->unfinished;
}

int fetch_turn(struct fetch *f)
{
    return turn_of(f, TURN_SHARED);
}

void fetch_run(struct fetch *f, const volatile int *interrupted)
{
    while (turn_of(f, TURN_ALONE) > 0) {
        struct pollfd ready = {f->epoll, POLLIN, 0};
        if (interrupted && *interrupted) {
            fetch_stop(f);
            return;
        }
        poll(&ready, 1, interrupted ? WAIT_MS : -1);
    }
}

void fetch_trust_again(struct fetch *f)
{
    f->trust_ms = clock_mono_ms();
}

void fetch_stop(struct fetch *f)
{
    struct call *c;
    f->stopping = true;
    for (int i = 0; i < f->in_flight; i++)
        if (f->transfers[i].call)
            end_early(f, &f->transfers[i], FETCH_INTERRUPTED);
    while ((c = queue_take(f)))
        call_end(f, c, &(struct fetch_response){.error = FETCH_INTERRUPTED});
    f->stopping = false;
}

void fetch_free(struct fetch *f)
{
    struct call *c;
    if (!f)
        return;
    for (int i = 0; f->transfers && i < f->in_flight; i++) {
        struct transfer *t = &f->transfers[i];
        if (t->call)
            curl_multi_remove_handle(f->multi, t->curl);
        free(t->call);
        transfer_free(t);
    }
    while ((c = queue_take(f)))
        free(c);
    curl_multi_cleanup(f->multi);
    fd_cleanup(&f->epoll);
    fd_cleanup(&f->timer);
    fd_cleanup(&f->kick);
    free(f->transfers);
    free(f);
}

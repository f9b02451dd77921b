// SPDX-License-Identifier: Apache-2.0
// The library accepts some requests that two programs can read in two ways (two Content-Length,
// a blank before the colon, …). Behind a proxy that is how requests are smuggled in: refuse them.
#include "http/messages/request_checks.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/str.h"

// Headers that must not come twice.
static const char *const single[] = {"Content-Length",  "Transfer-Encoding", "Host",
                                     "Origin",          "Content-Type",      "Authorization",
                                     "Idempotency-Key", "Content-Encoding"};

static const char *const known_methods[] = {"GET",    "HEAD",    "POST", "PUT",
                                            "DELETE", "OPTIONS", "PATCH"};

static bool is_token(const char *s)
{
    return *s && s[strspn(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}

static int check_method(const char *method, struct err *err)
{
    for (unsigned i = 0; i < COUNT_OF(known_methods); i++)
        if (strcmp(known_methods[i], method) == 0)
            return 0;
    return err_set(err, ERR_BAD_REQUEST, "", "the HTTP method is not supported");
}

static int check_headers(const struct request *q, struct err *err)
{
    for (int i = 0; i < q->n_headers; i++) {
        const unsigned char *v = (const unsigned char *)q->headers[i].value;
        if (!is_token(q->headers[i].name))
            return err_set(err, ERR_BAD_REQUEST, "", "a header has a name that is not a token");
        for (; *v; v++)
            if ((*v < 0x20 && *v != '\t') || *v == 0x7f)
                return err_set(err, ERR_BAD_REQUEST, q->headers[i].name, "has a control character");
    }
    for (unsigned i = 0; i < COUNT_OF(single); i++)
        if (request_header_count(q, single[i]) > 1)
            return err_set(err, ERR_BAD_REQUEST, single[i], "must be sent once at most");
    return 0;
}

// Before 1.0 the library ends a text at a NUL, joins folded lines, and takes a bare LF for the end
// of a line, without a trace in what it hands out. But it parses in place: method, target, version,
// names and values are pieces of one block, the head as it came, in which it has only put NULs over
// separators (two over CRLF, one over a bare LF). So each piece must begin where the separator
// after the one before it ends. A byte that lies between two pieces is one that another program may
// have read in another way.
enum { CRLF = 2 };

static const char *after(const char *piece, size_t length, size_t separator)
{
    return piece + length + separator;
}

static bool header_adjoins(const struct http_pair *h, const char *at)
{
    if (h->name != at)
        return false;
    const char *blank = after(h->name, strlen(h->name), 1); // the colon
    while (blank < h->value && (*blank == ' ' || *blank == '\t'))
        blank++;
    return blank == h->value;
}

static int check_head(const struct request *q, struct err *err)
{
    const struct http_head *h = &q->head;
    if (!h->begin)
        return 0;
    bool whole = after(h->begin, strlen(h->begin), 1) == h->target &&
                 after(h->target, strlen(q->uri), 1) == h->version;
    const char *at = after(h->version, strlen(h->version), CRLF);
    for (int i = 0; whole && i < q->n_headers; i++) {
        whole = header_adjoins(&q->headers[i], at);
        at = after(q->headers[i].value, strlen(q->headers[i].value), CRLF);
    }
    if (whole && at + CRLF == h->begin + h->bytes)
        return 0;
    return err_set(
        err, ERR_BAD_REQUEST, "",
        "the head has a NUL, a folded header, a line that ends in LF alone, or a misplaced blank");
}

int check_framing(const struct request *q, struct err *err)
{
    const char *coding = request_header(q, "Transfer-Encoding");
    if (check_method(q->method, err) < 0 || check_headers(q, err) < 0 || check_head(q, err) < 0)
        return -1;
    if (coding && request_header(q, "Content-Length"))
        return err_set(err, ERR_BAD_REQUEST, "Transfer-Encoding",
                       "must not come together with Content-Length");
    if (coding && q->http_1_0)
        return err_set(err, ERR_BAD_REQUEST, "Transfer-Encoding", "is not known in HTTP/1.0");
    if (coding && strcasecmp(coding, "chunked") != 0)
        return err_set(err, ERR_BAD_REQUEST, "Transfer-Encoding", "must be chunked or absent");
    return 0;
}

// The first n bytes of `word` are one of the comma-separated list, in any case.
static bool word_listed(const char *word, size_t n, const char *list)
{
    const char *one;
    size_t used = 0;
    do
        one = str_list_next(&list, &used);
    while (one && (used != n || strncasecmp(word, one, n) != 0));
    return one;
}

// "[2001:db8::1]", of n bytes.
static bool read_six(const char *host, size_t n, struct in6_addr *out)
{
    char inner[INET6_ADDRSTRLEN];
    if (n < 2 || n - 2 >= sizeof inner || *host != '[')
        return false;
    memcpy(inner, host + 1, n - 2);
    inner[n - 2] = '\0';
    return inet_pton(AF_INET6, inner, out) == 1;
}

// In any case, and [2001:db8:0:0::1] is [2001:db8::1], which is what browsers send for it.
static bool host_listed(const char *host, const char *list)
{
    struct in6_addr wanted, six;
    size_t n;
    if (word_listed(host, strlen(host), list))
        return true;
    if (read_six(host, strlen(host), &wanted))
        for (const char *one; (one = str_list_next(&list, &n));)
            if (read_six(one, n, &six) && memcmp(&six, &wanted, sizeof six) == 0)
                return true;
    return false;
}

// "localhost:7780" -> "localhost"; "[::1]:7780" -> "[::1]". The port is not compared: it is another
// one at the near end of an ssh tunnel.
static int host_name(const char *host, char *name, size_t room)
{
    const char *end = *host == '[' ? strchr(host, ']') : host + strcspn(host, ":");
    if (!end)
        return -1;
    if (*host == '[')
        end++;
    size_t n = (size_t)(end - host);
    if (n < 1 || n >= room || (*end && *end != ':') ||
        end[*end != 0 ? 1 + strspn(end + 1, "0123456789") : 0])
        return -1;
    memcpy(name, host, n);
    name[n] = '\0';
    return 0;
}

static int check_host(const struct request *q, const char *host, struct err *err)
{
    // "0.0.0.0" is where a daemon says that it listens, and leads to it. No address can be rebound.
    static const char ours[] = "localhost,127.0.0.1,[::1],0.0.0.0,[::]";
    char name[128];
    if (!host)
        return err_set(err, ERR_BAD_REQUEST, "Host", "is missing");
    if (host_name(host, name, sizeof name) < 0)
        return err_set(err, ERR_BAD_REQUEST, "Host", "is not a host name with an optional port");
    if (host_listed(name, ours) || host_listed(name, q->bound) ||
        (q->names && host_listed(name, q->names)) ||
        (q->own_names && host_listed(name, q->own_names)))
        return 0;
    return err_set(err, ERR_MISDIRECTED, "Host",
                   "is not a name of this daemon; use localhost%s or the address it listens on, or "
                   "add the name to host_names",
                   q->own_names && *q->own_names ? ", the machine's host name" : "");
}

// A user followed a link from another site: the answer stands in a window of its own, and the
// other site sees nothing of it. Frames say "iframe".
static bool is_link(const struct request *q)
{
    const char *mode = request_header(q, "Sec-Fetch-Mode");
    const char *place = request_header(q, "Sec-Fetch-Dest");
    return strcmp(q->method, "GET") == 0 && mode && strcmp(mode, "navigate") == 0 && place &&
           strcmp(place, "document") == 0;
}

// Over plain TCP a page may come by TLS too: a proxy before us speaks it.
static bool is_own_origin(const struct request *q, const char *host, const char *origin)
{
    static const char tls[] = "https://", plain[] = "http://";
    const char *page = str_starts(origin, tls)                ? origin + strlen(tls)
                       : !q->tls && str_starts(origin, plain) ? origin + strlen(plain)
                                                              : NULL;
    return page && host && strcasecmp(page, host) == 0;
}

int check_source(const struct request *q, struct err *err)
{
    const char *host = request_header(q, "Host");
    const char *origin = request_header(q, "Origin");
    const char *site = request_header(q, "Sec-Fetch-Site");
    if (*q->bound && check_host(q, host, err) < 0) // on the unix socket any name will do
        return -1;
    if (origin && !is_own_origin(q, host, origin))
        return err_set(err, ERR_FORBIDDEN, "Origin",
                       "cross-origin requests are not allowed: the page is not of this Host (a "
                       "proxy must send the Host that it was sent, with its port)");
    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0 && !is_link(q))
        return err_set(err, ERR_FORBIDDEN, "Sec-Fetch-Site",
                       "cross-origin requests are not allowed");
    return 0;
}

// "text/csv; charset=utf-8" is of the list "text/plain,text/csv".
static bool type_listed(const char *type, const char *list)
{
    return type && word_listed(type, strcspn(type, "; \t"), list);
}

// Ignored, "If-None-Match: *" would overwrite what its client asked to leave alone.
static int check_conditions(const struct request *q, struct err *err)
{
    static const char *const names[] = {"If-Match", "If-None-Match", "If-Unmodified-Since"};
    if (strcmp(q->method, "GET") == 0 || strcmp(q->method, "HEAD") == 0)
        return 0;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (request_header(q, names[i]))
            return err_set(err, ERR_BAD_REQUEST, names[i],
                           "is supported by GET and HEAD only: a change has no conditions");
    return 0;
}

int check_body_headers(const struct request *q, struct err *err)
{
    const char *length = request_header(q, "Content-Length");
    uint64_t n = 0;
    if (length && !str_to_u64(length, &n))
        return err_set(err, ERR_BAD_REQUEST, "Content-Length", "is not a number");
    if (n > q->body_max)
        return err_set(err, ERR_TOO_LARGE, "", "the body may have %zu bytes, not %llu", q->body_max,
                       (unsigned long long)n);
    bool body = n > 0 || request_header(q, "Transfer-Encoding");
    if (body && (strcmp(q->method, "GET") == 0 || strcmp(q->method, "HEAD") == 0))
        return err_set(err, ERR_BAD_REQUEST, "", "GET and HEAD requests must not have a body");
    if (body && !type_listed(request_header(q, "Content-Type"), q->body_types))
        return err_set(err, ERR_MEDIA_TYPE, "Content-Type", "must be %s", q->body_types);
    const char *encoding = body ? request_header(q, "Content-Encoding") : NULL;
    if (encoding && *encoding && strcasecmp(encoding, "identity") != 0)
        return err_set(err, ERR_MEDIA_TYPE, "Content-Encoding",
                       "must be absent: send the body as it is, not compressed");
    return check_conditions(q, err);
}

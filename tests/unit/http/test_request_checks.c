// SPDX-License-Identifier: Apache-2.0
#include "http/messages/request_checks.h"
#include "tests/unit/tap.h"

struct check_case {
    const char *what, *method;
    struct http_pair headers[4];
    enum err_code want;
};

static struct err run(const struct check_case *c, const char *bound)
{
    struct request q = {.method = c->method,
                        .bound = bound,
                        .names = "node1,probe.example",
                        .body_max = HTTP_BODY_MAX,
                        .body_types = "application/json"};
    struct err err = {0};
    for (int i = 0; i < 4 && c->headers[i].name; i++)
        q.headers[q.n_headers++] = c->headers[i];
    if (check_framing(&q, &err) == 0 && check_source(&q, &err) == 0)
        check_body_headers(&q, &err);
    return err;
}

static const struct check_case cases[] = {
    {"a plain GET", "GET", {{"Host", "localhost"}}, ERR_NONE},
    {"a port after the host", "GET", {{"Host", "127.0.0.1:9999"}}, ERR_NONE},
    {"IPv6", "GET", {{"Host", "[::1]:80"}}, ERR_NONE},
    {"the bound address", "GET", {{"Host", "127.0.0.7"}}, ERR_NONE},
    {"no Host", "GET", {{"Accept", "*/*"}}, ERR_BAD_REQUEST},
    {"a stranger's Host", "GET", {{"Host", "evil.test"}}, ERR_MISDIRECTED},
    {"a Host that begins like ours", "GET", {{"Host", "localhost.evil.test"}}, ERR_MISDIRECTED},
    {"rubbish behind the port", "GET", {{"Host", "localhost:80@evil"}}, ERR_BAD_REQUEST},
    {"two Hosts", "GET", {{"Host", "localhost"}, {"host", "localhost"}}, ERR_BAD_REQUEST},
    {"an odd method", "BREW", {{"Host", "localhost"}}, ERR_BAD_REQUEST},
    {"a lower-case method", "get", {{"Host", "localhost"}}, ERR_BAD_REQUEST},
    {"two lengths",
     "POST",
     {{"Host", "localhost"}, {"Content-Length", "1"}, {"content-length", "2"}},
     ERR_BAD_REQUEST},
    {"length and coding",
     "POST",
     {{"Host", "localhost"}, {"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}},
     ERR_BAD_REQUEST},
    {"an unknown coding",
     "POST",
     {{"Host", "localhost"}, {"Transfer-Encoding", "gzip, chunked"}},
     ERR_BAD_REQUEST},
    {"a blank before the colon",
     "POST",
     {{"Host", "localhost"}, {"Content-Length ", "3"}},
     ERR_BAD_REQUEST},
    {"a control character", "GET", {{"Host", "localhost"}, {"X", "a\001b"}}, ERR_BAD_REQUEST},
    {"a large body",
     "POST",
     {{"Host", "localhost"}, {"Content-Length", "65537"}, {"Content-Type", "application/json"}},
     ERR_TOO_LARGE},
    {"a body of the largest size",
     "POST",
     {{"Host", "localhost"}, {"Content-Length", "65536"}, {"Content-Type", "application/json"}},
     ERR_NONE},
    {"a body that is no JSON",
     "POST",
     {{"Host", "localhost"}, {"Content-Length", "2"}, {"Content-Type", "text/plain"}},
     ERR_MEDIA_TYPE},
    {"a type that begins like JSON",
     "POST",
     {{"Host", "localhost"}, {"Content-Length", "2"}, {"Content-Type", "application/jsonp"}},
     ERR_MEDIA_TYPE},
    {"JSON with a charset",
     "POST",
     {{"Host", "localhost"},
      {"Content-Length", "2"},
      {"Content-Type", "application/json; charset=utf-8"}},
     ERR_NONE},
    {"JSON that is compressed",
     "POST",
     {{"Host", "localhost"},
      {"Content-Length", "2"},
      {"Content-Type", "application/json"},
      {"Content-Encoding", "gzip"}},
     ERR_MEDIA_TYPE},
    {"JSON that says it is not",
     "POST",
     {{"Host", "localhost"},
      {"Content-Length", "2"},
      {"Content-Type", "application/json"},
      {"Content-Encoding", "identity"}},
     ERR_NONE},
    {"a stranger's page",
     "POST",
     {{"Host", "localhost:1"}, {"Origin", "http://evil.test"}},
     ERR_FORBIDDEN},
    {"our own page", "POST", {{"Host", "localhost:1"}, {"Origin", "http://localhost:1"}}, ERR_NONE},
    {"our own page through a proxy that speaks TLS",
     "POST",
     {{"Host", "localhost"}, {"Origin", "https://localhost"}},
     ERR_NONE},
    {"a stranger's page by TLS",
     "POST",
     {{"Host", "localhost"}, {"Origin", "https://evil.test"}},
     ERR_FORBIDDEN},
    {"our page by no HTTP",
     "POST",
     {{"Host", "localhost"}, {"Origin", "ftp://localhost"}},
     ERR_FORBIDDEN},
    {"our page at another port",
     "POST",
     {{"Host", "localhost:1"}, {"Origin", "http://localhost:2"}},
     ERR_FORBIDDEN},
    {"a page without an origin",
     "POST",
     {{"Host", "localhost"}, {"Origin", "null"}},
     ERR_FORBIDDEN},
    {"cross-site by its own word",
     "DELETE",
     {{"Host", "localhost"}, {"Sec-Fetch-Site", "cross-site"}},
     ERR_FORBIDDEN},
    {"a picture on another site",
     "GET",
     {{"Host", "localhost"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Dest", "image"}},
     ERR_FORBIDDEN},
    {"a frame on another site",
     "GET",
     {{"Host", "localhost"},
      {"Sec-Fetch-Site", "cross-site"},
      {"Sec-Fetch-Mode", "navigate"},
      {"Sec-Fetch-Dest", "iframe"}},
     ERR_FORBIDDEN},
    {"a link on another site",
     "GET",
     {{"Host", "localhost"},
      {"Sec-Fetch-Site", "cross-site"},
      {"Sec-Fetch-Mode", "navigate"},
      {"Sec-Fetch-Dest", "document"}},
     ERR_NONE},
    {"a form that posts into a window of its own",
     "POST",
     {{"Host", "localhost"},
      {"Sec-Fetch-Site", "cross-site"},
      {"Sec-Fetch-Mode", "navigate"},
      {"Sec-Fetch-Dest", "document"}},
     ERR_FORBIDDEN},
    {"reading with a stranger's origin",
     "GET",
     {{"Host", "localhost:1"}, {"Origin", "http://evil.test"}},
     ERR_FORBIDDEN},
    {"a condition of a GET", "GET", {{"Host", "localhost"}, {"If-None-Match", "*"}}, ERR_NONE},
    {"and of a HEAD", "HEAD", {{"Host", "localhost"}, {"If-Match", "\"x\""}}, ERR_NONE},
    {"a PUT of what is not there yet",
     "PUT",
     {{"Host", "localhost"}, {"If-None-Match", "*"}},
     ERR_BAD_REQUEST},
    {"a DELETE of what has not changed",
     "DELETE",
     {{"Host", "localhost"}, {"if-match", "\"x\""}},
     ERR_BAD_REQUEST},
    {"a POST to what has not changed",
     "POST",
     {{"Host", "localhost"}, {"If-Unmodified-Since", "Mon, 30 Nov 2026 08:00:00 GMT"}},
     ERR_BAD_REQUEST},
    {"a name that was configured", "GET", {{"Host", "Probe.Example:443"}}, ERR_NONE},
    {"a part of a name that was configured", "GET", {{"Host", "example"}}, ERR_MISDIRECTED},
};

// A head as a library of before 1.0 leaves it: a NUL over each separator, two over CRLF, one over a
// bare LF.
struct head_case {
    const char *what, *bytes;
    size_t n;
    int blanks; // before the second value
    bool good;
};

#define HEAD(first, second) "GET\0/x\0HTTP/1.1" first "Host\0 localhost" second
#define BYTES(text) text, sizeof(text) - 1

static const struct head_case heads[] = {
    {"as clients write it", BYTES(HEAD("\0\0", "\0\0X\0 y\0\0\0\0")), 1, true},
    {"no blank", BYTES(HEAD("\0\0", "\0\0X\0y\0\0\0\0")), 0, true},
    {"several blanks", BYTES(HEAD("\0\0", "\0\0X\0 \t y\0\0\0\0")), 3, true},
    {"no value", BYTES(HEAD("\0\0", "\0\0X\0\0\0\0\0")), 0, true},
    {"LF after the first line", BYTES(HEAD("\0", "\0\0X\0 y\0\0\0\0")), 1, false},
    {"LF after a header", BYTES(HEAD("\0\0", "\0X\0 y\0\0\0\0")), 1, false},
    {"LF after the last header", BYTES(HEAD("\0\0", "\0\0X\0 y\0\0\0")), 1, false},
    {"a NUL in a value", BYTES(HEAD("\0\0", "\0.evil\0\0X\0 y\0\0\0\0")), 1, false},
    {"a NUL paid by LF", BYTES(HEAD("\0", "\0e\0X\0y\0\0\0")), 0, false},
    {"a NUL in the last value", BYTES(HEAD("\0\0", "\0\0X\0 y\0z\0\0\0\0")), 1, false},
    {"a folded header", BYTES(HEAD("\0\0", "\0\0 folded\0\0X\0 y\0\0\0\0")), 1, false},
    {"a folded last header", BYTES(HEAD("\0\0", "\0\0X\0 y\0\0 z\0\0\0\0")), 1, false},
};

static void check_one_head(const struct head_case *c)
{
    char target[] = "/x";
    const char *host = memmem(c->bytes, c->n, "Host", 4);
    struct err err = {0};
    const char *x = memmem(host, c->n - (size_t)(host - c->bytes), "X", 2);
    struct request q = {.method = c->bytes,
                        .uri = target,
                        .n_headers = 2,
                        .headers = {{host, host + 6}, {x, x + 2 + c->blanks}},
                        .head = {c->bytes, c->bytes + 4, c->bytes + 7, c->n}};
    CHECK((check_framing(&q, &err) == 0) == c->good, "%s: %s", c->what, err.text);
}

int main(void)
{
    for (unsigned i = 0; i < sizeof heads / sizeof heads[0]; i++)
        check_one_head(&heads[i]);
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = run(&cases[i], "127.0.0.7");
        CHECK(err.code == cases[i].want, "%s: %s", cases[i].what, err_info(err.code)->slug);
    }
    struct check_case any = {"any host", "GET", {{"Host", "whatever"}}, ERR_NONE};
    CHECK(run(&any, "").code == ERR_NONE, "on the unix socket any Host will do");
    return tap_done();
}

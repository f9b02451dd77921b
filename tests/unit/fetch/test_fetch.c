// SPDX-License-Identifier: Apache-2.0
// One request: what goes out, what comes back, and a server that does each thing wrong.
#include "tests/unit/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fetch/fetch.h"
#include "tests/unit/fetch/hostile.h"

static struct hostile server;

static enum fetch_error get(const char *path, const struct fetch_limits *l,
                            struct fetch_response *r)
{
    char url[100];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", server.port, path);
    return fetch_one(&(struct fetch_request){.url = url, .limits = l ? l : &hostile_limits}, r);
}

static void what_comes_back(void)
{
    CLEANUP_RESPONSE struct fetch_response r = {0}, busy = {0}, moved = {0}, cut = {0};
    CHECK_INT(get("/ok", NULL, &r), FETCH_OK, "a whole response");
    CHECK_INT(r.status, 200, "its status");
    CHECK_STR(buf_text(&r.body), "{\"ok\":true}", "its body");
    CHECK_STR(r.content_type, "application/json", "its type");
    CHECK(!r.dated && !r.retry_after_s, "no Date, no Retry-After");
    CHECK(r.connect_us > 0 && r.first_us >= r.connect_us && r.total_us >= r.first_us,
          "the times are in order");
    CHECK_INT(get("/busy", NULL, &busy), FETCH_OK, "a refusal is a response");
    CHECK_INT(busy.status, 503, "with its status");
    CHECK_STR(buf_text(&busy.body), "busy", "and body");
    CHECK_INT(busy.retry_after_s, 7, "Retry-After is read");
    // 2099 is tens of years ahead of any clock that runs this test.
    CHECK(busy.dated && busy.skew_ms > 10LL * 365 * 86400 * 1000, "a wrong clock is seen");
    CHECK_INT(get("/redirect", NULL, &moved), FETCH_OK, "a redirect is a response");
    CHECK(moved.status == 302 && strcmp(buf_text(&moved.body), "move") == 0, "not followed");
    CHECK_INT(get("/short-length", NULL, &cut), FETCH_OK, "a length that is too small");
    CHECK_STR(buf_text(&cut.body), "{\"", "is what was declared");
}

static void what_goes_out(void)
{
    CLEANUP_RESPONSE struct fetch_response r = {0}, local = {0}, bare = {0}, elsewhere = {0},
                                           six = {0};
    char url[100], named[100];
    struct fetch_request q = {.url = url,
                              .limits = &hostile_limits,
                              .method = "PUT",
                              .token = "np_x",
                              .headers = {"Content-Type: text/csv", "Idempotency-Key: one"},
                              .body = "a\1b",
                              .body_len = 3};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/echo", server.port);
    CHECK_INT(fetch_one(&q, &r), FETCH_OK, "a request with all parts");
    CHECK_INT(r.status, 201, "arrived");
    const char *text = buf_text(&r.body);
    CHECK(strncmp(text, "PUT /echo HTTP/1.1\r\n", 20) == 0, "method and version");
    CHECK(strstr(text, "\r\nAuthorization: Bearer np_x\r\n") &&
              strstr(text, "\r\nIdempotency-Key: one\r\n") &&
              strstr(text, "\r\nContent-Type: text/csv\r\n"),
          "token and headers");
    CHECK(strstr(text, "\r\n\r\na\1b") != NULL, "the body");
    CHECK(!strstr(text, "Accept-Encoding") && !strstr(text, "Cookie"), "nothing compressed");
    q.socket = server.socket;
    q.url = "http://localhost/echo";
    CHECK_INT(fetch_one(&q, &local), FETCH_OK, "through a Unix socket");
    CHECK(strstr(buf_text(&local.body), "\r\nHost: localhost\r\n") != NULL, "with the URL's host");
    q = (struct fetch_request){.url = named, .address = "127.0.0.1", .limits = &hostile_limits};
    snprintf(named, sizeof named, "http://node.invalid:%d/echo", server.port);
    CHECK_INT(fetch_one(&q, &elsewhere), FETCH_OK, "at an address that no DNS knows");
    CHECK(strstr(buf_text(&elsewhere.body), "\r\nHost: node.invalid:") != NULL, "by its name");
    q.address = "::1";
    CHECK_INT(fetch_one(&q, &six), FETCH_REFUSED, "an IPv6 address, where nothing listens");
    q = (struct fetch_request){.url = url, .method = "POST", .limits = &hostile_limits};
    CHECK_INT(fetch_one(&q, &bare), FETCH_OK, "POST without a body");
    CHECK(strstr(buf_text(&bare.body), "\r\nContent-Length: 0\r\n") != NULL, "has length 0");
}

static void what_goes_wrong(void)
{
    static const struct {
        const char *path;
        enum fetch_error error;
        const struct fetch_limits *limits; // NULL: patient ones
    } cases[] = {
        {"/garbage", FETCH_NOT_HTTP},
        {"/endless", FETCH_BODY_TOO_LARGE},
        {"/declared-large", FETCH_BODY_TOO_LARGE},
        {"/endless-head", FETCH_HEAD_TOO_LARGE},
        {"/long-line", FETCH_HEAD_TOO_LARGE},
        {"/drip", FETCH_SLOW, &hostile_impatient},
        {"/silent", FETCH_SILENT, &hostile_impatient},
        {"/cut", FETCH_BROKEN},
        {"/cut-head", FETCH_BROKEN},
        {"/cut-chunk", FETCH_BROKEN},
        {"/bad-chunk", FETCH_BROKEN},
        {"/bad-length", FETCH_NOT_HTTP},
        {"/nothing", FETCH_BROKEN},
        {"/stopped", FETCH_SLOW, &hostile_impatient},
    };
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        CLEANUP_RESPONSE struct fetch_response r = {0};
        get(cases[k].path, cases[k].limits, &r);
        CHECK_STR(fetch_error_info(r.error)->slug, fetch_error_info(cases[k].error)->slug, "%s",
                  cases[k].path);
        CHECK(!r.body.len, "%s: nothing of its body is given", cases[k].path);
    }
}

static void times(void)
{
    CLEANUP_RESPONSE struct fetch_response silent = {0}, stopped = {0}, drip = {0};
    struct fetch_limits l = hostile_limits;
    l.total_ms = hostile_impatient.slow_s * 1000;
    l.least_rate = 0;
    CHECK_INT(get("/silent", &l, &silent), FETCH_SILENT, "no response in time");
    CHECK_INT(get("/stopped", &l, &stopped), FETCH_TIMEOUT, "half a response in time");
    CHECK_INT(get("/drip", &l, &drip), FETCH_TIMEOUT, "dripping, and no least rate");
}

// Who gives a node a minute waits for it longer than five seconds.
static void limits_of_a_user(void)
{
    struct fetch_limits usual = fetch_limits_within(20), longer = fetch_limits_within(60);
    CHECK(usual.total_ms == FETCH_TOTAL_MS && usual.slow_s == FETCH_SLOW_S, "those by default");
    CHECK(longer.total_ms == 60000 && longer.slow_s == 15, "a minute: a quarter of it in silence");
    CHECK(fetch_limits_within(2).slow_s == FETCH_SLOW_S, "of two seconds the whole");
}

static void addresses(void)
{
    CLEANUP_RESPONSE struct fetch_response r = {0};
    char url[100];
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t room = sizeof in;
    CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); // bound, not listening
    CHECK(bind(fd, (struct sockaddr *)&in, sizeof in) == 0 &&
              getsockname(fd, (struct sockaddr *)&in, &room) == 0,
          "a port where no process listens");
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(in.sin_port));
    CHECK_INT(fetch_one(&(struct fetch_request){.url = url}, &r), FETCH_REFUSED, "is refused");
    CHECK_INT(r.sys, ECONNREFUSED, "and says so");
    struct fetch_request q = {.url = "http://localhost/", .socket = "/nonexistent/socket"};
    CHECK_INT(fetch_one(&q, &r), FETCH_REFUSED, "a socket that is not there");
    CHECK_INT(r.sys, ENOENT, "and says so");
    q = (struct fetch_request){.url = "http://node.invalid/"};
    CHECK_INT(fetch_one(&q, &r), FETCH_NO_NAME, "a name without an address");
    static const char *const bad[] = {
        "file:///etc/passwd",      "ftp://127.0.0.1/", "127.0.0.1", "", "http://",
        "http://127.0.0.1:99999/", "http://a b/"};
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        q = (struct fetch_request){.url = bad[k]};
        CHECK_INT(fetch_one(&q, &r), FETCH_BAD_URL, "no URL of ours: \"%s\"", bad[k]);
    }
}

struct taken {
    size_t n, most;
};

static bool take(void *ctx, const char *bytes, size_t n)
{
    struct taken *t = ctx;
    t->n += n;
    return bytes && t->n < t->most;
}

static void bodies_as_they_come(void)
{
    CLEANUP_RESPONSE struct fetch_response r = {0}, busy = {0};
    struct taken taken = {.most = 3 << 20};
    char url[100];
    struct fetch_request q = {
        .url = url, .limits = &hostile_limits, .take = take, .take_ctx = &taken};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/endless", server.port);
    CHECK_INT(fetch_one(&q, &r), FETCH_STOPPED, "a function takes what it wants");
    CHECK(taken.n >= taken.most, "beyond the limit of memory");
    taken = (struct taken){.most = 100};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/busy", server.port);
    CHECK_INT(fetch_one(&q, &busy), FETCH_OK, "a refusal");
    CHECK(taken.n == 0 && strcmp(buf_text(&busy.body), "busy") == 0, "is not the body it wanted");
}

static void interruption(void)
{
    CLEANUP_RESPONSE struct fetch_response r = {0};
    static const volatile int interrupted = 1;
    char url[100];
    struct fetch_request q = {.url = url, .interrupted = &interrupted};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/silent", server.port);
    CHECK_INT(fetch_one(&q, &r), FETCH_INTERRUPTED, "an interrupted request ends");
}

static void texts(void)
{
    int missing = 0;
    for (int e = 0; e < FETCH_ERRORS; e++)
        missing += !fetch_error_info(e)->slug || !fetch_error_info(e)->text;
    CHECK_INT(missing, 0, "each error has its text");
}

int main(void)
{
    hostile_start(&server);
    what_comes_back();
    what_goes_out();
    what_goes_wrong();
    times();
    limits_of_a_user();
    addresses();
    bodies_as_they_come();
    interruption();
    texts();
    hostile_stop(&server);
    return tap_done();
}

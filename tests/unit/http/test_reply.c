// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "http/messages/reply.h"
#include "http/messages/service.h"
#include "http/server/worker_message.h"
#include "tests/unit/tap.h"

static void test_problem(void)
{
    struct request q = {.id = "abc"};
    struct reply r = {0};
    struct err err = {0};
    err_set(&err, ERR_INVALID, "mode", "must be \"this\"");
    struct problem_more more = {.name = "blockers", .json = BUF_INIT};
    buf_str(&more.json, "[{\"kind\":\"memory\"}]");
    reply_problem(&r, &q, &err, &more);
    buf_free(&more.json);
    CHECK(r.status == 422, "the status comes from the table of errors");
    CHECK_STR(r.type, "application/problem+json", "media type");
    struct json *doc = json_parse(r.body.data, r.body.len, &err);
    CHECK(doc, "the document is JSON");
    CHECK_STR(json_get_text(doc, "type", ""), "/problems/invalid", "type");
    CHECK_STR(json_get_text(doc, "detail", ""), "must be \"this\"", "detail");
    CHECK_STR(json_get_text(doc, "member", ""), "mode", "member");
    CHECK_STR(json_get_text(doc, "request_id", ""), "abc", "request id");
    CHECK(json_get_i64(doc, "status", 0) == 422, "status is in the document too");
    CHECK(json_count(json_get(doc, "blockers")) == 1, "blockers");
    json_free(doc);
    reply_fini(&r);
}

static void test_when_to_try_again(void)
{
    const struct request q = {.id = "abc"};
    for (int code = 0; code < ERR_CODES; code++) {
        int status = err_info((enum err_code)code)->http;
        for (int said = 0; said <= 60; said += 60) {
            struct reply r = {.retry_after_s = said};
            const struct err err = {.code = (enum err_code)code};
            reply_problem(&r, &q, &err, NULL);
            bool waits = status == 429 || status == 503;
            CHECK_INT(r.retry_after_s,
                      said    ? said
                      : waits ? REPLY_RETRY_S
                              : 0,
                      "%s says when to try again", err_info((enum err_code)code)->slug);
            reply_fini(&r);
        }
    }
}

static void test_shared(void)
{
    struct reply own = {.status = 200, .store = true}, r = {.store = true};
    char one[24], two[24];
    struct shared_body *body = shared_body_new("{}\n", 3);
    CHECK(body, "bytes that are shared");
    buf_str(&own.body, "{}\n");
    reply_shared(&r, 200, shared_body_ref(body));
    reply_etag(&own, one, sizeof one);
    reply_etag(&r, two, sizeof two);
    CHECK_STR(two, one, "shared or its own, one text has one tag");
    reply_shared(&r, 200, shared_body_ref(body));
    CHECK(body->refs == 2, "a reply has one reference");
    const struct request q = {.id = "abc"};
    const struct err err = {.code = ERR_INTERNAL};
    reply_problem(&r, &q, &err, NULL);
    CHECK(body->refs == 1 && r.body.len, "a problem takes its place");
    reply_fini(&r);
    reply_fini(&own);
    shared_body_unref(body);
}

static void test_etag(void)
{
    struct reply r = {.status = 200, .store = true};
    char one[24], two[24];
    buf_str(&r.body, "a");
    reply_etag(&r, one, sizeof one);
    buf_str(&r.body, "b");
    reply_etag(&r, two, sizeof two);
    CHECK(*one == '"' && strcmp(one, two) != 0, "another body has another tag");
    CHECK(reply_matches(one, one) && !reply_matches(one, two), "a tag matches itself");
    CHECK(reply_matches("\"x\", \"y\"", "\"y\""), "a list is looked through");
    CHECK(reply_matches("*", one) && !reply_matches("", one), "star and nothing");
    buf_reset(&r.body);
    for (int i = 0; i < 100; i++)
        buf_char(&r.body, 'x');
    reply_etag(&r, one, sizeof one);
    int same = 0;
    for (int i = 0; i < 100; i++)
        for (int bit = 0; bit < 8; bit++) {
            r.body.data[i] ^= (char)(1 << bit);
            reply_etag(&r, two, sizeof two);
            same += strcmp(one, two) == 0;
            r.body.data[i] ^= (char)(1 << bit);
        }
    CHECK(same == 0, "every bit of the body is in the tag");
    r.store = false;
    reply_etag(&r, one, sizeof one);
    CHECK(!*one && !reply_matches("*", one), "what must not be kept has no tag");
    reply_fini(&r);
}

static int split(struct request *q, const char *uri)
{
    free(q->uri);
    *q = (struct request){.uri = strdup(uri)};
    return request_split(q, NULL);
}

static void test_split(void)
{
    struct request q = {0};
    CHECK(split(&q, "/a?b=1&c=%41+x&d") == 0 && q.n_query == 3, "three parameters");
    CHECK_STR(q.path, "/a", "path");
    CHECK_STR(request_query(&q, "c"), "A x", "decoded");
    CHECK_STR(request_query(&q, "d"), "", "without a value");
    static const char *const bad[] = {"/a%00b",  "/a%2Fb",   "a",        "*",
                                      "/a?b=%0", "/a?b=%00", "/a?b=%ff", "/a?b=1&b=2"};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(split(&q, bad[i]) < 0, "%s is refused", bad[i]);
    free(q.uri);
}

static void test_wait(void)
{
    struct request q = {.n_query = 1, .query = {{"wait", "7"}}};
    int64_t s = 0;
    CHECK(request_wait_s(&q, &s, NULL) == 0 && s == 7, "?wait=7");
    q.query[0].value = "1000";
    CHECK(request_wait_s(&q, &s, NULL) == 0 && s == HTTP_WAIT_MAX_S, "capped");
    q.query[0].value = "-1";
    CHECK(request_wait_s(&q, &s, NULL) < 0, "not negative");
    CHECK(!request_preferred_wait(&q, &s), "the parameter is before the header");
}

static void test_prefer(void)
{
    static const struct {
        const char *value;
        int64_t seconds; // -1: nothing is preferred
    } cases[] = {
        {"wait=9", 9},
        {"respond-async, wait=9", 9},
        {" WAIT = \"12\" ; x=y", 12},
        {"wait=5;a=\"b,c\",wait=7", 5},
        {"wait=99999999999999999999999", HTTP_WAIT_MAX_S},
        {"wait=0", 0},
        {"foo=\"a, wait=3\"", -1},
        {"foo=\"\\\", wait=3\"", -1},
        {"foo=\", wait=3", -1},
        {"x-wait=3", -1},
        {"waiting=3", -1},
        {"wait", -1},
        {"wait=", -1},
        {"wait=\"3", -1},
        {"wait=-3", -1},
        {"wait=3s", -1},
        {"wait=x, wait=4", 4},
        {",, ,wait=4", 4},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request q = {.n_headers = 1, .headers = {{"prefer", cases[i].value}}};
        struct reply r = {0};
        char want[16] = "";
        int64_t s = -1, preferred = -1;
        CHECK(request_wait_s(&q, &s, NULL) == 0 &&
                  s == (cases[i].seconds < 0 ? 0 : cases[i].seconds) &&
                  request_preferred_wait(&q, &preferred) == (cases[i].seconds >= 0),
              "Prefer: %s", cases[i].value);
        if (cases[i].seconds >= 0)
            snprintf(want, sizeof want, "wait=%d", (int)cases[i].seconds);
        reply_waited(&r, &q);
        CHECK_STR(r.applied, want, "what was applied");
    }
    struct request two = {.n_headers = 2, .headers = {{"Prefer", "a"}, {"Prefer", "wait=3"}}};
    int64_t s;
    CHECK(request_wait_s(&two, &s, NULL) == 0 && s == 3, "in the second of two headers");
}

static void test_file(void)
{
    static const struct embedded plain = {"a.js", "let a;", 6, NULL, 0};
    static const struct embedded packed = {"a.js", "let a;", 6, "\x1f\x8b", 2};
    static const struct {
        const char *accepted;
        bool gzip;
    } cases[] = {
        {"gzip", true},
        {" br ,\tGzip ; q=0.2", true},
        {"*;q=0.1", true},
        {"identity;q=0.3, gzip;q=0.301", true},
        {"gzip;q=0.3, identity;q=0.301", false},
        {"identity, *;q=0.5", false},
        {"*, gzip;q=0", false},
        {"gzip;q=0.0000001", false},
        {"gzip;q=", false},
        {"gzip;level=1", false},
        {"gzi, gzipp, ;, ,", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request q = {.n_headers = 1, .headers = {{"accept-encoding", cases[i].accepted}}};
        struct reply r = {0};
        size_t n;
        reply_file(&r, &q, &packed, "text/javascript");
        const char *data = reply_bytes(&r, &n);
        CHECK(r.gzip == cases[i].gzip && n == (cases[i].gzip ? 2 : 6) &&
                  *data == (n == 2 ? 0x1f : 'l'),
              "Accept-Encoding: %s", cases[i].accepted);
        reply_file(&r, &q, &plain, "text/javascript");
        CHECK(!r.gzip && reply_bytes(&r, &n) == plain.data && n == 6, "what is not compressed");
        reply_fini(&r);
    }
    struct request two = {.n_headers = 2,
                          .headers = {{"Accept-Encoding", "br"}, {"Accept-Encoding", "gzip"}}};
    CHECK(request_prefers_gzip(&two), "in the second of two headers");
}

// The form that a worker chooses, of what it is told of a request.
static int accepted_by_worker(struct request *q, const char *const types[static 3])
{
    static const struct http_service service;
    CLEANUP_BUF struct buf question = BUF_INIT;
    struct worker_question head;
    struct request told = {0};
    struct err err;
    size_t text;
    q->service = &service;
    q->method = "GET";
    q->path = "/";
    q->hint = 7;
    CHECK(worker_question_write(q, 0, 0, &question, &text, &err) == 0 &&
              worker_question_read(question.data, question.len, &head, &told, &err) == 0,
          "the question is written and read");
    CHECK_INT(told.hint, 7, "with what the loop alone knows");
    return request_accepts(&told, types, 3);
}

// RFC 9110, 5.3: lines of one header are one list.
static void test_lists_of_several_lines(void)
{
    static const char *const types[] = {"application/json", "text/csv", "image/svg+xml"};
    CLEANUP_BUF struct buf list = BUF_INIT;
    struct request q = {.n_headers = 4,
                        .headers = {{"Accept", "text/csv;q=0.3"},
                                    {"If-None-Match", "\"x\""},
                                    {"accept", "image/svg+xml, application/json;q=0.1"},
                                    {"if-none-match", "\"y\""}}};
    CHECK_INT(request_accepts(&q, types, 3), 2, "of all lines");
    CHECK_INT(accepted_by_worker(&q, types), 2, "a worker is told all lines");
    q.headers[2].value = "*/*;q=0.5";
    CHECK_INT(request_accepts(&q, types, 3), 0, "a star of the second line");
    q.headers[2].value = "image/png";
    CHECK_INT(request_accepts(&q, types, 3), 1, "the first line");
    request_header_list(&q, "IF-NONE-MATCH", &list);
    CHECK(strcmp(buf_text(&list), "\"x\", \"y\"") == 0, "got %s", buf_text(&list));
    buf_reset(&list);
    request_header_list(&q, "Range", &list);
    CHECK_INT((int)list.len, 0, "a header that was not sent");
}

static void test_accept(void)
{
    static const char *const types[] = {"application/json", "text/csv", "application/x-ndjson"};
    static const struct {
        const char *accept;
        int form;
    } cases[] = {
        {NULL, 0},
        {"", 0},
        {"*/*", 0},
        {"text/csv", 1},
        {"TEXT/CSV", 1},
        {"text/csv;charset=utf-8;header=present", 1},
        {"text/*", 1},
        {"application/*", 0},
        {"application/*, application/json;q=0", 2},
        {"*/*, application/json;q=0.1", 1},
        {"application/json;q=0.5, text/csv;q=0.6 , application/x-ndjson;q=0.601", 2},
        {"text/csv;version=1;q=0.2, application/json; q=0.1", 1},
        {"text/csv;q=0.1, text/csv;version=2;q=0.9, application/json;q=0.5", 1},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 0},
        {"application/xml, text/csv;q=0.001", 1},
        {"image/png", -1},
        {"application/*;q=0, text/*;q=0", -1},
        {"*/*;q=0", -1},
        {"text/csv;q=high", 0},
        {"nonsense", 0},
        {",;,=/q", -1},
        {"text/csvx, xtext/csv", -1},
        {"*/csv", -1},
        {"text/csv;q=0.0001", -1},
        {"text/csv;profile=\"a,b\";q=0.1, application/json;q=0.5", 0},
        {"text/csv;profile=\"a;q=0\", application/json;q=0.5", 1},
        {"text/csv;profile=\"\\\",\";q=0.4, application/json;q=0.5", 0},
        {"text/csv;profile=\"open, application/json;q=0.5", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request q = {.n_headers = cases[i].accept != NULL,
                            .headers = {{"accept", cases[i].accept}}};
        struct err err = {0};
        int form = request_accepts(&q, types, 3), one = request_accept_one(&q, types, 3, &err);
        CHECK(form == cases[i].form && one == form, "Accept: %s is form %d, got %d",
              cases[i].accept ? cases[i].accept : "none", cases[i].form, form);
        CHECK(form >= 0 || (err.code == ERR_NOT_ACCEPTABLE && strstr(err.text, "text/csv, appl")),
              "what is available is said");
    }
}

int main(void)
{
    test_accept();
    test_lists_of_several_lines();
    test_file();
    test_problem();
    test_when_to_try_again();
    test_shared();
    test_etag();
    test_split();
    test_wait();
    test_prefer();
    return tap_done();
}

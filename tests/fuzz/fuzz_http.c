// SPDX-License-Identifier: Apache-2.0
// The head of a request: framing, target, query, route, source, body headers. What comes through
// must be what the checks promise.
#include <string.h>

#include "api/routes.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "http/messages/request_checks.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/message.h"

static void check_error(const struct err *err)
{
    fuzz_hold(err->code != ERR_NONE && *err->text);
}

static void check_query(const struct request *q)
{
    for (int i = 0; i < q->n_query; i++) {
        fuzz_hold(str_utf8_valid(q->query[i].name, strlen(q->query[i].name)));
        fuzz_hold(str_utf8_valid(q->query[i].value, strlen(q->query[i].value)));
        for (int k = 0; k < i; k++)
            fuzz_hold(strcmp(q->query[i].name, q->query[k].name) != 0);
    }
}

// A page of another site never gets here, whatever its browser says.
static void check_through(const struct request *q)
{
    const char *site = request_header(q, "Sec-Fetch-Site"), *origin = request_header(q, "Origin");
    fuzz_hold(!site || strcmp(site, "cross-site") != 0 || strcmp(q->method, "GET") == 0);
    fuzz_hold(!origin || str_starts(origin, "http://"));
    fuzz_hold(request_header_count(q, "Content-Length") <= 1);
    fuzz_hold(!request_header(q, "Content-Length") || !request_header(q, "Transfer-Encoding"));
}

static void check_accept(const struct request *q)
{
    static const char *const types[] = {"application/json", "text/csv", "text/plain"};
    struct err err = {0};
    int form = request_accepts(q, types, 3);
    fuzz_hold(form >= -1 && form < 3 && (form == 0 || request_header(q, "Accept")));
    fuzz_hold(request_accept_one(q, types, 3, &err) == form);
    fuzz_hold(form >= 0 || err.code == ERR_NOT_ACCEPTABLE);
}

static void parse_values(const struct request *q)
{
    struct err err = {0};
    int64_t n = 0, wait = 0, since = 0, until = 0;
    bool yes;
    if (request_wait_s(q, &wait, &err) == 0)
        fuzz_hold(wait >= 0 && wait <= HTTP_WAIT_MAX_S);
    if (request_query_int(q, "limit", 1, 200, &n, &err) == 0 && request_query(q, "limit"))
        fuzz_hold(n >= 1 && n <= 200);
    if (request_query_stretch(q, &since, &until, &err) == 0 && request_query(q, "until"))
        fuzz_hold(since < until);
    request_query_bool(q, "dry_run", &yes, &err);
    request_prefers_gzip(q);
    CLEANUP_BUF struct buf known = BUF_INIT;
    request_header_list(q, "If-None-Match", &known);
    reply_matches(buf_text(&known), "\"0123456789abcdef\"");
}

static void check_all(struct request *q)
{
    struct err err = {0};
    struct route_args args = {0};
    const char *allow = NULL;
    q->bound = "127.0.0.1";
    q->names = request_header(q, "Names") ? request_header(q, "Names") : "node1,probe.example";
    check_accept(q);
    if (check_framing(q, &err) < 0 || request_split(q, &err) < 0) {
        check_error(&err);
        return;
    }
    check_query(q);
    const struct route *route = route_find(routes, q->method, q->path, &args, &allow, &err);
    if (!route) {
        check_error(&err);
        fuzz_hold(err.code == ERR_NOT_FOUND || (err.code == ERR_METHOD && allow && *allow));
    }
    q->body_max = route && route->body_max ? route->body_max : HTTP_BODY_MAX;
    q->body_types = route && route->body_types ? route->body_types : "application/json";
    if (check_source(q, &err) < 0 || check_body_headers(q, &err) < 0) {
        check_error(&err);
        return;
    }
    check_through(q);
    fuzz_hold(args.id >= 0 && strlen(args.name) <= ROUTE_NAME_MAX && !strchr(args.name, '/'));
    if (route && route_check_query(route, q, &err) == 0)
        parse_values(q);
}

void fuzz_http(const uint8_t *data, size_t size)
{
    struct message m;
    if (message_read(&m, data, size))
        check_all(&m.q);
    message_fini(&m);
}

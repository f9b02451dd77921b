// SPDX-License-Identifier: Apache-2.0
#include "http/messages/router.h"

#include "base/cleanup.h"
#include "tests/unit/tap.h"

static int one(struct request *q, struct reply *r, struct err *err)
{
    (void)q, (void)r, (void)err;
    return 0;
}

static const struct route table[] = {
    {"GET", "/", one, NULL, SCOPE_READ},
    {"GET", "/v1/runs", one, "state,limit", SCOPE_READ},
    {"POST", "/v1/runs", one, NULL, SCOPE_READ},
    {"GET", "/v1/runs/{id}", one, NULL, SCOPE_READ},
    {"GET", "/v1/runs/{id}/matrix.csv", one, NULL, SCOPE_READ},
    {"GET", "/v1/baselines/{name}", one, NULL, SCOPE_READ},
    {"PUT", "/v1/baselines/{name}", one, NULL, SCOPE_READ},
    {"DELETE", "/v1/baselines/{name}", one, NULL, SCOPE_READ},
    {0},
};

static void test_match(void)
{
    static const struct {
        const char *pattern, *path;
        bool fits;
        int64_t arg;
    } cases[] = {
        {"/", "/", true, 0},
        {"/v1/runs", "/v1/runs", true, 0},
        {"/v1/runs", "/v1/runs/", false, 0},
        {"/v1/runs/{id}", "/v1/runs/17", true, 17},
        {"/v1/runs/{id}", "/v1/runs/017", false, 0},
        {"/v1/runs/{id}", "/v1/runs/0", false, 0},
        {"/v1/runs/{id}", "/v1/runs/-1", false, 0},
        {"/v1/runs/{id}", "/v1/runs/", false, 0},
        {"/v1/runs/{id}", "/v1/runs/17x", false, 0},
        {"/v1/runs/{id}", "/v1/runs/999999999999999", true, 999999999999999},
        {"/v1/runs/{id}", "/v1/runs/9999999999999999", false, 0},
        {"/v1/runs/{id}/log", "/v1/runs/5/log", true, 5},
        {"/v1/runs/{id}/log", "/v1/runs/5/lo", false, 0},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct route_args args = {0};
        bool fits = route_match(cases[i].pattern, cases[i].path, &args);
        CHECK(fits == cases[i].fits && (!fits || args.id == cases[i].arg), "%s against %s",
              cases[i].path, cases[i].pattern);
    }
}

static void test_name(void)
{
    char long_path[100] = "/b/";
    struct route_args args;
    memset(long_path + 3, 'x', ROUTE_NAME_MAX);
    CHECK(route_match("/b/{name}", long_path, &args) && strlen(args.name) == ROUTE_NAME_MAX,
          "a name of %d characters", ROUTE_NAME_MAX);
    long_path[3 + ROUTE_NAME_MAX] = 'x';
    CHECK(!route_match("/b/{name}", long_path, &args), "one more is none");
    static const char *const bad[] = {"/b/", "/b/a/c", "/b/a%20c", "/b/a c", "/b/\xc3\xa9"};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!route_match("/b/{name}", bad[i], &args), "%s has no name", bad[i]);
}

static void test_find(void)
{
    struct err err = {0};
    const char *allow = NULL;
    struct route_args args = {0};
    CHECK(route_find(table, "GET", "/v1/runs", &args, &allow, &err) == &table[1], "GET finds GET");
    CHECK(route_find(table, "HEAD", "/v1/runs", &args, &allow, &err) == &table[1],
          "HEAD finds GET");
    CHECK(route_find(table, "POST", "/v1/runs", &args, &allow, &err) == &table[2], "POST its own");
    CHECK(!route_find(table, "GET", "/nothing", &args, &allow, &err) && err.code == ERR_NOT_FOUND,
          "no such path is 404");
    CHECK(!route_find(table, "DELETE", "/v1/runs", &args, &allow, &err) && err.code == ERR_METHOD,
          "no such method is 405");
    CHECK_STR(allow, "GET, HEAD, POST", "Allow lists what there is");
    CHECK(route_find(table, "PUT", "/v1/baselines/a.B_9-", &args, &allow, &err) == &table[6],
          "PUT its own");
    CHECK_STR(args.name, "a.B_9-", "a name is handed on");
    CHECK(!route_find(table, "POST", "/v1/baselines/a", &args, &allow, &err), "no POST there");
    CHECK_STR(allow, "GET, HEAD, PUT, DELETE", "Allow knows PUT");
}

static void test_query(void)
{
    struct request q = {.n_query = 1, .query = {{"limit", "5"}}};
    struct err err = {0};
    CHECK(route_check_query(&table[1], &q, &err) == 0, "a known parameter");
    q.query[0].name = "limi";
    CHECK(route_check_query(&table[1], &q, &err) < 0, "a beginning of one is not one");
    CHECK_STR(err.member, "limi", "and is named");
    CHECK(route_check_query(&table[2], &q, &err) < 0, "a route without parameters has none");
}

static void test_body(void)
{
    static const struct route cancel = {.method = "POST", .pattern = "/c", .no_body = true},
                              discard = {.method = "DELETE", .pattern = "/c"},
                              make = {.method = "POST", .pattern = "/c"};
    static const struct {
        const char *text, *member;
        enum err_code code;
    } cases[] = {
        {"", "", ERR_NONE},          {"{}", "", ERR_NONE},
        {" { }\n", "", ERR_NONE},    {"{\"force\":true}", "force", ERR_INVALID},
        {"[]", "", ERR_BAD_REQUEST}, {"null", "", ERR_BAD_REQUEST},
        {"{", "", ERR_BAD_REQUEST},  {"x", "", ERR_BAD_REQUEST},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP_BUF struct buf body = BUF_INIT;
        buf_str(&body, cases[i].text);
        const struct request q = {.body = body};
        const struct route *const none[] = {&cancel, &discard};
        for (unsigned k = 0; k < COUNT_OF(none); k++) {
            struct err err = {0};
            int rc = route_check_body(none[k], &q, &err);
            CHECK((rc < 0) == (cases[i].code != ERR_NONE) && err.code == cases[i].code,
                  "%s of \"%s\"", none[k]->method, cases[i].text);
            CHECK_STR(err.member, cases[i].member, "the member is named");
        }
        CHECK(route_check_body(&make, &q, NULL) == 0, "others read it themselves");
    }
}

int main(void)
{
    test_match();
    test_name();
    test_find();
    test_query();
    test_body();
    return tap_done();
}

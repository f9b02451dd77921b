// SPDX-License-Identifier: Apache-2.0
// The table is searched from its top. A path that fits a row with another method gives 405 and the
// methods that it has, else 404.
#include "http/messages/router.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "base/written.h"

static const char id_hole[] = "{id}"; // all others are names

// Digits to a positive number; leading zeros and anything above 2^53 are no ids of ours.
static const char *router_read_id(const char *path, int64_t *arg)
{
    size_t n = strspn(path, "0123456789");
    if (n < 1 || n > 15 || *path == '0')
        return NULL;
    int64_t id = 0;
    for (size_t i = 0; i < n; i++)
        id = id * 10 + (path[i] - '0');
    *arg = id;
    return path + n;
}

static const char *read_name(const char *path, char name[ROUTE_NAME_MAX + 1])
{
    size_t n = strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    if (n < 1 || n > ROUTE_NAME_MAX)
        return NULL;
    memcpy(name, path, n);
    name[n] = '\0';
    return path + n;
}

bool route_match(const char *pattern, const char *path, struct route_args *args)
{
    while (*pattern) {
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        bool id = str_starts(pattern, id_hole);
        path = id ? router_read_id(path, &args->id) : read_name(path, args->name);
        pattern = strchr(pattern, '}') + 1;
        if (!path)
            return false;
    }
    return !*path;
}

static bool same_method(const char *of_route, const char *asked)
{
    return strcmp(of_route, asked) == 0 ||
           (strcmp(asked, "HEAD") == 0 && strcmp(of_route, "GET") == 0);
}

// Which methods a path has, as a set, gives the Allow header.
enum { ALLOW_GET = 1, ALLOW_POST = 2, ALLOW_DELETE = 4, ALLOW_PUT = 8 };
static const char *const allow_texts[] = {
    [ALLOW_GET] = "GET, HEAD",
    [ALLOW_POST] = "POST",
    [ALLOW_GET | ALLOW_POST] = "GET, HEAD, POST",
    [ALLOW_DELETE] = "DELETE",
    [ALLOW_GET | ALLOW_DELETE] = "GET, HEAD, DELETE",
    [ALLOW_POST | ALLOW_DELETE] = "POST, DELETE",
    [ALLOW_GET | ALLOW_POST | ALLOW_DELETE] = "GET, HEAD, POST, DELETE",
    [ALLOW_PUT] = "PUT",
    [ALLOW_GET | ALLOW_PUT] = "GET, HEAD, PUT",
    [ALLOW_POST | ALLOW_PUT] = "POST, PUT",
    [ALLOW_GET | ALLOW_POST | ALLOW_PUT] = "GET, HEAD, POST, PUT",
    [ALLOW_DELETE | ALLOW_PUT] = "PUT, DELETE",
    [ALLOW_GET | ALLOW_DELETE | ALLOW_PUT] = "GET, HEAD, PUT, DELETE",
    [ALLOW_POST | ALLOW_DELETE | ALLOW_PUT] = "POST, PUT, DELETE",
    [ALLOW_GET | ALLOW_POST | ALLOW_DELETE | ALLOW_PUT] = "GET, HEAD, POST, PUT, DELETE",
};

static unsigned method_bit(const char *method)
{
    return *method == 'G'               ? ALLOW_GET
           : *method == 'D'             ? ALLOW_DELETE
           : strcmp(method, "PUT") == 0 ? ALLOW_PUT
                                        : ALLOW_POST;
}

const struct route *route_find(const struct route *table, const char *method, const char *path,
                               struct route_args *args, const char **allow, struct err *err)
{
    unsigned found = 0;
    for (const struct route *r = table; r->method; r++) {
        if (!route_match(r->pattern, path, args))
            continue;
        if (same_method(r->method, method))
            return r;
        found |= method_bit(r->method);
    }
    if (!found) {
        err_set(err, ERR_NOT_FOUND, "",
                "there is no such path (GET /openapi.json lists all paths)");
        return NULL;
    }
    *allow = allow_texts[found];
    err_set(err, ERR_METHOD, "", "this path allows %s only", *allow);
    return NULL;
}

static bool in_list(const char *list, const char *name)
{
    size_t n = strlen(name);
    while (list && *list) {
        size_t word = strcspn(list, ",");
        if (word == n && strncmp(list, name, n) == 0)
            return true;
        list += word + (list[word] == ',');
    }
    return false;
}

int route_check_query(const struct route *route, const struct request *q, struct err *err)
{
    for (int i = 0; i < q->n_query; i++)
        if (!route->query ||
            (strcmp(route->query, "*") != 0 && !in_list(route->query, q->query[i].name)))
            return err_set(err, ERR_BAD_REQUEST, q->query[i].name,
                           "is not a query parameter of this path%s%s",
                           route->query ? "; allowed are " : "", route->query ? route->query : "");
    return 0;
}

int route_check_body(const struct route *route, const struct request *q, struct err *err)
{
    if (!q->body.len || (!route->no_body && strcmp(route->method, "DELETE") != 0))
        return 0;
    CLEANUP_JSON struct json *root = request_json(q, NULL);
    if (!json_is_object(root))
        return err_set(err, ERR_BAD_REQUEST, "",
                       "this request takes no body: send none, or an empty JSON object");
    return json_count(root) ? err_set(err, ERR_INVALID, json_name(json_first(root)),
                                      "is unknown; this request takes no members")
                            : 0;
}

int routes_print(const struct route *table, FILE *out)
{
    for (const struct route *r = table; r->method; r++)
        fprintf(out, "%s %s %s\n", r->method, r->pattern, r->query ? r->query : "-");
    return !all_written(out);
}

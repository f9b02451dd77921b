// SPDX-License-Identifier: Apache-2.0
// The table of routes and how a request finds its handler. Patterns are texts with two kinds of
// holes: {id}, a positive whole number, and {name} or {hash}: letters, digits, . _ -
#pragma once
#include <stdio.h>

#include "http/messages/work.h"

// Fills the reply and returns 0, or returns -1 and an error that becomes a problem document. Never
// blocks: it may ask to be called again after a wait (reply_wait), hand the connection to a stream
// (reply_stream), or have a file made (reply_made_file).
typedef int handler_fn(struct request *q, struct reply *r, struct err *err);

struct route {
    const char *method; // "GET" also answers HEAD
    const char *pattern;
    handler_fn *handler;
    const char *query;      // names it accepts, comma-separated; NULL: none
    enum scope scope;       // what a client must be allowed
    size_t body_max;        // bytes; 0: HTTP_BODY_MAX
    const char *body_types; // media types of a body, comma-separated; NULL: application/json
    work_fn *work;          // what an answer costs; NULL: little, whatever is stored
    size_t body_inline;     // bytes of a body in memory; a larger one goes to a file. 0: all of it
    bool no_body;           // it takes none, as no DELETE does
};

struct route_args {
    int64_t id;
    char name[ROUTE_NAME_MAX + 1];
};

// True if the path fits; *args holds what was in its holes.
bool route_match(const char *pattern, const char *path, struct route_args *args);
// NULL + ERR_NOT_FOUND or ERR_METHOD; *allow (a static text, "GET, HEAD") is set for ERR_METHOD.
const struct route *route_find(const struct route *table, const char *method, const char *path,
                               struct route_args *args, const char **allow, struct err *err);
// "METHOD PATTERN NAMES" per line, "-" for no names. Exit status: 1 if it cannot be written.
int routes_print(const struct route *table, FILE *out);
// ERR_BAD_REQUEST names a query parameter that the route does not have.
int route_check_query(const struct route *route, const struct request *q, struct err *err);
// A route that takes no body has got one: ERR_BAD_REQUEST; ERR_INVALID names a member. {} is none.
int route_check_body(const struct route *route, const struct request *q, struct err *err);

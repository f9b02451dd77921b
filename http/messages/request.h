// SPDX-License-Identifier: Apache-2.0
// A request as handlers see it: no library of HTTP is visible here.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/token.h"

enum {
    HTTP_BODY_MAX = 65536, // unless the route says another number
    HTTP_HEADERS_MAX = 64, // browsers send 20
    HTTP_QUERY_MAX = 64,   // all parameters of all benchmarks together are fewer than 50
    ROUTE_NAME_MAX = 64,   // of a {name}: a hash is one
    HTTP_WAIT_MAX_S = 60,  // below the idle limit of common proxies
};

struct json;

struct http_pair {
    const char *name, *value;
};

struct request {
    const struct http_service *service; // borrowed: what is served
    struct tokens *tokens;              // borrowed; NULL: there are none
    char id[20];                        // of this request, in the reply and in problems
    const char *method;                 // as sent
    char *uri;                          // raw, split by request_split; owned
    const char *path;                   // inside uri, not decoded
    int n_query, n_headers;
    struct http_pair query[HTTP_QUERY_MAX];     // inside uri, decoded
    struct http_pair headers[HTTP_HEADERS_MAX]; // borrowed from the server
    struct http_head {     // request line and headers where the library has parsed them
        const char *begin; // the method; NULL: the library refuses what check_head() does
        const char *target, *version;
        size_t bytes; // as they came, with the empty line
    } head;
    bool http_1_0;                  // or older
    size_t body_max, body_inline;   // of its route
    const char *body_types;         // of its route
    const char *bound;              // address at which it came in; "" for unix
    const char *names;              // hosts that are us as well, comma-separated; NULL: none
    const char *own_names;          // of the machine, where others reach it; likewise
    bool tls;                       // it came by TLS
    bool dry_run;                   // it changes nothing, whatever its method
    enum scope granted;             // what the client may do
    uid_t uid;                      // of its account; (uid_t)-1: not known
    pid_t pid;                      // that connected to the Unix socket, perhaps gone; 0: not known
    char token[TOKEN_NAME_MAX + 1]; // whose name says so; "": no token
    char certificate[TOKEN_NAME_MAX + 1]; // whose common name says so; "": none
    struct buf body;
    size_t body_bytes;             // of the body, which may be in a file (http/server/requests.c)
    const struct route *route;     // found once by route_of; NULL: not yet, or there is none
    int64_t arg;                   // the {id} of the route
    char name[ROUTE_NAME_MAX + 1]; // its {name}
    int hint;                      // of the route's work function (struct work); 0: none
    int64_t made;                  // by the handler's first call, kept over its wait; 0: nothing
    bool again;                    // the handler is called again after its wait
    bool prepared; // what it needs was made by a worker: as good as new, whatever was stored since
};

// Header by name in any case; NULL if it was not sent. The first if there are several.
const char *request_header(const struct request *q, const char *name);
// Its lines as one, with ", " between them: those of a header that is a list (RFC 9110, 5.3).
void request_header_list(const struct request *q, const char *name, struct buf *out);
int request_header_count(const struct request *q, const char *name);
const char *request_query(const struct request *q, const char *name); // NULL: not given
// Cuts uri into path and query pairs (decoded). ERR_BAD_REQUEST.
int request_split(struct request *q, struct err *err);
// Seconds to wait from ?wait= or else "Prefer: wait=", 0…HTTP_WAIT_MAX_S. A preference that cannot
// be read counts as not sent (RFC 7240); a parameter that cannot is ERR_INVALID.
int request_wait_s(const struct request *q, int64_t *seconds, struct err *err);
// Whether it comes from the header.
bool request_preferred_wait(const struct request *q, int64_t *seconds);
// Which of `types` ("text/csv", …) the client prefers (all lines of Accept, RFC 9110): its place.
// Of those that it wants as much, the first. Without the header, or of one without a type that can
// be read: 0. -1: it wants none of them.
int request_accepts(const struct request *q, const char *const *types, int n);
// The same. ERR_NOT_ACCEPTABLE names the types.
int request_accept_one(const struct request *q, const char *const *types, int n, struct err *err);
// That error. Its types are those that responses have.
int request_refuse_types(const char *const *types, int n, struct err *err);
// Whether the client prefers gzip to plain bytes (Accept-Encoding, RFC 9110). Without the header:
// no.
bool request_prefers_gzip(const struct request *q);
// These leave *out as it is where the parameter is not given.
// Of ?since= and ?until=. ERR_INVALID names both: no time is between them. An until that is not
// given stays 0.
int request_query_stretch(const struct request *q, int64_t *since_ms, int64_t *until_ms,
                          struct err *err);
// A filter that is given empty would list nothing, and be taken for one that is not given. *out:
// NULL if it is not given.
int request_query_filter(const struct request *q, const char *name, const char **out,
                         struct err *err);
int request_query_int(const struct request *q, const char *name, int64_t least, int64_t most,
                      int64_t *out, struct err *err);
int request_query_bool(const struct request *q, const char *name, bool *out, struct err *err);
// The same of the query or of a member of the body (NULL: it has none). ERR_INVALID: they differ.
int request_bool(const struct request *q, const char *name, const struct json *member, bool *out,
                 struct err *err);
// The body, to be freed with json_free. NULL: it is empty or no JSON; ERR_BAD_REQUEST.
struct json *request_json(const struct request *q, struct err *err);

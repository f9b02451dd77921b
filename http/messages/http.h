// SPDX-License-Identifier: Apache-2.0
// A request and its reply as the resources see them: no library of HTTP is visible here.
//
// A handler fills the reply and returns 0, or returns -1 and an error that becomes a problem
// document. It never blocks. It may ask to be called again when a run is over (reply_wait), or hand
// the connection to an event stream (reply_stream).
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "api/services/services.h"
#include "base/buf.h"
#include "base/embedded.h"
#include "base/err.h"
#include "http/messages/ready_answer.h"
#include "http/messages/shared_body.h"

enum {
    HTTP_BODY_MAX = 65536, // a request for a run with every text at its longest fits eight times
    // A document to import: the largest run has 1024 ranks x 48 sizes in two modes, 98,304 cells of
    // at most 210 bytes as JSON (20.6 MB), 1024 ranks of 600 (0.6), hwloc's XML of such a machine
    // (1), a log (1 MiB). As a table it is 1 MB. Such a run of 16 MB takes 1.5 s and 200 MB while
    // it is read and stored.
    HTTP_IMPORT_MAX = 24 << 20,
    HTTP_HEADERS_MAX = 64, // browsers send 20
    HTTP_QUERY_MAX = 40,   // availability takes every parameter of a run: latency has 27
    ROUTE_NAME_MAX = 63,   // of a {name}; names of baselines are as long
    HTTP_WAIT_MAX_S = 60,  // below the idle limit of common proxies
};

struct http_pair {
    const char *name, *value;
};

struct request {
    const struct api_services *api; // borrowed
    char id[20];                    // of this request, in the reply and in problems
    const char *method;             // as sent
    char *uri;                      // raw, split by request_split; owned
    const char *path;               // inside uri, not decoded
    int n_query, n_headers;
    struct http_pair query[HTTP_QUERY_MAX];     // inside uri, decoded
    struct http_pair headers[HTTP_HEADERS_MAX]; // borrowed from the server
    struct http_head {     // request line and headers where the library has parsed them
        const char *begin; // the method; NULL: the library refuses what check_head() does
        const char *target, *version;
        size_t bytes; // as they came, with the empty line
    } head;
    bool http_1_0;                  // or older
    size_t body_max;                // of its route
    const char *body_types;         // of its route
    const char *bound;              // address that the listener is bound to; "" for unix
    const char *names;              // hosts that are us as well, comma-separated; NULL: none
    bool tls;                       // it came by TLS
    bool dry_run;                   // it changes nothing, whatever its method
    enum scope granted;             // what the client may do
    uid_t uid;                      // of its account; (uid_t)-1: not known
    char token[TOKEN_NAME_MAX + 1]; // whose name says so; "": no token
    struct buf body;
    size_t body_bytes;             // of the body, which may be in a file (http/server/requests.c)
    const struct route *route;     // found once by route_of; NULL: not yet, or there is none
    int64_t arg;                   // the {id} of the route
    char name[ROUTE_NAME_MAX + 1]; // its {name}
    int64_t run_id;                // run that the first call made or found, kept over a wait
    bool again;                    // the handler is called again after its wait
    bool prepared; // what it needs was made by a worker: as good as new, whatever was stored since
};

enum reply_kind { REPLY_WHOLE, REPLY_WAIT, REPLY_STREAM, REPLY_BACKUP };

struct reply {
    enum reply_kind kind;
    int status;
    const char *type;            // a constant
    struct buf body;             // owned
    const struct embedded *file; // instead of body: part of the program
    struct shared_body *shared;  // instead of body: a reference of its own
    struct ready_answer *answer; // instead of body: made by a worker; a reference of its own
    bool store;                  // may be kept by the client if it asks again (ETag)
    bool close;                  // the connection cannot be used further
    const char *allow;           // for 405
    char location[48];
    char applied[16]; // the preference that was applied: "wait=60"; "" for none
    int retry_after_s;
    int64_t run_id;  // REPLY_WAIT, REPLY_STREAM
    int64_t wait_ms; // REPLY_WAIT
    int64_t after;   // REPLY_STREAM: last event that the client has
};

typedef int handler_fn(struct request *q, struct reply *r, struct err *err);

// Header by name in any case; NULL if it was not sent. The first if there are several.
const char *request_header(const struct request *q, const char *name);
int request_header_count(const struct request *q, const char *name);
const char *request_query(const struct request *q, const char *name); // NULL: not given
// Cuts uri into path and query pairs (decoded). ERR_BAD_REQUEST.
int request_split(struct request *q, struct err *err);
// Seconds to wait from ?wait= or else "Prefer: wait=", 0…HTTP_WAIT_MAX_S. A preference that cannot
// be read counts as not sent (RFC 7240); a parameter that cannot is ERR_INVALID.
int request_wait_s(const struct request *q, int64_t *seconds, struct err *err);
// Whether it comes from the header.
bool request_preferred_wait(const struct request *q, int64_t *seconds);
// These leave *out as it is where the parameter is not given.
int request_query_time(const struct request *q, const char *name, int64_t *ms, struct err *err);
int request_query_int(const struct request *q, const char *name, int64_t least, int64_t most,
                      int64_t *out, struct err *err);
int request_query_bool(const struct request *q, const char *name, bool *out, struct err *err);

void reply_fini(struct reply *r);
int reply_json(struct reply *r, int status, struct buf *body, struct err *err); // takes the body
void reply_shared(struct reply *r, int status,
                  struct shared_body *body);                // JSON; takes the reference
void reply_answer(struct reply *r, struct ready_answer *a); // takes the reference
int reply_text(struct reply *r, const char *type, struct buf *body, struct err *err);
int reply_wait(struct reply *r, int64_t run_id, int64_t wait_ms);
int reply_stream(struct reply *r, int64_t run_id, int64_t after);
// The answer came after the wait that the client preferred: it is told so.
void reply_waited(struct reply *r, const struct request *q);
// RFC 9457. `blockers` is a JSON array or NULL.
void reply_problem(struct reply *r, const struct request *q, const struct err *err,
                   const char *blockers);
// What it sends, wherever it is kept; borrowed. NULL with *n > 0: it lies in a file (answer).
const char *reply_bytes(const struct reply *r, size_t *n);
// "\"<hash of the body>\"" into etag; "" if this reply has none.
void reply_etag(const struct reply *r, char *etag, size_t room);
bool reply_matches(const char *if_none_match, const char *etag);

// SPDX-License-Identifier: Apache-2.0
// HTTP requests: one, or thousands at once behind one file descriptor. The only module that
// includes curl.h. A server is not trusted: http and https only, no redirects, proxies, cookies or
// compressed bodies; bytes, times and rates have limits.
//
//     struct fetch *f = fetch_new(256, NULL, &err);
//     for (int i = 0; i < n; i++)
//         fetch_start(f, &requests[i], done, &nodes[i], &err);
//     fetch_run(f, &interrupted);          // or: watch fetch_fd(f) for EPOLLIN, call fetch_turn(f)
//     fetch_free(f);
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "fetch/error.h"
#include "fetch/limits.h"

struct fetch_tls {
    const char *cacert;     // CA bundle in PEM; NULL or "": the system's
    const char *cert, *key; // of this client; NULL or "": none
};

// Gets the body of a 200 as it comes. False: no more of it is wanted.
typedef bool fetch_take(void *ctx, const char *bytes, size_t n);

struct fetch_request {
    const char *method; // NULL: GET
    const char *url;    // "http://127.0.0.1:7780/v1/node"
    const char *socket; // path of a Unix socket to connect to instead of the URL's host; NULL: none
    // IPv4 or IPv6 address to connect to. Host, SNI and the certificate are those of the URL's
    // host. NULL: the address of that
    const char *address;
    const char *token;                 // sent as bearer token; NULL or "": none
    const char *headers[4];            // "Name: value", up to the first NULL
    const char *body;                  // NULL: none
    size_t body_len;                   // bytes; the body may hold NUL
    const struct fetch_tls *tls;       // NULL: the system's CA bundle
    const struct fetch_limits *limits; // NULL: those of fetch_new, or fetch_defaults
    fetch_take *take;                  // NULL: the body goes to the response
    void *take_ctx;
    const volatile int *interrupted; // fetch_one: not 0 ends the request within a second; or NULL
    bool more; // another request to this host follows at once: the connection is kept
};

struct fetch_response {
    enum fetch_error error; // below FETCH_OK nothing but `sys` and the times is set
    int sys;                // errno of a connection that failed; 0: not known
    int status;
    struct buf body; // of any status; with `take`, of any but 200
    char content_type[64];
    int retry_after_s; // 0: none
    bool dated;        // there is a Date, and therefore skew_ms
    int64_t skew_ms;   // the server's clock minus ours, ±1 s: Date counts in seconds
    // From the start of the request: connected (with TLS), first byte, end. Microseconds.
    int64_t connect_us, first_us, total_us;
};

// Whether the server answered that it has no time now: status 429 or 503.
bool fetch_response_busy(const struct fetch_response *r);
void fetch_response_free(struct fetch_response *r);
#define CLEANUP_RESPONSE CLEANUP(fetch_response_free)

// Makes one request and waits for its end. Fills *out, which the caller frees; returns out->error.
enum fetch_error fetch_one(const struct fetch_request *q, struct fetch_response *out);

// Many at once.
struct fetch;
// Called once per request, from fetch_turn, fetch_run or fetch_stop. The response is freed
// afterwards; buf_steal keeps its body. It may call fetch_start, and no other function of `f`.
typedef void fetch_done(void *ctx, struct fetch_response *r);

// At most `in_flight` requests have a connection, the others are queued. Limits NULL:
// fetch_defaults.
struct fetch *fetch_new(int in_flight, const struct fetch_limits *limits, struct err *err);
// Queues a request. Its texts are copied; body, tls and limits are borrowed until fn was called.
// ERR_INVALID: no URL of http or https. ERR_NO_MEMORY.
int fetch_start(struct fetch *f, const struct fetch_request *q, fetch_done *fn, void *ctx,
                struct err *err);
int fetch_fd(const struct fetch *f); // readable: fetch_turn has something to do
int fetch_turn(struct fetch *f);     // never waits; returns how many requests have not finished
// Waits until all have finished. Once *interrupted is not 0, the others end as fetch_stop says,
// within a second. NULL: not interrupted.
void fetch_run(struct fetch *f, const volatile int *interrupted);
// CA bundles may be other ones now, also under the same name: requests that begin after a
// second do not use what was read of them before. Certificates and keys are read for each
// connection anyway.
void fetch_trust_again(struct fetch *f);
void fetch_stop(struct fetch *f); // what has not finished ends with FETCH_INTERRUPTED
void fetch_free(struct fetch *f); // calls no fn; NULL is fine

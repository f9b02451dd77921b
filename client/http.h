// SPDX-License-Identifier: Apache-2.0
// HTTP requests of the command line to its daemon. The daemon is not trusted: see fetch/fetch.h.
#pragma once
#include "client/config.h"

enum {
    HTTP_BODY_MAX = 64 << 20,  // the largest matrix (2^18 cells of 200 bytes) is 52 MB
    HTTP_JSON_MAX = 512 << 20, // in memory: of 13 members, 1,540 bytes each, 404 MB
};

struct http_reply {
    long status;
    struct buf body;
};

void http_reply_free(struct http_reply *r);
#define CLEANUP_REPLY CLEANUP(http_reply_free)

// body NULL: none. `header` NULL or one more header line. ERR_UNREACHABLE says what was tried.
int http_call(const struct cli *c, const char *method, const char *path, const char *body,
              const char *header, struct http_reply *out, struct err *err);
// As http_call with POST, and a body of any media type; it may hold NUL bytes.
int http_post(const struct cli *c, const char *path, const char *type, const struct buf *body,
              struct http_reply *out, struct err *err);
void http_escape(struct buf *out, const char *text); // for a query
// As http_call; an answer that is no success becomes an error made of the problem document.
int http_json(const struct cli *c, const char *method, const char *path, const char *body,
              struct json **out, struct err *err);
// The error of an answer that was no success (problem document, or the status alone).
int http_problem(const struct http_reply *r, struct err *err);

// Writes the body of a 200 to `fd` as it comes, however long that takes; another answer goes to
// *out. ERR_SYSTEM: fd cannot be written to.
int http_download(const struct cli *c, const char *path, int fd, struct http_reply *out,
                  struct err *err);

// Follows an event stream. fn gets each event's name, id and data; returns false to stop. Returns 0
// when stopped or ended, -1 when the stream broke (ERR_UNREACHABLE) or was refused.
typedef bool event_fn(void *ctx, const char *event, const char *id, const char *data, size_t len);
int http_events(const struct cli *c, const char *path, const char *last_id, event_fn *fn, void *ctx,
                struct err *err);

// Set by a signal handler: transfers end with ERR_TIMEOUT as soon as they notice.
extern volatile int http_interrupted;

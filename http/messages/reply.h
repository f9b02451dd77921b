// SPDX-License-Identifier: Apache-2.0
// A reply as handlers fill it: whole, or something that comes later.
#pragma once
#include "base/embedded.h"
#include "http/messages/ready_answer.h"
#include "http/messages/request.h"
#include "http/messages/shared_body.h"

enum reply_kind {
    REPLY_WHOLE,
    REPLY_WAIT, // the handler is called again when its source wakes it, or when wait_ms have passed
    REPLY_STREAM, // the source writes the body, piece by piece
    REPLY_FILE,   // the source makes a file first
};

// What a reply waits for or is made from. The server opens it for one reply, and closes it when the
// reply was sent or the client has gone.
struct reply_source {
    // NULL and err: it cannot be opened. wake() may be called at any time from the loop.
    void *(*open)(void *context, int64_t of, int64_t after, void (*wake)(void *ctx), void *ctx,
                  struct err *err);
    void (*close)(void *opened);
    // REPLY_STREAM: bytes written; 0: none now, wake() comes; -1: the stream has ended.
    ssize_t (*read)(void *opened, char *out, size_t room);
    // REPLY_FILE, once it has called wake(): a file descriptor, the caller's, of so many bytes.
    int (*take)(void *opened, int64_t *bytes, struct err *err);
    const char *file_name;    // REPLY_FILE: as the client may save it
    int retry_after_conflict; // seconds, where open() says ERR_CONFLICT
};

struct reply {
    enum reply_kind kind;
    int status;
    const char *type;            // a constant
    struct buf body;             // owned
    const struct embedded *file; // instead of body: part of the program
    bool gzip;                   // of file or answer, its compressed bytes are sent
    struct shared_body *shared;  // instead of body: a reference of its own
    struct ready_answer *answer; // instead of body: made by a worker; a reference of its own
    bool store;                  // may be kept by the client if it asks again (ETag)
    bool standalone;   // a page that has its style in itself; a browser shows it in a sandbox
    bool immutable;    // this path will never have another body
    bool close;        // the connection cannot be used further
    const char *allow; // for 405
    char location[48];
    char next[320];   // reference of the page after this one, as in the header Link; "": none
    char applied[16]; // the preference that was applied: "wait=60"; "" for none
    int retry_after_s;
    const struct reply_source *source; // unless REPLY_WHOLE
    int64_t of;                        // of what the source is opened
    int64_t wait_ms;                   // REPLY_WAIT
    int64_t after;                     // REPLY_STREAM: last event that the client has
};

enum { REPLY_RETRY_S = 10 };

// What a service adds to a problem document: one member, and when to try again.
struct problem_more {
    const char *name; // NULL: no member
    struct buf json;  // owned
    int retry_after_s;
};

void reply_fini(struct reply *r);
int reply_json(struct reply *r, int status, struct buf *body, struct err *err); // takes the body
void reply_shared(struct reply *r, int status,
                  struct shared_body *body); // JSON; takes the reference
// A part of the program, compressed for clients that prefer it so; they may keep it.
void reply_file(struct reply *r, const struct request *q, const struct embedded *file,
                const char *type);
void reply_answer(struct reply *r, struct ready_answer *a); // takes the reference
int reply_text(struct reply *r, const char *type, struct buf *body, struct err *err);
int reply_wait(struct reply *r, const struct reply_source *s, int64_t of, int64_t wait_ms);
int reply_stream(struct reply *r, const struct reply_source *s, int64_t of, int64_t after);
int reply_made_file(struct reply *r, const struct reply_source *s, const char *type);
// The answer came after the wait that the client preferred: the reply says so (Preference-Applied).
void reply_waited(struct reply *r, const struct request *q);
// RFC 9457. `more` may be NULL. With status 429 or 503 it says when to try again: REPLY_RETRY_S,
// where r->retry_after_s says nothing else.
void reply_problem(struct reply *r, const struct request *q, const struct err *err,
                   const struct problem_more *more);
// What it sends, wherever it is kept; borrowed. NULL with *n > 0: it lies in a file (answer).
const char *reply_bytes(const struct reply *r, size_t *n);
// "\"<hash of the body>\"" into etag; "" if this reply has none.
void reply_etag(const struct reply *r, char *etag, size_t room);
bool reply_matches(const char *if_none_match, const char *etag);

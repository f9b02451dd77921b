// SPDX-License-Identifier: Apache-2.0
// What a reply will cost, estimated before it is made, and what a worker process does instead of
// the loop where that is more than WORK_INLINE_US (http/server/jobs.c).
#pragma once
#include "http/messages/reply.h"

enum { WORK_INLINE_US = 5000 }; // half of what the loop has, counted on a fast machine

// What a worker has made for a job.
struct job_made {
    int64_t version;  // of the data, when the job was added
    int64_t of;       // as given to server_add_job()
    const void *data; // NULL: nothing
    size_t n;
};

// Takes over piece by piece, in the loop, what a worker has made. The request waits meanwhile, and
// the worker rests.
struct job_pieces {
    // `fd` stays the caller's. done() is called once when all is taken over, unless end() comes
    // first. NULL and err: it cannot begin.
    void *(*begin)(void *context, int fd, size_t bytes, void (*done)(void *ctx), void *ctx,
                   struct err *err);
    bool (*is_over)(const void *begun); // there was nothing to take over: done() is not called
    int (*answer)(void *begun, struct request *q, struct reply *r, struct err *err);
    void (*end)(void *begun);
};

// A job of which the worker does not make the reply itself.
struct job_kind {
    int number;     // from 1; the worker's choice of what to do
    bool with_body; // the worker reads the request's body from a file; no other request joins the
                    // job
    bool for_all;   // what is made is the same for each request: all that come wait for one job
    // May it begin now? ERR_UNAVAILABLE. NULL: by the rules for all others.
    int (*check)(const struct request *q, struct err *err);
    // Takes over what the worker has made, at once; then the request is dispatched (`prepared`).
    // err->code says that there is nothing; it is set where what there is cannot be used.
    void (*take)(void *context, const struct job_made *made, struct err *err);
    const struct job_pieces *pieces; // instead of take()
};

struct work {
    const struct job_kind *kind; // NULL: the worker makes the reply
    int64_t us;                  // 0: nothing that counts, or it will be refused
    size_t bytes;                // of the answer, at most
    bool anew;                   // no response that was made before will do
    int hint;                    // for the handler (struct request): what only the loop knows
    bool settled;                // it depends on nothing but `tag`; else on all data
    char tag[200];
};

// Of a route; *w is zeroed. What cannot be read costs nothing here: its handler says why. `why` is
// room for that.
typedef void work_fn(const struct request *q, struct work *w, struct err *why);

// SPDX-License-Identifier: Apache-2.0
// What a server serves: a table of routes, and what else it has to know of the program around it.
// http/ never looks into `context`.
#pragma once
#include <sys/types.h>

#include "http/messages/router.h"

// What must be given for jobs in a worker process. All functions get the context.
struct job_service {
    // Starts the process: this program again, with `control` as its file descriptor
    // WORKER_CONTROL_FD. It calls worker_process_run().
    int (*spawn)(void *context, int control, pid_t *pid, struct err *err);
    bool (*is_outdated)(void *context); // the process knows another state: a new one is needed
    // Of the data. `version` is another one after each write. `generation` is another one when what
    // was settled may have changed too.
    int64_t (*version)(void *context);
    int64_t (*generation)(void *context);
    void (*failed)(void *context, const struct err *err); // why a job was not done
    void (*disturbed)(void *context, const char *why);    // what is measured, by a large job
};

struct http_service {
    const struct route *routes; // ends with method NULL
    void *context;
    // NULL: a problem document has nothing more.
    void (*explain)(const struct request *q, const struct err *err, struct problem_more *more);
    // The machine must be left in peace now: clients that may not start runs are paced, and get no
    // large answers. NULL: never.
    bool (*is_measuring)(void *context);
    const char *measuring;          // why they do not: "a run is being measured"
    const struct job_service *jobs; // NULL: everything is done in the loop
    // Compresses what a worker makes in the format gzip, for clients that prefer it so: appends it
    // to `out`. False: it cannot. NULL: it is sent as it is.
    bool (*gzip)(const void *data, size_t n, struct buf *out);
};

static inline bool service_is_measuring(const struct http_service *s)
{
    return s->is_measuring && s->is_measuring(s->context);
}

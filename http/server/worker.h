// SPDX-License-Identifier: Apache-2.0
// The worker: a process that prepares what takes longer than the loop may wait. The service starts
// it (struct job_service) with a socket on file descriptor 3 and what else it needs. It has the
// same table of routes, a limit of memory, a low priority, and none of the daemon's file
// descriptors (worker_process.h). It does one job at a time, is started when there is one, and ends
// when there was none for WORKER_IDLE_MS. A job that takes longer than WORKER_DEADLINE_MS ends with
// its process, unless others have the CPU that it wants: because of its low priority it would get
// none of its time on a node that is busy.
#pragma once
#include "core/os/loop.h"
#include "http/messages/service.h"
#include "http/server/worker_message.h"

enum {
    WORKER_IDLE_MS = 5000,
    // The heaviest answers take 1 s on a core of their own; beside a node that is busy ten times as
    // long.
    WORKER_DEADLINE_MS = 20000,
    WORKER_CPU_MS = 10000, // of CPU time: who had that was not kept from working
    WORKER_DEADLINES = 6,  // at most, of one job
};

// `fd`: of the answer's body, the callee's; -1: none.
typedef void worker_done_fn(void *ctx, const struct worker_answer *a, int fd);

struct worker;
struct worker *worker_new(struct loop *loop, const struct http_service *s, struct err *err);
void worker_free(struct worker *w); // ends the process; NULL is fine
bool worker_busy(const struct worker *w);
// `done` is called once, from the loop, unless worker_free comes first. Only while it is not busy.
// `fd` (-1: none) goes with the question, and stays the caller's.
int worker_start(struct worker *w, const struct buf *question, int fd, worker_done_fn *done,
                 void *ctx, struct err *err);

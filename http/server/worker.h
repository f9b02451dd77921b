// SPDX-License-Identifier: Apache-2.0
// The worker: a process that prepares what takes longer than the loop may wait. numaprobed starts
// itself again as
//   numaprobed --work <database>
// with a socket on descriptor 3 and the machine (core/node/machine_image.h) on descriptor 4. It has
// a read-only connection to the database, the same table of routes as the daemon, a limit of
// memory, a low priority, and none of the daemon's descriptors. It does one job at a time, is
// started when there is one, and ends when there was none for WORKER_IDLE_MS. A job that takes
// longer than WORKER_DEADLINE_MS ends with its process.
#pragma once
#include "http/server/worker_message.h"

enum {
    WORKER_IDLE_MS = 5000,
    // The heaviest answers take 1 s on a core of their own; beside a node that is busy ten times as
    // long.
    WORKER_DEADLINE_MS = 20000,
    // Address space. The largest comparison takes 60 MB, the largest baseline 130 MB, an import of
    // 24 MiB 250 MB.
    WORKER_MEMORY = 768 << 20,
    WORKER_NICE = 10, // beside one busy thread a tenth of a CPU: it does not starve
    WORKER_OOM_SCORE = 800,
};

// `fd`: of the answer's body, the callee's; -1: none.
typedef void worker_done_fn(void *ctx, const struct worker_answer *a, int fd);

struct worker;
struct worker *worker_new(const struct api_services *api, struct err *err);
void worker_free(struct worker *w); // ends the process; NULL is fine
bool worker_busy(const struct worker *w);
// `done` is called once, from the loop, unless worker_free comes first. Only while it is not busy.
// `fd` (-1: none) goes with the question, and stays the caller's.
int worker_start(struct worker *w, const struct buf *question, int fd, worker_done_fn *done,
                 void *ctx, struct err *err);
int worker_main(int argc, char **argv); // the process itself

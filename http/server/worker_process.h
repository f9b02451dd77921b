// SPDX-License-Identifier: Apache-2.0
// Inside the worker process (worker.h): reads a question, has it answered, and reads the next one.
#pragma once
#include "http/messages/service.h"
#include "http/server/worker_message.h"

enum {
    // Address space. The largest comparison takes 60 MB, the largest baseline 130 MB, an import of
    // 32 MiB 290 MB.
    WORKER_MEMORY = 768 << 20,
    WORKER_NICE = 10, // beside one busy thread a tenth of a CPU: it does not starve
    WORKER_OOM_SCORE = 800,
};

// Answers a question about `q`. `body`: file descriptor of the request's body, or -1. Returns a
// file descriptor of what was made (worker_file) and fills *a, or returns -1.
typedef int worker_answer_fn(void *ctx, const struct worker_question *asked, struct request *q,
                             int body, struct worker_answer *a, struct err *err);

// The limits above, and the end with the parent. False: they cannot be had.
bool worker_process_limit(void);
// Until the daemon closes the socket: exit status.
int worker_process_run(const struct http_service *s, worker_answer_fn *answer, void *ctx);
// An answer to question 0: the reply of the route's handler.
int worker_process_reply(struct request *q, struct worker_answer *a, struct err *err);

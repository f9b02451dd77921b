// SPDX-License-Identifier: Apache-2.0
// The end of the worker in its own process: limits, then questions until the daemon closes the
// socket.
#include "http/server/worker_process.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/os/child.h"
#include "http/server/dispatch.h"

// Neither the loop nor the measurement waits for this process, and when memory runs out it is the
// first to go: the daemon starts another one.
static void lower_priority(void)
{
    static const char score[] = "800";
    _Static_assert(WORKER_OOM_SCORE == 800, "the text says the same");
    CLEANUP_FD int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, score, sizeof score - 1) < 0)
        fd_cleanup(&fd); // then it is as likely to go as the daemon
    setpriority(PRIO_PROCESS, 0, WORKER_NICE);
}

bool worker_process_limit(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    umask(077);
    lower_priority();
    return child_limit_memory(WORKER_MEMORY);
}

static int worker_process_take_body(struct reply *r, struct worker_answer *a, struct err *err)
{
    size_t n;
    const char *data = reply_bytes(r, &n);
    if (r->kind != REPLY_WHOLE)
        return err_set(err, ERR_INTERNAL, "", "a worker cannot wait");
    a->status = r->status;
    a->store = r->store;
    a->standalone = r->standalone;
    a->retry_after_s = r->retry_after_s;
    a->bytes = n;
    snprintf(a->type, sizeof a->type, "%s", r->type);
    memcpy(a->location, r->location, sizeof a->location);
    memcpy(a->next, r->next, sizeof a->next);
    reply_etag(r, a->etag, sizeof a->etag);
    return worker_file(data, n, err);
}

int worker_process_reply(struct request *q, struct worker_answer *a, struct err *err)
{
    CLEANUP(reply_fini) struct reply r = {0};
    q->again = true; // it has waited, if it was to wait
    return dispatch_try(q, &r, err) < 0 ? -1 : worker_process_take_body(&r, a, err);
}

int worker_process_run(const struct http_service *s, worker_answer_fn *answer, void *ctx)
{
    static char packet[sizeof(struct worker_question) + WORKER_TEXT_MAX];
    struct err err = {0};
    size_t n;
    int body;
    while (worker_receive(WORKER_CONTROL_FD, packet, sizeof packet, &n, &body, &err) > 0) {
        struct worker_answer a = {0};
        struct worker_question asked;
        struct request q = {.service = s};
        int fd = worker_question_read(packet, n, &asked, &q, &err) < 0
                     ? -1
                     : answer(ctx, &asked, &q, body, &a, &err);
        fd_cleanup(&body);
        if (fd < 0) // what went well may have left something in err
            a.err = err;
        if (worker_send(WORKER_CONTROL_FD, &a, sizeof a, fd, &err) <= 0)
            return 1;
        fd_cleanup(&fd);
        malloc_trim(0); // a large answer's memory goes back before the next one comes
    }
    return 0;
}

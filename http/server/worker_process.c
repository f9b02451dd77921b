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

enum {
    GZIP_LEAST = 4096,   // fewer bytes are three packets as they are
    GZIP_MOST = 1 << 20, // what is larger is for programs, which request no coding
};

// True: `packed` has the body, and it is smaller.
static bool worker_process_compress(const struct request *q, const char *data, size_t n,
                                    struct buf *packed)
{
    return q->service->gzip && request_prefers_gzip(q) && n >= GZIP_LEAST && n <= GZIP_MOST &&
           q->service->gzip(data, n, packed) && buf_ok(packed) && packed->len < n;
}

// The etag of a body that is compressed is another one.
static void worker_process_mark(struct worker_answer *a)
{
    size_t n = strlen(a->etag);
    a->gzip = true;
    if (n)
        snprintf(a->etag + n - 1, sizeof a->etag - n + 1, "-gz\"");
}

static int worker_process_take_body(const struct request *q, struct reply *r,
                                    struct worker_answer *a, struct err *err)
{
    CLEANUP_BUF struct buf packed = BUF_INIT;
    size_t n;
    const char *data = reply_bytes(r, &n);
    if (r->kind != REPLY_WHOLE)
        return err_set(err, ERR_INTERNAL, "", "a worker cannot wait");
    a->status = r->status;
    a->store = r->store;
    a->standalone = r->standalone;
    a->retry_after_s = r->retry_after_s;
    a->coded = q->service->gzip;
    snprintf(a->type, sizeof a->type, "%s", r->type);
    memcpy(a->location, r->location, sizeof a->location);
    memcpy(a->next, r->next, sizeof a->next);
    reply_etag(r, a->etag, sizeof a->etag);
    if (worker_process_compress(q, data, n, &packed)) {
        worker_process_mark(a);
        data = packed.data;
        n = packed.len;
    }
    a->bytes = n;
    return worker_file(data, n, err);
}

int worker_process_reply(struct request *q, struct worker_answer *a, struct err *err)
{
    CLEANUP(reply_fini) struct reply r = {0};
    q->again = true; // it has waited, if it was to wait
    return dispatch_try(q, &r, err) < 0 ? -1 : worker_process_take_body(q, &r, a, err);
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

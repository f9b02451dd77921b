// SPDX-License-Identifier: Apache-2.0
// The worker itself: reads a question, answers it from the database, and reads the next one.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/resources/check.h"
#include "api/resources/imports.h"
#include "base/cleanup.h"
#include "core/node/machine_image.h"
#include "core/os/child.h"
#include "core/results/run_metrics.h"
#include "core/store/reader.h"
#include "http/server/dispatch.h"
#include "http/server/worker.h"

// Neither the loop nor the ranks of a run wait for this, and when memory runs out it is the first
// to go: the daemon starts another one.
static void worker_main_be_humble(void)
{
    static const char score[] = "800";
    _Static_assert(WORKER_OOM_SCORE == 800, "the text says the same");
    CLEANUP_FD int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, score, sizeof score - 1) < 0)
        fd_cleanup(&fd); // then it is as likely to go as the daemon
    setpriority(PRIO_PROCESS, 0, WORKER_NICE);
}

static int worker_main_take_body(struct reply *r, struct worker_answer *a, struct err *err)
{
    size_t n;
    const char *data = reply_bytes(r, &n);
    if (r->kind != REPLY_WHOLE)
        return err_set(err, ERR_INTERNAL, "", "a worker cannot wait");
    a->status = r->status;
    a->store = r->store;
    a->retry_after_s = r->retry_after_s;
    a->bytes = n;
    snprintf(a->type, sizeof a->type, "%s", r->type);
    memcpy(a->location, r->location, sizeof a->location);
    reply_etag(r, a->etag, sizeof a->etag);
    return worker_file(data, n, err);
}

static int answer_request(struct request *q, struct worker_answer *a, struct err *err)
{
    CLEANUP(reply_fini) struct reply r = {0};
    q->again = true; // it has waited, if it was to wait
    return dispatch_try(q, &r, err) < 0 ? -1 : worker_main_take_body(&r, a, err);
}

static int answer_verdicts(struct request *q, struct worker_answer *a, struct err *err)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    if (verdicts_make(q, &out, err) < 0)
        return -1;
    a->bytes = out.len;
    return worker_file(out.data, out.len, err);
}

static int answer_metrics(struct request *q, struct worker_answer *a, struct err *err)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    const char *allow;
    if (!route_of(q, &allow, err))
        return -1;
    struct metrics_made *made = metrics_of(q->api->store, q->api->machine, q->arg, err);
    if (!made)
        return -1;
    metrics_image_add(made, &out);
    metrics_made_free(made);
    a->bytes = out.len;
    return buf_ok(&out) ? worker_file(out.data, out.len, err)
                        : err_set(err, ERR_NO_MEMORY, "", "no memory for metrics");
}

static int answer_import(struct request *q, int body, struct worker_answer *a, struct err *err)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    struct stat st;
    if (fstat(body, &st) < 0)
        return err_sys(err, "there is no document");
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, body, 0);
    if (p == MAP_FAILED)
        return err_sys(err, "the document cannot be mapped");
    int rc = import_read(q, p, (size_t)st.st_size, &out, err);
    munmap(p, (size_t)st.st_size);
    a->bytes = out.len;
    return rc < 0 ? -1 : worker_file(out.data, out.len, err);
}

// The descriptor of the answer's body, or -1 and why there is none.
static int worker_main_answer(const struct api_services *api, const char *packet, size_t n,
                              int body, struct worker_answer *a, struct err *err)
{
    struct request q = {.api = api};
    struct worker_question head;
    if (worker_question_read(packet, n, &head, &q, err) < 0 ||
        store_reader_begin(api->store, head.version, err) < 0)
        return -1;
    int fd = head.kind == WORKER_REQUEST    ? answer_request(&q, a, err)
             : head.kind == WORKER_VERDICTS ? answer_verdicts(&q, a, err)
             : head.kind == WORKER_METRICS  ? answer_metrics(&q, a, err)
                                            : answer_import(&q, body, a, err);
    store_reader_end(api->store);
    return fd;
}

static int worker_main_work(const char *database)
{
    struct api_services api = {0};
    struct machine machine;
    struct err err = {0};
    static char packet[sizeof(struct worker_question) + WORKER_TEXT_MAX];
    size_t n;
    int body;
    if (machine_image_open(&machine, WORKER_MACHINE_FD, &err) < 0)
        return 1;
    close(WORKER_MACHINE_FD);
    api.machine = &machine;
    while (worker_receive(WORKER_CONTROL_FD, packet, sizeof packet, &n, &body, &err) > 0) {
        struct worker_answer a = {0};
        if (!api.store)
            api.store = store_reader_open(database, &err);
        int fd = api.store ? worker_main_answer(&api, packet, n, body, &a, &err) : -1;
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

int worker_main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    umask(077);
    worker_main_be_humble();
    if (argc != 3 || !child_limit_memory(WORKER_MEMORY))
        return 2;
    return worker_main_work(argv[2]);
}

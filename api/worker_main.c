// SPDX-License-Identifier: Apache-2.0
// Answers the questions of the daemon from the database, each from one moment of it.
#include "api/worker_main.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/resources/check.h"
#include "api/resources/imports.h"
#include "api/routes.h"
#include "api/services/services.h"
#include "api/services/work.h"
#include "base/cleanup.h"
#include "core/node/machine_image.h"
#include "core/results/run_metrics.h"
#include "core/store/reader.h"
#include "http/server/dispatch.h"
#include "http/server/worker_process.h"

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
    const struct api_services *api = api_of(q);
    CLEANUP_BUF struct buf out = BUF_INIT;
    const char *allow;
    if (!route_of(q, &allow, err))
        return -1;
    struct metrics_made *made = metrics_of(api->store, api->machine, q->arg, err);
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

static int answer_asked(int number, struct request *q, int body, struct worker_answer *a,
                        struct err *err)
{
    switch (number) {
    case JOB_VERDICTS:
        return answer_verdicts(q, a, err);
    case JOB_METRICS:
        return answer_metrics(q, a, err);
    case JOB_IMPORT:
        return answer_import(q, body, a, err);
    default:
        return worker_process_reply(q, a, err);
    }
}

struct worker_context {
    struct api_services api;
    const char *database;
};

static int worker_main_answer(void *ctx, const struct worker_question *asked, struct request *q,
                              int body, struct worker_answer *a, struct err *err)
{
    struct worker_context *w = ctx;
    if (!w->api.store)
        w->api.store = store_reader_open(w->database, err);
    if (!w->api.store || store_reader_begin(w->api.store, asked->version, err) < 0)
        return -1;
    int fd = answer_asked(asked->kind, q, body, a, err);
    store_reader_end(w->api.store);
    return fd;
}

int worker_main(int argc, char **argv)
{
    struct machine machine;
    struct err err = {0};
    if (!worker_process_limit() || argc != 3)
        return 2;
    if (machine_image_open(&machine, WORKER_MACHINE_FD, &err) < 0)
        return 1;
    close(WORKER_MACHINE_FD);
    struct worker_context w = {.api = {.machine = &machine}, .database = argv[2]};
    const struct http_service service = {.routes = routes, .context = &w.api};
    return worker_process_run(&service, worker_main_answer, &w);
}

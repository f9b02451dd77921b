// SPDX-License-Identifier: Apache-2.0
// What a server of HTTP has to know of this node: http/ calls these functions and knows nothing of
// runs, the database or the machine.
#include "api/api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/routes.h"
#include "api/services/run_bodies.h"
#include "api/services/work.h"
#include "api/worker_main.h"
#include "base/cleanup.h"
#include "core/node/machine_image.h"
#include "core/os/child.h"
#include "core/results/run_metrics.h"
#include "core/store/history.h"
#include "core/store/reader.h"
#include "http/server/worker_message.h"

struct api {
    struct api_services services; // first: it is the context of the service
    struct http_service service;
    struct server *server;
    int64_t openings, readings; // of the database and the machine that the worker knows
};

// ---- problems

enum {
    RETRY_QUEUE_S = 60,  // a probe of large sizes
    RETRY_DAMAGED_S = 1, // the database is quarantined as soon as this is answered
};

// The answer to a refused run names what blocks it, and when to try again.
static void api_explain(const struct request *q, const struct err *err, struct problem_more *more)
{
    const struct admission *why = runner_refusal(api_of(q)->runner);
    if (err->code == ERR_DAMAGED)
        more->retry_after_s = RETRY_DAMAGED_S;
    if (err->code == ERR_QUEUE_FULL)
        more->retry_after_s = RETRY_QUEUE_S;
    if ((err->code != ERR_BUSY && err->code != ERR_NO_MEMORY_NODE) || !why->n)
        return;
    struct jsonw w = jsonw_to(&more->json);
    admission_write_json(why->list, why->n, access_sees_names(q), &w, NULL);
    more->name = "blockers";
    more->retry_after_s = why->retry_after_s;
}

// ---- the worker

static bool api_is_measuring(void *context)
{
    const struct api_services *s = context;
    return runner_busy(s->runner);
}

static int api_spawn_worker(void *context, int control, pid_t *pid, struct err *err)
{
    struct api *a = context;
    char program[] = "numaprobed", option[] = "--work", path[600];
    char *argv[] = {program, option, path, NULL};
    CLEANUP_FD int machine = machine_image_make(a->services.machine, err);
    if (machine < 0)
        return -1;
    const struct child_fd fds[] = {{control, WORKER_CONTROL_FD}, {machine, WORKER_MACHINE_FD}};
    snprintf(path, sizeof path, "%s", store_path(a->services.store));
    errno = child_exec(pid, argv, fds, COUNT_OF(fds), false);
    if (errno)
        return err_sys(err, "starting a worker");
    a->openings = store_openings(a->services.store);
    a->readings = a->services.machine->readings;
    return 0;
}

static bool api_worker_is_outdated(void *context)
{
    const struct api *a = context;
    return a->openings != store_openings(a->services.store) ||
           a->readings != a->services.machine->readings;
}

static int64_t api_version(void *context)
{
    const struct api_services *s = context;
    return store_version(s->store);
}

static int64_t api_generation(void *context)
{
    const struct api_services *s = context;
    return store_openings(s->store);
}

static void api_job_failed(void *context, const struct err *err)
{
    const struct api_services *s = context;
    if (err->code == ERR_DAMAGED)
        store_reader_saw_damage(s->store);
}

static void api_disturbed(void *context, const char *why)
{
    const struct api_services *s = context;
    runner_disturbed(s->runner, why);
}

static const struct job_service worker_jobs = {.spawn = api_spawn_worker,
                                               .is_outdated = api_worker_is_outdated,
                                               .version = api_version,
                                               .generation = api_generation,
                                               .failed = api_job_failed,
                                               .disturbed = api_disturbed};

// ---- metrics of a stored run that has none: a job of our own

static void take_metrics(void *context, const struct job_made *made, struct err *err)
{
    const struct api_services *s = context;
    struct run_metrics m = {0};
    bool good = !err->code && (metrics_image_view(made->data, made->n, &m) == 0 ||
                               err_set(err, ERR_INTERNAL, "", "invalid metrics from the worker"));
    runner_metrics_made(s->runner, made->of, good && !err->code ? &m : NULL, err);
}

static bool make_metrics_elsewhere(void *ctx, int64_t id)
{
    static const struct job_kind metrics_job = {.number = JOB_METRICS, .take = take_metrics};
    struct api *a = ctx;
    const struct request q = {.service = &a->service, .arg = id};
    struct work w = {0};
    struct err err;
    char path[40];
    snprintf(path, sizeof path, "/v1/runs/%" PRId64, id);
    work_of_metrics(&q, &w, &err);
    return w.us > WORK_INLINE_US && server_add_job(a->server, &metrics_job, path, id, w.us);
}

// ---- life

struct api *api_new(const struct api_services *s, const struct access_rules *access,
                    const struct http_config *c, struct err *err)
{
    struct api *a = calloc(1, sizeof *a);
    if (!a) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the HTTP interface");
        return NULL;
    }
    a->services = *s;
    a->service = (struct http_service){.routes = routes,
                                       .context = a,
                                       .explain = api_explain,
                                       .is_measuring = api_is_measuring,
                                       .measuring = "a run is being measured",
                                       .jobs = &worker_jobs};
    a->services.bodies = run_bodies_new(s->store, err);
    a->server = a->services.bodies ? server_new(s->loop, &a->service, access, c, err) : NULL;
    if (!a->server) {
        api_free(a);
        return NULL;
    }
    runner_metrics_by(s->runner, make_metrics_elsewhere, a);
    return a;
}

void api_free(struct api *a)
{
    if (!a)
        return;
    runner_metrics_by(a->services.runner, NULL, NULL);
    server_free(a->server);
    run_bodies_free(a->services.bodies);
    free(a);
}

int api_renew_tls(struct api *a, const struct http_config *c, struct err *err)
{
    return server_renew_tls(a->server, c, err);
}

const char *api_addresses(const struct api *a)
{
    return server_addresses(a->server);
}

const char *api_socket(const struct api *a)
{
    return server_socket(a->server);
}

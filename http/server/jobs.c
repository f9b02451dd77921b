// SPDX-License-Identifier: Apache-2.0
// Answers that take longer than the loop may wait are made by a worker (worker.h), one at a time.
// What is asked is a job; calls that ask the same wait for the same job, and an answer that was
// made lately is sent again. Jobs wait in a line of their client's own, and the clients take turns.
//
// While a run is measured a client that may not start runs (call_is_paced) gets no answer that
// takes long, and between others the worker rests.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "http/server/dispatch.h"
#include "http/server/parts.h"

enum {
    JOBS_OF_CLIENT = 4, // that wait; the dashboard asks for three things at once
    JOBS_MAX = 32,      // of all clients, one core for half a minute
    JOBS_RETRY_S = 5,
    MEASURED_MAX_US = 100000, // while a run is measured
    MEASURED_RETRY_S = 30,
    MEASURED_REST =
        100, // after such an answer the worker rests so many times as long: 1 % of a CPU
    JOB_WAIT_MS = 60000, // for the worker's rest
};

struct job {
    struct turn turn; // of server->heavy
    LIST_ENTRY(job) entry;
    struct server *server;
    LIST_HEAD(, call) calls;
    struct work work;
    struct buf question, key;
    int64_t version; // of the data
    int64_t of;      // the service's own job: as it was given
    int64_t since_ms;
    bool paced, running;
};

static void server_heavy_go_on(struct server *s);

static void server_heavy_job_free(struct job *j)
{
    turns_remove(&j->server->heavy, &j->turn);
    LIST_REMOVE(j, entry);
    buf_free(&j->question);
    buf_free(&j->key);
    free(j);
}

void call_leave_heavy(struct call *c)
{
    struct job *j = c->job;
    if (!j)
        return;
    c->job = NULL;
    LIST_REMOVE(c, of_job);
    if (LIST_EMPTY(&j->calls) && !j->running)
        server_heavy_job_free(j);
}

// ---- a job is over

static void server_heavy_tell(struct job *j, struct ready_answer *a, const struct err *err)
{
    for (struct call *c; (c = LIST_FIRST(&j->calls));) {
        LIST_REMOVE(c, of_job);
        c->job = NULL;
        c->prepared = true;
        c->made = a ? answer_ref(a) : NULL;
        c->job_err = *err;
        call_resume(c);
    }
}

static const struct job_service *job_service_of(const struct job *j)
{
    return j->server->service->jobs;
}

// What is no answer, but for the service itself. Closes the file.
static void give_to_service(struct job *j, const struct worker_answer *head, int fd,
                            struct err *err)
{
    struct job_made made = {.version = j->version, .of = j->of};
    void *p = head->bytes && !err->code ? mmap(NULL, head->bytes, PROT_READ, MAP_SHARED, fd, 0)
                                        : MAP_FAILED;
    if (p != MAP_FAILED) {
        made.data = p;
        made.n = head->bytes;
    } else if (head->bytes && !err->code) {
        err_sys(err, "what a worker has made cannot be mapped");
    }
    j->work.kind->take(j->server->service->context, &made, err);
    if (p != MAP_FAILED)
        munmap(p, head->bytes);
    if (fd >= 0)
        close(fd);
}

static void pieces_done(void *ctx)
{
    struct call *c = ctx;
    c->server->taking_over = false;
    call_resume(c);
    server_heavy_go_on(c->server);
}

void call_drop_pieces(struct call *c)
{
    if (!c->taking)
        return;
    c->server->taking_over = false;
    c->pieces->end(steal_ptr(&c->taking));
}

// It is taken over while the call waits on. Closes the file.
static void begin_pieces(struct job *j, const struct worker_answer *head, int fd)
{
    struct call *c = LIST_FIRST(&j->calls);
    const struct job_pieces *pieces = j->work.kind->pieces;
    struct err err = {0};
    if (c) {
        LIST_REMOVE(c, of_job);
        c->job = NULL;
        c->prepared = true;
        c->pieces = pieces;
        c->taking =
            pieces->begin(c->server->service->context, fd, head->bytes, pieces_done, c, &err);
        c->job_err = err;
        c->server->taking_over = c->taking && !pieces->is_over(c->taking);
        if (!c->server->taking_over)
            call_resume(c);
    }
    close(fd);
}

static void server_heavy_settle(struct job *j, const struct worker_answer *head, int fd)
{
    struct server *s = j->server;
    const struct job_kind *kind = j->work.kind;
    struct err err = head->err;
    struct ready_answer *a = NULL;
    if (err.code)
        job_service_of(j)->failed(s->service->context, &err);
    if (kind && kind->take) {
        give_to_service(j, head, fd, &err);
    } else if (!err.code && kind) {
        begin_pieces(j, head, fd);
    } else if (!err.code) {
        a = answers_add(&s->answers, head, fd);
        if (!a)
            err_set(&err, ERR_NO_MEMORY, "", "no memory for the answer");
        else
            answers_keep(&s->answers, a, j->key.data, j->key.len);
    }
    server_heavy_tell(j, a, &err);
    answer_unref(a);
}

static void job_done(void *ctx, const struct worker_answer *head, int fd)
{
    struct job *j = ctx;
    struct server *s = j->server;
    int64_t took_ms = clock_mono_ms() - j->since_ms;
    server_heavy_settle(j, head, fd);
    s->rest_until_ms = j->paced ? clock_mono_ms() + took_ms * MEASURED_REST : 0;
    server_heavy_job_free(j);
    server_heavy_go_on(s);
}

static void server_heavy_refuse(struct job *j, const struct err *err)
{
    const struct job_kind *kind = j->work.kind;
    struct err why = *err;
    if (kind && kind->take)
        kind->take(j->server->service->context, &(struct job_made){.of = j->of}, &why);
    server_heavy_tell(j, NULL, err);
    server_heavy_job_free(j);
}

// ---- the next one

static bool any(void *ctx, uint64_t client)
{
    (void)ctx;
    (void)client;
    return true;
}

static int server_heavy_measured(const struct server *s, int64_t us, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "",
                   "%s, and this answer takes %" PRId64
                   " ms to compute, which would disturb it; try again when it has finished",
                   s->service->measuring, us / 1000);
}

static int server_heavy_body_of(const struct job *j)
{
    const struct call *c = LIST_FIRST(&j->calls);
    return j->work.kind && j->work.kind->with_body && c ? c->body_fd : -1;
}

static void api_server_heavy_start(struct job *j)
{
    struct server *s = j->server;
    struct err err;
    j->since_ms = clock_mono_ms();
    j->paced = j->paced && service_is_measuring(s->service);
    if (j->paced && j->work.us > MEASURED_MAX_US) {
        server_heavy_measured(s, j->work.us, &err);
        server_heavy_refuse(j, &err);
        return;
    }
    if (!answers_have_room(&s->answers, j->work.bytes)) {
        err_set(&err, ERR_UNAVAILABLE, "", "other large answers are under way; try again");
        server_heavy_refuse(j, &err);
        return;
    }
    if (worker_start(s->worker, &j->question, server_heavy_body_of(j), job_done, j, &err) < 0) {
        server_heavy_refuse(j, &err);
        return;
    }
    j->running = true;
    if (service_is_measuring(s->service) && !j->paced && j->work.us > MEASURED_MAX_US &&
        !(j->work.kind && j->work.kind->pieces))
        job_service_of(j)->disturbed(s->service->context, "a large answer was prepared meanwhile");
}

static struct job *server_heavy_next_job(struct server *s)
{
    struct turn *t = turns_next(&s->heavy, any, NULL);
    return (struct job *)(void *)((char *)t - offsetof(struct job, turn));
}

static void server_heavy_go_on(struct server *s)
{
    int64_t rest = s->rest_until_ms - clock_mono_ms();
    if (rest > 0 && s->heavy.n && service_is_measuring(s->service)) {
        loop_timer_set(s->rest, rest < 1000 ? rest : 1000); // the run may end before
        return;
    }
    while (s->heavy.n && !worker_busy(s->worker) && !s->taking_over)
        api_server_heavy_start(server_heavy_next_job(s));
}

static void rested(void *ctx, uint32_t events)
{
    (void)events;
    server_heavy_go_on(ctx);
}

// ---- a call asks

static int job_number(const struct work *w)
{
    return w->kind ? w->kind->number : 0;
}

static int make_key(struct job *j, size_t text, const char *id, struct err *err)
{
    const struct work *w = &j->work;
    const struct http_service *s = j->server->service;
    int64_t version = w->settled ? s->jobs->generation(s->context) : j->version;
    buf_add(&j->key, j->question.data + text, j->question.len - text);
    buf_fmt(&j->key, "%d %" PRId64 " %s", job_number(w), version, w->settled ? w->tag : "");
    if (w->kind && w->kind->with_body) // a body is nobody else's
        buf_str(&j->key, id);
    return buf_ok(&j->key) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
}

static struct job *server_heavy_job_new(struct server *s, const struct request *q,
                                        const struct work *w, struct err *err)
{
    struct job *j = calloc(1, sizeof *j);
    size_t text;
    if (!j) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
        return NULL;
    }
    j->server = s;
    j->work = *w;
    j->version = s->service->jobs->version(s->service->context);
    j->paced = q->granted < SCOPE_RUN;
    LIST_INIT(&j->calls);
    LIST_INSERT_HEAD(&s->jobs, j, entry);
    if (worker_question_write(q, job_number(w), j->version, &j->question, &text, err) == 0 &&
        make_key(j, text, q->id, err) == 0)
        return j;
    server_heavy_job_free(j);
    return NULL;
}

static struct job *same_job(const struct job *as)
{
    struct job *j;
    LIST_FOREACH(j, &as->server->jobs, entry)
    if (j != as && j->key.len == as->key.len && memcmp(j->key.data, as->key.data, j->key.len) == 0)
        break;
    return j;
}

// Answers that a client has not read yet, each counted once, however many of its calls it is sent.
static size_t unread_bytes(const struct call *c)
{
    uint64_t client = line_client(c->line);
    unsigned count = ++c->server->answers.counts;
    struct call *o;
    size_t n = 0;
    LIST_FOREACH(o, &c->server->calls, entry)
    {
        struct ready_answer *a = o->r.answer;
        if (!a || a->counted == count || !o->line || line_client(o->line) != client)
            continue;
        a->counted = count;
        n += a->head.bytes;
    }
    return n;
}

static int check_measured(const struct call *c, const struct work *w, struct err *err)
{
    int64_t rest = c->server->rest_until_ms - clock_mono_ms();
    if (w->kind && w->kind->check)
        return w->kind->check(&c->q, err);
    if (!call_is_paced(c))
        return 0;
    if (w->us > MEASURED_MAX_US)
        return server_heavy_measured(c->server, w->us, err);
    return rest > JOB_WAIT_MS ? err_set(err, ERR_UNAVAILABLE, "",
                                        "%s, and answers that take long are prepared seldom "
                                        "meanwhile; try again",
                                        c->server->service->measuring)
                              : 0;
}

static int server_heavy_check_room(const struct call *c, const struct work *w, struct err *err)
{
    const struct server *s = c->server;
    if (c->q.granted < SCOPE_RUN && turns_of(&s->heavy, line_client(c->line)) >= JOBS_OF_CLIENT)
        return err_set(err, ERR_TOO_MANY, "",
                       "%d of your requests that take long are waiting already; try again",
                       JOBS_OF_CLIENT);
    if (w->bytes && unread_bytes(c) > ANSWERS_MAX / 2)
        return err_set(err, ERR_TOO_MANY, "",
                       "your earlier answers have not been read yet; try again");
    return s->heavy.n >= JOBS_MAX ? err_set(err, ERR_UNAVAILABLE, "",
                                            "%d requests that take long are waiting already; try "
                                            "again",
                                            s->heavy.n)
                                  : 0;
}

static int server_heavy_join(struct call *c, struct job *j, struct err *err)
{
    if (call_watch_hangup(c, err) < 0)
        return -1;
    c->job = j;
    LIST_INSERT_HEAD(&j->calls, c, of_job);
    call_suspend(c);
    return 0;
}

// The call waits for a new job, or for the same one that waits already.
static int server_heavy_wait_for(struct call *c, struct job *j, struct err *err)
{
    struct job *same = same_job(j);
    if (same) {
        server_heavy_job_free(j);
        return server_heavy_join(c, same, err);
    }
    if (check_measured(c, &j->work, err) < 0 || server_heavy_check_room(c, &j->work, err) < 0 ||
        server_heavy_join(c, j, err) < 0) {
        server_heavy_job_free(j);
        return -1;
    }
    if (!turns_add(&c->server->heavy, &j->turn, line_client(c->line))) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
        server_heavy_refuse(j, err);
    }
    server_heavy_go_on(c->server);
    return 0;
}

static enum MHD_Result send_refusal(struct call *c, const struct err *err)
{
    dispatch_fail(&c->q, &c->r, err);
    c->r.retry_after_s = err->code == ERR_UNAVAILABLE && call_is_paced(c) ? MEASURED_RETRY_S
                         : err->code == ERR_UNAVAILABLE || err->code == ERR_TOO_MANY
                             ? JOBS_RETRY_S
                             : c->r.retry_after_s;
    return call_send(c);
}

static enum MHD_Result server_heavy_send_answer(struct call *c, struct ready_answer *a)
{
    reply_answer(&c->r, a);
    return call_send(c);
}

int call_begin_heavy(struct call *c, enum MHD_Result *out)
{
    struct work w = {0};
    struct err err = {0}, why;
    const char *allow;
    const struct route *route = route_of(&c->q, &allow, &why);
    if (!c->server->worker || !route || !route->work || route_check_query(route, &c->q, &why) < 0)
        return 0;
    route->work(&c->q, &w, &why);
    if (w.us <= WORK_INLINE_US)
        return 0;
    *out = MHD_YES;
    if (c->server->stopping) {
        *out = call_refuse_stopping(c);
        return 1;
    }
    struct job *j = server_heavy_job_new(c->server, &c->q, &w, &err);
    struct ready_answer *kept =
        j ? answers_find(&c->server->answers, j->key.data, j->key.len) : NULL;
    if (kept) {
        server_heavy_job_free(j);
        *out = server_heavy_send_answer(c, kept);
    } else if (!j || server_heavy_wait_for(c, j, &err) < 0) {
        *out = send_refusal(c, &err);
    }
    return 1;
}

enum MHD_Result call_send_heavy(struct call *c)
{
    c->prepared = false;
    if (c->made)
        return server_heavy_send_answer(c, steal_ptr(&c->made));
    if (c->job_err.code)
        return send_refusal(c, &c->job_err);
    if (c->taking) {
        if (c->pieces->answer(c->taking, &c->q, &c->r, &c->job_err) < 0)
            return send_refusal(c, &c->job_err);
        return call_send(c);
    }
    c->q.prepared = true;
    dispatch(&c->q, &c->r);
    return call_send(c);
}

bool server_add_job(struct server *s, const struct job_kind *kind, const char *path, int64_t of,
                    int64_t us)
{
    enum { OURSELVES = -2 }; // no account and no address
    const struct request q = {
        .service = s->service, .method = "GET", .path = path, .granted = SCOPE_ADMIN};
    const struct work w = {.kind = kind, .us = us};
    struct err err;
    struct job *j = server_heavy_job_new(s, &q, &w, &err);
    if (!j)
        return false;
    j->of = of;
    if (!turns_add(&s->heavy, &j->turn, (uint64_t)OURSELVES)) {
        server_heavy_job_free(j);
        return false;
    }
    loop_timer_set(s->rest, 0);
    return true;
}

int server_heavy_start(struct server *s, struct err *err)
{
    LIST_INIT(&s->jobs);
    turns_init(&s->heavy);
    turns_init(&s->light);
    if (answers_init(&s->answers, s->loop, err) < 0)
        return -1;
    if (!s->service->jobs)
        return 0;
    s->worker = worker_new(s->loop, s->service, err);
    s->rest = s->worker ? loop_timer_new(s->loop, rested, s, err) : NULL;
    return s->rest ? 0 : -1;
}

void server_heavy_stop(struct server *s)
{
    worker_free(steal_ptr(&s->worker));
    loop_timer_free(steal_ptr(&s->rest));
    while (s->jobs.lh_first) // the one that the worker had
        server_heavy_job_free(LIST_FIRST(&s->jobs));
    answers_fini(&s->answers);
}

// SPDX-License-Identifier: Apache-2.0
// Answers that take longer than the loop may wait are made by a worker (worker.h), one at a time.
// What is requested is a job; exchanges that ask the same wait for the same job, and an answer that
// was made lately is sent again. Jobs wait in a queue per client, and the clients take turns.
//
// While a run is measured a client that may not start runs (exchange_is_paced) gets no answer that
// takes long, and between others the worker rests.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "http/server/dispatch.h"
#include "http/server/parts.h"
#include "http/server/server.h"

enum {
    JOBS_OF_CLIENT = 4, // that wait; the dashboard requests three things at once
    JOBS_MAX = 32,      // of all clients, one core for half a minute
    JOBS_RETRY_S = 5,
    MEASURED_MAX_US = 100000, // while a run is measured
    MEASURED_RETRY_S = 30,
    MEASURED_REST =
        100, // after such an answer the worker rests so many times as long: 1 % of a CPU
    JOB_WAIT_MS = 60000, // for the worker's rest
};

struct job {
    struct turn turn; // of server->job_turns
    LIST_ENTRY(job) entry;
    struct server *server;
    LIST_HEAD(, exchange) exchanges;
    struct work work;
    struct buf question, key;
    int64_t version; // of the data
    int64_t of;      // the service's own job: as it was given
    int64_t since_ms;
    bool paced, running;
};

static void jobs_go_on(struct server *s);

static void waiting_job_free(struct job *j)
{
    turns_remove(&j->server->job_turns, &j->turn);
    LIST_REMOVE(j, entry);
    buf_free(&j->question);
    buf_free(&j->key);
    free(j);
}

void exchange_leave_job(struct exchange *x)
{
    struct job *j = x->job;
    if (!j)
        return;
    x->job = NULL;
    LIST_REMOVE(x, of_job);
    if (LIST_EMPTY(&j->exchanges) && !j->running)
        waiting_job_free(j);
}

// ---- a job has finished

static void jobs_finish(struct job *j, struct ready_answer *a, const struct err *err)
{
    for (struct exchange *x; (x = LIST_FIRST(&j->exchanges));) {
        LIST_REMOVE(x, of_job);
        x->job = NULL;
        x->prepared = true;
        x->made = a ? answer_ref(a) : NULL;
        x->job_err = *err;
        exchange_resume(x);
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
        err_sys(err, "the worker's result cannot be mapped");
    }
    j->work.kind->take(j->server->service->context, &made, err);
    if (p != MAP_FAILED)
        munmap(p, head->bytes);
    if (fd >= 0)
        close(fd);
}

static void pieces_done(void *ctx)
{
    struct exchange *x = ctx;
    x->server->taking_over = false;
    exchange_resume(x);
    jobs_go_on(x->server);
}

void exchange_drop_pieces(struct exchange *x)
{
    struct server *s = x->server;
    if (!x->taking)
        return;
    bool over = x->pieces->is_over(x->taking);
    x->pieces->end(steal_ptr(&x->taking));
    if (over) // what follows has begun
        return;
    s->taking_over = false;
    if (s->job_turns.n)
        loop_timer_set(s->rest, 0);
}

// It is taken over while the exchange waits on. Closes the file.
static void begin_pieces(struct job *j, const struct worker_answer *head, int fd)
{
    struct exchange *x = LIST_FIRST(&j->exchanges);
    const struct job_pieces *pieces = j->work.kind->pieces;
    struct err err = {0};
    if (x) {
        LIST_REMOVE(x, of_job);
        x->job = NULL;
        x->prepared = true;
        x->pieces = pieces;
        if (dispatch_still_allows(&x->q, &err))
            x->taking =
                pieces->begin(x->server->service->context, fd, head->bytes, pieces_done, x, &err);
        x->job_err = err;
        x->server->taking_over = x->taking && !pieces->is_over(x->taking);
        if (!x->server->taking_over)
            exchange_resume(x);
    }
    close(fd);
}

static void jobs_settle(struct job *j, const struct worker_answer *head, int fd)
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
            err_set(&err, ERR_NO_MEMORY, "", "no memory for the response");
        else
            answers_keep(&s->answers, a, j->key.data, j->key.len);
    }
    jobs_finish(j, a, &err);
    answer_unref(a);
}

static void job_done(void *ctx, const struct worker_answer *head, int fd)
{
    struct job *j = ctx;
    struct server *s = j->server;
    int64_t took_ms = clock_mono_ms() - j->since_ms;
    jobs_settle(j, head, fd);
    s->rest_until_ms = j->paced ? clock_mono_ms() + took_ms * MEASURED_REST : 0;
    waiting_job_free(j);
    jobs_go_on(s);
}

static void jobs_refuse(struct job *j, const struct err *err)
{
    const struct job_kind *kind = j->work.kind;
    struct err why = *err;
    if (kind && kind->take)
        kind->take(j->server->service->context, &(struct job_made){.of = j->of}, &why);
    jobs_finish(j, NULL, err);
    waiting_job_free(j);
}

// ---- the next one

static bool any(void *ctx, uint64_t client)
{
    (void)ctx;
    (void)client;
    return true;
}

static int jobs_measured(const struct server *s, int64_t us, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "",
                   "%s, and this response takes %" PRId64
                   " ms to compute, which would disturb it; try again when it has finished",
                   s->service->measuring, us / 1000);
}

// That of an exchange whose token was revoked meanwhile is not begun. Others with the same question
// continue to wait, and each is asked again when the answer is there.
static bool job_still_allowed(const struct job *j, struct err *err)
{
    struct exchange *x;
    if (LIST_EMPTY(&j->exchanges) || (j->work.kind && j->work.kind->take))
        return true;
    LIST_FOREACH(x, &j->exchanges, of_job)
    if (dispatch_still_allows(&x->q, err))
        return true;
    return false;
}

static int jobs_body_of(const struct job *j)
{
    const struct exchange *x = LIST_FIRST(&j->exchanges);
    return j->work.kind && j->work.kind->with_body && x ? x->body_fd : -1;
}

static void jobs_start(struct job *j)
{
    struct server *s = j->server;
    struct err err;
    if (!job_still_allowed(j, &err)) {
        jobs_refuse(j, &err);
        return;
    }
    j->since_ms = clock_mono_ms();
    j->paced = j->paced && service_is_measuring(s->service);
    if (j->paced && j->work.us > MEASURED_MAX_US) {
        jobs_measured(s, j->work.us, &err);
        jobs_refuse(j, &err);
        return;
    }
    if (!answers_have_room(&s->answers, j->work.bytes)) {
        err_set(&err, ERR_UNAVAILABLE, "",
                "too many large responses are in progress; try again later");
        jobs_refuse(j, &err);
        return;
    }
    if (worker_start(s->worker, &j->question, jobs_body_of(j), job_done, j, &err) < 0) {
        jobs_refuse(j, &err);
        return;
    }
    j->running = true;
    if (service_is_measuring(s->service) && !j->paced && j->work.us > MEASURED_MAX_US &&
        !(j->work.kind && j->work.kind->pieces))
        job_service_of(j)->disturbed(s->service->context,
                                     "a large response was prepared meanwhile");
}

static struct job *jobs_next_job(struct server *s)
{
    struct turn *t = turns_next(&s->job_turns, any, NULL);
    return (struct job *)(void *)((char *)t - offsetof(struct job, turn));
}

static void jobs_go_on(struct server *s)
{
    int64_t rest = s->rest_until_ms - clock_mono_ms();
    if (rest > 0 && s->job_turns.n && service_is_measuring(s->service)) {
        loop_timer_set(s->rest, rest < 1000 ? rest : 1000); // the run may end before
        return;
    }
    while (s->job_turns.n && !worker_busy(s->worker) && !s->taking_over)
        jobs_start(jobs_next_job(s));
}

static void rested(void *ctx, uint32_t events)
{
    (void)events;
    jobs_go_on(ctx);
}

// ---- an exchange asks

static int job_number(const struct work *w)
{
    return w->kind ? w->kind->number : 0;
}

static int make_key(struct job *j, size_t text, const char *id, struct err *err)
{
    const struct work *w = &j->work;
    const struct http_service *s = j->server->service;
    int64_t version = w->settled ? s->jobs->generation(s->context) : j->version;
    if (w->kind && w->kind->for_all) { // also of data that was newer when it was requested
        buf_fmt(&j->key, "%d", job_number(w));
        return buf_ok(&j->key) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
    }
    buf_add(&j->key, j->question.data + text, j->question.len - text);
    buf_fmt(&j->key, "%d %" PRId64 " %s", job_number(w), version, w->settled ? w->tag : "");
    if (w->anew || (w->kind && w->kind->with_body)) // no other request has this body
        buf_str(&j->key, id);
    return buf_ok(&j->key) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
}

static struct job *waiting_job_new(struct server *s, const struct request *q, const struct work *w,
                                   struct err *err)
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
    LIST_INIT(&j->exchanges);
    LIST_INSERT_HEAD(&s->jobs, j, entry);
    if (worker_question_write(q, job_number(w), j->version, &j->question, &text, err) == 0 &&
        make_key(j, text, q->id, err) == 0)
        return j;
    waiting_job_free(j);
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

// Answers that a client has not read yet, each counted once, however many of its exchanges send it.
static size_t unread_bytes(const struct exchange *x)
{
    uint64_t client = connection_client(x->connection);
    unsigned count = ++x->server->answers.counts;
    struct exchange *o;
    size_t n = 0;
    LIST_FOREACH(o, &x->server->exchanges, entry)
    {
        struct ready_answer *a = o->r.answer;
        if (!a || a->counted == count || !o->connection ||
            connection_client(o->connection) != client)
            continue;
        a->counted = count;
        n += a->head.bytes;
    }
    return n;
}

static int check_measured(const struct exchange *x, const struct work *w, struct err *err)
{
    int64_t rest = x->server->rest_until_ms - clock_mono_ms();
    if (w->kind && w->kind->check)
        return w->kind->check(&x->q, err);
    if (!exchange_is_paced(x))
        return 0;
    if (w->us > MEASURED_MAX_US)
        return jobs_measured(x->server, w->us, err);
    return rest > JOB_WAIT_MS ? err_set(err, ERR_UNAVAILABLE, "",
                                        "%s, and long requests are rarely served meanwhile; try "
                                        "again when it has finished",
                                        x->server->service->measuring)
                              : 0;
}

static int jobs_check_room(const struct exchange *x, const struct work *w, struct err *err)
{
    const struct server *s = x->server;
    if (x->q.granted < SCOPE_RUN &&
        turns_of(&s->job_turns, connection_client(x->connection)) >= JOBS_OF_CLIENT)
        return err_set(err, ERR_TOO_MANY, "",
                       "%d of your long requests are waiting already; try again later",
                       JOBS_OF_CLIENT);
    if (w->bytes && unread_bytes(x) > ANSWERS_MAX / 2)
        return err_set(err, ERR_TOO_MANY, "",
                       "your earlier responses have not been read yet; read them and try again");
    return s->job_turns.n >= JOBS_MAX
               ? err_set(err, ERR_UNAVAILABLE, "",
                         "%d long requests are waiting already; try again later", s->job_turns.n)
               : 0;
}

static int jobs_join(struct exchange *x, struct job *j, struct err *err)
{
    if (exchange_watch_hangup(x, err) < 0)
        return -1;
    x->job = j;
    LIST_INSERT_HEAD(&j->exchanges, x, of_job);
    exchange_suspend(x);
    return 0;
}

// The exchange waits for a new job, or for the same one that waits already.
static int jobs_wait_for(struct exchange *x, struct job *j, struct err *err)
{
    struct job *same = same_job(j);
    if (same) {
        waiting_job_free(j);
        return jobs_join(x, same, err);
    }
    if (check_measured(x, &j->work, err) < 0 || jobs_check_room(x, &j->work, err) < 0 ||
        jobs_join(x, j, err) < 0) {
        waiting_job_free(j);
        return -1;
    }
    if (!turns_add(&x->server->job_turns, &j->turn, connection_client(x->connection))) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
        jobs_refuse(j, err);
    }
    jobs_go_on(x->server);
    return 0;
}

static enum MHD_Result send_refusal(struct exchange *x, const struct err *err)
{
    dispatch_fail(&x->q, &x->r, err);
    x->r.retry_after_s = err->code == ERR_UNAVAILABLE && exchange_is_paced(x) ? MEASURED_RETRY_S
                         : err->code == ERR_UNAVAILABLE || err->code == ERR_TOO_MANY
                             ? JOBS_RETRY_S
                             : x->r.retry_after_s;
    return exchange_send(x);
}

static enum MHD_Result jobs_send_answer(struct exchange *x, struct ready_answer *a)
{
    reply_answer(&x->r, a);
    return exchange_send(x);
}

int exchange_begin_job(struct exchange *x, enum MHD_Result *out)
{
    struct work w = {0};
    struct err err = {0}, why;
    const char *allow;
    const struct route *route = route_of(&x->q, &allow, &why);
    if (!x->server->worker || !route || !route->work || route_check_query(route, &x->q, &why) < 0)
        return 0;
    route->work(&x->q, &w, &why);
    x->q.hint = w.hint;
    if (w.us <= WORK_INLINE_US)
        return 0;
    if (x->server->stopping)
        return -1;
    *out = MHD_YES;
    struct job *j = waiting_job_new(x->server, &x->q, &w, &err);
    struct ready_answer *kept =
        j ? answers_find(&x->server->answers, j->key.data, j->key.len) : NULL;
    if (kept) {
        waiting_job_free(j);
        *out = jobs_send_answer(x, kept);
    } else if (!j || jobs_wait_for(x, j, &err) < 0) {
        *out = send_refusal(x, &err);
    }
    return 1;
}

enum MHD_Result exchange_send_made(struct exchange *x)
{
    x->prepared = false;
    if (x->made)
        return jobs_send_answer(x, steal_ptr(&x->made));
    if (x->job_err.code)
        return send_refusal(x, &x->job_err);
    if (x->taking) {
        if (x->pieces->answer(x->taking, &x->q, &x->r, &x->job_err) < 0)
            return send_refusal(x, &x->job_err);
        return exchange_send(x);
    }
    x->q.prepared = true;
    dispatch(&x->q, &x->r);
    return exchange_send(x);
}

bool server_add_job(struct server *s, const struct job_kind *kind, const char *path, int64_t of,
                    int64_t us)
{
    enum { OURSELVES = -2 }; // no account and no address
    const struct request q = {
        .service = s->service, .method = "GET", .path = path, .granted = SCOPE_ADMIN};
    const struct work w = {.kind = kind, .us = us};
    struct err err;
    struct job *j = waiting_job_new(s, &q, &w, &err);
    if (!j)
        return false;
    j->of = of;
    if (!turns_add(&s->job_turns, &j->turn, (uint64_t)OURSELVES)) {
        waiting_job_free(j);
        return false;
    }
    loop_timer_set(s->rest, 0);
    return true;
}

int server_jobs_start(struct server *s, struct err *err)
{
    LIST_INIT(&s->jobs);
    turns_init(&s->job_turns);
    turns_init(&s->loop_turns);
    if (answers_init(&s->answers, s->loop, err) < 0)
        return -1;
    if (!s->service->jobs)
        return 0;
    s->worker = worker_new(s->loop, s->service, err);
    s->rest = s->worker ? loop_timer_new(s->loop, rested, s, err) : NULL;
    return s->rest ? 0 : -1;
}

void server_jobs_stop(struct server *s)
{
    worker_free(steal_ptr(&s->worker));
    loop_timer_free(steal_ptr(&s->rest));
    while (s->jobs.lh_first) // the one that the worker had
        waiting_job_free(LIST_FIRST(&s->jobs));
    answers_fini(&s->answers);
}

// SPDX-License-Identifier: Apache-2.0
// A job is driven by four sources: the FIFO with records, the supervisor's report, its end, and
// timers. It has finished when the supervisor is gone, the FIFO is empty and the log is read;
// on_over is called once.
#include "core/run/job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/os/processes.h"

enum {
    PROGRESS_EVERY_MS = 100,
    STOP_PATIENCE_MS = 5000,      // the supervisor needs a second; this is for one that is stuck
    GROUP_PATIENCE_MS = 2000,     // until a cgroup that was killed is empty
    DEADLINE_PATIENCE_MS = 10000, // the supervisor keeps the deadline itself
    // From the start to the first report: 64 ranks on two busy CPUs took 4 s (65 ms per rank) with
    // mpirun. 1,024 ranks have 205 s.
    REPORT_MS = 30000,
    REPORT_MS_PER_RANK = 200,
    END_PATIENCE_MS = 10000, // from the last record, which is the end, to that of mpirun
    READ_MAX = 65536,
};

struct job *job_new(struct loop *l, struct err *err)
{
    struct job *j = calloc(1, sizeof *j);
    if (!j) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a run");
        return NULL;
    }
    j->loop = l;
    err_set(&j->silence, ERR_UNAVAILABLE, "", "the supervisor exited without reporting a status");
    j->dir.fifo = j->lock = -1;
    j->supervised = (struct supervised){.pidfd = -1, .control = -1};
    return j;
}

static void forget_watches(struct job *j)
{
    loop_unwatch(j->fifo);
    loop_unwatch(j->control);
    loop_unwatch(j->gone);
    loop_timer_free(j->backstop);
    loop_timer_free(j->throttle);
    loop_timer_free(j->patience);
    j->fifo = j->control = j->gone = NULL;
    j->backstop = j->throttle = j->patience = NULL;
}

// After a supervisor that did not clean up itself. We are a subreaper: its orphans are ours.
static void job_sweep(struct job *j)
{
    int killed = proc_end_below(GROUP_PATIENCE_MS) + proc_kill_nonce(j->dir.nonce);
    run_group_kill(j->group, GROUP_PATIENCE_MS);
    log_event(LOG_LVL_WARN, "run.swept", "id=%" PRId64 " killed=%d", j->id, killed);
}

// Of a run that has finished, or never began.
static void remove_traces(struct job *j)
{
    struct err err;
    if (*j->dir.path && tree_remove(j->dir.path, &err) < 0)
        log_error("run.cleanup", &err);
    *j->dir.path = 0;
    run_group_remove(j->group);
    *j->group = 0;
}

void job_free(struct job *j)
{
    if (!j)
        return;
    forget_watches(j);
    if (j->running && !supervisor_reap(&j->supervised, STOP_PATIENCE_MS))
        job_sweep(j);
    remove_traces(j);
    if (j->dir.fifo >= 0)
        close(j->dir.fifo);
    launch_fini(&j->launch);
    records_fini(&j->records);
    plan_fini(&j->plan);
    machine_fini(&j->planned);
    free(j->log);
    buf_free(&j->ending.conditions);
    buf_free(&j->ending.plan);
    free(j);
}

int job_prepare(struct job *j, const char *base, const struct launch_paths *paths, struct err *err)
{
    if (run_dir_make(&j->dir, base, j->id, &j->account, err) < 0)
        return -1;
    if (records_init(&j->records, j->dir.nonce, &j->spec, &j->plan, err) < 0)
        return -1;
    return launch_make(&j->launch, paths, &j->plan, &j->spec, j->dir.path, j->dir.nonce,
                       j->account.root, err);
}

static void stop(struct job *j)
{
    supervisor_stop(&j->supervised);
    if (j->backstop)
        loop_timer_set(j->backstop, STOP_PATIENCE_MS);
}

static void report_progress(struct job *j)
{
    j->records.progressed = false;
    j->last_progress_ms = clock_mono_ms();
    j->on_progress(j->ctx);
}

static void throttle_over(void *ctx, uint32_t events)
{
    struct job *j = ctx;
    (void)events;
    if (j->records.progressed)
        report_progress(j);
}

static void maybe_progress(struct job *j)
{
    if (!j->records.progressed)
        return;
    int64_t wait = j->last_progress_ms + PROGRESS_EVERY_MS - clock_mono_ms();
    if (wait <= 0)
        report_progress(j);
    else
        loop_timer_set(j->throttle, wait);
}

// Reads at most READ_MAX bytes; false when there is no more.
static bool read_records(struct job *j)
{
    char bytes[READ_MAX];
    ssize_t n = read(j->dir.fifo, bytes, sizeof bytes);
    if (n <= 0)
        return false;
    if (j->error.code == ERR_NONE)
        records_feed(&j->records, bytes, (size_t)n, &j->error);
    return true;
}

static int64_t report_limit_ms(const struct job *j)
{
    int64_t by_ranks = (int64_t)j->plan.n_ranks * REPORT_MS_PER_RANK;
    return by_ranks > REPORT_MS ? by_ranks : REPORT_MS;
}

// Ranks that cannot even begin leave some launchers waiting for ever, and so does a launcher that
// was stopped.
static void on_patience(void *ctx, uint32_t events)
{
    struct job *j = ctx;
    struct err why;
    (void)events;
    if (j->records.have_end) {
        j->ended_late = true;
        stop(j);
        return;
    }
    err_set(&why, ERR_TIMEOUT, "",
            "no rank reported within %" PRId64 " s of the start (30 s, or 0.2 s per rank): see the "
            "log of the run",
            report_limit_ms(j) / 1000);
    job_stop(j, &why);
}

static void mind_patience(struct job *j)
{
    const struct records *r = &j->records;
    if (r->have_end && !j->said_end)
        loop_timer_set(j->patience, END_PATIENCE_MS);
    else if (r->have_hello && !j->said_hello)
        loop_timer_set(j->patience, -1);
    j->said_end = r->have_end;
    j->said_hello = r->have_hello;
}

static void on_fifo(void *ctx, uint32_t events)
{
    struct job *j = ctx;
    (void)events;
    read_records(j);
    if (j->error.code != ERR_NONE) {
        loop_unwatch(j->fifo); // nothing more from there counts
        j->fifo = NULL;
        stop(j);
        return;
    }
    mind_patience(j);
    maybe_progress(j);
}

static void job_drain(struct job *j)
{
    while (j->error.code == ERR_NONE && read_records(j))
        continue;
}

// Text for a text column and a text/plain answer: no NUL, valid UTF-8.
static char *clean_text(const char *bytes, size_t n)
{
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < n;) {
        size_t len = 1;
        while (len < 4 && i + len < n && ((unsigned char)bytes[i + len] & 0xc0) == 0x80)
            len++;
        if (!bytes[i])
            len = 1;
        else if (str_utf8_valid(bytes + i, len))
            buf_add(&out, bytes + i, len);
        else
            buf_str(&out, "\xef\xbf\xbd"); // U+FFFD
        i += len;
    }
    return out.len ? buf_steal(&out) : strdup("");
}

char *job_log_read(const struct job *j)
{
    if (j->log)
        return strdup(j->log);
    char path[420];
    snprintf(path, sizeof path, "%s/log", j->dir.path);
    CLEANUP_BUF struct buf text = BUF_INIT;
    CLEANUP_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char bytes[READ_MAX];
    for (ssize_t n;
         fd >= 0 && text.len < SUPERVISOR_LOG_MAX && (n = read(fd, bytes, sizeof bytes)) > 0;)
        buf_add(&text, bytes, (size_t)n);
    return clean_text(buf_text(&text), text.len);
}

static void collect(struct job *j)
{
    job_drain(j);
    if (!j->log)
        j->log = job_log_read(j);
}

static void job_on_control(void *ctx, uint32_t events)
{
    struct job *j = ctx;
    (void)events;
    int rc = supervisor_read_report(&j->supervised, &j->report, &j->silence);
    if (rc == 0)
        return;
    loop_unwatch(j->control);
    j->control = NULL;
    j->have_report = rc > 0;
    collect(j);
    // Now it removes the directory. Without a report too, or it would wait for us as we for its
    // end.
    supervisor_release(&j->supervised);
    loop_timer_set(j->backstop, STOP_PATIENCE_MS);
}

static void on_gone(void *ctx, uint32_t events)
{
    struct job *j = ctx;
    (void)events;
    if (j->control)
        j->have_report = supervisor_read_report(&j->supervised, &j->report, &j->silence) == 1;
    forget_watches(j);
    supervisor_reap(&j->supervised, 0);
    j->running = false;
    if (!j->have_report)
        job_sweep(j);
    collect(j);
    remove_traces(j);
    j->on_over(j->ctx);
}

static void on_backstop(void *ctx, uint32_t events)
{
    struct job *j = ctx;
    (void)events;
    log_event(LOG_LVL_ERROR, "run.supervisor_stuck", "id=%" PRId64, j->id);
    supervisor_kill(&j->supervised);
}

static int watch(struct job *j, struct err *err)
{
    struct supervised *s = &j->supervised;
    j->fifo = loop_watch_fd(j->loop, j->dir.fifo, EPOLLIN, on_fifo, j, err);
    j->control =
        j->fifo ? loop_watch_fd(j->loop, s->control, EPOLLIN, job_on_control, j, err) : NULL;
    j->gone = j->control ? loop_watch_fd(j->loop, s->pidfd, EPOLLIN, on_gone, j, err) : NULL;
    j->backstop = j->gone ? loop_timer_new(j->loop, on_backstop, j, err) : NULL;
    j->throttle = j->backstop ? loop_timer_new(j->loop, throttle_over, j, err) : NULL;
    j->patience = j->throttle ? loop_timer_new(j->loop, on_patience, j, err) : NULL;
    if (!j->patience)
        return -1;
    loop_timer_set(j->patience, report_limit_ms(j));
    loop_timer_set(j->backstop, j->plan.timeout_s * 1000 + DEADLINE_PATIENCE_MS);
    return 0;
}

int job_start(struct job *j, struct err *err)
{
    struct supervisor_job job = {.dir = j->dir.path,
                                 .deadline_s = j->plan.timeout_s,
                                 .uid = j->account.uid,
                                 .gid = j->account.gid,
                                 .isolated = !j->plan.processes,
                                 .launch = &j->launch,
                                 .group = j->group,
                                 .lock = j->lock};
    if (supervisor_spawn(&j->supervised, &job, err) < 0)
        return -1;
    j->running = true;
    return watch(j, err);
}

void job_disturbed(struct job *j, const char *what)
{
    const struct conditions *c = &j->conditions;
    for (int i = 0; i < c->n; i++)
        if (c->list[i].kind == CONDITION_DISTURBED && strcmp(c->list[i].text, what) == 0)
            return;
    conditions_add(&j->conditions, CONDITION_DISTURBED, -1, "%s", what);
}

void job_cancel(struct job *j)
{
    j->canceled = true;
    stop(j);
}

void job_stop(struct job *j, const struct err *why)
{
    if (j->error.code == ERR_NONE)
        j->error = *why;
    stop(j);
}

static enum run_state job_failed(struct err *why, enum err_code code, const char *text)
{
    err_set(why, code, "", "%s", text);
    return RUN_FAILED;
}

static const char *starter(const struct job *j)
{
    return j->plan.processes ? "numa_bench" : "mpirun";
}

static enum run_state ended_badly(const struct job *j, struct err *why)
{
    char text[200];
    const struct supervisor_report *r = &j->report;
    switch (r->how) {
    case SUP_DEADLINE:
        snprintf(text, sizeof text,
                 "not ready after %" PRId64 " s: raise timeout_s or measure less%s",
                 j->plan.timeout_s, j->records.n_cells ? "; the measured cells are kept" : "");
        return job_failed(why, ERR_TIMEOUT, text);
    case SUP_NOT_STARTED:
        snprintf(text, sizeof text, "%s cannot be started: %s", starter(j), strerror(r->status));
        return job_failed(why, ERR_SYSTEM, text);
    case SUP_NOT_ISOLATED:
        snprintf(text, sizeof text,
                 "mpirun was not started: it cannot have a network namespace of its own (%s), and "
                 "other accounts could reach its control port",
                 strerror(r->status));
        return job_failed(why, ERR_SYSTEM, text);
    case SUP_SIGNALED:
        snprintf(text, sizeof text, "%s was ended by signal %d (%s): see the log of the run",
                 starter(j), r->status, strsignal(r->status));
        return job_failed(why, ERR_SYSTEM, text);
    case SUP_STUCK:
        snprintf(text, sizeof text,
                 "%s did not end within %d s after its processes had: see the log of the run",
                 starter(j), SUPERVISOR_STUCK_S);
        return job_failed(why, ERR_SYSTEM, text);
    case SUP_STOPPED:
        err_set(why, ERR_UNAVAILABLE, "", "the supervisor was asked to stop");
        return RUN_INTERRUPTED;
    case SUP_EXITED:
    case SUP_ENDS:
        break;
    }
    snprintf(text, sizeof text, "%s exited with status %d: see the log of the run", starter(j),
             r->status);
    return job_failed(why, ERR_SYSTEM, text);
}

bool job_did_not_start(const struct job *j)
{
    return j->have_report &&
           (j->report.how == SUP_NOT_STARTED || j->report.how == SUP_NOT_ISOLATED);
}

static bool ended_well(const struct job *j)
{
    return j->have_report && j->report.how == SUP_EXITED && j->report.status == 0;
}

static bool hung_when_done(const struct job *j)
{
    bool hung = j->ended_late ||
                (j->have_report && (j->report.how == SUP_STUCK || j->report.how == SUP_DEADLINE));
    struct err ignored;
    return hung && !ended_well(j) && !j->canceled && j->error.code == ERR_NONE &&
           records_check(&j->records, &ignored) == 0;
}

void job_note_hang(struct job *j)
{
    if (hung_when_done(j))
        conditions_add(&j->conditions, CONDITION_LAUNCHER, -1,
                       "%s did not exit by itself: it was ended %d s after the last result, or at "
                       "the deadline",
                       starter(j), END_PATIENCE_MS / 1000);
}

enum run_state job_outcome(struct job *j, struct err *why)
{
    struct err incomplete = {0};
    bool whole = records_check(&j->records, &incomplete) == 0 && j->error.code == ERR_NONE;
    bool clean = ended_well(j);
    *why = (struct err){0};
    if ((whole && clean) || hung_when_done(j))
        return RUN_SUCCEEDED;
    if (j->canceled) {
        snprintf(why->text, sizeof why->text, "canceled on request");
        return RUN_CANCELED;
    }
    if (j->error.code != ERR_NONE) {
        *why = j->error;
        return RUN_FAILED;
    }
    if (!j->have_report) {
        *why = j->silence;
        return RUN_INTERRUPTED;
    }
    if (j->records.have_end && !j->records.end.ok) { // the bench knows best
        *why = incomplete;
        return RUN_FAILED;
    }
    if (!clean)
        return ended_badly(j, why);
    *why = incomplete;
    return RUN_FAILED;
}

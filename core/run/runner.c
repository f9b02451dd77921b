// SPDX-License-Identifier: Apache-2.0
// The queue is the table `run`; this takes its rows one at a time. What was acknowledged to a
// client is on disk first. A result that cannot be stored is kept and tried again: its run stays
// 'running' until then.
#include "core/run/runner.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/admission/monitor.h"
#include "core/results/found_memory.h"
#include "core/results/found_speeds.h"
#include "core/results/past_runs.h"
#include "core/run/begin.h"
#include "core/run/events.h"
#include "core/run/fill.h"
#include "core/run/gate.h"
#include "core/run/in_jobs.h"
#include "core/run/machine_changes.h"
#include "core/run/result.h"
#include "core/run/waits.h"

enum {
    RETRY_MS = 30000,
    RETRY_FIRST_MS = 250, // what failed for a moment; doubled until RETRY_MS
    WAIT_LOOK_MS = 2000,  // while a run waits for the node to be free; a look takes 3 ms
};

struct runner {
    struct loop *loop;
    struct store *store;
    struct gate gate;
    struct run_groups groups;
    int run_dir; // locked once this has started; -1: not yet
    bool started;
    bool looked;                // at the programs, for the run that starts next
    struct job *job;            // the current run, or whose result waits for the disk
    bool over;                  // the latter
    struct loop_timer *next;    // armed while a run may start, or a result waits for the disk
    int64_t retry_ms;           // the next retry comes after so much
    struct loop_timer *recheck; // armed only while a run waits for the node
    struct loop_timer *look;    // armed only while one is running
    struct waits waits;
    struct in_jobs in_jobs;
    struct filler filler;
    int64_t finished[RUN_STATES];
    struct loop_watch *children;
    struct run_events events;
};

// --- events

int64_t runner_event_id(const struct runner *r, int64_t run_id)
{
    return run_events_last(&r->events, run_id);
}

static void runner_notify_state(struct runner *r, int64_t id)
{
    run_events_send(&r->events, id, EVENT_STATE, false);
}

void runner_notify(struct runner *r, int64_t id)
{
    run_events_send(&r->events, id, EVENT_STATE, true);
}

struct runner_watch *runner_watch_add(struct runner *r, int64_t run_id, event_fn *fn, void *ctx,
                                      struct err *err)
{
    return run_events_watch(&r->events, run_id, fn, ctx, err);
}

// --- the machine as it is now

int runner_look_at_machine(struct runner *r, struct err *err)
{
    struct machine was CLEANUP(machine_fini) = {0}, *now = r->gate.machine;
    int changed = machine_refresh(now, &was, "", err);
    if (changed <= 0)
        return changed;
    log_event(LOG_LVL_WARN, "machine.changed",
              "cpus=%d nodes=%d text=\"CPUs or memory came or went; the machine was read again\"",
              now->topology.n_cpus, now->topology.n_nodes);
    if (r->job && !r->over)
        job_machine_changed(r->job, &was, now);
    return 0;
}

// What a plan for `s` is made from. The set-up is read anew: it may have changed since the last
// plan. A run that starts is stored with it.
static int runner_look_before_plan(struct runner *r, const struct spec *s, struct err *err)
{
    struct machine *m = r->gate.machine;
    if (runner_look_at_machine(r, err) < 0)
        return -1;
    fingerprint_read(&m->fingerprint, &m->topology, "");
    if (found_memory_look(m, r->store, err) < 0 || found_speeds_look(m, r->store, err) < 0)
        return -1;
    return past_runs_look(&r->gate.past, r->store, m, s, err);
}

// --- finishing

static bool try_again_later(const struct err *err)
{
    return err->code != ERR_CONFLICT && err->code != ERR_NOT_FOUND;
}

static void retry_later(struct runner *r)
{
    loop_timer_set(r->next, r->retry_ms);
    r->retry_ms = 2 * r->retry_ms < RETRY_MS ? 2 * r->retry_ms : RETRY_MS;
}

// False: the result still waits. A large one is stored in pieces, of which this is one.
static bool runner_settle(struct runner *r)
{
    struct err err;
    enum run_state state;
    bool no_metrics;
    if (!r->over)
        return true;
    int rc = job_store(r->job, r->store, r->gate.machine, &state, &no_metrics, &err);
    if (rc > 0) {
        loop_timer_set(r->next, 0);
        return false;
    }
    r->filler.due |= no_metrics;
    if (rc < 0 && try_again_later(&err)) {
        log_error("run.store", &err);
        retry_later(r);
        return false;
    }
    int64_t id = r->job->id;
    r->finished[state]++;
    job_free(r->job);
    in_jobs_forget(&r->in_jobs, id);
    r->job = NULL;
    r->over = false;
    loop_timer_set(r->next, 0);
    runner_notify(r, id);
    return true;
}

static void on_job_ended(void *ctx)
{
    struct runner *r = ctx;
    struct err err;
    loop_timer_set(r->look, -1);
    if (runner_look_at_machine(r, &err) < 0)
        conditions_add(&r->job->conditions, CONDITION_MACHINE, -1,
                       "whether CPUs or memory changed during the run is not known: %s", err.text);
    job_note_end(r->job, r->gate.monitor);
    monitor_end(r->gate.monitor);
    if (job_did_not_start(r->job))
        gate_doubt(&r->gate);
    r->over = true;
    runner_settle(r);
}

static void job_progressed(void *ctx)
{
    struct runner *r = ctx;
    run_events_send(&r->events, r->job->id, EVENT_PROGRESS, false);
}

// A run that ended before anything of it ran.
static int finish_early(struct runner *r, int64_t id, enum run_state state, const struct err *why,
                        struct err *err)
{
    struct run_result result = {
        .state = state, .error = why->code, .error_member = why->member, .error_text = why->text};
    if (store_run_finished(r->store, id, &result, err) < 0)
        return -1;
    waits_forget(&r->waits, id);
    in_jobs_forget(&r->in_jobs, id);
    r->finished[state]++;
    runner_notify(r, id);
    return 0;
}

// --- the current run

// True: the run was measured within a batch job, and is stopped, because that has ended.
static bool lost_its_job(struct runner *r)
{
    const struct batch_place *within = in_jobs_find(&r->in_jobs, r->job->id);
    struct err why;
    if (!within || batch_place_exists(within, ""))
        return false;
    loop_timer_set(r->look, -1);
    err_set(&why, ERR_UNAVAILABLE, "", "stopped, because the job of %s that requested it has ended",
            within->job.manager);
    log_event(LOG_LVL_WARN, "run.job_ended", "id=%" PRId64 " job=%s", r->job->id, within->job.name);
    job_stop(r->job, &why);
    return true;
}

static void on_look(void *ctx, uint32_t events)
{
    struct runner *r = ctx;
    struct blocker b;
    struct err why = {0};
    (void)events;
    if (!r->job || r->over || lost_its_job(r))
        return;
    loop_timer_set(r->look, MONITOR_LOOK_MS);
    if (runner_look_at_machine(r, &why) < 0)
        log_error("machine.read", &why); // the next look finds out
    if (!monitor_disturbs(r->gate.monitor, &b))
        return;
    loop_timer_set(r->look, -1);
    if (monitor_action(r->gate.monitor, ADMIT_DISTURBING) == POLICY_WARN) {
        conditions_add(&r->job->conditions, CONDITION_DISTURBING, -1, "%s", b.text);
        return;
    }
    err_set(&why, ERR_BUSY, "", "stopped, because it disturbed others: %s (limit %.0f %%)", b.text,
            b.limit);
    log_event(LOG_LVL_WARN, "run.disturbs", "id=%" PRId64 " text=\"%s\"", r->job->id,
              log_quote(admission_named(&b)).text);
    job_stop(r->job, &why);
}

// The directory of this run is there now, and its parent with it.
static void keep_run_dir(struct runner *r)
{
    struct err err;
    int fd = run_dir_lock_again(r->run_dir, r->gate.run_dir, &err);
    if (fd < 0)
        log_error("runner.run_dir", &err);
    else
        r->run_dir = fd;
}

static void run_runner_start(struct runner *r)
{
    int64_t id = r->job->id;
    keep_run_dir(r);
    waits_forget(&r->waits, id);
    filler_pause(&r->filler);
    log_event(LOG_LVL_INFO, "run.started", "id=%" PRId64 " ranks=%d account=%s", id,
              r->job->plan.n_ranks, r->job->account.name);
    runner_notify_state(r, id);
    loop_timer_set(r->look, MONITOR_LOOK_MS);
    if (job_start(r->job, &r->job->error) < 0)
        on_job_ended(r); // job_free ends what did start
}

void runner_disturbed(struct runner *r, const char *what)
{
    if (r->job)
        job_disturbed(r->job, what);
}

void runner_store_replaced(struct runner *r)
{
    struct err err;
    if (r->job && job_restore(r->job, r->store, r->gate.machine, &err) < 0)
        log_error("run.restore", &err);
    if (r->started)
        loop_timer_set(r->next, 0);
}

// --- the queue

static struct job *make_job(struct runner *r, int64_t id, struct err *err)
{
    r->gate.admission = (struct admission){0};
    struct run run CLEANUP(run_fini) = {0};
    if (store_run_get(r->store, id, &run, err) < 0 || run_check_spec(&run, err) < 0 ||
        runner_look_before_plan(r, &run.spec, err) < 0)
        return NULL;
    struct job *j = job_new(r->loop, err);
    if (!j)
        return NULL;
    j->on_progress = job_progressed;
    j->on_over = on_job_ended;
    j->ctx = r;
    r->gate.within = in_jobs_find(&r->in_jobs, id);
    int rc = job_begin(j, r->store, &r->gate, &r->groups, &run, err);
    r->gate.within = NULL;
    if (rc == 0)
        return j;
    job_free(j);
    return NULL;
}

// Its state cannot be written, and whoever looks at it has to see why.
static void waits_for_store(struct runner *r, int64_t id, const struct err *why)
{
    struct run run CLEANUP(run_fini) = {0};
    struct err unread;
    int64_t left_ms;
    log_error("run.start", why);
    if (store_run_get(r->store, id, &run, &unread) == 0 &&
        waits_note(&r->waits, &run, WAIT_FOR_STORE, why->text, &left_ms) > 0)
        runner_notify_state(r, id);
    retry_later(r);
}

static void could_not_start(struct runner *r, int64_t id, const struct err *why)
{
    struct err err;
    bool no_store = why->code == ERR_STORAGE || why->code == ERR_DAMAGED;
    enum run_state state = why->code == ERR_TIMEOUT ? RUN_CANCELED : RUN_FAILED;
    if (no_store)
        waits_for_store(r, id, why);
    else if (finish_early(r, id, state, why, &err) < 0)
        waits_for_store(r, id, &err);
    else
        loop_timer_set(r->next, 0);
}

// True: the run that could not start for `why` stays in the queue. *next_ms: when to look again.
static bool may_wait_longer(struct runner *r, int64_t id, struct err *why, int64_t *next_ms)
{
    struct run run CLEANUP(run_fini) = {0};
    const struct blocker *b = &r->gate.admission.list[0];
    struct err unread;
    int64_t left_ms;
    if (!admission_may_pass(&r->gate.admission))
        return false;
    if (store_run_get(r->store, id, &run, &unread) < 0) {
        *why = unread; // it may have wanted to wait: then the node is not what ends it
        return false;
    }
    if (!run.spec.queue_s)
        return false;
    int news = waits_note(&r->waits, &run, (int)b->kind, b->text, &left_ms);
    if (news < 0)
        return false;
    if (left_ms <= 0) {
        err_set(why, ERR_TIMEOUT, "queue_s", "the node was busy for %" PRId64 " s: %s",
                run.spec.queue_s, b->text);
        return false;
    }
    if (left_ms < *next_ms)
        *next_ms = left_ms;
    if (news)
        runner_notify_state(r, id);
    return true;
}

// The first run of the queue that may start. Those before it that wait for the node continue to
// wait: they want other CPUs, or more memory.
static int runner_next_job(struct runner *r, int64_t *next_ms, struct err *err)
{
    int64_t id = 0;
    for (int found; (found = store_run_next_queued(r->store, id, &id, err)) != 0;) {
        if (found < 0)
            return -1;
        r->job = make_job(r, id, err);
        if (r->job)
            return 1;
        if (may_wait_longer(r, id, err, next_ms))
            continue;
        could_not_start(r, id, err);
        return 1;
    }
    return 0;
}

// Programs come, go and change: before a run starts they are looked at. True: that is under way.
static bool looks_first(struct runner *r)
{
    int64_t id;
    struct err unread; // the queue is read again, and then it counts
    return !r->looked && store_run_next_queued(r->store, 0, &id, &unread) > 0 &&
           gate_look(&r->gate, 0);
}

static void after_look(void *ctx)
{
    struct runner *r = ctx;
    r->looked = !r->job;
    if (r->started)
        loop_timer_set(r->next, 0);
}

static void start_next(void *ctx, uint32_t events)
{
    struct runner *r = ctx;
    struct err err = {0};
    int64_t next_ms = WAIT_LOOK_MS;
    (void)events;
    if (!runner_settle(r) || r->job || looks_first(r))
        return;
    r->looked = false;
    int found = runner_next_job(r, &next_ms, &err);
    loop_timer_set(r->recheck, !r->job && r->waits.n ? next_ms : -1);
    if (r->job || found == 0)
        r->retry_ms = RETRY_FIRST_MS;
    if (found < 0) {
        log_error("queue", &err);
        retry_later(r);
    }
    if (found == 0)
        filler_go(&r->filler);
    if (r->job)
        run_runner_start(r);
}

void runner_fill_metrics(struct runner *r)
{
    r->filler.due = true;
    if (r->started && !r->job)
        filler_go(&r->filler);
}

void runner_metrics_by(struct runner *r, filler_fn *fn, void *ctx)
{
    r->filler.elsewhere = fn;
    r->filler.ctx = ctx;
    r->filler.taken = 0;
}

void runner_metrics_made(struct runner *r, int64_t id, const struct run_metrics *m,
                         const struct err *why)
{
    filler_made(&r->filler, id, m, why);
    if (r->job)
        filler_pause(&r->filler);
}

// --- life of the runner

// Orphans of a killed supervisor come to us (the daemon is a subreaper) and are only buried here.
static void reap_orphans(void *ctx, uint32_t events)
{
    (void)ctx;
    (void)events;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static int init(struct runner *r, struct machine *m, const struct runner_config *c, struct err *err)
{
    struct err later;
    if (run_dir_base_make(c->run_dir, err) < 0 ||
        gate_init(&r->gate, r->loop, m, c, after_look, r, err) < 0)
        return -1;
    run_groups_open(&r->groups, "");
    if (gate_ready(&r->gate, &later) < 0)
        log_error("runner.programs", &later); // looked for again with each run
    if (filler_init(&r->filler, r->loop, r->store, m, err) < 0)
        return -1;
    r->next = loop_timer_new(r->loop, start_next, r, err);
    r->recheck = r->next ? loop_timer_new(r->loop, start_next, r, err) : NULL;
    r->look = r->recheck ? loop_timer_new(r->loop, on_look, r, err) : NULL;
    r->children = r->look ? loop_watch_signal(r->loop, SIGCHLD, reap_orphans, r, err) : NULL;
    return r->children ? 0 : -1;
}

struct runner *runner_new(struct loop *l, struct store *s, struct machine *m,
                          const struct runner_config *c, struct err *err)
{
    struct runner *r = calloc(1, sizeof *r);
    if (!r) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the runner");
        return NULL;
    }
    r->loop = l;
    r->store = s;
    r->retry_ms = RETRY_FIRST_MS;
    r->run_dir = -1;
    if (init(r, m, c, err) == 0)
        return r;
    runner_free(r);
    return NULL;
}

void runner_free(struct runner *r)
{
    if (!r)
        return;
    while (r->over && !runner_settle(r) && r->job->ending.stage.numbers)
        continue; // a last try
    job_free(r->job);
    loop_unwatch(r->children);
    loop_timer_free(r->next);
    loop_timer_free(r->recheck);
    loop_timer_free(r->look);
    filler_fini(&r->filler);
    in_jobs_fini(&r->in_jobs);
    gate_fini(&r->gate);
    run_events_fini(&r->events);
    fd_cleanup(&r->run_dir);
    free(r);
}

int runner_start(struct runner *r, struct err *err)
{
    int64_t lost = 0;
    if (r->run_dir < 0 && (r->run_dir = run_dir_lock(r->gate.run_dir, err)) < 0)
        return -1;
    run_dir_sweep(r->gate.run_dir);
    if (store_run_interrupt_all(r->store, "numaprobed ended while this run was running", &lost,
                                err) < 0)
        return -1;
    if (lost > 0)
        log_event(LOG_LVL_WARN, "runner.interrupted", "runs=%" PRId64, lost);
    r->started = true;
    r->filler.due = true; // perhaps: the first step finds out
    loop_timer_set(r->next, 0);
    return 0;
}

// --- requests

int runner_dry_run(struct runner *r, const struct spec *s, const struct batch_place *within,
                   struct plan *p, struct buf *command, struct admission *a, struct err *err)
{
    if (runner_look_before_plan(r, s, err) < 0)
        return -1;
    // While a run is running, the load of the node is its work; the next run is checked at its
    // start.
    r->gate.within = within;
    int rc = gate_dry_run(&r->gate, s, !r->job, p, command, err);
    r->gate.within = NULL;
    *a = r->gate.admission;
    return rc;
}

int runner_available(struct runner *r, const struct spec *s, const struct batch_place *within,
                     struct admission *a, struct err *err)
{
    *a = (struct admission){0};
    if (runner_look_before_plan(r, s, err) < 0)
        return -1;
    r->gate.within = within;
    int rc = gate_available(&r->gate, s, !r->job, a, err);
    r->gate.within = NULL;
    return rc;
}

const struct admission *runner_refusal(const struct runner *r)
{
    return &r->gate.admission;
}

static int check_request(struct runner *r, const struct spec *s, const struct batch_place *within,
                         struct err *err)
{
    if (runner_look_before_plan(r, s, err) < 0)
        return -1;
    r->gate.within = within;
    int rc = gate_check_or_wait(&r->gate, s, NULL, !r->job, err);
    r->gate.within = NULL;
    return rc;
}

int runner_submit(struct runner *r, const struct spec *s, const char *key,
                  struct batch_place *within, int64_t *id, bool *again, struct err *err)
{
    int64_t waiting = 0;
    runner_settle(r);
    r->gate.admission = (struct admission){0};
    int known = key ? store_run_find(r->store, s, key, id, err) : 0;
    if (known != 0) {
        *again = known > 0;
        return known > 0 ? 0 : -1;
    }
    if (check_request(r, s, within, err) < 0 || store_queue_length(r->store, &waiting, err) < 0)
        return -1;
    if (waiting >= RUNNER_QUEUE_MAX)
        return err_set(err, ERR_QUEUE_FULL, "", "%d runs are waiting already; try again later",
                       RUNNER_QUEUE_MAX);
    if (store_run_insert(r->store, s, r->gate.machine->hostname, key, id, again, err) < 0)
        return -1;
    if (!*again)
        waits_begin(&r->waits, *id, s->queue_s);
    if (within && !*again)
        in_jobs_put(&r->in_jobs, *id, within);
    runner_notify_state(r, *id);
    if (r->started)
        loop_timer_set(r->next, 0);
    return 0;
}

int runner_cancel(struct runner *r, int64_t id, struct err *err)
{
    struct run run CLEANUP(run_fini) = {0};
    runner_settle(r);
    if (store_run_get(r->store, id, &run, err) < 0)
        return -1;
    if (r->job && r->job->id == id && !r->over) {
        job_cancel(r->job);
        return 0;
    }
    if (run.state == RUN_RUNNING)
        return err_set(err, ERR_CONFLICT, "",
                       "run %" PRId64 " has ended, and its result is being stored", id);
    if (run.state != RUN_QUEUED)
        return err_set(err, ERR_CONFLICT, "", "run %" PRId64 " has finished (%s)", id,
                       run_state_names[run.state]);
    struct err why = {.text = "canceled before it started"};
    return finish_early(r, id, RUN_CANCELED, &why, err);
}

static void add_progress(const struct job *j, struct run *run)
{
    run->progress = j->records.progress;
    run->n_ranks = j->plan.n_ranks;
    snprintf(run->method, sizeof run->method, "%s", j->records.hello.method);
}

// Those of the row were known at the start. The ranks report more while they measure.
static int add_conditions_so_far(const struct job *j, struct run *run, struct err *err)
{
    CLEANUP_MEM struct conditions *all = NULL;
    CLEANUP_BUF struct buf json = BUF_INIT;
    struct jsonw w = jsonw_to(&json);
    if (!j->records.conditions.n)
        return 0;
    all = malloc(sizeof *all);
    if (!all)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the conditions of a run");
    *all = j->conditions;
    conditions_append(all, &j->records.conditions);
    conditions_write_json(all, &w, NULL);
    if (!buf_ok(&json))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the conditions of a run");
    free(run->conditions_json);
    run->conditions_json = buf_steal(&json);
    return 0;
}

int runner_run_get(struct runner *r, int64_t id, struct run *out, struct err *err)
{
    if (r->over && r->job->id == id)
        runner_settle(r);
    if (store_run_get(r->store, id, out, err) < 0)
        return -1;
    waits_describe(&r->waits, out);
    if (out->state != RUN_RUNNING || !r->job || r->job->id != id)
        return 0;
    add_progress(r->job, out);
    return r->over ? 0 : add_conditions_so_far(r->job, out, err); // they are appended at its end
}

int runner_log_get(struct runner *r, int64_t id, char **text, struct err *err)
{
    if (!r->job || r->job->id != id)
        return store_log_get(r->store, id, text, err);
    char *got = job_log_read(r->job);
    if (!got)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the log");
    *text = got;
    return 0;
}

void runner_policy(struct runner *r, const struct policy *p)
{
    monitor_set_policy(r->gate.monitor, p);
}

int runner_ready(struct runner *r, char *note, size_t room, struct err *err)
{
    int64_t fresh_ms = gate_ready(&r->gate, err) == 0 ? GATE_READY_EVERY_MS : GATE_FRESH_MS;
    if (!r->job)
        gate_look(&r->gate, fresh_ms);
    snprintf(note, room, "%s", r->gate.paths.mpi_why);
    return gate_ready(&r->gate, err);
}

int64_t runner_finished(const struct runner *r, enum run_state state)
{
    return r->finished[state];
}

bool runner_busy(const struct runner *r)
{
    return r->job != NULL;
}

const char *runner_account(const struct runner *r)
{
    return r->gate.account.text;
}

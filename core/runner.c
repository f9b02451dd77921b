// SPDX-License-Identifier: Apache-2.0
// The queue is the table `run`; this takes its rows one at a time. What a client was told is on
// disk first. A result that cannot be stored is kept and tried again: its run stays 'running' until
// then.
#include "core/runner.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/launch.h"
#include "core/planner.h"
#include "core/run_metrics.h"
#include "core/runner_job.h"
#include "core/store_keep.h"

enum {
    RETRY_MS = 30000,
    FINDINGS_MAX = 24,
    // A run of 120 cells takes 1 ms and the disk's answer; steps of 10 ms with as much rest
    // between.
    FILL_STEP_MS = 10,
    WAIT_LOOK_MS = 2000, // while a run waits for the node to be free; a look takes 3 ms
    EVENTS_KEPT = 64, // runs whose event numbers are known: queue, current, and some that are over
};

struct runner_watch {
    struct runner *runner;
    int64_t run_id;
    event_fn *fn;
    void *ctx;
    bool dead; // removed while events are handed out
    struct runner_watch *next, *prev;
};

// A run that waits for the node to be free.
struct wait {
    int64_t run_id;
    int64_t until_ms; // monotonic: the wall may jump
    enum admission_kind kind;
    char text[200];
};

struct runner {
    struct loop *loop;
    struct store *store;
    struct machine *machine;
    char run_dir[300];
    char job_user[64];
    struct account account;
    struct launch_paths paths;
    bool have_paths, started;
    struct job *job; // the run that is going on, or whose result waits for the disk
    bool over;       // the latter
    struct loop_timer *kick, *retry;
    struct run_groups groups;
    struct admitter *admitter;
    struct admission admission; // of the run that was looked at last
    struct loop_timer *recheck; // armed only while a run waits for the node
    struct loop_timer *look;    // armed only while one is going on
    struct wait waits[RUNNER_QUEUE_MAX];
    int n_waits;
    struct loop_timer *fill; // armed only while runs without metrics may be left
    bool unfilled;           // such runs wait until nothing runs
    int64_t filled;          // of the present backlog
    int64_t finished[RUN_STATES];
    struct loop_watch *children;
    struct runner_watch *watches;
    int notifying;
    struct {
        int64_t run_id, event_id;
    } events[EVENTS_KEPT];
    int next_event_slot;
};

// --- events

static int64_t *event_counter(struct runner *r, int64_t run_id)
{
    for (int i = 0; i < EVENTS_KEPT; i++)
        if (r->events[i].run_id == run_id)
            return &r->events[i].event_id;
    int slot = r->next_event_slot++ % EVENTS_KEPT;
    r->events[slot].run_id = run_id;
    r->events[slot].event_id = 0;
    return &r->events[slot].event_id;
}

int64_t runner_event_id(const struct runner *r, int64_t run_id)
{
    for (int i = 0; i < EVENTS_KEPT; i++)
        if (r->events[i].run_id == run_id)
            return r->events[i].event_id;
    return 0;
}

static void drop_watch(struct runner_watch *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        w->runner->watches = w->next;
    if (w->next)
        w->next->prev = w->prev;
    free(w);
}

static void drop_dead_watches(struct runner *r)
{
    for (struct runner_watch *w = r->watches, *next; w; w = next) {
        next = w->next;
        if (w->dead)
            drop_watch(w);
    }
}

static void emit(struct runner *r, int64_t run_id, enum event_kind kind, bool final)
{
    struct run_event e = {run_id, ++*event_counter(r, run_id), kind, final};
    r->notifying++;
    for (struct runner_watch *w = r->watches; w; w = w->next)
        if (!w->dead && (w->run_id == RUNNER_ANY_RUN || w->run_id == run_id))
            w->fn(w->ctx, &e);
    if (--r->notifying == 0)
        drop_dead_watches(r);
}

void runner_tell(struct runner *r, int64_t id)
{
    emit(r, id, EVENT_STATE, true);
}

struct runner_watch *runner_watch_add(struct runner *r, int64_t run_id, event_fn *fn, void *ctx,
                                      struct err *err)
{
    struct runner_watch *w = calloc(1, sizeof *w);
    if (!w) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a watch");
        return NULL;
    }
    *w = (struct runner_watch){
        .runner = r, .run_id = run_id, .fn = fn, .ctx = ctx, .next = r->watches};
    if (w->next)
        w->next->prev = w;
    r->watches = w;
    return w;
}

void runner_watch_remove(struct runner_watch *w)
{
    if (!w)
        return;
    w->dead = true;
    if (w->runner->notifying == 0)
        drop_watch(w);
}

// --- finishing

static void add_placement(struct job *j)
{
    for (int i = 0; i < j->records.n_ranks; i++) {
        const struct rank_info *k = &j->records.ranks[i];
        const struct plan_rank *want = &j->plan.ranks[i];
        if (k->cpu >= 0 && k->cpu != want->cpu)
            conditions_add(&j->conditions,
                           "PLACEMENT: rank %d ran on CPU %" PRId64 " instead of %d", i, k->cpu,
                           want->cpu);
        if (want->mem_node >= 0 && k->mem_node >= 0 && k->mem_node != want->mem_node)
            conditions_add(&j->conditions,
                           "PLACEMENT: rank %d had its memory on node %" PRId64 " instead of %d", i,
                           k->mem_node, want->mem_node);
        else if (k->pages_checked > 0 && k->mem_share < 0.99)
            conditions_add(&j->conditions,
                           "PLACEMENT: rank %d had only %.1f %% of its memory on node %d", i,
                           100 * k->mem_share, want->mem_node);
        if (k->migrations > 0)
            conditions_add(&j->conditions, "rank %d moved between CPUs %" PRId64 " times", i,
                           k->migrations);
    }
}

// Metrics are worth less than their run: without memory for them it is stored all the same, and
// gets them later.
static struct metrics_made *make_metrics(struct runner *r, const struct run_result *result)
{
    const struct metrics_input in = {.spec = &r->job->spec,
                                     .method = result->method,
                                     .matrices = result->matrices,
                                     .n_matrices = result->n_matrices,
                                     .ranks = result->ranks,
                                     .n_ranks = result->n_ranks,
                                     .topology = &r->machine->topology};
    struct err err;
    struct metrics_made *made = metrics_make(&in, &err);
    if (!made)
        log_error("run.metrics", &err);
    return made;
}

static void set_numbers(struct run_result *result, const struct records *records)
{
    result->phase_ms = records->end.phase_ms;
    result->matrices = records->matrices;
    result->n_matrices = records->n_matrices;
    result->ranks = records->ranks;
    result->n_ranks = records->n_ranks;
}

static int store_job(struct runner *r, enum run_state *state, struct err *err)
{
    struct job *j = r->job;
    struct err why;
    CLEANUP_BUF struct buf conditions = BUF_INIT;
    conditions_write_json(&j->conditions, &conditions);
    *state = job_outcome(j, &why);
    struct run_result result = {.state = *state,
                                .error = why.code,
                                .error_member = why.member,
                                .error_text = why.text,
                                .method = *j->records.hello.method ? j->records.hello.method : NULL,
                                .conditions_json = buf_text(&conditions),
                                .log = j->log};
    struct metrics_made *made = NULL;
    if (*state == RUN_SUCCEEDED) {
        set_numbers(&result, &j->records);
        made = make_metrics(r, &result);
        result.metrics = metrics_made_view(made);
    }
    int rc = store_run_finished(r->store, j->id, &result, err);
    r->unfilled |= *state == RUN_SUCCEEDED && !made;
    metrics_made_free(made);
    if (rc < 0)
        return -1;
    log_event(*state == RUN_SUCCEEDED ? LOG_LVL_INFO : LOG_LVL_WARN, "run.over",
              "id=%" PRId64 " state=%s text=\"%s\"", j->id, run_state_names[*state], why.text);
    return 0;
}

static bool try_again_later(const struct err *err)
{
    return err->code != ERR_CONFLICT && err->code != ERR_NOT_FOUND;
}

// False: the result still waits.
static bool settle(struct runner *r)
{
    struct err err;
    enum run_state state;
    if (!r->over)
        return true;
    if (store_job(r, &state, &err) < 0 && try_again_later(&err)) {
        log_error("run.store", &err);
        loop_timer_set(r->retry, RETRY_MS);
        return false;
    }
    int64_t id = r->job->id;
    r->finished[state]++;
    job_free(r->job);
    r->job = NULL;
    r->over = false;
    loop_timer_set(r->kick, 0);
    emit(r, id, EVENT_STATE, true);
    return true;
}

static void add_suffered(struct runner *r)
{
    struct blocker list[4];
    int n = admitter_suffered(r->admitter, list, COUNT_OF(list));
    for (int i = 0; i < n; i++)
        conditions_add(&r->job->conditions, "%s: while it ran, %s",
                       admission_kinds[list[i].kind].name, list[i].text);
}

static void job_is_over(void *ctx)
{
    struct runner *r = ctx;
    loop_timer_set(r->look, -1);
    add_suffered(r);
    admitter_end(r->admitter);
    for (int i = 0; i < r->job->records.n_notes; i++)
        conditions_add(&r->job->conditions, "%s", r->job->records.notes[i]);
    if (r->job->records.n_ranks == r->job->plan.n_ranks)
        add_placement(r->job);
    r->over = true;
    settle(r);
}

static void job_progressed(void *ctx)
{
    struct runner *r = ctx;
    emit(r, r->job->id, EVENT_PROGRESS, false);
}

// A run that ended before anything of it ran.
static int finish_early(struct runner *r, int64_t id, enum run_state state, const struct err *why,
                        struct err *err)
{
    struct run_result result = {
        .state = state, .error = why->code, .error_member = why->member, .error_text = why->text};
    if (store_run_finished(r->store, id, &result, err) < 0)
        return -1;
    r->finished[state]++;
    emit(r, id, EVENT_STATE, true);
    return 0;
}

// --- starting

static int find_account(struct runner *r, struct launch_paths *paths, struct err *err)
{
    return account_find(&r->account, *r->job_user ? r->job_user : NULL, r->run_dir, paths, err);
}

// The programs, and an account that can run them.
static int need_paths(struct runner *r, struct err *err)
{
    struct launch_paths found;
    if (r->have_paths)
        return 0;
    if (launch_find(&found, err) < 0 || find_account(r, &found, err) < 0)
        return -1;
    r->paths = found;
    r->have_paths = true;
    if (r->account.root)
        log_event(LOG_LVL_WARN, "runner.root",
                  "text=\"measuring processes run as root, as told by --job-user\"");
    return 0;
}

int runner_ready(struct runner *r, struct err *err)
{
    return need_paths(r, err);
}

static int admit(struct runner *r, const struct spec *s, const struct plan *p, struct err *err)
{
    if (admitter_check(r->admitter, p, s->force, &r->admission, err) < 0)
        return -1;
    return admission_error(&r->admission, err);
}

// While a run is going on, what is known of the machine stays as it was when that was planned.
static int look_at_machine(struct runner *r, struct err *err)
{
    int changed = r->job ? 0 : machine_refresh(r->machine, "", err);
    if (changed > 0)
        log_event(LOG_LVL_WARN, "machine.changed",
                  "cpus=%d text=\"CPUs or memory came or went; the machine was read again\"",
                  r->machine->topology.n_cpus);
    return changed;
}

// `now`: the node must be free. What r->admission holds afterwards is of this run, or empty.
static int check(struct runner *r, const struct spec *s, struct plan *p, bool now, struct err *err)
{
    struct plan got CLEANUP(plan_fini) = {0};
    r->admission = (struct admission){0};
    if (look_at_machine(r, err) < 0 || plan_make(&got, s, &r->machine->topology, err) < 0 ||
        (now && admit(r, s, &got, err) < 0) || need_paths(r, err) < 0 ||
        launch_choose(&got, &r->paths, s, err) < 0)
        return -1;
    if (p) {
        *p = got;
        got = (struct plan){0};
    }
    return 0;
}

// As check, but what will pass is no error of a run that can wait.
static int check_or_wait(struct runner *r, const struct spec *s, struct plan *p, struct err *err)
{
    struct admission why;
    // While a run is going on, what the node does is its doing; the next is looked at at its start.
    if (check(r, s, p, !r->job, err) == 0)
        return 0;
    why = r->admission;
    if (!s->queue_s || !admission_may_pass(&why) || check(r, s, p, false, err) < 0)
        return -1;
    r->admission = why;
    return 0;
}

static void add_warnings(struct runner *r, struct job *j)
{
    for (int i = 0; i < r->admission.n_warnings; i++) {
        const struct blocker *b = &r->admission.warnings[i];
        conditions_add(&j->conditions, "%s%s: %s", b->forced ? "FORCED, " : "",
                       admission_kinds[b->kind].name, b->text);
    }
}

static void add_group(struct runner *r, struct job *j)
{
    char why[200];
    if (!run_group_make(&r->groups, j->id, admission_plan_bytes(&j->plan), j->group, why))
        conditions_add(&j->conditions, "no control group of its own: %s", why);
    else if (!r->groups.memory)
        conditions_add(&j->conditions, "its control group cannot limit its memory: the controller "
                                       "is not there");
}

static void add_findings(struct runner *r, struct job *j)
{
    struct finding found[FINDINGS_MAX];
    int n = machine_findings(&r->machine->topology, "", found, FINDINGS_MAX);
    for (int i = 0; i < n; i++)
        conditions_add(&j->conditions, "%s: %s", found[i].name, found[i].text);
    add_warnings(r, j);
    add_group(r, j);
    if (j->account.root)
        conditions_add(&j->conditions, "ranks run as %s", j->account.text);
}

// Hands the row of the run to `put`.
static int with_row(struct runner *r, struct job *j,
                    int (*put)(struct store *s, const struct run_restore *row, struct err *err),
                    struct err *err)
{
    CLEANUP_BUF struct buf plan = BUF_INIT, conditions = BUF_INIT;
    CLEANUP_MEM struct fingerprint *f = calloc(1, sizeof *f);
    if (!f)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the fingerprint");
    if (fingerprint_read(f, &r->machine->topology, "", err) < 0)
        return -1;
    struct jsonw w = jsonw_to(&plan);
    plan_write_json(&j->plan, &w, NULL);
    conditions_write_json(&j->conditions, &conditions);
    if (!buf_ok(&plan) || !buf_ok(&conditions))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the plan");
    const struct run_restore row = {.id = j->id,
                                    .created_ms = j->created_ms,
                                    .started_ms = j->started_ms,
                                    .spec = &j->spec,
                                    .node = r->machine->hostname,
                                    .plan_json = buf_text(&plan),
                                    .conditions_json = buf_text(&conditions),
                                    .fingerprint = f,
                                    .topology_xml = r->machine->topology_xml};
    return put(r->store, &row, err);
}

static int put_started(struct store *s, const struct run_restore *row, struct err *err)
{
    return store_run_started(s, row->id, row->plan_json, row->conditions_json, row->fingerprint,
                             row->topology_xml, err);
}

static int mark_started(struct runner *r, struct job *j, struct err *err)
{
    struct run run CLEANUP(run_fini) = {0};
    if (with_row(r, j, put_started, err) < 0 || store_run_get(r->store, j->id, &run, err) < 0)
        return -1;
    j->started_ms = run.started_ms;
    return 0;
}

static int begin(struct runner *r, struct job *j, struct err *err)
{
    if (admitter_begin(r->admitter, &j->plan, j->spec.force, err) < 0)
        return -1;
    j->lock = admitter_lock(r->admitter);
    if (mark_started(r, j, err) == 0)
        return 0;
    admitter_end(r->admitter);
    return -1;
}

static struct job *make_job(struct runner *r, int64_t id, struct err *err)
{
    struct job *j = job_new(r->loop, err);
    struct run run CLEANUP(run_fini) = {0};
    if (!j)
        return NULL;
    j->id = id;
    j->on_progress = job_progressed;
    j->on_over = job_is_over;
    j->ctx = r;
    if (store_run_get(r->store, id, &run, err) == 0) {
        j->spec = run.spec;
        j->created_ms = run.created_ms;
        if (check(r, &j->spec, &j->plan, true, err) == 0) {
            j->account = r->account;
            add_findings(r, j);
            if (job_prepare(j, r->run_dir, &r->paths, err) == 0 && begin(r, j, err) == 0)
                return j;
        }
    }
    job_free(j);
    return NULL;
}

static void could_not_start(struct runner *r, int64_t id, const struct err *why)
{
    struct err err;
    bool no_store = why->code == ERR_STORAGE || why->code == ERR_DAMAGED;
    enum run_state state = why->code == ERR_TIMEOUT ? RUN_CANCELED : RUN_FAILED;
    if (no_store || finish_early(r, id, state, why, &err) < 0) {
        log_error("run.start", why);
        loop_timer_set(r->retry, RETRY_MS);
        return;
    }
    loop_timer_set(r->kick, 0);
}

// --- waiting for the node

static struct wait *wait_find(struct runner *r, int64_t id)
{
    for (int i = 0; i < r->n_waits; i++)
        if (r->waits[i].run_id == id)
            return &r->waits[i];
    return NULL;
}

static void wait_forget(struct runner *r, int64_t id)
{
    struct wait *w = wait_find(r, id);
    if (w)
        *w = r->waits[--r->n_waits];
}

// From now, or after a restart what is left of the time by the wall.
static struct wait *wait_add(struct runner *r, const struct run *run)
{
    int64_t left = run->created_ms + run->spec.queue_s * 1000 - clock_wall_ms();
    int64_t most = run->spec.queue_s * 1000;
    if (r->n_waits == RUNNER_QUEUE_MAX)
        return NULL;
    struct wait *w = &r->waits[r->n_waits++];
    *w = (struct wait){.run_id = run->id, .kind = ADMISSION_KINDS};
    w->until_ms = clock_mono_ms() + (left < 0 ? 0 : left < most ? left : most);
    return w;
}

// True: the run that could not start for `why` stays in the queue. *next_ms: when to look again.
static bool goes_on_waiting(struct runner *r, int64_t id, struct err *why, int64_t *next_ms)
{
    struct run run CLEANUP(run_fini) = {0};
    int64_t now_ms = clock_mono_ms();
    const struct blocker *b = &r->admission.list[0];
    if (!admission_may_pass(&r->admission) || store_run_get(r->store, id, &run, NULL) < 0 ||
        !run.spec.queue_s)
        return false;
    struct wait *w = wait_find(r, id);
    w = w ? w : wait_add(r, &run);
    if (!w)
        return false;
    snprintf(w->text, sizeof w->text, "%s", b->text);
    if (now_ms >= w->until_ms) {
        err_set(why, ERR_TIMEOUT, "queue_s", "the node was not free within %" PRId64 " s: %s",
                run.spec.queue_s, b->text);
        return false;
    }
    if (w->kind != b->kind) {
        w->kind = b->kind;
        emit(r, id, EVENT_STATE, false);
        w = wait_find(r, id); // who was told may have canceled it
    }
    if (w && w->until_ms - now_ms < *next_ms)
        *next_ms = w->until_ms - now_ms;
    return true;
}

static void look_at_others(void *ctx, uint32_t events)
{
    struct runner *r = ctx;
    struct blocker b;
    struct err why = {0};
    (void)events;
    if (!r->job || r->over)
        return;
    loop_timer_set(r->look, ADMITTER_LOOK_MS);
    if (!admitter_disturbs(r->admitter, &b))
        return;
    loop_timer_set(r->look, -1);
    if (admitter_action(r->admitter, ADMIT_DISTURBING) == POLICY_WARN) {
        conditions_add(&r->job->conditions, "disturbing: %s", b.text);
        return;
    }
    err_set(&why, ERR_BUSY, "", "stopped, because it disturbed others: %s (limit %.0f %%)", b.text,
            b.limit);
    log_event(LOG_LVL_WARN, "run.disturbs", "id=%" PRId64 " text=\"%s\"", r->job->id, b.text);
    job_stop(r->job, &why);
}

// --- the queue

static void start(struct runner *r)
{
    int64_t id = r->job->id;
    wait_forget(r, id);
    log_event(LOG_LVL_INFO, "run.started", "id=%" PRId64 " ranks=%d account=%s", id,
              r->job->plan.n_ranks, r->job->account.name);
    emit(r, id, EVENT_STATE, false);
    if (admitter_action(r->admitter, ADMIT_DISTURBING) != POLICY_IGNORE)
        loop_timer_set(r->look, ADMITTER_LOOK_MS);
    if (job_start(r->job, &r->job->error) < 0)
        job_is_over(r); // job_free ends what did start
}

// The first run of the queue that may start. Those before it that wait for the node go on waiting:
// they want other CPUs, or more memory.
static int next_job(struct runner *r, int64_t *next_ms, struct err *err)
{
    int64_t id = 0;
    for (int found; (found = store_run_next_queued(r->store, id, &id, err)) != 0;) {
        if (found < 0)
            return -1;
        r->job = make_job(r, id, err);
        if (r->job)
            return 1;
        if (goes_on_waiting(r, id, err, next_ms))
            continue;
        wait_forget(r, id);
        could_not_start(r, id, err);
        return 1;
    }
    return 0;
}

static void start_next(void *ctx, uint32_t events)
{
    struct runner *r = ctx;
    struct err err = {0};
    int64_t next_ms = WAIT_LOOK_MS;
    (void)events;
    if (!settle(r) || r->job)
        return;
    int found = next_job(r, &next_ms, &err);
    loop_timer_set(r->recheck, !r->job && r->n_waits ? next_ms : -1);
    if (found < 0) {
        log_error("queue", &err);
        loop_timer_set(r->retry, RETRY_MS);
    }
    if (found == 0 && r->unfilled)
        loop_timer_set(r->fill, 0);
    if (r->job)
        start(r);
}

// 1: one was filled, 0: none is left, -1: not now. A run that cannot be read must not stop those
// behind it: it counts as one without metrics.
static int fill_one(struct runner *r, struct err *err)
{
    int64_t id;
    int found = store_run_without_metrics(r->store, METRICS_VERSION, &id, err);
    if (found <= 0 || metrics_fill(r->store, r->machine, id, err) == 0)
        return found;
    if (err->code == ERR_NO_MEMORY)
        return -1;
    log_error("run.metrics", err);
    return store_run_no_metrics(r->store, METRICS_VERSION, id, err) < 0 ? -1 : 1;
}

static void fill_some(void *ctx, uint32_t events)
{
    struct runner *r = ctx;
    struct err err = {0};
    int64_t end = clock_mono_ms() + FILL_STEP_MS;
    int more = 1;
    (void)events;
    if (r->job)
        return; // goes on when it is over: start_next
    while (more > 0 && clock_mono_ms() < end) {
        more = fill_one(r, &err);
        r->filled += more > 0;
    }
    r->unfilled = more != 0;
    if (!more && r->filled) {
        log_event(LOG_LVL_INFO, "metrics.filled", "runs=%" PRId64, r->filled);
        r->filled = 0;
    }
    if (more < 0)
        log_error("run.metrics", &err);
    if (more)
        loop_timer_set(r->fill, more > 0 ? FILL_STEP_MS : RETRY_MS);
}

void runner_fill_metrics(struct runner *r)
{
    r->unfilled = true;
    if (r->started && !r->job)
        loop_timer_set(r->fill, 0);
}

int64_t runner_finished(const struct runner *r, enum run_state state)
{
    return r->finished[state];
}

// Orphans of a killed supervisor come to us (the daemon is a subreaper) and are only buried here.
static void bury(void *ctx, uint32_t events)
{
    (void)ctx;
    (void)events;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

// --- life of the runner

static int make_admitter(struct runner *r, const struct policy *given, struct err *err)
{
    struct policy policy;
    policy_defaults(&policy);
    r->admitter = admitter_new(given ? given : &policy, &r->machine->topology, "", err);
    return r->admitter ? 0 : -1;
}

void runner_policy(struct runner *r, const struct policy *p)
{
    admitter_policy(r->admitter, p);
}

static int init(struct runner *r, const struct runner_config *c, struct err *err)
{
    const char *user = c->job_user;
    snprintf(r->run_dir, sizeof r->run_dir, "%s", c->run_dir);
    snprintf(r->job_user, sizeof r->job_user, "%s", user ? user : "");
    struct err later;
    if (run_dir_base_make(c->run_dir, err) < 0 || make_admitter(r, c->policy, err) < 0)
        return -1;
    if (find_account(r, NULL, &later) < 0 && later.code == ERR_USAGE) {
        *err = later;
        return -1;
    }
    run_groups_open(&r->groups, "");
    if (need_paths(r, &later) < 0)
        log_error("runner.programs", &later); // tried again with each run
    r->kick = loop_timer_new(r->loop, start_next, r, err);
    r->retry = r->kick ? loop_timer_new(r->loop, start_next, r, err) : NULL;
    r->fill = r->retry ? loop_timer_new(r->loop, fill_some, r, err) : NULL;
    r->recheck = r->fill ? loop_timer_new(r->loop, start_next, r, err) : NULL;
    r->look = r->recheck ? loop_timer_new(r->loop, look_at_others, r, err) : NULL;
    r->children = r->look ? loop_watch_signal(r->loop, SIGCHLD, bury, r, err) : NULL;
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
    *r = (struct runner){.loop = l, .store = s, .machine = m};
    if (init(r, c, err) == 0)
        return r;
    runner_free(r);
    return NULL;
}

void runner_free(struct runner *r)
{
    if (!r)
        return;
    if (r->over)
        settle(r); // a last try
    job_free(r->job);
    loop_unwatch(r->children);
    loop_timer_free(r->kick);
    loop_timer_free(r->retry);
    loop_timer_free(r->fill);
    loop_timer_free(r->recheck);
    loop_timer_free(r->look);
    admitter_free(r->admitter);
    account_forget_copy(&r->paths, r->run_dir);
    for (struct runner_watch *w = r->watches; w; w = w->next)
        w->dead = true;
    drop_dead_watches(r);
    free(r);
}

int runner_start(struct runner *r, struct err *err)
{
    int64_t lost = 0;
    run_dir_sweep(r->run_dir);
    if (store_run_interrupt_all(r->store, "numaprobed ended while this run was going on", &lost,
                                err) < 0)
        return -1;
    if (lost > 0)
        log_event(LOG_LVL_WARN, "runner.interrupted", "runs=%" PRId64, lost);
    r->started = true;
    r->unfilled = true; // perhaps: one look will tell
    loop_timer_set(r->kick, 0);
    return 0;
}

// --- requests

int runner_dry_run(struct runner *r, const struct spec *s, struct plan *p, struct buf *command,
                   struct admission *a, struct err *err)
{
    struct plan got CLEANUP(plan_fini) = {0};
    struct launch l CLEANUP(launch_fini) = {0};
    char dir[400];
    if (check_or_wait(r, s, &got, err) < 0)
        return -1;
    snprintf(dir, sizeof dir, "%s/RUN", r->run_dir);
    if (launch_make(&l, &r->paths, &got, s, dir, "NONCE", r->account.root, err) < 0)
        return -1;
    launch_write_line(&l, command);
    *a = r->admission;
    *p = got;
    got = (struct plan){0};
    return 0;
}

int runner_available(struct runner *r, const struct spec *s, struct admission *a, struct err *err)
{
    struct plan plan CLEANUP(plan_fini) = {0};
    *a = (struct admission){0};
    if (look_at_machine(r, err) < 0 || plan_make(&plan, s, &r->machine->topology, err) < 0)
        return -1;
    return r->job ? 0 : admitter_check(r->admitter, &plan, s->force, a, err);
}

const struct admission *runner_refusal(const struct runner *r)
{
    return &r->admission;
}

int runner_submit(struct runner *r, const struct spec *s, const char *key, int64_t *id, bool *again,
                  struct err *err)
{
    int64_t waiting = 0;
    settle(r);
    r->admission = (struct admission){0};
    int known = key ? store_run_find(r->store, s, key, id, err) : 0;
    if (known != 0) {
        *again = known > 0;
        return known > 0 ? 0 : -1;
    }
    if (check_or_wait(r, s, NULL, err) < 0 || store_queue_length(r->store, &waiting, err) < 0)
        return -1;
    if (waiting >= RUNNER_QUEUE_MAX)
        return err_set(err, ERR_QUEUE_FULL, "", "%d runs are waiting already; try again later",
                       RUNNER_QUEUE_MAX);
    if (store_run_insert(r->store, s, r->machine->hostname, key, id, again, err) < 0)
        return -1;
    emit(r, *id, EVENT_STATE, false);
    if (r->started)
        loop_timer_set(r->kick, 0);
    return 0;
}

int runner_cancel(struct runner *r, int64_t id, struct err *err)
{
    struct run run CLEANUP(run_fini) = {0};
    settle(r);
    if (store_run_get(r->store, id, &run, err) < 0)
        return -1;
    if (r->job && r->job->id == id && !r->over) {
        job_cancel(r->job);
        return 0;
    }
    if (run.state != RUN_QUEUED)
        return err_set(err, ERR_CONFLICT, "", "run %" PRId64 " is over (%s)", id,
                       run_state_names[run.state]);
    struct err why = {.text = "canceled before it started"};
    wait_forget(r, id);
    return finish_early(r, id, RUN_CANCELED, &why, err);
}

int runner_run_get(struct runner *r, int64_t id, struct run *out, struct err *err)
{
    if (r->over && r->job->id == id)
        settle(r);
    if (store_run_get(r->store, id, out, err) < 0)
        return -1;
    const struct wait *w = wait_find(r, id);
    if (w) {
        snprintf(out->waiting, sizeof out->waiting, "%s", w->text);
        out->wait_until_ms = clock_wall_ms() + w->until_ms - clock_mono_ms();
    }
    if (out->state != RUN_RUNNING || !r->job || r->job->id != id)
        return 0;
    out->progress = r->job->records.progress;
    out->n_ranks = r->job->plan.n_ranks;
    snprintf(out->method, sizeof out->method, "%s", r->job->records.hello.method);
    return 0;
}

void runner_disturbed(struct runner *r, const char *what)
{
    struct conditions *c = r->job ? &r->job->conditions : NULL;
    for (int i = 0; c && i < c->n; i++)
        if (strstr(c->text[i], what))
            return;
    if (c)
        conditions_add(c, "DISTURBED: %s", what);
}

void runner_store_replaced(struct runner *r)
{
    struct err err;
    if (r->job && with_row(r, r->job, store_run_restore, &err) < 0)
        log_error("run.restore", &err);
    if (r->started)
        loop_timer_set(r->kick, 0);
}

bool runner_busy(const struct runner *r)
{
    return r->job != NULL;
}

const char *runner_account(const struct runner *r)
{
    return r->account.text;
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

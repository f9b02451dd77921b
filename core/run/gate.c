// SPDX-License-Identifier: Apache-2.0
// A request and a run that starts pass the same checks in the same order: plan, admission, programs
// and account, launcher. The first that fails is the answer; a dry run only notes what admission
// says.
#include "core/run/gate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/launch/choice.h"
#include "core/launch/planner.h"
#include "core/run/dir.h"
#include "model/budget.h"
#include "model/estimate.h"
#include "model/workload.h"

static void take_look(struct gate *g)
{
    const struct launch_found *f = launch_look_found(g->look);
    if (*f->account.text)
        g->account = f->account;
    if (f->err.code != ERR_NONE)
        return;
    if (f->account.root && !*g->paths.bench)
        log_event(LOG_LVL_WARN, "runner.root",
                  "text=\"measuring processes run as root, as --job-user says\"");
    if (strcmp(g->paths.mpi_why, f->paths.mpi_why) != 0)
        log_event(LOG_LVL_WARN, "runner.mpi", "text=\"%s\"",
                  *f->paths.mpi_why ? log_quote(f->paths.mpi_why).text
                                    : "mpirun can be used again");
    g->paths = f->paths;
}

static void looked(void *ctx)
{
    struct gate *g = ctx;
    take_look(g);
    g->on_look(g->ctx);
}

bool gate_look(struct gate *g, int64_t fresh_ms)
{
    struct err err;
    if (launch_look_age_ms(g->look) < fresh_ms)
        return false;
    if (run_dir_base_make(g->run_dir, &err) < 0)
        log_error("runner.run_dir", &err);
    return launch_look_begin(g->look);
}

void gate_doubt(struct gate *g)
{
    launch_look_doubt(g->look);
}

int gate_ready(const struct gate *g, struct err *err)
{
    const struct err *why = &launch_look_found(g->look)->err;
    if (why->code == ERR_NONE)
        return 0;
    *err = *why;
    return -1;
}

// Where nothing could start so far, what was missing may be there now: a request waits for a look.
static int make_ready(struct gate *g, struct err *err)
{
    if (gate_ready(g, err) == 0)
        return 0;
    if (gate_look(g, 0)) {
        launch_look_wait(g->look, GATE_WAIT_MS);
        looked(g); // the queue may have waited for the same look
    }
    return gate_ready(g, err);
}

// The account is named in any case: whether it can run the programs, the next look finds out.
static int name_account(struct gate *g, const char *job_user, struct err *err)
{
    struct err later;
    if (account_find(&g->account, job_user, g->run_dir, NULL, &later) == 0 ||
        later.code != ERR_USAGE)
        return 0;
    *err = later;
    return -1;
}

int gate_init(struct gate *g, struct loop *l, struct machine *m, const struct runner_config *c,
              void (*on_look)(void *ctx), void *ctx, struct err *err)
{
    struct policy policy;
    *g = (struct gate){.machine = m, .on_look = on_look, .ctx = ctx};
    snprintf(g->run_dir, sizeof g->run_dir, "%s", c->run_dir);
    policy_defaults(&policy);
    g->monitor = monitor_new(c->policy ? c->policy : &policy, &m->topology, "", err);
    if (!g->monitor || name_account(g, c->job_user, err) < 0)
        return -1;
    g->look = launch_look_new(l, c->run_dir, c->job_user ? c->job_user : "", looked, g, err);
    if (!g->look)
        return -1;
    if (gate_look(g, 0)) // no client is served yet
        launch_look_wait(g->look, LAUNCH_LOOK_MS);
    take_look(g);
    return 0;
}

void gate_fini(struct gate *g)
{
    launch_look_free(g->look);
    monitor_free(g->monitor);
    account_forget_copy(&g->paths, g->run_dir);
}

// Whether the node must be free for the plan, is looked at all the same, or does not matter now:
// then the plan must fit the node once it is free.
enum admit { ADMIT_MUST, ADMIT_LOOK, ADMIT_ANY };

static int admit(struct gate *g, const struct spec *s, const struct plan *p, enum admit how,
                 struct err *err)
{
    if (how == ADMIT_ANY && !monitor_is_running(g->monitor))
        return 0;
    if (monitor_check(g->monitor, p, s->force, g->within, &g->admission, err) < 0)
        return -1;
    return how == ADMIT_LOOK ? 0 : admission_error(&g->admission, err);
}

// The automatic limit is for runs that hang: twice the estimate, because a busy node takes longer.
static int64_t time_limit_of(const struct spec *s, double estimate)
{
    enum { LEAST_S = 900, MOST_S = 14400, TIMES = 2 };
    if (s->timeout_s)
        return s->timeout_s;
    return (int64_t)fmin(MOST_S, fmax(LEAST_S, ceil(TIMES * estimate)));
}

// What would be ended at its time limit is refused before it starts.
static int check_time(const struct plan *p, struct err *err)
{
    double unused = estimate_free_s((double)p->timeout_s, p->n_ranks);
    int digits = p->estimate_s < 10;
    char kept[16];
    if (p->estimate_s + unused <= (double)p->timeout_s)
        return 0;
    snprintf(kept, sizeof kept, unused < 10 ? "%.2g" : "%.0f", unused);
    return err_set(err, ERR_INVALID, "timeout_s",
                   "is %" PRId64 " s, but the run takes about %.*f s, and %s s of the limit are "
                   "kept for starting and ending it: raise it, give a budget, or measure less "
                   "(quick, fewer ranks, sizes or targets)",
                   p->timeout_s, digits, digits ? p->estimate_s : ceil(p->estimate_s), kept);
}

static int gate_estimate(const struct spec *s, struct plan *p, struct workload *w, struct err *err)
{
    w->processes = p->processes;
    p->past = w->past;
    p->estimate_s = estimate_s(s, w);
    if (budget_fit(p, s, w, err) < 0)
        return -1;
    struct spec fitted = *s;
    budget_apply(p, &fitted);
    p->estimate_most_s = estimate_most_s(&fitted, w);
    p->timeout_s = time_limit_of(s, p->estimate_most_s);
    return check_time(p, err);
}

// The machine, or as much of it as the job may use that requests the run.
struct bounds {
    struct topology topology;
    void *cpus, *nodes; // owned copies; NULL: none was needed
};

static void bounds_fini(struct bounds *b)
{
    free(b->cpus);
    free(b->nodes);
}

static void *copy_of(const void *list, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    return copy ? memcpy(copy, list, bytes) : NULL;
}

static int bounds_make(struct bounds *b, const struct gate *g, struct err *err)
{
    const struct batch_place *within = g->within;
    struct topology *t = &b->topology;
    *b = (struct bounds){.topology = g->machine->topology};
    if (!within)
        return 0;
    b->cpus = t->cpus = copy_of(t->cpus, (size_t)t->n_cpus * sizeof *t->cpus);
    b->nodes = t->nodes = copy_of(t->nodes, (size_t)t->n_nodes * sizeof *t->nodes);
    if (!b->cpus || !b->nodes) {
        bounds_fini(b);
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the bounds of a job");
    }
    for (int i = 0; i < t->n_cpus; i++)
        t->cpus[i].allowed = t->cpus[i].allowed && id_set_has(&within->cpus, t->cpus[i].os);
    for (int i = 0; i < t->n_nodes; i++)
        t->nodes[i].allowed = t->nodes[i].allowed && id_set_has(&within->mems, t->nodes[i].os);
    return 0;
}

// A job that has ended gives its CPUs to the next one.
static int check_job(const struct gate *g, struct err *err)
{
    return !g->within || batch_place_exists(g->within, "")
               ? 0
               : err_set(err, ERR_UNAVAILABLE, "", "the job of %s that requested the run has ended",
                         g->within->job.manager);
}

static int check_on(struct gate *g, const struct topology *t, const struct spec *s,
                    struct plan *plan, enum admit how, struct err *err)
{
    struct plan got CLEANUP(plan_fini) = {0};
    struct workload w CLEANUP(workload_fini) = {0};
    if (plan_make(&got, s, t, err) < 0 || admit(g, s, &got, how, err) < 0 ||
        workload_make(&w, s, &got, t, err) < 0)
        return -1;
    estimate_learn(&w, &g->past);
    if (gate_estimate(s, &got, &w, err) < 0 || make_ready(g, err) < 0)
        return -1;
    if (launch_choose(&got, &g->paths, s, err) < 0) {
        if (how != ADMIT_ANY) // what is missing may be fixed: the next request will know
            gate_look(g, GATE_FRESH_MS);
        return -1;
    }
    if (gate_estimate(s, &got, &w, err) < 0) // now the launcher is known
        return -1;
    if (plan) {
        *plan = got;
        got = (struct plan){0};
    }
    return 0;
}

static int check(struct gate *g, const struct spec *s, struct plan *plan, enum admit how,
                 struct err *err)
{
    struct bounds b CLEANUP(bounds_fini) = {0};
    g->admission = (struct admission){0};
    return check_job(g, err) < 0 || bounds_make(&b, g, err) < 0
               ? -1
               : check_on(g, &b.topology, s, plan, how, err);
}

int gate_check(struct gate *g, const struct spec *s, struct plan *plan, bool now, struct err *err)
{
    return check(g, s, plan, now ? ADMIT_MUST : ADMIT_ANY, err);
}

int gate_check_or_wait(struct gate *g, const struct spec *s, struct plan *plan, bool now,
                       struct err *err)
{
    struct admission why;
    if (gate_check(g, s, plan, now, err) == 0)
        return 0;
    why = g->admission;
    if (!s->queue_s || !admission_may_pass(&why) || gate_check(g, s, plan, false, err) < 0)
        return -1;
    g->admission = why;
    return 0;
}

int gate_dry_run(struct gate *g, const struct spec *s, bool now, struct plan *plan,
                 struct buf *command, struct err *err)
{
    struct plan got CLEANUP(plan_fini) = {0};
    struct launch l CLEANUP(launch_fini) = {0};
    char dir[400];
    enum admit how = now || monitor_is_running(g->monitor) ? ADMIT_LOOK : ADMIT_ANY;
    if (check(g, s, &got, how, err) < 0)
        return -1;
    snprintf(dir, sizeof dir, "%s/RUN", g->run_dir);
    struct spec measured = *s;
    budget_apply(&got, &measured);
    if (launch_make(&l, &g->paths, &got, &measured, dir, "NONCE", g->account.root, err) < 0)
        return -1;
    launch_write_line(&l, command);
    *plan = got;
    got = (struct plan){0};
    return 0;
}

int gate_available(struct gate *g, const struct spec *s, bool now, struct admission *a,
                   struct err *err)
{
    struct plan plan CLEANUP(plan_fini) = {0};
    struct bounds b CLEANUP(bounds_fini) = {0};
    *a = (struct admission){0};
    if (bounds_make(&b, g, err) < 0 || plan_make(&plan, s, &b.topology, err) < 0)
        return -1;
    return now || monitor_is_running(g->monitor)
               ? monitor_check(g->monitor, &plan, s->force, g->within, a, err)
               : 0;
}

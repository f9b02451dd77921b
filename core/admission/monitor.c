// SPDX-License-Identifier: Apache-2.0
// Readings in time. A run of ours stays in the averages of the kernel for a while; what it can have
// left there at most decays as they do, and only what exceeds it is another process's. A reading
// from before our run says nothing about others, so none is kept across it.
#include "core/admission/monitor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/admission/checks.h"
#include "core/os/host_lock.h"

// Time constants of the kernel's averages.
#define LOAD_MS 60000.0
#define PRESSURE_MS 10000.0

enum {
    RENEW_MS = 5000, // an earlier reading is replaced when it is older
    FRESH_MS = 50,   // many questions at once are answered from one reading
};

// What an average that decays has of ours, at most.
struct own_share {
    double value, active;
    int64_t at_ms;
};

struct monitor {
    struct policy policy;
    const struct topology *topology;
    char root[256];
    struct readings now, earlier;
    bool have_now, have_earlier;
    int lock; // while a run is running; negative: not held
    char lock_path[400];
    bool running;
    int64_t ended_ms; // of the last run; -1: none yet
    struct own_share load, pressure;
    // Of the current run.
    int *cpus; // owned
    int n_cpus, n_tasks;
    struct readings begin;
    bool have_begin;
    struct group_readings before, last; // before: a first look, to know what is usual
    bool was_disturbing;
};

static double own_now(const struct own_share *s, double tau_ms, int64_t now_ms)
{
    return s->active + (s->value - s->active) * exp(-(double)(now_ms - s->at_ms) / tau_ms);
}

static void own_set(struct own_share *s, double tau_ms, double active, int64_t now_ms)
{
    *s = (struct own_share){own_now(s, tau_ms, now_ms), active, now_ms};
}

struct monitor *monitor_new(const struct policy *p, const struct topology *t, const char *root,
                            struct err *err)
{
    struct monitor *a = calloc(1, sizeof *a);
    if (!a) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for admission");
        return NULL;
    }
    *a = (struct monitor){.policy = *p, .topology = t, .lock = HOST_LOCK_NONE, .ended_ms = -1};
    snprintf(a->root, sizeof a->root, "%s", root);
    return a;
}

static void forget_readings(struct monitor *a)
{
    readings_fini(&a->now);
    readings_fini(&a->earlier);
    a->have_now = a->have_earlier = false;
}

static void forget_run(struct monitor *a)
{
    if (a->lock >= 0)
        close(a->lock);
    a->lock = HOST_LOCK_NONE;
    free(a->cpus);
    a->cpus = NULL;
    readings_fini(&a->begin);
    a->have_begin = false;
}

void monitor_free(struct monitor *a)
{
    if (!a)
        return;
    forget_run(a);
    forget_readings(a);
    free(a);
}

void monitor_set_policy(struct monitor *a, const struct policy *p)
{
    a->policy = *p;
}

enum policy_action monitor_action(const struct monitor *a, enum admission_kind kind)
{
    return a->policy.rule[kind].action;
}

static void lock_path(const struct monitor *a, char *out, size_t room)
{
    snprintf(out, room, "%s%s", a->root, a->policy.host_lock);
}

static int take_lock(const struct monitor *a, const char *path)
{
    return strcmp(a->policy.host_lock, "none") == 0 ? HOST_LOCK_NONE : host_lock_take(path);
}

// Taken and given back at once: only to see whether another daemon has it.
static void look_at_lock(const struct monitor *a, struct admission_input *in)
{
    if (a->policy.rule[ADMIT_OTHER_INSTANCE].action == POLICY_IGNORE ||
        strcmp(a->policy.host_lock, "none") == 0)
        return;
    char path[sizeof a->lock_path];
    lock_path(a, path, sizeof path);
    CLEANUP_FD int lock = take_lock(a, path);
    in->other_instance = lock == HOST_LOCK_TAKEN;
    in->no_lock = lock == HOST_LOCK_NONE;
}

static int *cpus_of(const struct plan *p)
{
    int *cpus = calloc((size_t)p->n_ranks + 1, sizeof *cpus);
    for (int i = 0; cpus && i < p->n_ranks; i++)
        cpus[i] = p->ranks[i].cpu;
    return cpus;
}

static void set_local_time(struct admission_input *in)
{
    const struct clock_local now = clock_local_of(clock_wall_ms());
    in->day = now.day;
    in->minute = now.minute;
}

// The last reading becomes the earlier one, unless that is still young.
static int monitor_look(struct monitor *a, const struct plan *p, int64_t now_ms, struct err *err)
{
    struct readings got;
    CLEANUP_MEM int *cpus = cpus_of(p);
    if (a->have_now && now_ms - a->now.at_ms < FRESH_MS)
        return 0;
    if (!cpus)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a list of CPUs");
    if (readings_take(&got, a->root, now_ms, cpus, p->n_ranks, err) < 0)
        return -1;
    if (a->have_now && (!a->have_earlier || now_ms - a->earlier.at_ms >= RENEW_MS)) {
        readings_fini(&a->earlier);
        a->earlier = a->now;
        a->have_earlier = true;
    } else {
        readings_fini(&a->now);
    }
    a->now = got;
    a->have_now = true;
    return 0;
}

static bool monitor_counts(const struct monitor *a)
{
    int64_t age = a->now.at_ms - a->earlier.at_ms;
    return a->have_earlier && age >= ADMISSION_WINDOW_LEAST_MS && age <= ADMISSION_WINDOW_MOST_MS;
}

int monitor_check(struct monitor *a, const struct plan *p, bool force,
                  const struct batch_place *within, struct admission *out, struct err *err)
{
    int64_t now_ms = clock_mono_ms();
    struct admission_input in = {.policy = &a->policy,
                                 .plan = p,
                                 .topology = a->topology,
                                 .root = a->root,
                                 .force = force,
                                 .within = within,
                                 .idle_ms = a->ended_ms < 0 ? -1 : now_ms - a->ended_ms};
    if (!a->running) {
        if (monitor_look(a, p, now_ms, err) < 0)
            return -1;
        in.now = &a->now;
        in.earlier = monitor_counts(a) ? &a->earlier : NULL;
        in.own_load = own_now(&a->load, LOAD_MS, now_ms);
        in.own_pressure = own_now(&a->pressure, PRESSURE_MS, now_ms);
        look_at_lock(a, &in);
        set_local_time(&in);
    }
    admission_judge(out, &in);
    return 0;
}

// --- a run of ours

int monitor_begin(struct monitor *a, const struct plan *p, bool force, struct err *err)
{
    int64_t now_ms = clock_mono_ms();
    forget_run(a);
    lock_path(a, a->lock_path, sizeof a->lock_path);
    a->lock = take_lock(a, a->lock_path);
    if (a->lock == HOST_LOCK_TAKEN && !force &&
        monitor_action(a, ADMIT_OTHER_INSTANCE) == POLICY_REFUSE)
        return err_set(err, ERR_BUSY, "", "another numaprobed measures on this host (it holds %s)",
                       a->policy.host_lock);
    a->cpus = cpus_of(p);
    a->n_cpus = a->cpus ? p->n_ranks : 0;
    a->running = true;
    a->was_disturbing = false;
    // Ranks, as many that make a load, mpirun and the supervisor.
    a->n_tasks = 2 * p->n_ranks + 2;
    own_set(&a->load, LOAD_MS, a->n_tasks, now_ms);
    own_set(&a->pressure, PRESSURE_MS, 100, now_ms);
    a->have_begin = readings_take(&a->begin, a->root, now_ms, a->cpus, a->n_cpus, NULL) == 0;
    readings_take_groups(&a->before, a->root, now_ms);
    a->last = a->before;
    forget_readings(a);
    return 0;
}

int monitor_lock(const struct monitor *a)
{
    return a->lock >= 0 ? a->lock : -1;
}

void monitor_end(struct monitor *a)
{
    int64_t now_ms = clock_mono_ms();
    if (!a->running)
        return;
    own_set(&a->load, LOAD_MS, 0, now_ms);
    own_set(&a->pressure, PRESSURE_MS, 0, now_ms);
    a->ended_ms = now_ms;
    a->running = false;
    forget_run(a);
}

bool monitor_is_running(const struct monitor *a)
{
    return a->running;
}

static const struct group_pressure *same_group(const struct group_readings *r, uint64_t key)
{
    for (int i = 0; i < r->n; i++)
        if (r->group[i].key == key)
            return &r->group[i];
    return NULL;
}

static bool over(struct blocker *b, double share, double limit, const char *group, const char *what)
{
    if (share <= limit)
        return false;
    *b = (struct blocker){.kind = ADMIT_DISTURBING, .measured = share, .limit = limit};
    snprintf(b->text, sizeof b->text, "tasks waited for %s %.0f %% of the time while it ran", what,
             share);
    if (group)
        snprintf(b->named, sizeof b->named, "%s waited for %s %.0f %% of the time while it ran",
                 group, what, share);
    return true;
}

// What is above what was usual before the run began: a group that its own quota holds back waits
// with and without us.
static bool groups_wait(const struct monitor *a, const struct group_readings *now,
                        struct blocker *b)
{
    double span_us = (double)(now->at_ms - a->last.at_ms) * 1000;
    double limit = a->policy.rule[ADMIT_DISTURBING].limit;
    for (int i = 0; i < now->n && span_us > 0; i++) {
        const struct group_pressure *g = &now->group[i];
        const struct group_pressure *was = same_group(&a->last, g->key);
        const struct group_pressure *before = same_group(&a->before, g->key);
        double share = was ? 100 * (double)(g->total_us - was->total_us) / span_us : 0;
        share -= before ? before->usual : 0;
        if (over(b, share, limit, g->name, "a CPU"))
            return true;
    }
    return false;
}

static bool memory_short(const struct monitor *a, const struct group_readings *now,
                         struct blocker *b)
{
    double span_us = (double)(now->at_ms - a->last.at_ms) * 1000;
    if (now->memory_us < 0 || a->last.memory_us < 0 || span_us <= 0)
        return false;
    double share = 100 * (double)(now->memory_us - a->last.memory_us) / span_us;
    return over(b, share - a->before.memory_usual, a->policy.rule[ADMIT_DISTURBING].limit, NULL,
                "memory");
}

// Where cgroups do not report it: more tasks than CPUs, all the time we looked, means that one
// waits.
static bool tasks_wait(const struct monitor *a, const struct group_readings *now, struct blocker *b)
{
    int waiting = now->runnable - a->topology->n_cpus;
    if (now->n || waiting <= 0 || a->n_cpus > a->topology->n_cpus)
        return false;
    *b = (struct blocker){
        .kind = ADMIT_DISTURBING, .measured = 100, .limit = a->policy.rule[ADMIT_DISTURBING].limit};
    snprintf(b->text, sizeof b->text,
             "%d task%s more than there are CPUs wanted to run while it ran", waiting,
             str_plural(waiting));
    return b->measured > b->limit;
}

// Twice in a row: a cron job that starts is no sign of waiting.
bool monitor_disturbs(struct monitor *a, struct blocker *b)
{
    struct group_readings now;
    struct blocker found;
    if (!a->running || monitor_action(a, ADMIT_DISTURBING) == POLICY_IGNORE)
        return false;
    readings_take_groups(&now, a->root, clock_mono_ms());
    bool disturbs = groups_wait(a, &now, &found) || memory_short(a, &now, &found) ||
                    tasks_wait(a, &now, &found);
    bool again = disturbs && a->was_disturbing;
    a->was_disturbing = disturbs;
    a->last = now;
    if (again)
        *b = found;
    return again;
}

// Deleting the lock's file lets another daemon lock a new one.
static bool lost_lock(const struct monitor *a, struct blocker *b)
{
    if (a->lock < 0 || host_lock_is_named(a->lock, a->lock_path))
        return false;
    *b = (struct blocker){.kind = ADMIT_OTHER_INSTANCE, .measured = 1};
    snprintf(b->text, sizeof b->text,
             "%s was deleted or replaced: another numaprobed may have measured as well",
             a->lock_path);
    return true;
}

int monitor_suffered(struct monitor *a, struct blocker *list, int most)
{
    struct readings now CLEANUP(readings_fini) = {0};
    int n = most && lost_lock(a, &list[0]);
    if (!a->running || !a->have_begin ||
        readings_take(&now, a->root, clock_mono_ms(), a->cpus, a->n_cpus, NULL) < 0)
        return n;
    struct admission found;
    const struct admission_input in = {.policy = &a->policy,
                                       .topology = a->topology,
                                       .root = a->root,
                                       .now = &now,
                                       .earlier = &a->begin,
                                       .force = true};
    admission_judge_run(&found, &in);
    for (int i = 0; i < found.n_warnings && n < most; i++)
        list[n++] = found.warnings[i];
    return n;
}

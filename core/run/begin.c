// SPDX-License-Identifier: Apache-2.0
// In order: the row and its plan, the conditions of the node, the cgroup and the directory, the
// host's lock, and last the row as started.
#include "core/run/begin.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/admission/monitor.h"
#include "core/node/checkup.h"
#include "core/run/machine_changes.h"
#include "core/store/retention.h"
#include "model/budget.h"

enum { FINDINGS_MAX = 24 };

static void begin_add_findings(struct job *j, const struct machine *m)
{
    struct finding found[FINDINGS_MAX];
    int n = machine_findings(&m->topology, "", found, FINDINGS_MAX);
    for (int i = 0; i < n; i++) {
        struct condition c;
        condition_set(&c, condition_find(found[i].name), -1, "%s", found[i].text);
        if (found[i].serious && c.severity < SEVERITY_WARNING)
            c.severity = SEVERITY_WARNING;
        if (!found[i].serious && c.severity > SEVERITY_NOTICE)
            c.severity = SEVERITY_NOTICE;
        conditions_put(&j->conditions, &c);
    }
}

static void add_warnings(struct job *j, const struct admission *a)
{
    for (int i = 0; i < a->n_warnings; i++) {
        const struct blocker *b = &a->warnings[i];
        const char *name = admission_kinds[b->kind].name;
        if (b->forced)
            conditions_add(&j->conditions, CONDITION_FORCED, -1, "%s was overruled: %s", name,
                           b->text);
        else
            conditions_add(&j->conditions, condition_find(name), -1, "%s", b->text);
    }
}

static void begin_add_budget(struct job *j)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    budget_describe(&j->plan, &text);
    if (text.len)
        conditions_add(&j->conditions, CONDITION_BUDGET, -1, "to fit the budget of %lld s: %s",
                       (long long)j->spec.budget_s, buf_text(&text));
}

// Without the job's number, which not every reader may see.
static void begin_add_job(struct job *j, const struct batch_place *within)
{
    char cpus[160], mems[80];
    if (!within)
        return;
    str_from_ids(within->cpus.ids, within->cpus.n, cpus, sizeof cpus);
    str_from_ids(within->mems.ids, within->mems.n, mems, sizeof mems);
    conditions_add(&j->conditions, CONDITION_IN_JOB, -1,
                   "requested from inside a job of %s: measured on its CPUs %s and NUMA nodes %s",
                   within->job.manager, *cpus ? cpus : "(all)", *mems ? mems : "(all)");
}

static void begin_add_group(struct job *j, const struct run_groups *groups)
{
    char why[200];
    if (!run_group_make(groups, j->id, admission_plan_bytes(&j->plan), j->group, why))
        conditions_add(&j->conditions, CONDITION_CGROUP, -1, "the run has no cgroup of its own: %s",
                       why);
    else if (!groups->memory)
        conditions_add(&j->conditions, CONDITION_CGROUP, -1,
                       "the run's memory is not limited: its cgroup has no memory controller");
}

// Hands the row of the run to `put`. The facts are those of the plan, which is made just before.
static int with_row(struct job *j, struct store *s, const struct machine *m,
                    int (*put)(struct store *s, const struct run_restore *row, struct err *err),
                    struct err *err)
{
    CLEANUP_BUF struct buf plan = BUF_INIT, conditions = BUF_INIT;
    const struct machine *planned = job_machine(j, m);
    struct jsonw w = jsonw_to(&plan);
    plan_write_json(&j->plan, &w, NULL);
    struct jsonw list = jsonw_to(&conditions);
    conditions_write_json(&j->conditions, &list, NULL);
    if (!buf_ok(&plan) || !buf_ok(&conditions))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the plan");
    const struct run_restore row = {.id = j->id,
                                    .created_ms = j->created_ms,
                                    .started_ms = j->started_ms,
                                    .spec = &j->spec,
                                    .node = m->hostname,
                                    .plan_json = buf_text(&plan),
                                    .conditions_json = buf_text(&conditions),
                                    .fingerprint = &planned->fingerprint,
                                    .topology_xml = planned->topology_xml};
    return put(s, &row, err);
}

int job_restore(struct job *j, struct store *s, const struct machine *m, struct err *err)
{
    return with_row(j, s, m, store_run_restore, err);
}

static int begin_put_started(struct store *s, const struct run_restore *row, struct err *err)
{
    return store_run_started(s, row->id, row->plan_json, row->conditions_json, row->fingerprint,
                             row->topology_xml, err);
}

static int mark_started(struct job *j, struct store *s, const struct machine *m, struct err *err)
{
    struct run run CLEANUP(run_fini) = {0};
    if (with_row(j, s, m, begin_put_started, err) < 0 || store_run_get(s, j->id, &run, err) < 0)
        return -1;
    j->started_ms = run.started_ms;
    return 0;
}

static int lock_and_mark(struct job *j, struct store *s, struct gate *g, struct err *err)
{
    if (monitor_begin(g->monitor, &j->plan, j->spec.force, err) < 0)
        return -1;
    j->lock = monitor_lock(g->monitor);
    if (mark_started(j, s, g->machine, err) == 0)
        return 0;
    monitor_end(g->monitor);
    return -1;
}

int job_begin(struct job *j, struct store *s, struct gate *g, const struct run_groups *groups,
              const struct run *run, struct err *err)
{
    j->id = run->id;
    j->spec = run->spec;
    j->created_ms = run->created_ms;
    if (gate_check(g, &j->spec, &j->plan, true, err) < 0)
        return -1;
    budget_apply(&j->plan, &j->spec); // from here on it is what is measured
    j->account = g->account;
    begin_add_findings(j, g->machine);
    begin_add_job(j, g->within);
    add_warnings(j, &g->admission);
    if (*j->plan.launcher_why)
        conditions_add(&j->conditions, CONDITION_LAUNCHER, -1, "ranks were started without MPI: %s",
                       j->plan.launcher_why);
    begin_add_budget(j);
    begin_add_group(j, groups);
    if (j->account.root)
        conditions_add(&j->conditions, CONDITION_ACCOUNT, -1, "ranks run as %s", j->account.text);
    if (job_prepare(j, g->run_dir, &g->paths, err) < 0)
        return -1;
    return lock_and_mark(j, s, g, err);
}

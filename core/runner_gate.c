// SPDX-License-Identifier: Apache-2.0
#include "core/runner_gate.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/planner.h"

static int find_account(struct gate *g, struct launch_paths *paths, struct err *err)
{
    return account_find(&g->account, *g->job_user ? g->job_user : NULL, g->run_dir, paths, err);
}

int gate_ready(struct gate *g, struct err *err)
{
    struct launch_paths found;
    if (g->have_paths)
        return 0;
    if (launch_find(&found, err) < 0 || find_account(g, &found, err) < 0)
        return -1;
    g->paths = found;
    g->have_paths = true;
    if (g->account.root)
        log_event(LOG_LVL_WARN, "runner.root",
                  "text=\"measuring processes run as root, as told by --job-user\"");
    return 0;
}

int gate_init(struct gate *g, struct machine *m, const struct runner_config *c, struct err *err)
{
    struct policy policy;
    struct err later;
    *g = (struct gate){.machine = m};
    snprintf(g->run_dir, sizeof g->run_dir, "%s", c->run_dir);
    snprintf(g->job_user, sizeof g->job_user, "%s", c->job_user ? c->job_user : "");
    policy_defaults(&policy);
    g->admitter = admitter_new(c->policy ? c->policy : &policy, &m->topology, "", err);
    if (!g->admitter)
        return -1;
    if (find_account(g, NULL, &later) < 0 && later.code == ERR_USAGE) {
        *err = later;
        return -1;
    }
    return 0;
}

void gate_fini(struct gate *g)
{
    admitter_free(g->admitter);
    account_forget_copy(&g->paths, g->run_dir);
}

static int admit(struct gate *g, const struct spec *s, const struct plan *p, struct err *err)
{
    if (admitter_check(g->admitter, p, s->force, &g->admission, err) < 0)
        return -1;
    return admission_error(&g->admission, err);
}

int gate_check(struct gate *g, const struct spec *s, struct plan *plan, bool now, struct err *err)
{
    struct plan got CLEANUP(plan_fini) = {0};
    g->admission = (struct admission){0};
    if (plan_make(&got, s, &g->machine->topology, err) < 0 || (now && admit(g, s, &got, err) < 0) ||
        gate_ready(g, err) < 0 || launch_choose(&got, &g->paths, s, err) < 0)
        return -1;
    if (plan) {
        *plan = got;
        got = (struct plan){0};
    }
    return 0;
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
    if (gate_check_or_wait(g, s, &got, now, err) < 0)
        return -1;
    snprintf(dir, sizeof dir, "%s/RUN", g->run_dir);
    if (launch_make(&l, &g->paths, &got, s, dir, "NONCE", g->account.root, err) < 0)
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
    *a = (struct admission){0};
    if (plan_make(&plan, s, &g->machine->topology, err) < 0)
        return -1;
    return now ? admitter_check(g->admitter, &plan, s->force, a, err) : 0;
}

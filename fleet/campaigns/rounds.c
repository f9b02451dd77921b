// SPDX-License-Identifier: Apache-2.0
// A round of a campaign: it is planned from what is known of its nodes, each look decides what is
// next, and it ends with the campaign or gives way to the next round.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/interned.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "fleet/campaigns/campaigns.h"
#include "fleet/campaigns/parts.h"

enum { LOOK_MOST_MS = 60 * 1000 }; // until a campaign that waits is looked at again

static struct probe_clock clock_of_week(int64_t ms)
{
    const struct clock_local local = clock_local_of(ms);
    return (struct probe_clock){ms, local.day, local.minute};
}

// A plan counts the local minutes of the week. A day of 23 or 25 hours may lie before `at_ms`.
static int64_t local_to_utc(int64_t now_ms, int64_t at_ms)
{
    return at_ms + clock_local_of(now_ms).east_ms - clock_local_of(at_ms).east_ms;
}

// When the node was first refused in this round, also by a collector before: retry_for counts from
// then on.
static int64_t refused_before(const struct campaign *c, const struct campaign_fact *f)
{
    return f->round == c->head.round && !fleet_campaign_node_ended(f->state) ? f->ended_ms : 0;
}

static int nodes_of_facts(const struct campaign *c, struct probe_node *nodes, struct err *err)
{
    struct interned classes = {0}, groups = {0};
    int rc = 0;
    for (int i = 0; i < c->nodes.n && rc == 0; i++) {
        const struct campaign_fact *f = &c->facts[i];
        bool now = f->round == c->head.round && f->state > PROBE_PENDING && f->state < PROBE_STATES;
        nodes[i] = (struct probe_node){.class = interned_add(&classes, f->class, err),
                                       .group = interned_add(&groups, f->group, err),
                                       .newest_ms = f->newest_ms,
                                       .past_s = f->past_s <= PROBE_MOST_S ? f->past_s : 0,
                                       .refused_ms = refused_before(c, f),
                                       .state = now ? (enum probe_state)f->state : PROBE_PENDING};
        rc = nodes[i].class < 0 || nodes[i].group < 0 ? -1 : 0;
    }
    interned_fini(&classes);
    interned_fini(&groups);
    return rc;
}

// What was running when the collector ended: its run is followed, or requested again.
static void resume_nodes(struct campaign *c)
{
    for (int i = 0; i < c->nodes.n; i++) {
        struct campaign_node *n = &c->states[i];
        n->seconds = (double)NAN;
        n->ended_ms = c->plan.nodes[i].refused_ms;
        if (c->plan.nodes[i].state != PROBE_RUNNING)
            continue;
        n->requested_ms = c->facts[i].requested_ms;
        if (c->request.by_slurm)
            continue; // it was submitted
        n->run = c->facts[i].run;
        n->probing = PROBING_PAUSES;
        if (c->over && !n->run)
            n->probing = PROBING_STORES; // perhaps never requested: it is not requested now
        if (c->over)
            probe_cancel(c, i);
    }
}

int campaign_plan(struct campaign *c, struct err *err)
{
    CLEANUP_MEM struct probe_node *nodes = calloc((size_t)c->nodes.n + 1, sizeof *nodes);
    struct probe_rules rules = c->request.rules;
    if (c->n_facts != c->nodes.n)
        return err_set(err, ERR_INTERNAL, "", "%d of %d nodes are known", c->n_facts, c->nodes.n);
    if (!nodes)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a campaign");
    campaign_forget_round(c);
    c->states = calloc((size_t)c->nodes.n + 1, sizeof *c->states);
    if (!c->states)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a campaign");
    if (nodes_of_facts(c, nodes, err) < 0 ||
        probe_plan_make(&c->plan, &rules, nodes, c->nodes.n, err) < 0)
        return -1;
    c->plan.spent_s = c->head.round_s;
    c->spent_before_s = c->head.spent_s - c->head.round_s;
    c->planned = true;
    resume_nodes(c);
    if (c->request.by_slurm && !c->over)
        slurm_facts(c);
    else if (c->request.by_slurm)
        slurm_give_up(c, "the campaign has ended");
    free(c->facts);
    c->facts = NULL;
    c->n_facts = 0;
    return 0;
}

static void campaign_says(struct campaign *c, enum fleet_campaign_state state, int64_t until_ms,
                          const char *why)
{
    c->head.state = (int)state;
    c->head.until_ms = until_ms;
    memset(c->head.why, 0, sizeof c->head.why); // heads are compared as bytes
    snprintf(c->head.why, sizeof c->head.why, "%s", why);
}

void campaign_end(struct campaign *c, enum fleet_campaign_state state, const char *why)
{
    campaign_says(c, state, 0, why);
    c->over = true;
    log_event(LOG_LVL_INFO, "campaign", "id=%lld name=%s state=%s why=\"%s\"",
              (long long)c->head.id, c->head.name, fleet_campaign_states[state],
              log_quote(why).text);
}

static const char *why_text(const struct campaign *c, enum probe_why why, char *out, size_t room)
{
    const struct probe_plan *p = &c->plan;
    int left = p->count[PROBE_PENDING], ended = p->count[PROBE_FAILED] + p->count[PROBE_DONE];
    const char *are = left == 1 ? "node is" : "nodes are";
    if (why == PROBE_BECAUSE_CLOSED)
        snprintf(out, room, "its window is closed; %d %s left", left, are);
    else if (why == PROBE_BECAUSE_BUSY)
        snprintf(out, room, "%d %s left: busy, or without a response", left, are);
    else if (why == PROBE_BECAUSE_BUDGET)
        snprintf(out, room, "the budget has no room for another probe; %d %s left", left, are);
    else if (why == PROBE_BECAUSE_FAILURES)
        snprintf(out, room, "%d of %d probe%s failed, more than %d %%", p->count[PROBE_FAILED],
                 ended, str_plural(ended), p->rules.failed_percent);
    else
        *out = '\0';
    return out;
}

// When the round began. The clock was ahead then if that is to come yet: it counts as now.
static int64_t round_began(struct campaign *c, int64_t now)
{
    if (c->head.round_ms > now)
        c->head.round_ms = now;
    return c->head.round_ms;
}

// Nodes that came since the last round are in the next one, and those that went are not. Where not
// all are known, or there is no room for them, they stay those of the last round.
static void renew_nodes(struct campaign *c)
{
    CLEANUP_NODESET struct nodeset now = {0};
    CLEANUP_BUF struct buf set = BUF_INIT;
    struct err err;
    if (!c->of_all || !poller_named(c->all->poller) || campaign_all_nodes(c, &now, &err) < 0)
        return;
    nodeset_fold(&now, &set);
    if (!buf_ok(&set) || campaign_nodes_of_others(c) + now.n > CAMPAIGNS_NODES_MAX) {
        log_event(LOG_LVL_WARN, "campaign", "id=%lld text=\"no room for the nodes that came\"",
                  (long long)c->head.id);
        return;
    }
    const struct nodeset was = c->nodes;
    c->nodes = now;
    now = was;
    const struct buf text = c->set;
    c->set = set;
    set = text;
}

// The sources have just begun to be read.
static bool more_nodes_come(const struct campaign *c)
{
    return c->of_all && !poller_named(c->all->poller) &&
           clock_mono_ms() - c->all->begun_ms < NAMED_MOST_MS;
}

// The next round begins, or the campaign waits for that, or it has ended.
static void round_over(struct campaign *c, const char *why)
{
    int64_t now = campaigns_now(c->all), at = round_began(c, now) + c->request.each_ms;
    if (!c->request.each_ms) {
        campaign_end(c, FLEET_CAMPAIGN_DONE, why);
    } else if (at > now) {
        campaign_says(c, FLEET_CAMPAIGN_WAITING, at, *why ? why : "the next round has not begun");
        c->due_ms = clock_mono_ms() + (at - now < LOOK_MOST_MS ? at - now : LOOK_MOST_MS);
    } else if (more_nodes_come(c)) {
        c->due_ms = clock_mono_ms() + NAMED_SOON_MS;
    } else if (campaign_is_stored(c)) { // else it is looked at when it is
        campaign_forget_round(c);
        renew_nodes(c);
        c->head.round++;
        c->head.round_ms = now;
        c->head.round_s = 0;
        c->head.running = c->head.done = c->head.failed = c->head.skipped = 0;
        campaign_says(c, FLEET_CAMPAIGN_RUNNING, 0, "");
    }
}

// A node that the collector itself cannot reach is not contacted.
static void node_start(struct campaign *c, int node)
{
    const struct polled *n = poller_find(c->all->poller, c->nodes.names[node]);
    char why[CAMPAIGN_WHY];
    if (!n && !poller_named(c->all->poller)) {
        probe_refused(c, node, NAMED_SOON_MS, "not every source of nodes has been read yet");
    } else if (!n || n->state == NODE_GONE) {
        probe_ended(c, node, PROBE_SKIPPED, 0, "no source names it any more");
    } else if (campaign_never_probes(c, n)) {
        probe_ended(c, node, PROBE_SKIPPED, 0, campaign_never_probes(c, n));
    } else if (node_asleep(n)) {
        probe_refused(c, node, c->all->c->every_s * 1000, "Slurm has powered it off");
    } else if (n->state == NODE_LATE || n->state == NODE_DOWN) {
        snprintf(why, sizeof why, "%s: %.140s", node_states[n->state].name, n->why);
        probe_refused(c, node, c->all->c->every_s * 1000, why);
    } else {
        struct campaign_node *s = &c->states[node];
        probe_plan_start(&c->plan, node);
        s->probing = PROBING_STORES;
        s->requested_ms = clock_wall_ms();
        s->dirty = true;
    }
}

static void campaign_stop(struct campaign *c, const char *why)
{
    campaign_end(c, FLEET_CAMPAIGN_STOPPED, why);
    slurm_give_up(c, why);
}

// What is stored as submitted is submitted; what was before the collector ended is not.
static void submit_nodes(struct campaign *c)
{
    struct err err;
    if (*c->submission.failure) {
        campaign_stop(c, c->submission.failure);
        return;
    }
    if (c->submission.child.pid)
        return; // that of an earlier round has not ended
    if (c->plan.count[PROBE_PENDING] && !c->marking) {
        slurm_mark(c);
        c->marking = true;
    } else if (c->marking && campaign_is_stored(c)) {
        c->marking = false;
        if (slurm_submit(c, &err) < 0)
            campaign_stop(c, err.text);
    }
}

// Slurm starts the runs. They are seen when the node was collected from.
static void await_slurm(struct campaign *c)
{
    int64_t now = campaigns_now(c->all), until_ms = round_began(c, now) + c->request.rules.retry_ms;
    int64_t look_ms = c->all->c->every_s * 1000;
    char why[CAMPAIGN_WHY];
    if (now >= until_ms)
        slurm_give_up(c, "no run of it has been seen within retry_for");
    if (!c->plan.count[PROBE_PENDING] && !c->plan.count[PROBE_RUNNING]) {
        round_over(c, "");
        return;
    }
    if (c->all->c->slurm_submit)
        submit_nodes(c);
    if (c->over)
        return;
    int pending = c->plan.count[PROBE_PENDING], running = c->plan.count[PROBE_RUNNING];
    snprintf(why, sizeof why,
             "Slurm is to run it on %d node%s: numaprobe fleet campaign script %lld prints how",
             pending, str_plural(pending), (long long)c->head.id);
    if (!pending)
        snprintf(why, sizeof why, "Slurm runs it on %d node%s%s%s", running, str_plural(running),
                 *c->submission.job ? ": job " : "", c->submission.job);
    campaign_says(c, pending ? FLEET_CAMPAIGN_WAITING : FLEET_CAMPAIGN_RUNNING, until_ms, why);
    c->due_ms = clock_mono_ms() + (look_ms < LOOK_MOST_MS ? look_ms : LOOK_MOST_MS);
    if (!c->marking && campaign_is_stored(c) && slurm_news(c)) {
        campaign_forget_round(c); // and is planned again with what is known then
        c->stored.facts = false;  // an item requests them, although nothing else has changed
    }
}

// A collector that has just begun continues its campaigns when it knows nodes.
static bool await_nodes(struct campaign *c)
{
    int known;
    poller_nodes(c->all->poller, &known);
    if (known || poller_named(c->all->poller))
        return false;
    c->due_ms = clock_mono_ms() + NAMED_SOON_MS;
    return true;
}

void campaign_advance(struct campaign *c)
{
    if (c->request.by_slurm) {
        await_slurm(c);
        return;
    }
    if (await_nodes(c))
        return;
    struct probe_clock now = clock_of_week(campaigns_now(c->all));
    struct probe_next next;
    char why[CAMPAIGN_WHY];
    while ((next = probe_plan_next(&c->plan, &now)).action == PROBE_START) {
        node_start(c, next.node);
        now.ms = campaigns_now(c->all); // it may be set while nodes are refused
    }
    why_text(c, next.why, why, sizeof why);
    if (next.action == PROBE_STOP)
        campaign_end(c, FLEET_CAMPAIGN_STOPPED, why);
    else if (next.action == PROBE_ROUND_OVER)
        round_over(c, why);
    else if (next.action == PROBE_AWAIT_TIME) {
        if (next.why == PROBE_BECAUSE_CLOSED)
            next.until_ms = local_to_utc(now.ms, next.until_ms);
        int64_t wait_ms = next.until_ms - now.ms;
        bool idle = !c->plan.count[PROBE_RUNNING];
        campaign_says(c, idle ? FLEET_CAMPAIGN_WAITING : FLEET_CAMPAIGN_RUNNING, next.until_ms,
                      why);
        c->due_ms = clock_mono_ms() + (wait_ms < LOOK_MOST_MS ? wait_ms : LOOK_MOST_MS);
    } else
        campaign_says(c, FLEET_CAMPAIGN_RUNNING, 0, "");
}

void campaign_write_plan(const struct campaign *c, struct jsonw *w)
{
    struct probe_clock now = clock_of_week(clock_wall_ms());
    struct probe_estimate e;
    probe_plan_estimate(&c->plan, &now, &e);
    jsonw_object(w, "plan");
    jsonw_text(w, "nodes", buf_text(&c->set));
    jsonw_i64(w, "probed", e.nodes);
    jsonw_i64(w, "left_out", e.left_out);
    jsonw_i64(w, "guessed", e.guessed);
    jsonw_fixed(w, "cost_node_minutes", e.cost_s / 60, 1);
    jsonw_time(w, "begins", local_to_utc(now.ms, e.begins_ms));
    jsonw_time(w, "ends", local_to_utc(now.ms, e.ends_ms));
    jsonw_end(w);
}

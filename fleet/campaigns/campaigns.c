// SPDX-License-Identifier: Apache-2.0
// A campaign is looked at when something has happened to it: what is next is decided, what changed
// is stored as one item, and what was stored is acted upon. One item per campaign is on the way at
// most.
#include "fleet/campaigns/campaigns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "analysis/peers/interned.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "fleet/campaigns/parts.h"
#include "fleet/collect/campaign_ingest.h"

#define DRY_IDS (INT64_C(1) << 40) // numbers of dry runs: the store has none of them

enum {
    // Requests that nodes hold while their runs last; further ones are queued. All campaigns have
    // at most 16 * 256 = 4096 probes, so a queued one waits 7 * 25 s = 3 min at most. Requests that
    // begin and cancel runs do not wait for these: at_once (64) of them are in flight.
    HELD_IN_FLIGHT = 512,
    // Of a response: a run of 1024 ranks has a plan of 400 KB. Hostile nodes make it 576 MiB.
    BODY_MAX = 1 << 20,
    FOLLOW_MS = 60 * 1000,    // of a request that a node holds for 25 s
    CHANGES_MOST = 1000,      // of an item
    LOOK_MOST_MS = 60 * 1000, // until a campaign that waits is looked at again
};

// ---- Time ---------------------------------------------------------------------------------------

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

// ---- Its nodes ----------------------------------------------------------------------------------

// Why the collector never requests a run of it; NULL: it does. Slurm starts runs on any node.
static const char *never_probed(const struct campaign *c, const struct polled *n)
{
    return c->request.by_slurm || node_is_here(n) ? NULL
           : n->pushes ? "it pushes its runs, and the collector does not contact it"
                       : "it is behind another collector: start the campaign there";
}

static int all_nodes(const struct campaign *c, struct nodeset *out, struct err *err)
{
    int n;
    struct polled *const *nodes = poller_nodes(c->all->poller, &n);
    for (int i = 0; i < n; i++)
        if (nodes[i]->state != NODE_GONE && !never_probed(c, nodes[i]) &&
            nodeset_add(out, nodes[i]->name, err) < 0)
            return -1;
    nodeset_sort(out);
    return out->n ? 0
                  : err_set(err, ERR_CONFLICT, "nodes",
                            "the collector has no nodes yet that it contacts itself");
}

static int check_known(const struct campaign *c, const struct nodeset *nodes, struct err *err)
{
    for (int i = 0; i < nodes->n; i++) {
        const struct polled *n = poller_find(c->all->poller, nodes->names[i]);
        if (!n || n->state == NODE_GONE)
            return err_set(err, ERR_INVALID, "nodes", "no source names the node \"%s\"",
                           nodes->names[i]);
        const char *never = never_probed(c, n);
        if (never)
            return err_set(err, ERR_INVALID, "nodes", "leave out %s: %s", n->name, never);
    }
    return 0;
}

static void campaign_add(struct campaign *c)
{
    c->next = c->all->list;
    c->all->list = c;
    campaign_touch(c);
}

// ---- What it stores -----------------------------------------------------------------------------

static void head_fill(struct campaign *c)
{
    struct campaign_head *h = &c->head;
    const int *count = c->plan.count;
    h->n = c->nodes.n;
    h->request_bytes = (uint32_t)c->text.len;
    h->nodes_bytes = (uint32_t)c->set.len;
    h->keep = !c->request.dry_run;
    h->facts = !c->planned && (!c->over || h->running);
    h->each_by = c->request.each_by;
    snprintf(h->benchmark, sizeof h->benchmark, "%s", c->request.benchmark);
    snprintf(h->groups_file, sizeof h->groups_file, "%s", c->all->c->groups_file);
    if (!c->planned)
        return;
    h->running = count[PROBE_RUNNING];
    h->done = count[PROBE_DONE];
    h->failed = count[PROBE_FAILED];
    h->skipped = count[PROBE_SKIPPED];
    h->round_s = c->plan.spent_s;
    h->spent_s = c->spent_before_s + c->plan.spent_s;
}

static struct campaign_change change_of(const struct campaign *c, int i)
{
    const struct campaign_node *n = &c->states[i];
    struct campaign_change change = {.state = c->plan.nodes[i].state,
                                     .round = c->head.round,
                                     .requested_ms = n->requested_ms,
                                     .ended_ms = n->ended_ms,
                                     .run = n->run,
                                     .seconds = n->seconds};
    snprintf(change.node, sizeof change.node, "%s", c->nodes.names[i]);
    snprintf(change.why, sizeof change.why, "%s", n->why ? n->why : "");
    return change;
}

static void changes_add(struct campaign *c, struct buf *body)
{
    for (int i = 0; c->planned && i < c->nodes.n && c->head.changes < CHANGES_MOST; i++) {
        struct campaign_node *n = &c->states[i];
        if (!n->dirty)
            continue;
        struct campaign_change change = change_of(c, i);
        buf_add(body, &change, sizeof change);
        n->dirty = false;
        n->sent = true;
        c->head.changes++;
    }
}

// Everything that changed since the last item. Nothing changed: nothing is sent.
static void campaign_store(struct campaign *c)
{
    CLEANUP_BUF struct buf body = BUF_INIT, changes = BUF_INIT;
    struct ingest_item item = {.kind = INGEST_CAMPAIGN, .after = c->head.id};
    struct err err;
    if (c->saving)
        return;
    c->head.changes = 0;
    head_fill(c);
    changes_add(c, &changes);
    if (!c->head.changes && memcmp(&c->head, &c->stored, sizeof c->head) == 0)
        return;
    buf_add(&body, &c->head, sizeof c->head);
    buf_add(&body, c->text.data, c->text.len);
    buf_add(&body, c->set.data, c->set.len);
    buf_add(&body, changes.data, changes.len);
    if (buf_ok(&body) && buf_ok(&changes) && poller_keep(c->all->poller, &item, &body, &err) == 0) {
        c->stored = c->head;
        c->stored.changes = 0;
        c->saving = true;
    }
    for (int i = 0; c->planned && !c->saving && i < c->nodes.n; i++)
        c->states[i].dirty |= c->states[i].sent; // there was no memory
}

static bool is_stored(const struct campaign *c)
{
    bool dirty = c->saving;
    for (int i = 0; c->planned && i < c->nodes.n; i++)
        dirty |= c->states[i].dirty;
    return !dirty;
}

// ---- A round ------------------------------------------------------------------------------------

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

static int campaign_plan(struct campaign *c, struct err *err)
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

static void campaign_end(struct campaign *c, enum fleet_campaign_state state, const char *why)
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

static int nodes_of_others(const struct campaign *c)
{
    int n = 0;
    for (const struct campaign *other = c->all->list; other; other = other->next)
        n += other == c ? 0 : other->nodes.n;
    return n;
}

// Nodes that came since the last round are in the next one, and those that went are not. Where not
// all are known, or there is no room for them, they stay those of the last round.
static void renew_nodes(struct campaign *c)
{
    CLEANUP_NODESET struct nodeset now = {0};
    CLEANUP_BUF struct buf set = BUF_INIT;
    struct err err;
    if (!c->of_all || !poller_named(c->all->poller) || all_nodes(c, &now, &err) < 0)
        return;
    nodeset_fold(&now, &set);
    if (!buf_ok(&set) || nodes_of_others(c) + now.n > CAMPAIGNS_NODES_MAX) {
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
    } else if (is_stored(c)) { // else it is looked at when it is
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
    } else if (never_probed(c, n)) {
        probe_ended(c, node, PROBE_SKIPPED, 0, never_probed(c, n));
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
    } else if (c->marking && is_stored(c)) {
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
    if (!c->marking && is_stored(c) && slurm_news(c)) {
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

static void campaign_advance(struct campaign *c)
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

// A client waits for what becomes of it.
static bool is_watched(const struct campaign *c)
{
    const struct campaigns_watch *w = c->all->watches;
    while (w && w->id != c->head.id)
        w = w->next;
    return w;
}

// Everything that is to be done now. May free it.
static void campaign_look(struct campaign *c)
{
    int64_t now = clock_mono_ms(), next = INT64_MAX;
    c->due_ms = INT64_MAX;
    if (c->planned && !c->request.dry_run) {
        if (!c->over)
            campaign_advance(c);
        if (c->planned)
            probes_due(c, now, &next);
        c->due_ms = next < c->due_ms ? next : c->due_ms;
    }
    if (c->kept || (!c->refused.code && !c->planned))
        campaign_store(c);
    bool useless = c->over || c->request.dry_run || (c->refused.code && !c->kept);
    bool over = c->over && (c->planned || !c->head.running);
    if (useless && !c->saving && (c->planned || over || c->refused.code) &&
        !c->plan.count[PROBE_RUNNING] && !is_watched(c))
        campaign_drop(c);
}

static void on_campaigns(void *ctx, uint32_t events)
{
    struct campaigns *all = ctx;
    int64_t now = clock_mono_ms();
    (void)events;
    for (struct campaign *c = all->list, *next; c; c = next) {
        next = c->next;
        if (c->due_ms <= now)
            campaign_look(c);
    }
    fetch_turn(all->brief.fetch);
    fetch_turn(all->held.fetch);
    campaigns_look_in(all);
}

static void on_campaign_fetch(void *ctx, uint32_t events)
{
    struct campaign_fetch *f = ctx;
    (void)events;
    fetch_turn(f->fetch);
}

// ---- What the process that stores reports -------------------------------------------------------

// What a client submitted or cancelled is stored, or was refused.
static bool is_settled(const struct campaign *c)
{
    bool there = c->request.dry_run ? c->planned : c->kept;
    bool newest = !c->over || c->stored.state == c->head.state;
    return c->refused.code || (!c->saving && there && newest);
}

// A client is woken once, so not before that. id 0: all of them, everything was dropped.
static void wake_all(struct campaigns *all, int64_t id)
{
    const struct campaign *c = id ? campaign_find(all, id) : NULL;
    if (c && !is_settled(c))
        return;
    for (struct campaigns_watch *w = all->watches, *next; w; w = next) {
        next = w->next;
        if (w->id == id || !id)
            w->wake(w->ctx);
    }
}

static void campaign_confirmed(struct campaign *c)
{
    struct err err;
    c->saving = false;
    c->kept |= c->stored.keep;
    if (!c->planned && c->facts && campaign_plan(c, &err) < 0) {
        c->refused = err;
        campaign_end(c, FLEET_CAMPAIGN_STOPPED, err.text);
    }
    for (int i = 0; c->planned && i < c->nodes.n; i++) {
        bool sent = c->states[i].sent;
        c->states[i].sent = false;
        if (sent && c->states[i].probing == PROBING_STORES && !c->request.by_slurm)
            probe_request(c, i);
    }
    wake_all(c->all, c->head.id);
    campaign_touch(c);
}

static void campaign_refused(struct campaign *c, const struct ingest_report *r)
{
    c->saving = false;
    c->n_facts = 0;
    err_set(&c->refused, ERR_INVALID, r->member, "%s", r->text);
    if (c->kept)
        campaign_end(c, FLEET_CAMPAIGN_STOPPED, r->text);
    wake_all(c->all, c->head.id);
    campaign_touch(c);
}

static void take_campaign(struct campaigns *all, const struct ingest_report *r)
{
    struct campaign_head h;
    struct err err;
    if (r->next > all->last)
        all->last = r->next;
    if (!r->bytes || campaign_find(all, r->next))
        return;
    memcpy(&h, r->body, sizeof h);
    const char *text = r->body + sizeof h;
    struct campaign *c = campaign_new(all, text, h.request_bytes, &err);
    if (c) {
        buf_add(&c->set, text + h.request_bytes, h.nodes_bytes);
        c->head = h;
        c->kept = true;
        c->over = h.state > FLEET_CAMPAIGN_WAITING;
        if (nodeset_parse(&c->nodes, buf_text(&c->set), NULL, &err) == 0) {
            campaign_add(c);
            return;
        }
        campaign_free(c);
    }
    log_error("campaign", &err);
}

static void take_node_facts(struct campaigns *all, const struct ingest_report *r)
{
    struct campaign *c = campaign_find(all, r->next);
    int n = (int)(r->bytes / sizeof *c->facts);
    if (!c || c->planned)
        return;
    if (!c->facts)
        c->facts = calloc((size_t)c->nodes.n + 1, sizeof *c->facts);
    if (!c->facts || c->n_facts + n > c->nodes.n)
        return;
    memcpy(c->facts + c->n_facts, r->body, r->bytes);
    c->n_facts += n;
}

static void drop_campaigns(struct campaigns *all)
{
    while (all->list)
        campaign_drop(all->list);
    all->loaded = false;
    wake_all(all, 0);
}

static void all_loaded(struct campaigns *all)
{
    all->loaded = true;
    for (struct campaign *each = all->list; each; each = each->next)
        campaign_touch(each);
}

static void on_kept(void *ctx, const struct ingest_report *r)
{
    struct campaigns *all = ctx;
    if (!r) {
        drop_campaigns(all);
        return;
    }
    struct campaign *c = campaign_find(all, r->next);
    bool ours = (r->kind == INGEST_STORED || r->kind == INGEST_REFUSED) && r->of == INGEST_CAMPAIGN;
    if (r->kind == INGEST_READY)
        all_loaded(all);
    else if (r->kind == INGEST_CAMPAIGN_WAS)
        take_campaign(all, r);
    else if (r->kind == INGEST_CAMPAIGN_FACTS)
        take_node_facts(all, r);
    else if (ours && c && r->kind == INGEST_STORED)
        campaign_confirmed(c);
    else if (ours && c)
        campaign_refused(c, r);
}

// ---- Requests of clients ------------------------------------------------------------------------

static int check_room(const struct campaigns *all, const struct campaign *fresh, struct err *err)
{
    int n = 0, nodes = fresh->nodes.n + nodes_of_others(fresh);
    for (const struct campaign *c = all->list; c; c = c->next, n++) {
        if (!fresh->request.dry_run && !c->request.dry_run && !c->over &&
            strcmp(c->head.name, fresh->head.name) == 0)
            return err_set(err, ERR_CONFLICT, "name",
                           "campaign %lld has this name and has not ended", (long long)c->head.id);
    }
    if (n >= CAMPAIGNS_MAX)
        return err_set(err, ERR_TOO_MANY, "", "%d campaigns have not ended, the most at once", n);
    if (nodes > CAMPAIGNS_NODES_MAX)
        return err_set(err, ERR_TOO_MANY, "nodes",
                       "campaigns that have not ended have at most %d nodes together",
                       CAMPAIGNS_NODES_MAX);
    return 0;
}

static int find_nodes(struct campaign *c, struct err *err)
{
    if (c->request.nodes.n && check_known(c, &c->request.nodes, err) < 0)
        return -1;
    if (c->request.nodes.n) {
        c->nodes = c->request.nodes;
        c->request.nodes = (struct nodeset){0};
    } else if (all_nodes(c, &c->nodes, err) < 0)
        return -1;
    nodeset_fold(&c->nodes, &c->set);
    return buf_ok(&c->set) ? check_room(c->all, c, err)
                           : err_set(err, ERR_NO_MEMORY, "", "no memory for a campaign");
}

int64_t campaigns_submit(struct campaigns *all, const struct buf *text, const char *by,
                         struct err *err)
{
    struct campaign *c = campaign_new(all, buf_text(text), text->len, err);
    if (!c)
        return -1;
    if (campaigns_check_loaded(all, err) < 0 || find_nodes(c, err) < 0) {
        campaign_free(c);
        return -1;
    }
    c->head.id = c->request.dry_run ? DRY_IDS + ++all->dry : ++all->last;
    c->head.round = 1;
    c->head.created_ms = c->head.round_ms = campaigns_now(all);
    snprintf(c->head.by, sizeof c->head.by, "%s", by);
    campaign_add(c);
    return c->head.id;
}

int campaigns_cancel(struct campaigns *all, int64_t id, const char *by, struct err *err)
{
    struct campaign *c = campaign_active(all, id, err);
    char why[CAMPAIGN_WHY];
    if (!c)
        return -1;
    snprintf(why, sizeof why, "cancelled by %s", by);
    campaign_end(c, FLEET_CAMPAIGN_CANCELLED, why);
    if (c->planned && c->request.by_slurm)
        slurm_give_up(c, why);
    for (int i = 0; c->planned && i < c->nodes.n; i++)
        if (c->states[i].probing != PROBING_NOT)
            probe_cancel(c, i);
    campaign_touch(c);
    return 0;
}

struct campaigns_watch *campaigns_watch(struct campaigns *all, int64_t id, void (*wake)(void *ctx),
                                        void *ctx)
{
    struct campaigns_watch *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    *w = (struct campaigns_watch){all->watches, all, id, wake, ctx};
    all->watches = w;
    return w;
}

void campaigns_unwatch(struct campaigns_watch *w)
{
    struct campaigns_watch **at = &w->all->watches;
    struct campaign *c = campaign_find(w->all, w->id);
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    free(w);
    if (c)
        campaign_touch(c);
}

static struct fleet_campaign row_of_campaign(const struct campaign *c)
{
    return campaign_head_row(&c->head, buf_text(&c->text), buf_text(&c->set));
}

static void write_plan(const struct campaign *c, struct jsonw *w)
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

int campaigns_settled(const struct campaigns *all, int64_t id, struct jsonw *w, bool *dry,
                      struct err *err)
{
    const struct campaign *c = campaign_find(all, id);
    if (!c)
        return err_set(err, ERR_UNAVAILABLE, "store",
                       "the store failed meanwhile; campaign %lld may be there", (long long)id);
    if (c->refused.code) {
        *err = c->refused;
        return -1;
    }
    *dry = c->request.dry_run;
    if (!is_settled(c))
        return 0;
    struct fleet_campaign row = row_of_campaign(c);
    jsonw_object(w, NULL);
    if (*dry) {
        jsonw_bool(w, "dry_run", true);
        jsonw_text(w, "name", c->head.name);
        write_plan(c, w);
    } else
        campaign_write_json(&row, w, "campaign");
    jsonw_end(w);
    return 1;
}

void campaign_write_json(const struct fleet_campaign *c, struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    jsonw_i64(w, "id", c->id);
    jsonw_text(w, "name", c->name);
    jsonw_text(w, "state", fleet_campaign_states[c->state]);
    jsonw_text(w, "why", c->why);
    jsonw_time(w, "until", c->until_ms);
    jsonw_i64(w, "nodes", c->n);
    jsonw_text(w, "node_set", c->nodes);
    jsonw_i64(w, "round", c->round);
    jsonw_i64(w, "done", c->done);
    jsonw_i64(w, "failed", c->failed);
    jsonw_i64(w, "skipped", c->skipped);
    jsonw_i64(w, "running", c->running);
    jsonw_i64(w, "pending", c->n - c->done - c->failed - c->skipped - c->running);
    jsonw_time(w, "created", c->created_ms);
    jsonw_time(w, "round_began", c->round_ms);
    jsonw_fixed(w, "spent_node_minutes", c->spent_s / 60, 2);
    jsonw_fixed(w, "round_node_minutes", c->round_s / 60, 2);
    jsonw_text(w, "by", c->by);
    jsonw_raw(w, "request", c->request);
    jsonw_end(w);
}

// ---- Life ---------------------------------------------------------------------------------------

static int campaign_fetch_open(struct campaigns *all, struct campaign_fetch *f, int in_flight,
                               const struct fetch_limits *limits, struct err *err)
{
    f->fetch = fetch_new(in_flight, limits, err);
    f->watch =
        f->fetch ? loop_watch_fd(all->loop, fetch_fd(f->fetch), EPOLLIN, on_campaign_fetch, f, err)
                 : NULL;
    return f->watch ? 0 : -1;
}

static void campaign_fetch_close(struct campaign_fetch *f)
{
    if (f->fetch)
        fetch_stop(f->fetch);
    loop_unwatch(f->watch);
    fetch_free(f->fetch);
}

static int campaigns_open(struct campaigns *all, struct err *err)
{
    struct fetch_limits limits = fetch_limits_within(all->c->node_timeout_s), follow;
    limits.body_max = BODY_MAX;
    follow = limits;
    follow.total_ms = FOLLOW_MS;
    follow.least_rate = 0;
    if (campaign_fetch_open(all, &all->brief, (int)all->c->at_once, &limits, err) < 0 ||
        campaign_fetch_open(all, &all->held, HELD_IN_FLIGHT, &follow, err) < 0)
        return -1;
    all->timer = loop_timer_new(all->loop, on_campaigns, all, err);
    if (!all->timer)
        return -1;
    poller_listen(all->poller, on_kept, all);
    return 0;
}

void campaigns_renew_tls(struct campaigns *all)
{
    fetch_trust_again(all->brief.fetch);
    fetch_trust_again(all->held.fetch);
}

struct campaigns *campaigns_new(struct loop *loop, const struct fleetd_config *c,
                                struct poller *poller, struct err *err)
{
    struct campaigns *all = calloc(1, sizeof *all);
    if (!all) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for campaigns");
        return NULL;
    }
    *all = (struct campaigns){.loop = loop, .c = c, .poller = poller, .begun_ms = clock_mono_ms()};
    clock_set_by(&all->offset_ms);
    if (campaigns_open(all, err) == 0)
        return all;
    campaigns_free(all);
    return NULL;
}

void campaigns_free(struct campaigns *all)
{
    if (!all)
        return;
    poller_listen(all->poller, NULL, all);
    for (struct campaign *c = all->list; c; c = c->next)
        slurm_submit_end(c);
    while (all->list)
        campaign_drop(all->list);
    campaign_fetch_close(&all->brief);
    campaign_fetch_close(&all->held);
    loop_timer_free(all->timer);
    free(all);
}

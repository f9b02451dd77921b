// SPDX-License-Identifier: Apache-2.0
// A campaign is looked at when something has happened to it: what is next is decided, what changed
// is stored as one item, and what was stored is acted upon. One item per campaign is on the way at
// most.
#include "fleet/campaigns/campaigns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"
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
    FOLLOW_MS = 60 * 1000, // of a request that a node holds for 25 s
};

// ---- A look -------------------------------------------------------------------------------------

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

static void campaign_add(struct campaign *c)
{
    c->next = c->all->list;
    c->all->list = c;
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
    int n = 0, nodes = fresh->nodes.n + campaign_nodes_of_others(fresh);
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
    if (c->request.nodes.n && campaign_check_nodes(c, &c->request.nodes, err) < 0)
        return -1;
    if (c->request.nodes.n) {
        c->nodes = c->request.nodes;
        c->request.nodes = (struct nodeset){0};
        nodeset_sort(&c->nodes);
    } else if (campaign_all_nodes(c, &c->nodes, err) < 0)
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
        campaign_write_plan(c, w);
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

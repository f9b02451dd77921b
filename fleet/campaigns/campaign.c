// SPDX-License-Identifier: Apache-2.0
// A campaign in memory. It is freed when none of its requests is on the way any more.
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fleet/campaigns/parts.h"
#include "fleet/campaigns/script.h"
#include "fleet/store/campaigns.h"

enum { TOUCH_MS = 20 }; // what happens meanwhile is stored together

void campaigns_look_in(struct campaigns *all)
{
    int64_t at = INT64_MAX, now = clock_mono_ms();
    for (const struct campaign *c = all->list; c; c = c->next)
        at = c->due_ms < at ? c->due_ms : at;
    loop_timer_set(all->timer, at == INT64_MAX ? -1 : at > now ? at - now : 0);
}

void campaign_touch(struct campaign *c)
{
    int64_t at = clock_mono_ms() + TOUCH_MS;
    if (c->due_ms <= at)
        return;
    c->due_ms = at;
    campaigns_look_in(c->all);
}

// When a node was refused is in its ended_ms until it has ended.
static void clock_was_set(struct campaign *c, int64_t step_ms)
{
    c->head.round_ms += step_ms;
    if (c->planned)
        probe_plan_clock_set(&c->plan, step_ms);
    for (int i = 0; c->planned && i < c->nodes.n; i++) {
        struct campaign_node *n = &c->states[i];
        if (!fleet_campaign_node_ended(c->plan.nodes[i].state) && c->plan.nodes[i].refused_ms) {
            n->ended_ms = c->plan.nodes[i].refused_ms;
            n->dirty = true;
        }
    }
    for (int i = 0; c->facts && !c->planned && i < c->n_facts; i++)
        if (c->facts[i].ended_ms && !fleet_campaign_node_ended(c->facts[i].state))
            c->facts[i].ended_ms += step_ms;
    campaign_touch(c);
}

int64_t campaigns_now(struct campaigns *all)
{
    const int64_t step = clock_set_by(&all->offset_ms);
    if (!step)
        return clock_wall_ms();
    poller_compare_clocks(all->poller);
    for (struct campaign *c = all->list; c; c = c->next)
        if (!c->over)
            clock_was_set(c, step);
    return clock_wall_ms();
}

void campaign_forget_round(struct campaign *c)
{
    for (int i = 0; c->states && i < c->nodes.n; i++)
        free(c->states[i].why);
    free(c->states);
    c->states = NULL;
    probe_plan_fini(&c->plan);
    c->planned = c->marking = false;
}

void campaign_free(struct campaign *c)
{
    if (!c)
        return;
    campaign_forget_round(c);
    free(c->facts);
    nodeset_free(&c->nodes);
    campaign_request_fini(&c->request);
    buf_free(&c->text);
    buf_free(&c->set);
    free(c);
}

void campaign_release(struct campaign *c)
{
    if (--c->calls == 0 && c->dropped)
        campaign_free(c);
}

void campaign_drop(struct campaign *c)
{
    struct campaign **at = &c->all->list;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->dropped = true;
    if (!c->calls)
        campaign_free(c);
}

struct campaign *campaign_find(const struct campaigns *all, int64_t id)
{
    for (struct campaign *c = all->list; c; c = c->next)
        if (c->head.id == id)
            return c;
    return NULL;
}

int campaigns_check_loaded(const struct campaigns *all, struct err *err)
{
    if (all->loaded)
        return 0;
    return poller_check_open(all->poller, err) < 0
               ? -1
               : err_set(err, ERR_UNAVAILABLE, "store", "the campaigns are being read; try again");
}

struct campaign *campaign_active(const struct campaigns *all, int64_t id, struct err *err)
{
    struct campaign *c = campaign_find(all, id);
    if (campaigns_check_loaded(all, err) < 0)
        return NULL;
    if (!c && id > all->last)
        err_set(err, ERR_NOT_FOUND, "", "there is no campaign %lld", (long long)id);
    else if (!c || c->over)
        err_set(err, ERR_CONFLICT, "", "campaign %lld has ended", (long long)id);
    else
        return c;
    return NULL;
}

static int campaign_read(struct campaign *c, struct err *err)
{
    CLEANUP_JSON struct json *root = json_parse(buf_text(&c->text), c->text.len, err);
    if (!root || campaign_request_read(&c->request, root, err) < 0 ||
        (c->request.by_slurm && campaign_script_check(&c->request, err) < 0))
        return -1;
    snprintf(c->head.name, sizeof c->head.name, "%s", c->request.name);
    c->of_all = !c->request.nodes.n;
    return 0;
}

struct campaign *campaign_new(struct campaigns *all, const void *text, size_t n, struct err *err)
{
    struct campaign *c = calloc(1, sizeof *c);
    if (!c) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for a campaign");
        return NULL;
    }
    *c = (struct campaign){.all = all, .due_ms = INT64_MAX};
    buf_add(&c->text, text, n);
    if (campaign_read(c, err) == 0)
        return c;
    campaign_free(c);
    return NULL;
}

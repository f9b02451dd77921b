// SPDX-License-Identifier: Apache-2.0
// The newest runs of the nodes are read once per round of a campaign, in one query.
#include "fleet/collect/campaign_ingest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "nodes/sources.h"

struct facts_search {
    const struct campaign_head *head;
    const struct nodeset *nodes;
    struct campaign_fact *list; // [nodes->n]
    int racks;
};

// ---- What is known of the nodes -----------------------------------------------------------------

static int fact_order(const void *key, const void *fact)
{
    return nodeset_name_order(key, ((const struct campaign_fact *)fact)->node);
}

static struct campaign_fact *fact_of_node(const struct facts_search *f, const char *node)
{
    return bsearch(node, f->list, (size_t)f->nodes->n, sizeof *f->list, fact_order);
}

static int take_newest(void *ctx, const struct summary_page *page, struct err *err)
{
    struct campaign_fact *fact = fact_of_node(ctx, page->node);
    (void)err;
    for (int i = 0; fact && i < page->n_runs; i++) {
        const struct summary *r = &page->runs[i];
        if (r->measured_ms <= fact->newest_ms)
            continue;
        fact->newest_ms = r->measured_ms;
        fact->newest_run = r->id;
        fact->newest_failed = r->state != RUN_SUCCEEDED;
        fact->past_s = isnan(r->duration_s) ? 0 : r->duration_s;
        snprintf(fact->class, sizeof fact->class, "%s", r->class_hash);
    }
    return 0;
}

static int take_row(void *ctx, const struct fleet_campaign_node *n, struct err *err)
{
    struct campaign_fact *fact = fact_of_node(ctx, n->name);
    (void)err;
    if (!fact)
        return 0;
    fact->state = n->state;
    fact->round = n->round;
    fact->requested_ms = n->requested_ms;
    fact->ended_ms = n->ended_ms;
    fact->run = n->run;
    return 0;
}

static void take_rack(void *ctx, const char *group, const struct nodeset *nodes)
{
    struct facts_search *f = ctx;
    f->racks++;
    for (int i = 0; i < nodes->n; i++) {
        struct campaign_fact *fact = fact_of_node(f, nodes->names[i]);
        if (fact)
            snprintf(fact->group, sizeof fact->group, "%s", group);
    }
}

// "r1n" of r1n04: what stands before the last number.
static void prefix_of(const char *node, char *out, size_t room)
{
    size_t n = strlen(node);
    while (n && (node[n - 1] < '0' || node[n - 1] > '9'))
        n--;
    while (n && node[n - 1] >= '0' && node[n - 1] <= '9')
        n--;
    snprintf(out, room, "%.*s", (int)n, n ? node : "");
}

static int find_node_groups(struct facts_search *f, struct err *err)
{
    const char *file = f->head->groups_file;
    int by = f->head->each_by;
    if (by == CAMPAIGN_BY_RACK && fleet_groups_each(file, "rack", take_rack, f, err) < 0) {
        snprintf(err->member, sizeof err->member, "at_once_each.by");
        return -1;
    }
    if (by == CAMPAIGN_BY_RACK && !f->racks)
        return err_set(err, ERR_INVALID, "at_once_each.by",
                       "no group whose name begins with \"rack\" is in %.100s",
                       *file ? file : "any groups_file");
    for (int i = 0; i < f->nodes->n; i++) {
        struct campaign_fact *fact = &f->list[i];
        if (by == CAMPAIGN_BY_CLASS)
            snprintf(fact->group, sizeof fact->group, "%s", fact->class);
        else if (by == CAMPAIGN_BY_PREFIX)
            prefix_of(fact->node, fact->group, sizeof fact->group);
        else if (by == CAMPAIGN_BY_RACK && !*fact->group)
            snprintf(fact->group, sizeof fact->group, ".%s", fact->node); // alone
    }
    return 0;
}

static int send_facts(const struct facts_search *f, campaign_send *send, struct err *err)
{
    for (int at = 0; at < f->nodes->n; at += CAMPAIGN_FACTS_MOST) {
        int n = f->nodes->n - at < CAMPAIGN_FACTS_MOST ? f->nodes->n - at : CAMPAIGN_FACTS_MOST;
        const struct ingest_report r = {.kind = INGEST_CAMPAIGN_FACTS,
                                        .next = f->head->id,
                                        .bytes = (uint32_t)n * (uint32_t)sizeof *f->list};
        if (send(&r, f->list + at) < 0)
            return err_set(err, ERR_UNAVAILABLE, "", "the collector has ended");
    }
    return 0;
}

static int find_facts(struct fleet_store *store, const struct campaign_head *head,
                      const char *nodes, campaign_send *send, struct err *err)
{
    CLEANUP_NODESET struct nodeset names = {0};
    if (nodeset_parse(&names, nodes, NULL, err) < 0)
        return -1;
    CLEANUP_MEM struct campaign_fact *list = calloc((size_t)names.n + 1, sizeof *list);
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", names.n);
    for (int i = 0; i < names.n; i++)
        memcpy(list[i].node, names.names[i], sizeof list[i].node);
    struct facts_search f = {head, &names, list, 0};
    const struct fleet_window w = {
        .benchmark = head->benchmark, .nodes = &names, .newest = 1, .measured = true};
    return fleet_store_window(store, &w, take_newest, &f, err) < 0 ||
                   fleet_store_campaign_nodes(store, head->id, take_row, &f, err) < 0 ||
                   find_node_groups(&f, err) < 0 || send_facts(&f, send, err) < 0
               ? -1
               : 0;
}

// ---- Items --------------------------------------------------------------------------------------

struct fleet_campaign campaign_head_row(const struct campaign_head *h, const char *request,
                                        const char *nodes)
{
    return (struct fleet_campaign){.id = h->id,
                                   .name = h->name,
                                   .by = h->by,
                                   .request = request,
                                   .nodes = nodes,
                                   .state = (enum fleet_campaign_state)h->state,
                                   .round = h->round,
                                   .created_ms = h->created_ms,
                                   .round_ms = h->round_ms,
                                   .until_ms = h->until_ms,
                                   .n = h->n,
                                   .running = h->running,
                                   .done = h->done,
                                   .failed = h->failed,
                                   .skipped = h->skipped,
                                   .spent_s = h->spent_s,
                                   .round_s = h->round_s,
                                   .why = h->why};
}

static int campaign_write(struct fleet_store *store, const struct campaign_head *h,
                          const char *request, const char *nodes,
                          const struct campaign_change *changes, struct err *err)
{
    CLEANUP_MEM struct fleet_campaign_node *list = calloc((size_t)h->changes + 1, sizeof *list);
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a campaign");
    for (uint32_t i = 0; i < h->changes; i++) {
        const struct campaign_change *c = &changes[i];
        list[i] = (struct fleet_campaign_node){c->node,     c->state, c->round,   c->requested_ms,
                                               c->ended_ms, c->run,   c->seconds, c->why};
    }
    const struct fleet_campaign c = campaign_head_row(h, request, nodes);
    return fleet_store_campaign_put(store, &c, list, (int)h->changes, err);
}

int campaign_ingest_put(struct fleet_store *store, const char *body, size_t n, campaign_send *send,
                        struct err *err)
{
    struct campaign_head h;
    if (n < sizeof h)
        return err_set(err, ERR_INTERNAL, "", "a campaign of %zu bytes", n);
    memcpy(&h, body, sizeof h);
    size_t changes = h.changes * sizeof(struct campaign_change);
    CLEANUP_BUF struct buf request = BUF_INIT, nodes = BUF_INIT;
    CLEANUP_MEM struct campaign_change *list = malloc(changes + 1);
    if (n != sizeof h + h.request_bytes + h.nodes_bytes + changes)
        return err_set(err, ERR_INTERNAL, "", "a campaign of %zu bytes", n);
    buf_add(&request, body + sizeof h, h.request_bytes);
    buf_add(&nodes, body + sizeof h + h.request_bytes, h.nodes_bytes);
    if (!list || !buf_ok(&request) || !buf_ok(&nodes))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a campaign");
    memcpy(list, body + n - changes, changes);
    if (h.facts && find_facts(store, &h, buf_text(&nodes), send, err) < 0)
        return -1;
    return h.keep ? campaign_write(store, &h, buf_text(&request), buf_text(&nodes), list, err) : 0;
}

// ---- At the start -------------------------------------------------------------------------------

static int send_campaign(void *ctx, const struct fleet_campaign *c, struct err *err)
{
    campaign_send *const *send = ctx;
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct campaign_head h = {.id = c->id,
                              .state = (int)c->state,
                              .round = c->round,
                              .created_ms = c->created_ms,
                              .round_ms = c->round_ms,
                              .until_ms = c->until_ms,
                              .n = c->n,
                              .running = c->running,
                              .done = c->done,
                              .failed = c->failed,
                              .skipped = c->skipped,
                              .spent_s = c->spent_s,
                              .round_s = c->round_s,
                              .request_bytes = (uint32_t)strlen(c->request),
                              .nodes_bytes = (uint32_t)strlen(c->nodes)};
    snprintf(h.name, sizeof h.name, "%s", c->name);
    snprintf(h.by, sizeof h.by, "%s", c->by);
    snprintf(h.why, sizeof h.why, "%s", c->why);
    buf_add(&body, &h, sizeof h);
    buf_str(&body, c->request);
    buf_str(&body, c->nodes);
    const struct ingest_report r = {
        .kind = INGEST_CAMPAIGN_WAS, .next = c->id, .bytes = (uint32_t)body.len};
    if (!buf_ok(&body) || (*send)(&r, body.data) < 0)
        return err_set(err, ERR_UNAVAILABLE, "", "the collector has ended");
    return 0;
}

static int take_last(void *ctx, const struct fleet_campaign *c, struct err *err)
{
    (void)err;
    *(int64_t *)ctx = c->id;
    return 0;
}

int campaign_ingest_load(struct fleet_store *store, campaign_send *send, struct err *err)
{
    struct ingest_report last = {.kind = INGEST_CAMPAIGN_WAS};
    const struct fleet_campaign_query newest = {.limit = 1}, active = {.active = true,
                                                                       .running = true,
                                                                       .limit = INT32_MAX};
    if (fleet_store_campaigns(store, &newest, take_last, &last.next, err) < 0)
        return -1;
    if (send(&last, NULL) < 0)
        return err_set(err, ERR_UNAVAILABLE, "", "the collector has ended");
    return fleet_store_campaigns(store, &active, send_campaign, &send, err);
}

// SPDX-License-Identifier: Apache-2.0
// What a campaign stores: an item with its head and the nodes that changed since the last one.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "fleet/campaigns/parts.h"
#include "fleet/collect/campaign_ingest.h"

enum { CHANGES_MOST = 1000 }; // of an item

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

void campaign_store(struct campaign *c)
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

bool campaign_is_stored(const struct campaign *c)
{
    bool dirty = c->saving;
    for (int i = 0; c->planned && i < c->nodes.n; i++)
        dirty |= c->states[i].dirty;
    return !dirty;
}

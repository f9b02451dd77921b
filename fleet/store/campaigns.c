// SPDX-License-Identifier: Apache-2.0
// A campaign is one row that is written anew with each change, beside the few nodes that changed.
#include "fleet/store/campaigns.h"

#include <math.h>

#include "base/cleanup.h"
#include "fleet/store/parts.h"

const char *const fleet_campaign_states[FLEET_CAMPAIGN_STATES + 1] = {
    "running", "waiting", "done", "cancelled", "stopped", NULL};

static struct fleet_cell cell_real(double d)
{
    return (struct fleet_cell){isnan(d) ? CELL_NULL : CELL_REAL, 0, d, ""};
}

static int put_campaign(struct fleet_store *s, const struct fleet_campaign *c, struct err *err)
{
    const struct fleet_cell row[] = {
        CELL_I(c->id),         CELL_T(c->name),     CELL_T(c->by),      CELL_T(c->request),
        CELL_T(c->nodes),      CELL_I(c->state),    CELL_I(c->round),   CELL_I(c->created_ms),
        CELL_I(c->round_ms),   CELL_I(c->until_ms), CELL_I(c->n),       CELL_I(c->running),
        CELL_I(c->done),       CELL_I(c->failed),   CELL_I(c->skipped), cell_real(c->spent_s),
        cell_real(c->round_s), CELL_T(c->why)};
    return fleet_exec(
        s,
        "INSERT INTO campaign (id, name, \"by\", request, nodes, state, round, created_ms, "
        "round_ms, until_ms, n, running, done, failed, skipped, spent_s, round_s, why) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) "
        "ON CONFLICT (id) DO UPDATE SET nodes = CASE WHEN campaign.round = excluded.round "
        "THEN campaign.nodes ELSE excluded.nodes END, n = excluded.n, "
        "state = excluded.state, round = excluded.round, "
        "round_ms = excluded.round_ms, until_ms = excluded.until_ms, running = excluded.running, "
        "done = excluded.done, failed = excluded.failed, skipped = excluded.skipped, "
        "spent_s = excluded.spent_s, round_s = excluded.round_s, why = excluded.why",
        row, COUNT_OF(row), err);
}

static int put_campaign_node(struct fleet_store *s, const struct fleet_campaign *c,
                             const struct fleet_campaign_node *n, struct err *err)
{
    int node = store_node(s, n->name, c->created_ms, err);
    const struct fleet_cell row[] = {
        CELL_I(c->id),           CELL_I(node),        CELL_I(n->state), CELL_I(n->round),
        CELL_I(n->requested_ms), CELL_I(n->ended_ms), CELL_I(n->run),   cell_real(n->seconds),
        CELL_T(n->why)};
    return node < 0 ? -1
                    : fleet_exec(s,
                                 "INSERT INTO campaign_node (campaign, node, state, round, "
                                 "requested_ms, ended_ms, run, seconds, why) "
                                 "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) "
                                 "ON CONFLICT (campaign, node) DO UPDATE SET "
                                 "state = excluded.state, round = excluded.round, "
                                 "requested_ms = excluded.requested_ms, "
                                 "ended_ms = excluded.ended_ms, run = excluded.run, "
                                 "seconds = excluded.seconds, why = excluded.why",
                                 row, COUNT_OF(row), err);
}

int fleet_store_campaign_put(struct fleet_store *s, const struct fleet_campaign *c,
                             const struct fleet_campaign_node *nodes, int n, struct err *err)
{
    if (fleet_begin(s, err) < 0)
        return -1;
    s->changed = true;
    int rc = put_campaign(s, c, err);
    for (int i = 0; i < n && rc == 0; i++)
        rc = put_campaign_node(s, c, &nodes[i], err);
    return fleet_end(s, rc, err);
}

struct campaign_reader {
    fleet_campaign_fn *campaign;
    fleet_campaign_node_fn *node;
    void *ctx;
};

static int read_campaign(void *ctx, const struct fleet_cell *row, struct err *err)
{
    const struct campaign_reader *r = ctx;
    const struct fleet_campaign c = {.id = row[0].i,
                                     .name = row[1].t,
                                     .by = row[2].t,
                                     .request = row[3].t,
                                     .nodes = row[4].t,
                                     .state = (enum fleet_campaign_state)row[5].i,
                                     .round = (int)row[6].i,
                                     .created_ms = row[7].i,
                                     .round_ms = row[8].i,
                                     .until_ms = row[9].i,
                                     .n = (int)row[10].i,
                                     .running = (int)row[11].i,
                                     .done = (int)row[12].i,
                                     .failed = (int)row[13].i,
                                     .skipped = (int)row[14].i,
                                     .spent_s = row[15].d,
                                     .round_s = row[16].d,
                                     .why = row[17].t};
    if (row[5].i < 0 || row[5].i >= FLEET_CAMPAIGN_STATES)
        return err_set(err, ERR_DAMAGED, "", "table campaign: row %lld has no state",
                       (long long)c.id);
    return r->campaign(r->ctx, &c, err);
}

static int read_campaigns(struct fleet_store *s, const struct fleet_campaign_query *q,
                          struct campaign_reader *r, struct err *err)
{
    static const char sql[] =
        "SELECT id, name, \"by\", request, nodes, state, round, created_ms, round_ms, until_ms, n, "
        "running, done, failed, skipped, spent_s, round_s, why FROM campaign "
        "WHERE id BETWEEN CAST($1 AS bigint) AND CAST($2 AS bigint) "
        "AND (state <= CAST($3 AS bigint) OR running >= CAST($4 AS bigint)) "
        "ORDER BY id DESC LIMIT CAST($5 AS bigint)";
    int64_t most = q->id ? q->id : q->before ? q->before - 1 : INT64_MAX;
    const struct fleet_cell in[] = {
        CELL_I(q->id), CELL_I(most),
        CELL_I(q->active ? FLEET_CAMPAIGN_WAITING : FLEET_CAMPAIGN_STATES),
        CELL_I(q->running ? 1 : INT32_MAX), CELL_I(q->limit)};
    return s->engine->query(s->db, sql, in, COUNT_OF(in), read_campaign, r, err);
}

int fleet_store_campaigns(struct fleet_store *s, const struct fleet_campaign_query *q,
                          fleet_campaign_fn *fn, void *ctx, struct err *err)
{
    struct campaign_reader r = {.campaign = fn, .ctx = ctx};
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(s, read_campaigns(s, q, &r, err), err);
}

static int read_campaign_node(void *ctx, const struct fleet_cell *row, struct err *err)
{
    const struct campaign_reader *r = ctx;
    const struct fleet_campaign_node n = {row[0].t,
                                          (int)row[1].i,
                                          (int)row[2].i,
                                          row[3].i,
                                          row[4].i,
                                          row[5].i,
                                          row[6].type == CELL_NULL ? (double)NAN : row[6].d,
                                          row[7].t};
    return r->node(r->ctx, &n, err);
}

static int read_campaign_nodes(struct fleet_store *s, int64_t campaign, struct campaign_reader *r,
                               struct err *err)
{
    static const char sql[] =
        "SELECT node.name, c.state, c.round, c.requested_ms, c.ended_ms, c.run, c.seconds, c.why "
        "FROM campaign_node AS c JOIN node ON node.id = c.node "
        "WHERE c.campaign = CAST($1 AS bigint)";
    return s->engine->query(s->db, sql, &CELL_I(campaign), 1, read_campaign_node, r, err);
}

int fleet_store_campaign_nodes(struct fleet_store *s, int64_t campaign, fleet_campaign_node_fn *fn,
                               void *ctx, struct err *err)
{
    struct campaign_reader r = {.node = fn, .ctx = ctx};
    if (fleet_begin(s, err) < 0)
        return -1;
    return fleet_end(s, read_campaign_nodes(s, campaign, &r, err), err);
}

int fleet_store_campaign(struct fleet_store *s, int64_t id, fleet_campaign_fn *campaign,
                         fleet_campaign_node_fn *node, void *ctx, struct err *err)
{
    const struct fleet_campaign_query this_one = {.id = id, .limit = 1};
    struct campaign_reader r = {campaign, node, ctx};
    if (fleet_begin(s, err) < 0)
        return -1;
    int rc = read_campaigns(s, &this_one, &r, err);
    if (rc == 0)
        rc = read_campaign_nodes(s, id, &r, err);
    return fleet_end(s, rc, err);
}

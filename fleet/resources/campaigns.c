// SPDX-License-Identifier: Apache-2.0
// Campaigns are begun and cancelled in the loop, and a response waits until that is stored. What is
// read of them comes from the store, in the process that reads.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fleet/campaigns/campaigns.h"
#include "fleet/campaigns/probe_plan.h"
#include "fleet/resources/resources.h"
#include "fleet/services/services.h"
#include "http/access/access.h"

enum {
    STORED_MS = 20000, // for the store to keep a campaign
    FULL_RETRY_S = 60, // a campaign may end, or be cancelled
    CAMPAIGNS_LIMIT = 50,
    CAMPAIGNS_LIMIT_MAX = 200,
    STATES_LIMIT = 100, // of the nodes of a campaign
    STATES_LIMIT_MAX = 1000,
};

// ---- Changes ------------------------------------------------------------------------------------

static void *settled_open(void *context, int64_t of, int64_t after, void (*wake)(void *ctx),
                          void *ctx, struct err *err)
{
    const struct fleet_services *s = context;
    void *watch = campaigns_watch(s->campaigns, of, wake, ctx);
    (void)after;
    if (!watch)
        err_set(err, ERR_NO_MEMORY, "", "no memory to wait for the store");
    return watch;
}

static void settled_close(void *opened)
{
    campaigns_unwatch(opened);
}

static const struct reply_source campaign_settled = {.open = settled_open, .close = settled_close};

// The response to a change, once it is stored.
static int send_settled(struct request *q, struct reply *r, int status, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    bool dry = false;
    int settled = campaigns_settled(fleet_of(q)->campaigns, q->made, &w, &dry, err);
    if (settled == 0 && q->again)
        err_set(err, ERR_UNAVAILABLE, "store", "the store did not keep it within %d s",
                STORED_MS / 1000);
    if (settled == 0 && !q->again)
        return reply_wait(r, &campaign_settled, q->made, STORED_MS);
    if (settled <= 0)
        return -1;
    q->dry_run = dry;
    return reply_json(r, dry ? 200 : status, &body, err);
}

int fleetd_campaign_start(struct request *q, struct reply *r, struct err *err)
{
    char by[ACCESS_CLIENT_ROOM];
    access_write_client(q, by);
    if (!q->made)
        q->made = campaigns_submit(fleet_of(q)->campaigns, &q->body, by, err);
    if (q->made > 0)
        return send_settled(q, r, 201, err);
    q->made = 0;
    if (err->code == ERR_TOO_MANY)
        r->retry_after_s = FULL_RETRY_S;
    return -1;
}

int fleetd_campaign_cancel(struct request *q, struct reply *r, struct err *err)
{
    char by[ACCESS_CLIENT_ROOM];
    access_write_client(q, by);
    if (!q->made && campaigns_cancel(fleet_of(q)->campaigns, q->arg, by, err) < 0)
        return -1;
    q->made = q->arg;
    return send_settled(q, r, 200, err);
}

// ---- For Slurm ----------------------------------------------------------------------------------

int fleetd_campaign_script(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf script = BUF_INIT;
    if (campaigns_script(fleet_of(q)->campaigns, q->arg, &script, err) < 0)
        return -1;
    return reply_text(r, "text/plain; charset=utf-8", &script, err);
}

// ---- The list -----------------------------------------------------------------------------------

struct campaign_page {
    struct jsonw w;
    int64_t limit, last;
    int n;
    bool more;
};

static int list_campaign(void *ctx, const struct fleet_campaign *c, struct err *err)
{
    struct campaign_page *p = ctx;
    (void)err;
    p->more = p->n == p->limit;
    if (p->more)
        return 0;
    campaign_write_json(c, &p->w, NULL);
    p->last = c->id;
    p->n++;
    return 0;
}

int fleetd_campaign_list(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct campaign_page p = {.w = jsonw_to(&body), .limit = CAMPAIGNS_LIMIT};
    int64_t before = 0;
    bool active = false;
    if (request_query_int(q, "limit", 1, CAMPAIGNS_LIMIT_MAX, &p.limit, err) < 0 ||
        request_query_int(q, "cursor", 1, INT64_C(1) << 53, &before, err) < 0 ||
        request_query_bool(q, "active", &active, err) < 0)
        return -1;
    const struct fleet_campaign_query wanted = {
        .before = before, .active = active, .limit = (int)p.limit + 1};
    jsonw_object(&p.w, NULL);
    jsonw_array(&p.w, "campaigns");
    if (fleet_store_campaigns(fleet_of(q)->store, &wanted, list_campaign, &p, err) < 0)
        return -1;
    jsonw_end(&p.w);
    if (p.more)
        jsonw_i64(&p.w, "cursor", p.last);
    else
        jsonw_null(&p.w, "cursor");
    jsonw_end(&p.w);
    return reply_json(r, 200, &body, err);
}

// ---- One of them, with its nodes ----------------------------------------------------------------

struct node_row {
    int state;
    int64_t requested_ms, ended_ms, run;
    double seconds;
    char *why; // owned; NULL: ""
};

struct campaign_view {
    struct jsonw *w;
    struct nodeset nodes;
    struct node_row *rows; // [nodes.n]
    int round;
    bool found;
};

static int view_campaign(void *ctx, const struct fleet_campaign *c, struct err *err)
{
    struct campaign_view *v = ctx;
    v->found = true;
    v->round = c->round;
    campaign_write_json(c, v->w, "campaign");
    if (nodeset_parse(&v->nodes, c->nodes, NULL, err) < 0)
        return -1;
    v->rows = calloc((size_t)v->nodes.n + 1, sizeof *v->rows);
    return v->rows ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", v->nodes.n);
}

static int name_order(const void *key, const void *name)
{
    return nodeset_name_order(key, name);
}

static int view_node(void *ctx, const struct fleet_campaign_node *n, struct err *err)
{
    struct campaign_view *v = ctx;
    char(*at)[NODESET_NAME_ROOM] =
        bsearch(n->name, v->nodes.names, (size_t)v->nodes.n, sizeof *at, name_order);
    if (!at || n->round != v->round || n->state < 0 || n->state >= PROBE_STATES)
        return 0;
    struct node_row *row = &v->rows[at - v->nodes.names];
    int64_t ended_ms = fleet_campaign_node_ended(n->state) ? n->ended_ms : 0;
    *row = (struct node_row){n->state, n->requested_ms, ended_ms, n->run, n->seconds, NULL};
    if (*n->why && !(row->why = strdup(n->why)))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d nodes", v->nodes.n);
    return 0;
}

static void write_node_row(const char *node, const struct node_row *n, struct jsonw *w)
{
    jsonw_object(w, NULL);
    jsonw_text(w, "node", node);
    jsonw_text(w, "state", probe_state_names[n->state]);
    jsonw_text(w, "why", n->why ? n->why : "");
    if (n->run)
        jsonw_i64(w, "run", n->run);
    else
        jsonw_null(w, "run");
    jsonw_time(w, "requested", n->requested_ms);
    jsonw_time(w, "ended", n->ended_ms);
    jsonw_fixed(w, "seconds", n->ended_ms ? n->seconds : (double)NAN, 3);
    jsonw_end(w);
}

struct state_filter {
    int state; // -1: any
    int64_t limit;
    const char *after; // NULL: from the first one
};

static int read_state_filter(const struct request *q, struct state_filter *f, struct err *err)
{
    const char *state = request_query(q, "state");
    *f = (struct state_filter){-1, STATES_LIMIT, request_query(q, "cursor")};
    for (int i = 0; state && i < PROBE_STATES; i++)
        if (strcmp(state, probe_state_names[i]) == 0)
            f->state = i;
    if (state && f->state < 0)
        return err_set(err, ERR_INVALID, "state",
                       "must be pending, running, done, failed or skipped");
    return request_query_int(q, "limit", 1, STATES_LIMIT_MAX, &f->limit, err);
}

static void write_node_rows(const struct campaign_view *v, const struct state_filter *f)
{
    int64_t n = 0;
    int i = 0, last = -1;
    jsonw_array(v->w, "node_states");
    for (; i < v->nodes.n; i++) {
        if ((f->state >= 0 && v->rows[i].state != f->state) ||
            (f->after && nodeset_name_order(v->nodes.names[i], f->after) <= 0))
            continue;
        if (n++ == f->limit)
            break;
        write_node_row(v->nodes.names[i], &v->rows[i], v->w);
        last = i;
    }
    jsonw_end(v->w);
    jsonw_text(v->w, "cursor", i < v->nodes.n ? v->nodes.names[last] : NULL);
}

static void campaign_view_fini(struct campaign_view *v)
{
    for (int i = 0; v->rows && i < v->nodes.n; i++)
        free(v->rows[i].why);
    free(v->rows);
    nodeset_free(&v->nodes);
}

int fleetd_campaign(struct request *q, struct reply *r, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    struct jsonw w = jsonw_to(&body);
    struct campaign_view v CLEANUP(campaign_view_fini) = {.w = &w};
    struct state_filter f;
    if (read_state_filter(q, &f, err) < 0)
        return -1;
    jsonw_object(&w, NULL);
    if (fleet_store_campaign(fleet_of(q)->store, q->arg, view_campaign, view_node, &v, err) < 0)
        return -1;
    if (!v.found)
        return err_set(err, ERR_NOT_FOUND, "", "there is no campaign %lld", (long long)q->arg);
    if (f.after && nodeset_find(&v.nodes, f.after) < 0)
        return err_set(err, ERR_INVALID, "cursor", "is not one of an earlier response");
    write_node_rows(&v, &f);
    jsonw_end(&w);
    return reply_json(r, 200, &body, err);
}

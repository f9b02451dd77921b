// SPDX-License-Identifier: Apache-2.0
// A campaign whose runs Slurm starts. The collector contacts no node for it: a node has been probed
// when its feed has a run of the benchmark that is newer than the round.
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fleet/campaigns/campaigns.h"
#include "fleet/campaigns/parts.h"
#include "fleet/campaigns/script.h"

enum { LONGER = 2, MORE_MIN = 5 }; // the time limit of a task, beyond what is expected

void slurm_facts(struct campaign *c)
{
    for (int i = 0; i < c->nodes.n; i++) {
        const struct campaign_fact *f = &c->facts[i];
        const struct polled *n = poller_find(c->all->poller, f->node);
        if (c->plan.nodes[i].state != PROBE_PENDING ||
            f->newest_ms - (n ? n->skew_ms : 0) < c->head.round_ms)
            continue;
        probe_plan_start(&c->plan, i);
        c->states[i].run = f->newest_run;
        probe_ended(c, i, f->newest_failed ? PROBE_FAILED : PROBE_DONE, f->past_s,
                    f->newest_failed ? "the run did not succeed" : "");
    }
}

bool slurm_news(struct campaign *c)
{
    int n;
    int64_t news = 0;
    struct polled *const *nodes = poller_nodes(c->all->poller, &n);
    for (int i = 0; i < n; i++)
        if (nodes[i]->newest_ms - nodes[i]->skew_ms >= c->head.round_ms)
            news += nodes[i]->stored; // a page that is not stored has a newest run too
    bool are = news != c->news;
    c->news = news;
    return are;
}

void slurm_give_up(struct campaign *c)
{
    for (int i = 0; i < c->nodes.n; i++)
        if (c->plan.nodes[i].state == PROBE_PENDING)
            probe_ended(c, i, PROBE_SKIPPED, 0, "no run of it has been seen within retry_for");
}

// Nodes that are left, in the order of the plan.
static int nodes_left(const struct campaign *c, struct nodeset *out, struct err *err)
{
    for (int at = 0; at < c->plan.n; at++) {
        int node = c->plan.order[at];
        if (c->plan.nodes[node].state == PROBE_PENDING &&
            nodeset_add(out, c->nodes.names[node], err) < 0)
            return -1;
    }
    return 0;
}

int campaigns_script(const struct campaigns *all, int64_t id, struct buf *out, struct err *err)
{
    CLEANUP_NODESET struct nodeset left = {0};
    const struct campaign *c = campaign_active(all, id, err);
    if (!c)
        return -1;
    if (!c->request.by_slurm)
        return err_set(err, ERR_CONFLICT, "",
                       "campaign %lld contacts the daemons itself: its \"through\" is not slurm",
                       (long long)id);
    if (!c->planned)
        return err_set(err, ERR_UNAVAILABLE, "store", "its nodes are being read: try again");
    if (nodes_left(c, &left, err) < 0)
        return -1;
    if (!left.n)
        return err_set(err, ERR_CONFLICT, "", "each node was probed in this round");
    double longest_s = probe_plan_longest(&c->plan);
    return campaign_script_write(&c->request, &left, (int64_t)(LONGER * longest_s / 60) + MORE_MIN,
                                 out, err);
}

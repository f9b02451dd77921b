// SPDX-License-Identifier: Apache-2.0
// Findings are those that were stored before this judgement. So a finding that opens now drains
// nothing yet.
#include "fleet/judging_drain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/peers/drain.h"
#include "base/cleanup.h"
#include "fleet/collect/draining.h"
#include "fleet/store/findings.h"

struct drain_chooser {
    const struct judging_drain *d;
    struct drain_plan plan;
    int64_t *finding; // [node of the fleet]: the finding for which it may be drained; 0: none
    const struct drain_one **one; // [node of the fleet]: in the plan; NULL: not to be drained
};

static void chooser_fini(struct drain_chooser *c)
{
    drain_plan_fini(&c->plan);
    free(c->finding);
    free(c->one);
}

static int choose_kept(void *ctx, const struct fleet_kept *k, struct err *err)
{
    struct drain_chooser *c = ctx;
    int node = interned_find(&c->d->fleet->nodes, k->node);
    (void)err;
    if (node >= 0 && c->one[node] &&
        strcmp(fleet_finding_names[c->one[node]->finding->what], kept_whats[k->what].name) == 0 &&
        k->grade == KEPT_SURE && k->drained_ms < k->opened_ms &&
        c->d->fleet->node[node].newest_ms > k->opened_ms)
        c->finding[node] = k->id;
    return 0;
}

static int choose_now(struct drain_chooser *c, struct err *err)
{
    static const enum kept_what kinds[] = {KEPT_OUTLIER, KEPT_SLOWER};
    const struct fleet *f = c->d->fleet;
    int share = c->plan.listed / DRAIN_FLEET_SHARE, room = (share ? share : 1) - c->plan.ours;
    for (int i = 0; i < c->plan.n; i++)
        if (c->plan.list[i].verdict == DRAIN_NODE)
            c->one[c->plan.list[i].node] = &c->plan.list[i];
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct fleet_kept_query q = {.states = 1U << KEPT_OPEN,
                                           .what = kept_whats[kinds[i]].name};
        if (fleet_store_findings(c->d->store, &q, choose_kept, c, err) < 0)
            return -1;
    }
    room = room < DRAINING_MOST ? room : DRAINING_MOST;
    for (int i = 0; i < c->plan.n && room > 0; i++) {
        const struct drain_one *one = &c->plan.list[i];
        if (!c->finding[one->node])
            continue;
        buf_fmt(c->d->now, "%" PRId64 "\t%s\t", c->finding[one->node], f->nodes.list[one->node]);
        drain_reason(one->finding, c->d->now);
        buf_char(c->d->now, '\n');
        room--;
    }
    return 0;
}

int judging_drain(const struct judging_drain *d, struct err *err)
{
    struct drain_chooser c CLEANUP(chooser_fini) = {.d = d};
    struct jsonw w = jsonw_to(d->json);
    c.finding = calloc((size_t)d->fleet->nodes.n + 1, sizeof *c.finding);
    c.one = calloc((size_t)d->fleet->nodes.n + 1, sizeof *c.one);
    if (!c.finding || !c.one)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the nodes to drain");
    if (drain_plan_make(&c.plan, d->fleet, d->list, d->reasons, err) < 0)
        return -1;
    drain_write_json(&c.plan, d->fleet, DRAIN_LISTED_MAX, &w, NULL);
    drain_write_lines(&c.plan, d->fleet, DRAIN_LISTED_MAX, d->lines);
    return d->apply && c.plan.drains ? choose_now(&c, err) : 0;
}

// SPDX-License-Identifier: Apache-2.0
// What the firmware claims of the memory (HMAT) beside what was measured. Programs that choose
// memory by hwloc believe the claim. Where the firmware says nothing, the report says nothing.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis/report/section.h"
#include "analysis/stats/node_costs.h"
#include "base/cleanup.h"

enum { CLAIMS_SHOWN_MAX = 32 }; // of each quantity

static const struct claim_kind {
    enum node_cost_kind kind;
    size_t offset;
    const char *what;
} claim_kinds[] = {
    {NODE_COST_LATENCY, offsetof(struct topo_claim, latency_ns), "idle"},
    {NODE_COST_CONCURRENT, offsetof(struct topo_claim, latency_ns), "with all ranks at once"},
    {NODE_COST_READ, offsetof(struct topo_claim, read_mbps), "read by all ranks of the node"},
    {NODE_COST_WRITE, offsetof(struct topo_claim, write_mbps), "written by all ranks of the node"},
};

static void say_claim(struct report_out *o, const struct topo_claim *c, const struct claim_kind *k,
                      double claim, double measured)
{
    bool bandwidth = node_cost_more_is_better(k->kind);
    struct jsonw *w = report_finding(o, "claim");
    jsonw_i64(w, "initiator", c->initiator);
    jsonw_i64(w, "target", c->target);
    jsonw_text(w, "quantity", node_cost_kinds[k->kind].name);
    jsonw_fixed(w, "claimed", claim, 2);
    jsonw_fixed(w, "measured", measured, 2);
    jsonw_fixed(w, "ratio", measured / claim, 3);
    if (bandwidth)
        report_say(
            o,
            "CPUs of node %d, memory of node %d: the firmware claims %.1f GB/s, measured are "
            "%.1f GB/s (%s), %.0f %% of that.",
            c->initiator, c->target, claim / 1000, measured / 1000, k->what,
            100 * measured / claim);
    else
        report_say(o,
                   "CPUs of node %d, memory of node %d: the firmware claims %.0f ns, measured are "
                   "%.1f ns (%s), × %.2f.",
                   c->initiator, c->target, claim, measured, k->what, measured / claim);
}

// Returns how many pairs there are; o NULL: they are only counted.
static int report_kind(struct report_out *o, const struct node_costs *costs,
                       const struct claim_kind *k)
{
    const struct topology *t = costs->topology;
    int pairs = 0;
    for (int i = 0; i < t->n_claims; i++) {
        const struct topo_claim *c = &t->claims[i];
        double claim = *(const double *)(const void *)((const char *)c + k->offset);
        int from = topology_node_index(t, c->initiator), to = topology_node_index(t, c->target);
        double measured = from < 0 || to < 0 ? NAN : node_cost_at(costs, k->kind, from, to).v;
        if (!(claim > 0) || isnan(measured))
            continue;
        if (o && pairs < CLAIMS_SHOWN_MAX)
            say_claim(o, c, k, claim, measured);
        pairs++;
    }
    if (o && pairs > CLAIMS_SHOWN_MAX) {
        jsonw_i64(report_finding(o, "more_claims"), "pairs", pairs - CLAIMS_SHOWN_MAX);
        report_say(o, "%d more pairs of nodes have a claim of the firmware.",
                   pairs - CLAIMS_SHOWN_MAX);
    }
    return pairs;
}

static int add_measured(struct node_costs *costs, const struct report_source *s, struct err *err)
{
    struct node_cost_tally tally;
    const struct node_cost_run run = {.benchmark = s->benchmark,
                                      .matrices = s->matrices,
                                      .n_matrices = s->n,
                                      .ranks = s->ranks,
                                      .n_ranks = s->n_ranks,
                                      .found_bytes = s->found_bytes,
                                      .size_bytes = s->size_bytes};
    return node_costs_add(costs, &run, &tally, err);
}

int report_claims(struct report_out *o, const char *heading, const struct report_source *run,
                  const struct report_source *with, struct err *err)
{
    struct node_costs costs CLEANUP(node_costs_fini) = {0};
    int pairs = 0;
    if (!run->topology || !run->topology->n_claims)
        return 0;
    node_costs_init(&costs, run->topology);
    if (add_measured(&costs, run, err) < 0 || (with && add_measured(&costs, with, err) < 0))
        return -1;
    for (size_t i = 0; i < COUNT_OF(claim_kinds); i++)
        pairs += report_kind(NULL, &costs, &claim_kinds[i]);
    if (!pairs)
        return 0;
    if (heading)
        report_head(o, heading);
    for (size_t i = 0; i < COUNT_OF(claim_kinds); i++)
        report_kind(o, &costs, &claim_kinds[i]);
    if (heading)
        report_tail(o);
    return 0;
}

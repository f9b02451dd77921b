// SPDX-License-Identifier: Apache-2.0
// The matrix benchmark: from which node is whose memory how far, does the way back take as long,
// and is one node unlike the others?
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/report/section.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"

static const double NOTABLE = 0.05; // smaller differences between nodes are not reported

struct near {
    const struct report_source *s;
    const struct matrix *m;
    struct report_nodes nodes;          // with ranks
    int64_t row_node[REPORT_CELLS_MAX]; // that the rank of a row ran on
    bool *odd_target;                   // columns whose memory is unlike others: said once
    bool some;                          // not every cell was measured
};

static struct report_value from_to(const struct near *x, int64_t node, int64_t target)
{
    bool in[REPORT_CELLS_MAX] = {false};
    for (int i = 0; i < x->m->row.n && i < REPORT_CELLS_MAX; i++)
        in[i] = x->row_node[i] == node;
    return report_value_of(x->m, in, axis_index(&x->m->col, target));
}

// What the firmware says of the same way, as a factor of the own node's; NaN: not known.
static double firmware_factor(const struct topology *t, int64_t node, int64_t target)
{
    int i = t ? topology_node_index(t, (int)node) : -1;
    int j = t ? topology_node_index(t, (int)target) : -1;
    if (i < 0 || j < 0 || !t->distance || t->distance[i * t->n_nodes + i] <= 0)
        return NAN;
    return (double)t->distance[i * t->n_nodes + j] / t->distance[i * t->n_nodes + i];
}

struct remote {
    int64_t nearest, farthest; // -1: none
    double near_ns, far_ns;
};

static struct remote remote_of(const struct near *x, int64_t node)
{
    struct remote r = {-1, -1, INFINITY, -INFINITY};
    for (int j = 0; j < x->m->col.n; j++) {
        int64_t target = x->m->col.values[j];
        double v = from_to(x, node, target).v;
        if (target == node || isnan(v))
            continue;
        if (v < r.near_ns) {
            r.near_ns = v;
            r.nearest = target;
        }
        if (v > r.far_ns) {
            r.far_ns = v;
            r.farthest = target;
        }
    }
    return r;
}

static void report_node(struct report_out *o, const struct near *x, int64_t node)
{
    const char *of = x->some ? " measured" : "";
    double own = from_to(x, node, node).v;
    struct remote r = remote_of(x, node);
    struct jsonw *w = report_finding(o, "node");
    jsonw_i64(w, "node", node);
    jsonw_fixed(w, "own_ns", own, 2);
    if (r.nearest >= 0) {
        jsonw_i64(w, "nearest", r.nearest);
        jsonw_fixed(w, "nearest_ns", r.near_ns, 2);
        jsonw_fixed(w, "nearest_factor", r.near_ns / own, 3);
        jsonw_i64(w, "farthest", r.farthest);
        jsonw_fixed(w, "farthest_ns", r.far_ns, 2);
        jsonw_fixed(w, "farthest_factor", r.far_ns / own, 3);
        jsonw_fixed(w, "farthest_firmware", firmware_factor(x->s->topology, node, r.farthest), 2);
    }
    if (isnan(own))
        report_say(o, "Node %" PRId64 " has no memory of its own in this matrix%s.", node,
                   r.nearest < 0 ? "" : "; its row holds remote latencies");
    else if (r.nearest < 0)
        report_say(o, "Node %" PRId64 ": own memory %.1f ns; no other was measured.", node, own);
    else if (r.nearest == r.farthest)
        report_say(o, "Node %" PRId64 ": own memory %.1f ns, node %" PRId64 "'s %.1f ns (× %.2f).",
                   node, own, r.nearest, r.near_ns, r.near_ns / own);
    else
        report_say(o,
                   "Node %" PRId64 ": own memory %.1f ns, nearest%s node %" PRId64
                   " %.1f ns (× %.2f), farthest%s node %" PRId64 " %.1f ns (× %.2f).",
                   node, own, of, r.nearest, r.near_ns, r.near_ns / own, of, r.farthest, r.far_ns,
                   r.far_ns / own);
}

static bool is_odd(const struct near *x, int64_t target)
{
    int col = axis_index(&x->m->col, target);
    return col >= 0 && x->odd_target[col];
}

// Ways that take longer in one direction; if there are none, how alike the two directions are.
static void report_asymmetries(struct report_out *o, const struct near *x)
{
    int found = 0, ways = 0;
    double most = 0;
    for (int i = 0; i < x->nodes.n; i++)
        for (int j = i + 1; j < x->nodes.n; j++) {
            int64_t a = x->nodes.node[i], b = x->nodes.node[j];
            struct report_value there = from_to(x, a, b), back = from_to(x, b, a);
            double off = 100 * fabs(fmax(there.v, back.v) / fmin(there.v, back.v) - 1);
            if (isnan(off))
                continue;
            ways++;
            most = fmax(most, off);
            if (!report_apart(there, back, NOTABLE))
                continue;
            found++;
            if (is_odd(x, a) || is_odd(x, b))
                continue;
            struct jsonw *w = report_finding(o, "asymmetry");
            jsonw_i64(w, "node", a);
            jsonw_i64(w, "target", b);
            jsonw_fixed(w, "there_ns", there.v, 2);
            jsonw_fixed(w, "back_ns", back.v, 2);
            jsonw_fixed(w, "percent", off, 1);
            report_say(
                o,
                "From node %" PRId64 " to node %" PRId64
                "'s memory it takes %.1f ns, in the opposite direction %.1f ns (%.0f %% apart).",
                a, b, there.v, back.v, off);
        }
    if (found || !ways)
        return;
    struct jsonw *w = report_finding(o, "symmetric");
    jsonw_i64(w, "ways", ways);
    jsonw_fixed(w, "largest_percent", most, 1);
    report_say(o,
               "No pair of nodes has a significantly longer latency (95 %%) in one direction by "
               "%.0f %% or more; the largest difference of %d is %.1f %%.",
               100 * NOTABLE, ways, most);
}

// Nodes whose own memory is off what is typical of all; if there are none, how alike they are.
static void report_odd_nodes(struct report_out *o, const struct near *x)
{
    double own[64], sorted[64], most = 0;
    int n = 0, found = 0;
    for (int i = 0; i < x->nodes.n; i++) {
        own[i] = from_to(x, x->nodes.node[i], x->nodes.node[i]).v;
        if (!isnan(own[i]))
            sorted[n++] = own[i];
    }
    double typical = middle_of(sorted, n);
    for (int i = 0; n >= 3 && i < x->nodes.n; i++) {
        struct report_value v = from_to(x, x->nodes.node[i], x->nodes.node[i]);
        double off = 100 * (own[i] / typical - 1);
        most = fmax(most, fabs(off));
        if (!report_apart(v, (struct report_value){typical, typical, typical}, NOTABLE))
            continue;
        found++;
        if (is_odd(x, x->nodes.node[i]))
            continue;
        struct jsonw *w = report_finding(o, "node_differs");
        jsonw_i64(w, "node", x->nodes.node[i]);
        jsonw_fixed(w, "own_ns", own[i], 2);
        jsonw_fixed(w, "typical_ns", typical, 2);
        jsonw_fixed(w, "percent", off, 1);
        report_say(o,
                   "Node %" PRId64 " reaches its own memory in %.1f ns, where %.1f ns are typical "
                   "of the nodes (%+.0f %%).",
                   x->nodes.node[i], own[i], typical, off);
    }
    if (found || n < 3)
        return;
    struct jsonw *w = report_finding(o, "nodes_alike");
    jsonw_i64(w, "nodes", n);
    jsonw_fixed(w, "typical_ns", typical, 2);
    jsonw_fixed(w, "largest_percent", most, 1);
    report_say(o,
               "No node differs significantly (95 %%) from the others: own memory typically takes "
               "%.1f ns, and the %d nodes are within %.1f %% of that.",
               typical, n, most);
}

int section_matrix(struct report_out *o, const struct report_source *run,
                   const struct report_source *with, struct err *err)
{
    struct near x = {.s = run, .m = report_matrix(run, "idle")};
    (void)with;
    if (!x.m)
        return err_set(err, ERR_INVALID, "matrices", "the matrix \"idle\" is missing");
    x.nodes = report_nodes_of(run, &x.m->row);
    for (int i = 0; i < x.m->row.n && i < REPORT_CELLS_MAX; i++)
        x.row_node[i] = report_cpu_node(run, x.m->row.values[i]);
    CLEANUP_MEM bool *odd = calloc((size_t)x.m->col.n, sizeof *odd);
    if (!odd)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the report");
    x.odd_target = odd;
    report_head(o, "Local and remote memory (idle latency)");
    x.some = report_coverage(o, x.m);
    if (report_parts(o, run, x.m, x.odd_target, err) < 0)
        return -1;
    for (int i = 0; i < x.nodes.n; i++)
        report_node(o, &x, x.nodes.node[i]);
    report_asymmetries(o, &x);
    report_odd_nodes(o, &x);
    if (report_claims(o, NULL, run, NULL, err) < 0)
        return -1;
    if (!x.nodes.n) {
        jsonw_i64(report_finding(o, "unknown"), "ranks", x.m->row.n);
        report_say(o,
                   "Where the %d ranks ran is not recorded, so local and remote memory cannot be "
                   "distinguished.",
                   x.m->row.n);
    }
    report_tail(o);
    return 0;
}

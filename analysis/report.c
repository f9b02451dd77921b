// SPDX-License-Identifier: Apache-2.0
#include "analysis/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIB(bytes) ((double)(bytes) / 1048576)

static const char *const match_names[] = {"unknown", "cache full", "cache exceeded"};
static const char *const nodes_names[] = {"unknown", "alike", "differ"};
static const char *const anomaly_names[] = {"inversion", "outlier"};

static int find_mode(struct report_mode *mode, const struct matrix *m,
                     const struct rank_info *ranks, int n_ranks, const struct topology *topology,
                     struct err *err)
{
    mode->matrix = m;
    if (m == NULL)
        return 0;
    if (curve_find(&mode->curve, m, topology, err) < 0 ||
        groups_find(&mode->groups, m, ranks, n_ranks, curve_plateau(&mode->curve), err) < 0)
        return -1;
    return anomaly_find(&mode->anomalies, m, &mode->groups, err);
}

static void add_samples(const struct matrix *m, double *kept, double *disturbed)
{
    for (int k = 0; m != NULL && k < m->row.n * m->col.n; k++) {
        const double *v = m->cells[k].v;
        if (isnan(v[CELL_N]) || isnan(v[CELL_DISTURBED]))
            continue;
        *kept += v[CELL_N];
        *disturbed += v[CELL_DISTURBED];
    }
}

static void find_placement(struct report *r, const struct rank_info *ranks, int n)
{
    struct report_placement *p = &r->placement;
    double kept = 0, disturbed = 0;
    for (int i = 0; ranks != NULL && i < n; i++) {
        bool checked = ranks[i].pages_checked > 0 && !isnan(ranks[i].mem_share);
        p->known = p->known || checked;
        p->ranks += checked;
        p->wrong_memory += checked && ranks[i].mem_share < 0.99;
        p->migrated += ranks[i].migrations > 0;
    }
    add_samples(r->serial.matrix, &kept, &disturbed);
    add_samples(r->concurrent.matrix, &kept, &disturbed);
    p->disturbed_share = kept + disturbed > 0 ? disturbed / (kept + disturbed) : NAN;
}

void report_free(struct report *r)
{
    free(r);
}

static int fill(struct report *r, const struct matrix *serial, const struct matrix *concurrent,
                const struct rank_info *ranks, int n, const struct topology *t, struct err *err)
{
    if (find_mode(&r->serial, serial, ranks, n, t, err) < 0 ||
        find_mode(&r->concurrent, concurrent, ranks, n, t, err) < 0)
        return -1;
    r->have_contention = serial != NULL && concurrent != NULL;
    if (r->have_contention && contention_find(&r->contention, serial, concurrent, err) < 0)
        return -1;
    find_placement(r, ranks, n);
    return 0;
}

struct report *report_new(const struct matrix *serial, const struct matrix *concurrent,
                          const struct rank_info *ranks, int n_ranks,
                          const struct topology *topology, struct err *err)
{
    if (serial == NULL && concurrent == NULL) {
        err_set(err, ERR_INVALID, "matrices", "a report needs a serial or a concurrent matrix");
        return NULL;
    }
    struct report *r = calloc(1, sizeof *r);
    if (r == NULL) {
        err_set(err, ERR_NO_MEMORY, "", "no memory for the report");
        return NULL;
    }
    if (fill(r, serial, concurrent, ranks, n_ranks, topology, err) == 0)
        return r;
    report_free(r);
    return NULL;
}

// ---- JSON ---------------------------------------------------------------------------------------

static void write_steps(const struct curve *c, struct jsonw *w)
{
    jsonw_array(w, "steps");
    for (int i = 0; i < c->n; i++) {
        const struct curve_step *s = &c->steps[i];
        jsonw_object(w, NULL);
        jsonw_i64(w, "from_bytes", s->from_bytes);
        jsonw_i64(w, "to_bytes", s->to_bytes);
        jsonw_fixed(w, "from_ns", s->from, 2);
        jsonw_fixed(w, "to_ns", s->to, 2);
        jsonw_fixed(w, "factor", s->factor, 3);
        jsonw_text(w, "match", match_names[s->match]);
        if (s->match != CURVE_UNKNOWN) {
            jsonw_i64(w, "cache_level", s->level);
            jsonw_i64(w, "cache_bytes", s->cache_bytes);
        }
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_groups(const struct groups *g, struct jsonw *w)
{
    jsonw_object(w, "groups");
    jsonw_bool(w, "known", g->known);
    jsonw_fixed(w, "p", g->p, 4);
    jsonw_i64(w, "from_bytes", g->from_bytes);
    jsonw_array(w, "slow_ranks");
    for (int i = 0; i < g->n; i++) {
        jsonw_object(w, NULL);
        jsonw_i64(w, "rank", g->slow[i].rank);
        jsonw_i64(w, "fast_rank", g->slow[i].fast_rank);
        jsonw_i64(w, "node", g->slow[i].node);
        jsonw_fixed(w, "typical_ratio", g->slow[i].typical, 3);
        jsonw_fixed(w, "worst_ratio", g->slow[i].worst, 3);
        jsonw_i64(w, "worst_bytes", g->slow[i].worst_bytes);
        jsonw_end(w);
    }
    jsonw_end(w);
    jsonw_text(w, "nodes", nodes_names[g->nodes]);
    jsonw_i64(w, "node_count", g->n_nodes);
    jsonw_fixed(w, "node_spread_percent", g->node_spread_percent, 2);
    jsonw_fixed(w, "within_percent", g->within_percent, 2);
    jsonw_end(w);
}

static void write_anomalies(const struct anomalies *a, struct jsonw *w)
{
    jsonw_array(w, "anomalies");
    for (int i = 0; i < a->n; i++) {
        const struct anomaly *x = &a->list[i];
        jsonw_object(w, NULL);
        jsonw_text(w, "kind", anomaly_names[x->kind]);
        jsonw_i64(w, "rank", x->rank);
        if (x->other_rank >= 0)
            jsonw_i64(w, "other_rank", x->other_rank);
        jsonw_i64(w, "working_set", x->bytes);
        jsonw_fixed(w, "ns", x->value, 2);
        jsonw_fixed(w, "other_ns", x->other, 2);
        jsonw_fixed(w, "percent", x->percent, 1);
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void write_mode(const struct report_mode *m, struct jsonw *w, const char *key)
{
    if (m->matrix == NULL)
        return;
    jsonw_object(w, key);
    write_steps(&m->curve, w);
    write_groups(&m->groups, w);
    write_anomalies(&m->anomalies, w);
    jsonw_end(w);
}

static void write_contention(const struct contention *c, struct jsonw *w)
{
    jsonw_object(w, "contention");
    jsonw_bool(w, "parts", c->parts);
    if (c->parts)
        jsonw_i64(w, "from_bytes", c->from_bytes);
    jsonw_fixed(w, "typical_ratio_before", c->typical_before, 3);
    jsonw_fixed(w, "typical_ratio_after", c->typical_after, 3);
    jsonw_fixed(w, "worst_ratio", c->worst, 3);
    jsonw_i64(w, "worst_rank", c->worst_rank);
    jsonw_i64(w, "worst_bytes", c->worst_bytes);
    jsonw_end(w);
}

void report_write_json(const struct report *r, struct jsonw *w, const char *key)
{
    jsonw_object(w, key);
    write_mode(&r->serial, w, "serial");
    write_mode(&r->concurrent, w, "concurrent");
    if (r->have_contention)
        write_contention(&r->contention, w);
    jsonw_object(w, "placement");
    jsonw_bool(w, "known", r->placement.known);
    jsonw_i64(w, "ranks_checked", r->placement.ranks);
    jsonw_i64(w, "ranks_with_wrong_memory", r->placement.wrong_memory);
    jsonw_i64(w, "ranks_migrated", r->placement.migrated);
    jsonw_fixed(w, "disturbed_share", r->placement.disturbed_share, 4);
    jsonw_end(w);
    jsonw_end(w);
}

// ---- Markdown -----------------------------------------------------------------------------------

static void say_match(const struct curve_step *s, struct buf *out)
{
    if (s->match == CURVE_CACHE_FULL)
        buf_fmt(out, ": the %g MiB L%d cache runs out", MIB(s->cache_bytes), s->level);
    else if (s->match == CURVE_CACHE_EXCEEDED)
        buf_fmt(out, ": the %g MiB L%d cache is exceeded, most loads go past it",
                MIB(s->cache_bytes), s->level);
    else
        buf_str(out, " (no recorded cache size matches)");
    buf_str(out, ".\n");
}

static void say_steps(const struct curve *c, struct buf *out)
{
    if (c->n == 0)
        buf_fmt(out, "- No step: nowhere do all ranks climb together by %.0f %% or more.\n",
                100 * (CURVE_FACTOR - 1));
    for (int i = 0; i < c->n; i++) {
        const struct curve_step *s = &c->steps[i];
        buf_fmt(out, "- From %g to %g MiB latency grows from %.1f to %.1f ns (× %.2f)",
                MIB(s->from_bytes), MIB(s->to_bytes), s->from, s->to, s->factor);
        say_match(s, out);
    }
}

static void say_groups(const struct groups *g, struct buf *out)
{
    if (!g->known) {
        buf_str(out, "- Groups of ranks cannot be judged: that takes recorded places, two ranks in "
                     "a NUMA node and three sizes.\n");
        return;
    }
    if (g->n == 0)
        buf_fmt(out,
                "- No slow group: from %g MiB on, ranks of one NUMA node are typically within "
                "%.1f %% of one another.\n",
                MIB(g->from_bytes), g->within_percent);
    else
        buf_fmt(out, "- %d slow rank%s from %g MiB on (p = %.4f):\n", g->n, g->n == 1 ? "" : "s",
                MIB(g->from_bytes), g->p);
    for (int i = 0; i < g->n; i++) {
        const struct slow_rank *s = &g->slow[i];
        buf_fmt(out,
                "  - rank %lld is typically %.0f %% slower than rank %lld on the same node %lld, "
                "at most %.0f %% (at %g MiB).\n",
                (long long)s->rank, 100 * (s->typical - 1), (long long)s->fast_rank,
                (long long)s->node, 100 * (s->worst - 1), MIB(s->worst_bytes));
    }
}

static void say_nodes(const struct groups *g, struct buf *out)
{
    static const char *const words[] = {"cannot be told apart or called alike", "are alike",
                                        "differ"};
    if (g->n_nodes > 1)
        buf_fmt(out,
                "- The %d NUMA nodes %s: the one furthest from the mean (node %lld) is off by "
                "%+.1f %%, against %.1f %% of spread inside a node.\n",
                g->n_nodes, words[g->nodes], (long long)g->node_worst, g->node_spread_percent,
                g->within_percent);
}

static void say_anomalies(const struct anomalies *a, struct buf *out)
{
    for (int i = 0; i < a->n; i++) {
        const struct anomaly *x = &a->list[i];
        buf_fmt(out, "- At %g MiB rank %lld takes %.1f ns, ", MIB(x->bytes), (long long)x->rank,
                x->value);
        if (x->kind == ANOMALY_INVERSION)
            buf_fmt(out, "rank %lld %.1f ns: their usual order is inverted (%+.0f %%).\n",
                    (long long)x->other_rank, x->other, x->percent);
        else
            buf_fmt(out, "where %.1f ns are typical (%+.0f %%).\n", x->other, x->percent);
    }
}

static void say_mode(const struct report_mode *m, const char *title, struct buf *out)
{
    if (m->matrix == NULL)
        return;
    buf_fmt(out, "## %s\n\n", title);
    say_steps(&m->curve, out);
    say_groups(&m->groups, out);
    say_nodes(&m->groups, out);
    say_anomalies(&m->anomalies, out);
    buf_char(out, '\n');
}

static void say_contention(const struct contention *c, struct buf *out)
{
    buf_str(out, "## All at once against one at a time\n\n");
    if (c->parts)
        buf_fmt(out,
                "- The two modes part from %g MiB on: below, concurrent is typically %+.1f %% "
                "against serial, from there on %+.1f %%.\n",
                MIB(c->from_bytes), 100 * (c->typical_before - 1), 100 * (c->typical_after - 1));
    else
        buf_fmt(out, "- The two modes do not part: typically %+.1f %%.\n",
                100 * (c->typical_before - 1));
    buf_fmt(out, "- Largest difference: rank %lld at %g MiB, %.1f against %.1f ns (%+.0f %%).\n\n",
            (long long)c->worst_rank, MIB(c->worst_bytes), c->worst_concurrent, c->worst_serial,
            100 * (c->worst - 1));
}

static void say_placement(const struct report_placement *p, struct buf *out)
{
    buf_str(out, "## Placement and disturbance\n\n");
    if (p->known)
        buf_fmt(out,
                "- %d of %d ranks had less than 99 %% of their pages where asked; %d moved to "
                "another CPU.\n",
                p->wrong_memory, p->ranks, p->migrated);
    else
        buf_str(out, "- Where the memory really was is not recorded.\n");
    if (isnan(p->disturbed_share))
        buf_str(out, "- Disturbance is not recorded.\n");
    else
        buf_fmt(out, "- %.1f %% of the samples were left out as disturbed.\n",
                100 * p->disturbed_share);
}

void report_write_markdown(const struct report *r, struct buf *out)
{
    say_mode(&r->serial, "One rank at a time (serial)", out);
    say_mode(&r->concurrent, "All ranks at once (concurrent)", out);
    if (r->have_contention)
        say_contention(&r->contention, out);
    say_placement(&r->placement, out);
}

// SPDX-License-Identifier: Apache-2.0
// Latency over working set: the curve's steps, slow groups, odd cells; and of a serial and a
// concurrent matrix together, the cost of contention.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/outliers.h"
#include "analysis/report/rank_groups.h"
#include "analysis/report/section.h"
#include "analysis/stats/contention.h"
#include "analysis/stats/curve.h"
#include "base/cleanup.h"
#include "base/str.h"

enum { SLOW_LINES_MAX = 12 }; // more ranks are reported by what they have in common
enum { SIZE_ROOM = 24 };

static const char *const match_names[] = {"unknown", "cache full", "cache exceeded"};
static const char *const nodes_names[] = {"unknown", "alike", "differ"};
static const char *const common_names[SLOW_COMMONS] = {[COMMON_NOT_LAST] = "not_last",
                                                       [COMMON_NOT_FIRST] = "not_first",
                                                       [COMMON_LAST] = "last",
                                                       [COMMON_FIRST] = "first",
                                                       [COMMON_ODD] = "odd",
                                                       [COMMON_EVEN] = "even",
                                                       [COMMON_L3] = "l3",
                                                       [COMMON_SOCKET] = "socket",
                                                       [COMMON_NODE] = "node"};
static const char *const anomaly_names[] = {"inversion", "outlier"};

struct one_mode {
    const struct matrix *matrix; // NULL: this mode was not measured
    struct curve curve;
    struct groups groups;
    struct anomalies anomalies;
};

static int find_mode(struct one_mode *mode, const struct report_source *s, const char *name,
                     struct err *err)
{
    mode->matrix = s ? report_matrix(s, name) : NULL;
    if (mode->matrix == NULL)
        return 0;
    const struct curve_machine machine = {.topology = s->topology,
                                          .ranks = s->ranks,
                                          .n_ranks = s->n_ranks,
                                          .together = strcmp(name, "concurrent") == 0};
    if (curve_find(&mode->curve, mode->matrix, &machine, err) < 0 ||
        groups_find(&mode->groups, mode->matrix, s->ranks, s->n_ranks, s->topology,
                    curve_plateau(&mode->curve), err) < 0)
        return -1;
    return anomaly_find(&mode->anomalies, mode->matrix, &mode->groups, err);
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
        jsonw_i64(w, "ranks_climbing", s->climbing);
        jsonw_i64(w, "ranks", s->ranks);
        jsonw_text(w, "match", match_names[s->match]);
        if (s->match != CURVE_UNKNOWN) {
            jsonw_i64(w, "cache_level", s->level);
            jsonw_i64(w, "cache_bytes", s->cache_bytes);
            jsonw_i64(w, "ranks_sharing", s->sharers);
        }
        jsonw_end(w);
    }
    jsonw_end(w);
}

static void latency_write_groups(const struct groups *g, struct jsonw *w)
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
    if (g->common.what == COMMON_NONE) {
        jsonw_null(w, "slow_in_common");
    } else {
        jsonw_object(w, "slow_in_common");
        jsonw_text(w, "what", common_names[g->common.what]);
        jsonw_i64(w, "value", g->common.k);
        jsonw_i64(w, "ranks_right", g->common.right);
        jsonw_i64(w, "ranks", g->common.ranks);
        jsonw_end(w);
    }
    jsonw_text(w, "nodes", nodes_names[g->nodes]);
    jsonw_i64(w, "node_count", g->n_nodes);
    if (g->node_worst < 0)
        jsonw_null(w, "node_worst");
    else
        jsonw_i64(w, "node_worst", g->node_worst);
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

static void write_mode(const struct one_mode *m, struct jsonw *w, const char *key)
{
    if (m->matrix == NULL)
        return;
    jsonw_object(w, key);
    write_steps(&m->curve, w);
    latency_write_groups(&m->groups, w);
    write_anomalies(&m->anomalies, w);
    jsonw_end(w);
}

static void write_contention(const struct contention *c, struct jsonw *w)
{
    jsonw_object(w, "contention");
    jsonw_bool(w, "diverge", c->parts);
    if (c->parts)
        jsonw_i64(w, "from_bytes", c->from_bytes);
    jsonw_fixed(w, "typical_ratio_before", c->typical_before, 3);
    jsonw_fixed(w, "typical_ratio_after", c->typical_after, 3);
    jsonw_fixed(w, "worst_ratio", c->worst, 3);
    jsonw_i64(w, "worst_rank", c->worst_rank);
    jsonw_i64(w, "worst_bytes", c->worst_bytes);
    jsonw_end(w);
}

// ---- Markdown -----------------------------------------------------------------------------------

// "32K", as the tables have it.
static const char *latency_size_text(int64_t bytes, char out[static SIZE_ROOM])
{
    str_from_bytes((uint64_t)bytes, out, SIZE_ROOM);
    return out;
}

static void say_match(const struct curve_step *s, struct buf *out)
{
    char cache[80];
    snprintf(cache, sizeof cache, "the %s L%d cache",
             latency_size_text(s->cache_bytes, (char[SIZE_ROOM]){0}), s->level);
    if (s->sharers > 1)
        snprintf(cache + strlen(cache), sizeof cache - strlen(cache),
                 ", shared by %d ranks (%s each),", s->sharers,
                 latency_size_text(s->cache_bytes / s->sharers, (char[SIZE_ROOM]){0}));
    if (s->match == CURVE_CACHE_FULL)
        buf_fmt(out, ": %s runs out", cache);
    else if (s->match == CURVE_CACHE_EXCEEDED)
        buf_fmt(out, ": %s is exceeded, and most loads miss it", cache);
    else
        buf_str(out, " (no recorded cache size matches)");
    buf_str(out, ".\n");
}

static void say_no_step(const struct curve *c, struct buf *out)
{
    const struct curve_step *s = &c->largest;
    if (isnan(s->factor))
        return; // one size, or no two that the same ranks have
    buf_fmt(out,
            "- No step: at no size does latency rise by %.0f %% or more for %.0f %% of the ranks "
            "and stay higher.",
            100 * (CURVE_FACTOR - 1), 100 * CURVE_CLIMBERS);
    buf_fmt(out,
            " The typical latency grows most from %s to %s, from %.1f to %.1f ns (× %.2f), "
            "for %d of %d ranks.\n",
            latency_size_text(s->from_bytes, (char[SIZE_ROOM]){0}),
            latency_size_text(s->to_bytes, (char[SIZE_ROOM]){0}), s->from, s->to, s->factor,
            s->climbing, s->ranks);
}

static void say_steps(const struct curve *c, struct buf *out)
{
    if (c->n == 0)
        say_no_step(c, out);
    for (int i = 0; i < c->n; i++) {
        const struct curve_step *s = &c->steps[i];
        buf_fmt(out, "- From %s to %s latency grows from %.1f to %.1f ns (× %.2f)",
                latency_size_text(s->from_bytes, (char[SIZE_ROOM]){0}),
                latency_size_text(s->to_bytes, (char[SIZE_ROOM]){0}), s->from, s->to, s->factor);
        if (s->climbing < s->ranks)
            buf_fmt(out, " for %d of %d ranks", s->climbing, s->ranks);
        say_match(s, out);
    }
}

// What it is that the slow ranks have in common.
static void common_text(const struct groups *g, char *out, size_t room)
{
    long long k = g->common.k;
    const char *s = str_plural(k);
    switch (g->common.what) {
    case COMMON_NOT_LAST:
        snprintf(out, room, "all but the last %lld rank%s of each NUMA node", k, s);
        break;
    case COMMON_NOT_FIRST:
        snprintf(out, room, "all but the first %lld rank%s of each NUMA node", k, s);
        break;
    case COMMON_LAST:
        snprintf(out, room, "the last %lld rank%s of each NUMA node", k, s);
        break;
    case COMMON_FIRST:
        snprintf(out, room, "the first %lld rank%s of each NUMA node", k, s);
        break;
    case COMMON_ODD:
        snprintf(out, room, "every second rank of a NUMA node, beginning with its second");
        break;
    case COMMON_EVEN:
        snprintf(out, room, "every second rank of a NUMA node, beginning with its first");
        break;
    case COMMON_L3:
        snprintf(out, room, "the ranks on L3 cache %lld of each NUMA node (counted from 0)", k);
        break;
    case COMMON_SOCKET:
        snprintf(out, room, "the ranks on socket %lld", k);
        break;
    case COMMON_NODE:
        snprintf(out, room, "the ranks of NUMA node %lld", k);
        break;
    default:
        *out = 0;
    }
}

static void say_slow_rank(const struct slow_rank *s, struct buf *out)
{
    buf_fmt(out,
            "  - rank %lld is typically %.0f %% slower than rank %lld on the same node %lld, "
            "at most %.0f %% (at %s).\n",
            (long long)s->rank, 100 * (s->typical - 1), (long long)s->fast_rank, (long long)s->node,
            100 * (s->worst - 1), latency_size_text(s->worst_bytes, (char[SIZE_ROOM]){0}));
}

// Many ranks: what they have in common, and each node in a line.
static void say_many_slow(const struct groups *g, struct buf *out)
{
    char what[120];
    common_text(g, what, sizeof what);
    if (*what)
        buf_fmt(out, "  - These are %s (correct for %d of %d ranks).\n", what, g->common.right,
                g->common.ranks);
    else
        buf_str(out, "  - Position in the node, L3 cache, node and socket do not distinguish them "
                     "from the others.\n");
    int i = 0;
    for (int nodes = 0; i < g->n && nodes < SLOW_LINES_MAX; nodes++) {
        const struct slow_rank *first = &g->slow[i], *worst = first;
        double sum = 0;
        int n = 0;
        for (; i < g->n && g->slow[i].node == first->node; i++, n++) {
            sum += g->slow[i].typical;
            worst = g->slow[i].typical > worst->typical ? &g->slow[i] : worst;
        }
        buf_fmt(out,
                "  - node %lld: %d rank%s, on average %.0f %% slower than its fastest, rank %lld; "
                "rank %lld %.0f %%.\n",
                (long long)first->node, n, str_plural(n), 100 * (sum / n - 1),
                (long long)first->fast_rank, (long long)worst->rank, 100 * (worst->typical - 1));
    }
    if (i < g->n)
        buf_fmt(out, "  - %d more on other nodes.\n", g->n - i);
}

// Ranks of another speed end at another time, and who is last has the memory alone.
static void say_overlap(const struct one_mode *m, struct buf *out)
{
    if (strcmp(m->matrix->name, "concurrent") != 0 || !m->groups.n)
        return;
    for (int k = 0; k < m->matrix->row.n * m->matrix->col.n; k++)
        if (!isnan(m->matrix->cells[k].v[CELL_OVERLAP]))
            return;
    buf_str(out, "  - It is not recorded whether all ranks measured at the same time (classic-v1 "
                 "does not ensure it). A rank that started late or ran longer had the memory to "
                 "itself for a part of the time, and appears fast.\n");
}

static void say_groups(const struct one_mode *m, struct buf *out)
{
    const struct groups *g = &m->groups;
    if (!g->known) {
        buf_str(out, "- Groups of ranks cannot be judged: that needs recorded placement, two ranks "
                     "in a NUMA node and three sizes.\n");
        return;
    }
    if (g->n == 0)
        buf_fmt(out,
                "- No slow group: from %s on, ranks of one NUMA node are typically within "
                "%.1f %% of one another.\n",
                latency_size_text(g->from_bytes, (char[SIZE_ROOM]){0}), g->within_percent);
    else
        buf_fmt(out, "- %d slow rank%s from %s on (p = %.4f):\n", g->n, str_plural(g->n),
                latency_size_text(g->from_bytes, (char[SIZE_ROOM]){0}), g->p);
    for (int i = 0; g->n <= SLOW_LINES_MAX && i < g->n; i++)
        say_slow_rank(&g->slow[i], out);
    if (g->n > SLOW_LINES_MAX)
        say_many_slow(g, out);
    say_overlap(m, out);
}

// What was not computed is not stated.
static void say_nodes(const struct groups *g, struct buf *out)
{
    static const char *const words[] = {"are shown neither to differ nor to be alike", "are alike",
                                        "differ"};
    if (g->n_nodes < 2 || isnan(g->node_spread_percent))
        return;
    buf_fmt(out,
            "- %sThe %d NUMA nodes %s: the one furthest from the mean (node %lld) is off by "
            "%+.1f %%",
            g->n_sizes < 3 ? "From the spread of the ranks: " : "", g->n_nodes, words[g->nodes],
            (long long)g->node_worst, g->node_spread_percent);
    if (!isnan(g->within_percent))
        buf_fmt(out, ", against %.1f %% of spread inside a node", g->within_percent);
    buf_str(out, ".\n");
}

static void say_anomalies(const struct anomalies *a, struct buf *out)
{
    for (int i = 0; i < a->n; i++) {
        const struct anomaly *x = &a->list[i];
        buf_fmt(out, "- At %s rank %lld takes %.1f ns, ",
                latency_size_text(x->bytes, (char[SIZE_ROOM]){0}), (long long)x->rank, x->value);
        if (x->kind == ANOMALY_INVERSION)
            buf_fmt(out, "rank %lld %.1f ns: their usual order is inverted (%+.0f %%).\n",
                    (long long)x->other_rank, x->other, x->percent);
        else
            buf_fmt(out, "where %.1f ns are typical (%+.0f %%).\n", x->other, x->percent);
    }
}

static void say_mode(const struct one_mode *m, const char *title, struct buf *out)
{
    if (m->matrix == NULL)
        return;
    buf_fmt(out, "## %s\n\n", title);
    say_steps(&m->curve, out);
    say_groups(m, out);
    say_nodes(&m->groups, out);
    say_anomalies(&m->anomalies, out);
    buf_char(out, '\n');
}

static void say_contention(const struct contention *c, struct buf *out)
{
    buf_str(out, "## Concurrent against serial\n\n");
    if (c->parts && isnan(c->typical_before))
        buf_fmt(out,
                "- Concurrent and serial differ at every size: concurrent is typically %+.1f %% "
                "against serial.\n",
                100 * (c->typical_after - 1));
    else if (c->parts)
        buf_fmt(out,
                "- Concurrent and serial diverge from %s on: below, concurrent is typically "
                "%+.1f %% against serial, from there on %+.1f %%.\n",
                latency_size_text(c->from_bytes, (char[SIZE_ROOM]){0}),
                100 * (c->typical_before - 1), 100 * (c->typical_after - 1));
    else
        buf_fmt(out, "- Concurrent and serial do not diverge: typically %+.1f %%.\n",
                100 * (c->typical_before - 1));
    buf_fmt(out, "- Largest difference: rank %lld at %s, %.1f against %.1f ns (%+.0f %%).\n\n",
            (long long)c->worst_rank, latency_size_text(c->worst_bytes, (char[SIZE_ROOM]){0}),
            c->worst_concurrent, c->worst_serial, 100 * (c->worst - 1));
}

// ---- A run, or a pair of runs -------------------------------------------------------------------

static bool only(const struct report_source *s, const char *has, const char *lacks)
{
    return report_matrix(s, has) && !report_matrix(s, lacks);
}

// Two runs are a pair if each has what the other lacks, and their ranks were at the same places.
static int check_pair(const struct report_source *a, const struct report_source *b, struct err *err)
{
    if (!(only(a, "serial", "concurrent") && only(b, "concurrent", "serial")) &&
        !(only(b, "serial", "concurrent") && only(a, "concurrent", "serial")))
        return err_set(err, ERR_CONFLICT, "with",
                       "a pair must be one serial run and one concurrent run");
    for (int i = 0; i < a->n_ranks; i++)
        for (int j = 0; j < b->n_ranks; j++) {
            const struct rank_info *p = &a->ranks[i], *q = &b->ranks[j];
            bool moved = p->rank == q->rank && p->cpu >= 0 && q->cpu >= 0 &&
                         (p->cpu != q->cpu || p->mem_node != q->mem_node);
            if (moved)
                return err_set(err, ERR_CONFLICT, "with",
                               "rank %lld was on CPU %lld with memory on node %lld in one run, on "
                               "CPU %lld with node %lld in the other",
                               (long long)p->rank, (long long)p->cpu, (long long)p->mem_node,
                               (long long)q->cpu, (long long)q->mem_node);
        }
    return 0;
}

struct modes {
    struct one_mode serial, concurrent;
};

int section_latency(struct report_out *o, const struct report_source *a,
                    const struct report_source *b, struct err *err)
{
    if (b && check_pair(a, b, err) < 0)
        return -1;
    const struct report_source *serial = !b || report_matrix(a, "serial") ? a : b;
    const struct report_source *concurrent = !b || serial == b ? a : b;
    CLEANUP_MEM struct modes *m = calloc(1, sizeof *m); // too large for a stack
    if (!m)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the report");
    if (find_mode(&m->serial, serial, "serial", err) < 0 ||
        find_mode(&m->concurrent, concurrent, "concurrent", err) < 0)
        return -1;
    if (!m->serial.matrix && !m->concurrent.matrix)
        return err_set(err, ERR_INVALID, "matrices",
                       "a report needs a serial or a concurrent matrix");
    struct contention c;
    bool both = m->serial.matrix && m->concurrent.matrix;
    if (both && contention_find(&c, m->serial.matrix, m->concurrent.matrix, err) < 0)
        return -1;
    write_mode(&m->serial, &o->w, "serial");
    write_mode(&m->concurrent, &o->w, "concurrent");
    say_mode(&m->serial, "One rank at a time (serial)", &o->markdown);
    say_mode(&m->concurrent, "All ranks at once (concurrent)", &o->markdown);
    if (both) {
        write_contention(&c, &o->w);
        say_contention(&c, &o->markdown);
    }
    return report_claims(o, "Claims of the firmware", a, b, err);
}

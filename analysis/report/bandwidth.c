// SPDX-License-Identifier: Apache-2.0
// The bandwidth benchmark: the best kernel of each node, what remote memory gives of that, and with
// how many threads it saturates.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/modules.h"
#include "analysis/report/section.h"
#include "analysis/stats/bandwidth_levels.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/target.h"

static const double SATURATED = 0.95; // of the most that any number of threads reaches

static double at(const struct matrix *m, int row, int col)
{
    return row < 0 || col < 0 ? NAN : matrix_at(m, row, col)->v[CELL_MEDIAN];
}

// The kernel with the most at a row and column; NULL if none has a value there.
static const struct matrix *best_kernel(const struct report_source *s, int row, int col)
{
    const struct matrix *best = NULL;
    for (int i = 0; i < s->n; i++)
        if (!isnan(at(&s->matrices[i], row, col)) &&
            (!best || at(&s->matrices[i], row, col) > at(best, row, col)))
            best = &s->matrices[i];
    return best;
}

// Triad stands for all kernels, as in STREAM's lists; where it was not measured, the first.
static const struct matrix *usual_kernel(const struct report_source *s)
{
    const struct matrix *triad = report_matrix(s, "triad");
    return triad ? triad : &s->matrices[0];
}

static void target_name(const struct matrix *m, int col, char *out, size_t room)
{
    char words[TARGET_LABEL_ROOM];
    target_words(m->col.values[col], words, sizeof words);
    if (m->col.values[col] < 0)
        snprintf(out, room, "each on its own memory");
    else
        snprintf(out, room, "on memory of %s", words);
}

// ---- All ranks of a node against each target ----------------------------------------------------

static void report_remote(struct report_out *o, const struct matrix *m, int row)
{
    int own_col = axis_index(&m->col, m->row.values[row]), least = -1, most = -1;
    double own = at(m, row, own_col);
    for (int j = 0; j < m->col.n; j++) {
        if (j == own_col || isnan(at(m, row, j)) || target_is_interleaved(m->col.values[j]))
            continue;
        least = least < 0 || at(m, row, j) < at(m, row, least) ? j : least;
        most = most < 0 || at(m, row, j) > at(m, row, most) ? j : most;
    }
    if (least < 0 || isnan(own))
        return;
    struct jsonw *w = report_finding(o, "remote");
    jsonw_i64(w, "node", m->row.values[row]);
    jsonw_text(w, "kernel", m->name);
    jsonw_fixed(w, "own_mbps", own, 0);
    jsonw_i64(w, "best_target", m->col.values[most]);
    jsonw_fixed(w, "best_share", at(m, row, most) / own, 3);
    jsonw_i64(w, "worst_target", m->col.values[least]);
    jsonw_fixed(w, "worst_share", at(m, row, least) / own, 3);
    double own_share = 100 * at(m, row, least) / own;
    if (least == most)
        report_say(
            o,
            "Node %" PRId64 ", %s: node %" PRId64 "'s memory gives %.1f GB/s, %.0f %% of its "
            "own.",
            m->row.values[row], m->name, m->col.values[least], at(m, row, least) / 1000, own_share);
    else
        report_say(o,
                   "Node %" PRId64 ", %s: node %" PRId64
                   "'s memory gives %.1f GB/s, %.0f %% of its own "
                   "(the worst; the best remote, node %" PRId64 ", gives %.0f %%).",
                   m->row.values[row], m->name, m->col.values[least], at(m, row, least) / 1000,
                   own_share, m->col.values[most], 100 * at(m, row, most) / own);
}

// Interleaved memory beside the node's own.
static void report_interleaved(struct report_out *o, const struct matrix *m, int row)
{
    int own = axis_index(&m->col, m->row.values[row]);
    for (int j = 0; j < m->col.n; j++) {
        char words[TARGET_LABEL_ROOM], beside[60] = "";
        double share = at(m, row, j) / at(m, row, own);
        if (!target_is_interleaved(m->col.values[j]) || isnan(at(m, row, j)))
            continue;
        struct jsonw *w = report_finding(o, "interleaved");
        jsonw_i64(w, "node", m->row.values[row]);
        jsonw_text(w, "kernel", m->name);
        report_target(w, m->col.values[j]);
        jsonw_fixed(w, "mbps", at(m, row, j), 0);
        if (isfinite(share)) {
            jsonw_fixed(w, "own_share", share, 3);
            snprintf(beside, sizeof beside, ", %.0f %% of its own memory", 100 * share);
        }
        target_words(m->col.values[j], words, sizeof words);
        report_say(o, "Node %" PRId64 ", %s: memory on %s gives %.1f GB/s%s.", m->row.values[row],
                   m->name, words, at(m, row, j) / 1000, beside);
    }
}

// The best kernel beside the usual one; what is the best itself is not compared with itself.
static void say_best(struct report_out *o, const struct report_source *s, const char *what,
                     const struct matrix *best, const struct matrix *usual, int row, int col)
{
    double most = at(best, row, col), its = at(usual, row, col);
    if (best != usual && !isnan(its))
        report_say(o, "%s: best is %s with %.1f GB/s; %s gives %.1f GB/s, %.0f %% of that.", what,
                   best->name, most / 1000, usual->name, its / 1000, 100 * its / most);
    else if (s->n > 1)
        report_say(o, "%s: best is %s with %.1f GB/s.", what, best->name, most / 1000);
    else
        report_say(o, "%s: %s gives %.1f GB/s; no other kernel was measured.", what, best->name,
                   most / 1000);
}

static void report_initiator(struct report_out *o, const struct report_source *s, int row)
{
    const struct matrix *usual = usual_kernel(s);
    int64_t node = usual->row.values[row];
    int own = axis_index(&usual->col, node);
    const struct matrix *best = own < 0 ? NULL : best_kernel(s, row, own);
    if (best) {
        struct jsonw *w = report_finding(o, "node");
        jsonw_i64(w, "node", node);
        jsonw_text(w, "best_kernel", best->name);
        jsonw_fixed(w, "best_mbps", at(best, row, own), 0);
        jsonw_text(w, "kernel", usual->name);
        jsonw_fixed(w, "mbps", at(usual, row, own), 0);
        char what[64];
        snprintf(what, sizeof what, "Node %" PRId64 " and its own memory", node);
        say_best(o, s, what, best, usual, row, own);
    }
    report_remote(o, usual, row);
    report_interleaved(o, usual, row);
}

// All nodes with their own memory, one after the other.
static double reached_together(const struct report_source *s)
{
    const struct matrix *usual = usual_kernel(s);
    double reached = 0;
    for (int i = 0; i < usual->row.n; i++) {
        int own = axis_index(&usual->col, usual->row.values[i]);
        const struct matrix *best = own < 0 ? NULL : best_kernel(s, i, own);
        reached += best ? at(best, i, own) : NAN;
    }
    return reached;
}

// ---- More and more threads ----------------------------------------------------------------------

// Rows; -1: none has a value.
struct growth {
    int first, last;  // of those with a value
    int most, enough; // the highest value, the first that reaches SATURATED of it
};

static struct growth growth_of(const struct matrix *m, int col)
{
    struct growth g = {-1, -1, -1, -1};
    for (int i = 0; i < m->row.n; i++) {
        if (isnan(at(m, i, col)))
            continue;
        g.first = g.first < 0 ? i : g.first;
        g.last = i;
        g.most = g.most < 0 || at(m, i, col) > at(m, g.most, col) ? i : g.most;
    }
    for (int i = m->row.n - 1; i >= 0; i--)
        if (at(m, i, col) >= SATURATED * at(m, g.most, col))
            g.enough = i;
    return g;
}

static void say_growth(struct report_out *o, const struct matrix *m, int col,
                       const struct growth *g)
{
    char where[TARGET_LABEL_ROOM + 16];
    double most = at(m, g->most, col), first = at(m, g->first, col);
    int64_t threads = m->row.values[g->enough], last = m->row.values[g->last],
            least = m->row.values[g->first];
    target_name(m, col, where, sizeof where);
    if (g->enough < g->last && g->enough == g->first)
        report_say(o,
                   "%s %s: %" PRId64
                   " thread%s reach%s %.1f GB/s, %.0f %% or more of the maximum with up to %" PRId64
                   " threads (%.1f GB/s).",
                   m->name, where, threads, str_plural(threads), threads == 1 ? "es" : "",
                   first / 1000, 100 * SATURATED, last, most / 1000);
    else if (g->enough < g->last)
        report_say(o,
                   "%s %s: %.1f GB/s with %" PRId64 " of %" PRId64
                   " threads is %.0f %% of the maximum (%.1f GB/s): more threads do not increase "
                   "it. %" PRId64 " alone reaches %.1f GB/s.",
                   m->name, where, at(m, g->enough, col) / 1000, threads, last,
                   100 * at(m, g->enough, col) / most, most / 1000, least, first / 1000);
    else
        report_say(o,
                   "%s %s: grows up to the last thread, %.1f GB/s with %" PRId64
                   " threads, × %.2f of %" PRId64 " thread%s (%.1f GB/s).",
                   m->name, where, most / 1000, last, most / first, least, str_plural(least),
                   first / 1000);
}

static void report_threads(struct report_out *o, const struct matrix *m, int col)
{
    struct growth g = growth_of(m, col);
    if (g.enough < 0)
        return;
    struct jsonw *w = report_finding(o, "threads");
    jsonw_text(w, "kernel", m->name);
    report_target(w, m->col.values[col]);
    jsonw_fixed(w, "first_mbps", at(m, g.first, col), 0);
    jsonw_fixed(w, "most_mbps", at(m, g.most, col), 0);
    jsonw_i64(w, "most_threads", m->row.values[g.most]);
    jsonw_i64(w, "enough_threads", m->row.values[g.enough]);
    jsonw_bool(w, "saturates", g.enough < g.last);
    say_growth(o, m, col, &g);
}

// One number of threads: all of them, each kernel.
static void report_together(struct report_out *o, const struct report_source *s, int col)
{
    const struct matrix *best = best_kernel(s, 0, col), *usual = usual_kernel(s);
    char where[TARGET_LABEL_ROOM + 16];
    if (!best)
        return;
    target_name(usual, col, where, sizeof where);
    struct jsonw *w = report_finding(o, "together");
    jsonw_i64(w, "threads", usual->row.values[0]);
    report_target(w, usual->col.values[col]);
    jsonw_text(w, "best_kernel", best->name);
    jsonw_fixed(w, "best_mbps", at(best, 0, col), 0);
    jsonw_text(w, "kernel", usual->name);
    jsonw_fixed(w, "mbps", at(usual, 0, col), 0);
    char what[96];
    snprintf(what, sizeof what, "%" PRId64 " thread%s together, %s", usual->row.values[0],
             str_plural(usual->row.values[0]), where);
    say_best(o, s, what, best, usual, 0, col);
}

// ---- Caches and memory --------------------------------------------------------------------------

// Without the machine's caches: the ends of the row, as far as they are known.
static void report_ends(struct report_out *o, const struct matrix *m, int row)
{
    char first[32], last[32];
    int from = 0, to = m->col.n - 1;
    while (from < to && isnan(at(m, row, from)))
        from++;
    while (to > from && isnan(at(m, row, to)))
        to--;
    if (isnan(at(m, row, from)))
        return;
    str_from_bytes((uint64_t)m->col.values[from], first, sizeof first);
    str_from_bytes((uint64_t)m->col.values[to], last, sizeof last);
    struct jsonw *w = report_finding(o, "sizes");
    jsonw_text(w, "kernel", m->name);
    jsonw_i64(w, "threads", m->row.values[row]);
    jsonw_fixed(w, "first_mbps", at(m, row, from), 0);
    jsonw_fixed(w, "last_mbps", at(m, row, to), 0);
    report_say(o, "%s, %" PRId64 " thread%s: %.1f GB/s at %s, %.1f GB/s at %s.", m->name,
               m->row.values[row], str_plural(m->row.values[row]), at(m, row, from) / 1000, first,
               at(m, row, to) / 1000, last);
}

static void bandwidth_write_level(struct jsonw *w, const struct matrix *m,
                                  const struct bandwidth_level *l)
{
    jsonw_object(w, NULL);
    jsonw_text(w, "name", l->name);
    jsonw_fixed(w, "mbps", l->median, 0);
    jsonw_i64(w, "from_bytes", m->col.values[l->first]);
    jsonw_i64(w, "to_bytes", m->col.values[l->last]);
    jsonw_end(w);
}

static void report_levels(struct report_out *o, const struct report_source *s,
                          const struct matrix *m, int row)
{
    struct bandwidth_level levels[BANDWIDTH_LEVELS_MAX];
    char text[200] = "";
    const struct cache_users users = {s->topology, s->ranks, s->n_ranks, s->found_bytes};
    int n = bandwidth_levels(m, row, &users, s->stores, levels);
    if (!n) {
        report_ends(o, m, row);
        return;
    }
    struct jsonw *w = report_finding(o, "levels");
    jsonw_text(w, "kernel", m->name);
    jsonw_i64(w, "threads", m->row.values[row]);
    jsonw_array(w, "levels");
    for (int i = 0; i < n; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s %.1f", i ? ", " : "", levels[i].name,
                 levels[i].median / 1000);
        bandwidth_write_level(w, m, &levels[i]);
    }
    jsonw_end(w);
    report_say(o, "%s, %" PRId64 " thread%s, GB/s: %s.", m->name, m->row.values[row],
               str_plural(m->row.values[row]), text);
}

// ---- Copies from node to node -------------------------------------------------------------------

static void report_copies(struct report_out *o, const struct matrix *m)
{
    int most = -1, least = -1;
    for (int i = 0; i < m->row.n * m->col.n; i++) {
        double v = m->cells[i].v[CELL_MEDIAN];
        if (isnan(v))
            continue;
        most = most < 0 || v > m->cells[most].v[CELL_MEDIAN] ? i : most;
        least = least < 0 || v < m->cells[least].v[CELL_MEDIAN] ? i : least;
    }
    if (most < 0)
        return;
    double high = m->cells[most].v[CELL_MEDIAN], low = m->cells[least].v[CELL_MEDIAN];
    const int64_t *rows = m->row.values, *cols = m->col.values;
    struct jsonw *w = report_finding(o, "copies");
    jsonw_text(w, "kernel", m->name);
    jsonw_i64(w, "best_source", rows[most / m->col.n]);
    jsonw_i64(w, "best_target", cols[most % m->col.n]);
    jsonw_fixed(w, "best_mbps", high, 0);
    jsonw_i64(w, "worst_source", rows[least / m->col.n]);
    jsonw_i64(w, "worst_target", cols[least % m->col.n]);
    jsonw_fixed(w, "worst_mbps", low, 0);
    if (most == least)
        report_say(o, "%s: node %" PRId64 " to node %" PRId64 " %.1f GB/s, read and written.",
                   m->name, rows[most / m->col.n], cols[most % m->col.n], high / 1000);
    else
        report_say(o,
                   "%s: best is node %" PRId64 " to node %" PRId64
                   " with %.1f GB/s, read and written; worst is node %" PRId64 " to node %" PRId64
                   " with %.1f GB/s, %.0f %% of that.",
                   m->name, rows[most / m->col.n], cols[most % m->col.n], high / 1000,
                   rows[least / m->col.n], cols[least % m->col.n], low / 1000, 100 * low / high);
}

// Sweeps whose matrices are not of targets; false: another one.
static bool report_other_axes(struct report_out *o, const struct report_source *s)
{
    const struct matrix *usual = usual_kernel(s);
    bool sizes = strcmp(usual->col.name, "working_set") == 0;
    bool copies = strcmp(usual->row.name, "source") == 0;
    for (int i = 0; sizes && i < s->n; i++)
        for (int r = 0; r < usual->row.n; r++)
            report_levels(o, s, &s->matrices[i], r);
    for (int i = 0; copies && i < s->n; i++)
        report_copies(o, &s->matrices[i]);
    return sizes || copies;
}

int section_bandwidth(struct report_out *o, const struct report_source *run,
                      const struct report_source *with, struct err *err)
{
    const struct matrix *usual = usual_kernel(run);
    (void)with;
    report_head(o, "Bandwidth");
    if (report_other_axes(o, run)) {
        report_tail(o);
        return 0;
    }
    bool by_node = strcmp(usual->row.name, "initiator") == 0;
    CLEANUP_MEM bool *odd = calloc((size_t)usual->col.n, sizeof *odd);
    if (!odd)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the report");
    if (by_node && report_parts(o, run, usual, odd, err) < 0)
        return -1;
    for (int i = 0; by_node && i < usual->row.n; i++)
        report_initiator(o, run, i);
    if (by_node)
        report_modules(o, run, usual->row.n, reached_together(run));
    if (by_node && report_claims(o, NULL, run, NULL, err) < 0)
        return -1;
    for (int j = 0; !by_node && j < usual->col.n; j++)
        if (usual->row.n > 1)
            report_threads(o, usual, j);
        else
            report_together(o, run, j);
    report_tail(o);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Each benchmark has one function that pools cells and puts metrics; names, units and help stand in
// metric_rules (analysis/metrics/rules.c).
#include "analysis/metrics/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats/bandwidth_levels.h"
#include "analysis/stats/beyond_caches.h"
#include "analysis/stats/contention.h"
#include "analysis/stats/curve.h"
#include "analysis/stats/hierarchy.h"
#include "analysis/stats/knee.h"
#include "analysis/stats/median.h"
#include "analysis/stats/rank_places.h"
#include "base/cleanup.h"
#include "model/mix.h"
#include "model/scan.h"
#include "model/target.h"

static const char *const near_words[PAIR_CLASSES] = {
    [PAIR_SIBLINGS] = "siblings",  [PAIR_L3] = "same_l3",          [PAIR_NODE] = "same_node",
    [PAIR_SOCKET] = "same_socket", [PAIR_REMOTE] = "other_socket",
};

struct finder {
    struct metrics *out;
    const struct metrics_input *in;
    struct places places;          // of the ranks; owned
    const struct matrix *kinds_of; // that the next two are of; NULL: none yet
    int strongest;                 // kind of core
    bool several_kinds;
    int *rows; // room for all rows of the largest matrix; owned
    // The pool: values in the making, and their intervals.
    double *v, *lo, *hi; // room for all cells of the largest matrix; v owned, others inside
    int n;
    bool no_memory; // for one of them: none are given
};

static void pool_value(struct finder *f, double v, double lo, double hi)
{
    if (!(v > 0) || !isfinite(v))
        return;
    f->v[f->n] = v;
    f->lo[f->n] = lo;
    f->hi[f->n++] = hi;
}

static void pool_cell(struct finder *f, const struct cell *c)
{
    pool_value(f, c->v[CELL_MEDIAN], c->v[CELL_LO], c->v[CELL_HI]);
}

__attribute__((format(printf, 3, 4))) static void put(struct finder *f, const double v[3],
                                                      const char *fmt, ...)
{
    struct metric m = {.value = v[0], .lo = v[1], .hi = v[2]};
    va_list ap;
    if (!(m.value > 0) || !isfinite(m.value))
        return;
    if (f->out->n == METRICS_MAX - 1) { // the last place is for how many there were
        f->out->omitted++;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(m.name, sizeof m.name, fmt, ap);
    va_end(ap);
    const struct metric_rule *rule = metric_rule_find(m.name, NULL);
    if (!rule)
        return;
    snprintf(m.unit, sizeof m.unit, "%s", rule->unit);
    f->out->list[f->out->n++] = m;
}

// Empties the pool: its median and the medians of its intervals' ends, times `scale`.
static void metrics_drain(struct finder *f, double scale, double v[3])
{
    v[0] = middle_of(f->v, f->n) * scale;
    v[1] = middle_if_known(f->lo, f->n) * scale;
    v[2] = middle_if_known(f->hi, f->n) * scale;
    f->n = 0;
}

#define DRAIN_AND_PUT(f, scale, ...)                                                               \
    do {                                                                                           \
        double drained_[3];                                                                        \
        metrics_drain(f, scale, drained_);                                                         \
        put(f, drained_, __VA_ARGS__);                                                             \
    } while (0)

static const struct matrix *metrics_named(const struct metrics_input *in, const char *name)
{
    for (int i = 0; i < in->n_matrices; i++)
        if (strcmp(in->matrices[i].name, name) == 0)
            return &in->matrices[i];
    return NULL;
}

static bool has_axes(const struct matrix *m, const char *rows, const char *cols)
{
    return m && m->row.n && m->col.n && strcmp(m->row.name, rows) == 0 &&
           strcmp(m->col.name, cols) == 0;
}

static const struct rank_info *rank_of_row(const struct finder *f, const struct matrix *m, int row)
{
    return places_info(&f->places, m->row.values[row]);
}

// --- Latency -----------------------------------------------------------------------------------

static struct cache_users users_of(const struct finder *f)
{
    return (struct cache_users){f->in->topology, f->in->ranks, f->in->n_ranks, f->in->found_bytes};
}

// Of the cache of a level that most of the ranks share.
static int most_sharers(const struct finder *f, int level)
{
    const struct cache_users users = users_of(f);
    int sharers = cache_sharers(&users, level, INT64_MAX);
    return sharers ? sharers : 1;
}

// Is the largest working set memory?
static bool largest_is_memory(struct finder *f, const struct matrix *m, bool at_once)
{
    const struct curve_machine machine = {.topology = f->in->topology,
                                          .ranks = f->in->ranks,
                                          .n_ranks = f->in->n_ranks,
                                          .together = at_once,
                                          .found_bytes = f->in->found_bytes};
    bool beyond = false;
    f->no_memory |= beyond_caches(m, &machine, &beyond, NULL) < 0;
    return beyond;
}

// The column of the largest working set well inside a cache: at most half of it, more than twice
// the smaller cache. -1: none.
static int column_inside(const struct finder *f, const struct matrix *m, bool at_once, int level)
{
    const struct topology *t = f->in->topology;
    int64_t room = topology_cache_bytes(t, level), below = topology_cache_bytes(t, level - 1);
    if (at_once)
        room /= most_sharers(f, level);
    int best = -1;
    for (int c = 0; c < m->col.n; c++)
        if (m->col.values[c] <= room / 2 && m->col.values[c] > 2 * below)
            best = c;
    return best;
}

// A median over kinds of cores is that of no core: where ranks are on several kinds, only those on
// the strongest count.
static bool of_strongest(struct finder *f, const struct matrix *m, int row)
{
    if (f->kinds_of != m) {
        f->kinds_of = m;
        f->strongest = places_strongest(&f->places, &m->row, &f->several_kinds);
    }
    return !f->several_kinds || strcmp(m->row.name, "rank") != 0 ||
           places_kind(&f->places, m->row.values[row]) == f->strongest;
}

static void pool_column(struct finder *f, const struct matrix *m, int col)
{
    for (int r = 0; r < m->row.n; r++)
        if (of_strongest(f, m, r))
            pool_cell(f, matrix_at(m, r, col));
}

// Ranks with this CPU node and this memory node; initiator -1: whose memory is on their own node.
static void pool_ranks(struct finder *f, const struct matrix *m, int col, int64_t initiator,
                       int64_t target)
{
    for (int r = 0; r < m->row.n; r++) {
        const struct rank_info *k = rank_of_row(f, m, r);
        if (!k || k->cpu_node < 0 || k->mem_node < 0 || !of_strongest(f, m, r))
            continue;
        if (initiator < 0 ? k->cpu_node == k->mem_node
                          : k->cpu_node == initiator && k->mem_node == target)
            pool_cell(f, matrix_at(m, r, col));
    }
}

// A column in cycles of each rank's core; of ranks whose clock is known.
static void pool_cycles(struct finder *f, const struct matrix *m, int col)
{
    for (int r = 0; r < m->row.n; r++) {
        const struct rank_info *k = rank_of_row(f, m, r);
        const double *v = matrix_at(m, r, col)->v;
        if (k && k->clock_ghz > 0 && of_strongest(f, m, r))
            pool_value(f, v[CELL_MEDIAN] * k->clock_ghz, v[CELL_LO] * k->clock_ghz,
                       v[CELL_HI] * k->clock_ghz);
    }
}

static bool same_nodes(const struct rank_info *a, const struct rank_info *b)
{
    return a && b && a->cpu_node == b->cpu_node && a->mem_node == b->mem_node;
}

static bool pair_seen(const struct finder *f, const struct matrix *m, int row)
{
    for (int r = 0; r < row; r++)
        if (same_nodes(rank_of_row(f, m, r), rank_of_row(f, m, row)))
            return true;
    return false;
}

static void find_working_sets(struct finder *f, const struct matrix *m, bool at_once)
{
    const char *mode = at_once ? "" : "serial.";
    int last = m->col.n - 1;
    pool_column(f, m, last);
    DRAIN_AND_PUT(f, 1, "latency.%slargest.median_ns", mode);
    if (largest_is_memory(f, m, at_once)) {
        pool_column(f, m, last);
        DRAIN_AND_PUT(f, 1, "latency.%sdram.median_ns", mode);
        pool_ranks(f, m, last, -1, -1);
        DRAIN_AND_PUT(f, 1, "latency.%slocal.dram.median_ns", mode);
    }
    for (int level = 1; f->in->topology && topology_cache_bytes(f->in->topology, level); level++) {
        int col = column_inside(f, m, at_once, level);
        if (col < 0)
            continue;
        pool_column(f, m, col);
        DRAIN_AND_PUT(f, 1, "latency.%sl%d.median_ns", mode, level);
        pool_cycles(f, m, col);
        DRAIN_AND_PUT(f, 1, "latency.%sl%d.median_cycles", mode, level);
    }
}

static void find_node_pairs(struct finder *f, const struct matrix *m, bool at_once)
{
    bool memory = largest_is_memory(f, m, at_once);
    for (int r = 0; memory && r < m->row.n; r++) {
        const struct rank_info *k = rank_of_row(f, m, r);
        if (!k || k->cpu_node < 0 || k->mem_node < 0 || pair_seen(f, m, r))
            continue;
        pool_ranks(f, m, m->col.n - 1, k->cpu_node, k->mem_node);
        DRAIN_AND_PUT(f, 1, "latency.%sn%lld.n%lld.median_ns", at_once ? "" : "serial.",
                      (long long)k->cpu_node, (long long)k->mem_node);
    }
}

// One cell against another: conservative ends.
static void pool_ratio(struct finder *f, const struct cell *over, const struct cell *under)
{
    pool_value(f, over->v[CELL_MEDIAN] / under->v[CELL_MEDIAN],
               over->v[CELL_LO] / under->v[CELL_HI], over->v[CELL_HI] / under->v[CELL_LO]);
}

static void find_contention(struct finder *f, const struct matrix *serial,
                            const struct matrix *concurrent)
{
    struct contention c;
    struct err why = {0};
    if (contention_find(&c, serial, concurrent, &why) < 0) {
        f->no_memory |= why.code == ERR_NO_MEMORY;
        return; // else they have nothing in common
    }
    const double worst[3] = {c.worst, c.worst_lo, c.worst_hi};
    put(f, worst, "contention.max_ratio");
    int col = concurrent->col.n - 1;
    int other = axis_index(&serial->col, concurrent->col.values[col]);
    for (int r = 0; other >= 0 && r < concurrent->row.n; r++) {
        int row = axis_index(&serial->row, concurrent->row.values[r]);
        if (row >= 0)
            pool_ratio(f, matrix_at(concurrent, r, col), matrix_at(serial, row, other));
    }
    DRAIN_AND_PUT(f, 1, "contention.median_ratio");
}

static void metrics_of_latency(struct finder *f)
{
    const struct matrix *serial = metrics_named(f->in, "serial"),
                        *concurrent = metrics_named(f->in, "concurrent");
    bool have_serial = has_axes(serial, "rank", "working_set");
    bool have_concurrent = has_axes(concurrent, "rank", "working_set");
    if (have_concurrent)
        find_working_sets(f, concurrent, true);
    if (have_serial)
        find_working_sets(f, serial, false);
    if (have_serial && have_concurrent)
        find_contention(f, serial, concurrent);
    if (have_concurrent)
        find_node_pairs(f, concurrent, true);
    if (have_serial)
        find_node_pairs(f, serial, false);
}

// --- Extremes ----------------------------------------------------------------------------------

static void put_cell(struct finder *f, const struct cell *c, double scale, double v[3])
{
    f->n = 0;
    pool_cell(f, c);
    metrics_drain(f, scale, v);
}

// The largest cell (sign 1) or the smallest (-1), of all rows or of one; NULL: none is known.
static const struct cell *metrics_extreme(const struct matrix *m, int sign, int only_row)
{
    const struct cell *best = NULL;
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++) {
            const struct cell *k = matrix_at(m, r, c);
            if ((only_row < 0 || r == only_row) && k->v[CELL_MEDIAN] > 0 &&
                (!best || sign * k->v[CELL_MEDIAN] > sign * best->v[CELL_MEDIAN]))
                best = k;
        }
    return best;
}

// --- Nodes against nodes -----------------------------------------------------------------------

enum where { ANYWHERE, LOCAL, REMOTE };

static void pool_where(struct finder *f, const struct matrix *m, enum where where)
{
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++) {
            const struct rank_info *k = rank_of_row(f, m, r);
            bool local = k && k->cpu_node == m->col.values[c];
            if (where == ANYWHERE || (k && k->cpu_node >= 0 && local == (where == LOCAL)))
                pool_cell(f, matrix_at(m, r, c));
        }
}

// Fills f->rows; returns how many.
static int rows_of_initiator(struct finder *f, const struct matrix *m, int64_t node)
{
    int n = 0;
    for (int r = 0; r < m->row.n; r++) {
        const struct rank_info *k = rank_of_row(f, m, r);
        if (k && k->cpu_node == node)
            f->rows[n++] = r;
    }
    return n;
}

static bool initiator_seen(const struct finder *f, const struct matrix *m, int row)
{
    for (int r = 0; r < row; r++) {
        const struct rank_info *k = rank_of_row(f, m, r);
        if (k && k->cpu_node == rank_of_row(f, m, row)->cpu_node)
            return true;
    }
    return false;
}

static void find_initiators(struct finder *f, const struct matrix *m)
{
    for (int r = 0; r < m->row.n; r++) {
        const struct rank_info *k = rank_of_row(f, m, r);
        if (!k || k->cpu_node < 0 || initiator_seen(f, m, r))
            continue;
        int n = rows_of_initiator(f, m, k->cpu_node);
        for (int c = 0; c < m->col.n; c++) {
            for (int i = 0; i < n; i++)
                pool_cell(f, matrix_at(m, f->rows[i], c));
            if (m->col.values[c] >= 0)
                DRAIN_AND_PUT(f, 1, "matrix.n%lld.n%lld.median_ns", (long long)k->cpu_node,
                              (long long)m->col.values[c]);
            f->n = 0;
        }
    }
}

static void metrics_of_matrix(struct finder *f)
{
    const struct matrix *m = metrics_named(f->in, "idle");
    double all[3], local[3], remote[3];
    if (!has_axes(m, "rank", "target"))
        return;
    pool_where(f, m, ANYWHERE);
    metrics_drain(f, 1, all);
    pool_where(f, m, LOCAL);
    metrics_drain(f, 1, local);
    pool_where(f, m, REMOTE);
    metrics_drain(f, 1, remote);
    const double ratio[3] = {remote[0] / local[0], remote[1] / local[2], remote[2] / local[1]};
    put(f, all, "matrix.median_ns");
    put(f, local, "matrix.local.median_ns");
    put(f, remote, "matrix.remote.median_ns");
    put(f, ratio, "matrix.remote.ratio");
    const struct cell *worst = metrics_extreme(m, 1, -1);
    if (worst) {
        put_cell(f, worst, 1, all);
        put(f, all, "matrix.worst_ns");
    }
    find_initiators(f, m);
}

// --- Bandwidth ---------------------------------------------------------------------------------

static const double gbps_per_mbps = 1e-3;

static void find_peaks(struct finder *f, const struct matrix *m)
{
    double v[3];
    const struct cell *peak = metrics_extreme(m, 1, -1), *least = metrics_extreme(m, -1, -1);
    int one = strcmp(m->row.name, "threads") == 0 ? axis_index(&m->row, 1) : -1;
    const struct cell *single = one >= 0 ? metrics_extreme(m, 1, one) : NULL;
    if (peak) {
        put_cell(f, peak, gbps_per_mbps, v);
        put(f, v, "bandwidth.%s.peak.gbps", m->name);
    }
    if (least && has_axes(m, "initiator", "target")) {
        put_cell(f, least, gbps_per_mbps, v);
        put(f, v, "bandwidth.%s.least.gbps", m->name);
    }
    if (single) {
        put_cell(f, single, gbps_per_mbps, v);
        put(f, v, "bandwidth.%s.single.gbps", m->name);
    }
}

// One row, or all ranks.
static void put_levels(struct finder *f, const struct matrix *m, int row, const char *tail)
{
    struct bandwidth_level levels[BANDWIDTH_LEVELS_MAX];
    const struct cache_users users = users_of(f);
    int n = bandwidth_levels(m, row, &users, (enum stores)f->in->spec->stores, levels);
    for (int i = 0; i < n; i++) {
        const struct bandwidth_level *l = &levels[i];
        const double v[3] = {gbps_per_mbps * l->median, gbps_per_mbps * l->lo,
                             gbps_per_mbps * l->hi};
        char name[sizeof l->name];
        for (size_t k = 0; k < sizeof name; k++)
            name[k] = l->name[k] == 'L' ? 'l' : l->name[k];
        put(f, v, "bandwidth.%s.level.%s%s.gbps", m->name, name, tail);
    }
}

// Every cell by its row and its column.
static void put_nodes(struct finder *f, const struct matrix *m, const char *between)
{
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++) {
            char target[TARGET_LABEL_ROOM];
            double v[3];
            put_cell(f, matrix_at(m, r, c), gbps_per_mbps, v);
            target_metric(m->col.values[c], target, sizeof target);
            if (m->col.values[c] >= 0)
                put(f, v, "bandwidth.%s.%sn%lld.%s.gbps", m->name, between,
                    (long long)m->row.values[r], target);
        }
}

static void metrics_of_bandwidth(struct finder *f)
{
    for (int i = 0; i < f->in->n_matrices; i++)
        if (!has_axes(&f->in->matrices[i], "threads", "working_set"))
            find_peaks(f, &f->in->matrices[i]);
    for (int i = 0; i < f->in->n_matrices; i++) {
        const struct matrix *m = &f->in->matrices[i];
        if (has_axes(m, "initiator", "target"))
            put_nodes(f, m, "");
        if (has_axes(m, "source", "target"))
            put_nodes(f, m, "from.");
        if (!has_axes(m, "threads", "working_set"))
            continue;
        put_levels(f, m, m->row.n - 1, "");
        if (axis_index(&m->row, 1) >= 0)
            put_levels(f, m, axis_index(&m->row, 1), ".single");
    }
}

// --- Pairs of ranks ----------------------------------------------------------------------------

// What two ranks share; PAIR_CLASSES: not known.
static enum pair_class near_of(const struct finder *f, int64_t a, int64_t b)
{
    return topology_pair_class(places_cpu(&f->places, a), places_cpu(&f->places, b));
}

// Cells of rank against rank; `near` PAIR_CLASSES: all.
static void pool_near(struct finder *f, const struct matrix *m, enum pair_class near)
{
    for (int r = 0; r < m->row.n; r++)
        for (int c = 0; c < m->col.n; c++)
            if (r < c &&
                (near == PAIR_CLASSES || near_of(f, m->row.values[r], m->col.values[c]) == near))
                pool_cell(f, matrix_at(m, r, c));
}

static void pool_pairs(struct finder *f, const struct matrix *m, int col, enum pair_class near)
{
    for (int r = 0; r < m->row.n; r++) {
        int first, second;
        axis_unpair(m->row.values[r], &first, &second);
        if (near == PAIR_CLASSES || near_of(f, first, second) == near)
            pool_cell(f, matrix_at(m, r, col));
    }
}

// The slowest line of each pair over its fastest.
static void pool_lines(struct finder *f, const struct matrix *m)
{
    for (int r = 0; r < m->row.n; r++)
        pool_ratio(f, matrix_at(m, r, m->col.n - 1), matrix_at(m, r, 0));
}

// All pairs are a table of rank against rank, listed ones a row each.
static void put_transfer(struct finder *f, const struct matrix *m, enum pair_class near)
{
    if (strcmp(m->row.name, "pair") == 0)
        pool_pairs(f, m, 0, near);
    else
        pool_near(f, m, near);
    if (near == PAIR_CLASSES)
        DRAIN_AND_PUT(f, 1, "c2c.%s.median_ns", m->name);
    else
        DRAIN_AND_PUT(f, 1, "c2c.%s.%s.median_ns", m->name, near_words[near]);
}

static void metrics_of_c2c(struct finder *f)
{
    for (int i = 0; i < f->in->n_matrices; i++) {
        const struct matrix *m = &f->in->matrices[i];
        if (has_axes(m, "pair", "line")) {
            pool_lines(f, m);
            DRAIN_AND_PUT(f, 1, "c2c.%.*s.lines.ratio", (int)strcspn(m->name, "_"), m->name);
        }
        if (!has_axes(m, "rank", "rank") && !has_axes(m, "pair", "message"))
            continue;
        put_transfer(f, m, PAIR_CLASSES);
        for (int near = 0; near < PAIR_CLASSES; near++)
            put_transfer(f, m, (enum pair_class)near);
    }
}

static void put_latency_near(struct finder *f, enum pair_class near)
{
    if (near == PAIR_CLASSES)
        DRAIN_AND_PUT(f, 1, "pingpong.latency.median_us");
    else
        DRAIN_AND_PUT(f, 1, "pingpong.latency.%s.us", near_words[near]);
}

static void put_bandwidth_near(struct finder *f, enum pair_class near, const double v[3])
{
    if (near == PAIR_CLASSES)
        put(f, v, "pingpong.bandwidth.median.gbps");
    else
        put(f, v, "pingpong.bandwidth.%s.gbps", near_words[near]);
}

// Half of a round trip by size of the message: the smallest gives the latency, the largest (bytes
// in microseconds are MB/s) the bandwidth; a longer time is less of it.
static void find_messages(struct finder *f, const struct matrix *m, enum pair_class near)
{
    int last = m->col.n - 1;
    double bytes = (double)m->col.values[last], t[3];
    pool_pairs(f, m, 0, near);
    put_latency_near(f, near);
    pool_pairs(f, m, last, near);
    metrics_drain(f, 1, t);
    const double v[3] = {bytes / t[0] * gbps_per_mbps, bytes / t[2] * gbps_per_mbps,
                         bytes / t[1] * gbps_per_mbps};
    put_bandwidth_near(f, near, v);
}

static void metrics_of_pingpong(struct finder *f)
{
    const struct matrix *pairs = metrics_named(f->in, "pingpong");
    const struct matrix *latency = metrics_named(f->in, "latency"),
                        *width = metrics_named(f->in, "bandwidth");
    for (int i = 0; i <= PAIR_CLASSES; i++) {
        enum pair_class near = i == 0 ? PAIR_CLASSES : (enum pair_class)(i - 1);
        double v[3];
        if (has_axes(pairs, "pair", "message"))
            find_messages(f, pairs, near);
        if (has_axes(latency, "rank", "rank")) {
            pool_near(f, latency, near);
            put_latency_near(f, near);
        }
        if (has_axes(width, "rank", "rank")) {
            pool_near(f, width, near);
            metrics_drain(f, gbps_per_mbps, v);
            put_bandwidth_near(f, near, v);
        }
    }
}

// --- First touch, loaded -----------------------------------------------------------------------

static void pool_ratios(struct finder *f, const struct matrix *m, int over, int under)
{
    for (int r = 0; over >= 0 && under >= 0 && r < m->row.n; r++)
        pool_ratio(f, matrix_at(m, r, over), matrix_at(m, r, under));
}

static void metrics_of_firsttouch(struct finder *f)
{
    const struct matrix *m = metrics_named(f->in, "access");
    if (!has_axes(m, "rank", "access"))
        return;
    int own = axis_index(&m->col, ACCESS_OWN);
    if (own >= 0)
        pool_column(f, m, own);
    DRAIN_AND_PUT(f, 1, "firsttouch.own.median_ns");
    if (m->row.n < 2) // there is no other rank: all is its own
        return;
    pool_ratios(f, m, axis_index(&m->col, ACCESS_SHARED), own);
    DRAIN_AND_PUT(f, 1, "firsttouch.shared.ratio");
    pool_ratios(f, m, axis_index(&m->col, ACCESS_CROSSED), own);
    DRAIN_AND_PUT(f, 1, "firsttouch.crossed.ratio");
}

enum { LOADS_MAX = SPEC_STEPS_MAX + 1 }; // and idle

struct load_family { // of one mix
    const struct matrix *latency, *width;
    char prefix[24]; // of its metrics: "", "3r1w."
};

// Of the latency y its median, or an end of its interval.
static int loaded_points(const struct load_family *l, int row, int of, double x[LOADS_MAX],
                         double y[LOADS_MAX])
{
    int n = l->latency->col.n;
    if (n > LOADS_MAX || l->width->col.n != n || row >= l->width->row.n)
        return 0;
    for (int c = 0; c < n; c++) {
        x[c] = matrix_at(l->width, row, c)->v[CELL_MEDIAN];
        y[c] = matrix_at(l->latency, row, c)->v[of];
    }
    return n;
}

static void pool_knees(struct finder *f, const struct load_family *l, const struct matrix *of)
{
    double x[LOADS_MAX], y[LOADS_MAX];
    for (int r = 0; r < l->latency->row.n; r++) {
        int col = knee_of(x, y, loaded_points(l, r, CELL_MEDIAN, x, y));
        if (col >= 0)
            pool_cell(f, matrix_at(of, r, col));
    }
}

static double busy_of(const struct load_family *l, int row, int of)
{
    double x[LOADS_MAX], y[LOADS_MAX];
    return knee_busy(x, y, loaded_points(l, row, of, x, y));
}

static void pool_busy(struct finder *f, const struct load_family *l, int row)
{
    pool_value(f, busy_of(l, row, CELL_MEDIAN), busy_of(l, row, CELL_LO), busy_of(l, row, CELL_HI));
}

// Latency at full load, of rows that have loaders: a rank that is alone on its node stays idle.
static void pool_full(struct finder *f, const struct load_family *l, int row)
{
    const struct matrix *m = l->latency, *w = l->width;
    bool known = w && row < w->row.n && w->col.n > 0;
    if (!known || knee_is_loaded(matrix_at(w, row, w->col.n - 1)->v[CELL_MEDIAN]))
        pool_cell(f, matrix_at(m, row, m->col.n - 1));
}

static void metrics_of_nodes(struct finder *f, const struct load_family *l)
{
    const char *p = l->prefix;
    if (l->latency->col.values[0] == 0)
        pool_column(f, l->latency, 0);
    DRAIN_AND_PUT(f, 1, "loaded.%sidle_ns", p);
    for (int r = 0; r < l->latency->row.n; r++)
        if (of_strongest(f, l->latency, r))
            pool_full(f, l, r);
    DRAIN_AND_PUT(f, 1, "loaded.%sfull_ns", p);
    if (!has_axes(l->width, "rank", "load"))
        return;
    for (int r = 0; r < l->latency->row.n; r++)
        pool_busy(f, l, r);
    DRAIN_AND_PUT(f, 1, "loaded.%sbusy_ns", p);
    pool_column(f, l->width, l->width->col.n - 1);
    DRAIN_AND_PUT(f, gbps_per_mbps, "loaded.%sfull_gbps", p);
    pool_knees(f, l, l->latency);
    DRAIN_AND_PUT(f, 1, "loaded.%sknee_ns", p);
    pool_knees(f, l, l->width);
    DRAIN_AND_PUT(f, gbps_per_mbps, "loaded.%sknee_gbps", p);
}

static void metrics_of_path(struct finder *f, const struct load_family *l, int row)
{
    const struct matrix *m = l->latency;
    int from, target;
    char to[TARGET_LABEL_ROOM];
    axis_unpair(m->row.values[row], &from, &target);
    target_metric(target, to, sizeof to);
    if (m->col.values[0] == 0)
        pool_cell(f, matrix_at(m, row, 0));
    DRAIN_AND_PUT(f, 1, "loaded.%sn%d.%s.idle_ns", l->prefix, from, to);
    pool_full(f, l, row);
    DRAIN_AND_PUT(f, 1, "loaded.%sn%d.%s.full_ns", l->prefix, from, to);
    if (!has_axes(l->width, "path", "load") || row >= l->width->row.n)
        return;
    pool_busy(f, l, row);
    DRAIN_AND_PUT(f, 1, "loaded.%sn%d.%s.busy_ns", l->prefix, from, to);
    pool_cell(f, matrix_at(l->width, row, l->width->col.n - 1));
    DRAIN_AND_PUT(f, gbps_per_mbps, "loaded.%sn%d.%s.full_gbps", l->prefix, from, to);
}

static void metrics_of_loaded(struct finder *f)
{
    static const char stem[] = "latency_";
    for (int i = 0; i < f->in->n_matrices; i++) {
        const struct matrix *m = &f->in->matrices[i];
        const struct load_mix *mix = mix_of_matrix(m->name);
        struct load_family l = {.latency = m};
        if (mix && strcmp(mix->latency, m->name) == 0)
            snprintf(l.prefix, sizeof l.prefix, "%s.", m->name + strlen(stem));
        l.width = metrics_named(f->in, mix ? mix->bandwidth : "bandwidth");
        if (strcmp(m->quantity, "latency") != 0)
            continue;
        if (has_axes(m, "rank", "load"))
            metrics_of_nodes(f, &l);
        for (int r = 0; has_axes(m, "path", "load") && r < m->row.n; r++)
            metrics_of_path(f, &l, r);
    }
}

// --- Huge pages --------------------------------------------------------------------------------

static bool lacks_huge_pages(const struct metrics_input *in)
{
    for (int i = 0; i < in->n_ranks; i++)
        if (in->ranks[i].huge_share < 0.99)
            return true;
    return false;
}

// --- Page faults -------------------------------------------------------------------------------

enum { BASE_PAGE = 4096, HUGE_PAGE = 2 << 20 };

static const struct cell *metrics_smallest(const struct matrix *m, int row)
{
    const struct cell *best = NULL;
    for (int c = 0; row >= 0 && c < m->col.n; c++) {
        const struct cell *k = matrix_at(m, row, c);
        if (k->v[CELL_MEDIAN] > 0 && (!best || k->v[CELL_MEDIAN] < best->v[CELL_MEDIAN]))
            best = k;
    }
    return best;
}

// Bytes that so many threads touch in a nanosecond are GB/s; a longer time is less of it.
static void find_zeroing(struct finder *f, const struct matrix *m, double page)
{
    double best[3] = {0};
    for (int r = 0; r < m->row.n; r++) {
        const struct cell *k = metrics_smallest(m, r);
        double bytes = (double)m->row.values[r] * page;
        if (!k || bytes / k->v[CELL_MEDIAN] <= best[0])
            continue;
        best[0] = bytes / k->v[CELL_MEDIAN];
        best[1] = bytes / k->v[CELL_HI];
        best[2] = bytes / k->v[CELL_LO];
    }
    put(f, best, "pagefault.%s.peak.gbps", m->name);
}

static void find_faults(struct finder *f, const struct matrix *m, double page)
{
    double v[3];
    const struct cell *one = metrics_smallest(m, axis_index(&m->row, 1)),
                      *all = metrics_smallest(m, m->row.n - 1);
    if (one) {
        put_cell(f, one, 1, v);
        put(f, v, "pagefault.%s.single_ns", m->name);
    }
    if (all) {
        put_cell(f, all, 1, v);
        put(f, v, "pagefault.%s.all_ns", m->name);
    }
    if (page > 0)
        find_zeroing(f, m, page);
}

// Without huge pages, what was measured with them advised is not their cost.
static void metrics_of_pagefault(struct finder *f)
{
    const struct matrix *base = metrics_named(f->in, "4k"), *huge = metrics_named(f->in, "thp");
    if (has_axes(base, "threads", "target"))
        find_faults(f, base, BASE_PAGE);
    if (has_axes(huge, "threads", "target") && !lacks_huge_pages(f->in))
        find_faults(f, huge, HUGE_PAGE);
    // Of other costs; nothing is zeroed.
    const struct matrix *collapse = metrics_named(f->in, "collapse"),
                        *migrate = metrics_named(f->in, "migrate");
    if (has_axes(collapse, "threads", "target") && !lacks_huge_pages(f->in))
        find_faults(f, collapse, 0);
    if (has_axes(migrate, "threads", "path"))
        find_faults(f, migrate, 0);
}

// --- Atomic operations ---------------------------------------------------------------------------

static void put_operation(struct finder *f, const struct matrix *m, int row, int col,
                          const char *metric)
{
    char label[32];
    double v[3];
    if (row < 0)
        return;
    axis_label(&m->col, col, label, sizeof label);
    put_cell(f, matrix_at(m, row, col), 1, v);
    put(f, v, "atomics.%s.%s", label, metric);
}

// Of 1/n to 1 where more is better, a ratio of which less is.
static void put_unfairness(struct finder *f, const struct matrix *m, int col)
{
    const double *c = matrix_at(m, m->row.n - 1, col)->v;
    const double v[3] = {1 / c[CELL_MEDIAN], 1 / c[CELL_HI], 1 / c[CELL_LO]};
    char label[32];
    axis_label(&m->col, col, label, sizeof label);
    put(f, v, "atomics.%s.unfairness.ratio", label);
}

static void metrics_of_atomics(struct finder *f)
{
    const struct matrix *time = metrics_named(f->in, "time"),
                        *handover = metrics_named(f->in, "handover"),
                        *fairness = metrics_named(f->in, "fairness");
    for (int c = 0; has_axes(time, "threads", "operation") && c < time->col.n; c++) {
        int last = time->row.n - 1;
        put_operation(f, time, axis_index(&time->row, 1), c, "single_ns");
        put_operation(f, time, time->row.values[last] > 1 ? last : -1, c, "all_ns");
    }
    for (int c = 0; has_axes(handover, "threads", "operation") && c < handover->col.n; c++)
        put_operation(f, handover, handover->row.n - 1, c, "handover_ns");
    for (int c = 0; has_axes(fairness, "threads", "operation") && c < fairness->col.n; c++)
        if (fairness->row.values[fairness->row.n - 1] > 1)
            put_unfairness(f, fairness, c);
}

// --- Hierarchy ---------------------------------------------------------------------------------

__attribute__((format(printf, 3, 4))) static void put_alone(struct finder *f, double value,
                                                            const char *fmt, ...)
{
    const double v[3] = {value, NAN, NAN};
    char name[64];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    put(f, v, "%s", name);
}

static void put_reach(struct finder *f, const struct reach *r, const char *pages)
{
    for (int k = 0; k < r->n; k++) {
        put_alone(f, (double)r->pages[k], "hierarchy.tlb.%s.l%d.entries", pages, k + 1);
        put_alone(f, r->miss_ns[k], "hierarchy.tlb.%s.l%d.miss_ns", pages, k + 1);
    }
}

static void put_measured(struct finder *f, double value, const struct hierarchy_ends *ends,
                         const char *name)
{
    const double v[3] = {value, ends->lo, ends->hi};
    put(f, v, "%s", name);
}

static void put_strides(struct finder *f, const struct hierarchy *h)
{
    for (int i = 0; i < h->n_strides; i++) {
        const double v[3] = {h->strides[i].ns, h->strides[i].ends.lo, h->strides[i].ends.hi};
        put(f, v, "hierarchy.stride.%lld.ns", (long long)h->strides[i].bytes);
    }
}

// What is fitted to a curve has no interval.
static void metrics_of_hierarchy(struct finder *f)
{
    struct hierarchy h;
    struct err err = {0};
    CLEANUP_MEM bool *rows = NULL;
    if (hierarchy_rows(&rows, f->in->matrices, f->in->n_matrices, &f->places, &err) < 0 ||
        hierarchy_find_of(&h, f->in->matrices, f->in->n_matrices, rows, &err) < 0) {
        f->no_memory = true;
        return;
    }
    put_measured(f, h.memory_ns, &h.memory_ends, "hierarchy.memory_ns");
    put_alone(f, h.hop_ns, "hierarchy.hop_ns");
    put_alone(f, h.misses, "hierarchy.parallel.loads");
    put_measured(f, h.access_ns, &h.access_ends, "hierarchy.parallel.access_ns");
    put_measured(f, h.cycle_ns, &h.cycle_ends, "hierarchy.cycle_ns");
    for (int k = 0; k + 1 < h.levels.n; k++) {
        put_alone(f, h.levels.list[k].ns, "hierarchy.l%d.ns", k + 1);
        put_alone(f, (double)h.levels.list[k].bytes, "hierarchy.l%d.bytes", k + 1);
    }
    put_reach(f, &h.base, "base");
    if (!lacks_huge_pages(f->in))
        put_reach(f, &h.huge, "huge");
    put_strides(f, &h);
}

// --- Scan --------------------------------------------------------------------------------------

struct scan_counts {
    int compared, odd, unconfirmed;
};

// The largest ratio to the peers, and how many of those compared are odd.
static void put_deviations(struct finder *f, const struct matrix *m, struct scan_counts *n)
{
    const struct cell *worst = NULL;
    for (int k = 0; k < m->row.n * m->col.n; k++) {
        const struct cell *c = &m->cells[k];
        if (!(c->v[CELL_N] > 0))
            continue;
        n->compared++;
        n->odd += scan_is_odd(c);
        n->unconfirmed += scan_is_unconfirmed(c);
        worst = !worst || c->v[CELL_MEDIAN] > worst->v[CELL_MEDIAN] ? c : worst;
    }
    if (worst) {
        double v[3];
        put_cell(f, worst, 0.01, v);
        put(f, v, "scan.%s.worst_ratio", m->name);
    }
}

static void metrics_of_scan(struct finder *f)
{
    struct scan_counts n = {0};
    const struct matrix *latency = metrics_named(f->in, SCAN_LATENCY),
                        *bandwidth = metrics_named(f->in, SCAN_BANDWIDTH);
    if (has_axes(latency, "rank", "working_set") && latency->col.n == 2) {
        pool_column(f, latency, 0);
        DRAIN_AND_PUT(f, 1, "scan.l2_ns");
        pool_column(f, latency, 1);
        DRAIN_AND_PUT(f, 1, "scan.memory_ns");
    }
    if (has_axes(bandwidth, "rank", "working_set")) {
        pool_column(f, bandwidth, 0);
        DRAIN_AND_PUT(f, gbps_per_mbps, "scan.bandwidth.gbps");
    }
    for (int i = 0; i < f->in->n_matrices; i++)
        if (scan_has_deviations(&f->in->matrices[i]))
            put_deviations(f, &f->in->matrices[i], &n);
    bool known = n.compared && !n.unconfirmed; // a candidate may be odd, or not
    put_alone(f, n.odd, "scan.odd");
    put_alone(f, known ? 1 - (double)n.odd / n.compared : NAN, "scan.alike_ratio");
}

// --- What disturbs -----------------------------------------------------------------------------

// Less is of no consequence. Without a floor, a history would see a change from 0.1 to 0.3 %.
static const double disturbed_floor = 0.01;

static void put_share(struct finder *f, double share, const char *name)
{
    double v[3] = {share < disturbed_floor ? disturbed_floor : share, NAN, NAN};
    if (!isnan(share))
        put(f, v, "%s.%s", benchmarks[f->in->spec->benchmark].name, name);
}

static void find_disturbed(struct finder *f)
{
    const char *name = benchmarks[f->in->spec->benchmark].name;
    const struct rank_info *ranks = f->in->ranks;
    const double median[3] = {ranks_clock(ranks, f->in->n_ranks), NAN, NAN};
    const double least[3] = {ranks_least_clock(ranks, f->in->n_ranks), NAN, NAN};
    put_share(f, samples_disturbed(f->in->matrices, f->in->n_matrices), "disturbed_ratio");
    put_share(f, ranks_off_cpu(ranks, f->in->n_ranks), "off_cpu.worst_ratio");
    put(f, median, "%s.clock.median_ghz", name);
    put(f, least, "%s.clock.least_ghz", name);
}

// They are found first, so that they have room beside any number of pairs of nodes, and listed
// last.
static void list_last(struct metrics *out, int n)
{
    struct metric first[8];
    memcpy(first, out->list, (size_t)n * sizeof *first);
    memmove(out->list, out->list + n, (size_t)(out->n - n) * sizeof *first);
    memcpy(out->list + out->n - n, first, (size_t)n * sizeof *first);
}

// --- All ---------------------------------------------------------------------------------------

#define FINDER(id, name) [BENCHMARK_##id] = metrics_of_##name,
static void (*const finders[BENCHMARKS])(struct finder *f) = {BENCHMARK_LIST(FINDER)};

static int finder_init(struct finder *f, struct err *err)
{
    const struct metrics_input *in = f->in;
    size_t cells = 1, rows = 1;
    for (int i = 0; i < in->n_matrices; i++) {
        size_t n = (size_t)in->matrices[i].row.n;
        rows = n > rows ? n : rows;
        n *= (size_t)in->matrices[i].col.n;
        cells = n > cells ? n : cells;
    }
    cells = (size_t)in->n_ranks > cells ? (size_t)in->n_ranks : cells;
    f->v = calloc(cells * 3, sizeof *f->v);
    f->rows = calloc(rows, sizeof *f->rows);
    if (!f->v || !f->rows)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for metrics");
    f->lo = f->v + cells;
    f->hi = f->lo + cells;
    return places_init(&f->places, in->ranks, in->n_ranks, in->topology, err);
}

static void finder_fini(struct finder *f)
{
    places_fini(&f->places);
    free(f->rows);
    free(f->v);
}

int metrics_find(struct metrics *out, const struct metrics_input *in, struct err *err)
{
    struct finder f CLEANUP(finder_fini) = {.out = out, .in = in};
    if (finder_init(&f, err) < 0)
        return -1;
    out->n = out->omitted = 0;
    find_disturbed(&f);
    int of_all = out->n;
    finders[in->spec->benchmark](&f);
    list_last(out, of_all);
    if (out->omitted) {
        struct metric *m = &out->list[out->n++];
        *m =
            (struct metric){.name = "metrics.omitted", .value = out->omitted, .lo = NAN, .hi = NAN};
        snprintf(m->unit, sizeof m->unit, "%s", metric_rule_find(m->name, NULL)->unit);
    }
    return f.no_memory ? err_set(err, ERR_NO_MEMORY, "", "no memory for metrics") : 0;
}

static int metrics_ranks_of(const struct metrics_input *in)
{
    if (in->n_ranks > 0)
        return in->n_ranks;
    bool by_rank = in->n_matrices > 0 && strcmp(in->matrices[0].row.name, "rank") == 0;
    return by_rank ? in->matrices[0].row.n : 0;
}

void metrics_variant(const struct metrics_input *in, struct buf *out)
{
    struct spec s = *in->spec;
    int ranks = metrics_ranks_of(in);
    s.mode = MODE_CONCURRENT; // of latency; of others it is nothing else
    // A choice of all pairs of ranks is none. Of matrix the number of targets is not known here.
    int64_t pairs = (int64_t)ranks * (ranks - 1) / 2;
    if (ranks > 0 && spec_param(&s, "pairs") && spec_pairs_of(&s, pairs) == pairs)
        s.pairs_most = 0;
    spec_variant(&s, out);
    if (in->method && *in->method && strcmp(in->method, spec_method(in->spec)) != 0)
        buf_fmt(out, "%sby=%s", out->len ? " " : "", in->method);
    if (in->imported)
        buf_fmt(out, "%simported=true", out->len ? " " : "");
    if (!*s.cpus && ranks > 0)
        buf_fmt(out, "%sn_ranks=%d", out->len ? " " : "", ranks);
}

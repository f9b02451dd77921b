// SPDX-License-Identifier: Apache-2.0
// A memory node that is slow from everywhere, or a rank that is slow to all memory. What is typical
// of near and far is not known beforehand, and firmware often does not say it; but each memory node
// is near to some CPUs and far from others in the same way as the next one. So the values of a
// column, in ascending order, are held against the other columns' values in their order, place by
// place, and parts of that table are looked for as in comparisons (analysis/stats/slices.h). The
// same for rows. A node that is merely far from others has ordinary memory of its own: that must
// differ too.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/section.h"
#include "analysis/stats/median.h"
#include "analysis/stats/slices.h"
#include "base/cleanup.h"
#include "model/shape.h"

static const double NOTABLE = 0.05; // smaller differences between nodes are of no interest
static const double LEVEL = 0.0005; // of p
enum { LINES_MIN = 4 };             // fewer columns do not say what is typical

// One axis as the lines that are compared: line k has `places` values, its own node's among them.
struct lines {
    const struct matrix *m;
    bool columns;
    int n, places;
    const int64_t *row_node; // of each row's CPUs
    double *value, *unknown; // places × lines; owned
    double *own, *room;      // of each line: log of its own memory's value; owned
};

static void slices_lines_fini(struct lines *l)
{
    free(l->value);
    free(l->unknown);
    free(l->own);
    free(l->room);
}

static int slices_lines_init(struct lines *l, struct err *err)
{
    const struct matrix *m = l->m;
    size_t n = (size_t)m->row.n * (size_t)m->col.n;
    l->n = l->columns ? m->col.n : m->row.n;
    l->places = l->columns ? m->row.n : m->col.n;
    l->value = calloc(n, sizeof *l->value);
    l->unknown = calloc(n, sizeof *l->unknown);
    l->own = calloc((size_t)l->n, sizeof *l->own);
    l->room = calloc((size_t)m->row.n + (size_t)m->col.n, sizeof *l->room);
    if (!l->value || !l->unknown || !l->own || !l->room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the report");
    return 0;
}

// The values of a line in ascending order; a line that lacks one, or memory of its own, is left
// out.
static void slices_fill_line(struct lines *l, int k, const bool *skip)
{
    bool whole = !(l->columns && skip[k]);
    double own = NAN;
    int n = 0;
    for (int place = 0; place < l->places; place++) {
        int i = l->columns ? place : k, j = l->columns ? k : place;
        double v = log(matrix_at(l->m, i, j)->v[CELL_MEDIAN]);
        if (!l->columns && skip[j])
            continue;
        if (l->row_node[i] == l->m->col.values[j] && l->row_node[i] >= 0)
            own = fmin(own, v); // passes over NaN
        whole = whole && isfinite(v);
        l->room[n++] = v;
    }
    middle_of(l->room, n); // sorts
    whole = whole && isfinite(own);
    l->own[k] = whole ? own : NAN;
    for (int place = 0; place < l->places; place++)
        l->value[place * l->n + k] = whole && place < n ? l->room[place] : NAN;
}

static void centre_on_middle(double *v, int n, double *room)
{
    int known = 0;
    for (int k = 0; k < n; k++)
        if (!isnan(v[k]))
            room[known++] = v[k];
    double typical = middle_of(room, known);
    for (int k = 0; k < n; k++)
        v[k] = known < LINES_MIN ? NAN : v[k] - typical;
}

static int find_lines(struct lines *l, const bool *skip, struct parts *found, struct err *err)
{
    for (int k = 0; k < l->n; k++)
        slices_fill_line(l, k, skip);
    for (int place = 0; place < l->places; place++)
        centre_on_middle(&l->value[place * l->n], l->n, l->room);
    centre_on_middle(l->own, l->n, l->room);
    for (int k = 0; k < l->n * l->places; k++)
        l->unknown[k] = NAN;
    const struct parts_options how = {
        .least = log1p(NOTABLE), .same = 0, .lone = INFINITY, .level = LEVEL};
    const struct parts_table t = {
        .rows = l->places, .cols = l->n, .value = l->value, .var = l->unknown, .df = l->unknown};
    return parts_find(found, &t, &how, err);
}

static void report_line(struct report_out *o, const struct lines *l, int k, double level)
{
    bool more = shape_more_is_better(l->m), faster = (level > 0) == more;
    bool rank = strcmp(l->m->row.name, "rank") == 0;
    double percent = 100 * expm1(level);
    char name[48];
    if (l->columns)
        snprintf(name, sizeof name, "Memory of node %" PRId64, l->m->col.values[k]);
    else
        snprintf(name, sizeof name, "%s %" PRId64, rank ? "Rank" : "The CPUs of node",
                 l->m->row.values[k]);
    struct jsonw *w = report_finding(o, "part_differs");
    jsonw_text(w, "matrix", l->m->name);
    jsonw_text(w, "by", l->columns ? "target" : l->m->row.name);
    jsonw_i64(w, "value", l->columns ? l->m->col.values[k] : l->m->row.values[k]);
    jsonw_text(w, "verdict", faster ? "faster" : "slower");
    jsonw_fixed(w, "percent", percent, 1);
    if (l->columns)
        report_say(
            o, "%s is %s than that of other nodes, for local and remote CPUs: typically %+.1f %%.",
            name, faster ? "faster" : "slower", percent);
    else
        report_say(o, "%s %s %s than others, to local and remote memory: typically %+.1f %%.", name,
                   rank ? "is" : "are", faster ? "faster" : "slower", percent);
}

// Marks the columns of memory that was named.
static int report_lines(struct report_out *o, const struct matrix *m, const int64_t *row_node,
                        bool columns, bool *odd, struct err *err)
{
    struct lines l CLEANUP(slices_lines_fini) = {.m = m, .columns = columns, .row_node = row_node};
    struct parts found CLEANUP(parts_fini) = {0};
    if (slices_lines_init(&l, err) < 0 || find_lines(&l, odd, &found, err) < 0)
        return -1;
    for (int i = 0; i < found.n; i++) {
        const struct part *p = &found.list[i];
        bool line = p->rows.kind == PART_ALL && p->cols.kind == PART_ONE;
        if (!line || !(l.own[p->cols.at] / p->level >= 0.5))
            continue;
        report_line(o, &l, p->cols.at, p->level);
        if (columns)
            odd[p->cols.at] = true;
    }
    return 0;
}

int report_parts(struct report_out *o, const struct report_source *s, const struct matrix *m,
                 bool *odd_target, struct err *err)
{
    CLEANUP_MEM int64_t *row_node = calloc((size_t)m->row.n, sizeof *row_node);
    if (!row_node)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the report");
    bool ranks = strcmp(m->row.name, "rank") == 0;
    for (int i = 0; i < m->row.n; i++)
        row_node[i] = ranks ? report_cpu_node(s, m->row.values[i]) : m->row.values[i];
    if (report_lines(o, m, row_node, true, odd_target, err) < 0)
        return -1;
    return report_lines(o, m, row_node, false, odd_target, err);
}

// SPDX-License-Identifier: Apache-2.0
// A memory node that is slow from everywhere, or CPUs that are slow to everything: each way between
// nodes is held against the ways of the same distance, and parts of that table are looked for as in
// comparisons (analysis/parts.h).
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/middle.h"
#include "analysis/parts.h"
#include "analysis/report_section.h"
#include "base/cleanup.h"
#include "model/shape.h"

static const double NOTABLE = 0.05; // smaller differences between nodes are of no interest
static const double LEVEL = 0.0005; // of p

// The ways of a matrix, from the node of a row to the memory of a column.
struct ways {
    const struct report_source *s;
    const struct matrix *m;
    int64_t *from; // node of each row's CPUs; owned
    struct report_nodes nodes;
    int *group;                     // of each row: index into nodes; owned
    int *column;                    // of each column: index of its node in the topology; owned
    int *distance, *order;          // of each cell, -1: not known; those that are known; owned
    double *value, *unknown, *room; // rows × cols; owned
};

static void ways_fini(struct ways *w)
{
    free(w->from);
    free(w->group);
    free(w->column);
    free(w->distance);
    free(w->order);
    free(w->value);
    free(w->unknown);
    free(w->room);
}

static int node_index(const struct topology *t, int64_t node)
{
    return t && t->distance ? topology_node_index(t, (int)node) : -1;
}

// As the firmware says, else own memory and others'. -1: not known.
static void set_distances(struct ways *w)
{
    const struct topology *t = w->s->topology;
    const struct matrix *m = w->m;
    for (int j = 0; j < m->col.n; j++)
        w->column[j] = node_index(t, m->col.values[j]);
    for (int i = 0; i < m->row.n; i++) {
        int from = node_index(t, w->from[i]);
        for (int j = 0; j < m->col.n; j++) {
            int *d = &w->distance[i * m->col.n + j];
            if (w->from[i] < 0 || m->col.values[j] < 0)
                *d = -1;
            else if (from >= 0 && w->column[j] >= 0)
                *d = t->distance[from * t->n_nodes + w->column[j]];
            else
                *d = m->col.values[j] != w->from[i];
        }
    }
}

static int ways_init(struct ways *w, struct err *err)
{
    const struct matrix *m = w->m;
    size_t n = (size_t)m->row.n * (size_t)m->col.n;
    bool ranks = strcmp(m->row.name, "rank") == 0;
    w->from = calloc((size_t)m->row.n, sizeof *w->from);
    w->group = calloc((size_t)m->row.n, sizeof *w->group);
    w->column = calloc((size_t)m->col.n, sizeof *w->column);
    w->distance = calloc(n, sizeof *w->distance);
    w->order = calloc(n, sizeof *w->order);
    w->value = calloc(n, sizeof *w->value);
    w->unknown = calloc(n, sizeof *w->unknown);
    w->room = calloc(n, sizeof *w->room);
    if (!w->from || !w->group || !w->column || !w->distance || !w->order || !w->value ||
        !w->unknown || !w->room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the report");
    w->nodes = report_nodes_of(w->s, &m->row);
    for (int i = 0; i < m->row.n; i++) {
        w->from[i] = ranks ? report_cpu_node(w->s, m->row.values[i]) : m->row.values[i];
        w->group[i] = -1;
        for (int k = 0; k < w->nodes.n; k++)
            w->group[i] = w->nodes.node[k] == w->from[i] ? k : w->group[i];
    }
    for (size_t k = 0; k < n; k++)
        w->unknown[k] = w->value[k] = NAN;
    set_distances(w);
    return 0;
}

static int by_distance(const void *a, const void *b, void *distance)
{
    const int *d = distance, x = d[*(const int *)a], y = d[*(const int *)b];
    return (x > y) - (x < y);
}

// Logs of the values over what is typical of their distance.
static void hold_against_typical(struct ways *w)
{
    int n = 0;
    for (int k = 0; k < w->m->row.n * w->m->col.n; k++)
        if (w->distance[k] >= 0 && w->m->cells[k].v[CELL_MEDIAN] > 0)
            w->order[n++] = k;
    qsort_r(w->order, (size_t)n, sizeof *w->order, by_distance, w->distance);
    for (int from = 0, to; from < n; from = to) {
        for (to = from; to < n && w->distance[w->order[to]] == w->distance[w->order[from]]; to++)
            w->room[to - from] = log(w->m->cells[w->order[to]].v[CELL_MEDIAN]);
        double typical = middle_of(w->room, to - from);
        for (int i = from; i < to; i++)
            w->value[w->order[i]] = log(w->m->cells[w->order[i]].v[CELL_MEDIAN]) - typical;
    }
}

static void part_name(const struct ways *w, const struct part *p, char *out, size_t room)
{
    const struct axis *rows = &w->m->row, *cols = &w->m->col;
    bool ranks = strcmp(rows->name, "rank") == 0, all = p->rows.kind == PART_ALL;
    char who[48] = "";
    if (p->rows.kind == PART_GROUP)
        snprintf(who, sizeof who, "Ranks of node %" PRId64, w->nodes.node[p->rows.at]);
    else if (!all)
        snprintf(who, sizeof who, "%s%" PRId64, ranks ? "Rank " : "CPUs of node ",
                 rows->values[p->rows.at]);
    if (p->cols.kind == PART_ALL)
        snprintf(out, room, "%s", who);
    else
        snprintf(out, room, "%s%s of node %" PRId64, who, all ? "Memory" : " on memory",
                 cols->values[p->cols.at]);
}

static void tell_part(struct report_out *o, const struct ways *w, const struct part *p)
{
    bool more = shape_more_is_better(w->m);
    double percent = 100 * expm1(p->level);
    char name[96];
    part_name(w, p, name, sizeof name);
    struct jsonw *j = report_finding(o, "part_differs");
    jsonw_text(j, "matrix", w->m->name);
    jsonw_text(j, "part", name);
    if (p->rows.kind == PART_ALL)
        jsonw_i64(j, "target", w->m->col.values[p->cols.at]);
    jsonw_fixed(j, "percent", percent, 1);
    jsonw_text(j, "verdict", (percent > 0) == more ? "faster" : "slower");
    report_say(o, "%s is %s: typically %+.1f %% %s against other ways of the same distance.", name,
               (percent > 0) == more ? "faster" : "slower", percent,
               more ? "bandwidth" : "latency");
}

int report_parts(struct report_out *o, const struct report_source *s, const struct matrix *m,
                 bool *odd_target, struct err *err)
{
    struct ways w CLEANUP(ways_fini) = {.s = s, .m = m};
    struct parts found CLEANUP(parts_fini) = {0};
    if (ways_init(&w, err) < 0)
        return -1;
    hold_against_typical(&w);
    const struct parts_options how = {
        .least = log1p(NOTABLE), .same = 0, .lone = INFINITY, .level = LEVEL};
    const struct parts_table t = {.rows = m->row.n,
                                  .cols = m->col.n,
                                  .value = w.value,
                                  .var = w.unknown,
                                  .df = w.unknown,
                                  .row_group = w.group,
                                  .n_row_groups = w.nodes.n};
    if (parts_find(&found, &t, &how, err) < 0)
        return -1;
    for (int i = 0; i < found.n; i++) {
        const struct part *p = &found.list[i];
        if (p->rows.kind == PART_ALL && p->cols.kind == PART_ALL)
            continue;
        tell_part(o, &w, p);
        if (p->rows.kind == PART_ALL)
            odd_target[p->cols.at] = true;
    }
    return 0;
}

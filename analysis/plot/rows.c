// SPDX-License-Identifier: Apache-2.0
// One row of a chart: its values, its place and its name.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "analysis/stats/median.h"
#include "model/target.h"

#define SMALLEST_X 0.5 // 0 on a logarithmic axis: an empty message

static double chart_cell(const struct chart *c, const struct matrix *m, const struct measure *by,
                         int s, int x, enum cell_field field)
{
    return c->series_in_cols ? measured(m, by, x, s, field) : measured(m, by, s, x, field);
}

double chart_x_value(const struct chart *c, int s, int x)
{
    if (c->p->bandwidth)
        return chart_cell(c, c->p->bandwidth, &c->x_by, s, x, CELL_MEDIAN);
    double v = (double)c->x_axis->values[x];
    return c->x.r.log ? fmax(v, SMALLEST_X) : v;
}

double chart_value(const struct chart *c, int s, int x, enum cell_field field)
{
    return chart_cell(c, c->p->matrix, &c->y_by, s, x, field);
}

bool chart_disturbed(const struct chart *c, int s, int x)
{
    return cell_disturbed(
        matrix_at(c->p->matrix, c->series_in_cols ? x : s, c->series_in_cols ? s : x));
}

int64_t chart_node_of(const struct chart *c, int s)
{
    bool ranks = strcmp(c->series->name, "rank") == 0;
    return ranks ? node_of_rank(c->p->ranks, c->p->n_ranks, c->series->values[s]) : -1;
}

int chart_nodes(const struct chart *c, int64_t nodes[PLOT_GROUPS_MAX])
{
    int n = 0;
    for (int s = 0; s < c->series->n; s++) {
        int64_t node = chart_node_of(c, s);
        int at = 0;
        while (at < n && nodes[at] < node)
            at++;
        if (node < 0)
            return -1;
        if (at < n && nodes[at] == node)
            continue;
        if (n == PLOT_GROUPS_MAX)
            return -1;
        memmove(&nodes[at + 1], &nodes[at], (size_t)(n - at) * sizeof *nodes);
        nodes[at] = node;
        n++;
    }
    return n;
}

void chart_name_line(const struct chart *c, int s, char *out, size_t room)
{
    char value[AXIS_LABEL_ROOM];
    axis_label(c->series, s, value, sizeof value);
    bool target = strcmp(c->series->name, "target") == 0;
    if (target && c->series->values[s] < 0)
        snprintf(out, room, "own memory");
    else if (chart_node_of(c, s) >= 0)
        snprintf(out, room, "rank %s, node %" PRId64, value, chart_node_of(c, s));
    else if (target)
        snprintf(out, room, "%s%s", target_is_interleaved(c->series->values[s]) ? "" : "node ",
                 value);
    else
        snprintf(out, room, "%s %s", c->series->name, value);
}

void chart_fill_line(const struct chart *c, int s, struct line *l)
{
    chart_name_line(c, s, l->label, sizeof l->label);
    axis_value(c->series, s, l->name, sizeof l->name);
    for (int x = 0; x < c->n_x; x++)
        l->points[x] = (struct point){chart_x_value(c, s, x), chart_value(c, s, x, CELL_MEDIAN),
                                      chart_value(c, s, x, CELL_LO), chart_value(c, s, x, CELL_HI),
                                      chart_disturbed(c, s, x)};
}

struct line *chart_line(struct chart *c, int i)
{
    c->lines[i].points = c->points + (size_t)i * (size_t)c->n_x;
    c->lines[i].x_axis = c->x_axis;
    return &c->lines[i];
}

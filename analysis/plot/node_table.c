// SPDX-License-Identifier: Apache-2.0
// Colours are those of heat maps: dark is little, bright is much. Values stand in the cells where
// there is room; where there is none, they show when the reader points at a cell.
#include "analysis/plot/node_table.h"

#include <math.h>
#include <stdio.h>

#include "analysis/plot/parts.h"

enum {
    TITLE_HEIGHT = 20,
    HEAD_HEIGHT = 20, // numbers of the columns
    LEFT = 62,        // "node 128"
    TEXT_WIDTH = 46,  // of a cell with its value
    TEXT_LEAST = 36,
    TEXT_HEIGHT = 26,
    CELL_MOST = 22, // of one without
    CELL_LEAST = 5,
    LABEL_PITCH = 22, // columns have numbers where there is that much room
};
// Share of the largest value that the colours span at least, so that a small difference looks
// small.
#define SPAN_LEAST 0.3

static bool line_is_known(const struct node_costs *c, enum node_cost_kind kind, int node, bool row)
{
    for (int i = 0; i < c->topology->n_nodes; i++)
        if (isfinite((row ? node_cost_at(c, kind, node, i) : node_cost_at(c, kind, i, node)).v))
            return true;
    return false;
}

// Returns how many; *left_out: those beyond the limit.
static int table_find_nodes(const struct node_costs *c, enum node_cost_kind kind, bool row,
                            int *list, int *left_out)
{
    int n = 0, beyond = 0;
    for (int i = 0; i < c->topology->n_nodes; i++)
        if (line_is_known(c, kind, i, row)) {
            if (n < NODE_TABLE_MAX)
                list[n++] = i;
            else
                beyond++;
        }
    *left_out = beyond > *left_out ? beyond : *left_out;
    return n;
}

static double table_value(const struct node_table *t, int row, int col)
{
    double v = node_cost_at(t->costs, t->kind, t->rows[row], t->cols[col]).v;
    return node_cost_more_is_better(t->kind) ? v / NODE_TABLE_MBPS : v;
}

static void find_span(struct node_table *t)
{
    struct range r = RANGE_EMPTY;
    for (int i = 0; i < t->n_rows; i++)
        for (int j = 0; j < t->n_cols; j++)
            range_add(&r, table_value(t, i, j));
    t->least = r.lo;
    t->most = r.hi;
    double least = SPAN_LEAST * r.hi, middle = (r.lo + r.hi) / 2;
    if (r.hi - r.lo < least)
        r = (struct range){middle - least / 2, middle + least / 2, false};
    t->lo = r.lo;
    t->hi = r.hi;
}

struct node_table node_table_of(const struct node_costs *c, enum node_cost_kind kind, double most)
{
    struct node_table t = {.costs = c, .kind = kind};
    t.n_rows = table_find_nodes(c, kind, true, t.rows, &t.left_out);
    t.n_cols = table_find_nodes(c, kind, false, t.cols, &t.left_out);
    double across = (most - LEFT) / (t.n_cols ? t.n_cols : 1);
    t.texts = across >= TEXT_LEAST;
    t.cell_w = t.texts ? fmin(across, TEXT_WIDTH) : fmax(fmin(across, CELL_MOST), CELL_LEAST);
    t.cell_h = t.texts ? TEXT_HEIGHT : t.cell_w;
    // Room for the title of a small table.
    t.width = fmax(LEFT + t.n_cols * t.cell_w, fmin(most, 300));
    t.height = TITLE_HEIGHT + HEAD_HEIGHT + t.n_rows * t.cell_h;
    find_span(&t);
    return t;
}

static int table_level(const struct node_table *t, double v)
{
    int level = (int)((v - t->lo) / (t->hi - t->lo) * HEAT_LEVELS);
    return level < 0 ? 0 : level < HEAT_LEVELS ? level : HEAT_LEVELS - 1;
}

static void cell_title(const struct node_table *t, int row, int col, char *out, size_t room)
{
    const struct topology *p = t->costs->topology;
    const struct node_cost k = node_cost_at(t->costs, t->kind, t->rows[row], t->cols[col]);
    double own = node_cost_at(t->costs, t->kind, t->rows[row], t->rows[row]).v;
    bool more = node_cost_more_is_better(t->kind);
    double scale = more ? NODE_TABLE_MBPS : 1;
    char value[32], lo[32], hi[32], ends[80] = "", factor[64] = "";
    value_text(k.v / scale, value, sizeof value);
    value_text(k.lo / scale, lo, sizeof lo);
    value_text(k.hi / scale, hi, sizeof hi);
    if (isfinite(k.lo) && isfinite(k.hi))
        snprintf(ends, sizeof ends, " (%s … %s)", lo, hi);
    if (isfinite(own) && t->rows[row] != t->cols[col])
        snprintf(factor, sizeof factor, ", %.2f times its own", k.v / own);
    snprintf(out, room, "CPUs of node %d to memory of node %d: %s %s%s%s",
             p->nodes[t->rows[row]].os, p->nodes[t->cols[col]].os, value, more ? "GB/s" : "ns",
             ends, factor);
}

static void draw_cell(const struct node_table *t, int row, int col, double x, double y,
                      struct buf *out)
{
    double v = table_value(t, row, col);
    char title[240], text[32];
    if (!isfinite(v)) {
        buf_fmt(out, "<rect class=\"gap\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", x,
                y, t->cell_w - 1, t->cell_h - 1);
        svg_titled(out, "rect", "no value counts");
        return;
    }
    struct rgb c = heat_colour(table_level(t, v));
    cell_title(t, row, col, title, sizeof title);
    buf_fmt(out,
            "<rect fill=\"#%02x%02x%02x\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"",
            c.r & 0xff, c.g & 0xff, c.b & 0xff, x, y, t->cell_w - 1, t->cell_h - 1);
    svg_titled(out, "rect", title);
    value_text(v, text, sizeof text);
    if (t->texts)
        svg_text(out, x + t->cell_w / 2, y + t->cell_h / 2 + 4, ANCHOR_MIDDLE,
                 heat_is_bright(c) ? "dark cell" : "light cell", text);
}

static void table_draw_labels(const struct node_table *t, double x, double y, struct buf *out)
{
    const struct topology *p = t->costs->topology;
    int every = (int)ceil(LABEL_PITCH / t->cell_w), down = (int)ceil(14 / t->cell_h);
    char text[24];
    for (int j = 0; j < t->n_cols; j += every) {
        snprintf(text, sizeof text, "%d", p->nodes[t->cols[j]].os);
        svg_text(out, x + LEFT + (j + 0.5) * t->cell_w, y + TITLE_HEIGHT + HEAD_HEIGHT - 6,
                 ANCHOR_MIDDLE, "small", text);
    }
    for (int i = 0; i < t->n_rows; i += down) {
        snprintf(text, sizeof text, "node %d", p->nodes[t->rows[i]].os);
        svg_text(out, x + LEFT - 8, y + TITLE_HEIGHT + HEAD_HEIGHT + (i + 0.5) * t->cell_h + 4,
                 ANCHOR_END, "small", text);
    }
}

void node_table_draw(const struct node_table *t, double x, double y, struct buf *out)
{
    char title[120], lo[32], hi[32];
    value_text(t->least, lo, sizeof lo);
    value_text(t->most, hi, sizeof hi);
    snprintf(title, sizeof title, "%s, %s to %s %s", node_cost_kinds[t->kind].words, lo, hi,
             node_cost_more_is_better(t->kind) ? "GB/s" : "ns");
    svg_title_case(title);
    svg_text(out, x, y + 12, ANCHOR_START, "quiet", title);
    table_draw_labels(t, x, y, out);
    for (int i = 0; i < t->n_rows; i++)
        for (int j = 0; j < t->n_cols; j++)
            draw_cell(t, i, j, x + LEFT + j * t->cell_w,
                      y + TITLE_HEIGHT + HEAD_HEIGHT + i * t->cell_h, out);
}

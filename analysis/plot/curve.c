// SPDX-License-Identifier: Apache-2.0
// Lines over an axis of numbers, as SVG. In a loaded run both axes are measured: latency over the
// bandwidth that there was.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "analysis/stats/knee.h"
#include "base/cleanup.h"

enum {
    WIDTH = 900,
    HEIGHT = 500,
    LEFT = 76,
    RIGHT = WIDTH - 158, // labels of the lines are 140 wide
    TOP = 86,            // heading, and the names of the marks in two lines
    BOTTOM = HEIGHT - 68,
    LABEL_STEP = 15,
    MARK_APART = 52, // "L2 512K" in 11 px
    X_LABEL = 46,    // room of a tick's label
};
#define LEAST_WHISKER 2 // pixels; smaller ones vanish behind the dot

// --- Frame ---------------------------------------------------------------------------------------

static void draw_y_axis(const struct chart *c, struct buf *out)
{
    struct ticks t;
    char text[32];
    ticks_round(&t, &c->y.r, 7);
    for (int i = 0; i < t.n; i++) {
        double y = chart_y(c, t.at[i]);
        tick_text(t.at[i], text, sizeof text);
        svg_line(out, "grid", LEFT, y, RIGHT, y);
        svg_text(out, LEFT - 8, y + 4, ANCHOR_END, "quiet", text);
    }
    svg_text_up(out, 20, (TOP + BOTTOM) / 2.0, c->y_by.text);
}

static void draw_x_tick(double x, const char *text, struct buf *out)
{
    svg_line(out, "frame", x, BOTTOM, x, BOTTOM + 5);
    svg_text(out, x, BOTTOM + 19, ANCHOR_MIDDLE, "quiet", text);
}

// Each measured value has its tick, as far as there is room for the labels.
static void draw_x_values(const struct chart *c, struct buf *out)
{
    double last = -INFINITY;
    char text[32];
    for (int x = 0; x < c->n_x; x++) {
        double at = chart_x(c, chart_x_value(c, 0, x));
        if (at < last + X_LABEL)
            continue;
        axis_value(c->x_axis, x, text, sizeof text);
        draw_x_tick(at, text, out);
        last = at;
    }
    axis_title(c->x_axis, text, sizeof text);
    svg_text(out, (LEFT + RIGHT) / 2.0, BOTTOM + 40, ANCHOR_MIDDLE, "quiet", text);
}

static void draw_x_measure(const struct chart *c, struct buf *out)
{
    struct ticks t;
    char text[128];
    ticks_round(&t, &c->x.r, 8);
    for (int i = 0; i < t.n; i++) {
        tick_text(t.at[i], text, sizeof text);
        draw_x_tick(chart_x(c, t.at[i]), text, out);
    }
    svg_text(out, (LEFT + RIGHT) / 2.0, BOTTOM + 40, ANCHOR_MIDDLE, "quiet", c->x_by.text);
}

static void draw_marks(const struct chart *c, struct buf *out)
{
    double last = -INFINITY;
    bool raised = false;
    for (int i = 0; i < c->p->n_marks && strcmp(c->x_axis->name, "working_set") == 0; i++) {
        double bytes = (double)c->p->marks[i].bytes, x = chart_x(c, bytes);
        if (bytes < c->x.r.lo || bytes > c->x.r.hi)
            continue;
        raised = x < last + MARK_APART && !raised;
        svg_line(out, "mark", x, raised ? TOP - 14 : TOP, x, BOTTOM);
        svg_text(out, x, raised ? TOP - 17 : TOP - 4, ANCHOR_MIDDLE, "small", c->p->marks[i].label);
        last = x;
    }
}

static void draw_frame(const struct chart *c, struct buf *out)
{
    draw_y_axis(c, out);
    if (c->p->bandwidth)
        draw_x_measure(c, out);
    else
        draw_x_values(c, out);
    svg_line(out, "frame", LEFT, BOTTOM, RIGHT, BOTTOM);
    draw_marks(c, out);
}

// --- Lines ---------------------------------------------------------------------------------------

static void draw_path(const struct chart *c, const struct line *l, struct buf *out)
{
    bool joined = false;
    buf_fmt(out, "<path class=\"line c%d d%d\" d=\"", l->colour, l->dash);
    for (int x = 0; x < c->n_x; x++) {
        const struct point *p = &l->points[x];
        if (point_known(p))
            svg_point(out, joined ? 'L' : 'M', chart_x(c, p->x), chart_y(c, p->y));
        joined = point_known(p);
    }
    buf_str(out, "\"/>\n");
}

static bool has_band(const struct chart *c, const struct line *l, int x)
{
    return x < c->n_x && isfinite(l->points[x].lo) && isfinite(l->points[x].hi);
}

// Points first…last: along the highest, back along the lowest.
static void draw_band_part(const struct chart *c, const struct line *l, int first, int last,
                           struct buf *out)
{
    const struct point *p = l->points;
    for (int x = first; x <= last; x++)
        svg_point(out, x == first ? 'M' : 'L', chart_x(c, p[x].x), chart_y(c, p[x].hi));
    for (int x = last; x >= first; x--)
        svg_point(out, 'L', chart_x(c, p[x].x), chart_y(c, p[x].lo));
    buf_char(out, 'z');
}

static void draw_band(const struct chart *c, const struct line *l, struct buf *out)
{
    buf_fmt(out, "<path class=\"band f%d\" d=\"", l->colour);
    for (int x = 0; x < c->n_x; x++) {
        int first = x;
        while (has_band(c, l, x))
            x++;
        if (x > first)
            draw_band_part(c, l, first, x - 1, out);
    }
    buf_str(out, "\"/>\n");
}

static bool whisker(const struct chart *c, const struct point *p)
{
    return isfinite(p->lo) && isfinite(p->hi) &&
           chart_y(c, p->lo) - chart_y(c, p->hi) >= LEAST_WHISKER;
}

// "rank 0, node 0, working set 1M: 10.03 ns (9.98 to 10.11)"
static void dot_text(const struct chart *c, const struct line *l, int x, char *out, size_t room)
{
    const struct point *p = &l->points[x];
    int digits = value_digits(p->y);
    char name[sizeof c->x_axis->name], at[32], interval[64] = "";
    axis_words(l->x_axis, name, sizeof name);
    axis_value(l->x_axis, x, at, sizeof at);
    if (isfinite(p->lo) && isfinite(p->hi))
        snprintf(interval, sizeof interval, " (%.*f to %.*f)", digits, p->lo, digits, p->hi);
    snprintf(out, room, "%s, %s %s: %.*f %s%s", l->label, name, at, digits, p->y, c->y_by.unit,
             interval);
}

static void draw_dot(const struct chart *c, const struct line *l, int x, struct buf *out)
{
    const struct point *p = &l->points[x];
    char text[240];
    dot_text(c, l, x, text, sizeof text);
    buf_fmt(out, "<circle class=\"f%d\" r=\"2.5\" cx=\"", l->colour);
    svg_number(out, chart_x(c, p->x));
    buf_str(out, "\" cy=\"");
    svg_number(out, chart_y(c, p->y));
    buf_str(out, "\"><title>");
    svg_escape(out, text);
    buf_str(out, "</title></circle>\n");
}

static void curve_draw_line(struct chart *c, const struct line *l, struct buf *out)
{
    char class[16];
    snprintf(class, sizeof class, "c%d", l->colour);
    draw_path(c, l, out);
    for (int x = 0; x < c->n_x && c->n_x <= PLOT_DOTS_MAX; x++) {
        const struct point *p = &l->points[x];
        // A band that is one value wide has no area.
        bool bar = point_known(p) && whisker(c, p) &&
                   (!c->grouped || !(has_band(c, l, x + 1) || (x && has_band(c, l, x - 1))));
        if (bar)
            svg_line(out, class, chart_x(c, p->x), chart_y(c, p->lo), chart_x(c, p->x),
                     chart_y(c, p->hi));
        if (point_known(p))
            draw_dot(c, l, x, out);
        c->whiskers |= bar && !c->grouped;
    }
}

static const struct point *last_point(const struct chart *c, const struct line *l)
{
    for (int x = c->n_x - 1; x >= 0; x--)
        if (point_known(&l->points[x]))
            return &l->points[x];
    return NULL;
}

struct label {
    const struct line *line;
    double x, y, at; // where the line ends, and where its label stands
};

static int by_height(const void *a, const void *b)
{
    const struct label *p = a, *q = b;
    return p->y != q->y ? (p->y > q->y) - (p->y < q->y) : (p->line > q->line) - (p->line < q->line);
}

// Downwards so that none covers another, then upwards from the bottom.
static void spread(struct label *list, int n)
{
    for (int i = 0; i < n; i++)
        list[i].at = fmax(list[i].y, i ? list[i - 1].at + LABEL_STEP : TOP);
    for (int i = n - 1; i >= 0; i--)
        list[i].at = fmin(list[i].at, i + 1 < n ? list[i + 1].at - LABEL_STEP : BOTTOM);
    // Half of the push goes back, so that a bundle has its labels around it.
    double push = 0;
    for (int i = 0; i < n; i++)
        push += (list[i].at - list[i].y) / n;
    double room = n ? list[0].at - TOP : 0;
    for (int i = 0; i < n; i++)
        list[i].at -= fmax(0, fmin(push, room));
}

static void draw_labels(const struct chart *c, struct buf *out)
{
    struct label list[PLOT_LINES_MAX];
    char class[16];
    int n = 0;
    for (int i = 0; i < c->n_lines; i++) {
        const struct point *p = last_point(c, &c->lines[i]);
        if (p)
            list[n++] = (struct label){&c->lines[i], chart_x(c, p->x), chart_y(c, p->y), 0};
    }
    qsort(list, (size_t)n, sizeof *list, by_height);
    spread(list, n);
    for (int i = 0; i < n; i++) {
        snprintf(class, sizeof class, "lead c%d", list[i].line->colour);
        svg_line(out, class, list[i].x + 4, list[i].y, RIGHT + 6, list[i].at);
        snprintf(class, sizeof class, "line c%d d%d", list[i].line->colour, list[i].line->dash);
        svg_line(out, class, RIGHT + 6, list[i].at, RIGHT + 28, list[i].at);
        svg_text(out, RIGHT + 33, list[i].at + 4, ANCHOR_START, "", list[i].line->label);
    }
}

// --- The knee of a loaded curve
// --------------------------------------------------------------------

static int knee_point(const struct chart *c, const struct line *l, double *xs, double *ys)
{
    int n = 0;
    for (int x = 0; x < c->n_x; x++) {
        if (!point_known(&l->points[x]))
            return -1; // a curve with holes has no knee that one can trust
        xs[n] = l->points[x].x;
        ys[n++] = l->points[x].y;
    }
    return knee_of(xs, ys, n);
}

// The ring, and what it says in a list above the curves, which begin low.
static void draw_knee(const struct chart *c, const struct line *l, int x, int nth, struct buf *out)
{
    const struct point *p = &l->points[x];
    char class[24], y[32], bandwidth[32], text[200];
    value_text(p->y, y, sizeof y);
    value_text(p->x, bandwidth, sizeof bandwidth);
    snprintf(text, sizeof text, "%s: knee at %s %s, %s %s, load %" PRId64 " %%", l->label,
             bandwidth, c->x_by.unit, y, c->y_by.unit, l->x_axis->values[x]);
    buf_fmt(out, "<circle class=\"knee c%d\" r=\"8\" cx=\"", l->colour);
    svg_number(out, chart_x(c, p->x));
    buf_str(out, "\" cy=\"");
    svg_number(out, chart_y(c, p->y));
    buf_str(out, "\"/>\n");
    snprintf(class, sizeof class, "f%d", l->colour);
    svg_text(out, LEFT + 12, TOP + 6 + nth * LABEL_STEP, ANCHOR_START, class, text);
}

static int draw_knees(const struct chart *c, struct buf *out, struct err *err)
{
    CLEANUP_MEM double *xs = calloc((size_t)c->n_x + 1, sizeof *xs);
    CLEANUP_MEM double *ys = calloc((size_t)c->n_x + 1, sizeof *ys);
    if (!xs || !ys)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the knees");
    for (int i = 0, nth = 0; i < c->n_lines && c->p->bandwidth; i++) {
        int at = knee_point(c, &c->lines[i], xs, ys);
        if (at >= 0)
            draw_knee(c, &c->lines[i], at, nth++, out);
    }
    return 0;
}

// --- The whole
// -------------------------------------------------------------------------------------

static void curve_draw_notes(const struct chart *c, struct buf *out)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    const char *name = c->series->name;
    if (c->grouped && !c->p->bandwidth)
        buf_fmt(&text, "band: lowest to highest %s%s, line: their median. ", name,
                c->by_node ? " of a node" : "");
    else if (c->grouped)
        buf_fmt(&text, "line: median of the %ss%s. ", name, c->by_node ? " of a node" : "");
    if (c->whiskers)
        buf_str(&text, "bars: 95 % interval of the median. ");
    if (c->by_node)
        buf_str(&text, "node: where the memory is. ");
    if (c->y.r.log)
        buf_str(&text, "y is logarithmic. ");
    if (c->missing)
        buf_fmt(&text, "%d of %d cells have no value. ", c->missing,
                c->p->matrix->row.n * c->p->matrix->col.n *
                    (c->p->n_family > 1 ? c->p->n_family : 1));
    buf_needs(out, &text);
    svg_text(out, LEFT, HEIGHT - 10, ANCHOR_START, "small", buf_text(&text));
}

int curve_write_svg(const struct plot *p, struct buf *out, struct err *err)
{
    struct chart c CLEANUP(chart_fini) = {0};
    char title[96];
    if (chart_init(&c, p, err) < 0)
        return -1;
    chart_place(&c, (struct box){LEFT + 10, RIGHT - 10, TOP, BOTTOM});
    chart_title(&c, title, sizeof title);
    svg_begin(out, WIDTH, HEIGHT, p, title);
    draw_frame(&c, out);
    for (int i = 0; i < c.n_lines && c.grouped; i++)
        draw_band(&c, &c.lines[i], out);
    for (int i = 0; i < c.n_lines; i++)
        curve_draw_line(&c, &c.lines[i], out);
    draw_labels(&c, out);
    if (draw_knees(&c, out, err) < 0)
        return -1;
    curve_draw_notes(&c, out);
    svg_end(out);
    return 0;
}

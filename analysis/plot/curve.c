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
    LEFT = 76,
    RIGHT = WIDTH - 158, // labels of the lines are 140 wide
    ABOVE = 34,          // for the names of the marks in two lines
    TALL = 346,          // of the axis
    BELOW = 46,          // for its labels

    LABEL_STEP = 15,
    LABEL_FROM = RIGHT + 33,
    MARK_APART = 52, // "L2 512K" in 11 px
    X_LABEL = 46,    // room of a tick's label
    ARROW = 3,       // of an interval that reaches beyond the axis, its half width
};
#define LEAST_WHISKER 2   // pixels; smaller ones vanish behind the dot
#define WHISKER_APART 1.6 // pixels, of the intervals of two lines at one place
#define CHARACTER 6.6     // width of one in 12 px, about
#define DOT 2.5
#define RING 3.1 // a hollow dot
#define KNEE 8

// --- Frame ---------------------------------------------------------------------------------------

static void draw_y_axis(const struct chart *c, struct buf *out)
{
    svg_grid(&c->y, 7, false, LEFT, RIGHT, out);
    svg_text_up(out, 20, (c->y.to + c->y.from) / 2, c->y_by.text);
}

static void draw_x_tick(const struct chart *c, double x, const char *text, struct buf *out)
{
    svg_line(out, "frame", x, c->y.from, x, c->y.from + 5);
    svg_text(out, x, c->y.from + 19, ANCHOR_MIDDLE, "quiet", text);
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
        draw_x_tick(c, at, text, out);
        last = at;
    }
    axis_title(c->x_axis, text, sizeof text);
    svg_text(out, (LEFT + RIGHT) / 2.0, c->y.from + 40, ANCHOR_MIDDLE, "quiet", text);
}

static void draw_x_measure(const struct chart *c, struct buf *out)
{
    struct ticks t;
    char text[128];
    ticks_round(&t, &c->x.r, 8);
    for (int i = 0; i < t.n; i++) {
        tick_text(t.at[i], text, sizeof text);
        draw_x_tick(c, chart_x(c, t.at[i]), text, out);
    }
    svg_text(out, (LEFT + RIGHT) / 2.0, c->y.from + 40, ANCHOR_MIDDLE, "quiet", c->x_by.text);
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
        svg_line(out, "mark", x, raised ? c->y.to - 14 : c->y.to, x, c->y.from);
        svg_text(out, x, raised ? c->y.to - 17 : c->y.to - 4, ANCHOR_MIDDLE, "small",
                 c->p->marks[i].label);
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
    svg_line(out, "frame", LEFT, c->y.from, RIGHT, c->y.from);
    draw_marks(c, out);
}

// --- Lines ---------------------------------------------------------------------------------------

static void draw_path(const struct chart *c, const struct line *l, struct buf *out)
{
    bool joined = false;
    buf_fmt(out, "<path class=\"line%s c%d d%d\" d=\"", l->odd ? " odd" : "", l->colour, l->dash);
    for (int x = 0; x < c->n_x; x++) {
        const struct point *p = &l->points[x];
        if (point_known(p))
            svg_point(out, joined ? 'L' : 'M', chart_x(c, p->x), chart_y(c, p->y));
        joined = point_known(p);
    }
    buf_char(out, '"');
    svg_titled(out, "path", l->label);
}

static bool has_band(const struct chart *c, const struct line *l, int x)
{
    return l->band && x >= 0 && x < c->n_x && isfinite(l->points[x].lo) &&
           isfinite(l->points[x].hi);
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

// A band that is one value wide has no area: it has a bar.
static bool whisker(const struct chart *c, const struct line *l, int x)
{
    const struct point *p = &l->points[x];
    return point_known(p) && isfinite(p->lo) && isfinite(p->hi) &&
           chart_y(c, p->lo) - chart_y(c, p->hi) >= LEAST_WHISKER &&
           !(has_band(c, l, x) && (has_band(c, l, x + 1) || has_band(c, l, x - 1)));
}

// Where an interval leaves the frame: `step` points back into it.
static void draw_arrow(double x, double y, double step, struct buf *out)
{
    svg_point(out, 'M', x - ARROW, y + step);
    svg_point(out, 'L', x, y);
    svg_point(out, 'L', x + ARROW, y + step);
}

// As far as the axis reaches, beside those of the other lines.
static void draw_whisker(struct chart *c, const struct line *l, int x, struct buf *out)
{
    const struct point *p = &l->points[x];
    double off = ((double)(l - c->lines) - (c->n_lines - 1) / 2.0) * WHISKER_APART;
    double at = chart_x(c, p->x) + off, low = chart_y(c, p->lo), high = chart_y(c, p->hi);
    bool above = p->hi > c->y.r.hi, below = p->lo < c->y.r.lo;
    svg_point(out, 'M', at, low);
    svg_point(out, 'L', at, high);
    if (above)
        draw_arrow(at, high, ARROW, out);
    if (below)
        draw_arrow(at, low, -ARROW, out);
    c->whiskers += !l->band;
    c->clipped += above || below;
}

// All intervals of a line, below all lines.
static void draw_whiskers(struct chart *c, const struct line *l, struct buf *out)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    for (int x = 0; x < c->n_x && c->n_x <= PLOT_DOTS_MAX; x++)
        if (whisker(c, l, x))
            draw_whisker(c, l, x, &path);
    buf_needs(out, &path);
    if (path.len)
        buf_fmt(out, "<path class=\"bar c%d\" d=\"%s\"/>\n", l->colour, buf_text(&path));
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
    snprintf(out, room, "%s, %s %s: %.*f %s%s%s", l->label, name, at, digits, p->y, c->y_by.unit,
             interval, p->hollow ? ", disturbed" : "");
}

static void draw_dot(const struct chart *c, const struct line *l, int x, struct buf *out)
{
    const struct point *p = &l->points[x];
    char text[260], class[16];
    dot_text(c, l, x, text, sizeof text);
    snprintf(class, sizeof class, p->hollow ? "ring c%d" : "dot f%d", l->colour);
    svg_circle(out, class, chart_x(c, p->x), chart_y(c, p->y), p->hollow ? RING : DOT, text);
}

static void curve_draw_line(const struct chart *c, const struct line *l, struct buf *out)
{
    draw_path(c, l, out);
    for (int x = 0; x < c->n_x && c->n_x <= PLOT_DOTS_MAX; x++)
        if (point_known(&l->points[x]))
            draw_dot(c, l, x, out);
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
static void spread(const struct chart *c, struct label *list, int n)
{
    for (int i = 0; i < n; i++)
        list[i].at = fmax(list[i].y, i ? list[i - 1].at + LABEL_STEP : c->y.to);
    for (int i = n - 1; i >= 0; i--)
        list[i].at = fmin(list[i].at, i + 1 < n ? list[i + 1].at - LABEL_STEP : c->y.from);
    // Half of the push goes back, so that a bundle has its labels around it.
    double push = 0;
    for (int i = 0; i < n; i++)
        push += (list[i].at - list[i].y) / n;
    double room = n ? list[0].at - c->y.to : 0;
    for (int i = 0; i < n; i++)
        list[i].at -= fmax(0, fmin(push, room));
}

static void draw_labels(const struct chart *c, struct buf *out)
{
    struct label list[PLOT_LINES_MAX];
    char class[24];
    int n = 0;
    for (int i = 0; i < c->n_lines; i++) {
        const struct point *p = last_point(c, &c->lines[i]);
        if (p)
            list[n++] = (struct label){&c->lines[i], chart_x(c, p->x), chart_y(c, p->y), 0};
    }
    qsort(list, (size_t)n, sizeof *list, by_height);
    spread(c, list, n);
    for (int i = 0; i < n; i++) {
        snprintf(class, sizeof class, "lead c%d", list[i].line->colour);
        svg_line(out, class, list[i].x + 4, list[i].y, RIGHT + 6, list[i].at);
        snprintf(class, sizeof class, "line%s c%d d%d", list[i].line->odd ? " odd" : "",
                 list[i].line->colour, list[i].line->dash);
        svg_line(out, class, RIGHT + 6, list[i].at, RIGHT + 28, list[i].at);
        svg_text(out, LABEL_FROM, list[i].at + 4, ANCHOR_START, "", list[i].line->label);
    }
}

// --- The marks of a loaded curve -----------------------------------------------------------------

// Idle latency, the knee and the highest bandwidth: indices of points; -1: not known.
struct load_marks {
    int idle, knee, peak;
};

static struct load_marks load_marks_of(const struct chart *c, const struct line *l, double *xs,
                                       double *ys)
{
    struct load_marks m = {-1, -1, -1};
    int n = 0;
    for (int x = 0; x < c->n_x; x++) {
        if (!point_known(&l->points[x]))
            continue;
        if (l->x_axis->values[x] == 0)
            m.idle = x;
        if (m.peak < 0 || l->points[x].x > l->points[m.peak].x)
            m.peak = x;
        xs[n] = l->points[x].x;
        ys[n++] = l->points[x].y;
    }
    if (n == c->n_x) // a curve with holes has no knee that one can trust
        m.knee = knee_of(xs, ys, n);
    return m;
}

// "knee 93.9 GB/s at 117.8 ns, load 50 %"; of the idle point only the latency, of the peak both.
static void mark_text(const struct chart *c, const struct line *l, const char *name, int x,
                      char *out, size_t room)
{
    const struct point *p = &l->points[x];
    char y[32], bandwidth[32];
    value_text(p->y, y, sizeof y);
    value_text(p->x, bandwidth, sizeof bandwidth);
    if (l->x_axis->values[x] == 0)
        snprintf(out, room, "%s %s %s", name, y, c->y_by.unit);
    else
        snprintf(out, room, "%s %s %s at %s %s, load %" PRId64 " %%", name, bandwidth, c->x_by.unit,
                 y, c->y_by.unit, l->x_axis->values[x]);
}

static void draw_guides(const struct chart *c, const struct line *l, const struct load_marks *m,
                        struct buf *out)
{
    char class[24], text[120];
    snprintf(class, sizeof class, "guide c%d", l->colour);
    if (m->idle >= 0) {
        double y = chart_y(c, l->points[m->idle].y);
        svg_line(out, class, LEFT, y, RIGHT, y);
    }
    if (m->peak > 0) {
        double x = chart_x(c, l->points[m->peak].x);
        svg_line(out, class, x, c->y.to, x, c->y.from);
    }
    if (m->knee >= 0) {
        mark_text(c, l, "knee", m->knee, text, sizeof text);
        snprintf(class, sizeof class, "knee c%d", l->colour);
        svg_circle(out, class, chart_x(c, l->points[m->knee].x), chart_y(c, l->points[m->knee].y),
                   KNEE, text);
    }
}

// A line below the picture for each curve: there is no place that no curve may cross.
static void write_marks(const struct chart *c, const struct line *l, const struct load_marks *m,
                        double y, struct buf *out)
{
    const struct {
        const char *name;
        int x;
    } list[] = {{"idle", m->idle}, {"knee", m->knee}, {"peak", m->peak}};
    char text[400], one[120], class[24];
    size_t n = (size_t)snprintf(text, sizeof text, "%s: ", l->label);
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        if (list[i].x < 0)
            snprintf(one, sizeof one, "no %s", list[i].name);
        else
            mark_text(c, l, list[i].name, list[i].x, one, sizeof one);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? "; " : "", one);
    }
    snprintf(class, sizeof class, "line c%d d%d", l->colour, l->dash);
    svg_line(out, class, LEFT, y - 4, LEFT + 22, y - 4);
    svg_text(out, LEFT + 28, y, ANCHOR_START, "", text);
}

// How much higher the picture is for them.
static double marks_height(const struct chart *c)
{
    return c->p->bandwidth ? c->n_lines * LABEL_STEP + LABEL_STEP / 2.0 : 0;
}

static int draw_load_marks(const struct chart *c, struct buf *out, struct err *err)
{
    CLEANUP_MEM double *xs = calloc((size_t)c->n_x + 1, sizeof *xs);
    CLEANUP_MEM double *ys = calloc((size_t)c->n_x + 1, sizeof *ys);
    if (!xs || !ys)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the knees");
    for (int i = 0; i < c->n_lines && c->p->bandwidth; i++) {
        const struct line *l = &c->lines[i];
        struct load_marks m = load_marks_of(c, l, xs, ys);
        if (m.peak < 0)
            continue;
        draw_guides(c, l, &m, out);
        write_marks(c, l, &m, c->y.from + BELOW + LABEL_STEP * (i + 1), out);
    }
    return 0;
}

// --- The whole -----------------------------------------------------------------------------------

static void note_groups(const struct chart *c, struct buf *text)
{
    const char *name = c->series->name;
    if (c->split)
        chart_split_text(c, text);
    if (c->grouped && !c->p->bandwidth)
        buf_fmt(text, "band: lowest to highest %s%s, line: their median. ", name,
                c->by_node ? " of a node" : "");
    else if (c->grouped)
        buf_fmt(text, "line: median of the %ss%s. ", name, c->by_node ? " of a node" : "");
    if (c->n_odd)
        buf_fmt(text, "thick: %ss that lie apart from %s%s", name,
                c->by_node ? "their node" : "the others", c->odd_left ? "" : ". ");
    if (c->odd_left)
        buf_fmt(text, "; %d more do. ", c->odd_left);
}

void curve_notes(const struct chart *c, struct buf *text)
{
    int cells =
        c->p->matrix->row.n * c->p->matrix->col.n * (c->p->n_family > 1 ? c->p->n_family : 1);
    if (c->whiskers)
        buf_fmt(text, "bars: 95 %% interval of the median%s. ",
                c->clipped ? ", an arrow where it reaches beyond the axis" : "");
    if (c->by_node)
        buf_str(text, "node: where the memory is. ");
    if (c->y.r.log)
        buf_str(text, "y is logarithmic. ");
    if (c->missing)
        buf_fmt(text, "%d of %d cells have no value. ", c->missing, cells);
    if (c->disturbed)
        buf_fmt(text, "hollow: disturbed (%d of %d cells). ", c->disturbed, cells);
}

static double curve_width(const struct chart *c)
{
    double width = WIDTH;
    for (int i = 0; i < c->n_lines; i++)
        width = fmax(width, LABEL_FROM + CHARACTER * (double)strlen(c->lines[i].label) + 12);
    return width;
}

int curve_draw(struct chart *c, double *height, double *width, struct buf *out, struct err *err)
{
    double top = *height + ABOVE;
    chart_place(c, (struct box){LEFT + 10, RIGHT - 10, top, top + TALL});
    *height = top + TALL + BELOW + marks_height(c);
    *width = curve_width(c);
    draw_frame(c, out);
    for (int i = 0; i < c->n_lines; i++)
        if (c->lines[i].band)
            draw_band(c, &c->lines[i], out);
    for (int i = 0; i < c->n_lines; i++)
        draw_whiskers(c, &c->lines[i], out);
    for (int i = 0; i < c->n_lines; i++)
        curve_draw_line(c, &c->lines[i], out);
    draw_labels(c, out);
    return draw_load_marks(c, out, err);
}

int curve_write_svg(const struct plot *p, struct buf *out, struct err *err)
{
    struct chart c CLEANUP(chart_fini) = {0};
    CLEANUP_BUF struct buf heading = BUF_INIT;
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_BUF struct buf notes = BUF_INIT;
    struct svg_picture picture = {
        .height = SVG_TOP, .heading = &heading, .body = &body, .notes = &notes};
    char title[96];
    if (chart_init(&c, p, err) < 0)
        return -1;
    chart_title(&c, title, sizeof title);
    picture.title = title;
    svg_heading(&heading, p->run);
    if (curve_draw(&c, &picture.height, &picture.width, &body, err) < 0)
        return -1;
    note_groups(&c, &notes);
    curve_notes(&c, &notes);
    svg_write(out, &picture);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Lines over an axis of numbers. Few rows have a line each, with the interval of each value; many
// are a band a memory node, because two hundred lines show nothing. In a loaded run both axes are
// measured: latency over the bandwidth that there was.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/knee.h"
#include "analysis/middle.h"
#include "analysis/plot_parts.h"
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
#define LOG_FROM 30.0   // y is logarithmic when the largest value is so many times the smallest
#define LEAST_WHISKER 2 // pixels; smaller ones vanish behind the dot
#define SMALLEST_X 0.5  // 0 on a logarithmic axis: an empty message

struct point {
    double x, y, lo, hi; // of the measure; lo, hi NaN: no interval or band
};

struct line {
    char label[64];
    int colour, dash;
    struct point *points; // n_x of the chart
};

struct chart {
    const struct plot *p;
    const struct axis *x_axis, *series;
    bool series_in_cols;
    bool grouped, by_node;
    struct measure y_by, x_by;
    int n_x, n_lines;
    struct line lines[PLOT_LINES_MAX];
    struct point *points; // of all lines; owned
    int *group;           // of each row, when they are grouped; owned
    struct scale x, y;
    int missing;
    bool whiskers;
};

static void chart_fini(struct chart *c)
{
    free(c->points);
    free(c->group);
}

static const struct {
    const char *row, *col;
    bool x_in_rows;
} forms[] = {
    {"rank", "working_set", false},
    {"pair", "message", false},
    {"threads", "target", true},
    {"rank", "load", false},
};

static int form_of(const struct matrix *m)
{
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        if (strcmp(m->row.name, forms[i].row) == 0 && strcmp(m->col.name, forms[i].col) == 0)
            return (int)i;
    return -1;
}

bool curve_fits(const struct plot *p)
{
    return form_of(p->matrix) >= 0;
}

static double cell(const struct chart *c, const struct matrix *m, const struct measure *by, int s,
                   int x, enum cell_field field)
{
    return c->series_in_cols ? measured(m, by, x, s, field) : measured(m, by, s, x, field);
}

static double x_of(const struct chart *c, int s, int x)
{
    if (c->p->bandwidth)
        return cell(c, c->p->bandwidth, &c->x_by, s, x, CELL_MEDIAN);
    double v = (double)c->x_axis->values[x];
    return c->x.r.log ? fmax(v, SMALLEST_X) : v;
}

// --- Which lines there are ---------------------------------------------------------------------

static int64_t node_of(const struct chart *c, int s)
{
    bool ranks = strcmp(c->series->name, "rank") == 0;
    return ranks ? node_of_rank(c->p->ranks, c->p->n_ranks, c->series->values[s]) : -1;
}

// The nodes of all rows, ascending; -1 if one is not known or there are too many to tell apart.
static int find_nodes(const struct chart *c, int64_t nodes[PLOT_GROUPS_MAX])
{
    int n = 0;
    for (int s = 0; s < c->series->n; s++) {
        int64_t node = node_of(c, s);
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

static int index_of(const int64_t *nodes, int n, int64_t node)
{
    int at = 0;
    while (at < n && nodes[at] != node)
        at++;
    return at;
}

static void name_line(const struct chart *c, int s, char *out, size_t room)
{
    char value[32];
    axis_label(c->series, s, value, sizeof value);
    bool target = strcmp(c->series->name, "target") == 0;
    if (target && c->series->values[s] < 0)
        snprintf(out, room, "own memory");
    else if (node_of(c, s) >= 0)
        snprintf(out, room, "rank %s, node %" PRId64, value, node_of(c, s));
    else
        snprintf(out, room, "%s %s", target ? "node" : c->series->name, value);
}

static void fill_line(struct chart *c, int s, struct line *l)
{
    name_line(c, s, l->label, sizeof l->label);
    for (int x = 0; x < c->n_x; x++)
        l->points[x] =
            (struct point){x_of(c, s, x), cell(c, c->p->matrix, &c->y_by, s, x, CELL_MEDIAN),
                           cell(c, c->p->matrix, &c->y_by, s, x, CELL_LO),
                           cell(c, c->p->matrix, &c->y_by, s, x, CELL_HI)};
}

// One line a row: coloured by node, if that says something, else each its own.
static void single_lines(struct chart *c)
{
    int64_t nodes[PLOT_GROUPS_MAX];
    int n = find_nodes(c, nodes), seen[PLOT_GROUPS_MAX] = {0};
    c->by_node = n > 1;
    c->n_lines = c->series->n;
    for (int s = 0; s < c->n_lines; s++) {
        struct line *l = &c->lines[s];
        l->points = c->points + (size_t)s * (size_t)c->n_x;
        l->colour = c->by_node ? index_of(nodes, n, node_of(c, s)) : s % PLOT_GROUPS_MAX;
        l->dash = c->by_node ? seen[l->colour]++ % 4 : s / PLOT_GROUPS_MAX;
        fill_line(c, s, l);
    }
}

// What the rows of a group have at one x: their median, and from the lowest to the highest.
static struct point group_point(const struct chart *c, int group, int x, double *ys, double *xs)
{
    struct range r = RANGE_EMPTY;
    int n = 0;
    for (int s = 0; s < c->series->n; s++) {
        double y = cell(c, c->p->matrix, &c->y_by, s, x, CELL_MEDIAN);
        if (c->group[s] != group || !isfinite(y))
            continue;
        range_add(&r, y);
        ys[n] = y;
        xs[n++] = x_of(c, s, x);
    }
    // Over measured x a band would join what was never together.
    bool band = n && !c->p->bandwidth;
    return (struct point){middle_of(xs, n), middle_of(ys, n), band ? r.lo : NAN, band ? r.hi : NAN};
}

static int group_rows(struct chart *c, int64_t nodes[PLOT_GROUPS_MAX], struct err *err)
{
    int n = find_nodes(c, nodes);
    c->by_node = n > 1;
    c->group = calloc((size_t)c->series->n, sizeof *c->group);
    if (!c->group)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d rows", c->series->n);
    for (int s = 0; s < c->series->n; s++)
        c->group[s] = c->by_node ? index_of(nodes, n, node_of(c, s)) : 0;
    c->n_lines = c->by_node ? n : 1;
    c->grouped = true;
    return 0;
}

static int group_size(const struct chart *c, int group)
{
    int n = 0;
    for (int s = 0; s < c->series->n; s++)
        n += c->group[s] == group;
    return n;
}

static int grouped_lines(struct chart *c, struct err *err)
{
    int64_t nodes[PLOT_GROUPS_MAX];
    CLEANUP_MEM double *ys = calloc((size_t)c->series->n, sizeof *ys);
    CLEANUP_MEM double *xs = calloc((size_t)c->series->n, sizeof *xs);
    if (!xs || !ys)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d rows", c->series->n);
    if (group_rows(c, nodes, err) < 0)
        return -1;
    for (int g = 0; g < c->n_lines; g++) {
        struct line *l = &c->lines[g];
        l->points = c->points + (size_t)g * (size_t)c->n_x;
        l->colour = g;
        if (c->by_node)
            snprintf(l->label, sizeof l->label, "node %" PRId64 ": %d ranks", nodes[g],
                     group_size(c, g));
        else
            snprintf(l->label, sizeof l->label, "all %d %ss", c->series->n, c->series->name);
        for (int x = 0; x < c->n_x; x++) {
            l->points[x] = group_point(c, g, x, ys, xs);
            if (!c->p->bandwidth && isnan(l->points[x].x))
                l->points[x].x = x_of(c, 0, x);
        }
    }
    return 0;
}

static int chart_init(struct chart *c, const struct plot *p, struct err *err)
{
    const struct matrix *m = p->matrix;
    bool x_in_rows = forms[form_of(m)].x_in_rows;
    *c = (struct chart){.p = p, .series_in_cols = x_in_rows, .y_by = measure_of(m)};
    c->x_axis = x_in_rows ? &m->row : &m->col;
    c->series = x_in_rows ? &m->col : &m->row;
    c->n_x = c->x_axis->n;
    c->x.r = RANGE_EMPTY;
    c->x.r.log = !p->bandwidth && strcmp(c->x_axis->name, "load") != 0;
    if (p->bandwidth)
        c->x_by = measure_of(p->bandwidth);
    c->points = calloc((size_t)PLOT_LINES_MAX * (size_t)c->n_x + 1, sizeof *c->points);
    if (!c->points)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the lines");
    for (int i = 0; i < m->row.n * m->col.n; i++)
        c->missing += !isfinite(m->cells[i].v[CELL_MEDIAN]);
    if (c->series->n > PLOT_LINES_MAX)
        return grouped_lines(c, err);
    single_lines(c);
    return 0;
}

// --- Scales --------------------------------------------------------------------------------------

static void scale_x(struct chart *c)
{
    struct range *r = &c->x.r;
    for (int i = 0; i < c->n_lines; i++)
        for (int x = 0; x < c->n_x; x++)
            range_add(r, c->lines[i].points[x].x);
    if (!range_known(r))
        r->lo = r->hi = 1;
    if (c->p->bandwidth)
        *r = (struct range){0, r->hi * 1.04, false};
    else if (r->lo == r->hi && r->log)
        *r = (struct range){r->lo / 2, r->hi * 2, true};
    else if (r->lo == r->hi)
        *r = (struct range){r->lo - 1, r->hi + 1, false};
    c->x.from = LEFT + 10;
    c->x.to = RIGHT - 10;
}

static void scale_y(struct chart *c)
{
    struct range medians = RANGE_EMPTY, all = RANGE_EMPTY;
    for (int i = 0; i < c->n_lines; i++)
        for (int x = 0; x < c->n_x; x++) {
            const struct point *at = &c->lines[i].points[x];
            range_add(&medians, at->y);
            range_add(&all, at->y);
            range_add(&all, at->lo);
            range_add(&all, at->hi);
        }
    struct range *r = &c->y.r;
    if (!range_known(&all))
        *r = (struct range){0, 1, false};
    else if (medians.lo > 0 && medians.hi >= LOG_FROM * medians.lo)
        *r = (struct range){(all.lo > 0 ? all.lo : medians.lo) / 1.2, all.hi * 1.2, true};
    else
        *r = (struct range){fmin(0, all.lo), all.hi > 0 ? all.hi * 1.06 : 1, false};
    c->y.from = BOTTOM;
    c->y.to = TOP;
}

static double at_x(const struct chart *c, double v)
{
    return scale_at(&c->x, v);
}

static double at_y(const struct chart *c, double v)
{
    return scale_at(&c->y, fmax(v, c->y.r.lo));
}

// --- Frame ---------------------------------------------------------------------------------------

static void draw_y_axis(const struct chart *c, struct buf *out)
{
    struct ticks t;
    char text[32];
    ticks_round(&t, &c->y.r, 7);
    for (int i = 0; i < t.n; i++) {
        double y = at_y(c, t.at[i]);
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
        double at = at_x(c, x_of(c, 0, x));
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
        draw_x_tick(at_x(c, t.at[i]), text, out);
    }
    svg_text(out, (LEFT + RIGHT) / 2.0, BOTTOM + 40, ANCHOR_MIDDLE, "quiet", c->x_by.text);
}

static void draw_marks(const struct chart *c, struct buf *out)
{
    double last = -INFINITY;
    bool raised = false;
    for (int i = 0; i < c->p->n_marks && strcmp(c->x_axis->name, "working_set") == 0; i++) {
        double bytes = (double)c->p->marks[i].bytes, x = at_x(c, bytes);
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

static bool known(const struct point *p)
{
    return isfinite(p->x) && isfinite(p->y);
}

static void draw_path(const struct chart *c, const struct line *l, struct buf *out)
{
    bool joined = false;
    buf_fmt(out, "<path class=\"line c%d d%d\" d=\"", l->colour, l->dash);
    for (int x = 0; x < c->n_x; x++) {
        const struct point *p = &l->points[x];
        if (known(p))
            svg_point(out, joined ? 'L' : 'M', at_x(c, p->x), at_y(c, p->y));
        joined = known(p);
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
        svg_point(out, x == first ? 'M' : 'L', at_x(c, p[x].x), at_y(c, p[x].hi));
    for (int x = last; x >= first; x--)
        svg_point(out, 'L', at_x(c, p[x].x), at_y(c, p[x].lo));
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
    return isfinite(p->lo) && isfinite(p->hi) && at_y(c, p->lo) - at_y(c, p->hi) >= LEAST_WHISKER;
}

// "rank 0, node 0, working set 1M: 10.03 ns (9.98 to 10.11)"
static void dot_text(const struct chart *c, const struct line *l, int x, char *out, size_t room)
{
    const struct point *p = &l->points[x];
    int digits = value_digits(p->y);
    char name[sizeof c->x_axis->name], at[32], interval[64] = "";
    axis_words(c->x_axis, name, sizeof name);
    axis_value(c->x_axis, x, at, sizeof at);
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
    svg_number(out, at_x(c, p->x));
    buf_str(out, "\" cy=\"");
    svg_number(out, at_y(c, p->y));
    buf_str(out, "\"><title>");
    svg_escape(out, text);
    buf_str(out, "</title></circle>\n");
}

static void draw_line(struct chart *c, const struct line *l, struct buf *out)
{
    char class[16];
    snprintf(class, sizeof class, "c%d", l->colour);
    draw_path(c, l, out);
    for (int x = 0; x < c->n_x && c->n_x <= PLOT_DOTS_MAX; x++) {
        const struct point *p = &l->points[x];
        // A band that is one value wide has no area.
        bool bar = known(p) && whisker(c, p) &&
                   (!c->grouped || !(has_band(c, l, x + 1) || (x && has_band(c, l, x - 1))));
        if (bar)
            svg_line(out, class, at_x(c, p->x), at_y(c, p->lo), at_x(c, p->x), at_y(c, p->hi));
        if (known(p))
            draw_dot(c, l, x, out);
        c->whiskers |= bar && !c->grouped;
    }
}

static const struct point *last_point(const struct chart *c, const struct line *l)
{
    for (int x = c->n_x - 1; x >= 0; x--)
        if (known(&l->points[x]))
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
            list[n++] = (struct label){&c->lines[i], at_x(c, p->x), at_y(c, p->y), 0};
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
        if (!known(&l->points[x]))
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
             bandwidth, c->x_by.unit, y, c->y_by.unit, c->x_axis->values[x]);
    buf_fmt(out, "<circle class=\"knee c%d\" r=\"8\" cx=\"", l->colour);
    svg_number(out, at_x(c, p->x));
    buf_str(out, "\" cy=\"");
    svg_number(out, at_y(c, p->y));
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

static void draw_notes(const struct chart *c, struct buf *out)
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
                c->p->matrix->row.n * c->p->matrix->col.n);
    svg_text(out, LEFT, HEIGHT - 10, ANCHOR_START, "small", buf_text(&text));
}

static void title_of(const struct chart *c, char *out, size_t room)
{
    const struct matrix *m = c->p->matrix;
    if (c->p->bandwidth)
        snprintf(out, room, "Latency under load");
    else
        snprintf(out, room, "%s by %s: %s", m->quantity, c->x_axis->name, m->name);
    svg_title_case(out);
}

int curve_write_svg(const struct plot *p, struct buf *out, struct err *err)
{
    struct chart c CLEANUP(chart_fini) = {0};
    char title[96];
    if (chart_init(&c, p, err) < 0)
        return -1;
    scale_x(&c);
    scale_y(&c);
    title_of(&c, title, sizeof title);
    svg_begin(out, WIDTH, HEIGHT, p, title);
    draw_frame(&c, out);
    for (int i = 0; i < c.n_lines && c.grouped; i++)
        draw_band(&c, &c.lines[i], out);
    for (int i = 0; i < c.n_lines; i++)
        draw_line(&c, &c.lines[i], out);
    draw_labels(&c, out);
    if (draw_knees(&c, out, err) < 0)
        return -1;
    draw_notes(&c, out);
    svg_end(out);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A history as SVG. Changes are numbered in the picture and described below it, where no text can
// cover another.
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/history.h"
#include "analysis/plot/parts.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/str.h"

enum {
    WIDTH = 900,
    LEFT = 84, // beside numbers of seven figures
    RIGHT = WIDTH - 24,
    TOP = SVG_TOP + 30, // numbers of the changes in two lines
    BOTTOM = TOP + 300,
    AXIS = BOTTOM + 26, // the ticks' labels are above it
    NUMBER_APART = 20,  // of changes
    CHANGE_STEP = 36,   // two lines of text
    CAUSE_CHARACTERS = 132,
    HALF_DAY_MS = 43200000,
    HASH_SHOWN = 12, // characters of a class
};
#define INTERVAL_ROOM 0.5 // of the span of values and bands: so far the axis follows intervals

struct view {
    const struct history_picture *p;
    struct scale x, y;
    int clipped, columns; // columns: 0, or how many dots there are instead of one a run
};

// --- Scales --------------------------------------------------------------------------------------

static void fit_x(struct view *v)
{
    const struct history_picture *p = v->p;
    double lo = p->n ? (double)p->moments[0].measured_ms : 0;
    double hi = p->n ? (double)p->moments[p->n - 1].measured_ms : 0;
    if (lo >= hi) {
        lo -= HALF_DAY_MS;
        hi += HALF_DAY_MS;
    }
    v->x = (struct scale){{lo, hi, false}, LEFT + 12, RIGHT - 12};
}

static void fit_y(struct view *v)
{
    const struct history_picture *p = v->p;
    struct range r = RANGE_EMPTY, all = RANGE_EMPTY;
    for (int i = 0; i < p->n; i++) {
        range_add(&r, p->moments[i].value);
        range_add(&all, p->moments[i].lo);
        range_add(&all, p->moments[i].hi);
    }
    for (int i = 0; i < p->n_stretches; i++) {
        range_add(&r, p->stretches[i].lo);
        range_add(&r, p->stretches[i].hi);
    }
    for (int i = 0; i < p->n_days; i++) {
        range_add(&r, p->days[i].low);
        range_add(&r, p->days[i].high);
    }
    if (!range_known(&r))
        r = (struct range){0, 1, false};
    if (history_is_wide(p)) {
        v->y = (struct scale){{r.lo, r.hi, true}, BOTTOM, TOP};
        history_fit_wide(p, &v->y.r);
        return;
    }
    double room = INTERVAL_ROOM * (r.hi - r.lo), least = HISTORY_LEAST_SPAN * fabs(r.hi);
    if (range_known(&all)) {
        r.lo = fmin(r.lo, fmax(all.lo, r.lo - room));
        r.hi = fmax(r.hi, fmin(all.hi, r.hi + room));
    }
    double more = fmax((least - (r.hi - r.lo)) / 2, 0.04 * (r.hi - r.lo));
    bool positive = r.lo >= 0;
    r = (struct range){r.lo - more, r.hi + more, false};
    if (positive)
        r.lo = fmax(r.lo, 0);
    if (!(r.hi > r.lo))
        r.hi = r.lo + 1;
    v->y = (struct scale){r, BOTTOM, TOP};
}

static double at_x(const struct view *v, double ms)
{
    return scale_at(&v->x, ms);
}

static double at_y(const struct view *v, double value)
{
    return scale_at(&v->y, fmin(fmax(value, v->y.r.lo), v->y.r.hi));
}

// --- Frame ---------------------------------------------------------------------------------------

static void draw_axes(const struct view *v, struct buf *out)
{
    struct time_ticks times;
    char text[160];
    svg_grid(&v->y, 6, false, LEFT, RIGHT, out);
    svg_line(out, "frame", LEFT, BOTTOM, RIGHT, BOTTOM);
    ticks_time(&times, (int64_t)v->x.r.lo, (int64_t)v->x.r.hi, 7);
    for (int i = 0; i < times.n && v->p->n; i++) {
        double x = at_x(v, (double)times.at[i]);
        svg_line(out, "frame", x, BOTTOM, x, BOTTOM + 5);
        svg_text(out, x, BOTTOM + 19, ANCHOR_MIDDLE, "quiet", times.text[i]);
    }
    snprintf(text, sizeof text, "%s%s%s%s", *v->p->unit ? v->p->unit : "ratio", ", ",
             v->p->more_is_better ? "more" : "less", " is better");
    svg_text_up(out, 20, (TOP + BOTTOM) / 2.0, text);
}

// --- Runs ----------------------------------------------------------------------------------------

static void time_text(int64_t ms, char out[static 32])
{
    clock_rfc3339(ms, out);
    out[10] = ' ';
    out[16] = 0;
}

// "run 100, 2026-10-30 06:00 UTC: 91.1 ns (90.2 to 92.0)".
static void draw_moment(struct view *v, const struct moment *m, const char *who, struct buf *out)
{
    char time[32], interval[64] = "", text[240];
    int digits = value_digits(m->value);
    double x = at_x(v, (double)m->measured_ms);
    time_text(m->measured_ms, time);
    if (isfinite(m->lo) && isfinite(m->hi)) {
        snprintf(interval, sizeof interval, " (%.*f to %.*f)", digits, m->lo, digits, m->hi);
        svg_line(out, "bar c0", x, at_y(v, m->lo), x, at_y(v, m->hi));
        v->clipped += m->lo < v->y.r.lo || m->hi > v->y.r.hi;
    }
    snprintf(text, sizeof text, "%s, %s UTC: %.*f%s%s%s", who, time, digits, m->value,
             *v->p->unit ? " " : "", v->p->unit, interval);
    svg_circle(out, "dot f0", x, at_y(v, m->value), 2.5, text);
}

static void name_moment(const struct moment *m, char *out, size_t room)
{
    if (m->nodes)
        snprintf(out, room, "%d node%s", m->nodes, str_plural(m->nodes));
    else
        snprintf(out, room, "run %" PRId64, m->run);
}

static void draw_each(struct view *v, struct buf *out)
{
    char who[40];
    for (int i = 0; i < v->p->n; i++) {
        name_moment(&v->p->moments[i], who, sizeof who);
        draw_moment(v, &v->p->moments[i], who, out);
    }
}

// The runs from…end as one: their median, from the lowest to the highest.
static void draw_column(struct view *v, int from, int end, double *room, struct buf *out)
{
    const struct moment *m = v->p->moments;
    struct range r = RANGE_EMPTY;
    char who[100];
    for (int i = from; i < end; i++) {
        room[i - from] = m[i].value;
        range_add(&r, m[i].value);
    }
    struct moment one = m[from + (end - from) / 2];
    one.value = middle_of(room, end - from);
    one.lo = end - from > 1 ? r.lo : m[from].lo;
    one.hi = end - from > 1 ? r.hi : m[from].hi;
    if (end - from > 1 && m[from].nodes)
        snprintf(who, sizeof who, "%d days", end - from);
    else if (end - from > 1)
        snprintf(who, sizeof who, "%d runs, %" PRId64 " to %" PRId64, end - from, m[from].run,
                 m[end - 1].run);
    else
        name_moment(&m[from], who, sizeof who);
    draw_moment(v, &one, who, out);
    v->columns++;
}

// Columns of equal time, none of them across a change.
static int draw_columns(struct view *v, struct buf *out, struct err *err)
{
    const struct history_picture *p = v->p;
    CLEANUP_MEM double *room = calloc((size_t)p->n, sizeof *room);
    double wide = (v->x.to - v->x.from) / HISTORY_DOTS_MAX;
    if (!room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a picture");
    for (int s = 0; s < p->n_stretches; s++)
        for (int from = p->stretches[s].from, end; from < p->stretches[s].end; from = end) {
            double first = at_x(v, (double)p->moments[from].measured_ms);
            for (end = from + 1; end < p->stretches[s].end &&
                                 at_x(v, (double)p->moments[end].measured_ms) < first + wide;
                 end++)
                ;
            draw_column(v, from, end, room, out);
        }
    return 0;
}

// --- Stretches and changes -----------------------------------------------------------------------

static void draw_stretch(const struct view *v, const struct stretch *s, struct buf *out)
{
    char text[160], middle[32];
    double x1 = at_x(v, (double)v->p->moments[s->from].measured_ms);
    double x2 = at_x(v, (double)v->p->moments[s->end - 1].measured_ms);
    value_text(s->middle, middle, sizeof middle);
    snprintf(text, sizeof text, "median of %d %ss: %s %s", s->end - s->from, v->p->what, middle,
             v->p->unit);
    if (isfinite(s->lo) && isfinite(s->hi)) {
        double top = at_y(v, s->hi), bottom = at_y(v, s->lo);
        buf_str(out, "<path class=\"band f0\" d=\"");
        svg_point(out, 'M', x1, top);
        svg_point(out, 'L', x2, top);
        svg_point(out, 'L', x2, bottom);
        svg_point(out, 'L', x1, bottom);
        buf_str(out, "z\"/>\n");
    }
    buf_str(out, "<path class=\"line c0 d2\" d=\"");
    svg_point(out, 'M', x1, at_y(v, s->middle));
    svg_point(out, 'L', x2, at_y(v, s->middle));
    buf_char(out, '"');
    svg_titled(out, "path", text);
}

// Of the class of the node: where 95 % of its nodes are, and their median.
static void draw_class_band(const struct view *v, struct buf *out)
{
    const struct history_picture *p = v->p;
    if (p->n_days < 2)
        return;
    buf_str(out, "<path class=\"band f1\" d=\"");
    for (int i = 0; i < 2 * p->n_days; i++) {
        bool up = i < p->n_days;
        const struct history_day *d = &p->days[up ? i : 2 * p->n_days - 1 - i];
        double x = fmin(fmax(at_x(v, (double)d->noon_ms), v->x.from), v->x.to);
        svg_point(out, i ? 'L' : 'M', x, at_y(v, up ? d->high : d->low));
    }
    buf_str(out, "z\"/>\n<path class=\"line c1\" d=\"");
    for (int i = 0; i < p->n_days; i++) {
        double x = fmin(fmax(at_x(v, (double)p->days[i].noon_ms), v->x.from), v->x.to);
        svg_point(out, i ? 'L' : 'M', x, at_y(v, p->days[i].median));
    }
    buf_char(out, '"');
    svg_titled(out, "path", "median of the class");
}

// A line between the last run before and the first run after, with its number where there is room.
static void draw_changes(const struct view *v, struct buf *out)
{
    const struct history_picture *p = v->p;
    double last[2] = {-INFINITY, -INFINITY};
    char number[12];
    for (int i = 0; i < p->n_changes; i++) {
        const struct moment *after = &p->moments[p->changes[i].at];
        double x =
            (at_x(v, (double)after[-1].measured_ms) + at_x(v, (double)after->measured_ms)) / 2;
        int row = x >= last[0] + NUMBER_APART ? 0 : x >= last[1] + NUMBER_APART ? 1 : -1;
        svg_line(out, "mark", x, row == 1 ? TOP - 14 : TOP, x, BOTTOM);
        if (row < 0)
            continue;
        snprintf(number, sizeof number, "%d", i + 1);
        svg_text(out, x, TOP - (row ? 18 : 4), ANCHOR_MIDDLE, "strong", number);
        last[row] = x;
    }
}

// "2  2026-10-30 06:00 (run 100): +5.8 %, 86.1 to 91.1 ns", and what changed with it.
static void describe_change(const struct view *v, int i, double y, struct buf *out)
{
    const struct history_change *c = &v->p->changes[i];
    const struct moment *after = &v->p->moments[c->at];
    char time[32], before[32], now[32], text[240];
    bool worse = (c->percent > 0) != v->p->more_is_better;
    time_text(after->measured_ms, time);
    value_text(c->before, before, sizeof before);
    value_text(c->after, now, sizeof now);
    char run[40] = "";
    if (!after->nodes)
        snprintf(run, sizeof run, " (run %" PRId64 ")", after->run);
    snprintf(text, sizeof text, "%+.1f %% since %s UTC%s: %s to %s %s", percent_written(c->percent),
             time, run, before, now, v->p->unit);
    char number[12];
    snprintf(number, sizeof number, "%d", i + 1);
    svg_text(out, LEFT - 12, y, ANCHOR_END, "strong", number);
    svg_text(out, LEFT, y, ANCHOR_START, worse ? "worse" : "better", text);
    svg_text_cut(out, LEFT, y + 15, "quiet", buf_text(&c->cause), CAUSE_CHARACTERS);
}

static double describe_changes(const struct view *v, double y, struct buf *out)
{
    int n = v->p->n_changes;
    for (int i = n > HISTORY_LISTED_MAX ? n - HISTORY_LISTED_MAX : 0; i < n; i++) {
        describe_change(v, i, y + 16, out);
        y += CHANGE_STEP;
    }
    return y;
}

// --- The whole -----------------------------------------------------------------------------------

static void history_notes(const struct view *v, struct buf *text)
{
    const struct history_picture *p = v->p;
    bool band = false;
    for (int i = 0; i < p->n_stretches; i++)
        band |= isfinite(p->stretches[i].lo);
    bool of_class = strcmp(p->what, "day") == 0;
    if (v->columns)
        buf_fmt(text,
                "%d %ss in %d dots: a dot is the median of its %ss, a bar their lowest to "
                "highest. ",
                p->n, p->what, v->columns, p->what);
    else if (p->n)
        buf_str(text, of_class ? "dots: median of the nodes on a day; bars: their quartiles. "
                               : "bars: 95 % interval of a run. ");
    if (p->n_days > 1)
        buf_str(text,
                "the other band: where 95 % of the nodes of its class are, with their median. ");
    if (v->clipped)
        buf_fmt(text, "%d bar%s beyond the axis. ", v->clipped,
                v->clipped == 1 ? " reaches" : "s reach");
    if (p->n)
        buf_fmt(text, "dotted: median between two changes%s. ",
                band ? (of_class ? "; band: where 95 % of its days are expected"
                                 : "; band: where 95 % of its runs are expected")
                     : "");
    if (v->y.r.log)
        buf_str(text, "y is logarithmic. ");
    if (p->n_changes > HISTORY_LISTED_MAX)
        buf_fmt(text, "%d earlier changes are marked, but not described. ",
                p->n_changes - HISTORY_LISTED_MAX);
    if (p->pending)
        buf_fmt(text,
                "the metrics of %" PRId64 " runs are not computed yet: they are missing, and "
                "changes are not searched for. ",
                p->pending);
    else if (p->n && !p->n_changes)
        buf_str(text, "no significant change. ");
    if (p->searched && p->searched < p->n)
        buf_fmt(text, "changes are searched for in the newest %" PRId64 ". ", p->searched);
    if (p->older)
        buf_str(text, "there are earlier runs, which the limit left out. ");
    if (p->others)
        buf_fmt(text,
                "%" PRId64 " run%s with another variant, method or version of the metrics left "
                "out. ",
                p->others, str_plural(p->others));
    if (*p->variant)
        buf_fmt(text, "measured with: %s", p->variant);
}

static int draw_view(struct view *v, struct buf *out, struct err *err)
{
    draw_axes(v, out);
    draw_class_band(v, out);
    for (int i = 0; i < v->p->n_stretches; i++)
        draw_stretch(v, &v->p->stretches[i], out);
    draw_changes(v, out);
    if (!v->p->n)
        svg_text(out, (LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0, ANCHOR_MIDDLE, "quiet",
                 "no run in this time has this metric");
    if (v->p->n > HISTORY_DOTS_MAX)
        return draw_columns(v, out, err);
    draw_each(v, out);
    return 0;
}

int history_write_svg(const struct history_picture *p, struct buf *out, struct err *err)
{
    struct view v = {.p = p};
    CLEANUP_BUF struct buf heading = BUF_INIT;
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_BUF struct buf notes = BUF_INIT;
    char from[32], to[32];
    fit_x(&v);
    fit_y(&v);
    if (draw_view(&v, &body, err) < 0)
        return -1;
    double height = describe_changes(&v, AXIS, &body);
    bool of_class = strcmp(p->what, "day") == 0;
    buf_fmt(&heading, "%s%.*s · %d %s%s", of_class ? "class " : "", of_class ? HASH_SHOWN : INT_MAX,
            p->node, p->n, p->what, str_plural(p->n));
    if (p->n) {
        time_text(p->moments[0].measured_ms, from);
        time_text(p->moments[p->n - 1].measured_ms, to);
        bool one = strncmp(from, to, 10) == 0;
        buf_fmt(&heading, one ? " · %.10s" : " · %.10s to %.10s", from, to);
    }
    history_notes(&v, &notes);
    svg_write(out, &(struct svg_picture){.width = WIDTH,
                                         .height = height + 6,
                                         .title = p->metric,
                                         .heading = &heading,
                                         .body = &body,
                                         .notes = &notes});
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
}

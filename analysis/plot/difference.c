// SPDX-License-Identifier: Apache-2.0
// Two runs as one picture: the verdict, the curves of both over each other, and the difference of
// each cell. What is not significant is hollow, so that noise does not look like a finding.
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/difference.h"
#include "analysis/plot/parts.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "model/shape.h"

enum { WIDTH = 900, MARGIN = 16, SIDES = 2, HEADLINE_STEP = 20, FACTS_STEP = 16 };

// The rows and columns that both runs have, under the numbers that A gives them.
struct aligned {
    const struct difference_picture *d;
    struct matrix m; // without cells; its axes' values are owned
    double *percent; // owned, as the next
    bool *doubtful;
};

static void aligned_fini(struct aligned *a)
{
    free(a->m.row.values);
    free(a->m.col.values);
    free(a->percent);
    free(a->doubtful);
}

static int difference_axis(struct axis *to, const struct axis *from, const int *list, int n,
                           struct err *err)
{
    *to = *from;
    to->n = n;
    to->values = calloc((size_t)n + 1, sizeof *to->values);
    if (!to->values)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
    for (int i = 0; i < n; i++)
        to->values[i] = from->values[list[i]];
    return 0;
}

static int aligned_init(struct aligned *a, const struct difference_picture *d, struct err *err)
{
    const struct comparison *c = d->comparison;
    size_t n = (size_t)c->rows * (size_t)c->cols;
    *a = (struct aligned){.d = d, .m = *d->plot.matrix};
    a->m.cells = NULL;
    a->m.row.values = a->m.col.values = NULL;
    a->percent = calloc(n + 1, sizeof *a->percent);
    a->doubtful = calloc(n + 1, sizeof *a->doubtful);
    if (!a->percent || !a->doubtful)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
    for (size_t k = 0; k < n; k++) {
        enum verdict v = c->cells[k].verdict;
        a->percent[k] = c->cells[k].exists ? c->cells[k].percent : NAN;
        a->doubtful[k] = v != VERDICT_SLOWER && v != VERDICT_FASTER;
    }
    if (difference_axis(&a->m.row, &d->plot.matrix->row, c->row_a, c->rows, err) < 0)
        return -1;
    return difference_axis(&a->m.col, &d->plot.matrix->col, c->col_a, c->cols, err);
}

// --- Curves --------------------------------------------------------------------------------------

// Series s at place x of the chart, in A (side 0) or in B.
static struct point side_point(const struct aligned *a, const struct chart *c, int side, int s,
                               int x)
{
    const struct comparison *k = a->d->comparison;
    int row = c->series_in_cols ? x : s, col = c->series_in_cols ? s : x;
    const struct matrix *m = side ? a->d->other_matrix : a->d->plot.matrix;
    const struct cell *cell =
        matrix_at(m, (side ? k->row_b : k->row_a)[row], (side ? k->col_b : k->col_a)[col]);
    return (struct point){chart_x_value(c, s, x), cell->v[CELL_MEDIAN] / c->y_by.divisor,
                          cell->v[CELL_LO] / c->y_by.divisor, cell->v[CELL_HI] / c->y_by.divisor,
                          cell_disturbed(cell)};
}

// The median of all series, and from the lowest to the highest.
static struct point middle_point(const struct aligned *a, const struct chart *c, int side, int x,
                                 double *room)
{
    struct range r = RANGE_EMPTY;
    int n = 0;
    for (int s = 0; s < c->series->n; s++) {
        double y = side_point(a, c, side, s, x).y;
        range_add(&r, y);
        if (isfinite(y))
            room[n++] = y;
    }
    return (struct point){chart_x_value(c, 0, x), middle_of(room, n), n ? r.lo : NAN,
                          n ? r.hi : NAN, false};
}

static void name_side(const struct aligned *a, const struct chart *c, int side, int s, char *out,
                      size_t room)
{
    const struct run *r = side ? a->d->other : a->d->plot.run;
    char what[64] = "";
    if (s >= 0 && c->series->n > 1)
        chart_name_line(c, s, what, sizeof what);
    else if (c->series->n > 1)
        snprintf(what, sizeof what, "%d %ss", c->series->n, c->series->name);
    snprintf(out, room, "%c: run %" PRId64 "%s%s", side ? 'B' : 'A', r->id, *what ? ", " : "",
             what);
}

// A line for each row of both runs, where there are few; else a band a run.
static int side_lines(const struct aligned *a, struct chart *c, struct err *err)
{
    int n = c->series->n;
    bool each = SIDES * n <= PLOT_LINES_MAX;
    CLEANUP_MEM double *room = calloc((size_t)n + 1, sizeof *room);
    if (!room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
    for (int side = 0; side < SIDES; side++)
        for (int s = 0; s < (each ? n : 1); s++) {
            struct line *l = chart_line(c, c->n_lines++);
            l->colour = side;
            l->dash = s % 4;
            l->band = !each;
            name_side(a, c, side, each ? s : -1, l->label, sizeof l->label);
            for (int x = 0; x < c->n_x; x++)
                l->points[x] =
                    each ? side_point(a, c, side, s, x) : middle_point(a, c, side, x, room);
        }
    c->grouped = !each;
    return 0;
}

static int draw_curves(const struct aligned *a, double *height, double *width, struct buf *out,
                       struct buf *notes, struct err *err)
{
    struct chart c CLEANUP(chart_fini) = {0};
    struct plot p = a->d->plot;
    p.matrix = &a->m;
    p.bandwidth = NULL;
    p.n_family = 0;
    if (chart_begin(&c, &p, measure_of(a->d->plot.matrix), err) < 0 || side_lines(a, &c, err) < 0)
        return -1;
    chart_fit(&c);
    if (curve_draw(&c, height, width, out, err) < 0)
        return -1;
    if (c.grouped)
        buf_fmt(notes, "band: lowest to highest %s of a run, line: their median. ", c.series->name);
    curve_notes(&c, notes);
    return 0;
}

// --- The whole -----------------------------------------------------------------------------------

static void write_heading(const struct difference_picture *d, struct buf *out)
{
    buf_str(out, "A: ");
    svg_heading(out, d->plot.run);
    buf_str(out, " / B: ");
    svg_heading(out, d->other);
}

static double write_headline(const struct difference_picture *d, double y, struct buf *out)
{
    static const char *const classes[VERDICTS] = {[VERDICT_SAME] = "strong",
                                                  [VERDICT_SLOWER] = "strong worse",
                                                  [VERDICT_FASTER] = "strong better",
                                                  [VERDICT_INCONCLUSIVE] = "strong"};
    CLEANUP_BUF struct buf line = BUF_INIT;
    for (const char *p = verdict_names[d->verdict]; *p; p++)
        buf_char(&line, (char)toupper((unsigned char)*p));
    buf_fmt(&line, ": %s", d->text);
    y += svg_paragraph(out, MARGIN, y + 4, WIDTH - 2 * MARGIN, HEADLINE_STEP, classes[d->verdict],
                       buf_text(&line));
    y += svg_paragraph(out, MARGIN, y + 4, WIDTH - 2 * MARGIN, FACTS_STEP, "quiet",
                       buf_text(d->facts));
    buf_needs(out, &line);
    return y + 12;
}

static int draw_parts(const struct difference_picture *d, struct svg_picture *to, struct buf *body,
                      struct buf *notes, struct err *err)
{
    struct aligned a CLEANUP(aligned_fini) = {0};
    struct heat h CLEANUP(heat_fini) = {0};
    struct plot p = d->plot;
    double width = WIDTH;
    if (aligned_init(&a, d, err) < 0)
        return -1;
    to->width = WIDTH;
    to->height = write_headline(d, SVG_TOP, body);
    if (curve_fits(&p) && draw_curves(&a, &to->height, &width, body, notes, err) < 0)
        return -1;
    to->width = fmax(to->width, width);
    p.matrix = &a.m;
    if (heat_init_differences(&h, &p, a.percent, a.doubtful, PLOT_TILES_MAX, PLOT_TILES_MAX, err) <
        0)
        return -1;
    to->height = heat_draw(&h, to->height, &width, body);
    to->width = fmax(to->width, width);
    heat_notes(&h, notes);
    return 0;
}

int difference_write_svg(const struct difference_picture *d, struct buf *out, struct err *err)
{
    CLEANUP_BUF struct buf heading = BUF_INIT;
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_BUF struct buf notes = BUF_INIT;
    struct svg_picture picture = {.heading = &heading, .body = &body, .notes = &notes};
    char title[160];
    const struct matrix *m = d->plot.matrix;
    snprintf(title, sizeof title, "%s of run %" PRId64 " against run %" PRId64 ": %s", m->quantity,
             d->other->id, d->plot.run->id, m->name);
    svg_title_case(title);
    picture.title = title;
    write_heading(d, &heading);
    if (draw_parts(d, &picture, &body, &notes, err) < 0)
        return -1;
    svg_write(out, &picture);
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
}

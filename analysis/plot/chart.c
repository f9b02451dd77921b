// SPDX-License-Identifier: Apache-2.0
// What the lines of a picture are: which there are, where their points lie, how far the axes reach.
// Few rows have a line each, with the interval of each value; of many groups.c makes bands, because
// two hundred lines show nothing.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "model/mix.h"
#include "model/target.h"

#define LOG_FROM 30.0    // y is logarithmic when the largest value is so many times the smallest
#define WHISKER_ROOM 1.3 // how many times beyond the medians the axis follows their intervals

void chart_fini(struct chart *c)
{
    free(c->points);
    free(c->group);
}

static const struct {
    const char *row, *col;
    bool x_in_rows;
} forms[] = {
    {"rank", "working_set", false}, {"pair", "message", false},        {"threads", "target", true},
    {"rank", "load", false},        {"rank", "pages", false},          {"rank", "chains", false},
    {"rank", "stride", false},      {"threads", "working_set", false}, {"path", "load", false},
    {"pair", "line", false},        {"threads", "operation", true},
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

// --- Which lines there are ---------------------------------------------------------------------

static int index_of(const int64_t *nodes, int n, int64_t node)
{
    int at = 0;
    while (at < n && nodes[at] != node)
        at++;
    return at;
}

// One line a row: coloured by node, if that says something, else each its own.
static void single_lines(struct chart *c)
{
    int64_t nodes[PLOT_GROUPS_MAX];
    int n = chart_nodes(c, nodes), seen[PLOT_GROUPS_MAX] = {0};
    c->by_node = n > 1;
    c->n_lines = c->series->n;
    for (int s = 0; s < c->n_lines; s++) {
        struct line *l = chart_line(c, s);
        l->colour = c->by_node ? index_of(nodes, n, chart_node_of(c, s)) : s % PLOT_GROUPS_MAX;
        l->dash = c->by_node ? seen[l->colour]++ % 4 : s / PLOT_GROUPS_MAX;
        chart_fill_line(c, s, l);
    }
}

// --- A family of curves, one of each mix --------------------------------------------------------

// One row, or the median of all (row -1).
static double family_value(const struct matrix *m, const struct measure *by, int row, int x,
                           enum cell_field field, double *room)
{
    int n = 0;
    if (row >= 0)
        return measured(m, by, row, x, field);
    for (int r = 0; r < m->row.n; r++) {
        double v = measured(m, by, r, x, CELL_MEDIAN);
        if (isfinite(v))
            room[n++] = v;
    }
    return field == CELL_MEDIAN ? middle_of(room, n) : NAN;
}

static void family_line(struct chart *c, const struct plot_curve *f, int row, struct line *l,
                        double *room)
{
    int rows = c->series->n;
    char which[64] = "";
    if (row >= 0)
        chart_name_line(c, row, which, sizeof which);
    else
        snprintf(which, sizeof which, "all %d %ss", rows, c->series->name);
    snprintf(l->label, sizeof l->label, "%s%s%s", f->name, rows > 1 ? ", " : "",
             rows > 1 ? which : "");
    axis_value(c->series, row < 0 ? 0 : row, which, sizeof which);
    snprintf(l->name, sizeof l->name, "%s%s%.20s", f->name, rows > 1 && row >= 0 ? " " : "",
             rows > 1 && row >= 0 ? which : "");
    l->x_axis = &f->latency->col;
    for (int x = 0; x < c->n_x; x++)
        l->points[x] = (struct point){
            family_value(f->bandwidth, &c->x_by, row, x, CELL_MEDIAN, room),
            family_value(f->latency, &c->y_by, row, x, CELL_MEDIAN, room),
            family_value(f->latency, &c->y_by, row, x, CELL_LO, room),
            family_value(f->latency, &c->y_by, row, x, CELL_HI, room),
            row >= 0 && cell_disturbed(matrix_at(f->latency, row, x)),
        };
}

// A colour a mix, a dash a row.
static int family_lines(struct chart *c, struct err *err)
{
    int rows = c->series->n, each = rows * c->p->n_family <= PLOT_LINES_MAX ? rows : 1;
    CLEANUP_MEM double *room = calloc((size_t)rows + 1, sizeof *room);
    if (!room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d rows", rows);
    for (int k = 0; k < c->p->n_family; k++)
        for (int r = 0; r < each; r++) {
            struct line *l = chart_line(c, c->n_lines++);
            l->colour = k;
            l->dash = r % 4;
            family_line(c, &c->p->family[k], each < rows ? -1 : r, l, room);
        }
    return 0;
}

// --- Scales --------------------------------------------------------------------------------------

static void range_x(struct chart *c)
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
}

static void range_y(struct chart *c)
{
    struct range medians = RANGE_EMPTY, all = RANGE_EMPTY;
    for (int i = 0; i < c->n_lines; i++)
        for (int x = 0; x < c->n_x; x++) {
            const struct point *at = &c->lines[i].points[x];
            range_add(&medians, at->y);
            range_add(&all, at->lo);
            range_add(&all, at->hi);
        }
    // Intervals without bounds must not flatten the curve: they run out of the frame.
    if (!c->grouped) {
        all.lo = fmin(medians.lo, fmax(all.lo, medians.lo / WHISKER_ROOM));
        all.hi = fmax(medians.hi, fmin(all.hi, medians.hi * WHISKER_ROOM));
    }
    struct range *r = &c->y.r;
    if (!range_known(&all))
        *r = (struct range){0, 1, false};
    else if (medians.lo > 0 && medians.hi >= LOG_FROM * medians.lo)
        *r = (struct range){all.lo / 1.2, all.hi * 1.2, true};
    else
        *r = (struct range){fmin(0, all.lo), all.hi > 0 ? all.hi * 1.06 : 1, false};
}

static void count_cells(struct chart *c, const struct matrix *m)
{
    for (int i = 0; i < m->row.n * m->col.n; i++) {
        c->missing += !isfinite(m->cells[i].v[CELL_MEDIAN]);
        c->disturbed += cell_disturbed(&m->cells[i]);
    }
}

int chart_begin(struct chart *c, const struct plot *p, struct measure by, struct err *err)
{
    const struct matrix *m = p->matrix;
    bool x_in_rows = forms[form_of(m)].x_in_rows;
    *c = (struct chart){.p = p, .series_in_cols = x_in_rows, .y_by = by};
    c->x_axis = x_in_rows ? &m->row : &m->col;
    c->series = x_in_rows ? &m->col : &m->row;
    c->n_x = c->x_axis->n;
    c->x.r = RANGE_EMPTY;
    c->x.r.log = !p->bandwidth && strcmp(c->x_axis->name, "load") != 0;
    if (p->bandwidth)
        c->x_by = measure_of(p->bandwidth);
    c->points = calloc((size_t)PLOT_LINES_MAX * (size_t)c->n_x + 1, sizeof *c->points);
    return c->points ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the lines");
}

void chart_fit(struct chart *c)
{
    range_x(c);
    range_y(c);
}

int chart_init(struct chart *c, const struct plot *p, struct err *err)
{
    if (chart_begin(c, p, measure_of(p->matrix), err) < 0)
        return -1;
    count_cells(c, p->matrix);
    for (int k = 1; k < p->n_family; k++)
        count_cells(c, p->family[k].latency);
    if (p->n_family > 1) {
        if (family_lines(c, err) < 0)
            return -1;
    } else if (c->series->n <= PLOT_LINES_MAX)
        single_lines(c);
    else if (chart_group_lines(c, err) < 0)
        return -1;
    chart_fit(c);
    return 0;
}

void chart_place(struct chart *c, struct box b)
{
    c->x.from = b.left;
    c->x.to = b.right;
    c->y.from = b.bottom;
    c->y.to = b.top;
}

double chart_x(const struct chart *c, double v)
{
    return scale_at(&c->x, v);
}

double chart_y(const struct chart *c, double v)
{
    return scale_at(&c->y, fmin(fmax(v, c->y.r.lo), c->y.r.hi));
}

bool point_known(const struct point *p)
{
    return isfinite(p->x) && isfinite(p->y);
}

void chart_title(const struct chart *c, char *out, size_t room)
{
    const struct matrix *m = c->p->matrix;
    const struct load_mix *mix = mix_of_matrix(m->name);
    if (c->p->bandwidth)
        snprintf(out, room, "Latency under load%s%s", mix && c->p->n_family < 2 ? ": " : "",
                 mix && c->p->n_family < 2 ? mix->name : "");
    else
        snprintf(out, room, "%s by %s: %s", m->quantity, c->x_axis->name, m->name);
    svg_title_case(out);
}

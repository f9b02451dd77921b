// SPDX-License-Identifier: Apache-2.0
// Lines of a picture with many rows: a band and a median a memory node, or, where nodes say
// nothing, one of the slow and one of the fast ranks, if there is such a difference. A median hides
// what one wants to see of a thousand ranks, so those that lie apart from their group are drawn
// over it.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/shape.h"

#define APART_LEAST 0.10 // a row lies apart by at least this share of its group's median,
#define APART_SIGMAS 6   // and by so many robust standard deviations of its group,
#define APART_ALONE 0.50 // this share at one point is enough
#define SPLIT_LEAST 0.05 // two groups of rows are apart by at least this share,
#define SPLIT_SIGMAS 3   // and by so many standard deviations of their own rows
#define SPLIT_SHARE 16   // of the rows: each of the two groups has at least one of so many
#define SIGMA_OF_MAD 1.4826
enum {
    APART_POINTS = 2,    // at so many points, unless the line has fewer
    SPLIT_IDS_ROOM = 56, // bytes of "0-6,8-14"
};

// What rows deviate by from their group, as logs, and how much the rows of a group do.
struct deviations {
    int rows, points, groups;
    double *of;    // rows × points; NaN: no value; owned
    double *sigma; // groups × points; owned
    double *room;  // rows; owned
};

static void deviations_fini(struct deviations *d)
{
    free(d->of);
    free(d->sigma);
    free(d->room);
}

static int deviations_init(struct deviations *d, const struct chart *c, struct err *err)
{
    *d = (struct deviations){.rows = c->series->n, .points = c->n_x};
    size_t rows = (size_t)d->rows, points = (size_t)d->points;
    d->of = calloc(rows * points, sizeof *d->of);
    d->sigma = calloc(PLOT_GROUPS_MAX * points, sizeof *d->sigma);
    d->room = calloc(rows, sizeof *d->room);
    if (!d->of || !d->sigma || !d->room)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d rows", d->rows);
    return 0;
}

// The median of a group's deviations at one point, or of their sizes.
static double group_middle(const struct deviations *d, const int *group, int g, int x, bool size)
{
    int n = 0;
    for (int s = 0; s < d->rows; s++) {
        double v = d->of[s * d->points + x];
        if (group[s] == g && isfinite(v))
            d->room[n++] = size ? fabs(v) : v;
    }
    return middle_of(d->room, n);
}

static void deviations_find(struct deviations *d, const struct chart *c)
{
    d->groups = c->n_lines;
    for (int s = 0; s < d->rows; s++)
        for (int x = 0; x < d->points; x++) {
            double v = chart_value(c, s, x, CELL_MEDIAN);
            d->of[s * d->points + x] = v > 0 ? log(v) : NAN;
        }
    for (int g = 0; g < d->groups; g++)
        for (int x = 0; x < d->points; x++) {
            double middle = group_middle(d, c->group, g, x, false);
            for (int s = 0; s < d->rows; s++)
                if (c->group[s] == g)
                    d->of[s * d->points + x] -= middle;
            d->sigma[g * d->points + x] = SIGMA_OF_MAD * group_middle(d, c->group, g, x, true);
        }
}

// --- Groups --------------------------------------------------------------------------------------

static int groups_by_node(struct chart *c, int64_t nodes[PLOT_GROUPS_MAX])
{
    int n = chart_nodes(c, nodes);
    c->by_node = n > 1;
    for (int s = 0; s < c->series->n; s++)
        for (int g = 0; c->by_node && g < n; g++)
            if (nodes[g] == chart_node_of(c, s))
                c->group[s] = g;
    return c->by_node ? n : 1;
}

struct scored_row {
    int row;
    double score;
};

static int by_score(const void *a, const void *b)
{
    const struct scored_row *x = a, *y = b;
    return x->score != y->score ? (x->score > y->score) - (x->score < y->score)
                                : (x->row > y->row) - (x->row < y->row);
}

// How far apart rows are at a point, but for the outermost ones.
static double spread_at(struct deviations *d, int x)
{
    int n = 0;
    for (int s = 0; s < d->rows; s++)
        if (isfinite(d->of[s * d->points + x]))
            d->room[n++] = d->of[s * d->points + x];
    middle_of(d->room, n); // sorts
    return n ? d->room[n - 1 - n / SPLIT_SHARE] - d->room[n / SPLIT_SHARE] : 0;
}

// Rows by what they deviate by at the points where they are far apart.
static void score_rows(struct deviations *d, double *spread, struct scored_row *list)
{
    double largest = 0;
    for (int x = 0; x < d->points; x++)
        largest = fmax(largest, spread[x] = spread_at(d, x));
    for (int s = 0; s < d->rows; s++) {
        double sum = 0;
        int n = 0;
        for (int x = 0; x < d->points; x++)
            if (2 * spread[x] >= largest && isfinite(d->of[s * d->points + x])) {
                sum += d->of[s * d->points + x];
                n++;
            }
        list[s] = (struct scored_row){s, n ? sum / n : 0};
    }
    qsort(list, (size_t)d->rows, sizeof *list, by_score);
}

static double score_deviation(const struct scored_row *list, int n)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += list[i].score;
    for (int i = 0; i < n; i++)
        squares += (list[i].score - sum / n) * (list[i].score - sum / n);
    return sqrt(squares / n);
}

// How many rows are in the lower of two groups that nothing lies between; 0: there are no two.
static int split_place(const struct scored_row *list, int n)
{
    int least = n / SPLIT_SHARE > 1 ? n / SPLIT_SHARE : 1, at = 0;
    double widest = log1p(SPLIT_LEAST);
    for (int i = least; i <= n - least; i++)
        if (list[i].score - list[i - 1].score > widest) {
            widest = list[i].score - list[i - 1].score;
            at = i;
        }
    double within = at ? fmax(score_deviation(list, at), score_deviation(list + at, n - at)) : 0;
    return widest > SPLIT_SIGMAS * within ? at : 0;
}

// "slow: 112 ranks", and which they are for the notes.
static int split_rows(struct chart *c, struct deviations *d, struct err *err)
{
    CLEANUP_MEM double *spread = calloc((size_t)d->points, sizeof *spread);
    CLEANUP_MEM struct scored_row *list = calloc((size_t)d->rows, sizeof *list);
    if (!spread || !list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d rows", d->rows);
    score_rows(d, spread, list);
    int at = split_place(list, d->rows);
    for (int i = 0; at && i < d->rows; i++)
        c->group[list[i].row] = i >= at;
    c->split = at;
    return 0;
}

// --- Lines of groups -----------------------------------------------------------------------------

// What the rows of a group have at one x: their median, and from the lowest to the highest.
static struct point group_point(const struct chart *c, int group, int x, double *ys, double *xs)
{
    struct range r = RANGE_EMPTY;
    int n = 0, hollow = 0;
    for (int s = 0; s < c->series->n; s++) {
        double y = chart_value(c, s, x, CELL_MEDIAN);
        if (c->group[s] != group || !isfinite(y))
            continue;
        range_add(&r, y);
        hollow += chart_disturbed(c, s, x);
        ys[n] = y;
        xs[n++] = chart_x_value(c, s, x);
    }
    // Over measured x a band would join what was never together.
    bool band = n && !c->p->bandwidth;
    return (struct point){middle_of(xs, n), middle_of(ys, n), band ? r.lo : NAN, band ? r.hi : NAN,
                          2 * hollow > n};
}

static void name_group(const struct chart *c, int g, int64_t node, struct line *l)
{
    bool more = shape_more_is_better(c->p->matrix);
    int n = 0;
    for (int s = 0; s < c->series->n; s++)
        n += c->group[s] == g;
    if (c->by_node)
        snprintf(l->label, sizeof l->label, "node %" PRId64 ": %d ranks", node, n);
    else if (c->split)
        snprintf(l->label, sizeof l->label, "%s: %d %ss", (g == 0) == more ? "slow" : "fast", n,
                 c->series->name);
    else
        snprintf(l->label, sizeof l->label, "all %d %ss", n, c->series->name);
}

static int fill_groups(struct chart *c, const int64_t *nodes, struct err *err)
{
    CLEANUP_MEM double *ys = calloc((size_t)c->series->n, sizeof *ys);
    CLEANUP_MEM double *xs = calloc((size_t)c->series->n, sizeof *xs);
    if (!xs || !ys)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d rows", c->series->n);
    for (int g = 0; g < c->n_lines; g++) {
        struct line *l = chart_line(c, g);
        l->colour = g;
        l->band = !c->p->bandwidth;
        name_group(c, g, nodes[g], l);
        for (int x = 0; x < c->n_x; x++) {
            l->points[x] = group_point(c, g, x, ys, xs);
            if (!c->p->bandwidth && isnan(l->points[x].x))
                l->points[x].x = chart_x_value(c, 0, x);
        }
    }
    return 0;
}

// --- Rows that lie apart -------------------------------------------------------------------------

// Sum of what the row is beyond the limit by; 0: it does not lie apart.
static double apart_score(const struct chart *c, const struct deviations *d, int s, double *typical)
{
    int beyond = 0, points = 0;
    double sum = 0, all = 0;
    for (int x = 0; x < d->points; x++) {
        double v = d->of[s * d->points + x];
        double limit =
            fmax(log1p(APART_LEAST), APART_SIGMAS * d->sigma[c->group[s] * d->points + x]);
        if (!(fabs(v) > limit) || chart_disturbed(c, s, x))
            continue;
        beyond += fabs(v) > log1p(APART_ALONE) ? APART_POINTS : 1;
        points++;
        sum += fabs(v) - limit;
        all += v;
    }
    *typical = points ? 100 * expm1(all / points) : 0;
    return beyond >= (d->points < APART_POINTS ? 1 : APART_POINTS) ? sum : 0;
}

static void add_odd_line(struct chart *c, int s, double percent)
{
    int nth = c->n_odd++;
    struct line *l = chart_line(c, c->n_lines++);
    l->colour = c->by_node ? c->group[s] : (c->split ? 2 : 1) + nth;
    l->dash = c->by_node ? 1 + nth % 3 : 0;
    l->odd = true;
    chart_fill_line(c, s, l);
    size_t n = strlen(l->label);
    snprintf(l->label + n, sizeof l->label - n, " %+.0f %%", percent);
}

// The rows that lie apart most have a line each.
static int odd_lines(struct chart *c, const struct deviations *d, struct err *err)
{
    CLEANUP_MEM struct scored_row *list = calloc((size_t)d->rows, sizeof *list);
    int n = 0;
    double percent;
    if (!list)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d rows", d->rows);
    for (int s = 0; s < d->rows; s++) {
        double score = apart_score(c, d, s, &percent);
        if (score > 0)
            list[n++] = (struct scored_row){s, -score};
    }
    qsort(list, (size_t)n, sizeof *list, by_score);
    for (int i = 0; i < n && i < PLOT_ODD_MAX; i++) {
        apart_score(c, d, list[i].row, &percent);
        add_odd_line(c, list[i].row, percent);
    }
    c->odd_left = n > PLOT_ODD_MAX ? n - PLOT_ODD_MAX : 0;
    return 0;
}

int chart_group_lines(struct chart *c, struct err *err)
{
    struct deviations d CLEANUP(deviations_fini) = {0};
    int64_t nodes[PLOT_GROUPS_MAX] = {0};
    c->group = calloc((size_t)c->series->n, sizeof *c->group);
    if (!c->group)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for %d rows", c->series->n);
    c->grouped = true;
    c->n_lines = groups_by_node(c, nodes);
    if (deviations_init(&d, c, err) < 0)
        return -1;
    deviations_find(&d, c);
    if (!c->by_node && strcmp(c->series->name, "rank") == 0 && split_rows(c, &d, err) < 0)
        return -1;
    if (c->split) {
        c->n_lines = 2;
        deviations_find(&d, c);
    }
    return fill_groups(c, nodes, err) < 0 ? -1 : odd_lines(c, &d, err);
}

void chart_split_text(const struct chart *c, struct buf *out)
{
    char ids[SPLIT_IDS_ROOM];
    CLEANUP_MEM int *list = calloc((size_t)c->series->n + 1, sizeof *list);
    for (int g = 0; list && g < 2; g++) {
        int n = 0;
        for (int s = 0; s < c->series->n; s++)
            if (c->group[s] == g)
                list[n++] = (int)c->series->values[s];
        str_from_ids(list, n, ids, sizeof ids);
        buf_fmt(out, "%.4s: %ss %s%s. ", c->lines[g].label, c->series->name, ids,
                strlen(ids) + 1 == sizeof ids ? "…" : "");
    }
    if (!list)
        buf_fail(out);
}

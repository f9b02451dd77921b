// SPDX-License-Identifier: Apache-2.0
// A heat map: dark is little, bright is much, on a ramp whose lightness grows all the way, so that
// it reads the same without colour. Tiles of one colour are one path, and neighbours in a row one
// rectangle of it: that keeps the picture of 256 x 256 ranks below a megabyte.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "model/shape.h"

#define LOG_FROM 10.0 // the scale is logarithmic when the largest is so many times the smallest
// Shares of the largest value. Values within EVEN_SPAN have one colour and no scale. Otherwise the
// colours span LEAST_SPAN at least, so that a small difference looks small.
#define EVEN_SPAN 0.03
#define LEAST_SPAN 0.3

static const struct rgb ramp[] = {
    {43, 16, 85}, {47, 75, 154}, {31, 138, 154}, {88, 191, 106}, {246, 230, 90}};
enum { STOPS = COUNT_OF(ramp) };

// Per cent: what is beyond is drawn as MOST. The colours span LEAST at least, so that noise looks
// like noise.
#define DIFFERENCE_MOST 100
#define DIFFERENCE_LEAST 10

void heat_fini(struct heat *h)
{
    free(h->values);
    free(h->levels);
    free(h->hollow);
    *h = (struct heat){0};
}

// --- Values --------------------------------------------------------------------------------------

static double heat_cell(const struct heat *h, int row, int col)
{
    return h->given ? h->given[(size_t)row * (size_t)h->m->col.n + (size_t)col]
                    : measured(h->m, &h->by, row, col, CELL_MEDIAN);
}

static bool is_doubtful(const struct heat *h, int row, int col)
{
    return h->given ? h->doubtful[(size_t)row * (size_t)h->m->col.n + (size_t)col]
                    : cell_disturbed(matrix_at(h->m, row, col));
}

static double tile_value(const struct heat *h, int row, int col, double *scratch, bool *exists)
{
    int n = 0;
    if (h->row_cells == 1 && h->col_cells == 1) {
        *exists = shape_has_cell(h->m, row, col);
        return heat_cell(h, row, col);
    }
    for (int r = row * h->row_cells; r < (row + 1) * h->row_cells && r < h->m->row.n; r++)
        for (int c = col * h->col_cells; c < (col + 1) * h->col_cells && c < h->m->col.n; c++) {
            double v = heat_cell(h, r, c);
            *exists |= shape_has_cell(h->m, r, c);
            if (isfinite(v))
                scratch[n++] = v;
        }
    return middle_of(scratch, n);
}

// A difference of several cells is doubtful where most of them are: their median is a number in any
// case. A disturbed cell among several is no reason to doubt a tile.
static bool tile_is_doubtful(const struct heat *h, int row, int col)
{
    int known = 0, doubtful = 0;
    if (!h->given && (h->row_cells > 1 || h->col_cells > 1))
        return false;
    for (int r = row * h->row_cells; r < (row + 1) * h->row_cells && r < h->m->row.n; r++)
        for (int c = col * h->col_cells; c < (col + 1) * h->col_cells && c < h->m->col.n; c++)
            if (isfinite(heat_cell(h, r, c))) {
                known++;
                doubtful += is_doubtful(h, r, c);
            }
    return 2 * doubtful > known;
}

static int find_values(struct heat *h, struct err *err)
{
    size_t n = (size_t)h->rows * (size_t)h->cols;
    CLEANUP_MEM double *scratch =
        calloc((size_t)h->row_cells * (size_t)h->col_cells, sizeof *scratch);
    h->values = calloc(n, sizeof *h->values);
    h->levels = calloc(n, sizeof *h->levels);
    h->hollow = calloc(n, sizeof *h->hollow);
    if (!scratch || !h->values || !h->levels || !h->hollow)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the heat map");
    for (size_t i = 0; i < n; i++) {
        bool exists = false;
        h->values[i] = tile_value(h, (int)i / h->cols, (int)i % h->cols, scratch, &exists);
        h->levels[i] = exists ? HEAT_MISSING : HEAT_NONE;
        h->hollow[i] = tile_is_doubtful(h, (int)i / h->cols, (int)i % h->cols);
    }
    for (int r = 0; r < h->m->row.n; r++)
        for (int c = 0; c < h->m->col.n; c++) {
            bool known = isfinite(heat_cell(h, r, c));
            h->missing += shape_has_cell(h->m, r, c) && !known;
            h->n_doubtful += known && is_doubtful(h, r, c);
        }
    return 0;
}

// As far to both sides of no difference. What is worse has the high levels.
static void difference_levels(struct heat *h)
{
    double most = DIFFERENCE_LEAST;
    for (int i = 0; i < h->rows * h->cols; i++)
        if (isfinite(h->values[i]))
            most = fmax(most, fabs(h->values[i]));
    h->beyond = most > DIFFERENCE_MOST;
    most = fmin(most, DIFFERENCE_MOST);
    h->colour = (struct scale){{-most, most, false}, 0, 1};
    for (int i = 0; i < h->rows * h->cols; i++) {
        double v = h->more_is_better ? -h->values[i] : h->values[i];
        if (isfinite(v))
            h->levels[i] = (unsigned char)fmin(
                scale_at(&h->colour, fmin(fmax(v, -most), most)) * HEAT_LEVELS, HEAT_LEVELS - 1);
    }
}

static void find_levels(struct heat *h)
{
    struct range r = RANGE_EMPTY;
    int n = h->rows * h->cols;
    for (int i = 0; i < n; i++)
        range_add(&r, h->values[i]);
    h->lo = r.lo;
    h->hi = r.hi;
    h->even = !(r.hi - r.lo > EVEN_SPAN * fabs(r.hi));
    double least = LEAST_SPAN * fabs(r.hi), middle = (r.lo + r.hi) / 2;
    if (!range_known(&r))
        r = (struct range){0, 1, false};
    else if (r.hi - r.lo < least)
        r = (struct range){middle - least / 2, middle + least / 2, false};
    else
        r.log = r.lo > 0 && r.hi >= LOG_FROM * r.lo;
    h->colour = (struct scale){r, 0, 1};
    for (int i = 0; i < n; i++)
        if (isfinite(h->values[i])) {
            int level = (int)(scale_at(&h->colour, h->values[i]) * HEAT_LEVELS);
            if (h->even)
                level = HEAT_LEVELS / 2;
            h->levels[i] = (unsigned char)(level < HEAT_LEVELS ? level : HEAT_LEVELS - 1);
        }
}

static struct rgb ramp_at(double share)
{
    double at = share * (STOPS - 1);
    int i = at >= STOPS - 1 ? STOPS - 2 : (int)at;
    double t = at - i;
    const struct rgb *a = &ramp[i], *b = &ramp[i + 1];
    return (struct rgb){(int)lround(a->r + t * (b->r - a->r)),
                        (int)lround(a->g + t * (b->g - a->g)),
                        (int)lround(a->b + t * (b->b - a->b))};
}

struct rgb heat_colour(int level)
{
    return ramp_at((level + 0.5) / HEAT_LEVELS);
}

// --- Names ---------------------------------------------------------------------------------------

int64_t heat_cpu_node(const struct plot *p, const struct axis *a, int i)
{
    for (int k = 0; strcmp(a->name, "rank") == 0 && k < p->n_ranks; k++)
        if (p->ranks[k].rank == a->values[i])
            return p->ranks[k].cpu_node;
    return -1;
}

// One rank a node: people read the numbers of the nodes.
static bool ranks_are_nodes(const struct heat *h)
{
    bool seen[TOPOLOGY_NODES_MAX] = {false};
    const struct axis *a = &h->m->row;
    if (strcmp(a->name, "rank") != 0 || strcmp(h->m->col.name, "target") != 0)
        return false;
    for (int r = 0; r < a->n; r++) {
        int64_t node = r < TOPOLOGY_NODES_MAX ? heat_cpu_node(h->p, a, r) : -1;
        if (node < 0 || node >= TOPOLOGY_NODES_MAX || seen[node])
            return false;
        seen[node] = true;
    }
    return true;
}

void heat_row_title(const struct heat *h, char *out, size_t room)
{
    if (h->of_nodes)
        snprintf(out, room, "node of the CPU");
    else
        axis_title(&h->m->row, out, room);
}

void heat_row_label(const struct heat *h, int row, char *out, size_t room)
{
    char value[32];
    int64_t node = heat_cpu_node(h->p, &h->m->row, row);
    axis_value(&h->m->row, row, value, sizeof value);
    if (h->of_nodes)
        snprintf(out, room, "%" PRId64, node);
    else if (node >= 0 && h->texts)
        snprintf(out, room, "%s (node %" PRId64 ")", value, node);
    else
        snprintf(out, room, "%s", value);
}

// Differences have their sign: "+18", "-4.2".
void heat_value_text(const struct heat *h, double v, char *out, size_t room)
{
    const double most = 1e6; // longer texts would leave their tile
    if (h->given && isfinite(v))
        snprintf(out, room, fabs(v) < most ? "%+.*f" : "%+.*e", fabs(v) < 9.95 || fabs(v) >= most,
                 v + 0.0);
    else
        value_text(v, out, room);
}

static int heat_fill(struct heat *h, int most_rows, int most_cols, struct err *err)
{
    const struct matrix *m = h->m;
    h->row_cells = (m->row.n + most_rows - 1) / most_rows;
    h->col_cells = (m->col.n + most_cols - 1) / most_cols;
    h->rows = (m->row.n + h->row_cells - 1) / h->row_cells;
    h->cols = (m->col.n + h->col_cells - 1) / h->col_cells;
    h->texts = m->row.n <= PLOT_TEXTS_MAX && m->col.n <= PLOT_TEXTS_MAX;
    h->of_nodes = ranks_are_nodes(h);
    return find_values(h, err);
}

int heat_init(struct heat *h, const struct plot *p, int most_rows, int most_cols, struct err *err)
{
    *h = (struct heat){.p = p, .m = p->matrix, .by = measure_of(p->matrix)};
    if (heat_fill(h, most_rows, most_cols, err) < 0)
        return -1;
    find_levels(h);
    return 0;
}

int heat_init_differences(struct heat *h, const struct plot *p, const double *percent,
                          const bool *doubtful, int most_rows, int most_cols, struct err *err)
{
    *h = (struct heat){.p = p,
                       .m = p->matrix,
                       .given = percent,
                       .doubtful = doubtful,
                       .more_is_better = shape_more_is_better(p->matrix),
                       .by = {.text = "difference (%)", .unit = "%", .divisor = 1}};
    if (heat_fill(h, most_rows, most_cols, err) < 0)
        return -1;
    difference_levels(h);
    return 0;
}

void heat_title(const struct heat *h, char *out, size_t room)
{
    const struct matrix *m = h->m;
    bool nodes =
        h->of_nodes || strcmp(m->row.name, "initiator") == 0 || strcmp(m->row.name, "source") == 0;
    if (nodes && strcmp(m->col.name, "target") == 0)
        snprintf(out, room, "%s from node to node: %s", m->quantity, m->name);
    else
        snprintf(out, room, "%s, %s by %s: %s", m->quantity, m->row.name, m->col.name, m->name);
    svg_title_case(out);
}

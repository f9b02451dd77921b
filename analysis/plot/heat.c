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

enum {
    TOP = 92,
    ROW_TEXT = 26, // height of a cell with its value in it
    LEAST_WIDTH = 480,
    BAR_GAP = 26,
    BAR_WIDTH = 16,
    BAR_HEIGHT = 260,
    BAR_TEXTS = 64,
    LABEL_PITCH = 14,
};
#define MAP_SIZE 620.0 // of a map whose values are not written, the longer way
#define CHARACTER 6.8  // width of one in 12 px, about
#define LOG_FROM 10.0  // the scale is logarithmic when the largest is so many times the smallest
// Shares of the largest value. Values within EVEN_SPAN have one colour and no scale. Otherwise the
// colours span LEAST_SPAN at least, so that a small difference looks small.
#define EVEN_SPAN 0.03
#define LEAST_SPAN 0.3

static const struct rgb ramp[] = {
    {43, 16, 85}, {47, 75, 154}, {31, 138, 154}, {88, 191, 106}, {246, 230, 90}};
enum { STOPS = COUNT_OF(ramp) };

void heat_fini(struct heat *h)
{
    free(h->values);
    free(h->levels);
}

// --- Values --------------------------------------------------------------------------------------

static double tile_value(const struct heat *h, int row, int col, double *scratch, bool *exists)
{
    int n = 0;
    if (h->row_cells == 1 && h->col_cells == 1) {
        *exists = shape_has_cell(h->m, row, col);
        return measured(h->m, &h->by, row, col, CELL_MEDIAN);
    }
    for (int r = row * h->row_cells; r < (row + 1) * h->row_cells && r < h->m->row.n; r++)
        for (int c = col * h->col_cells; c < (col + 1) * h->col_cells && c < h->m->col.n; c++) {
            double v = measured(h->m, &h->by, r, c, CELL_MEDIAN);
            *exists |= shape_has_cell(h->m, r, c);
            if (isfinite(v))
                scratch[n++] = v;
        }
    return middle_of(scratch, n);
}

static int find_values(struct heat *h, struct err *err)
{
    size_t n = (size_t)h->rows * (size_t)h->cols;
    CLEANUP_MEM double *scratch =
        calloc((size_t)h->row_cells * (size_t)h->col_cells, sizeof *scratch);
    h->values = calloc(n, sizeof *h->values);
    h->levels = calloc(n, sizeof *h->levels);
    if (!scratch || !h->values || !h->levels)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the heat map");
    for (size_t i = 0; i < n; i++) {
        bool exists = false;
        h->values[i] = tile_value(h, (int)i / h->cols, (int)i % h->cols, scratch, &exists);
        h->levels[i] = exists ? HEAT_MISSING : HEAT_NONE;
    }
    for (int r = 0; r < h->m->row.n; r++)
        for (int c = 0; c < h->m->col.n; c++)
            h->missing +=
                shape_has_cell(h->m, r, c) && !isfinite(matrix_at(h->m, r, c)->v[CELL_MEDIAN]);
    return 0;
}

static void find_levels(struct heat *h)
{
    struct range r = RANGE_EMPTY;
    int n = h->rows * h->cols;
    for (int i = 0; i < n; i++)
        range_add(&r, h->values[i]);
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

static const char *level_fill(int level, char *out, size_t room)
{
    struct rgb c = heat_colour(level);
    snprintf(out, room, "fill=\"#%02x%02x%02x\"", c.r & 0xff, c.g & 0xff, c.b & 0xff);
    return out;
}

// --- Layout --------------------------------------------------------------------------------------

static int64_t cpu_node(const struct plot *p, const struct axis *a, int i)
{
    for (int k = 0; strcmp(a->name, "rank") == 0 && k < p->n_ranks; k++)
        if (p->ranks[k].rank == a->values[i])
            return p->ranks[k].cpu_node;
    return -1;
}

static void heat_row_label(const struct heat *h, int row, char *out, size_t room)
{
    char value[32];
    int64_t node = cpu_node(h->p, &h->m->row, row);
    axis_value(&h->m->row, row, value, sizeof value);
    if (node >= 0 && h->texts)
        snprintf(out, room, "%s (node %" PRId64 ")", value, node);
    else
        snprintf(out, room, "%s", value);
}

static size_t longest_label(const struct heat *h)
{
    char text[64];
    size_t most = 0;
    for (int r = 0; r < h->m->row.n; r++) {
        heat_row_label(h, r, text, sizeof text);
        most = strlen(text) > most ? strlen(text) : most;
    }
    return most;
}

static size_t longest_text(const struct heat *h)
{
    char text[32];
    size_t most = 0;
    for (int i = 0; i < h->rows * h->cols; i++) {
        value_text(h->values[i], text, sizeof text);
        most = strlen(text) > most ? strlen(text) : most;
    }
    return most;
}

static double between(double v, double least, double most)
{
    return fmin(fmax(v, least), most);
}

static void lay_out(struct heat *h)
{
    double across = MAP_SIZE / h->cols, down = MAP_SIZE / h->rows;
    bool square = strcmp(h->m->row.name, h->m->col.name) == 0;
    if (h->texts) {
        h->tile_h = ROW_TEXT;
        h->tile_w = between(400.0 / h->cols, CHARACTER * (double)longest_text(h) + 10, 84);
    } else {
        h->tile_h = square ? fmin(across, down) : between(down, 0, ROW_TEXT);
        h->tile_w = square ? h->tile_h : between(across, 0, 84);
    }
    h->left = 44 + CHARACTER * (double)longest_label(h) + (h->texts ? 0 : 46);
}

int heat_init(struct heat *h, const struct plot *p, int most_rows, int most_cols, struct err *err)
{
    const struct matrix *m = p->matrix;
    *h = (struct heat){.p = p, .m = m, .by = measure_of(m)};
    h->row_cells = (m->row.n + most_rows - 1) / most_rows;
    h->col_cells = (m->col.n + most_cols - 1) / most_cols;
    h->rows = (m->row.n + h->row_cells - 1) / h->row_cells;
    h->cols = (m->col.n + h->col_cells - 1) / h->col_cells;
    h->texts = m->row.n <= PLOT_TEXTS_MAX && m->col.n <= PLOT_TEXTS_MAX;
    if (find_values(h, err) < 0)
        return -1;
    find_levels(h);
    return 0;
}

static double map_width(const struct heat *h)
{
    return h->cols * h->tile_w;
}

static double map_height(const struct heat *h)
{
    return h->rows * h->tile_h;
}

// Of the title beside the rows, which may be longer than they are high.
static double rows_height(const struct heat *h)
{
    char text[64];
    axis_title(&h->m->row, text, sizeof text);
    return fmax(map_height(h), CHARACTER * (double)strlen(text));
}

static double bar_height(const struct heat *h)
{
    return between(map_height(h), 90, BAR_HEIGHT);
}

// --- Drawing -------------------------------------------------------------------------------------

// 0…999, much faster than printf: there may be a quarter of a million of them.
static char *put_small(char *to, int n)
{
    if (n >= 100)
        *to++ = (char)('0' + n / 100 % 10);
    if (n >= 10)
        *to++ = (char)('0' + n / 10 % 10);
    *to++ = (char)('0' + n % 10);
    return to;
}

// Neighbours of one level, from `col` to before `end`: "M12 5h3v1h-3z".
static void put_run(struct buf *out, int row, int col, int end)
{
    char text[24], *to = text;
    *to++ = 'M';
    to = put_small(to, col);
    *to++ = ' ';
    to = put_small(to, row);
    *to++ = 'h';
    to = put_small(to, end - col);
    memcpy(to, "v1h-", 4);
    to = put_small(to + 4, end - col);
    *to++ = 'z';
    buf_add(out, text, (size_t)(to - text));
}

static void find_paths(const struct heat *h, struct buf paths[HEAT_NONE])
{
    for (int row = 0; row < h->rows; row++) {
        const unsigned char *levels = h->levels + (size_t)row * (size_t)h->cols;
        for (int col = 0, end; col < h->cols; col = end) {
            for (end = col + 1; end < h->cols && levels[end] == levels[col]; end++)
                ;
            if (levels[col] < HEAT_NONE)
                put_run(&paths[levels[col]], row, col, end);
        }
    }
}

static void draw_tiles(const struct heat *h, struct buf *out)
{
    char fill[32];
    struct buf paths[HEAT_NONE] = {0};
    find_paths(h, paths);
    buf_fmt(out,
            "<g shape-rendering=\"crispEdges\" transform=\"translate(%.4g %d)scale(%.6g %.6g)\">\n",
            h->left, TOP, h->tile_w, h->tile_h);
    for (int level = 0; level < HEAT_NONE; level++) {
        if (paths[level].len)
            buf_fmt(out, "<path %s d=\"%s\"/>\n",
                    level == HEAT_MISSING ? "class=\"gap\"" : level_fill(level, fill, sizeof fill),
                    buf_text(&paths[level]));
        buf_needs(out, &paths[level]);
        buf_free(&paths[level]);
    }
    buf_str(out, "</g>\n");
}

static bool is_bright(struct rgb c)
{
    return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b > 125;
}

static void draw_texts(const struct heat *h, struct buf *out)
{
    char text[32];
    for (int i = 0; i < h->rows * h->cols; i++) {
        int row = i / h->cols, col = i % h->cols, level = h->levels[i];
        if (level == HEAT_NONE)
            continue;
        value_text(h->values[i], text, sizeof text);
        bool dark = level == HEAT_MISSING || is_bright(heat_colour(level));
        svg_text(out, h->left + (col + 0.5) * h->tile_w, TOP + (row + 0.5) * h->tile_h + 4,
                 ANCHOR_MIDDLE, dark ? "dark" : "light", text);
    }
}

static bool node_changes(const struct heat *h, const struct axis *a, int i)
{
    return cpu_node(h->p, a, i) != cpu_node(h->p, a, i - 1);
}

// Nodes of several ranks are parted by lines.
static bool has_borders(const struct heat *h, const struct axis *a)
{
    int changes = 0;
    for (int i = 1; i < a->n && a->n <= PLOT_TILES_MAX; i++)
        changes += node_changes(h, a, i);
    return changes > 0 && changes < a->n - 1;
}

static void draw_borders(const struct heat *h, struct buf *out)
{
    double right = h->left + map_width(h), bottom = TOP + map_height(h);
    const struct axis *row = &h->m->row, *col = &h->m->col;
    bool rows = has_borders(h, row), cols = has_borders(h, col);
    for (int r = 1; rows && r < row->n; r++)
        if (node_changes(h, row, r))
            svg_line(out, "border", h->left, TOP + r * h->tile_h, right, TOP + r * h->tile_h);
    for (int c = 1; cols && c < col->n; c++)
        if (node_changes(h, col, c))
            svg_line(out, "border", h->left + c * h->tile_w, TOP, h->left + c * h->tile_w, bottom);
}

// Of values that follow each other, how many share one label.
static int label_every(double pitch, double needed)
{
    static const int steps[] = {1, 2, 4, 8, 16, 32, 64, 128};
    size_t i = 0;
    while (i + 1 < COUNT_OF(steps) && steps[i] * pitch < needed)
        i++;
    return steps[i];
}

static void draw_row_labels(const struct heat *h, struct buf *out)
{
    char text[64];
    int every = label_every(h->tile_h, LABEL_PITCH);
    for (int r = 0; r < h->rows; r += every) {
        heat_row_label(h, r * h->row_cells, text, sizeof text);
        svg_text(out, h->left - 7, TOP + (r + 0.5) * h->tile_h + 4, ANCHOR_END, "quiet", text);
    }
    axis_title(&h->m->row, text, sizeof text);
    svg_text_up(out, 20, TOP + rows_height(h) / 2, text);
}

// "node 1" once beside the ranks of it, where they are not named one by one.
static void draw_nodes(const struct heat *h, struct buf *out)
{
    char text[32];
    const struct axis *row = &h->m->row;
    for (int first = 0, end; first < row->n && !h->texts; first = end) {
        int64_t node = cpu_node(h->p, row, first);
        for (end = first + 1; end < row->n && cpu_node(h->p, row, end) == node; end++)
            ;
        double height = (end - first) * h->tile_h / h->row_cells;
        if (node < 0 || height < LABEL_PITCH)
            continue;
        snprintf(text, sizeof text, "node %" PRId64, node);
        svg_text(out, 32, TOP + first * h->tile_h / h->row_cells + height / 2 + 4, ANCHOR_START,
                 "small", text);
    }
}

static void draw_col_labels(const struct heat *h, struct buf *out)
{
    char text[64];
    size_t most = 0;
    for (int c = 0; c < h->m->col.n; c++) {
        axis_value(&h->m->col, c, text, sizeof text);
        most = strlen(text) > most ? strlen(text) : most;
    }
    int every = label_every(h->tile_w, CHARACTER * (double)most + 8);
    for (int c = 0; c < h->cols; c += every) {
        axis_value(&h->m->col, c * h->col_cells, text, sizeof text);
        svg_text(out, h->left + (c + 0.5) * h->tile_w, TOP + map_height(h) + 17, ANCHOR_MIDDLE,
                 "quiet", text);
    }
    axis_title(&h->m->col, text, sizeof text);
    svg_text(out, h->left + map_width(h) / 2, TOP + map_height(h) + 36, ANCHOR_MIDDLE, "quiet",
             text);
}

// The colours themselves, from the lowest up: what the tiles have, nothing between.
static void draw_ramp(double x, double height, struct buf *out)
{
    char fill[32];
    buf_fmt(out,
            "<g shape-rendering=\"crispEdges\" transform=\"translate(%.6g %.6g)scale(%d %.6g)\">\n",
            x, TOP + height, BAR_WIDTH, -height / HEAT_LEVELS);
    for (int level = 0; level < HEAT_LEVELS; level++)
        buf_fmt(out, "<path %s d=\"M0 %dh1v1h-1z\"/>\n", level_fill(level, fill, sizeof fill),
                level);
    buf_str(out, "</g>\n");
}

static void draw_bar(const struct heat *h, struct buf *out)
{
    double x = h->left + map_width(h) + BAR_GAP, height = bar_height(h);
    struct scale s = {h->colour.r, TOP + height, TOP};
    struct ticks t;
    char text[32];
    draw_ramp(x, height, out);
    ticks_round(&t, &s.r, 6);
    for (int i = 0; i < t.n; i++) {
        double y = scale_at(&s, t.at[i]);
        tick_text(t.at[i], text, sizeof text);
        svg_line(out, "frame", x + BAR_WIDTH, y, x + BAR_WIDTH + 4, y);
        svg_text(out, x + BAR_WIDTH + 8, y + 4, ANCHOR_START, "quiet", text);
    }
    svg_text(out, x + BAR_WIDTH + 4, TOP - 10, ANCHOR_MIDDLE, "quiet", h->by.unit);
}

static void heat_draw_notes(const struct heat *h, double height, struct buf *out)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    if (h->row_cells > 1 || h->col_cells > 1)
        buf_fmt(&text, "a tile is the median of %d x %d cells. ", h->row_cells, h->col_cells);
    if (h->missing)
        buf_fmt(&text, "grey: %d of %" PRId64 " cells have no value. ", h->missing,
                shape_cells(h->m));
    if (!shape_has_cell(h->m, h->m->row.n - 1, 0))
        buf_str(&text, "a pair is measured once. ");
    if (h->even && h->rows * h->cols > 1)
        buf_str(&text, "all values lie within 3 %. ");
    if (h->colour.r.log)
        buf_str(&text, "colours are logarithmic. ");
    buf_needs(out, &text);
    svg_text(out, 16, height - 12, ANCHOR_START, "small", buf_text(&text));
}

void heat_title(const struct matrix *m, char *out, size_t room)
{
    snprintf(out, room, "%s, %s by %s: %s", m->quantity, m->row.name, m->col.name, m->name);
    svg_title_case(out);
}

int heat_write_svg(const struct plot *p, struct buf *out, struct err *err)
{
    struct heat h CLEANUP(heat_fini) = {0};
    char title[120];
    if (heat_init(&h, p, PLOT_TILES_MAX, PLOT_TILES_MAX, err) < 0)
        return -1;
    lay_out(&h);
    heat_title(h.m, title, sizeof title);
    double width = h.left + map_width(&h) + BAR_GAP + BAR_WIDTH + BAR_TEXTS;
    double below = fmax(map_height(&h) + 46, fmax(bar_height(&h), rows_height(&h)) + 10);
    double height = TOP + below + 22;
    svg_begin(out, fmax(width, LEAST_WIDTH), height, p, title);
    svg_text(out, 16, 66, ANCHOR_START, "quiet", h.by.text);
    draw_tiles(&h, out);
    draw_borders(&h, out);
    if (h.texts)
        draw_texts(&h, out);
    draw_row_labels(&h, out);
    draw_nodes(&h, out);
    draw_col_labels(&h, out);
    if (!h.even)
        draw_bar(&h, out);
    heat_draw_notes(&h, height, out);
    svg_end(out);
    return 0;
}

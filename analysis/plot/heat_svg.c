// SPDX-License-Identifier: Apache-2.0
// Heat maps as SVG. Tiles of one colour are one path, and neighbours in a row one rectangle of it:
// that keeps the picture of 256 x 256 ranks below a megabyte.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "base/cleanup.h"
#include "model/shape.h"

enum {
    TOP_TEXT = 40, // what is measured, above the map, and the unit above the scale
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
#define HOLLOW_FRAME 3 // pixels
// Of differences: two colours, as strong as a difference is large, over whatever the page has. Blue
// and orange can be distinguished by everyone.
static const struct rgb better = {47, 111, 208}, worse = {214, 106, 0};
#define STRONGEST 0.78 // opacity: text on it stays readable

// -1…1 of a level of differences, in whole steps from the middle.
static double level_difference(int level)
{
    return (2 * level + 1 - HEAT_LEVELS) / (double)(HEAT_LEVELS - 1);
}

static const char *level_fill(const struct heat *h, int level, char *out, size_t room)
{
    double difference = h->given ? level_difference(level) : 0;
    struct rgb c = !h->given ? heat_colour(level) : difference < 0 ? better : worse;
    int n = snprintf(out, room, "fill=\"#%02x%02x%02x\"", c.r & 0xff, c.g & 0xff, c.b & 0xff);
    if (h->given)
        snprintf(out + n, room - (size_t)n, " fill-opacity=\"%.2f\"", STRONGEST * fabs(difference));
    return out;
}

// --- Layout --------------------------------------------------------------------------------------

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
        heat_value_text(h, h->values[i], text, sizeof text);
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
    heat_row_title(h, text, sizeof text);
    return fmax(map_height(h), CHARACTER * (double)strlen(text));
}

// The title below the columns may be wider than they are: the scale stands beside both.
static double bar_left(const struct heat *h)
{
    char text[64];
    axis_title(&h->m->col, text, sizeof text);
    double title = CHARACTER * (double)strlen(text);
    return h->left + fmax(map_width(h), (map_width(h) + title) / 2) + BAR_GAP;
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

// Inside, a tile is 1 by 1.
static void begin_tiles(const struct heat *h, const char *class, struct buf *out)
{
    buf_fmt(out,
            "<g class=\"%s\" shape-rendering=\"crispEdges\" transform=\"translate(%.6g "
            "%.6g)scale(%.6g %.6g)\">\n",
            class, h->left, h->top, h->tile_w, h->tile_h);
}

static void draw_tiles(const struct heat *h, struct buf *out)
{
    char fill[48];
    struct buf paths[HEAT_NONE] = {0};
    find_paths(h, paths);
    begin_tiles(h, "tiles", out);
    for (int level = 0; level < HEAT_NONE; level++) {
        if (paths[level].len)
            buf_fmt(out, "<path %s d=\"%s\"/>\n",
                    level == HEAT_MISSING ? "class=\"gap\""
                                          : level_fill(h, level, fill, sizeof fill),
                    buf_text(&paths[level]));
        buf_needs(out, &paths[level]);
        buf_free(&paths[level]);
    }
    buf_str(out, "</g>\n");
}

bool heat_is_bright(struct rgb c)
{
    return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b > 125;
}

// Of doubtful tiles only the frame is left.
static void draw_hollow(const struct heat *h, struct buf *out)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    double across = between(HOLLOW_FRAME / h->tile_w, 0, 0.25);
    double down = between(HOLLOW_FRAME / h->tile_h, 0, 0.25);
    for (int i = 0; i < h->rows * h->cols; i++)
        if (h->hollow[i])
            buf_fmt(&path, "M%.3g %.3gh%.3gv%.3gh-%.3gz", i % h->cols + across, i / h->cols + down,
                    1 - 2 * across, 1 - 2 * down, 1 - 2 * across);
    buf_needs(out, &path);
    if (!path.len)
        return;
    begin_tiles(h, "hollow", out);
    buf_fmt(out, "<path d=\"%s\"/>\n</g>\n", buf_text(&path));
}

static const char *text_class(const struct heat *h, int i)
{
    bool gap = h->levels[i] == HEAT_MISSING;
    if (!gap && (h->hollow[i] || h->given))
        return ""; // on the page's own colour, more or less
    return gap || heat_is_bright(heat_colour(h->levels[i])) ? "dark" : "light";
}

static void draw_texts(const struct heat *h, struct buf *out)
{
    char text[32];
    for (int i = 0; i < h->rows * h->cols; i++) {
        int row = i / h->cols, col = i % h->cols;
        if (h->levels[i] == HEAT_NONE)
            continue;
        heat_value_text(h, h->values[i], text, sizeof text);
        svg_text(out, h->left + (col + 0.5) * h->tile_w, h->top + (row + 0.5) * h->tile_h + 4,
                 ANCHOR_MIDDLE, text_class(h, i), text);
    }
}

static bool node_changes(const struct heat *h, const struct axis *a, int i)
{
    return heat_cpu_node(h->p, a, i) != heat_cpu_node(h->p, a, i - 1);
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
    double right = h->left + map_width(h), bottom = h->top + map_height(h);
    const struct axis *row = &h->m->row, *col = &h->m->col;
    bool rows = has_borders(h, row), cols = has_borders(h, col);
    for (int r = 1; rows && r < row->n; r++)
        if (node_changes(h, row, r))
            svg_line(out, "border", h->left, h->top + r * h->tile_h, right, h->top + r * h->tile_h);
    for (int c = 1; cols && c < col->n; c++)
        if (node_changes(h, col, c))
            svg_line(out, "border", h->left + c * h->tile_w, h->top, h->left + c * h->tile_w,
                     bottom);
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
        svg_text(out, h->left - 7, h->top + (r + 0.5) * h->tile_h + 4, ANCHOR_END, "quiet", text);
    }
    heat_row_title(h, text, sizeof text);
    svg_text_up(out, 20, h->top + rows_height(h) / 2, text);
}

// "node 1" once beside the ranks of it, where they are not named one by one.
static void draw_nodes(const struct heat *h, struct buf *out)
{
    char text[32];
    const struct axis *row = &h->m->row;
    for (int first = 0, end; first < row->n && !h->texts; first = end) {
        int64_t node = heat_cpu_node(h->p, row, first);
        for (end = first + 1; end < row->n && heat_cpu_node(h->p, row, end) == node; end++)
            ;
        double height = (end - first) * h->tile_h / h->row_cells;
        if (node < 0 || height < LABEL_PITCH)
            continue;
        snprintf(text, sizeof text, "node %" PRId64, node);
        svg_text(out, 32, h->top + first * h->tile_h / h->row_cells + height / 2 + 4, ANCHOR_START,
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
        svg_text(out, h->left + (c + 0.5) * h->tile_w, h->top + map_height(h) + 17, ANCHOR_MIDDLE,
                 "quiet", text);
    }
    axis_title(&h->m->col, text, sizeof text);
    svg_text(out, h->left + map_width(h) / 2, h->top + map_height(h) + 36, ANCHOR_MIDDLE, "quiet",
             text);
}

// The colours themselves, from the lowest up: what the tiles have, nothing between.
static void draw_ramp(const struct heat *h, double x, double height, struct buf *out)
{
    char fill[48];
    buf_fmt(out,
            "<g shape-rendering=\"crispEdges\" transform=\"translate(%.6g %.6g)scale(%d %.6g)\">\n",
            x, h->top + height, BAR_WIDTH, -height / HEAT_LEVELS);
    for (int i = 0; i < HEAT_LEVELS; i++) {
        int level = h->more_is_better ? HEAT_LEVELS - 1 - i : i;
        buf_fmt(out, "<path %s d=\"M0 %dh1v1h-1z\"/>\n", level_fill(h, level, fill, sizeof fill),
                i);
    }
    buf_str(out, "</g>\n");
}

static void draw_bar(const struct heat *h, struct buf *out)
{
    double x = bar_left(h), height = bar_height(h);
    struct scale s = {h->colour.r, h->top + height, h->top};
    struct ticks t;
    char text[32];
    draw_ramp(h, x, height, out);
    ticks_round(&t, &s.r, 6);
    for (int i = 0; i < t.n; i++) {
        double y = scale_at(&s, t.at[i]);
        tick_text(t.at[i], text, sizeof text);
        svg_line(out, "frame", x + BAR_WIDTH, y, x + BAR_WIDTH + 4, y);
        svg_text(out, x + BAR_WIDTH + 8, y + 4, ANCHOR_START, "quiet", text);
    }
    svg_text(out, x + BAR_WIDTH + 4, h->top - 10, ANCHOR_MIDDLE, "quiet", h->by.unit);
}

// "node of the CPU 0, node of the memory 3: 205.1 ns (203.0 to 207.2), disturbed".
static void tip_text(const struct heat *h, int row, int col, char *out, size_t room)
{
    char down[64], at[64], across[64], to[64], value[32], interval[64] = "";
    double v = h->values[row * h->cols + col];
    heat_row_title(h, down, sizeof down);
    heat_row_label(h, row, at, sizeof at);
    axis_title(&h->m->col, across, sizeof across);
    axis_value(&h->m->col, col, to, sizeof to);
    heat_value_text(h, v, value, sizeof value);
    double lo = h->given ? NAN : measured(h->m, &h->by, row, col, CELL_LO);
    double hi = h->given ? NAN : measured(h->m, &h->by, row, col, CELL_HI);
    if (isfinite(lo) && isfinite(hi))
        snprintf(interval, sizeof interval, " (%.*f to %.*f)", value_digits(v), lo, value_digits(v),
                 hi);
    snprintf(out, room, "%s %s, %s %s: %s %s%s%s", down, at, across, to,
             isfinite(v) ? value : "no value", isfinite(v) ? h->by.unit : "", interval,
             !h->hollow[row * h->cols + col] ? ""
             : h->given                      ? ", no significant difference"
                                             : ", disturbed");
}

// What cannot be seen, but has its value as its title.
static void draw_tips(const struct heat *h, struct buf *out)
{
    char text[400];
    begin_tiles(h, "tip", out);
    for (int i = 0; i < h->rows * h->cols; i++) {
        if (h->levels[i] == HEAT_NONE)
            continue;
        tip_text(h, i / h->cols, i % h->cols, text, sizeof text);
        buf_fmt(out, "<path d=\"M%d %dh1v1h-1z\"", i % h->cols, i / h->cols);
        svg_titled(out, "path", text);
    }
    buf_str(out, "</g>\n");
}

// ---- The whole ----------------------------------------------------------------------------------

double heat_draw(struct heat *h, double top, double *width, struct buf *out)
{
    h->top = top + TOP_TEXT;
    lay_out(h);
    svg_text(out, 16, top + 14, ANCHOR_START, "quiet", h->by.text);
    draw_tiles(h, out);
    draw_hollow(h, out);
    draw_borders(h, out);
    if (h->texts)
        draw_texts(h, out);
    draw_row_labels(h, out);
    draw_nodes(h, out);
    draw_col_labels(h, out);
    if (!h->even)
        draw_bar(h, out);
    if (h->row_cells == 1 && h->col_cells == 1 && h->rows * h->cols <= PLOT_TIPS_MAX)
        draw_tips(h, out);
    *width = fmax(bar_left(h) + BAR_WIDTH + BAR_TEXTS, LEAST_WIDTH);
    return h->top + fmax(map_height(h) + 46, fmax(bar_height(h), rows_height(h)) + 10);
}

void heat_notes(const struct heat *h, struct buf *text)
{
    int64_t cells = shape_cells(h->m);
    if (h->row_cells > 1 || h->col_cells > 1)
        buf_fmt(text, "a tile is the median of %d x %d cells. ", h->row_cells, h->col_cells);
    if (h->missing)
        buf_fmt(text, "grey: %d of %" PRId64 " cells have no value. ", h->missing, cells);
    if (h->n_doubtful)
        buf_fmt(text, "%s%s (%d of %" PRId64 " cells). ",
                h->row_cells == 1 && h->col_cells == 1 ? "hollow: "
                : h->given                             ? "hollow: most cells have "
                                                       : "",
                h->given ? "no significant difference" : "disturbed", h->n_doubtful, cells);
    if (!shape_has_cell(h->m, h->m->row.n - 1, 0))
        buf_str(text, "a pair is measured once. ");
    if (h->even && h->rows * h->cols > 1)
        buf_str(text, "all values lie within 3 %. ");
    if (h->colour.r.log)
        buf_str(text, "colours are logarithmic. ");
    if (h->beyond)
        buf_fmt(text, "what is beyond %.0f %% has the strongest colour. ", h->colour.r.hi);
}

int heat_write_svg(const struct plot *p, struct buf *out, struct err *err)
{
    struct heat h CLEANUP(heat_fini) = {0};
    CLEANUP_BUF struct buf heading = BUF_INIT;
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_BUF struct buf notes = BUF_INIT;
    struct svg_picture picture = {.heading = &heading, .body = &body, .notes = &notes};
    char title[120];
    if (heat_init(&h, p, PLOT_TILES_MAX, PLOT_TILES_MAX, err) < 0)
        return -1;
    heat_title(&h, title, sizeof title);
    picture.title = title;
    svg_heading(&heading, p->run);
    picture.height = heat_draw(&h, SVG_TOP, &picture.width, &body);
    heat_notes(&h, &notes);
    svg_write(out, &picture);
    return 0;
}

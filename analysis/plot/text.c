// SPDX-License-Identifier: Apache-2.0
// The same pictures out of characters, for a terminal. Lines are dots of Braille, two by four in a
// character, or '*'; where a line ends its name stands at the right. Tiles are shades.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "analysis/plot/plot.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8_columns.h"

enum {
    SCALE_WIDTH = CANVAS_SCALE,
    NAMES_WIDTH = 18,
    TILE_WIDTH = 2,
    X_LABEL = 6,
};

static void text_draw_line(struct canvas *k, const struct chart *c, const struct line *l)
{
    const struct point *before = NULL;
    for (int x = 0; x < c->n_x; x++) {
        const struct point *p = &l->points[x];
        if (point_known(p)) {
            const struct point *from = before ? before : p;
            canvas_stroke(k, chart_x(c, from->x), chart_y(c, from->y), chart_x(c, p->x),
                          chart_y(c, p->y), l->colour);
        }
        before = point_known(p) ? p : NULL;
    }
}

// --- Out -----------------------------------------------------------------------------------------

static int last_known(const struct chart *c, const struct line *l)
{
    int x = c->n_x - 1;
    while (x >= 0 && !point_known(&l->points[x]))
        x--;
    return x;
}

// What ends in this row: "0 2 4", "node 1: 16 ranks".
static void write_names(const struct canvas *k, const struct chart *c, int row, struct buf *out)
{
    int used = 0;
    for (int i = 0; i < c->n_lines; i++) {
        const struct line *l = &c->lines[i];
        int last = last_known(c, l);
        char name[64];
        if (last < 0 || (int)lround(chart_y(c, l->points[last].y)) / k->fine_y != row)
            continue;
        if (c->grouped)
            snprintf(name, sizeof name, "%.*s", (int)strcspn(l->label, ":"), l->label);
        else
            snprintf(name, sizeof name, "%s", l->name);
        if (used + 1 + (int)strlen(name) > NAMES_WIDTH && used) {
            buf_str(out, used + 2 <= NAMES_WIDTH ? " +" : "");
            return;
        }
        buf_char(out, ' ');
        text_colour_on(k->how, l->colour, out);
        buf_str(out, name);
        text_colour_off(k->how, l->colour, out);
        used += 1 + (int)strlen(name);
    }
}

// Puts the tick's name into the line of labels, if there is room after the last one.
static void put_label(char *labels, int width, int *end, int at, const char *text)
{
    int n = (int)strlen(text);
    if (at < *end || at + n > width)
        return;
    memcpy(labels + at, text, (size_t)n);
    *end = at + (n + 1 > X_LABEL ? n + 1 : X_LABEL);
}

static void put_labels(const struct canvas *k, const struct chart *c, char *labels, int width)
{
    struct ticks t = {0};
    char text[32];
    int end = 0;
    if (c->p->bandwidth)
        ticks_round(&t, &c->x.r, 6);
    for (int i = 0; i < (c->p->bandwidth ? t.n : c->n_x); i++) {
        double v = c->p->bandwidth ? t.at[i] : chart_x_value(c, 0, i);
        if (c->p->bandwidth)
            tick_text(v, text, sizeof text);
        else
            axis_value(c->x_axis, i, text, sizeof text);
        put_label(labels, width, &end, (int)chart_x(c, v) / k->fine_x, text);
    }
}

static void write_x_axis(const struct canvas *k, const struct chart *c, struct buf *out)
{
    char labels[PLOT_TEXT_WIDTH_MAX + 1];
    int width = k->width + NAMES_WIDTH;
    memset(labels, ' ', (size_t)width);
    put_labels(k, c, labels, width);
    while (width && labels[width - 1] == ' ')
        width--;
    buf_fmt(out, "%*s%s", SCALE_WIDTH - 1, "", k->how->unicode ? "└" : "+");
    for (int x = 0; x < k->width; x++)
        buf_str(out, k->how->unicode ? "─" : "-");
    buf_fmt(out, "\n%*s%.*s\n", SCALE_WIDTH, "", width, labels);
}

static void write_legend(const struct chart *c, const struct plot_text *how, struct buf *out)
{
    char title[96], name[32];
    CLEANUP_BUF struct buf line = BUF_INIT;
    axis_title(c->x_axis, title, sizeof title);
    buf_fmt(&line, "x: %s", c->p->bandwidth ? c->x_by.text : title);
    axis_title(c->series, name, sizeof name);
    buf_fmt(&line, "; at the right: %s%s", c->p->n_family > 1 ? "mix of reads and writes, " : "",
            c->grouped ? "medians of" : name);
    if (c->grouped)
        buf_fmt(&line, " %ss", c->series->name);
    if (c->y.r.log)
        buf_str(&line, "; y is logarithmic");
    if (c->missing)
        buf_fmt(&line, "; %d cell%s no value", c->missing, c->missing == 1 ? " has" : "s have");
    if (c->disturbed)
        buf_fmt(&line, "; %d of %d cells are disturbed", c->disturbed,
                c->p->matrix->row.n * c->p->matrix->col.n *
                    (c->p->n_family > 1 ? c->p->n_family : 1));
    text_caption(how, buf_text(&line), SCALE_WIDTH, out);
}

static int write_curve(const struct plot *p, const struct plot_text *how, struct buf *out,
                       struct err *err)
{
    struct chart c CLEANUP(chart_fini) = {0};
    struct canvas k CLEANUP(canvas_fini) = {0};
    struct ticks t;
    char title[96];
    if (chart_init(&c, p, err) < 0 || canvas_init(&k, how, NAMES_WIDTH, err) < 0)
        return -1;
    chart_place(&c, (struct box){0, k.width * k.fine_x - 1, 0, k.height * k.fine_y - 1});
    for (int i = 0; i < c.n_lines; i++)
        text_draw_line(&k, &c, &c.lines[i]);
    chart_title(&c, title, sizeof title);
    buf_fmt(out, "%s\n%s\n", title, c.y_by.text);
    ticks_round(&t, &c.y.r, k.height / 3);
    for (int row = 0; row < k.height; row++) {
        canvas_write_scale(&k, &c.y, &t, row, out);
        for (int x = 0; x < k.width; x++)
            canvas_write(&k, row * k.width + x, out);
        write_names(&k, &c, row, out);
        buf_char(out, '\n');
    }
    write_x_axis(&k, &c, out);
    write_legend(&c, how, out);
    return 0;
}

// --- Heat maps -----------------------------------------------------------------------------------

static const char *const shades[2][5] = {{".", ":", "+", "%", "@"}, {"·", "░", "▒", "▓", "█"}};
enum { SHADES = COUNT_OF(shades[0]) };

static void text_repeat(const char *glyph, int n, struct buf *out)
{
    for (int i = 0; i < n; i++)
        buf_str(out, glyph);
}

// A tile, `width` characters wide.
static void write_level(const struct plot_text *how, int level, int width, struct buf *out)
{
    if (level == HEAT_NONE) {
        text_repeat(" ", width, out);
    } else if (level == HEAT_MISSING) {
        text_repeat("?", width, out);
    } else if (how->colour) { // the cube of 6 x 6 x 6 colours
        struct rgb c = heat_colour(level);
        buf_fmt(out, "\033[48;5;%dm%*s\033[0m",
                16 + 36 * ((c.r * 5 + 127) / 255) + 6 * ((c.g * 5 + 127) / 255) +
                    (c.b * 5 + 127) / 255,
                width, "");
    } else {
        text_repeat(shades[how->unicode][level * SHADES / HEAT_LEVELS], width, out);
    }
}

static void text_write_heads(const struct heat *h, int left, int tile, struct buf *out)
{
    int width = text_label_width(&h->m->col), every = (width + tile) / tile;
    char text[64];
    buf_fmt(out, "%*s", left + 1, "");
    for (int c = 0; c < h->cols; c += every) {
        axis_value(&h->m->col, c * h->col_cells, text, sizeof text);
        int padded = c + every < h->cols ? every * tile : 0;
        buf_fmt(out, "%-*s", padded, text);
    }
    buf_char(out, '\n');
}

// Returns the columns that it takes.
static int write_shades(const struct heat *h, const struct plot_text *how, struct buf *out)
{
    char low[32], high[32];
    int columns = 0;
    CLEANUP_BUF struct buf text = BUF_INIT;
    value_text(h->even ? h->lo : h->colour.r.lo, low, sizeof low);
    value_text(h->even ? h->hi : h->colour.r.hi, high, sizeof high);
    if (h->even) {
        buf_str(&text, h->rows * h->cols > 1 ? "all values lie within 3 %" : "one value");
        if (isfinite(h->lo))
            buf_fmt(&text, ": %s%s%s %s", low, strcmp(low, high) ? " to " : "",
                    strcmp(low, high) ? high : "", h->by.unit);
    } else {
        buf_fmt(out, "%s ", low);
        for (int i = 0; i < (int)SHADES; i++)
            write_level(how, (2 * i + 1) * HEAT_LEVELS / (2 * (int)SHADES), TILE_WIDTH, out);
        columns = utf8_columns(low) + 1 + (int)SHADES * TILE_WIDTH;
        buf_fmt(&text, " %s %s%s", high, h->by.unit, h->colour.r.log ? ", logarithmic" : "");
    }
    buf_needs(out, &text);
    buf_str(out, buf_text(&text));
    return columns + utf8_columns(buf_text(&text));
}

static void write_heat_legend(const struct heat *h, const struct plot_text *how, struct buf *out)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    int columns = write_shades(h, how, out);
    if (h->row_cells > 1 || h->col_cells > 1)
        buf_fmt(&line, "; a tile is the median of %d x %d cells", h->row_cells, h->col_cells);
    if (h->missing)
        buf_fmt(&line, "; ?: %d cell%s no value", h->missing, h->missing == 1 ? " has" : "s have");
    if (h->n_doubtful)
        buf_fmt(&line, "; %d %s %s", h->n_doubtful, h->n_doubtful == 1 ? "cell is" : "cells are",
                h->given ? "without significance" : "disturbed");
    // Else the shades have a line of their own.
    bool beside = columns + utf8_columns(buf_text(&line)) <= how->width;
    if (!beside) {
        buf_char(out, '\n');
        text_caption(how, buf_text(&line) + strspn(buf_text(&line), "; "), 0, out);
        return;
    }
    buf_str(out, buf_text(&line));
    buf_char(out, '\n');
}

static int write_heat(const struct plot *p, const struct plot_text *how, struct buf *out,
                      struct err *err)
{
    struct heat h CLEANUP(heat_fini) = {0};
    char title[120], text[64], rows[64], cols[64];
    CLEANUP_BUF struct buf head = BUF_INIT;
    int left = text_label_width(&p->matrix->row);
    int most = (how->width - left - 1) / TILE_WIDTH;
    // Room for each column's name, if there are few; else as small as tiles can be. There may be as
    // many rows as columns: the reader can scroll.
    int tile = text_label_width(&p->matrix->col) + 1;
    if (tile < TILE_WIDTH || tile * p->matrix->col.n > how->width - left - 1)
        tile = TILE_WIDTH;
    if (heat_init(&h, p, most, most, err) < 0)
        return -1;
    heat_title(&h, title, sizeof title);
    heat_row_title(&h, rows, sizeof rows);
    axis_title(&h.m->col, cols, sizeof cols);
    buf_fmt(out, "%s\n", title);
    buf_fmt(&head, "%s; down: %s, across: %s", h.by.text, rows, cols);
    text_caption(how, buf_text(&head), 0, out);
    text_write_heads(&h, left, tile, out);
    for (int row = 0; row < h.rows; row++) {
        axis_value(&h.m->row, row * h.row_cells, text, sizeof text);
        if (h.of_nodes)
            heat_row_label(&h, row, text, sizeof text);
        buf_fmt(out, "%*s ", left, text);
        for (int c = 0; c < h.cols; c++)
            write_level(how, h.levels[row * h.cols + c], tile, out);
        buf_char(out, '\n');
    }
    write_heat_legend(&h, how, out);
    return 0;
}

int plot_write_text(const struct plot *p, const struct plot_text *how, struct buf *out,
                    struct err *err)
{
    struct plot_text fit = plot_text_fit(how);
    if ((curve_fits(p) ? write_curve : write_heat)(p, &fit, out, err) < 0)
        return -1;
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
}

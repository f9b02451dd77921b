// SPDX-License-Identifier: Apache-2.0
// Lines out of characters: dots of Braille, two by four in a character, or '*'.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "base/utf8_columns.h"

void canvas_fini(struct canvas *k)
{
    free(k->dots);
    free(k->colours);
}

int canvas_init(struct canvas *k, const struct plot_text *how, int right, struct err *err)
{
    *k = (struct canvas){.how = how,
                         .width = how->width - CANVAS_SCALE - right,
                         .height = how->height,
                         .fine_x = how->unicode ? 2 : 1,
                         .fine_y = how->unicode ? 4 : 1};
    size_t n = (size_t)k->width * (size_t)k->height;
    k->dots = calloc(n, 1);
    k->colours = malloc(n);
    if (!k->dots || !k->colours)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
    memset(k->colours, -1, n);
    return 0;
}

void canvas_dot(struct canvas *k, int x, int y, int colour)
{
    // Which bit of U+2800… a dot is: columns of three, the fourth row came later.
    static const unsigned char bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    if (x < 0 || y < 0 || x >= k->width * k->fine_x || y >= k->height * k->fine_y)
        return;
    int at = y / k->fine_y * k->width + x / k->fine_x;
    k->dots[at] |= bits[y % k->fine_y][x % k->fine_x];
    k->colours[at] = (signed char)colour;
}

void canvas_stroke(struct canvas *k, double x1, double y1, double x2, double y2, int colour)
{
    int steps = (int)ceil(fmax(fmax(fabs(x2 - x1), fabs(y2 - y1)), 1));
    for (int i = 0; i <= steps; i++)
        canvas_dot(k, (int)lround(x1 + (x2 - x1) * i / steps),
                   (int)lround(y1 + (y2 - y1) * i / steps), colour);
}

void text_colour_on(const struct plot_text *how, int colour, struct buf *out)
{
    static const int ansi[PLOT_GROUPS_MAX] = {34, 33, 32, 35, 31, 36, 94, 90};
    if (how->colour && colour >= 0)
        buf_fmt(out, "\033[%dm", ansi[colour]);
}

void text_colour_off(const struct plot_text *how, int colour, struct buf *out)
{
    if (how->colour && colour >= 0)
        buf_str(out, "\033[0m");
}

void canvas_write(const struct canvas *k, int at, struct buf *out)
{
    unsigned char dots = k->dots[at];
    if (!dots) {
        buf_char(out, ' ');
        return;
    }
    text_colour_on(k->how, k->colours[at], out);
    if (k->how->unicode) // U+2800 + dots
        buf_fmt(out, "\xe2%c%c", 0xa0 | dots >> 6, 0x80 | (dots & 0x3f));
    else
        buf_char(out, '*');
    text_colour_off(k->how, k->colours[at], out);
}

void canvas_write_scale(const struct canvas *k, const struct scale *y, const struct ticks *t,
                        int row, struct buf *out)
{
    char text[32] = "";
    for (int i = 0; i < t->n; i++)
        if ((int)lround(scale_at(y, t->at[i])) / k->fine_y == row)
            tick_text(t->at[i], text, sizeof text);
    buf_fmt(out, "%*s ", CANVAS_SCALE - 2, text);
    if (k->how->unicode)
        buf_str(out, *text ? "┤" : "│");
    else
        buf_char(out, *text ? '+' : '|');
}

struct plot_text plot_text_fit(const struct plot_text *how)
{
    struct plot_text fit = *how;
    fit.width = how->width < PLOT_TEXT_WIDTH_MIN   ? PLOT_TEXT_WIDTH_MIN
                : how->width > PLOT_TEXT_WIDTH_MAX ? PLOT_TEXT_WIDTH_MAX
                                                   : how->width;
    return fit;
}

void text_caption(const struct plot_text *how, const char *text, int indent, struct buf *out)
{
    do {
        size_t shown, n = utf8_fold(text, how->width - indent, " ", &shown);
        buf_fmt(out, "%*s%.*s\n", indent, "", (int)shown, text);
        text += n;
    } while (*text);
}

int text_label_width(const struct axis *a)
{
    char text[64];
    int most = 0;
    for (int i = 0; i < a->n; i++) {
        axis_value(a, i, text, sizeof text);
        most = (int)strlen(text) > most ? (int)strlen(text) : most;
    }
    return most;
}

// SPDX-License-Identifier: Apache-2.0
// The differences of two runs out of characters: a table of per cent where there is room, else a
// sign a tile. What is not significant is a dot.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/plot/difference.h"
#include "analysis/plot/parts.h"
#include "base/cleanup.h"

enum { VALUE_WIDTH = 6, SIGN_WIDTH = 2, RED = 4, BLUE = 0 }; // colours of text_colour_on

// "+18", "." or "" in `width` characters.
static void write_tile(const struct heat *h, const struct plot_text *how, int i, int width,
                       struct buf *out)
{
    char text[32] = "";
    double v = h->values[i];
    bool known = isfinite(v);
    if (known && h->hollow[i])
        snprintf(text, sizeof text, ".");
    else if (known && width >= VALUE_WIDTH)
        heat_value_text(h, v, text, sizeof text);
    else if (known)
        snprintf(text, sizeof text, "%c", v < 0 ? '-' : '+');
    int colour = !known || h->hollow[i] ? -1 : (v > 0) != h->more_is_better ? RED : BLUE;
    text_colour_on(how, colour, out);
    buf_fmt(out, "%*s", width, text);
    text_colour_off(how, colour, out);
}

static void write_tile_heads(const struct heat *h, int left, int width, struct buf *out)
{
    char text[64], last[64];
    axis_value(&h->m->col, h->m->col.n - 1, last, sizeof last);
    int every = ((int)strlen(last) + width) / width;
    buf_fmt(out, "%*s", left, "");
    for (int c = 0; c < h->cols; c++) {
        axis_value(&h->m->col, c * h->col_cells, text, sizeof text);
        if (c % every == every - 1)
            buf_fmt(out, "%*s", every * width, text);
    }
    buf_char(out, '\n');
}

// Rows have the node of their CPU beside them where there is room for it.
static int label_columns(const struct heat *h)
{
    char text[64];
    int most = 0;
    for (int r = 0; r < h->rows; r++) {
        heat_row_label(h, r * h->row_cells, text, sizeof text);
        most = (int)strlen(text) > most ? (int)strlen(text) : most;
    }
    return most;
}

// Tiles and labels that fit the width.
static int place_tiles(struct heat *h, const struct plot *p, const double *percent,
                       const bool *doubtful, const struct plot_text *fit, int *left, int *width,
                       struct err *err)
{
    int labels = text_label_width(&p->matrix->row);
    do {
        *left = labels + 1;
        *width = *left + p->matrix->col.n * VALUE_WIDTH <= fit->width ? VALUE_WIDTH : SIGN_WIDTH;
        int most = (fit->width - *left) / *width;
        heat_fini(h);
        if (heat_init_differences(h, p, percent, doubtful, most, most, err) < 0)
            return -1;
        labels = label_columns(h);
    } while (labels >= *left);
    return 0;
}

int difference_write_text(const struct plot *p, const double *percent, const bool *doubtful,
                          const struct plot_text *how, struct buf *out, struct err *err)
{
    struct heat h CLEANUP(heat_fini) = {0};
    struct plot_text fit = plot_text_fit(how);
    char rows[64], cols[64], text[64];
    CLEANUP_BUF struct buf line = BUF_INIT;
    int left, width;
    if (place_tiles(&h, p, percent, doubtful, &fit, &left, &width, err) < 0)
        return -1;
    heat_row_title(&h, rows, sizeof rows);
    axis_title(&h.m->col, cols, sizeof cols);
    buf_fmt(&line, "%s: difference (%%); down: %s, across: %s", h.m->name, rows, cols);
    text_caption(&fit, buf_text(&line), 0, out);
    write_tile_heads(&h, left, width, out);
    for (int r = 0; r < h.rows; r++) {
        heat_row_label(&h, r * h.row_cells, text, sizeof text);
        buf_fmt(out, "%*s", left, text);
        for (int c = 0; c < h.cols; c++)
            write_tile(&h, &fit, r * h.cols + c, width, out);
        buf_char(out, '\n');
    }
    bool several = h.row_cells > 1 || h.col_cells > 1;
    if (several)
        buf_fmt(out, "each sign is the median of %d x %d cells; ", h.row_cells, h.col_cells);
    buf_fmt(out, ".: %sno significant difference; %s%s\n", several ? "most have " : "",
            h.more_is_better ? "+" : "-", " is better");
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
}

// SPDX-License-Identifier: Apache-2.0
// All bins are equally wide on a logarithmic axis, so the height of a bar is its number of samples.
// The line is the share of samples up to each edge: it is exact there, where bars depend on the
// bins.
#include "analysis/plot/distribution.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "base/cleanup.h"
#include "base/str.h"

enum {
    DIST_WIDTH = 900,
    DIST_HEIGHT = 460,
    DIST_LEFT = 76,
    DIST_RIGHT = DIST_WIDTH - 76,
    DIST_TOP = 92,
    DIST_BOTTOM = DIST_HEIGHT - 68,
    MARK_STEP = 13, // names of percentiles that are close stand above each other
    MARK_ROOM = 76,
    TEXT_LEFT = 8,
    TEXT_RIGHT = 2,
    BINS_FEW = 8,
    BINS_BY_ROOT = 4,
};
#define BAR_GAP 0.5    // pixels on each side
#define TOP_SPACE 1.05 // of the highest bar
static const double percentiles[] = {50, 90, 99};

static void axis_place_words(const struct axis *a, int at, char *out, size_t room)
{
    char name[32], value[AXIS_LABEL_ROOM];
    axis_words(a, name, sizeof name);
    if (at < 0) {
        snprintf(out, room, "every %s", name);
        return;
    }
    axis_value(a, at, value, sizeof value);
    snprintf(out, room, "%s %s", name, value);
}

void distribution_title(const struct matrix *m, int row, int col, char *out, size_t room)
{
    char rows[64], cols[64], quantity[sizeof m->quantity];
    axis_place_words(&m->row, row, rows, sizeof rows);
    axis_place_words(&m->col, col, cols, sizeof cols);
    snprintf(quantity, sizeof quantity, "%s", m->quantity);
    for (char *p = quantity; *p; p++)
        *p = *p == '_' ? ' ' : *p;
    bool same = strcmp(m->name, m->quantity) == 0;
    snprintf(out, room, "%s%s%s, %s, %s", m->name, same ? "" : " ", same ? "" : quantity, rows,
             cols);
    svg_title_case(out);
}

// Of few samples narrow bins would be a comb: neighbours are joined until there are no more than
// BINS_BY_ROOT for the square root of the samples, and no more than `most`.
static struct histogram shown_bins(const struct histogram *h, int most)
{
    struct histogram shown = *h;
    double fit = fmax(BINS_FEW, BINS_BY_ROOT * sqrt((double)h->n));
    while (shown.n_bins > most || shown.n_bins > fit) {
        shown.n_bins /= 2;
        for (int i = 0; i < shown.n_bins; i++)
            shown.counts[i] = shown.counts[2 * i] + shown.counts[2 * i + 1];
    }
    return shown;
}

static int64_t highest_bar(const struct histogram *h)
{
    int64_t most = 1;
    for (int i = 0; i < h->n_bins; i++)
        most = h->counts[i] > most ? h->counts[i] : most;
    return most;
}

// Of equal samples the axis is two per cent wide.
static struct scale dist_x_scale(const struct histogram *h, double from, double to)
{
    double pad = h->high > h->low ? 1 : 1.01;
    return (struct scale){{h->low / pad, h->high * pad, true}, from, to};
}

static double bar_edge(const struct histogram *h, const struct scale *x, int i)
{
    return h->high > h->low ? scale_at(x, pooled_edge(h, i)) : i ? x->to : x->from;
}

static void samples_text(const struct distribution *d, char *out, size_t room)
{
    snprintf(out, room, "%" PRId64 " samples of %d cell%s", d->histogram->n, d->cells,
             str_plural(d->cells));
}

// --- SVG -----------------------------------------------------------------------------------------

static void draw_counts(const struct scale *y, struct buf *out)
{
    svg_grid(y, 6, true, DIST_LEFT, DIST_RIGHT, out);
    svg_text_up(out, 20, (DIST_TOP + DIST_BOTTOM) / 2.0, "samples in a bin (bars)");
}

static void draw_shares(const struct scale *share, struct buf *out)
{
    char text[16];
    for (int percent = 0; percent <= 100; percent += 25) {
        snprintf(text, sizeof text, "%d %%", percent);
        svg_text(out, DIST_RIGHT + 8, scale_at(share, percent) + 4, ANCHOR_START, "quiet", text);
    }
    svg_text_up(out, DIST_WIDTH - 12, (DIST_TOP + DIST_BOTTOM) / 2.0, "samples below (line)");
}

static void draw_values(const struct distribution *d, const struct scale *x, struct buf *out)
{
    struct ticks t;
    char text[64];
    ticks_round(&t, &x->r, 8);
    for (int i = 0; i < t.n; i++) {
        double at = scale_at(x, t.at[i]);
        tick_text(t.at[i], text, sizeof text);
        svg_line(out, "frame", at, DIST_BOTTOM, at, DIST_BOTTOM + 5);
        svg_text(out, at, DIST_BOTTOM + 19, ANCHOR_MIDDLE, "quiet", text);
    }
    svg_line(out, "frame", DIST_LEFT, DIST_BOTTOM, DIST_RIGHT, DIST_BOTTOM);
    char samples[64], words[160];
    samples_text(d, samples, sizeof samples);
    snprintf(words, sizeof words, "%s, logarithmic; %s", d->unit, samples);
    svg_text(out, (DIST_LEFT + DIST_RIGHT) / 2.0, DIST_BOTTOM + 42, ANCHOR_MIDDLE, "quiet", words);
}

static void draw_bin(const struct distribution *d, const struct histogram *h, const struct scale *x,
                     const struct scale *y, int i, struct buf *out)
{
    double left = bar_edge(h, x, i), right = bar_edge(h, x, i + 1);
    double top = scale_at(y, (double)h->counts[i]);
    char low[32], high[32];
    value_text(pooled_edge(h, i), low, sizeof low);
    value_text(pooled_edge(h, i + 1), high, sizeof high);
    buf_str(out, "<path class=\"f0\" fill-opacity=\".6\" d=\"");
    svg_point(out, 'M', left + BAR_GAP, DIST_BOTTOM);
    svg_point(out, 'L', left + BAR_GAP, top);
    svg_point(out, 'L', right - BAR_GAP, top);
    svg_point(out, 'L', right - BAR_GAP, DIST_BOTTOM);
    buf_fmt(out, "Z\"><title>%s to %s %s: %" PRId64 " sample%s (%.1f %%)</title></path>\n", low,
            high, d->unit, h->counts[i], str_plural(h->counts[i]),
            100.0 * (double)h->counts[i] / (double)h->n);
}

static void draw_line_below(const struct histogram *h, const struct scale *x,
                            const struct scale *share, struct buf *out)
{
    int64_t below = 0;
    buf_str(out, "<path class=\"line c1\" d=\"");
    svg_point(out, 'M', bar_edge(h, x, 0), scale_at(share, 0));
    for (int i = 0; i < h->n_bins; i++) {
        below += h->counts[i];
        svg_point(out, 'L', bar_edge(h, x, i + 1),
                  scale_at(share, 100.0 * (double)below / (double)h->n));
    }
    buf_str(out, "\"/>\n");
}

static void draw_percentiles(const struct distribution *d, const struct scale *x, struct buf *out)
{
    double last = -INFINITY;
    int raised = 0;
    for (size_t i = 0; i < COUNT_OF(percentiles); i++) {
        double v = pooled_quantile(d->histogram, percentiles[i] / 100), at = scale_at(x, v);
        char value[32], text[48];
        value_text(v, value, sizeof value);
        snprintf(text, sizeof text, "p%.0f %s", percentiles[i], value);
        raised = at < last + MARK_ROOM ? raised + 1 : 0;
        double top = DIST_TOP - 4 - raised * MARK_STEP;
        svg_line(out, "mark", at, top, at, DIST_BOTTOM);
        bool end = at > DIST_RIGHT - MARK_ROOM;
        svg_text(out, end ? at - 3 : at + 3, top, end ? ANCHOR_END : ANCHOR_START, "small", text);
        last = at;
    }
}

int distribution_write_svg(const struct distribution *d, const struct run *run, struct buf *out,
                           struct err *err)
{
    CLEANUP_BUF struct buf heading = BUF_INIT, body = BUF_INIT, notes = BUF_INIT;
    const struct histogram *h = d->histogram, bars_of = shown_bins(h, SKETCH_BINS_MAX);
    const struct scale x = dist_x_scale(h, DIST_LEFT, DIST_RIGHT);
    const struct scale y = {
        {0, (double)highest_bar(&bars_of) * TOP_SPACE, false}, DIST_BOTTOM, DIST_TOP};
    const struct scale share = {{0, 100 * TOP_SPACE, false}, DIST_BOTTOM, DIST_TOP};
    draw_counts(&y, &body);
    draw_shares(&share, &body);
    for (int i = 0; i < bars_of.n_bins; i++)
        if (bars_of.counts[i])
            draw_bin(d, &bars_of, &x, &y, i, &body);
    draw_line_below(h, &x, &share, &body);
    draw_percentiles(d, &x, &body);
    draw_values(d, &x, &body);
    svg_heading(&heading, run);
    svg_write(out, &(struct svg_picture){.width = DIST_WIDTH,
                                         .height = DIST_HEIGHT,
                                         .title = d->title,
                                         .heading = &heading,
                                         .body = &body,
                                         .notes = &notes});
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
}

// --- Characters ----------------------------------------------------------------------------------

static const char *const bars[2][9] = {{" ", ".", ".", ":", ":", "|", "|", "#", "#"},
                                       {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}};
enum { EIGHTHS = COUNT_OF(bars[0]) - 1 };

static void write_bars(const struct histogram *h, int each, const struct plot_text *how, int row,
                       struct buf *out)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    double most = (double)highest_bar(h);
    size_t used = 0; // without blanks at the end
    for (int i = 0; i < h->n_bins; i++) {
        double eighths = EIGHTHS * ((double)h->counts[i] / most * how->height - row);
        // A bin with a sample is seen.
        int level = eighths < 0 ? 0 : eighths > EIGHTHS ? EIGHTHS : (int)lround(eighths);
        if (row == 0 && h->counts[i] && level == 0)
            level = 1;
        for (int k = 0; k < each; k++)
            buf_str(&line, bars[how->unicode][level]);
        used = level ? line.len : used;
    }
    buf_needs(out, &line);
    if (buf_ok(&line))
        buf_add(out, line.data, used);
}

static void write_count_scale(const struct histogram *h, const struct plot_text *how, int row,
                              struct buf *out)
{
    char text[16] = "";
    if (row == how->height - 1)
        snprintf(text, sizeof text, "%" PRId64, highest_bar(h));
    buf_fmt(out, "%*s ", TEXT_LEFT - 2, text);
    if (how->unicode)
        buf_str(out, *text ? "┤" : "│");
    else
        buf_char(out, *text ? '+' : '|');
}

static void put_word(char *line, int width, int at, const char *word, bool centred)
{
    int n = (int)strlen(word), from = centred ? at - n / 2 : at;
    from = from < 0 ? 0 : from + n > width ? width - n : from;
    for (int i = from > 0 ? from - 1 : 0; i < from + n && i < width; i++)
        if (line[i] != ' ')
            return; // there is another one
    memcpy(line + from, word, (size_t)n);
}

// Edges and percentiles where they lie.
static void write_places(const struct histogram *h, int width, struct buf *out)
{
    char edges[PLOT_TEXT_WIDTH_MAX + 1], marks[PLOT_TEXT_WIDTH_MAX + 1], word[32];
    const struct scale x = dist_x_scale(h, 0, width - 1);
    struct ticks t;
    memset(edges, ' ', sizeof edges);
    memset(marks, ' ', sizeof marks);
    ticks_round(&t, &x.r, width / 14);
    for (int i = 0; i < t.n; i++) {
        tick_text(t.at[i], word, sizeof word);
        put_word(edges, width, (int)lround(scale_at(&x, t.at[i])), word, true);
    }
    for (size_t i = 0; i < COUNT_OF(percentiles); i++) {
        snprintf(word, sizeof word, "p%.0f", percentiles[i]);
        put_word(marks, width, (int)lround(scale_at(&x, pooled_quantile(h, percentiles[i] / 100))),
                 word, true);
    }
    for (int k = 0; k < 2; k++) {
        char *line = k ? marks : edges;
        int n = width;
        while (n && line[n - 1] == ' ')
            n--;
        buf_fmt(out, "%*s%.*s\n", TEXT_LEFT, "", n, line);
    }
}

int distribution_write_text(const struct distribution *d, const struct plot_text *how,
                            struct buf *out, struct err *err)
{
    struct plot_text fit = *how;
    fit.width = how->width < PLOT_TEXT_WIDTH_MIN   ? PLOT_TEXT_WIDTH_MIN
                : how->width > PLOT_TEXT_WIDTH_MAX ? PLOT_TEXT_WIDTH_MAX
                                                   : how->width;
    int room = fit.width - TEXT_LEFT - TEXT_RIGHT;
    const struct histogram h = shown_bins(d->histogram, room);
    int each = room / h.n_bins;
    char value[32], samples[64];
    buf_fmt(out, "%s\nsamples in a bin\n", d->title);
    for (int row = fit.height - 1; row >= 0; row--) {
        write_count_scale(&h, &fit, row, out);
        write_bars(&h, each, &fit, row, out);
        buf_char(out, '\n');
    }
    buf_fmt(out, "%*s%s", TEXT_LEFT - 1, "", fit.unicode ? "└" : "+");
    for (int i = 0; i < h.n_bins * each; i++)
        buf_str(out, fit.unicode ? "─" : "-");
    buf_char(out, '\n');
    write_places(&h, h.n_bins * each, out);
    buf_fmt(out, "%*sx: %s, logarithmic;", TEXT_LEFT, "", d->unit);
    for (size_t i = 0; i < COUNT_OF(percentiles); i++) {
        value_text(pooled_quantile(d->histogram, percentiles[i] / 100), value, sizeof value);
        buf_fmt(out, " p%.0f %s", percentiles[i], value);
    }
    samples_text(d, samples, sizeof samples);
    buf_fmt(out, "; %s\n", samples);
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
}

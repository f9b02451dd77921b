// SPDX-License-Identifier: Apache-2.0
// What the pictures are made of; for plot*.c only. Coordinates are those of the picture, y down.
#pragma once
#include <math.h>

#include "analysis/plot/picture.h"
#include "base/buf.h"

struct range {
    double lo, hi;
    bool log;
};

// A range of values and where it lies in the picture.
struct scale {
    struct range r;
    double from, to;
};

enum { TICKS_MAX = 24 };

struct ticks {
    int n;
    double at[TICKS_MAX];
};

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

// --- svg.c: text and shapes ---------------------------------------------------------------------

// A whole picture: title and heading, the body as it was drawn below them (from SVG_TOP on), and
// notes in small print, wrapped.
struct svg_picture {
    double width, height; // at least, without the notes
    const char *title;
    const struct buf *heading, *body, *notes; // borrowed
};
void svg_write(struct buf *out, const struct svg_picture *p);
enum { SVG_TOP = 52 }; // where the body begins
// "nid001234 · run 17 · 2026-11-21 10:14 UTC · latency · method prp4-v1".
void svg_heading(struct buf *out, const struct run *r);
void svg_title_case(char *title);                   // "round_trip by rank" -> "Round trip by rank"
void svg_escape(struct buf *out, const char *text); // XML; what XML cannot say becomes U+FFFD
void svg_point(struct buf *out, char command, double x, double y); // of a path
void svg_text(struct buf *out, double x, double y, enum anchor a, const char *class,
              const char *text);
// At most so many characters of a text; "…" behind them stands for others.
void text_cut(struct buf *out, const char *text, int characters);
void svg_text_cut(struct buf *out, double x, double y, const char *class, const char *text,
                  int characters);
// Wrapped into lines `step` apart; returns how high it is. `out` NULL: nothing is written.
double svg_paragraph(struct buf *out, double x, double y, double width, double step,
                     const char *class, const char *text);
void svg_text_up(struct buf *out, double x, double y, const char *text); // turned, middle at y
// `title` shows when the reader points at it; "": none.
void svg_circle(struct buf *out, const char *class, double x, double y, double r,
                const char *title);
// Ends the open element `tag`, with a title in it; "": none.
void svg_titled(struct buf *out, const char *tag, const char *title);
void svg_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2);

// --- scale.c: numbers ---------------------------------------------------------------------------

double scale_at(const struct scale *s, double v);
void range_add(struct range *r, double v); // NaN and infinities change nothing
bool range_known(const struct range *r);
#define RANGE_EMPTY ((struct range){INFINITY, -INFINITY, false})
// Round values (1, 2, 5 by powers of ten) inside the range, about `wanted` of them.
void ticks_round(struct ticks *t, const struct range *r, int wanted);
// At least three digits that matter: "123.4", "12.3", "0.45", "1234".
int value_digits(double v); // of them after the point
void value_text(double v, char *out, size_t room);
// What tick `v` is called.
void tick_text(double v, char *out, size_t room);
// Lines of a vertical scale with their values, about `wanted` of them, from x `left` to `right`.
// `whole`: only at whole numbers, for counts.
void svg_grid(const struct scale *y, int wanted, bool whole, double left, double right,
              struct buf *out);

// The unit that is printed, and what a value is divided by: MB/s of large numbers become GB/s.
struct measure {
    char text[96]; // "median latency (ns), less is better"
    const char *unit;
    double divisor;
};
struct measure measure_of(const struct matrix *m);
double measured(const struct matrix *m, const struct measure *by, int row, int col,
                enum cell_field field);

struct time_ticks {
    int n;
    int64_t at[TICKS_MAX];
    char text[TICKS_MAX][24];
};
// --- times.c: about `wanted` round times from lo to hi (ms since 1970, UTC).
void ticks_time(struct time_ticks *t, int64_t lo, int64_t hi, int wanted);

void axis_words(const struct axis *a, char *out, size_t room); // "working set"
void axis_title(const struct axis *a, char *out, size_t room); // "working set a rank (bytes)"
void axis_value(const struct axis *a, int i, char *out, size_t room); // "64M", "3-17", "own"

// --- chart.c: lines -----------------------------------------------------------------------------

struct point {
    double x, y, lo, hi; // of the measure; lo, hi NaN: no interval or band
    bool hollow;         // disturbed
};

struct line {
    char label[64];
    char name[32];             // the same where there is little room
    const struct axis *x_axis; // of the matrix that it is of
    int colour, dash;
    bool band;            // lo and hi of its points bound an area
    bool odd;             // of a row that lies apart from its group, which is drawn too
    struct point *points; // n_x of the chart
};

struct chart {
    const struct plot *p;
    const struct axis *x_axis, *series;
    bool series_in_cols;
    bool grouped, by_node;
    struct measure y_by, x_by;
    int n_x, n_lines;
    struct line lines[PLOT_LINES_MAX];
    struct point *points; // of all lines; owned
    int *group;           // of each row, when they are grouped; owned
    int split;            // rows of the lower of two groups that are apart; 0: there are none
    int n_odd, odd_left;  // rows that lie apart: drawn, and left out
    struct scale x, y;
    int missing, disturbed; // cells
    int whiskers, clipped;  // intervals drawn, and those that reach beyond the axis
};

struct box {
    double left, right, top, bottom;
};

// For what curve_fits. The caller calls chart_fini, also on failure.
int chart_init(struct chart *c, const struct plot *p, struct err *err);
void chart_fini(struct chart *c);
// The same without lines: the caller fills some, and fits the axes to them.
int chart_begin(struct chart *c, const struct plot *p, struct measure by, struct err *err);
void chart_fit(struct chart *c);
void chart_place(struct chart *c, struct box b); // where its ranges lie in the picture
double chart_x(const struct chart *c, double v);
double chart_y(const struct chart *c, double v); // what is beyond the range lies on its edge
bool point_known(const struct point *p);
void chart_title(const struct chart *c, char *out, size_t room);

// --- rows.c: what a row of a chart holds
// ----------------------------------------------------------

double chart_x_value(const struct chart *c, int series, int x); // of a row's value
double chart_value(const struct chart *c, int series, int x, enum cell_field field);
bool chart_disturbed(const struct chart *c, int series, int x);
// Memory node of a row that is a rank; -1: it is none, or not known.
int64_t chart_node_of(const struct chart *c, int series);
// The nodes of all rows, ascending; -1 if one is not known or there are too many to distinguish.
int chart_nodes(const struct chart *c, int64_t nodes[PLOT_GROUPS_MAX]);
struct line *chart_line(struct chart *c, int i);
void chart_fill_line(const struct chart *c, int series, struct line *l);
// "rank 7, node 3", "node 2", "pair 0-3".
void chart_name_line(const struct chart *c, int series, char *out, size_t room);

// --- groups.c: lines of many rows ----------------------------------------------------------------

int chart_group_lines(struct chart *c, struct err *err);
// "fast: ranks 7,15,23. slow: ranks 0-6,8-14…. " of a chart whose rows are split.
void chart_split_text(const struct chart *c, struct buf *out);

// --- heat.c: tiles ------------------------------------------------------------------------------

enum {
    HEAT_LEVELS = 64, // colours; an eye distinguishes about as many
    HEAT_MISSING = HEAT_LEVELS,
    HEAT_NONE, // a cell that does not exist
};

struct rgb {
    int r, g, b;
};

struct heat {
    const struct plot *p;
    const struct matrix *m;
    const double *given;  // values of the cells that are drawn instead: differences; NULL: none
    const bool *doubtful; // of these cells
    bool more_is_better;  // of differences: which are drawn as worse
    struct measure by;
    int rows, cols;           // tiles
    int row_cells, col_cells; // cells in a tile each way
    double *values;           // of the tiles; owned
    unsigned char *levels;    // owned
    bool *hollow;             // tiles that are drawn so; owned
    int missing, n_doubtful;  // cells
    bool texts;
    bool of_nodes;                    // each rank stands for its node, and is named after it
    double top, left, tile_w, tile_h; // of the SVG
    struct scale colour;              // value to 0…1
    double lo, hi;                    // the least and the greatest value; infinite: none
    bool even;                        // the values are so close that colours would mislead
    bool beyond;                      // differences that the scale does not reach
};

// At most so many tiles each way. The caller calls heat_fini, also on failure.
int heat_init(struct heat *h, const struct plot *p, int most_rows, int most_cols, struct err *err);
// Of differences in per cent instead of the matrix's values, cell by cell; borrowed.
int heat_init_differences(struct heat *h, const struct plot *p, const double *percent,
                          const bool *doubtful, int most_rows, int most_cols, struct err *err);
void heat_fini(struct heat *h);
struct rgb heat_colour(int level);
bool heat_is_bright(struct rgb c);                                        // texts on it are dark
int64_t heat_cpu_node(const struct plot *p, const struct axis *a, int i); // -1: not known
void heat_title(const struct heat *h, char *out, size_t room);
void heat_row_title(const struct heat *h, char *out, size_t room);
void heat_row_label(const struct heat *h, int row, char *out, size_t room);
void heat_value_text(const struct heat *h, double v, char *out, size_t room);

// --- heat_svg.c ---
// Draws it below `top`; returns where it ends.
double heat_draw(struct heat *h, double top, double *width, struct buf *out);
void heat_notes(const struct heat *h, struct buf *text);

// --- canvas.c: lines out of characters
// ------------------------------------------------------------

enum { CANVAS_SCALE = 9 }; // characters of numbers and axis at the left

struct canvas {
    const struct plot_text *how;
    int width, height;    // characters
    int fine_x, fine_y;   // dots in a character
    unsigned char *dots;  // bits of a character, row by row; owned
    signed char *colours; // of the last line through it; -1: none; owned
};

// `right`: characters that stay free at the right. The caller calls canvas_fini, also on failure.
int canvas_init(struct canvas *k, const struct plot_text *how, int right, struct err *err);
void canvas_fini(struct canvas *k);
void canvas_dot(struct canvas *k, int x, int y, int colour); // from the upper left corner
void canvas_stroke(struct canvas *k, double x1, double y1, double x2, double y2, int colour);
void canvas_write(const struct canvas *k, int at, struct buf *out); // one character
// The number at the left of a row, if a tick is there, and the axis.
void canvas_write_scale(const struct canvas *k, const struct scale *y, const struct ticks *t,
                        int row, struct buf *out);
struct plot_text plot_text_fit(const struct plot_text *how); // a width that there is room in
int text_label_width(const struct axis *a);                  // of its longest value
// Bold letters with capitals of a picture's title, in pixels.
#define TITLE_CHARACTER 11.2
// A line below or above a picture: as many lines of the picture's width as it takes.
void text_caption(const struct plot_text *how, const char *text, int indent, struct buf *out);
void text_colour_on(const struct plot_text *how, int colour, struct buf *out);
void text_colour_off(const struct plot_text *how, int colour, struct buf *out);

// --- The pictures ------------------------------------------------------------------------------

// Draws a chart that is filled and fitted, below *height; then that is where it ends.
int curve_draw(struct chart *c, double *height, double *width, struct buf *out, struct err *err);
// What its bars and dots mean.
void curve_notes(const struct chart *c, struct buf *text);
int curve_write_svg(const struct plot *p, struct buf *out, struct err *err);
int heat_write_svg(const struct plot *p, struct buf *out, struct err *err);
bool curve_fits(const struct plot *p); // is it drawn as lines?

// SPDX-License-Identifier: Apache-2.0
// What the pictures are made of; for plot*.c only. Coordinates are those of the picture, y down.
#pragma once
#include <math.h>

#include "analysis/plot.h"

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

// --- plot_svg.c: text and shapes ---------------------------------------------------------------

// Up to the background, with the heading; at least as wide as that. svg_end closes it.
void svg_begin(struct buf *out, double width, double height, const struct plot *p,
               const char *title);
void svg_end(struct buf *out);
void svg_title_case(char *title);                   // "round_trip by rank" -> "Round trip by rank"
void svg_escape(struct buf *out, const char *text); // XML; what XML cannot say becomes U+FFFD
void svg_number(struct buf *out, double v);         // one digit after the point, none if it is 0
void svg_point(struct buf *out, char command, double x, double y); // of a path
void svg_text(struct buf *out, double x, double y, enum anchor a, const char *class,
              const char *text);
void svg_text_up(struct buf *out, double x, double y, const char *text); // turned, middle at y
void svg_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2);

// --- plot_scale.c: numbers ---------------------------------------------------------------------

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

// The unit that is printed, and what a value is divided by: MB/s of large numbers become GB/s.
struct measure {
    char text[96]; // "median latency (ns), less is better"
    const char *unit;
    double divisor;
};
struct measure measure_of(const struct matrix *m);
double measured(const struct matrix *m, const struct measure *by, int row, int col,
                enum cell_field field);

void axis_words(const struct axis *a, char *out, size_t room); // "working set"
void axis_title(const struct axis *a, char *out, size_t room); // "working set a rank (bytes)"
void axis_value(const struct axis *a, int i, char *out, size_t room); // "64M", "3-17", "own"

// --- The pictures ------------------------------------------------------------------------------

int curve_write_svg(const struct plot *p, struct buf *out, struct err *err);
int heat_write_svg(const struct plot *p, struct buf *out, struct err *err);
bool curve_fits(const struct plot *p); // is it drawn as lines?

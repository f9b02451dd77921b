// SPDX-License-Identifier: Apache-2.0
// SVG written by hand: shapes, texts and the heading. A style sheet in the picture has the
// colours for light and dark; texts of a run are escaped, because a viewer may be a browser.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "base/utf8_columns.h"

// What does not depend on light.
static const char shapes[] =
    "text{font:12px "
    "system-ui,sans-serif}.title{font-size:17px;font-weight:600}.strong{font-weight:600}"
    ".small{font-size:11px}.mark{stroke-dasharray:5 4}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}.lead{stroke-opacity:.5}"
    ".d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}"
    ".band{fill-opacity:.16}.knee{fill:none;stroke-width:2}"
    ".bar{fill:none;stroke-width:1.2;stroke-opacity:.5}.odd{stroke-width:3}"
    ".guide{stroke-dasharray:2 4;stroke-opacity:.8}"
    // A dot of 5 pixels can hardly be pointed at: nothing is drawn around it, but it counts.
    ".dot{stroke:#000;stroke-opacity:0;stroke-width:9}.tip{fill:#000;fill-opacity:0}"
    ".ring{stroke-width:1.7}.dark{fill:#10151c}.light{fill:#fff}.gap{fill:#9097a0}";

// Colours by day and by night. Without variables, which many viewers do not know; those that do not
// know the media query show the day. The eight of the lines can be distinguished without red or
// green.
static const struct {
    const char *what, *day, *night;
} colours[] = {
    {".page,.ring,.hollow{fill:", "#fff", "#1b212a"}, {"text{fill:", "#1c2430", "#e6eaf0"},
    {".quiet,.small{fill:", "#5b6675", "#9aa5b4"},    {".worse{fill:", "#b04300", "#ffa45c"},
    {".better{fill:", "#1f5fbf", "#7ab3ff"},          {".grid{stroke:", "#e3e7ed", "#303947"},
    {".frame,.mark{stroke:", "#8a94a3", "#76828f"},   {".border{stroke:", "#fff", "#1b212a"},
};
static const char *const line_colours[PLOT_GROUPS_MAX][2] = {
    {"#1f5fbf", "#7ab3ff"}, {"#c75000", "#ffa45c"}, {"#1b8a5a", "#5fd6a0"}, {"#8e44ad", "#cf9bff"},
    {"#c2185b", "#ff85b3"}, {"#7a5c2e", "#d9bd85"}, {"#00838f", "#5fd7e6"}, {"#4a5560", "#b8c4cc"},
};

static void write_colours(struct buf *out, bool night)
{
    for (size_t i = 0; i < COUNT_OF(colours); i++)
        buf_fmt(out, "%s%s}", colours[i].what, night ? colours[i].night : colours[i].day);
    for (int i = 0; i < PLOT_GROUPS_MAX; i++)
        buf_fmt(out, ".c%d{stroke:%s}.f%d{fill:%s}", i, line_colours[i][night], i,
                line_colours[i][night]);
}

static void write_style(struct buf *out)
{
    buf_str(out, "<style>");
    write_colours(out, false);
    buf_str(out, "@media(prefers-color-scheme:dark){");
    write_colours(out, true);
    buf_char(out, '}');
    buf_str(out, shapes);
    buf_str(out, "</style>\n");
}

// Bytes of the character at `s` that XML may hold and a terminal shows; 0: none starts here.
static size_t xml_bytes(const char *s)
{
    size_t n = *s == '\t' || *s == '\n' ? 1 : utf8_shown(s, UTF8_CHAR_MAX);
    bool beyond = n == 3 && utf8_code(s, n) >= 0xfffe; // U+FFFE and U+FFFF
    return beyond ? 0 : n;
}

void svg_escape(struct buf *out, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (const char *p = text; *p;) {
        size_t n = xml_bytes(p);
        const char *at = strchr(special, *p);
        if (!n)
            buf_str(out, "\xef\xbf\xbd");
        else if (at)
            buf_str(out, names[at - special]);
        else
            buf_add(out, p, n);
        p += utf8_step(p, UTF8_CHAR_MAX);
    }
}

static void svg_number(struct buf *out, double v)
{
    double tenths = round(v * 10) + 0.0; // never "-0"
    if (fmod(tenths, 10) == 0)
        buf_fmt(out, "%.0f", tenths / 10);
    else
        buf_fmt(out, "%.1f", tenths / 10);
}

void svg_point(struct buf *out, char command, double x, double y)
{
    buf_char(out, command);
    svg_number(out, x);
    buf_char(out, ' ');
    svg_number(out, y);
}

static void attribute(struct buf *out, const char *name, double v)
{
    buf_fmt(out, " %s=\"", name);
    svg_number(out, v);
    buf_char(out, '"');
}

void svg_text(struct buf *out, double x, double y, enum anchor a, const char *class,
              const char *text)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    buf_str(out, "<text");
    attribute(out, "x", x);
    attribute(out, "y", y);
    buf_str(out, anchors[a]);
    if (*class)
        buf_fmt(out, " class=\"%s\"", class);
    buf_char(out, '>');
    svg_escape(out, text);
    buf_str(out, "</text>\n");
}

void svg_text_up(struct buf *out, double x, double y, const char *text)
{
    buf_str(out, "<text class=\"quiet\" text-anchor=\"middle\" transform=\"translate(");
    svg_number(out, x);
    buf_char(out, ' ');
    svg_number(out, y);
    buf_str(out, ")rotate(-90)\">");
    svg_escape(out, text);
    buf_str(out, "</text>\n");
}

void svg_circle(struct buf *out, const char *class, double x, double y, double r, const char *title)
{
    buf_fmt(out, "<circle class=\"%s\"", class);
    attribute(out, "r", r);
    attribute(out, "cx", x);
    attribute(out, "cy", y);
    svg_titled(out, "circle", title);
}

void svg_titled(struct buf *out, const char *tag, const char *title)
{
    if (!*title) {
        buf_str(out, "/>\n");
        return;
    }
    buf_str(out, "><title>");
    svg_escape(out, title);
    buf_fmt(out, "</title></%s>\n", tag);
}

void svg_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2)
{
    buf_fmt(out, "<line class=\"%s\"", class);
    attribute(out, "x1", x1);
    attribute(out, "y1", y1);
    attribute(out, "x2", x2);
    attribute(out, "y2", y2);
    buf_str(out, "/>\n");
}

enum { MARGIN = 16, NOTE_STEP = 14 };
// Widths of a character, about.
#define HEADING_CHARACTER 6.6
#define NOTE_CHARACTER 6.0

// "nid001234 · run 17 · 2026-11-21 10:14 UTC · latency · method prp4-v1"
void svg_heading(struct buf *out, const struct run *r)
{
    char when[32] = "";
    if (*r->node)
        buf_fmt(out, "%s · ", r->node);
    buf_fmt(out, "run %" PRId64, r->id);
    int64_t at = r->measured_ms ? r->measured_ms : r->created_ms;
    if (at) {
        clock_rfc3339(at, when);
        buf_fmt(out, " · %.10s %.5s UTC", when, when + 11);
    }
    buf_fmt(out, " · %s", run_benchmark(r));
    if (*r->method)
        buf_fmt(out, " · method %s", r->method);
    if (*r->label)
        buf_fmt(out, " · %s", r->label);
    if (r->imported)
        buf_str(out, " · imported");
    if (r->state != RUN_SUCCEEDED)
        buf_fmt(out, " · %s", run_state_names[r->state]);
}

void text_cut(struct buf *out, const char *text, int characters)
{
    size_t n = utf8_fit(text, characters);
    buf_add(out, text, n);
    if (text[n])
        buf_str(out, "…");
}

void svg_text_cut(struct buf *out, double x, double y, const char *class, const char *text,
                  int characters)
{
    CLEANUP_BUF struct buf cut = BUF_INIT;
    text_cut(&cut, text, characters);
    buf_needs(out, &cut);
    svg_text(out, x, y, ANCHOR_START, class, buf_text(&cut));
}

// A line of so many bytes at most: up to a blank, if there is one.
static size_t line_end(const char *text, size_t most)
{
    size_t at = most;
    if (!text[most])
        return most;
    while (at && text[at] != ' ')
        at--;
    return at ? at : most;
}

double svg_paragraph(struct buf *out, double x, double y, double width, double step,
                     const char *class, const char *text)
{
    int characters = (int)(width / (step > NOTE_STEP ? HEADING_CHARACTER : NOTE_CHARACTER));
    double height = 0;
    while (*(text += strspn(text, " "))) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        size_t n = line_end(text, utf8_fit(text, characters));
        height += step;
        buf_add(&line, text, n);
        if (out) {
            buf_needs(out, &line);
            svg_text(out, x, y + height, ANCHOR_START, class, buf_text(&line));
        }
        text += n;
    }
    return height;
}

// Modules add to the notes without knowing what stands before: each sentence begins with a capital.
static void write_sentences(struct buf *out, const char *text)
{
    bool first = true;
    for (const char *p = text; *p; p++) {
        buf_char(out, first && *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p);
        first = *p == ' ' && p > text && p[-1] == '.';
    }
}

// A heading has one line. Letters of a node's name may all be wide ones.
static double heading_width(const char *text)
{
    static const double wide = 11.7, narrow = 4.8, other = 7.7;
    double sum = 0;
    for (size_t n; *text; text += n) {
        n = utf8_fit(text, 1);
        bool two_columns = n == 0;
        n = two_columns ? utf8_fit(text, 2) : n;
        n = n ? n : 1;
        sum += two_columns || strchr("mwMW@%", *text) ? wide
               : strchr(" .,:;|!'()-/fijlrt", *text)  ? narrow
                                                      : other;
    }
    return sum;
}

static double notes_write(struct buf *out, const char *text, double width, double y)
{
    return svg_paragraph(out, MARGIN, y, width - 2 * MARGIN, NOTE_STEP, "small", text);
}

void svg_write(struct buf *out, const struct svg_picture *p)
{
    CLEANUP_BUF struct buf sentences = BUF_INIT;
    write_sentences(&sentences, buf_text(p->notes));
    const char *heading = buf_text(p->heading), *notes = buf_text(&sentences);
    double width = fmax(p->width, 2 * MARGIN + heading_width(heading));
    width = fmax(width, 2 * MARGIN + TITLE_CHARACTER * utf8_columns(p->title));
    double height = p->height + notes_write(NULL, notes, width, 0) + NOTE_STEP / 2.0;
    buf_fmt(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\" role=\"img\">\n<title>",
            width, height, width, height);
    svg_escape(out, p->title);
    buf_str(out, ", ");
    svg_escape(out, heading);
    buf_str(out, "</title>\n");
    write_style(out);
    buf_str(out, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
    svg_text(out, MARGIN, 26, ANCHOR_START, "title", p->title);
    svg_text(out, MARGIN, 45, ANCHOR_START, "quiet", heading);
    buf_add(out, buf_text(p->body), p->body->len);
    notes_write(out, notes, width, p->height);
    buf_str(out, "</svg>\n");
    buf_needs(out, p->heading);
    buf_needs(out, p->body);
    buf_needs(out, p->notes);
    buf_needs(out, &sentences);
}

void svg_title_case(char *title)
{
    for (char *p = title; *p; p++)
        if (*p == '_')
            *p = ' ';
    if (*title >= 'a' && *title <= 'z')
        *title = (char)(*title - 'a' + 'A');
}

void svg_grid(const struct scale *y, int wanted, bool whole, double left, double right,
              struct buf *out)
{
    struct ticks t;
    char text[32];
    ticks_round(&t, &y->r, wanted);
    for (int i = 0; i < t.n; i++) {
        double at = scale_at(y, t.at[i]);
        if (whole && t.at[i] != floor(t.at[i]))
            continue;
        tick_text(t.at[i], text, sizeof text);
        svg_line(out, "grid", left, at, right, at);
        svg_text(out, left - 8, at + 4, ANCHOR_END, "quiet", text);
    }
}

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
#include "base/str.h"

// What does not depend on light.
static const char shapes[] =
    "text{font:12px system-ui,sans-serif}.title{font-size:17px;font-weight:600}"
    ".small{font-size:11px}.mark{stroke-dasharray:5 4}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}.lead{stroke-opacity:.5}"
    ".d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}"
    ".band{fill-opacity:.16}.knee{fill:none;stroke-width:2}"
    ".dark{fill:#10151c}.light{fill:#fff}.gap{fill:#9097a0}";

// Colours by day and by night. Without variables, which many viewers do not know; those that do not
// know the media query show the day. The eight of the lines can be distinguished without red or
// green.
static const struct {
    const char *what, *day, *night;
} colours[] = {
    {".page{fill:", "#fff", "#1b212a"},
    {"text{fill:", "#1c2430", "#e6eaf0"},
    {".quiet,.small{fill:", "#5b6675", "#9aa5b4"},
    {".grid{stroke:", "#e3e7ed", "#303947"},
    {".frame,.mark{stroke:", "#8a94a3", "#76828f"},
    {".border{stroke:", "#fff", "#1b212a"},
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

// Bytes of the character at `p` that XML may hold; 0: none starts here.
static size_t xml_bytes(const unsigned char *p)
{
    size_t n = 1;
    while (n < 4 && (p[n] & 0xc0) == 0x80)
        n++;
    bool control = (*p < 0x20 && *p != '\t' && *p != '\n') || *p == 0x7f;
    bool beyond = p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe; // U+FFFE and U+FFFF
    return control || beyond || !str_utf8_valid((const char *)p, n) ? 0 : n;
}

void svg_escape(struct buf *out, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t n = xml_bytes(p);
        const char *at = strchr(special, *p);
        if (!n)
            buf_str(out, "\xef\xbf\xbd");
        else if (at)
            buf_str(out, names[at - special]);
        else
            buf_add(out, p, n);
        p += n ? n : 1;
    }
}

void svg_number(struct buf *out, double v)
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

void svg_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2)
{
    buf_fmt(out, "<line class=\"%s\"", class);
    attribute(out, "x1", x1);
    attribute(out, "y1", y1);
    attribute(out, "x2", x2);
    attribute(out, "y2", y2);
    buf_str(out, "/>\n");
}

#define HEADING_CHARACTER 6.6 // width of one in 12 px, about

// "nid001234 · run 17 · 2026-11-21 10:14 UTC · latency · method prp4-v1"
static void heading(struct buf *out, const struct run *r)
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
    buf_fmt(out, " · %s", benchmarks[r->spec.benchmark].name);
    if (*r->method)
        buf_fmt(out, " · method %s", r->method);
    if (*r->label)
        buf_fmt(out, " · %s", r->label);
    if (r->imported)
        buf_str(out, " · imported");
    if (r->state != RUN_SUCCEEDED)
        buf_fmt(out, " · %s", run_state_names[r->state]);
}

void svg_begin(struct buf *out, double width, double height, const struct plot *p,
               const char *title)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    heading(&line, p->run);
    buf_needs(out, &line);
    width = fmax(width, 32 + HEADING_CHARACTER * (double)line.len);
    buf_fmt(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\" role=\"img\">\n<title>",
            width, height, width, height);
    svg_escape(out, title);
    buf_str(out, ", ");
    svg_escape(out, buf_text(&line));
    buf_str(out, "</title>\n");
    write_style(out);
    buf_str(out, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
    svg_text(out, 16, 26, ANCHOR_START, "title", title);
    svg_text(out, 16, 45, ANCHOR_START, "quiet", buf_text(&line));
}

void svg_title_case(char *title)
{
    for (char *p = title; *p; p++)
        if (*p == '_')
            *p = ' ';
    if (*title >= 'a' && *title <= 'z')
        *title = (char)(*title - 'a' + 'A');
}

void svg_end(struct buf *out)
{
    buf_str(out, "</svg>\n");
}

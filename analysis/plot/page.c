// SPDX-License-Identifier: Apache-2.0
// HTML written by hand. Whatever comes from a run is escaped. The style is in the page, for light
// and dark and for paper, so that the file is the same wherever it is opened.
#include "analysis/plot/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/plot/parts.h"
#include "analysis/plot/plot.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "model/condition.h"
#include "model/shape.h"

static const char style[] =
    "<style>:root{color-scheme:light dark;--ink:#1c2430;--mute:#5b6675;--line:#d5dae2;--card:#fff;"
    "--page:#f4f6f9;--good:#1b7a4e;--bad:#b04300}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--mute:#9aa5b4;--line:#303947;"
    "--card:#1b212a;--page:#12161c;--good:#5fd6a0;--bad:#ffa45c}}"
    "body{margin:0;padding:24px;background:var(--page);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}main{max-width:1000px;margin:auto}"
    "h1{font-size:26px;margin:0}h2{font-size:19px;margin:32px 0 8px}h3{font-size:16px}"
    ".about,caption,footer{color:var(--mute)}caption{text-align:left;padding:6px 0}"
    ".verdict{font-size:18px;font-weight:600;padding:14px 18px;margin:18px 0;"
    "background:var(--card);border-left:6px solid var(--good)}.bad{border-color:var(--bad)}"
    "figure{margin:16px 0;background:var(--card);border:1px solid var(--line);break-inside:avoid}"
    "svg{display:block;max-width:100%;height:auto}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,tbody th,thead th{padding:2px 8px;border-bottom:1px solid var(--line);text-align:right}"
    ".below{margin-left:24px}.facts td,.facts "
    "th{text-align:left}.doubtful{font-style:italic;opacity:.7}"
    "@media print{body{padding:0;background:#fff}.wide{overflow:visible}td,th{font-size:9px}"
    "h2,h3,tr{break-inside:avoid}h2,h3{break-after:avoid}}"
    "</style>\n";

static void put(struct buf *out, const char *before, const char *text, const char *after)
{
    buf_str(out, before);
    svg_escape(out, text);
    buf_str(out, after);
}

// --- Findings ------------------------------------------------------------------------------------

// The report's Markdown: headings, lines of lists and paragraphs.
static void page_findings(const struct report *r, struct buf *out)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    bool list = false;
    report_write_markdown(r, &text);
    buf_needs(out, &text);
    for (const char *at = buf_text(&text); *at; at += *at == '\n') {
        CLEANUP_BUF struct buf line = BUF_INIT;
        size_t n = strcspn(at, "\n");
        buf_add(&line, at, n);
        const char *words = buf_text(&line) + strspn(buf_text(&line), " ");
        bool item = str_starts(words, "- "), below = item && words > buf_text(&line);
        if (item != list)
            buf_str(out, item ? "<ul>\n" : "</ul>\n");
        list = item;
        if (item)
            put(out, below ? "<li class=\"below\">" : "<li>", words + 2, "</li>\n");
        else if (str_starts(words, "## "))
            put(out, "<h2>", words + 3, "</h2>\n");
        else if (n)
            put(out, "<p>", words, "</p>\n");
        at += n;
    }
    if (list)
        buf_str(out, "</ul>\n");
}

// --- Pictures ------------------------------------------------------------------------------------

static int write_pictures(const struct page_run *r, struct buf *out, struct err *err)
{
    const struct report_source *s = r->source;
    int drawn = 0, covered = 0;
    for (int i = 0; i < s->n && drawn < PAGE_PICTURES_MAX; i++) {
        struct plot p = {.ranks = s->ranks, .n_ranks = s->n_ranks, .run = r->run};
        plot_marks_from(&p, s->topology);
        if (plot_choose(&p, s->matrices, s->n, i ? s->matrices[i].name : NULL, err) < 0)
            return -1;
        if (i && covered && (p.bandwidth || strcmp(p.matrix->quantity, "bandwidth") == 0))
            continue; // a curve of the family that the first picture shows
        covered = i ? covered : p.n_family;
        buf_str(out, "<figure>\n");
        if (plot_write_svg(&p, out, err) < 0)
            return -1;
        buf_str(out, "</figure>\n");
        drawn++;
    }
    if (drawn == PAGE_PICTURES_MAX && s->n > drawn)
        buf_fmt(out, "<p>The first %d of %d matrices are drawn.</p>\n", drawn, s->n);
    return 0;
}

// --- Tables --------------------------------------------------------------------------------------

static void write_page_cell(const struct matrix *m, int row, int col, struct buf *out)
{
    const struct cell *c = matrix_at(m, row, col);
    double v = c->v[CELL_MEDIAN], lo = c->v[CELL_LO], hi = c->v[CELL_HI];
    bool doubtful = cell_disturbed(c);
    if (!isfinite(v)) {
        buf_str(out, "<td></td>");
        return;
    }
    buf_str(out, doubtful ? "<td class=\"doubtful\"" : "<td");
    if (isfinite(lo) && isfinite(hi))
        buf_fmt(out, " title=\"%.*f to %.*f\"", value_digits(v), lo, value_digits(v), hi);
    buf_fmt(out, ">%.*f%s</td>", value_digits(v), v, doubtful ? "*" : "");
}

static void write_left_out(const char *what, int shown, int all, int64_t run, struct buf *out)
{
    if (all > shown)
        buf_fmt(out,
                "<p>%d of %d %s are shown. numaprobe matrix %" PRId64 " -o csv prints all.</p>\n",
                shown, all, what, run);
}

static void write_matrix_table(const struct matrix *m, int64_t run, struct buf *out)
{
    int rows = m->row.n < PAGE_ROWS_MAX ? m->row.n : PAGE_ROWS_MAX;
    int cols = m->col.n < PAGE_COLS_MAX ? m->col.n : PAGE_COLS_MAX;
    char down[64], across[64], text[AXIS_LABEL_ROOM];
    axis_title(&m->row, down, sizeof down);
    axis_title(&m->col, across, sizeof across);
    buf_str(out, "<div class=\"wide\"><table><caption>");
    put(out, "", m->name, ": median ");
    put(out, "", m->quantity, " (");
    put(out, "", m->unit, "); down: ");
    put(out, "", down, ", across: ");
    put(out, "", across, "</caption>\n<thead><tr><td></td>");
    for (int c = 0; c < cols; c++) {
        axis_value(&m->col, c, text, sizeof text);
        put(out, "<th scope=\"col\">", text, "</th>");
    }
    buf_str(out, "</tr></thead>\n<tbody>\n");
    for (int r = 0; r < rows; r++) {
        axis_value(&m->row, r, text, sizeof text);
        put(out, "<tr><th scope=\"row\">", text, "</th>");
        for (int c = 0; c < cols; c++)
            write_page_cell(m, r, c, out);
        buf_str(out, "</tr>\n");
    }
    buf_str(out, "</tbody></table></div>\n");
    write_left_out("rows", rows, m->row.n, run, out);
    write_left_out("columns", cols, m->col.n, run, out);
}

static void write_conditions(const struct json *conditions, struct buf *out)
{
    if (json_first(conditions))
        buf_str(out, "<h3>Conditions</h3>\n<ul>\n");
    for (const struct json *j = json_first(conditions); j; j = json_next(j)) {
        struct condition one;
        CLEANUP_BUF struct buf line = BUF_INIT;
        if (condition_from_json(&one, j, NULL) < 0)
            continue;
        condition_line(&one, &line);
        put(out, "<li>", buf_text(&line), "</li>\n");
    }
    if (json_first(conditions))
        buf_str(out, "</ul>\n");
}

static void page_fact_rows(const struct facts *f, struct buf *out)
{
    for (int i = 0; i < f->n; i++) {
        put(out, "<tr><th scope=\"row\">", f->list[i].name, "</th>");
        put(out, "<td>", f->list[i].value, "</td></tr>\n");
    }
}

static void page_facts(const struct fingerprint *f, struct buf *out)
{
    if (!f)
        return;
    buf_str(out, "<h3>The machine at the time of the run</h3>\n<div class=\"wide\"><table "
                 "class=\"facts\">\n<tbody>\n");
    page_fact_rows(&f->machine_class, out);
    page_fact_rows(&f->config, out);
    buf_str(out, "</tbody></table></div>\n");
}

// --- The whole -----------------------------------------------------------------------------------

static int page_run_write(const struct page_run *r, struct buf *out, struct err *err)
{
    CLEANUP_BUF struct buf heading = BUF_INIT;
    svg_heading(&heading, r->run);
    put(out, "<h2>", buf_text(&heading), "</h2>\n");
    if (write_pictures(r, out, err) < 0)
        return -1;
    for (int i = 0; i < r->source->n; i++)
        write_matrix_table(&r->source->matrices[i], r->run->id, out);
    write_conditions(r->source->conditions, out);
    page_facts(r->source->machine, out);
    return 0;
}

int page_write(const struct page *p, struct buf *out, struct err *err)
{
    buf_str(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    put(out, "<title>", p->title, "</title>\n");
    buf_str(out, style);
    put(out, "</head>\n<body>\n<main>\n<h1>", p->title, "</h1>\n");
    if (p->verdict)
        put(out, p->worse ? "<p class=\"verdict bad\">" : "<p class=\"verdict\">", p->verdict,
            "</p>\n");
    page_findings(p->report, out);
    for (int i = 0; i < p->n; i++)
        if (page_run_write(&p->runs[i], out, err) < 0)
            return -1;
    buf_str(out, "<footer><p>Values are medians; a value with an asterisk was disturbed. Made by "
                 "numaprobe " NUMAPROBE_VERSION ".</p></footer>\n</main>\n</body>\n</html>\n");
    return buf_ok(out) ? 0 : err_set(err, ERR_NO_MEMORY, "", "no memory for the page");
}

// SPDX-License-Identifier: Apache-2.0
// Rows are collected first, because the widths of a table depend on all of them; then one of
// the writers prints table, JSON, NDJSON or CSV.
#include "client/print.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"

// Set for good: what was printed is not all that there was to say.
static bool lost;

void grid_init(struct grid *g, const struct column *columns, int n)
{
    *g = (struct grid){.columns = columns, .n_columns = n};
}

void grid_fini(struct grid *g)
{
    for (int i = 0; i < g->n_rows; i++)
        free(g->cells[i]);
    free(g->cells);
    *g = (struct grid){0};
}

// n_rows counts cells here; rows are n_rows / n_columns.
void grid_cell(struct grid *g, const char *fmt, ...)
{
    if (g->n_rows == g->room) {
        int room = g->room ? g->room * 2 : 64;
        char **cells = realloc(g->cells, (size_t)room * sizeof *cells);
        if (!cells) {
            g->failed = lost = true;
            return;
        }
        g->cells = cells;
        g->room = room;
    }
    CLEANUP_BUF struct buf raw = BUF_INIT, safe = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vfmt(&raw, fmt, ap);
    va_end(ap);
    print_safe(&safe, buf_text(&raw));
    g->cells[g->n_rows] = buf_steal(&safe);
    g->failed |= !g->cells[g->n_rows];
    g->n_rows += !g->failed;
}

void grid_value(struct grid *g, double v)
{
    double size = v < 0 ? -v : v;
    grid_cell(g, "%.*f", size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3, v);
}

// Bytes of the character at `p` (valid UTF-8) that a terminal may obey instead of show: DEL, the
// second set of control characters, marks that turn the direction of writing. 0: none.
static size_t hidden_bytes(const unsigned char *p)
{
    if (*p == 0x7f)
        return 1;
    if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
        return 2;
    bool embedding = p[0] == 0xe2 && p[1] == 0x80 && p[2] >= 0xaa && p[2] <= 0xae;
    bool isolate = p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9;
    return embedding || isolate ? 3 : 0;
}

void print_safe(struct buf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t n = 1, hidden = hidden_bytes(p);
        while (n < 4 && (p[n] & 0xc0) == 0x80)
            n++;
        if (hidden || *p < 0x20 || !str_utf8_valid((const char *)p, n)) {
            buf_char(out, '?');
            p += hidden ? hidden : 1;
        } else {
            buf_add(out, p, n);
            p += n;
        }
    }
}

// Such characters stand only inside strings of a JSON text, where an escape means the same.
static void escape_hidden(struct buf *out, const char *json)
{
    for (const unsigned char *p = (const unsigned char *)json; *p;) {
        size_t n = hidden_bytes(p);
        if (!n) {
            buf_char(out, (char)*p++);
            continue;
        }
        unsigned code = n == 1   ? p[0]
                        : n == 2 ? p[1]
                                 : (p[0] & 0xfU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
        buf_fmt(out, "\\u%04x", code);
        p += n;
    }
}

bool print_lost(void)
{
    return lost || buf_any_failed();
}

void print_buf(const struct buf *b)
{
    fwrite(buf_text(b), 1, b->len, stdout);
}

void print_json_text(const struct buf *json)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    escape_hidden(&safe, buf_text(json));
    buf_char(&safe, '\n');
    print_buf(&safe);
}

void print_json(const struct json *value)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct jsonw w = jsonw_to(&b);
    json_write(value, &w, NULL);
    print_json_text(&b);
}

static void finite_range(const double *v, int n, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int i = 0; i < n; i++)
        if (isfinite(v[i])) {
            *lo = fmin(*lo, v[i]);
            *hi = fmax(*hi, v[i]);
        }
}

void print_sparkline(struct buf *out, const double *v, int n)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    enum { LEVELS = COUNT_OF(blocks) };
    double lo, hi;
    finite_range(v, n, &lo, &hi);
    double span = fmax(hi - lo, PRINT_SPARK_SPAN * fmax(fabs(lo), fabs(hi)));
    double bottom = lo - (span - (hi - lo)) / 2;
    for (int i = 0; i < n; i++) {
        int level = isfinite(v[i]) && span > 0 ? (int)((v[i] - bottom) / span * LEVELS) : 0;
        buf_str(out, isfinite(v[i]) ? blocks[level < LEVELS ? level : LEVELS - 1] : " ");
    }
}

// The first that is set decides, as in setlocale.
static bool locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

bool print_unicode(const struct cli *c)
{
    return c->to_terminal && locale_is_utf8();
}

bool print_colour(const struct cli *c)
{
    const char *no = getenv("NO_COLOR");
    bool automatic = c->to_terminal && c->term_obeys && !(no && *no);
    return c->colour == COLOUR_AUTO ? automatic : c->colour == COLOUR_ALWAYS;
}

void print_duration(char *out, size_t room, double seconds)
{
    static const double minute = 60, hour = 3600;
    if (seconds < 2 * minute)
        snprintf(out, room, "%.0f s", seconds < 1 ? 1 : seconds);
    else if (seconds < 2 * hour)
        snprintf(out, room, "%.0f min", seconds / minute);
    else
        snprintf(out, room, "%.1f h", seconds / hour);
}

// Characters, not bytes: continuation bytes do not count.
static int width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

static void print_write_cell(const struct column *c, const char *text, bool painted)
{
    const char *sgr = painted && c->paint ? c->paint(text) : NULL;
    printf("%s%s%s%s%s", sgr ? "\033[" : "", sgr ? sgr : "", sgr ? "m" : "", text,
           sgr ? "\033[0m" : "");
}

// Of each column; -1: it is empty in all rows and left out.
static void measure_columns(const struct grid *g, int widths[static COLUMNS_MAX])
{
    for (int c = 0; c < g->n_columns; c++) {
        bool empty = g->n_rows > 0;
        widths[c] = width(g->columns[c].title);
        for (int i = c; i < g->n_rows; i += g->n_columns) {
            int n = width(g->cells[i]);
            widths[c] = n > widths[c] ? n : widths[c];
            empty = empty && n == 0;
        }
        widths[c] = empty ? -1 : widths[c];
    }
}

// Takes characters from the widest column that may shrink until the table fits.
static void fit_columns(const struct grid *g, int room, int widths[static COLUMNS_MAX])
{
    enum { LEAST = 5, GAP = 2 };
    int total = -GAP;
    for (int c = 0; c < g->n_columns; c++)
        total += widths[c] < 0 ? 0 : widths[c] + GAP;
    for (; total > room; total--) {
        int widest = -1;
        for (int c = 0; c < g->n_columns; c++)
            if (g->columns[c].shrinks && widths[c] > LEAST &&
                (widest < 0 || widths[c] > widths[widest]))
                widest = c;
        if (widest < 0)
            return;
        widths[widest]--;
    }
}

// The first characters of a text that is too long, and a mark that there are more.
static const char *cut_to(const char *text, int room, bool unicode, struct buf *out)
{
    const char *mark = unicode ? "…" : "~";
    if (width(text) <= room)
        return text;
    for (int n = 0; *text; text++) {
        n += (*text & 0xc0) != 0x80;
        if (n == room)
            break;
        buf_char(out, *text);
    }
    buf_str(out, mark);
    return buf_text(out);
}

const char *print_cut_to(const char *text, int room, struct buf *out)
{
    return cut_to(text, room < 1 ? 1 : room, locale_is_utf8(), out);
}

enum { FOLD_LEAST = 16 }; // columns, however deep the tree is

// Bytes of `text` that fit: all, or up to behind the last comma or blank.
static size_t fold_at(const char *text, int room)
{
    size_t n = 0, fits = 0;
    for (int columns = 0; text[n]; n++) {
        columns += (text[n] & 0xc0) != 0x80;
        if (columns > room)
            return fits ? fits : n;
        if (text[n] == ',' || text[n] == ' ')
            fits = n + 1;
    }
    return n;
}

void print_folded(const struct cli *c, const char *text, const char *first, const char *next)
{
    const char *lead = first;
    do {
        int room = c->width ? c->width - width(lead) : INT_MAX;
        size_t n = fold_at(text, room < FOLD_LEAST ? FOLD_LEAST : room), shown = n;
        while (shown && text[shown - 1] == ' ')
            shown--;
        printf("%s%.*s\n", lead, (int)shown, text);
        text += n;
        lead = next;
    } while (*text);
}

void print_cut(const struct cli *c, const char *line)
{
    CLEANUP_BUF struct buf part = BUF_INIT;
    puts(c->width ? cut_to(line, c->width, print_unicode(c), &part) : line);
}

static void table_write_line(const struct grid *g, int first, const int *widths,
                             const struct cli *cli)
{
    int pending = 0; // blanks that only stand before another cell
    for (int c = 0; c < g->n_columns; c++) {
        CLEANUP_BUF struct buf part = BUF_INIT;
        bool head = first < 0;
        if (widths[c] < 0)
            continue;
        const char *text = head ? g->columns[c].title : g->cells[first + c];
        text = cut_to(text, widths[c], print_unicode(cli), &part);
        int pad = widths[c] - width(text);
        bool number = g->columns[c].number;
        if (*text) {
            printf("%*s", pending + (number ? pad : 0), "");
            print_write_cell(&g->columns[c], text, print_colour(cli) && !head);
            pending = 0;
        }
        pending += (*text ? number ? 0 : pad : widths[c]) + 2;
    }
    putchar('\n');
}

static void write_table(const struct grid *g, const struct cli *cli)
{
    int widths[COLUMNS_MAX];
    measure_columns(g, widths);
    if (cli->width)
        fit_columns(g, cli->width, widths);
    for (int i = -g->n_columns; i < g->n_rows; i += g->n_columns)
        table_write_line(g, i, widths, cli);
}

// Bytes of the word at `text`. A list that is longer than a line ends behind the last comma that
// fits, else where the line does.
static int word_bytes(const char *text, int room)
{
    int bytes = (int)strcspn(text, " ");
    if (room <= 0 || bytes <= room)
        return bytes;
    for (int n = room; n > 1; n--)
        if (text[n - 1] == ',')
            return n;
    while (room < bytes && (text[room] & 0xc0) == 0x80)
        room++; // no character is cut in two
    return room;
}

// Words of `text`, lines after the first `indent` to the right.
static void print_words(const struct cli *c, const char *text, int column, int indent)
{
    bool blank = false; // stands before the next word
    while (*text) {
        CLEANUP_BUF struct buf word = BUF_INIT;
        int bytes = word_bytes(text, c->width - indent);
        buf_add(&word, text, (size_t)bytes);
        int n = width(buf_text(&word));
        if (column > indent && c->width && column + blank + n > c->width) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (blank) {
            putchar(' ');
            column++;
        }
        fputs(buf_text(&word), stdout);
        column += n;
        text += bytes;
        blank = *text == ' ';
        text += strspn(text, " ");
    }
    putchar('\n');
}

void print_labelled(const struct cli *c, const char *label, const char *text)
{
    enum { LABEL = 12 };
    CLEANUP_BUF struct buf safe = BUF_INIT;
    print_safe(&safe, text);
    if (!safe.len)
        return;
    printf("%-*s", LABEL, label);
    print_words(c, buf_text(&safe), LABEL, LABEL);
}

void print_paragraph(const struct cli *c, const char *text, int indent)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    print_safe(&safe, text);
    print_words(c, buf_text(&safe), 0, indent);
}

void print_item(const struct cli *c, const char *line)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    print_safe(&safe, line);
    const char *text = buf_text(&safe);
    int lead = (int)strspn(text, " ");
    if (!c->width) {
        puts(text);
        return;
    }
    printf("%*s", lead, "");
    print_words(c, text + lead, lead, lead + (strncmp(text + lead, "- ", 2) == 0 ? 2 : 0));
}

static void print_write_csv(const struct grid *g)
{
    for (int c = 0; c < g->n_columns; c++)
        printf("%s%s", c ? "," : "", g->columns[c].name);
    putchar('\n');
    for (int i = 0; i < g->n_rows; i++) {
        const char *text = g->cells[i];
        bool quote = text[strcspn(text, ",\"\n")] != '\0';
        if (quote)
            putchar('"');
        for (const char *p = text; *p; p++) {
            if (*p == '"')
                putchar('"');
            putchar(*p);
        }
        if (quote)
            putchar('"');
        putchar((i + 1) % g->n_columns ? ',' : '\n');
    }
}

static void write_objects(const struct grid *g, bool lines)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    if (!lines)
        buf_char(&b, '[');
    for (int i = 0; i < g->n_rows; i += g->n_columns) {
        struct jsonw w = jsonw_to(&b);
        if (!lines && i)
            buf_char(&b, ',');
        jsonw_object(&w, NULL);
        for (int c = 0; c < g->n_columns; c++) {
            double d;
            const char *text = g->cells[i + c];
            if (g->columns[c].number && str_to_double(text, &d))
                jsonw_raw(&w, g->columns[c].name, text + (*text == '+')); // JSON has no plus
            else
                jsonw_text(&w, g->columns[c].name, *text ? text : NULL);
        }
        jsonw_end(&w);
        if (lines)
            buf_char(&b, '\n');
    }
    if (!lines)
        buf_str(&b, "]\n");
    print_buf(&b);
}

static void write_json(const struct grid *g)
{
    write_objects(g, false);
}

static void write_ndjson(const struct grid *g)
{
    write_objects(g, true);
}

void grid_number(struct grid *g, double v)
{
    if (isfinite(v))
        grid_cell(g, "%.6g", v);
    else
        grid_cell(g, "%s", "");
}

void grid_print(const struct grid *g, const struct cli *c)
{
    static void (*const writers[])(const struct grid *) = {
        [OUTPUT_JSON] = write_json,
        [OUTPUT_NDJSON] = write_ndjson,
        [OUTPUT_CSV] = print_write_csv,
    };
    if (g->failed) // cells would stand in the columns of others
        return;
    if (c->output == OUTPUT_TABLE)
        write_table(g, c);
    else
        writers[c->output](g);
}

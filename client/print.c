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
#include "base/csv.h"
#include "base/figures.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/utf8_columns.h"
#include "client/pager.h"

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
    buf_plain(&safe, buf_text(&raw));
    g->cells[g->n_rows] = buf_steal(&safe);
    g->failed |= !g->cells[g->n_rows];
    g->n_rows += !g->failed;
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
    print_buf(json);
    putchar('\n');
}

void print_json(const struct json *value)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    struct jsonw w = jsonw_to(&b);
    json_write(value, &w, NULL);
    print_json_text(&b);
}

int print_refuse_csv(const struct cli *c, const char *what, struct err *err)
{
    return c->output != OUTPUT_CSV || c->output == c->output_usual
               ? 0
               : err_set(err, ERR_USAGE, "", "%s text or JSON (-o json), not csv", what);
}

int print_refuse_all_but_text(const struct cli *c, const char *what, struct err *err)
{
    return c->output == OUTPUT_TABLE || c->output == c->output_usual
               ? 0
               : err_set(err, ERR_USAGE, "", "%s text, without the formats of -o", what);
}

bool print_if_json(const struct cli *c, const struct json *answer)
{
    if (c->output != OUTPUT_JSON && c->output != OUTPUT_NDJSON)
        return false;
    print_json(answer);
    return true;
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

// The signs of our own texts in ASCII, in `out`, where stdout is a terminal and the environment
// names no UTF-8. Files and pipes get UTF-8 whatever it names.
static const char *print_shown(const struct cli *c, const char *text, struct buf *out)
{
    static const char *const signs[][2] = {{"±", "+-"},  {"×", "x"}, {"µ", "u"},
                                           {"…", "..."}, {"–", "-"}, {"·", "-"}};
    if (!c->to_terminal || locale_is_utf8())
        return text;
    while (*text) {
        size_t i = 0;
        while (i < COUNT_OF(signs) && !str_starts(text, signs[i][0]))
            i++;
        if (i < COUNT_OF(signs))
            buf_str(out, signs[i][1]);
        else
            buf_char(out, *text);
        text += i < COUNT_OF(signs) ? strlen(signs[i][0]) : 1;
    }
    return buf_text(out);
}

int print_width(const struct cli *c)
{
    return c->to_terminal ? config_columns_of(pager_terminal()) : 0;
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

void print_estimate(struct buf *out, const struct json *plan)
{
    double seconds = json_get_number(plan, "estimate_s", 0);
    double most = json_get_number(plan, "estimate_most_s", 0);
    char text[2][32];
    print_duration(text[0], sizeof text[0], seconds);
    print_duration(text[1], sizeof text[1], most);
    buf_fmt(out, "takes about %s", text[0]);
    if (most > seconds && strcmp(text[0], text[1]) != 0)
        buf_fmt(out, ", up to %s if it finds something", text[1]);
}

static void print_write_cell(const struct column *c, const char *text, bool painted)
{
    const char *sgr = painted && c->paint ? c->paint(text) : NULL;
    printf("%s%s%s%s%s", sgr ? "\033[" : "", sgr ? sgr : "", sgr ? "m" : "", text,
           sgr ? "\033[0m" : "");
}

// Of each column; -1: it is left out, because it is empty in all rows or not for people.
static void measure_columns(const struct grid *g, const struct cli *cli,
                            int widths[static COLUMNS_MAX])
{
    for (int c = 0; c < g->n_columns; c++) {
        bool empty = g->n_rows > 0;
        widths[c] = -1;
        if (!g->columns[c].title)
            continue;
        widths[c] = utf8_columns(g->columns[c].title);
        for (int i = c; i < g->n_rows; i += g->n_columns) {
            CLEANUP_BUF struct buf shown = BUF_INIT;
            int n = utf8_columns(print_shown(cli, g->cells[i], &shown));
            widths[c] = n > widths[c] ? n : widths[c];
            empty = empty && n == 0;
        }
        widths[c] = empty ? -1 : widths[c];
    }
}

// Leaves out spare columns, then takes columns of the terminal from the widest column that may
// shrink, until the table fits. False: it does not.
static bool fit_columns(const struct grid *g, int room, int widths[static COLUMNS_MAX])
{
    enum { LEAST = 5, LEAST_WRAPPED = 24, GAP = 2 };
    int total = -GAP, last = g->n_columns - 1;
    while (last > 0 && !g->columns[last].title)
        last--;
    for (int c = 0; c < g->n_columns; c++)
        total += widths[c] < 0 ? 0 : widths[c] + GAP;
    for (int c = 0; c < g->n_columns && total > room; c++)
        if (g->columns[c].spare && widths[c] >= 0) {
            total -= widths[c] + GAP;
            widths[c] = -1;
        }
    if (g->columns[last].wraps && total > room && widths[last] - (total - room) >= LEAST_WRAPPED) {
        widths[last] -= total - room;
        return true;
    }
    for (; total > room; total--) {
        int widest = -1;
        for (int c = 0; c < g->n_columns; c++)
            if (g->columns[c].shrinks && widths[c] > LEAST &&
                (widest < 0 || widths[c] > widths[widest]))
                widest = c;
        if (widest < 0)
            return false;
        widths[widest]--;
    }
    return true;
}

// The first characters of a text that is too long, and a mark that there are more.
static const char *cut_to(const char *text, int room, bool unicode, struct buf *out)
{
    if (utf8_columns(text) <= room)
        return text;
    buf_add(out, text, utf8_fit(text, room - 1));
    buf_str(out, unicode ? "…" : "~");
    return buf_text(out);
}

// One column of five stays in front of what is shown of a text whose beginning says nothing.
static int cut_head_of(int room)
{
    return room / 5;
}

// The same with what stands at column `from`.
static const char *cut_from(const char *text, int room, int from, bool unicode, struct buf *out)
{
    CLEANUP_BUF struct buf end = BUF_INIT;
    const int head = cut_head_of(room), rest = room - head - 1, columns = utf8_columns(text);
    if (columns <= room || !from)
        return cut_to(text, room, unicode, out);
    from = from < columns - rest ? from : columns - rest;
    const char *at = text + utf8_fit(text, from);
    buf_add(out, text, utf8_fit(text, head));
    buf_str(out, unicode ? "…" : "~");
    buf_str(out, cut_to(at, rest, unicode, &end));
    return buf_text(out);
}

static int by_cell_text(const void *a, const void *b)
{
    return strcmp(**(char **const *)a, **(char **const *)b);
}

// Columns in which both are the same.
static int alike_columns(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    while (n && (a[n] & 0xC0) == 0x80) // within a character
        n--;
    return utf8_columns(a) - utf8_columns(a + n);
}

// From where a text is shown that differs from another one of its column in its columns behind
// `alike` only.
static int shown_from(int alike, int room)
{
    enum { MARKS = 2, WIDE = 2 }; // the signs of what is left out; a wide character
    return alike < room - 1 ? 0 : alike + WIDE + MARKS + cut_head_of(room) - room;
}

// Names that begin alike ("compute-node-0042") are shown from where they differ from those that are
// most alike. from: of each cell of the table, 0 where it is shown from its beginning.
static void column_shown_from(const struct grid *g, int column, int room, int *from)
{
    size_t n = 0;
    CLEANUP_MEM char ***cells = calloc((size_t)(g->n_rows / g->n_columns) + 1, sizeof *cells);
    for (int i = column; cells && i < g->n_rows; i += g->n_columns)
        if (utf8_columns(g->cells[i]) > room)
            cells[n++] = &g->cells[i];
    if (n)
        qsort(cells, n, sizeof *cells, by_cell_text);
    for (size_t i = 0, end; i < n; i = end) { // cells of one text
        int before = i ? alike_columns(*cells[i - 1], *cells[i]) : 0, behind = 0;
        for (end = i + 1; end < n && strcmp(*cells[i], *cells[end]) == 0;)
            end++;
        if (end < n)
            behind = alike_columns(*cells[i], *cells[end]);
        for (size_t k = i; k < end; k++)
            from[cells[k] - g->cells] = shown_from(before > behind ? before : behind, room);
    }
}

const char *print_cut_to(const char *text, int room, struct buf *out)
{
    return cut_to(text, room < 1 ? 1 : room, locale_is_utf8(), out);
}

enum { FOLD_LEAST = 16 }; // columns, however deep the tree is

void print_folded(const struct cli *c, const char *text, const char *first, const char *next)
{
    const char *lead = first;
    const int columns = print_width(c);
    CLEANUP_BUF struct buf ascii = BUF_INIT;
    text = print_shown(c, text, &ascii);
    do {
        int room = columns ? columns - utf8_columns(lead) : INT_MAX;
        size_t shown, n = utf8_fold(text, room < FOLD_LEAST ? FOLD_LEAST : room, ", ", &shown);
        printf("%s%.*s\n", lead, (int)shown, text);
        text += n;
        lead = next;
    } while (*text);
}

void print_cut(const struct cli *c, const char *line)
{
    CLEANUP_BUF struct buf part = BUF_INIT;
    const int columns = print_width(c);
    puts(columns ? cut_to(line, columns, print_unicode(c), &part) : line);
}

// A text in lines of `room` columns; those after the first stand below it, at `indent`.
static void write_wrapped(const char *text, int room, int indent)
{
    for (size_t n, shown; *text; text += n) {
        n = utf8_fold(text, room, ", ", &shown);
        printf("%.*s", (int)shown, text);
        if (text[n])
            printf("\n%*s", indent, "");
    }
}

static void table_write_line(const struct grid *g, int first, const int *widths, const int *from,
                             const struct cli *cli)
{
    int pending = 0; // blanks that only stand before another cell
    int at = 0;      // where the column begins
    for (int c = 0; c < g->n_columns; c++) {
        CLEANUP_BUF struct buf part = BUF_INIT, shown = BUF_INIT;
        bool head = first < 0;
        if (widths[c] < 0)
            continue;
        const char *text =
            head ? g->columns[c].title : print_shown(cli, g->cells[first + c], &shown);
        if (g->columns[c].wraps && utf8_columns(text) > widths[c]) {
            printf("%*s", pending, "");
            write_wrapped(text, widths[c], at);
            break;
        }
        at += widths[c] + 2;
        text = cut_from(text, widths[c], head || !from ? 0 : from[first + c], print_unicode(cli),
                        &part);
        int pad = widths[c] - utf8_columns(text);
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

// A cell below another: its title, and the text in as many lines as it takes.
static void write_stacked_cell(const struct column *column, const struct cli *cli, const char *text,
                               int titles)
{
    CLEANUP_BUF struct buf title = BUF_INIT, indent = BUF_INIT, shown = BUF_INIT;
    buf_fmt(&title, "%s%*s", column->title, titles - utf8_columns(column->title) + 2, "");
    buf_fmt(&indent, "%*s", titles + 2, "");
    if (!column->paint) {
        print_folded(cli, text, buf_text(&title), buf_text(&indent));
        return;
    }
    printf("%s", buf_text(&title));
    print_write_cell(column, print_shown(cli, text, &shown), print_colour(cli));
    putchar('\n');
}

// Where the terminal is too narrow for a line per row.
static void write_stacked(const struct grid *g, const struct cli *cli, const int *widths)
{
    int titles = 0;
    for (int c = 0; c < g->n_columns; c++) {
        const struct column *column = &g->columns[c];
        bool shown = column->title && (widths[c] >= 0 || column->spare);
        int n = shown ? utf8_columns(column->title) : 0;
        titles = n > titles ? n : titles;
    }
    for (int i = 0; i < g->n_rows; i++) {
        if (i && i % g->n_columns == 0)
            putchar('\n');
        const struct column *column = &g->columns[i % g->n_columns];
        if (column->title && *g->cells[i])
            write_stacked_cell(column, cli, g->cells[i], titles);
    }
}

// Four significant digits, and no more places than the noise deserves: 1.234, 98.76, 20834.
static char *rounded_text(double v)
{
    char *text = NULL;
    double size = fabs(v);
    int places = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
    return asprintf(&text, "%.*f", places, v) < 0 ? NULL : text;
}

// For people, in place: columns that are rounded, and numbers without exponents.
static void write_plain_numbers(const struct grid *g)
{
    enum { TABLE_FIGURES = 6 }; // of grid_number
    for (int i = 0; i < g->n_rows; i++) {
        char text[FIGURES_ROOM], *cell = g->cells[i];
        const struct column *column = &g->columns[i % g->n_columns];
        double v;
        if (!column->number || !(column->rounded || strchr(cell, 'e')) || !str_to_double(cell, &v))
            continue;
        char *plain = NULL;
        if (column->rounded)
            plain = rounded_text(v);
        else if (asprintf(&plain, "%s%s", *cell == '+' ? "+" : "",
                          figures_text(v, TABLE_FIGURES, text)) < 0)
            plain = NULL;
        if (!plain)
            continue;
        free(cell);
        g->cells[i] = plain;
    }
}

static void write_table(const struct grid *g, const struct cli *cli)
{
    int widths[COLUMNS_MAX];
    write_plain_numbers(g);
    measure_columns(g, cli, widths);
    const int columns = print_width(cli);
    if (columns && g->n_rows && !fit_columns(g, columns, widths)) {
        write_stacked(g, cli, widths);
        return;
    }
    CLEANUP_MEM int *from = columns ? calloc((size_t)g->n_rows + 1, sizeof *from) : NULL;
    for (int c = 0; from && c < g->n_columns; c++)
        if (g->columns[c].shrinks && widths[c] > 0)
            column_shown_from(g, c, widths[c], from);
    for (int i = -g->n_columns; i < g->n_rows; i += g->n_columns)
        table_write_line(g, i, widths, from, cli);
}

// Bytes of the word at `text`. One that is longer than a line ends behind the last comma that fits,
// else where the line does.
static int word_bytes(const char *text, int room)
{
    size_t bytes = strcspn(text, " ");
    size_t most = room <= 0 ? bytes : utf8_fit(text, room);
    if (bytes <= most)
        return (int)bytes;
    for (size_t n = most; n > 1; n--)
        if (text[n - 1] == ',')
            return (int)n;
    return (int)(most ? most : utf8_step(text, UTF8_CHAR_MAX));
}

// Words of `text`, lines after the first `indent` to the right.
static void print_words_to(FILE *to, int columns, const char *text, int column, int indent)
{
    bool blank = false; // stands before the next word
    while (*text) {
        CLEANUP_BUF struct buf word = BUF_INIT;
        int bytes = word_bytes(text, columns - indent);
        buf_add(&word, text, (size_t)bytes);
        int n = utf8_columns(buf_text(&word));
        if (column > indent && columns && column + blank + n > columns) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
        } else if (blank) {
            fputc(' ', to);
            column++;
        }
        fputs(buf_text(&word), to);
        column += n;
        text += bytes;
        blank = *text == ' ';
        text += strspn(text, " ");
    }
    fputc('\n', to);
}

static void print_words(const struct cli *c, const char *text, int column, int indent)
{
    CLEANUP_BUF struct buf shown = BUF_INIT;
    print_words_to(stdout, print_width(c), print_shown(c, text, &shown), column, indent);
}

void print_labelled(const struct cli *c, const char *label, const char *text)
{
    enum { LABEL = 12 };
    CLEANUP_BUF struct buf safe = BUF_INIT;
    buf_plain(&safe, text);
    if (!safe.len)
        return;
    printf("%-*s", LABEL, label);
    print_words(c, buf_text(&safe), LABEL, LABEL);
}

void print_paragraph(const struct cli *c, const char *text, int indent)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    buf_plain(&safe, text);
    print_words(c, buf_text(&safe), 0, indent);
}

void print_line_to(const struct cli *c, FILE *to, const char *text)
{
    enum { INDENT = 2 };
    CLEANUP_BUF struct buf safe = BUF_INIT;
    buf_plain(&safe, text);
    if (to == stdout)
        print_words(c, buf_text(&safe), 0, INDENT);
    else
        print_words_to(to, c->err_terminal ? config_columns_of(STDERR_FILENO) : 0, buf_text(&safe),
                       0, INDENT);
}

void print_item(const struct cli *c, const char *line)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    buf_plain(&safe, line);
    const char *text = buf_text(&safe);
    int lead = (int)strspn(text, " ");
    if (!c->to_terminal) {
        puts(text);
        return;
    }
    printf("%*s", lead, "");
    print_words(c, text + lead, lead, lead + (strncmp(text + lead, "- ", 2) == 0 ? 2 : 0));
}

static void print_write_csv(const struct grid *g)
{
    CLEANUP_BUF struct buf b = BUF_INIT;
    for (int c = 0; c < g->n_columns; c++)
        buf_fmt(&b, "%s%s", c ? "," : "", g->columns[c].name);
    buf_char(&b, '\n');
    for (int i = 0; i < g->n_rows; i++) {
        csv_cell(&b, g->cells[i]);
        buf_char(&b, (i + 1) % g->n_columns ? ',' : '\n');
    }
    print_buf(&b);
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

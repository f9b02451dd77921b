// SPDX-License-Identifier: Apache-2.0
// A run, a metric over time or two runs as a picture: the daemon's SVG into a file or a pipe,
// characters on a terminal. The machine as a picture is SVG only.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/difference.h"
#include "analysis/plot/distribution.h"
#include "analysis/plot/history.h"
#include "analysis/plot/plot.h"
#include "analysis/stats/median.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/out_file.h"
#include "client/print.h"
#include "client/result.h"
#include "client/when.h"

enum { TEXT_WIDTH = 80, TEXT_HEIGHT = 14 }; // where the terminal does not report it

struct plot_flags {
    char matrix[24], file[4096], measured[80];
    bool text, allow_different, distribution;
    char row[AXIS_LABEL_ROOM], col[AXIS_LABEL_ROOM];
    char node[64], variant[512], since[40], until[40];
};

#define OF_HISTORY(member, metavar_, help_)                                                        \
    {                                                                                              \
        .name = #member, .kind = PARAM_TEXT, .offset = offsetof(struct plot_flags, member),        \
        .room = sizeof((struct plot_flags *)0)->member, .def = "", .metavar = metavar_,            \
        .help = help_                                                                              \
    }
static const struct param plot_params[] = {
    {.name = "matrix",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct plot_flags, matrix),
     .room = sizeof((struct plot_flags *)0)->matrix,
     .def = "",
     .metavar = "NAME",
     .help = "Matrix to draw, such as serial or triad. Default: the first."},
    {.name = "file",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct plot_flags, file),
     .room = sizeof((struct plot_flags *)0)->file,
     .def = "",
     .metavar = "FILE",
     .help = "Write SVG to this file; - is standard output."},
    {.name = "text",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct plot_flags, text),
     .def = "false",
     .help = "Draw with characters, even into a pipe."},
    {.name = "measured",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct plot_flags, measured),
     .room = sizeof((struct plot_flags *)0)->measured,
     .def = "",
     .metavar = "RUN|last|none",
     .help = "With topo: the run, or several (17,18), whose values are drawn. Default: the newest "
             "of this node, if there are any."},
    {.name = "allow_different",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct plot_flags, allow_different),
     .def = "false",
     .help = "With compare: runs with different parameters too."},
    {.name = "distribution",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct plot_flags, distribution),
     .def = "false",
     .help = "Draw how the samples of cells are distributed: a histogram. With -o csv or json its "
             "bins."},
    {.name = "row",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct plot_flags, row),
     .room = sizeof((struct plot_flags *)0)->row,
     .def = "",
     .metavar = "VALUE",
     .help = "With --distribution: the row, such as rank 3 or pair 3-17. Default: all together."},
    {.name = "col",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct plot_flags, col),
     .room = sizeof((struct plot_flags *)0)->col,
     .def = "",
     .metavar = "VALUE",
     .help = "With --distribution: the column, such as 256M; all takes all together. Default: the "
             "last, which is the largest working set."},
    OF_HISTORY(node, "NAME", "With history: runs of this node. Default: the daemon's node."),
    OF_HISTORY(variant, "TEXT",
               "With history: runs with these parameters. Default: those of the newest run."),
    OF_HISTORY(since, "TIME", "With history: measured at or after this time, such as 4w."),
    OF_HISTORY(until, "TIME", "With history: measured before this time."),
};
const struct param_table plot_options = {plot_params, COUNT_OF(plot_params)};

static int check_flags(const struct cli *c, const struct plot_flags *f, struct err *err)
{
    if (f->matrix[strspn(f->matrix, "abcdefghijklmnopqrstuvwxyz0123456789_-")])
        return err_set(err, ERR_USAGE, "", "--matrix: \"%s\" is not the name of a matrix",
                       f->matrix);
    if (f->text && *f->file)
        return err_set(
            err, ERR_USAGE, "",
            "--file and --text exclude each other: --file writes SVG, --text characters");
    if (!f->distribution && (*f->row || *f->col))
        return err_set(err, ERR_USAGE, "", "--%s needs --distribution", *f->row ? "row" : "col");
    if (f->distribution && c->output == OUTPUT_NDJSON)
        return err_set(err, ERR_USAGE, "", "--distribution has the forms table, csv and json");
    if (c->output != OUTPUT_TABLE && !f->distribution)
        return err_set(err, ERR_USAGE, "",
                       "a plot is SVG or text; the numbers are in numaprobe matrix -o json");
    return 0;
}

enum picture { OF_RUN = 1, OF_METRIC = 2, OF_TWO = 4, OF_TOPO = 8 };

// What another picture would have heeded is not ignored.
static int refuse_foreign(const struct plot_flags *f, enum picture picture, struct err *err)
{
    const struct {
        const char *option, *owner;
        bool given;
        unsigned pictures;
    } options[] = {
        {"matrix", "plot RUN and plot compare", *f->matrix, OF_RUN | OF_TWO},
        {"text", "plot RUN, plot history and plot compare", f->text, OF_RUN | OF_METRIC | OF_TWO},
        {"measured", "plot topo", *f->measured, OF_TOPO},
        {"allow-different", "plot compare", f->allow_different, OF_TWO},
        {"distribution", "plot RUN", f->distribution, OF_RUN},
        {"node", "plot history", *f->node, OF_METRIC},
        {"variant", "plot history", *f->variant, OF_METRIC},
        {"since", "plot history", *f->since, OF_METRIC},
        {"until", "plot history", *f->until, OF_METRIC},
    };
    for (size_t i = 0; i < COUNT_OF(options); i++)
        if (options[i].given && !(options[i].pictures & picture))
            return err_set(err, ERR_USAGE, "", "--%s belongs to numaprobe %s", options[i].option,
                           options[i].owner);
    return 0;
}

// --- SVG -----------------------------------------------------------------------------------------

static int cmd_plot_save(const struct buf *svg, const char *path, struct err *err)
{
    CLEANUP_OUT_FILE struct out_file file = {0};
    return out_file_open(&file, path, 0666, true, err) < 0 ||
                   out_file_write(&file, buf_text(svg), svg->len, err) < 0
               ? -1
               : out_file_keep(&file, err);
}

// The picture at `path` into the file or to standard output.
static int plot_svg(const struct cli *c, const char *path, const struct plot_flags *f,
                    struct err *err)
{
    CLEANUP_REPLY struct http_reply r = {0};
    if (http_call(c, "GET", path, NULL, NULL, &r, err) < 0)
        return -1;
    if (r.status != 200)
        return http_problem(&r, err);
    if (*f->file && strcmp(f->file, "-") != 0)
        return cmd_plot_save(&r.body, f->file, err);
    print_buf(&r.body);
    return 0;
}

static bool wants_text(const struct cli *c, const struct plot_flags *f)
{
    return f->text || (c->to_terminal && !*f->file);
}

// --- Characters
// ------------------------------------------------------------------------------------

static struct plot_text text_form(const struct cli *c)
{
    struct plot_text how = {TEXT_WIDTH, TEXT_HEIGHT, print_unicode(c), print_colour(c)};
    int width = print_width(c);
    if (width)
        how.width = width - 1; // a full line would wrap on some
    return how;
}

static int plot_text(const struct cli *c, int64_t id, const struct plot_flags *f, struct err *err)
{
    CLEANUP(result_fini) struct result r = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    const struct plot_text how = text_form(c);
    if (result_fetch(c, id, &r, err) < 0)
        return -1;
    struct plot p = {.ranks = r.ranks, .n_ranks = r.n_ranks};
    if (plot_choose(&p, r.matrices, r.n_matrices, f->matrix, err) < 0 ||
        plot_write_text(&p, &how, &out, err) < 0)
        return -1;
    print_buf(&out);
    return 0;
}

static int plot_run(const struct cli *c, const struct invocation *i, const struct plot_flags *f,
                    struct err *err)
{
    char path[120];
    int64_t id;
    if (result_find(c, i->operands, i->n, &id, err) < 0)
        return -1;
    snprintf(path, sizeof path, "/v1/runs/%lld/matrix.svg%s%s", (long long)id,
             *f->matrix ? "?matrix=" : "", f->matrix);
    return wants_text(c, f) ? plot_text(c, id, f, err) : plot_svg(c, path, f, err);
}

// --- How samples are distributed -----------------------------------------------------------------

static bool plot_read_histogram(const struct json *o, struct histogram *h)
{
    *h = (struct histogram){.low = json_get_number(o, "low", NAN),
                            .high = json_get_number(o, "high", NAN),
                            .n = json_get_i64(o, "n", 0)};
    const struct json *bins = json_get(o, "bins");
    for (const struct json *b = json_first(bins); b && h->n_bins < SKETCH_BINS_MAX;
         b = json_next(b))
        h->counts[h->n_bins++] = json_get_i64(b, "count", 0);
    return h->n > 0 && h->n_bins > 0 && h->low > 0 && h->high >= h->low && isfinite(h->high);
}

static int distribution_text(const struct cli *c, const char *path, struct err *err)
{
    CLEANUP_BUF struct buf out = BUF_INIT, title = BUF_INIT, unit = BUF_INIT;
    CLEANUP_JSON struct json *o = NULL;
    struct histogram h;
    const struct plot_text how = text_form(c);
    if (http_json(c, "GET", path, NULL, &o, err) < 0)
        return -1;
    if (!plot_read_histogram(o, &h))
        return err_set(err, ERR_INTERNAL, "", "the response of %.100s is no distribution", c->url);
    buf_plain(&title, json_get_text(o, "title", ""));
    buf_plain(&unit, json_get_text(o, "unit", ""));
    const struct distribution d = {.histogram = &h,
                                   .title = buf_text(&title),
                                   .unit = buf_text(&unit),
                                   .cells = (int)json_get_i64(o, "cells", 1)};
    if (distribution_write_text(&d, &how, &out, err) < 0)
        return -1;
    print_buf(&out);
    return 0;
}

static int plot_distribution(const struct cli *c, const struct invocation *i,
                             const struct plot_flags *f, struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    bool text = c->output == OUTPUT_TABLE && wants_text(c, f);
    bool svg = c->output == OUTPUT_TABLE && !text;
    const struct {
        const char *name, *value;
    } parameters[] = {{"matrix", f->matrix}, {"row", f->row}, {"col", f->col}};
    char sign = '?';
    int64_t id;
    if (result_find(c, i->operands, i->n, &id, err) < 0)
        return -1;
    buf_fmt(&path, "/v1/runs/%lld/distribution%s", (long long)id,
            svg                       ? ".svg"
            : c->output == OUTPUT_CSV ? ".csv"
                                      : "");
    for (size_t k = 0; k < COUNT_OF(parameters); k++)
        if (*parameters[k].value) {
            buf_fmt(&path, "%c%s=", sign, parameters[k].name);
            http_escape(&path, parameters[k].value);
            sign = '&';
        }
    if (!buf_ok(&path))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
    return text ? distribution_text(c, buf_text(&path), err) : plot_svg(c, buf_text(&path), f, err);
}

// --- A metric over time --------------------------------------------------------------------------

static int add_plot_query(struct buf *path, const char *name, const char *value, bool time,
                          struct err *err)
{
    char read[WHEN_ROOM];
    if (!*value)
        return 0;
    if (time && when_read(value, clock_wall_ms(), name, read, err) < 0)
        return -1;
    buf_fmt(path, "&%s=", name);
    http_escape(path, time ? read : value);
    return 0;
}

static int plot_history_text(const struct cli *c, const char *path, struct err *err)
{
    CLEANUP_JSON struct json *answer = NULL;
    struct history_picture p CLEANUP(history_fini) = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    const struct plot_text how = text_form(c);
    if (http_json(c, "GET", path, NULL, &answer, err) < 0 ||
        history_from_json(&p, answer, err) < 0 || history_write_text(&p, &how, &out, err) < 0)
        return -1;
    print_buf(&out);
    return 0;
}

static int plot_history(const struct cli *c, const struct invocation *i, const struct plot_flags *f,
                        struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    bool text = wants_text(c, f);
    if (i->n != 2)
        return err_set(err, ERR_USAGE, "", "history takes one metric (see numaprobe history)");
    buf_fmt(&path, "/v1/history%s?metric=", text ? "" : ".svg");
    http_escape(&path, i->operands[1]);
    if (add_plot_query(&path, "node", f->node, false, err) < 0 ||
        add_plot_query(&path, "variant", f->variant, false, err) < 0 ||
        add_plot_query(&path, "since", f->since, true, err) < 0 ||
        add_plot_query(&path, "until", f->until, true, err) < 0)
        return -1;
    if (!buf_ok(&path))
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
    return text ? plot_history_text(c, buf_text(&path), err) : plot_svg(c, buf_text(&path), f, err);
}

// --- Two runs ------------------------------------------------------------------------------------

// The differences of the response as a table of the matrix's cells.
static void read_differences(const struct json *answer, const struct matrix *m, double *percent,
                             bool *doubtful)
{
    bool same = strcmp(m->row.name, m->col.name) == 0;
    for (int k = 0; k < m->row.n * m->col.n; k++)
        percent[k] = NAN;
    const struct json *cells = json_get(json_get(answer, "comparison"), "cells");
    for (const struct json *d = json_first(cells); d; d = json_next(d)) {
        int row = axis_index(&m->row, json_get_i64(d, m->row.name, -1));
        int col = axis_index(&m->col, json_get_i64(d, same ? "other_rank" : m->col.name, -1));
        if (row < 0 || col < 0)
            continue;
        const char *verdict = json_get_text(d, "verdict", "");
        percent[row * m->col.n + col] = json_get_number(d, "percent", NAN);
        doubtful[row * m->col.n + col] =
            strcmp(verdict, "slower") != 0 && strcmp(verdict, "faster") != 0;
    }
}

static int plot_differences(const struct cli *c, const struct json *answer, int64_t base,
                            struct err *err)
{
    CLEANUP(result_fini) struct result r = {0};
    CLEANUP_BUF struct buf out = BUF_INIT;
    const struct plot_text how = text_form(c);
    if (result_fetch(c, base, &r, err) < 0)
        return -1;
    struct plot p = {.ranks = r.ranks, .n_ranks = r.n_ranks};
    if (plot_choose(&p, r.matrices, r.n_matrices, json_get_text(answer, "matrix", ""), err) < 0)
        return -1;
    size_t n = (size_t)p.matrix->row.n * (size_t)p.matrix->col.n;
    CLEANUP_MEM double *percent = calloc(n + 1, sizeof *percent);
    CLEANUP_MEM bool *doubtful = calloc(n + 1, sizeof *doubtful);
    if (!percent || !doubtful)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for the picture");
    read_differences(answer, p.matrix, percent, doubtful);
    buf_fmt(&out, "%s: ", json_get_text(answer, "verdict", "?"));
    buf_plain(&out, json_get_text(answer, "text", "?"));
    buf_str(&out, "\n\n");
    if (difference_write_text(&p, percent, doubtful, &how, &out, err) < 0)
        return -1;
    print_buf(&out);
    return 0;
}

static int plot_compare(const struct cli *c, const struct invocation *i, const struct plot_flags *f,
                        struct err *err)
{
    CLEANUP_JSON struct json *answer = NULL;
    int64_t base, target;
    char path[200];
    if (i->n != 3)
        return err_set(err, ERR_USAGE, "", "compare takes two runs: plot compare ID ID");
    if (result_find(c, i->operands + 1, 1, &base, err) < 0 ||
        result_find(c, i->operands + 2, 1, &target, err) < 0)
        return -1;
    bool text = wants_text(c, f);
    snprintf(path, sizeof path, "/v1/compare%s?base=%lld&target=%lld%s%s%s", text ? "" : ".svg",
             (long long)base, (long long)target, f->allow_different ? "&allow_different=true" : "",
             *f->matrix ? "&matrix=" : "", f->matrix);
    if (!text)
        return plot_svg(c, path, f, err);
    if (http_json(c, "GET", path, NULL, &answer, err) < 0)
        return -1;
    return plot_differences(c, answer, base, err);
}

// --- Which picture -------------------------------------------------------------------------------

// By the first operand; a run is named by its number alone.
static int plot_topo(const struct cli *c, const struct invocation *i, const struct plot_flags *f,
                     struct err *err)
{
    CLEANUP_BUF struct buf path = BUF_INIT;
    if (i->n > 1)
        return err_set(err, ERR_USAGE, "", "one word too many: \"%.60s\"", i->operands[1]);
    if (c->to_terminal && !*f->file)
        return err_set(err, ERR_USAGE, "",
                       "plot topo is SVG: write it to a file (--file=topo.svg), or print the "
                       "numbers with numaprobe topo --measured=last");
    buf_str(&path, "/v1/topology.svg");
    if (*f->measured) {
        buf_str(&path, "?measured=");
        http_escape(&path, f->measured);
    }
    return buf_ok(&path) ? plot_svg(c, buf_text(&path), f, err)
                         : err_set(err, ERR_NO_MEMORY, "", "no memory for a request");
}

static const struct {
    const char *name;
    enum picture picture;
    int (*draw)(const struct cli *c, const struct invocation *i, const struct plot_flags *f,
                struct err *err);
} pictures[] = {{"history", OF_METRIC, plot_history},
                {"compare", OF_TWO, plot_compare},
                {"topo", OF_TOPO, plot_topo}};

int cmd_plot(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct plot_flags *f = i->options;
    if (check_flags(c, f, err) < 0)
        return -1;
    for (size_t k = 0; k < COUNT_OF(pictures); k++)
        if (i->n && strcmp(i->operands[0], pictures[k].name) == 0)
            return refuse_foreign(f, pictures[k].picture, err) < 0 ? -1
                                                                   : pictures[k].draw(c, i, f, err);
    if (i->n > 1)
        return err_set(err, ERR_USAGE, "", "one word too many: \"%.60s\"", i->operands[1]);
    if (refuse_foreign(f, OF_RUN, err) < 0)
        return -1;
    return (f->distribution ? plot_distribution : plot_run)(c, i, f, err);
}

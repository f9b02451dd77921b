// SPDX-License-Identifier: Apache-2.0
// A measured matrix as a picture: the daemon's SVG into a file or a pipe, characters on a terminal.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/plot/plot.h"
#include "base/cleanup.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"
#include "client/result.h"

enum { TEXT_WIDTH = 80, TEXT_HEIGHT = 14 }; // where the terminal does not report it

struct plot_flags {
    char matrix[24], file[4096];
    bool text;
};

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
    if (c->output != OUTPUT_TABLE)
        return err_set(err, ERR_USAGE, "",
                       "a plot is SVG or text; the numbers are in numaprobe matrix -o json");
    return 0;
}

// --- SVG -----------------------------------------------------------------------------------------

static int cmd_plot_save(const struct buf *svg, const char *path, struct err *err)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return err_sys(err, "%s cannot be written", path);
    size_t done = fwrite(buf_text(svg), 1, svg->len, f);
    int broken = done < svg->len ? errno : 0;
    if (fclose(f) != 0 && !broken)
        broken = errno;
    errno = broken;
    return broken ? err_sys(err, "%s is not whole", path) : 0;
}

static int plot_svg(const struct cli *c, int64_t id, const struct plot_flags *f, struct err *err)
{
    CLEANUP_REPLY struct http_reply r = {0};
    char path[120];
    snprintf(path, sizeof path, "/v1/runs/%lld/matrix.svg%s%s", (long long)id,
             *f->matrix ? "?matrix=" : "", f->matrix);
    if (http_call(c, "GET", path, NULL, NULL, &r, err) < 0)
        return -1;
    if (r.status != 200)
        return http_problem(&r, err);
    if (*f->file && strcmp(f->file, "-") != 0)
        return cmd_plot_save(&r.body, f->file, err);
    print_buf(&r.body);
    return 0;
}

// --- Characters
// ------------------------------------------------------------------------------------

static struct plot_text text_form(const struct cli *c)
{
    struct plot_text how = {TEXT_WIDTH, TEXT_HEIGHT, print_unicode(c), print_colour(c)};
    if (c->width)
        how.width = c->width - 1; // a full line would wrap on some
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

int cmd_plot(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct plot_flags *f = i->options;
    int64_t id;
    if (check_flags(c, f, err) < 0 || result_find(c, i->operands, i->n, &id, err) < 0)
        return -1;
    bool text = f->text || (c->to_terminal && !*f->file);
    return text ? plot_text(c, id, f, err) : plot_svg(c, id, f, err);
}

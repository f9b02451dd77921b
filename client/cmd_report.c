// SPDX-License-Identifier: Apache-2.0
// numaprobe report: what the numbers of a run mean, or of a serial and a concurrent one together.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/out_file.h"
#include "client/print.h"
#include "client/result.h"

struct report_flags {
    char html[4096];
    bool force;
};

static const struct param report_params[] = {
    {.name = "html",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct report_flags, html),
     .room = sizeof((struct report_flags *)0)->html,
     .def = "",
     .metavar = "FILE",
     .help = "Write a page with pictures and tables to this file; - is standard output."},
    {.name = "force",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct report_flags, force),
     .def = "false",
     .help = "Replace the file of --html if it exists."},
};
const struct param_table report_options = {report_params, COUNT_OF(report_params)};

static int save_page(const struct buf *page, const struct report_flags *f, struct err *err)
{
    CLEANUP_OUT_FILE struct out_file file = {0};
    return out_file_open(&file, f->html, 0666, f->force, err) < 0 ||
                   out_file_write(&file, buf_text(page), page->len, err) < 0
               ? -1
               : out_file_keep(&file, err);
}

static int report_page(const struct cli *c, const struct report_flags *f, int64_t id, int64_t with,
                       struct err *err)
{
    CLEANUP_REPLY struct http_reply r = {0};
    char path[120];
    int n = snprintf(path, sizeof path, "/v1/runs/%lld/report.html", (long long)id);
    if (with)
        snprintf(path + n, sizeof path - (size_t)n, "?with=%lld", (long long)with);
    if (c->output != OUTPUT_TABLE)
        return err_set(err, ERR_USAGE, "", "--html and -o exclude each other");
    if (http_call(c, "GET", path, NULL, NULL, &r, err) < 0)
        return -1;
    if (r.status != 200)
        return http_problem(&r, err);
    if (strcmp(f->html, "-") != 0)
        return save_page(&r.body, f, err);
    print_buf(&r.body);
    return 0;
}

static void print_report(const struct cli *c, const char *text)
{
    bool colour = print_colour(c);
    for (const char *at = text; *at; at += *at == '\n') {
        CLEANUP_BUF struct buf line = BUF_INIT;
        size_t n = strcspn(at, "\n");
        bool bold = colour && (str_starts(at, "# ") || str_starts(at, "## "));
        buf_add(&line, at, n);
        fputs(bold ? "\033[" PRINT_BOLD "m" : "", stdout);
        print_item(c, buf_text(&line));
        fputs(bold ? "\033[0m" : "", stdout);
        at += n;
    }
}

int cmd_report(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct report_flags *f = i->options;
    CLEANUP_JSON struct json *answer = NULL;
    CLEANUP_REPLY struct http_reply r = {0};
    int64_t id, with = 0;
    char path[120];
    if (result_find(c, i->operands, i->n, &id, err) < 0 ||
        (i->n > 1 && result_find(c, i->operands + 1, 1, &with, err) < 0))
        return -1;
    if (*f->html)
        return report_page(c, f, id, with, err);
    snprintf(path, sizeof path, "/v1/runs/%lld/report", (long long)id);
    if (with)
        snprintf(path + strlen(path), sizeof path - strlen(path), "?with=%lld", (long long)with);
    if (c->output == OUTPUT_CSV)
        return err_set(
            err, ERR_USAGE, "",
            "a report is text or JSON (-o json); numaprobe matrix -o csv has the numbers");
    if (c->output != OUTPUT_TABLE) {
        if (http_json(c, "GET", path, NULL, &answer, err) < 0)
            return -1;
        print_json(answer);
        return 0;
    }
    if (http_call(c, "GET", path, NULL, "Accept: text/markdown", &r, err) < 0)
        return -1;
    if (r.status != 200)
        return http_problem(&r, err);
    print_report(c, buf_text(&r.body));
    return 0;
}

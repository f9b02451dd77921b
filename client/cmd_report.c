// SPDX-License-Identifier: Apache-2.0
// numaprobe report: what the numbers of a run mean, or of a serial and a concurrent one together.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"
#include "client/result.h"

static void print_report(const char *text, bool colour)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    for (const char *at = text; *at; at += *at == '\n') {
        CLEANUP_BUF struct buf line = BUF_INIT;
        size_t n = strcspn(at, "\n");
        bool bold = colour && (str_starts(at, "# ") || str_starts(at, "## "));
        buf_add(&line, at, n);
        buf_str(&out, bold ? "\033[" PRINT_BOLD "m" : "");
        print_safe(&out, buf_text(&line));
        buf_str(&out, bold ? "\033[0m\n" : "\n");
        at += n;
    }
    print_buf(&out);
}

int cmd_report(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_JSON struct json *answer = NULL;
    CLEANUP_REPLY struct http_reply r = {0};
    int64_t id, with = 0;
    char path[120];
    if (result_find(c, i->operands, i->n, &id, err) < 0 ||
        (i->n > 1 && result_find(c, i->operands + 1, 1, &with, err) < 0))
        return -1;
    snprintf(path, sizeof path, "/v1/runs/%lld/report", (long long)id);
    if (with)
        snprintf(path + strlen(path), sizeof path - strlen(path), "?with=%lld", (long long)with);
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
    print_report(buf_text(&r.body), print_colour(c));
    return 0;
}

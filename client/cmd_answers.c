// SPDX-License-Identifier: Apache-2.0
// What stored runs have to say: compare two, report on one.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/http.h"
#include "client/print.h"
#include "client/result.h"

enum { EXIT_REGRESSION = 7, EXIT_INCONCLUSIVE = 8 };

struct compare_flags {
    char matrix[24];
    double threshold;
    bool anyway;
};

static const struct param compare_params[] = {
    {.name = "matrix",
     .kind = PARAM_TEXT,
     .offset = offsetof(struct compare_flags, matrix),
     .room = sizeof((struct compare_flags *)0)->matrix,
     .def = "",
     .metavar = "NAME",
     .help = "Which matrix: concurrent or serial; the first that both runs have otherwise."},
    {.name = "threshold",
     .kind = PARAM_REAL,
     .offset = offsetof(struct compare_flags, threshold),
     .min = 0.1,
     .max = 100,
     .def = "3",
     .unit = "%",
     .help = "Differences that are surely smaller do not matter."},
    {.name = "anyway",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct compare_flags, anyway),
     .def = "false",
     .help = "Compare although method or page kind differ; says so."},
};
const struct param_table compare_options = {compare_params, COUNT_OF(compare_params)};

static void add_group(struct grid *g, const struct json *group)
{
    const char *by = json_get_text(group, "by", "?");
    char what[40];
    if (strcmp(by, "size") == 0)
        str_size_head((uint64_t)json_get_i64(group, "value", 0), what, sizeof what);
    else if (strcmp(by, "overall") == 0)
        snprintf(what, sizeof what, "all");
    else
        snprintf(what, sizeof what, "%s %lld", by, (long long)json_get_i64(group, "value", 0));
    grid_cell(g, "%s", what);
    grid_cell(g, "%.2f", json_get_number(group, "a", 0));
    grid_cell(g, "%.2f", json_get_number(group, "b", 0));
    grid_cell(g, "%+.1f", json_get_number(group, "percent", 0));
    grid_cell(g, "%+.1f", json_get_number(group, "lo_percent", 0));
    grid_cell(g, "%+.1f", json_get_number(group, "hi_percent", 0));
    grid_cell(g, "%s", json_get_text(group, "verdict", "?"));
}

static void print_lines(const char *head, const struct json *texts)
{
    for (const struct json *t = json_first(texts); t; t = json_next(t)) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        print_safe(&line, json_text(t) ? json_text(t) : "");
        printf("%s%s\n", head, buf_text(&line));
    }
}

static void print_changes(const struct json *changes)
{
    if (json_is_null(changes))
        puts("\nwhat the machine was is not known of both runs");
    else if (!json_first(changes))
        puts("\nnothing that is known of the machine has changed");
    else
        puts("\nchanged on the machine, most suspicious first:");
    for (const struct json *c = json_first(changes); c; c = json_next(c)) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        print_safe(&line, json_get_text(c, "name", "?"));
        buf_str(&line, ": ");
        print_safe(&line, json_get_text(c, "a", "not known"));
        buf_str(&line, " -> ");
        print_safe(&line, json_get_text(c, "b", "not known"));
        printf("  %s\n", buf_text(&line));
    }
}

static void print_comparison(const struct cli *c, const struct json *answer)
{
    static const struct column columns[] = {
        {"what", "", false},           {"a", "before", true},        {"b", "after", true},
        {"percent", "%", true},        {"lo_percent", "from", true}, {"hi_percent", "to", true},
        {"verdict", "verdict", false},
    };
    const struct json *comparison = json_get(answer, "comparison");
    CLEANUP_GRID struct grid g;
    grid_init(&g, columns, COUNT_OF(columns));
    for (const struct json *k = json_first(json_get(comparison, "groups")); k; k = json_next(k))
        add_group(&g, k);
    grid_print(&g, c);
    if (c->output != OUTPUT_TABLE)
        return;
    print_lines("note: ", json_get(comparison, "notes"));
    print_changes(json_get(answer, "changes"));
}

// 7: something is slower, in all or in a part; 8: it cannot be told.
static int status_of(const struct json *answer)
{
    for (const struct json *g = json_first(json_get(json_get(answer, "comparison"), "groups")); g;
         g = json_next(g))
        if (strcmp(json_get_text(g, "verdict", ""), "slower") == 0)
            return EXIT_REGRESSION;
    return strcmp(json_get_text(answer, "verdict", ""), "inconclusive") == 0 ? EXIT_INCONCLUSIVE
                                                                             : 0;
}

int cmd_compare(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct compare_flags *f = i->options;
    CLEANUP_JSON struct json *answer = NULL;
    int64_t base, target;
    char path[200];
    if (result_find(c, i->operands, 1, &base, err) < 0 ||
        result_find(c, i->operands + 1, 1, &target, err) < 0)
        return -1;
    if (f->matrix[strspn(f->matrix, "abcdefghijklmnopqrstuvwxyz0123456789_-")])
        return err_set(err, ERR_USAGE, "", "--matrix: \"%s\" is no matrix's name", f->matrix);
    snprintf(path, sizeof path, "/v1/compare?base=%lld&target=%lld&threshold=%g%s%s%s",
             (long long)base, (long long)target, f->threshold, f->anyway ? "&anyway=true" : "",
             *f->matrix ? "&matrix=" : "", f->matrix);
    if (http_json(c, "GET", path, NULL, &answer, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON)
        print_json(answer);
    else
        print_comparison(c, answer);
    return status_of(answer);
}

static void print_report(const char *text)
{
    CLEANUP_BUF struct buf safe = BUF_INIT;
    for (const char *at = text; *at; at += *at == '\n') {
        char line[1024];
        size_t n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        print_safe(&safe, line);
        buf_char(&safe, '\n');
        at += n;
    }
    print_buf(&safe);
}

int cmd_report(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_JSON struct json *answer = NULL;
    CLEANUP_REPLY struct http_reply r = {0};
    int64_t id;
    char path[80];
    if (result_find(c, i->operands, i->n, &id, err) < 0)
        return -1;
    snprintf(path, sizeof path, "/v1/runs/%lld/report", (long long)id);
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
    print_report(buf_text(&r.body));
    return 0;
}

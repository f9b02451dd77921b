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
     .help = "Which matrix, such as serial or triad; the first that both runs have otherwise."},
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
     .help = "Compare although the two ask different questions; says which."},
};
const struct param_table compare_options = {compare_params, COUNT_OF(compare_params)};

static const char *verdict_colour(const char *verdict)
{
    return strcmp(verdict, "slower") == 0         ? PRINT_RED
           : strcmp(verdict, "faster") == 0       ? PRINT_GREEN
           : strcmp(verdict, "inconclusive") == 0 ? PRINT_YELLOW
                                                  : NULL;
}

// "all", "local", "rank 3", "32MB": what needs no other word has none.
static void group_name(const struct json *group, char *out, size_t room)
{
    static const char *const plain[] = {"overall", "size", "locality", "access"};
    const char *by = json_get_text(group, "by", "?"), *label = json_get_text(group, "label", "?");
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        if (strcmp(by, plain[i]) == 0) {
            snprintf(out, room, "%s", label);
            return;
        }
    snprintf(out, room, "%s %s", by, label);
}

// With its sign; a tenth of a per cent matters up to a hundred. What is not known stays empty.
static void add_percent(struct grid *g, const struct json *difference, const char *member)
{
    double v;
    if (json_number(json_get(difference, member), &v))
        grid_cell(g, "%+.*f", v > -100 && v < 100 ? 1 : 0, v);
    else
        grid_cell(g, "%s", "");
}

static void add_verdict(struct grid *g, const char *what, const struct json *difference)
{
    grid_cell(g, "%s", what);
    grid_value(g, json_get_number(difference, "a", 0));
    grid_value(g, json_get_number(difference, "b", 0));
    add_percent(g, difference, "percent");
    add_percent(g, difference, "lo_percent");
    add_percent(g, difference, "hi_percent");
    grid_cell(g, "%s", json_get_text(difference, "verdict", "?"));
}

static void add_group(struct grid *g, const struct json *group)
{
    char what[64];
    group_name(group, what, sizeof what);
    add_verdict(g, what, group);
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

static const struct column verdict_columns[] = {
    {.name = "what", .title = ""},
    {.name = "a", .title = "before", .number = true},
    {.name = "b", .title = "after", .number = true},
    {.name = "percent", .title = "%", .number = true},
    {.name = "lo_percent", .title = "from", .number = true},
    {.name = "hi_percent", .title = "to", .number = true},
    {.name = "verdict", .title = "verdict", .paint = verdict_colour},
};

// The other matrices of the two runs, a line each.
static void print_others(const struct cli *c, const struct json *answer)
{
    CLEANUP_GRID struct grid g;
    const char *shown = json_get_text(answer, "matrix", "");
    grid_init(&g, verdict_columns, COUNT_OF(verdict_columns));
    for (const struct json *m = json_first(json_get(answer, "matrices")); m; m = json_next(m)) {
        char what[64];
        snprintf(what, sizeof what, "%s (%s)", json_get_text(m, "matrix", "?"),
                 json_get_text(m, "unit", "?"));
        if (strcmp(json_get_text(m, "matrix", ""), shown) != 0)
            add_verdict(&g, what, m);
    }
    if (!g.n_rows)
        return;
    puts("\nthe other matrices as a whole (--matrix=NAME for their parts):");
    grid_print(&g, c);
}

static void print_comparison(const struct cli *c, const struct json *answer)
{
    const struct json *comparison = json_get(answer, "comparison");
    CLEANUP_GRID struct grid g;
    CLEANUP_BUF struct buf head = BUF_INIT;
    grid_init(&g, verdict_columns, COUNT_OF(verdict_columns));
    for (const struct json *k = json_first(json_get(comparison, "groups")); k; k = json_next(k))
        add_group(&g, k);
    if (c->output == OUTPUT_TABLE) {
        print_safe(&head, json_get_text(answer, "matrix", "?"));
        buf_str(&head, " in ");
        print_safe(&head, json_get_text(answer, "unit", "?"));
        printf("%s%s\n", buf_text(&head),
               json_get_bool(comparison, "more_is_better", false) ? ", more is better" : "");
    }
    grid_print(&g, c);
    if (c->output != OUTPUT_TABLE)
        return;
    print_others(c, answer);
    print_lines("note: ", json_get(comparison, "notes"));
    print_changes(json_get(answer, "changes"));
}

static bool any_slower(const struct json *list)
{
    for (const struct json *k = json_first(list); k; k = json_next(k))
        if (strcmp(json_get_text(k, "verdict", ""), "slower") == 0)
            return true;
    return false;
}

// 7: something is slower, in all or in a part, of this matrix or another as a whole; 8: it cannot
// be told.
static int status_of(const struct json *answer)
{
    if (any_slower(json_get(json_get(answer, "comparison"), "groups")) ||
        any_slower(json_get(answer, "matrices")))
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

// SPDX-License-Identifier: Apache-2.0
// What stored runs have to say: compare two, report on one.
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/exits.h"
#include "client/http.h"
#include "client/print.h"
#include "client/result.h"

struct compare_flags {
    char matrix[24];
    double threshold;
    bool anyway, all;
};

// The daemon's verdict, and what comes of it here.
static const struct {
    const char *name, *colour;
    int exit;
} verdicts[] = {
    {"same", NULL, CLI_EXIT_SUCCESS},
    {"faster", PRINT_GREEN, CLI_EXIT_SUCCESS},
    {"slower", PRINT_RED, CLI_EXIT_SLOWER},
    {"inconclusive", PRINT_YELLOW, CLI_EXIT_INCONCLUSIVE},
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
    {.name = "all",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct compare_flags, all),
     .def = "false",
     .help = "Show every row of the table, not only those that the verdict rests on."},
};
const struct param_table compare_options = {compare_params, COUNT_OF(compare_params)};

static const char *verdict_colour(const char *verdict)
{
    for (size_t i = 0; i < COUNT_OF(verdicts); i++)
        if (strcmp(verdict, verdicts[i].name) == 0)
            return verdicts[i].colour;
    return NULL;
}

static int verdict_exit(const char *verdict)
{
    for (size_t i = 0; i < COUNT_OF(verdicts); i++)
        if (strcmp(verdict, verdicts[i].name) == 0)
            return verdicts[i].exit;
    return CLI_EXIT_INCONCLUSIVE; // of a daemon that knows more than we
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

// Empty: it has no value.
static void add_value(struct grid *g, const struct json *difference, const char *member)
{
    double v;
    if (json_number(json_get(difference, member), &v))
        grid_value(g, v);
    else
        grid_cell(g, "%s", "");
}

static void add_verdict(struct grid *g, const char *what, const struct json *difference)
{
    grid_cell(g, "%s", what);
    add_value(g, difference, "a");
    add_value(g, difference, "b");
    add_percent(g, difference, "percent");
    add_percent(g, difference, "lo_percent");
    add_percent(g, difference, "hi_percent");
    grid_cell(g, "%s", json_get_text(difference, "verdict", "?"));
}

static void cmd_answers_add_group(struct grid *g, const struct json *group)
{
    char what[64];
    group_name(group, what, sizeof what);
    add_verdict(g, what, group);
}

static void cmd_answers_print_lines(const char *head, const struct json *texts)
{
    for (const struct json *t = json_first(texts); t; t = json_next(t)) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        print_safe(&line, json_text(t) ? json_text(t) : "");
        printf("%s%s\n", head, buf_text(&line));
    }
}

static void cmd_answers_print_changes(const struct json *changes)
{
    if (json_is_null(changes))
        puts("\nthe machine's configuration is not recorded for both runs");
    else if (!json_first(changes))
        puts("\nno recorded fact of the machine differs");
    else
        puts("\nfacts of the machine that differ (A -> B), most suspicious first:");
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
    {.name = "a", .title = "A", .number = true},
    {.name = "b", .title = "B", .number = true},
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

// The one sentence that everything else explains.
static void print_headline(const struct cli *c, const struct json *answer)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    const char *verdict = json_get_text(answer, "verdict", "?");
    const char *colour = print_colour(c) ? verdict_colour(verdict) : NULL;
    print_safe(&line, verdict);
    buf_str(&line, ": ");
    print_safe(&line, json_get_text(answer, "text", "?"));
    printf("%s%s%s%s%s\nA: run %lld, B: run %lld\n", colour ? "\033[" : "", colour ? colour : "",
           colour ? "m" : "", buf_text(&line), colour ? "\033[0m" : "",
           (long long)json_get_i64(answer, "base", 0),
           (long long)json_get_i64(answer, "target", 0));
}

static bool is_overall(const struct json *group)
{
    return strcmp(json_get_text(group, "by", ""), "overall") == 0;
}

static bool has_verdict(const struct json *of, const char *verdict)
{
    return strcmp(json_get_text(of, "verdict", ""), verdict) == 0;
}

// People see the rows that the verdict rests on. Returns how many are left out.
static int add_groups(struct grid *g, const struct json *answer, bool all)
{
    const struct json *groups = json_get(json_get(answer, "comparison"), "groups");
    bool open = has_verdict(answer, "inconclusive");
    int left_out = 0;
    for (const struct json *k = json_first(groups); k; k = json_next(k))
        if (all || is_overall(k) || has_verdict(k, "slower") || has_verdict(k, "faster") ||
            (open && has_verdict(k, "inconclusive")))
            cmd_answers_add_group(g, k);
        else
            left_out++;
    return left_out;
}

static void print_comparison(const struct cli *c, const struct json *answer, bool all)
{
    const struct json *comparison = json_get(answer, "comparison");
    bool table = c->output == OUTPUT_TABLE;
    CLEANUP_GRID struct grid g;
    CLEANUP_BUF struct buf head = BUF_INIT;
    grid_init(&g, verdict_columns, COUNT_OF(verdict_columns));
    int left_out = add_groups(&g, answer, all || !table);
    if (table) {
        print_headline(c, answer);
        cmd_answers_print_lines("note: ", json_get(comparison, "notes"));
        print_safe(&head, json_get_text(answer, "matrix", "?"));
        buf_str(&head, " in ");
        print_safe(&head, json_get_text(answer, "unit", "?"));
        printf("\n%s%s\n", buf_text(&head),
               json_get_bool(comparison, "more_is_better", false) ? ", more is better" : "");
    }
    grid_print(&g, c);
    if (!table)
        return;
    if (left_out)
        printf("%d more row%s with --all\n", left_out, left_out == 1 ? "" : "s");
    print_others(c, answer);
    cmd_answers_print_changes(json_get(answer, "changes"));
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
        print_comparison(c, answer, f->all);
    return verdict_exit(json_get_text(answer, "verdict", ""));
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

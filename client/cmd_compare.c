// SPDX-License-Identifier: Apache-2.0
// numaprobe compare: is run B slower than run A, where, and what changed on the machine?
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/exits.h"
#include "client/http.h"
#include "client/print.h"
#include "client/result.h"

struct compare_flags {
    char matrix[24];
    double threshold;
    bool allow_different, cycles, all;
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
     .help = "Matrix to compare, such as serial or triad. Default: the first of both runs."},
    {.name = "threshold",
     .kind = PARAM_REAL,
     .offset = offsetof(struct compare_flags, threshold),
     .min = 0.1,
     .max = 100,
     .def = "3",
     .unit = "%",
     .help = "Ignore differences that are significantly (95 %) smaller than this."},
    {.name = "allow_different",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct compare_flags, allow_different),
     .def = "false",
     .help = "Compare runs with different parameters. A note names the parameters."},
    {.name = "cycles",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct compare_flags, cycles),
     .def = "false",
     .help = "Compare cycles of each rank's core instead of times. A different clock then makes no "
             "difference."},
    {.name = "all",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct compare_flags, all),
     .def = "false",
     .help = "Also print the tables: sizes, ranks, nodes and the other matrices."},
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
        grid_number(g, v);
    else
        grid_cell(g, "%s", "");
}

static void add_verdict(struct grid *g, const char *what, const char *unit,
                        const struct json *difference)
{
    grid_cell(g, "%s", what);
    add_value(g, difference, "base_value");
    add_value(g, difference, "target_value");
    add_percent(g, difference, "percent");
    add_percent(g, difference, "lo_percent");
    add_percent(g, difference, "hi_percent");
    grid_cell(g, "%s", json_get_text(difference, "verdict", "?"));
    grid_cell(g, "%s", unit);
}

static void add_group(struct grid *g, const struct json *group, const char *unit)
{
    char what[64];
    group_name(group, what, sizeof what);
    add_verdict(g, what, unit, group);
}

static void print_lines(const struct cli *c, const char *head, const struct json *texts)
{
    for (const struct json *t = json_first(texts); t; t = json_next(t)) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        buf_fmt(&line, "%s%s", head, json_text(t) ? json_text(t) : "");
        print_paragraph(c, buf_text(&line), 4);
    }
}

static void print_changes(const struct cli *cli, const struct json *changes)
{
    if (json_is_null(changes))
        puts("\nThe configuration of the machine is not recorded for both runs.");
    else if (!json_first(changes))
        puts("\nNo recorded fact of the machine differs.");
    else
        puts("\nFacts of the machine that differ (A -> B), most likely cause first:");
    for (const struct json *c = json_first(changes); c; c = json_next(c)) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        buf_fmt(&line, "- %s: %s -> %s", json_get_text(c, "name", "?"),
                json_get_text(c, "before", "not known"), json_get_text(c, "after", "not known"));
        print_paragraph(cli, buf_text(&line), 4);
    }
}

static const struct column verdict_columns[] = {
    {.name = "what", .title = ""},
    {.name = "base_value", .title = "A", .number = true, .rounded = true},
    {.name = "target_value", .title = "B", .number = true, .rounded = true},
    {.name = "percent", .title = "%", .number = true},
    {.name = "lo_percent", .title = "from", .number = true},
    {.name = "hi_percent", .title = "to", .number = true},
    {.name = "verdict", .title = "verdict", .paint = verdict_colour},
    {.name = "unit"}, // a table has it in its heading
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
            add_verdict(&g, what, json_get_text(m, "unit", ""), m);
    }
    if (!g.n_rows)
        return;
    putchar('\n');
    print_paragraph(c, "The other matrices as a whole (--matrix=NAME for their parts):", 0);
    grid_print(&g, c);
}

// The one sentence that everything else explains: "SLOWER: memory of node 3 +18.2 % …".
static void print_headline(const struct cli *c, const struct json *answer)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    const char *verdict = json_get_text(answer, "verdict", "?");
    const char *colour = print_colour(c) ? verdict_colour(verdict) : NULL;
    for (const char *p = verdict; *p; p++)
        buf_char(&line, (char)toupper((unsigned char)*p));
    buf_str(&line, ": ");
    buf_str(&line, json_get_text(answer, "text", "?"));
    if (colour)
        printf("\033[%sm", colour);
    print_paragraph(c, buf_text(&line), 2);
    printf("%sA: run %lld, B: run %lld\n", colour ? "\033[0m" : "",
           (long long)json_get_i64(answer, "base", 0),
           (long long)json_get_i64(answer, "target", 0));
}

static void print_groups(const struct cli *c, const struct json *answer)
{
    const struct json *comparison = json_get(answer, "comparison");
    const char *unit = json_get_text(answer, "unit", "");
    CLEANUP_GRID struct grid g;
    grid_init(&g, verdict_columns, COUNT_OF(verdict_columns));
    for (const struct json *k = json_first(json_get(comparison, "groups")); k; k = json_next(k))
        add_group(&g, k, unit);
    if (c->output == OUTPUT_TABLE) {
        CLEANUP_BUF struct buf head = BUF_INIT;
        buf_plain(&head, json_get_text(answer, "matrix", "?"));
        buf_str(&head, " in ");
        buf_plain(&head, json_get_text(answer, "unit", "?"));
        printf("\n%s%s\n", buf_text(&head),
               json_get_bool(comparison, "more_is_better", false) ? ", more is better" : "");
    }
    grid_print(&g, c);
}

static void print_comparison(const struct cli *c, const struct json *answer, bool all)
{
    const struct json *comparison = json_get(answer, "comparison");
    if (c->output != OUTPUT_TABLE) {
        print_groups(c, answer);
        return;
    }
    int rows = json_count(json_get(comparison, "groups"));
    print_headline(c, answer);
    double detectable;
    bool more = json_get_bool(comparison, "more_is_better", false);
    if (json_number(json_get(comparison, "detectable_percent"), &detectable)) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        buf_fmt(
            &line,
            "Two such runs show a shift of all cells by %s%.1f %% or more (in 80 of 100 cases).",
            more ? "-" : "", detectable);
        print_paragraph(c, buf_text(&line), 2);
    }
    print_lines(c, "note: ", json_get(comparison, "notes"));
    if (all) {
        print_groups(c, answer);
        print_others(c, answer);
    }
    print_changes(c, json_get(answer, "fact_changes"));
    if (!all)
        printf("\n--all prints the tables (%d row%s).\n", rows, str_plural(rows));
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
        return err_set(err, ERR_USAGE, "", "--matrix: \"%s\" is not the name of a matrix",
                       f->matrix);
    snprintf(path, sizeof path, "/v1/compare?base=%lld&target=%lld&threshold=%g%s%s%s%s",
             (long long)base, (long long)target, f->threshold,
             f->allow_different ? "&allow_different=true" : "", f->cycles ? "&cycles=true" : "",
             *f->matrix ? "&matrix=" : "", f->matrix);
    if (http_json(c, "GET", path, NULL, &answer, err) < 0) {
        // What is wrong with the two runs. The text names them, and no option here has such a name.
        if (strcmp(err->member, "mode") == 0 || strcmp(err->member, "target") == 0)
            *err->member = '\0';
        return -1;
    }
    if (c->output == OUTPUT_JSON)
        print_json(answer);
    else
        print_comparison(c, answer, f->all);
    return verdict_exit(json_get_text(answer, "verdict", ""));
}

// SPDX-License-Identifier: Apache-2.0
// numaprobe availability: would a run be admitted now, and which conditions block it?
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "client/commands.h"
#include "client/http.h"
#include "client/print.h"

enum { EXIT_BUSY = 6 };

// What differs from the benchmark's defaults: the daemon has the same table.
static void availability_query(struct buf *path, const struct param_table *t, const struct spec *s,
                               const struct spec *defaults)
{
    for (int i = 0; i < t->n; i++) {
        char value[SPEC_TEXT_MAX], plain[SPEC_TEXT_MAX];
        param_get_text(&t->params[i], s, value, sizeof value);
        param_get_text(&t->params[i], defaults, plain, sizeof plain);
        if (strcmp(value, plain) == 0)
            continue;
        buf_fmt(path, "&%s=", t->params[i].name);
        http_escape(path, value);
    }
}

// A readable size where it is of bytes ("2.46T"), else the number.
static void measured_cell(struct grid *g, const struct json *blocker, const char *name,
                          bool readable)
{
    char size[24];
    double value = json_get_number(blocker, name, 0);
    bool bytes = strcmp(json_get_text(blocker, "unit", ""), "bytes") == 0;
    str_rough_size(value, size, sizeof size);
    if (bytes && readable)
        grid_cell(g, "%s", size);
    else
        grid_cell(g, "%.15g", value);
}

static void add_rows(struct grid *g, const struct json *list, const char *weight, bool readable)
{
    for (const struct json *b = json_first(list); b; b = json_next(b)) {
        grid_cell(g, "%s", weight);
        grid_cell(g, "%s", json_get_text(b, "kind", ""));
        measured_cell(g, b, "measured", readable);
        measured_cell(g, b, "limit", readable);
        grid_cell(g, "%s", json_get_text(b, "unit", ""));
        grid_cell(g, "%s", json_get_text(b, "text", ""));
    }
}

static bool lacks_memory(const struct json *blockers)
{
    static const char *const kinds[] = {"memory", "cgroup_memory", "reserved_pages"};
    for (const struct json *b = json_first(blockers); b; b = json_next(b))
        for (size_t i = 0; i < COUNT_OF(kinds); i++)
            if (strcmp(json_get_text(b, "kind", ""), kinds[i]) == 0)
                return true;
    return false;
}

static void print_answer(const struct json *answer, bool available)
{
    int64_t retry_s = json_get_i64(answer, "retry_after_s", 0);
    if (!available && lacks_memory(json_get(answer, "blockers")))
        puts("A run would be refused: the node has too little free memory.");
    else if (!available && retry_s > 0)
        printf("The node is busy. Try again in %lld s.\n", (long long)retry_s);
    else if (!available)
        puts("A run would be refused.");
    else if (json_get_bool(answer, "busy", false))
        puts("A run is in progress. A new run would wait for its end.");
    else
        puts("A run would start now.");
}

static void print_notes(const struct cli *c, const struct json *notes)
{
    for (const struct json *n = json_first(notes); n; n = json_next(n)) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        buf_fmt(&line, "Note: %s.", json_text(n) ? json_text(n) : "");
        print_line_to(c, stdout, buf_text(&line));
    }
}

int cmd_availability(struct cli *c, const struct invocation *i, struct err *err)
{
    static const struct column columns[] = {
        {"weight", "WEIGHT", false},    {"kind", "KIND", false},
        {"measured", "MEASURED", true}, {"limit", "LIMIT", true},
        {"unit", "UNIT", false},        {.name = "text", .title = "TEXT", .wraps = true}};
    const struct benchmark *b = &benchmarks[i->spec->benchmark];
    struct spec defaults;
    CLEANUP_BUF struct buf path = BUF_INIT;
    CLEANUP_JSON struct json *answer = NULL;
    spec_init(&defaults, (enum benchmark_id)i->spec->benchmark);
    buf_fmt(&path, "/v1/availability?benchmark=%s", b->name);
    availability_query(&path, &b->params, i->spec, &defaults);
    availability_query(&path, &spec_common, i->spec, &defaults);
    if (http_json(c, "GET", buf_text(&path), NULL, &answer, err) < 0)
        return -1;
    bool available = json_get_bool(answer, "available", false);
    if (c->output == OUTPUT_JSON) {
        print_json(answer);
        return available ? 0 : EXIT_BUSY;
    }
    struct grid g CLEANUP(grid_fini);
    grid_init(&g, columns, COUNT_OF(columns));
    add_rows(&g, json_get(answer, "blockers"), "refuses", c->output == OUTPUT_TABLE);
    add_rows(&g, json_get(answer, "warnings"), "noted", c->output == OUTPUT_TABLE);
    if (c->output == OUTPUT_TABLE)
        print_answer(answer, available);
    if (c->output == OUTPUT_TABLE)
        print_notes(c, json_get(answer, "notes"));
    if (c->output == OUTPUT_TABLE && g.n_rows)
        putchar('\n');
    if (c->output != OUTPUT_TABLE || g.n_rows)
        grid_print(&g, c);
    return available ? 0 : EXIT_BUSY;
}

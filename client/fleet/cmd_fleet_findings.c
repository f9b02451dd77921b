// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet findings: what the collector keeps as wrong, and what people say of it.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "client/fleet/collector.h"
#include "client/fleet/fleet.h"
#include "client/http.h"
#include "client/print.h"

struct findings_options {
    char state[64], what[64], where[512], note[501];
};

static const struct param findings_params[] = {
    PARAM_TEXT_ROW(struct findings_options, state, .filled = true, .metavar = "STATE",
                   .help = "forming, open, acknowledged, fixed or closed. Default: open, "
                           "acknowledged and fixed."),
    PARAM_TEXT_ROW(struct findings_options, what, .filled = true, .metavar = "KIND",
                   .help = "outlier, slower, group, drift, stale, down, reinstalled, twin, "
                           "duplicate, alien, rewound, clock, poison or version. Default: all."),
    PARAM_TEXT_ROW(struct findings_options, where, .filled = true, .metavar = "NODES",
                   .help = "Only findings of these nodes, as the collector knows them "
                           "(n[001-040]), and of groups. Default: "
                           "those of --nodes, else all."),
    PARAM_TEXT_ROW(struct findings_options, note, .filled = true, .metavar = "TEXT",
                   .help = "Of acknowledge, fix and reopen: why. Default: the note stays."),
};
const struct param_table fleet_findings_options = {findings_params, COUNT_OF(findings_params)};

static const struct column people_columns[] = {
    {"id", "ID", true},        {"what", "WHAT", false},
    {"grade", "GRADE", false}, {"state", "STATE", false},
    {"since", "SINCE", false}, {.name = "text", .title = "FINDING", .wraps = true}};

static const struct column program_columns[] = {
    {"id", "ID", true},           {"what", "WHAT", false},     {"grade", "GRADE", false},
    {"state", "STATE", false},    {"node", "NODE", false},     {"class", "CLASS", false},
    {"metric", "METRIC", false},  {"percent", "DIFF %", true}, {"lo", "LO", true},
    {"hi", "HI", true},           {"since", "SINCE", false},   {"found", "FOUND", false},
    {"seen", "SEEN", false},      {"closed", "CLOSED", false}, {"times", "TIMES", true},
    {"text", "FINDING", false},   {"note", "NOTE", false},     {"by", "BY", false},
    {"drained", "DRAINED", false}};

static void add_kept_cells(struct grid *g, const struct json *f, bool people)
{
    enum { DATE = 10 }; // characters of "2026-11-20T10:00:00Z"
    for (int i = 0; i < g->n_columns; i++) {
        const char *member = g->columns[i].name, *text = json_text(json_get(f, member));
        const char *drained = people ? json_text(json_get(f, "drained")) : NULL;
        double v;
        if (drained && strcmp(member, "text") == 0) {
            grid_cell(g, "%s; drained %.*s", text ? text : "", DATE, drained);
        } else if (people && strcmp(member, "since") == 0) {
            text = text ? text : json_get_text(f, "found", "");
            grid_cell(g, "%.*s", DATE, text);
        } else if (json_number(json_get(f, member), &v))
            grid_cell(g, "%.10g", v);
        else
            grid_cell(g, "%s", text ? text : "");
    }
}

// A set narrows what is sent, where its text fits into a request (collector.h).
static void findings_path(const struct findings_options *o, const struct nodeset *nodes,
                          int64_t cursor, struct buf *path)
{
    const struct {
        const char *name, *value;
    } filters[] = {{"state", o->state}, {"what", o->what}, {"where", o->where}};
    buf_str(path, "/v1/fleet/findings?limit=1000");
    for (size_t i = 0; i < COUNT_OF(filters); i++) {
        if (!*filters[i].value)
            continue;
        buf_fmt(path, "&%s=", filters[i].name);
        http_escape(path, filters[i].value);
    }
    if (cursor)
        buf_fmt(path, "&cursor=%" PRId64, cursor);
    if (!*o->where)
        collector_where(nodes, path);
}

// Without --where it was --nodes that narrowed the list.
static int findings_refused(const struct findings_options *o, struct err *err)
{
    if (!*o->where && strcmp(err->member, "where") == 0)
        snprintf(err->member, sizeof err->member, "--nodes");
    return -1;
}

static int findings_list(struct cli *c, const struct findings_options *o,
                         const struct nodeset *nodes, struct err *err)
{
    bool people = c->output == OUTPUT_TABLE;
    int64_t cursor = 0, before;
    CLEANUP_GRID struct grid g = {0};
    CLEANUP_BUF struct buf whole = BUF_INIT;
    struct jsonw w = jsonw_to(&whole);
    grid_init(&g, people ? people_columns : program_columns,
              people ? (int)COUNT_OF(people_columns) : (int)COUNT_OF(program_columns));
    jsonw_object(&w, NULL);
    jsonw_array(&w, "findings");
    do {
        CLEANUP_JSON struct json *page = NULL;
        CLEANUP_BUF struct buf path = BUF_INIT;
        findings_path(o, nodes, cursor, &path);
        if (http_json(c, "GET", buf_text(&path), NULL, &page, err) < 0)
            return findings_refused(o, err);
        const struct json *f = json_first(json_get(page, "findings"));
        for (; f; f = json_next(f)) {
            const char *node = json_get_text(f, "node", ""); // none: of a group
            if (nodes->n && *node && !nodeset_has(nodes, node))
                continue;
            if (c->output == OUTPUT_JSON)
                json_write(f, &w, NULL);
            else
                add_kept_cells(&g, f, people);
        }
        before = cursor;
        cursor = json_get_i64(page, "next", 0);
        if (before && cursor >= before)
            return collector_endless(err);
    } while (cursor);
    jsonw_end(&w);
    jsonw_end(&w);
    if (c->output == OUTPUT_JSON)
        print_json_text(&whole);
    else if (people && !g.n_rows)
        puts("There is no such finding.");
    else
        grid_print(&g, c);
    return 0;
}

static int findings_mark(struct cli *c, const struct findings_options *o, int64_t id,
                         const char *state, struct err *err)
{
    static const struct column columns[] = {{"id", "ID", true},
                                            {"state", "STATE", false},
                                            {"by", "BY", false},
                                            {"note", "NOTE", false, true}};
    char path[80];
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_JSON struct json *reply = NULL;
    CLEANUP_GRID struct grid g = {0};
    struct jsonw w = jsonw_to(&body);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "state", state);
    if (*o->note)
        jsonw_text(&w, "note", o->note);
    jsonw_end(&w);
    snprintf(path, sizeof path, "/v1/fleet/findings/%" PRId64, id);
    if (http_json(c, "PUT", path, buf_text(&body), &reply, err) < 0)
        return -1;
    grid_init(&g, columns, COUNT_OF(columns));
    add_kept_cells(&g, reply, false);
    if (c->output == OUTPUT_JSON)
        print_json(reply);
    else
        grid_print(&g, c);
    return 0;
}

int cmd_fleet_findings(struct cli *c, const struct invocation *i, struct err *err)
{
    static const char *const actions[][2] = {
        {"acknowledge", "acknowledged"}, {"fix", "fixed"}, {"reopen", "open"}};
    const struct findings_options *o = i->options;
    CLEANUP_NODESET struct nodeset nodes = {0};
    int64_t id = 0;
    if (i->n == 0 && *o->note)
        return err_set(err, ERR_USAGE, "", "--note is of acknowledge, fix and reopen");
    if (i->n == 0)
        return fleet_only(c, FLEET_USES_NODES, "findings", err) < 0 || collector_use(c, err) < 0 ||
                       (fleet_nodes_named(c) && fleet_nodes(c, &nodes, err) < 0)
                   ? -1
                   : findings_list(c, o, &nodes, err);
    if (*o->state || *o->what || *o->where)
        return err_set(err, ERR_USAGE, "", "--state, --what and --where are of the list");
    for (size_t a = 0; a < COUNT_OF(actions); a++) {
        if (strcmp(i->operands[0], actions[a][0]) != 0)
            continue;
        if (i->n != 2 || !str_to_i64(i->operands[1], &id) || id < 1)
            return err_set(err, ERR_USAGE, "", "usage: numaprobe fleet findings %s ID",
                           actions[a][0]);
        return fleet_only(c, FLEET_USES_COLLECTOR, actions[a][0], err) < 0 ||
                       collector_use(c, err) < 0
                   ? -1
                   : findings_mark(c, o, id, actions[a][1], err);
    }
    return err_set(err, ERR_USAGE, "",
                   "unknown action \"%.40s\": use acknowledge ID, fix ID or reopen ID",
                   i->operands[0]);
}

// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet campaign: the collector probes the fleet, a few nodes at a time. This command
// submits, lists and cancels; the collector does the rest, and needs no client for it.
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
#include "model/spec_request.h"

enum { BUDGET_DIGITS = 6 };

struct campaign_options {
    char name[64], at_once_each[32], window[200], each[16], retry_for[16], order[16], through[16];
    int64_t failed_percent;
    double node_minutes;
    bool dry_run;
};

static const struct param campaign_params[] = {
    PARAM_TEXT_ROW(
        struct campaign_options, name, .filled = true, .metavar = "NAME",
        .help = "Name of the campaign. Default: the benchmark. None that has not ended has it."),
    PARAM_TEXT_ROW(
        struct campaign_options, at_once_each, .filled = true, .metavar = "GROUP:N",
        .help = "Maximum number of probes per rack, class or prefix of names: rack:2. Default: no "
                "limit beside --at-once."),
    PARAM_TEXT_ROW(struct campaign_options, window, .filled = true, .metavar = "HOURS",
                   .help =
                       "Local time of the collector in which probes begin: \"Mon-Fri 20:00-06:00, "
                       "Sat-Sun 00:00-24:00\". Default: always."),
    {.name = "node_minutes",
     .kind = PARAM_REAL,
     .offset = offsetof(struct campaign_options, node_minutes),
     .min = 0,
     .max = 1e9,
     .def = "0",
     .unit = "min",
     .help = "Maximum cost of a round. 0: no limit."},
    PARAM_TEXT_ROW(struct campaign_options, each, .filled = true, .metavar = "TIME",
                   .help = "A round begins so long after the one before, 10m to 366d: 7d. Default: "
                           "one round."),
    PARAM_TEXT_ROW(struct campaign_options, retry_for, .filled = true, .metavar = "TIME",
                   .help = "A busy node is tried again so long, 1s to 366d: 12h. Default: 24h."),
    PARAM_TEXT_ROW(struct campaign_options, order, .filled = true, .metavar = "ORDER",
                   .help =
                       "stalest: nodes whose newest run is oldest come first; or name. Default: "
                       "stalest."),
    PARAM_TEXT_ROW(
        struct campaign_options, through, .filled = true, .metavar = "WHO",
        .help = "Who starts the runs. daemon: the collector requests them of the nodes' daemons. "
                "slurm: jobs, submitted by what the action script prints. Default: daemon."),
    {.name = "failed_percent",
     .kind = PARAM_INT,
     .offset = offsetof(struct campaign_options, failed_percent),
     .min = 0,
     .max = 100,
     .def = "20",
     .unit = "%",
     .help = "More failed probes than this stop the campaign."},
    {.name = "dry_run",
     .kind = PARAM_BOOL,
     .offset = offsetof(struct campaign_options, dry_run),
     .def = "false",
     .help = "Print which nodes would be probed, the cost and the time; begin nothing."},
};
const struct param_table fleet_campaign_options = {campaign_params, COUNT_OF(campaign_params)};

static const struct column campaign_columns[] = {
    {"id", "ID", true},
    {"name", "NAME", false, true},
    {"state", "STATE", false},
    {"nodes", "NODES", true},
    {"round", "ROUND", true},
    {"done", "DONE", true},
    {"failed", "FAILED", true},
    {"skipped", "SKIPPED", true},
    {"pending", "LEFT", true},
    {"spent_node_minutes", "COST min", true},
    {"why", "WHY", false, .shrinks = true},
};

static void add_campaign(struct grid *g, const struct json *c)
{
    for (size_t i = 0; i < COUNT_OF(campaign_columns); i++) {
        const char *member = campaign_columns[i].name;
        const char *text = json_text(json_get(c, member));
        if (text)
            grid_cell(g, "%s", text);
        else if (strcmp(member, "spent_node_minutes") == 0)
            grid_cell(g, "%.1f", json_get_number(c, member, 0));
        else
            grid_cell(g, "%" PRId64, json_get_i64(c, member, 0));
    }
}

static void print_campaign(const struct cli *c, const struct json *one)
{
    CLEANUP_GRID struct grid g;
    grid_init(&g, campaign_columns, COUNT_OF(campaign_columns));
    if (one)
        add_campaign(&g, one);
    grid_print(&g, c);
}

// ---- start --------------------------------------------------------------------------------------

static int write_at_once_each(const struct campaign_options *o, struct jsonw *w, struct err *err)
{
    size_t n = strcspn(o->at_once_each, ":");
    char by[sizeof o->at_once_each];
    int64_t most;
    snprintf(by, sizeof by, "%.*s", (int)n, o->at_once_each);
    if (!o->at_once_each[n] || !str_to_i64(o->at_once_each + n + 1, &most))
        return err_set(err, ERR_USAGE, "", "--at-once-each must be GROUP:N, such as rack:2");
    jsonw_object(w, "at_once_each");
    jsonw_text(w, "by", by);
    jsonw_i64(w, "n", most);
    jsonw_end(w);
    return 0;
}

// Groups are known here, not to the collector.
static int write_campaign_nodes(const struct cli *c, struct jsonw *w, struct err *err)
{
    CLEANUP_NODESET struct nodeset nodes = {0};
    CLEANUP_BUF struct buf set = BUF_INIT;
    if (!fleet_nodes_named(c))
        return 0;
    if (fleet_nodes(c, &nodes, err) < 0)
        return -1;
    nodeset_fold(&nodes, &set);
    jsonw_text(w, "nodes", buf_text(&set));
    return 0;
}

static int write_campaign(const struct cli *c, const struct campaign_options *o,
                          const struct invocation *call, struct jsonw *w, struct err *err)
{
    const struct spec *spec = call->spec;
    const struct {
        const char *member, *value;
    } texts[] = {
        {"window", o->window}, {"each", o->each},       {"retry_for", o->retry_for},
        {"order", o->order},   {"through", o->through},
    };
    jsonw_object(w, NULL);
    jsonw_text(w, "name", *o->name ? o->name : benchmarks[spec->benchmark].name);
    if (write_campaign_nodes(c, w, err) < 0 ||
        (*o->at_once_each && write_at_once_each(o, w, err) < 0))
        return -1;
    spec_write_request(spec, call->given, w, "spec");
    if (c->at_once_given)
        jsonw_i64(w, "at_once", c->at_once_given);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (*texts[i].value)
            jsonw_text(w, texts[i].member, texts[i].value);
    if (o->node_minutes > 0)
        jsonw_digits(w, "budget_node_minutes", o->node_minutes, BUDGET_DIGITS);
    jsonw_object(w, "stop_after");
    jsonw_i64(w, "failed_percent", o->failed_percent);
    jsonw_end(w);
    jsonw_bool(w, "dry_run", o->dry_run);
    jsonw_end(w);
    return 0;
}

static void print_campaign_plan(const struct cli *c, const struct json *plan)
{
    CLEANUP_BUF struct buf nodes = BUF_INIT, probes = BUF_INIT, cost = BUF_INIT;
    int64_t left_out = json_get_i64(plan, "left_out", 0),
            guessed = json_get_i64(plan, "guessed", 0);
    buf_plain(&nodes, json_get_text(plan, "nodes", ""));
    buf_fmt(&probes, "%" PRId64 "; for %" PRId64 " node%s the budget has no room",
            json_get_i64(plan, "probed", 0), left_out, str_plural(left_out));
    buf_fmt(&cost, "%.1f node-minutes; %" PRId64 " duration%s guessed",
            json_get_number(plan, "cost_node_minutes", 0), guessed, guessed == 1 ? " is" : "s are");
    print_labelled(c, "nodes", buf_text(&nodes));
    print_labelled(c, "probes", buf_text(&probes));
    print_labelled(c, "cost", buf_text(&cost));
    print_labelled(c, "begins", json_get_text(plan, "begins", "?"));
    print_labelled(c, "ends", json_get_text(plan, "ends", "?"));
}

// Members of the request that options of other names fill.
static int start_refused(struct err *err)
{
    static const char spec[] = "spec.";
    static const struct {
        const char *member, *option;
    } others[] = {
        {"nodes", "--nodes"}, {"at_once", "--at-once"}, {"budget_node_minutes", "--node-minutes"}};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (strcmp(err->member, others[i].member) == 0)
            snprintf(err->member, sizeof err->member, "%s", others[i].option);
    if (str_starts(err->member, spec))
        memmove(err->member, err->member + strlen(spec), strlen(err->member + strlen(spec)) + 1);
    return -1;
}

static int campaign_start(struct cli *c, const struct invocation *i, int64_t id, struct err *err)
{
    CLEANUP_BUF struct buf body = BUF_INIT;
    CLEANUP_JSON struct json *reply = NULL;
    struct jsonw w = jsonw_to(&body);
    const struct campaign_options *o = i->options;
    (void)id;
    if (o->dry_run && print_refuse_csv(c, "with --dry-run the output is", err) < 0)
        return -1;
    if (write_campaign(c, i->options, i, &w, err) < 0)
        return -1;
    if (http_json(c, "POST", "/v1/fleet/campaigns", buf_text(&body), &reply, err) < 0)
        return start_refused(err);
    if (c->output == OUTPUT_JSON || (o->dry_run && c->output == OUTPUT_NDJSON))
        print_json(reply);
    else if (json_get(reply, "plan"))
        print_campaign_plan(c, json_get(reply, "plan"));
    else
        print_campaign(c, json_get(reply, "campaign"));
    return 0;
}

// ---- list, show, cancel -------------------------------------------------------------------------

// All pages, the newest campaign first.
static int list_pages(const struct cli *c, struct jsonw *w, struct grid *g, int *n, struct err *err)
{
    char path[80];
    int64_t cursor = 0;
    do {
        CLEANUP_JSON struct json *reply = NULL;
        int length = snprintf(path, sizeof path, "/v1/fleet/campaigns?limit=200");
        if (cursor)
            snprintf(path + length, sizeof path - length, "&cursor=%" PRId64, cursor);
        if (http_json(c, "GET", path, NULL, &reply, err) < 0)
            return -1;
        for (const struct json *each = json_first(json_get(reply, "campaigns")); each;
             each = json_next(each), ++*n) {
            json_write(each, w, NULL);
            add_campaign(g, each);
        }
        int64_t next = json_get_i64(reply, "cursor", 0);
        if (cursor && next >= cursor)
            return collector_endless(err);
        cursor = next;
    } while (cursor > 0);
    return 0;
}

static int campaign_list(struct cli *c, const struct invocation *i, int64_t id, struct err *err)
{
    CLEANUP_GRID struct grid g;
    CLEANUP_BUF struct buf whole = BUF_INIT;
    struct jsonw w = jsonw_to(&whole);
    int n = 0;
    (void)i, (void)id;
    grid_init(&g, campaign_columns, COUNT_OF(campaign_columns));
    jsonw_object(&w, NULL);
    jsonw_array(&w, "campaigns");
    if (list_pages(c, &w, &g, &n, err) < 0)
        return -1;
    jsonw_end(&w);
    jsonw_null(&w, "cursor");
    jsonw_end(&w);
    if (c->output == OUTPUT_JSON)
        print_json_text(&whole);
    else if (c->output == OUTPUT_TABLE && !n)
        puts("No campaign is stored. Begin one with: numaprobe fleet campaign start --quick");
    else
        grid_print(&g, c);
    return 0;
}

// Nodes with the same state and reason are one line.
struct same_nodes {
    char key[300];
    struct nodeset nodes;
};

enum { SAME_REASONS = 200, SAME_MOST = SAME_REASONS + 8 }; // beyond them one line per state

static int same_find(const struct same_nodes *list, int n, const char *key)
{
    int at = 0;
    while (at < n && strcmp(list[at].key, key) != 0)
        at++;
    return at;
}

static int same_add(struct same_nodes *list, int *n, const struct json *node, struct err *err)
{
    char key[sizeof list->key];
    const char *state = json_get_text(node, "state", "?"), *why = json_get_text(node, "why", "");
    snprintf(key, sizeof key, "%.20s%s%.250s", state, *why ? ": " : "", why);
    int at = same_find(list, *n, key);
    if (at == *n && *n >= SAME_REASONS) {
        snprintf(key, sizeof key, "%.20s: other reasons", state);
        at = same_find(list, *n, key);
    }
    if (at == SAME_MOST)
        return err_set(err, ERR_INVALID, "", "the collector names states that no node has");
    if (at == *n) {
        *n += 1;
        memcpy(list[at].key, key, sizeof key);
    }
    return nodeset_add(&list[at].nodes, json_get_text(node, "node", ""), err);
}

static void same_print(struct same_nodes *list, int n, const struct cli *c)
{
    for (int i = 0; i < n; i++) {
        CLEANUP_BUF struct buf set = BUF_INIT, line = BUF_INIT;
        nodeset_sort(&list[i].nodes);
        nodeset_fold(&list[i].nodes, &set);
        buf_fmt(&line, "%s (%d)", list[i].key, list[i].nodes.n);
        print_paragraph(c, buf_text(&line), 4);
        print_folded(c, buf_text(&set), "  ", "  ");
        nodeset_free(&list[i].nodes);
    }
}

static void add_node_state(struct grid *g, const struct json *node)
{
    grid_cell(g, "%s", json_get_text(node, "node", ""));
    grid_cell(g, "%s", json_get_text(node, "state", ""));
    grid_cell(g, "%" PRId64, json_get_i64(node, "run", 0));
    grid_cell(g, "%.3f", json_get_number(node, "seconds", 0));
    grid_cell(g, "%s", json_get_text(node, "why", ""));
}

// Calls for all pages; `page` gets each and returns -1 to end.
static int campaign_pages(struct cli *c, int64_t id,
                          int (*page)(void *ctx, const struct json *reply, struct err *err),
                          void *ctx, struct err *err)
{
    char path[200], cursor[80] = "";
    do {
        CLEANUP_JSON struct json *reply = NULL;
        snprintf(path, sizeof path, "/v1/fleet/campaigns/%" PRId64 "?limit=1000%s%s", id,
                 *cursor ? "&cursor=" : "", cursor);
        if (http_json(c, "GET", path, NULL, &reply, err) < 0 || page(ctx, reply, err) < 0)
            return -1;
        const char *next = json_get_text(reply, "cursor", "");
        // Pages are in the order of names: what is not behind the page before would never end.
        if (*next && ((*cursor && nodeset_name_order(next, cursor) <= 0) ||
                      nodeset_name_check(next, err) < 0))
            return collector_endless(err);
        snprintf(cursor, sizeof cursor, "%s", next);
    } while (*cursor);
    return 0;
}

struct campaign_print {
    struct cli *c;
    struct jsonw json; // all pages as one document
    struct grid *grid; // NULL: a table for people
    struct same_nodes *same;
    int n;
    bool begun;
};

static int print_page(void *ctx, const struct json *reply, struct err *err)
{
    struct campaign_print *p = ctx;
    const struct json *node = json_first(json_get(reply, "node_states"));
    bool json = p->c->output == OUTPUT_JSON;
    if (json && !p->begun) {
        jsonw_object(&p->json, NULL);
        json_write(json_get(reply, "campaign"), &p->json, "campaign");
        jsonw_array(&p->json, "node_states");
    } else if (!p->grid && !p->begun)
        print_campaign(p->c, json_get(reply, "campaign"));
    p->begun = true;
    for (; node; node = json_next(node))
        if (json)
            json_write(node, &p->json, NULL);
        else if (p->grid)
            add_node_state(p->grid, node);
        else if (same_add(p->same, &p->n, node, err) < 0)
            return -1;
    return 0;
}

static int campaign_show(struct cli *c, const struct invocation *i, int64_t id, struct err *err)
{
    static const struct column columns[] = {{"node", "NODE", false},
                                            {"state", "STATE", false},
                                            {"run", "RUN", true},
                                            {"seconds", "SECONDS", true},
                                            {"why", "WHY", false, .shrinks = true}};
    CLEANUP_GRID struct grid g;
    CLEANUP_MEM struct same_nodes *same = calloc(SAME_MOST, sizeof *same);
    CLEANUP_BUF struct buf whole = BUF_INIT;
    struct campaign_print p = {.c = c,
                               .json = jsonw_to(&whole),
                               .grid = c->output == OUTPUT_TABLE ? NULL : &g,
                               .same = same};
    (void)i;
    grid_init(&g, columns, COUNT_OF(columns));
    if (!same)
        return err_set(err, ERR_NO_MEMORY, "", "no memory for a campaign");
    int rc = campaign_pages(c, id, print_page, &p, err);
    if (rc == 0 && c->output == OUTPUT_JSON) {
        jsonw_end(&p.json);
        jsonw_null(&p.json, "cursor");
        jsonw_end(&p.json);
        print_json_text(&whole);
    } else if (rc == 0 && c->output != OUTPUT_TABLE)
        grid_print(&g, c);
    same_print(same, p.n, c);
    return rc;
}

static int campaign_cancel(struct cli *c, const struct invocation *i, int64_t id, struct err *err)
{
    CLEANUP_JSON struct json *reply = NULL;
    char path[80];
    (void)i;
    snprintf(path, sizeof path, "/v1/fleet/campaigns/%" PRId64 "/cancel", id);
    if (http_json(c, "POST", path, NULL, &reply, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON)
        print_json(reply);
    else
        print_campaign(c, json_get(reply, "campaign"));
    return 0;
}

static int campaign_script(struct cli *c, const struct invocation *i, int64_t id, struct err *err)
{
    CLEANUP_REPLY struct http_reply reply = {0};
    char path[80];
    (void)i;
    if (print_refuse_all_but_text(c, "the script of a campaign is", err) < 0)
        return -1;
    snprintf(path, sizeof path, "/v1/fleet/campaigns/%" PRId64 "/script", id);
    if (http_call(c, "GET", path, NULL, NULL, &reply, err) < 0)
        return -1;
    if (reply.status / 100 != 2)
        return http_problem(&reply, err);
    print_buf(&reply.body);
    return 0;
}

// Options of start have no effect on the others: "cancel 3 --dry-run" would cancel.
static int check_no_start_options(const struct campaign_options *o, const char *action,
                                  struct err *err)
{
    struct campaign_options usual;
    param_defaults(&fleet_campaign_options, &usual);
    for (size_t i = 0; i < COUNT_OF(campaign_params); i++) {
        char given[sizeof o->window], otherwise[sizeof o->window], option[PARAM_OPTION_ROOM];
        param_get_text(&campaign_params[i], o, given, sizeof given);
        param_get_text(&campaign_params[i], &usual, otherwise, sizeof otherwise);
        if (strcmp(given, otherwise) != 0)
            return err_set(err, ERR_USAGE, "", "--%s is of start, not of %s",
                           param_option(&campaign_params[i], option), action);
    }
    return 0;
}

int cmd_fleet_campaign(struct cli *c, const struct invocation *i, struct err *err)
{
    static const struct {
        const char *name;
        bool id;
        int (*run)(struct cli *c, const struct invocation *i, int64_t id, struct err *err);
    } actions[] = {{"start", false, campaign_start},
                   {"list", false, campaign_list},
                   {"show", true, campaign_show},
                   {"script", true, campaign_script},
                   {"cancel", true, campaign_cancel}};
    for (size_t a = 0; a < COUNT_OF(actions); a++) {
        int64_t id = 0;
        if (strcmp(i->operands[0], actions[a].name) != 0)
            continue;
        if (actions[a].id != (i->n == 2) ||
            (actions[a].id && (!str_to_i64(i->operands[1], &id) || id < 1)))
            return err_set(err, ERR_USAGE, "", "usage: numaprobe fleet campaign %s%s",
                           actions[a].name, actions[a].id ? " ID" : "");
        bool start = actions[a].run == campaign_start;
        if ((!start && check_no_start_options(i->options, actions[a].name, err) < 0) ||
            fleet_only(c, start ? FLEET_USES_AT_ONCE : FLEET_USES_COLLECTOR, actions[a].name, err) <
                0)
            return -1;
        return collector_use(c, err) < 0 ? -1 : actions[a].run(c, i, id, err);
    }
    return err_set(err, ERR_USAGE, "",
                   "unknown action \"%.40s\": use start, list, show ID, script ID or cancel ID",
                   i->operands[0]);
}

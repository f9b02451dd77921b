// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet status: the nodes by class, how many have enough runs to be judged, how fresh
// these are, and which daemons do not respond.
#include <stdio.h>
#include <string.h>

#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "client/exits.h"
#include "client/fleet/fleet.h"
#include "client/fleet/gather.h"
#include "client/print.h"

static const struct column columns[] = {
    {"class", "CLASS", false}, {"cpu", "CPU", false, true},       {"nodes", "NODES", true},
    {"fresh", "FRESH", true},  {"with_3_runs", ">=3 RUNS", true}, {"setups", "SET-UPS", true},
};

static const char *cpu_of(const struct fleet_class_row *r)
{
    return r->cpu ? r->cpu : "not known";
}

static void status_add_row(struct grid *g, const struct fleet *f, const struct fleet_class_row *r)
{
    grid_cell(g, "%.12s", f->classes.list[r->class]);
    grid_cell(g, "%s", cpu_of(r));
    grid_cell(g, "%d", r->nodes);
    grid_cell(g, "%d", r->fresh);
    grid_cell(g, "%d", r->enough);
    grid_cell(g, "%d", r->setups);
}

// Nodes that responded and have no run to be judged by, or only old ones; and the daemons'
// versions.
static void find_stale(const struct gather *g, struct nodeset *stale, struct nodeset *empty)
{
    const struct fleet *f = g->fleet;
    for (int i = 0; i < f->nodes.n; i++)
        if (!fleet_node_fresh(f, i))
            nodeset_add(stale, f->nodes.list[i], NULL);
    for (int i = 0; g->fan && i < g->names.n; i++)
        if (fan_node(g->fan, i)->state == FAN_DONE &&
            interned_find(&f->nodes, g->names.names[i]) < 0)
            nodeset_add(empty, g->names.names[i], NULL);
}

static void print_set(const struct cli *c, const char *what, const struct nodeset *set)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    if (!set->n)
        return;
    buf_fmt(&line, "%s: ", what);
    nodeset_fold(set, &line);
    print_paragraph(c, buf_text(&line), 4);
}

// "versions: 2.0.0 (node[1-99]), 1.9.1 (node100)", only if there are several.
static void print_versions(const struct cli *c, const struct gather *g)
{
    struct interned versions = {0};
    CLEANUP_BUF struct buf line = BUF_INIT;
    buf_str(&line, "versions: ");
    for (int i = 0; g->fan && i < g->names.n; i++)
        if (*g->nodes[i].version)
            interned_add(&versions, g->nodes[i].version, NULL);
    for (int v = 0; v < versions.n; v++) {
        CLEANUP_NODESET struct nodeset set = {0};
        for (int i = 0; i < g->names.n; i++)
            if (strcmp(g->nodes[i].version, versions.list[v]) == 0)
                nodeset_add(&set, g->names.names[i], NULL);
        buf_fmt(&line, "%s%s (", v ? ", " : "", versions.list[v]);
        nodeset_fold(&set, &line);
        buf_char(&line, ')');
    }
    if (versions.n > 1)
        print_paragraph(c, buf_text(&line), 4);
    interned_fini(&versions);
}

static void status_print(const struct cli *c, struct gather *g, const struct fleet_class_row *rows,
                         int n)
{
    CLEANUP_GRID struct grid grid;
    CLEANUP_NODESET struct nodeset stale = {0}, empty = {0};
    char no_run[40];
    grid_init(&grid, columns, COUNT_OF(columns));
    for (int k = 0; k < n; k++)
        status_add_row(&grid, g->fleet, &rows[k]);
    find_stale(g, &stale, &empty);
    bool none = g->fan && !fan_ended(g->fan, FAN_DONE);
    if (c->output == OUTPUT_TABLE && !grid.n_rows)
        fputs(none ? "" : "no node has a run that can be judged\n", stdout);
    else
        grid_print(&grid, c);
    if (c->output != OUTPUT_TABLE)
        return;
    snprintf(no_run, sizeof no_run, "no run for %d days", g->fleet->o.window_days);
    print_set(c, no_run, &stale);
    print_set(c, "without a run", &empty);
    print_versions(c, g);
}

static void status_print_json(struct gather *g, const struct fleet_class_row *rows, int n)
{
    CLEANUP_NODESET struct nodeset stale = {0}, empty = {0};
    CLEANUP_BUF struct buf text = BUF_INIT, old = BUF_INIT, none = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    find_stale(g, &stale, &empty);
    nodeset_fold(&stale, &old);
    nodeset_fold(&empty, &none);
    jsonw_object(&w, NULL);
    gather_write_json(g, &w);
    jsonw_array(&w, "classes");
    for (int k = 0; k < n; k++) {
        jsonw_object(&w, NULL);
        jsonw_text(&w, "class", g->fleet->classes.list[rows[k].class]);
        jsonw_text(&w, "cpu", cpu_of(&rows[k]));
        jsonw_i64(&w, "nodes", rows[k].nodes);
        jsonw_i64(&w, "fresh", rows[k].fresh);
        jsonw_i64(&w, "with_3_runs", rows[k].enough);
        jsonw_i64(&w, "setups", rows[k].setups);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_text(&w, "stale", buf_text(&old));
    jsonw_text(&w, "without_runs", buf_text(&none));
    jsonw_end(&w);
    buf_char(&text, '\n');
    print_buf(&text);
}

int cmd_fleet_status(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_GATHER struct gather g = {0};
    (void)i;
    CLEANUP_MEM struct fleet_class_row *rows = NULL;
    if (gather_all(&g, c, RUNS_MIN, err) < 0)
        return -1;
    int n = fleet_classes(&rows, g.fleet, err);
    if (n < 0)
        return -1;
    if (c->output == OUTPUT_JSON)
        status_print_json(&g, rows, n);
    else
        status_print(c, &g, rows, n);
    return gather_end(&g, CLI_EXIT_SUCCESS);
}

// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet coverage: how many nodes of each class are up and were measured lately, and which
// were not for how long.
#include <stdio.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "client/exits.h"
#include "client/fleet/fleet.h"
#include "client/fleet/gather.h"
#include "client/print.h"

#define COVERAGE_DAY_MS 86400000.0
#define NO_CLASS "none"

static const struct column columns[] = {
    {"class", "CLASS", false},
    {"cpu", "CPU", false, true},
    {"nodes", "NODES", true},
    {"up", "UP", true},
    {"fresh", "FRESH", true},
    {"with_3_runs", ">=3 RUNS", true},
    {"stale", "STALE", true},
    {"median_days", "MEDIAN DAYS", true},
    {"oldest_days", "OLDEST", true},
    {"stale_nodes", "STALE NODES", false}, // not in the table: below it they are by age
};

static bool up_is_known(const struct gather *g)
{
    for (int i = 0; g->known && i < g->names.n; i++)
        if (g->known[i].standby)
            return false;
    return !g->cli->fleet.stored;
}

static void fold_stale(const struct coverage *c, const struct covered_class *k, struct buf *out)
{
    CLEANUP_NODESET struct nodeset set = {0};
    for (int i = k->first; i < k->first + k->nodes; i++)
        if (!c->node[i].fresh)
            nodeset_add(&set, c->node[i].name, NULL);
    nodeset_fold(&set, out);
}

static void age_cell(struct grid *grid, int64_t age_ms)
{
    if (age_ms < 0)
        grid_cell(grid, "%s", "");
    else
        grid_cell(grid, "%.1f", (double)age_ms / COVERAGE_DAY_MS);
}

static void coverage_add_row(struct grid *grid, const struct gather *g, const struct coverage *c,
                             const struct covered_class *k)
{
    CLEANUP_BUF struct buf stale = BUF_INIT;
    grid_cell(grid, "%.12s", k->class < 0 ? NO_CLASS : c->f->classes.list[k->class]);
    grid_cell(grid, "%s", k->class < 0 ? "no run that counts" : k->cpu ? k->cpu : "not known");
    grid_cell(grid, "%d", k->nodes);
    if (up_is_known(g))
        grid_cell(grid, "%d", k->up);
    else
        grid_cell(grid, "%s", g->cli->output == OUTPUT_TABLE ? "-" : "");
    grid_cell(grid, "%d", k->fresh);
    grid_cell(grid, "%d", k->enough);
    grid_cell(grid, "%d", k->nodes - k->fresh);
    age_cell(grid, covered_class_age(c, k, 50));
    age_cell(grid, covered_class_age(c, k, 100));
    if (grid->n_columns < (int)COUNT_OF(columns))
        return;
    fold_stale(c, k, &stale);
    grid_cell(grid, "%s", buf_text(&stale));
}

// The nodes whose newest run is at least `from` days old, and less than `to` if that is not 0.
static void print_stale(const struct cli *cli, const struct coverage *c, int from, int to)
{
    CLEANUP_NODESET struct nodeset set = {0};
    CLEANUP_BUF struct buf line = BUF_INIT;
    for (int i = 0; i < c->n_nodes; i++) {
        const struct covered_node *n = &c->node[i];
        double days = (double)n->age_ms / COVERAGE_DAY_MS;
        if (n->class >= 0 && !n->fresh && days >= from && (!to || days < to))
            nodeset_add(&set, n->name, NULL);
    }
    if (!set.n)
        return;
    buf_fmt(&line, "no run for %d day%s: ", from, str_plural(from));
    nodeset_fold(&set, &line);
    print_paragraph(cli, buf_text(&line), 4);
}

static void print_without_run(const struct cli *cli, const struct coverage *c)
{
    const struct covered_class *without = coverage_without_run(c);
    CLEANUP_BUF struct buf line = BUF_INIT;
    if (!without)
        return;
    buf_str(&line, "no run that counts is known: ");
    fold_stale(c, without, &line);
    print_paragraph(cli, buf_text(&line), 4);
}

static void coverage_print(const struct cli *cli, const struct gather *g, const struct coverage *c)
{
    const int days[] = {c->f->o.window_days, 30, 90, 365, 0};
    bool table = cli->output == OUTPUT_TABLE;
    CLEANUP_GRID struct grid grid;
    grid_init(&grid, columns, (int)COUNT_OF(columns) - table);
    for (int k = 0; k < c->n; k++)
        coverage_add_row(&grid, g, c, &c->list[k]);
    if (!table || grid.n_rows)
        grid_print(&grid, cli);
    for (int i = 0; table && days[i]; i++)
        print_stale(cli, c, days[i], days[i + 1]);
    if (table)
        print_without_run(cli, c);
}

static void coverage_print_json(struct gather *g, const struct coverage *c)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    gather_write_json(g, &w);
    jsonw_i64(&w, "window_days", c->f->o.window_days);
    coverage_write_staleness(c, NULL, &w);
    jsonw_array(&w, "classes");
    for (int i = 0; i < c->n; i++) {
        const struct covered_class *k = &c->list[i];
        CLEANUP_BUF struct buf stale = BUF_INIT;
        fold_stale(c, k, &stale);
        jsonw_object(&w, NULL);
        jsonw_text(&w, "class", k->class < 0 ? NULL : c->f->classes.list[k->class]);
        jsonw_text(&w, "cpu", k->cpu);
        jsonw_i64(&w, "nodes", k->nodes);
        if (up_is_known(g))
            jsonw_i64(&w, "up", k->up);
        else
            jsonw_null(&w, "up");
        jsonw_i64(&w, "fresh", k->fresh);
        jsonw_i64(&w, "with_3_runs", k->enough);
        jsonw_i64(&w, "stale", k->nodes - k->fresh);
        coverage_write_staleness(c, k, &w);
        jsonw_text(&w, "stale_nodes", buf_text(&stale));
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_char(&text, '\n');
    print_buf(&text);
}

int cmd_fleet_coverage(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_GATHER struct gather g = {0};
    CLEANUP_COVERAGE struct coverage covered = {0};
    (void)i;
    if (gather_times(&g, c, RUNS_MIN, err) < 0 || gather_coverage(&g, &covered, err) < 0)
        return -1;
    if (g.fan && fan_stopped(g.fan))
        return gather_end(&g, CLI_EXIT_SUCCESS); // nodes that were not asked are not down
    if (c->output == OUTPUT_JSON)
        coverage_print_json(&g, &covered);
    else
        coverage_print(c, &g, &covered);
    return gather_end(&g, CLI_EXIT_SUCCESS);
}

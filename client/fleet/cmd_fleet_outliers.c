// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet outliers: which nodes are slower than their peers or than they were, by how much,
// since when, and what is different about them.
#include <stdio.h>
#include <string.h>

#include "analysis/peers/fleet_findings_text.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "client/exits.h"
#include "client/fleet/fleet.h"
#include "client/fleet/gather.h"
#include "client/print.h"

static const char *paint_grade(const char *text)
{
    return *text == 's' ? text[2] == 'r' ? PRINT_RED : PRINT_YELLOW : NULL; // sure, suspect
}

enum { DETAILS_MAX = 20 };

// For people: a line of details per node stands below the table.
static const struct column table_columns[] = {
    {"node", "NODE", false, true},
    {"grade", "GRADE", false, false, paint_grade},
    {"metric", "WORST METRIC", false, true},
    {"value", "VALUE", true},
    {"peers", "PEERS", true},
    {"difference", "DIFFERENCE", false},
};

// For programs: the members of the document (-o json), of the worst metric.
static const struct column plain_columns[] = {
    {"node", "NODE", false},
    {"grade", "GRADE", false},
    {"what", "WHAT", false},
    {"metric", "METRIC", false},
    {"unit", "UNIT", false},
    {"value", "VALUE", true},
    {"class_median", "PEERS", true},
    {"percent", "DIFFERENCE %", true},
    {"lo", "FROM", true},
    {"hi", "TO", true},
    {"metrics_worse", "WORSE", true},
    {"of", "OF", true},
    {"since", "SINCE", false},
    {"differs_from_peers", "DIFFERENT FROM PEERS", false},
};

static void add_table_row(struct grid *g, const struct fleet_finding *one, const struct fleet *f)
{
    struct fleet_finding_cells cells;
    fleet_finding_cells(one, f, &cells);
    grid_cell(g, "%s", f->nodes.list[one->nodes[0]]);
    grid_cell(g, "%s", peers_grade_names[one->grade]);
    grid_cell(g, "%s", one->metric);
    grid_cell(g, "%s", cells.value);
    grid_cell(g, "%s", cells.peers);
    grid_cell(g, "%s", cells.diff);
}

static void add_plain_row(struct grid *g, const struct fleet_finding *one, const struct fleet *f)
{
    CLEANUP_BUF struct buf nodes = BUF_INIT, differs = BUF_INIT;
    char since[32] = "";
    bool group = one->what == FINDING_GROUP;
    fleet_finding_nodes(one, f, &nodes);
    if (one->differs.n)
        fleet_finding_differs(one, &differs);
    if (one->since_ms)
        clock_rfc3339(one->since_ms, since);
    grid_cell(g, "%s", buf_text(&nodes));
    grid_cell(g, "%s", group ? "" : peers_grade_names[one->grade]);
    grid_cell(g, "%s", fleet_finding_names[one->what]);
    grid_cell(g, "%s", one->metric);
    grid_cell(g, "%s", one->unit);
    grid_number(g, one->value);
    grid_number(g, one->peers);
    grid_number(g, one->percent);
    grid_number(g, one->lo);
    grid_number(g, one->hi);
    grid_cell(g, "%d", one->worse);
    grid_cell(g, "%d", one->of);
    grid_cell(g, "%s", since);
    grid_cell(g, "%s", buf_text(&differs));
}

static void outliers_print_plain(const struct cli *c, const struct fleet_findings *list,
                                 const struct fleet *f)
{
    CLEANUP_GRID struct grid g;
    grid_init(&g, plain_columns, COUNT_OF(plain_columns));
    for (int i = 0; i < list->n; i++)
        add_plain_row(&g, &list->list[i], f);
    grid_print(&g, c);
}

// "node050: 30/30 metrics; slower than it was; since 18 Nov; bios_version 1.8.2 (97 % have 1.9.0)"
static void print_details(const struct cli *c, const struct fleet_finding *one,
                          const struct fleet *f)
{
    struct fleet_finding_cells cells;
    CLEANUP_BUF struct buf line = BUF_INIT, differs = BUF_INIT;
    fleet_finding_cells(one, f, &cells);
    fleet_finding_differs(one, &differs);
    buf_fmt(&line, "%s: %s metrics are slower", f->nodes.list[one->nodes[0]], cells.also);
    buf_str(&line, one->what == FINDING_SLOWER ? "; slower than it was" : "");
    if (strcmp(cells.since, "-") != 0)
        buf_fmt(&line, "; since %s", cells.since);
    if (strcmp(buf_text(&differs), "-") != 0)
        buf_fmt(&line, "; different from its peers: %s", buf_text(&differs));
    print_paragraph(c, buf_text(&line), 4);
}

static void print_slow_groups(const struct cli *c, const struct fleet_findings *list,
                              const struct fleet *f)
{
    for (int i = 0; i < list->n; i++) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        if (list->list[i].what != FINDING_GROUP)
            continue;
        buf_str(&line, "group: ");
        fleet_finding_sentence(&list->list[i], f, &line);
        print_paragraph(c, buf_text(&line), 4);
    }
}

static void print_judged(const struct cli *c, const struct fleet_findings *list)
{
    CLEANUP_BUF struct buf line = BUF_INIT, left_out = BUF_INIT;
    fleet_findings_left_out_text(list, &left_out);
    buf_fmt(&line, "%d class%s, %d metric%s, %d of %d node%s judged", list->classes,
            list->classes == 1 ? "" : "es", list->metrics, str_plural(list->metrics), list->tested,
            list->nodes, str_plural(list->nodes));
    if (left_out.len)
        buf_fmt(&line, "; left out: %s", buf_text(&left_out));
    print_paragraph(c, buf_text(&line), 4);
}

static void outliers_print_table(const struct cli *c, const struct fleet_findings *list,
                                 const struct fleet *f)
{
    CLEANUP_GRID struct grid g;
    CLEANUP_BUF struct buf mirror = BUF_INIT;
    grid_init(&g, table_columns, COUNT_OF(table_columns));
    for (int i = 0; i < list->n; i++)
        if (list->list[i].what != FINDING_GROUP)
            add_table_row(&g, &list->list[i], f);
    print_judged(c, list);
    if (g.n_rows) {
        grid_print(&g, c);
        for (int i = 0, n = 0; i < list->n && n < DETAILS_MAX; i++)
            if (list->list[i].what != FINDING_GROUP && ++n)
                print_details(c, &list->list[i], f);
        if (g.n_rows > DETAILS_MAX)
            printf("%d more node%s: -o json has the details\n", g.n_rows - DETAILS_MAX,
                   str_plural(g.n_rows - DETAILS_MAX));
        fleet_findings_mirror_text(list, &mirror);
        print_paragraph(c, buf_text(&mirror), 4);
    } else if (list->tested) {
        puts("no node is slower than its peers");
    }
    print_slow_groups(c, list, f);
}

static void outliers_print_json(struct gather *g, const struct fleet_findings *list)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    gather_write_json(g, &w);
    fleet_findings_write_json(list, g->fleet, &w, "verdict");
    jsonw_end(&w);
    buf_char(&text, '\n');
    print_buf(&text);
}

int cmd_fleet_outliers(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_GATHER struct gather g = {0};
    struct fleet_findings list = {0};
    (void)i;
    if (gather_all(&g, c, GATHER_ALL_RUNS, err) < 0 || fleet_findings_find(&list, g.fleet, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON)
        outliers_print_json(&g, &list);
    else if (c->output == OUTPUT_TABLE)
        outliers_print_table(c, &list, g.fleet);
    else
        outliers_print_plain(c, &list, g.fleet);
    int verdict = list.n         ? CLI_EXIT_SLOWER
                  : !list.tested ? CLI_EXIT_INCONCLUSIVE
                                 : CLI_EXIT_SUCCESS;
    fleet_findings_fini(&list);
    return gather_end(&g, verdict);
}

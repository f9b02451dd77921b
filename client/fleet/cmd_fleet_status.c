// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet status: the nodes by class, how many have enough runs to be judged, how fresh
// these are, and which daemons do not respond.
#include <stdio.h>
#include <string.h>

#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/str.h"
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

// Nodes with old runs only, and those that responded and have none.
static void find_stale(const struct gather *g, const struct coverage *c, struct nodeset *stale,
                       struct nodeset *empty)
{
    for (int i = 0; i < c->n_nodes; i++) {
        const struct covered_node *n = &c->node[i];
        int asked = nodeset_find(&g->names, n->name);
        if (n->class >= 0 && !n->fresh)
            nodeset_add(stale, n->name, NULL);
        if (n->class < 0 && (asked < 0 || gather_has_heard(g, asked)))
            nodeset_add(empty, n->name, NULL);
    }
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
    for (int i = 0; g->nodes && i < g->names.n; i++)
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

// Words of the collector that are not as usual, in order of their first node.
static void find_states(const struct gather *g, struct interned *words)
{
    for (int i = 0; g->known && i < g->names.n; i++) {
        const struct known_node *n = &g->known[i];
        if (*n->state && strcmp(n->state, "up") != 0)
            interned_add(words, n->state, NULL);
        if (*n->outcome && strcmp(n->outcome, "stored") != 0)
            interned_add(words, n->outcome, NULL);
    }
}

static void find_nodes_in_state(const struct gather *g, const char *word, struct nodeset *out)
{
    for (int i = 0; i < g->names.n; i++)
        if (strcmp(g->known[i].state, word) == 0 || strcmp(g->known[i].outcome, word) == 0)
            nodeset_add(out, g->names.names[i], NULL);
}

static void print_states(const struct cli *c, const struct gather *g)
{
    struct interned words = {0};
    find_states(g, &words);
    for (int i = 0; i < words.n; i++) {
        CLEANUP_NODESET struct nodeset set = {0};
        find_nodes_in_state(g, words.list[i], &set);
        print_set(c, words.list[i], &set);
    }
    interned_fini(&words);
}

// {"down":"n[1-3]"}: a member per state or outcome that is not as usual.
static void write_known_states(const struct gather *g, struct jsonw *w)
{
    struct interned words = {0};
    find_states(g, &words);
    jsonw_object(w, "states");
    for (int i = 0; i < words.n; i++) {
        CLEANUP_NODESET struct nodeset set = {0};
        CLEANUP_BUF struct buf text = BUF_INIT;
        find_nodes_in_state(g, words.list[i], &set);
        nodeset_fold(&set, &text);
        jsonw_text(w, words.list[i], buf_text(&text));
    }
    jsonw_end(w);
    interned_fini(&words);
}

// None where no collector is asked.
static int find_problems(const struct cli *c, struct interned *texts, struct err *err)
{
    if (!*c->fleet.collector || c->fleet.stored)
        return 0;
    CLEANUP_MEM struct cli *at = collector_settings(c, err);
    return at ? collector_problems(at, texts, err) : -1;
}

static void print_problems(const struct cli *c, const struct interned *texts)
{
    for (int i = 0; i < texts->n; i++) {
        CLEANUP_BUF struct buf line = BUF_INIT;
        buf_fmt(&line, "collector: %s", texts->list[i]);
        print_paragraph(c, buf_text(&line), 4);
    }
}

static void write_problems(const struct interned *texts, struct jsonw *w)
{
    jsonw_array(w, "collector_problems");
    for (int i = 0; i < texts->n; i++)
        jsonw_text(w, NULL, texts->list[i]);
    jsonw_end(w);
}

static void status_print(const struct cli *c, struct gather *g, const struct coverage *covered,
                         const struct fleet_class_row *rows, int n, const struct interned *problems)
{
    CLEANUP_GRID struct grid grid;
    CLEANUP_NODESET struct nodeset stale = {0}, empty = {0};
    char no_run[40];
    grid_init(&grid, columns, COUNT_OF(columns));
    for (int k = 0; k < n; k++)
        status_add_row(&grid, g->fleet, &rows[k]);
    find_stale(g, covered, &stale, &empty);
    bool none = gather_is_empty(g);
    if (c->output == OUTPUT_TABLE && !grid.n_rows)
        fputs(none ? "" : "no node has a run that can be judged\n", stdout);
    else
        grid_print(&grid, c);
    if (c->output != OUTPUT_TABLE)
        return;
    snprintf(no_run, sizeof no_run, "no run for %d day%s", g->fleet->o.window_days,
             str_plural(g->fleet->o.window_days));
    print_set(c, no_run, &stale);
    print_set(c, "without a run that counts", &empty);
    print_versions(c, g);
    print_states(c, g);
    print_problems(c, problems);
}

static void status_print_json(struct gather *g, const struct coverage *covered,
                              const struct fleet_class_row *rows, int n,
                              const struct interned *problems)
{
    CLEANUP_NODESET struct nodeset stale = {0}, empty = {0};
    CLEANUP_BUF struct buf text = BUF_INIT, old = BUF_INIT, none = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    find_stale(g, covered, &stale, &empty);
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
    if (g->known && !g->cli->fleet.stored)
        write_known_states(g, &w);
    if (problems->n)
        write_problems(problems, &w);
    jsonw_end(&w);
    buf_char(&text, '\n');
    print_buf(&text);
}

int cmd_fleet_status(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_GATHER struct gather g = {0};
    CLEANUP_COVERAGE struct coverage covered = {0};
    struct interned problems CLEANUP(interned_fini) = {0};
    (void)i;
    CLEANUP_MEM struct fleet_class_row *rows = NULL;
    if (gather_times(&g, c, RUNS_MIN, err) < 0)
        return -1;
    int n = fleet_classes(&rows, g.fleet, err);
    if (n < 0 || gather_coverage(&g, &covered, err) < 0 || find_problems(c, &problems, err) < 0)
        return -1;
    if (c->output == OUTPUT_JSON)
        status_print_json(&g, &covered, rows, n, &problems);
    else
        status_print(c, &g, &covered, rows, n, &problems);
    return gather_end(&g, CLI_EXIT_SUCCESS);
}

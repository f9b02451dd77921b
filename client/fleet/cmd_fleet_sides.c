// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet compare without METRIC: a few nodes side by side.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/metrics/metrics.h"
#include "analysis/peers/fleet_json.h"
#include "analysis/peers/fleet_sides.h"
#include "base/cleanup.h"
#include "base/figures.h"
#include "base/str.h"
#include "client/exits.h"
#include "client/fleet/fleet.h"
#include "client/fleet/gather.h"
#include "client/print.h"

static const char *side_name(const struct fleet_sides *s, int node)
{
    return s->f->nodes.list[node];
}

// ---- A table ------------------------------------------------------------------------------------

static int sides_columns(struct column *columns, const struct fleet_sides *s, struct column first)
{
    int n = 0;
    columns[n++] = first;
    for (int i = 0; i < s->nodes; i++)
        columns[n++] = (struct column){side_name(s, i), side_name(s, i)};
    return n;
}

static void sides_print_unknown(const struct cli *c, const struct fleet_sides *s)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    for (int i = 0; i < s->nodes; i++)
        if (!fleet_sides_facts_known(s, i))
            buf_fmt(&line, "%s%s", line.len ? ", " : "the facts are not known of ",
                    side_name(s, i));
    if (line.len)
        print_paragraph(c, buf_text(&line), 4);
}

static bool sides_know_facts(const struct fleet_sides *s)
{
    int known = 0;
    for (int i = 0; i < s->nodes; i++)
        known += fleet_sides_facts_known(s, i);
    return known > 1;
}

static void sides_print_facts(const struct cli *c, const struct fleet_sides *s)
{
    CLEANUP_GRID struct grid g;
    struct column columns[1 + SIDES_MAX];
    int n = sides_columns(columns, s, (struct column){"fact", "FACT", false, false});
    for (int i = 1; i < n; i++)
        columns[i].shrinks = true;
    grid_init(&g, columns, n);
    for (int i = 0; i < s->n_facts; i++) {
        grid_cell(&g, "%s", s->facts[i].name);
        for (int k = 0; k < s->nodes; k++)
            grid_cell(&g, "%s", s->facts[i].value[k] ? s->facts[i].value[k] : "-");
    }
    if (s->n_facts)
        grid_print(&g, c);
    else if (sides_know_facts(s))
        puts("the facts of these nodes do not differ");
    sides_print_unknown(c, s);
}

// "98.71 ±0.5%": how far the interval reaches, in per cent of the value.
static void sides_cell(struct grid *g, const struct sides_metric *m, int node)
{
    const struct fleet_rank *r = &m->of[node];
    if (!r->runs)
        grid_cell(g, "%s", "-");
    else if (metric_is_loss(m->metric) && isfinite(r->hi)) // as differences are
        grid_cell(g, "%s ±%.1f%%", FIGURES(r->value), 100 * ((1 + r->hi) / (1 + r->value) - 1));
    else if (r->lo > 0 && isfinite(r->hi))
        grid_cell(g, "%s ±%.1f%%", FIGURES(r->value), 100 * expm1(log(r->hi / r->lo) / 2));
    else
        grid_cell(g, "%s", FIGURES(r->value));
}

static void sides_difference_cell(struct grid *g, const struct run_pair_metric *p)
{
    if (isfinite(p->lo))
        grid_cell(g, "%+.1f ±%.1f", percent_written(p->percent),
                  (percent_written(p->hi) - percent_written(p->lo)) / 2);
    else if (isfinite(p->percent))
        grid_cell(g, "%+.1f", percent_written(p->percent));
    else
        grid_cell(g, "%s", "");
}

static void sides_print_metrics(const struct cli *c, const struct fleet_sides *s)
{
    CLEANUP_GRID struct grid g;
    struct column columns[3 + SIDES_MAX];
    int n = sides_columns(columns, s, (struct column){"metric", "METRIC", false, true});
    if (s->nodes == 2) {
        columns[n++] = (struct column){"percent", "DIFF %"};
        columns[n++] = (struct column){"verdict", "VERDICT"};
    }
    grid_init(&g, columns, n);
    for (int i = 0; i < s->n; i++) {
        const struct sides_metric *m = &s->list[i];
        grid_cell(&g, "%s", m->metric);
        for (int k = 0; k < s->nodes; k++)
            sides_cell(&g, m, k);
        if (s->nodes == 2) {
            sides_difference_cell(&g, &m->pair);
            grid_cell(&g, "%s", run_pair_verdict(&m->pair));
        }
    }
    putchar('\n');
    if (s->n)
        grid_print(&g, c);
    else
        puts("the nodes have no metric in common");
    if (s->alone)
        printf("%d more metric%s of one node alone\n", s->alone, str_plural(s->alone));
    if (s->otherwise)
        printf("%d of them by another method or version of the metrics than that of another node: "
               "not compared\n",
               s->otherwise);
    if (s->n && s->nodes == 2)
        printf("%s is slower in %d metric%s, faster in %d\n", side_name(s, 1), s->slower,
               str_plural(s->slower), s->faster);
}

// ---- For programs -------------------------------------------------------------------------------

// A row of each fact or metric and node.
static const struct column sides_rows[] = {
    {"kind", "KIND", false},
    {"name", "NAME", false},
    {"node", "NODE", false},
    {"text", "TEXT", false},
    {"value", "VALUE", true},
    {"lo", "FROM", true},
    {"hi", "TO", true},
    {"runs", "RUNS", true},
    {"unit", "UNIT", false},
    {"benchmark", "BENCHMARK", false},
    {"variant", "VARIANT", false},
    {"percent", "DIFFERENCE %", true},
    {"percent_lo", "FROM", true},
    {"percent_hi", "TO", true},
    {"verdict", "VERDICT", false},
};

static void sides_add_empty(struct grid *g, int n)
{
    while (n-- > 0)
        grid_cell(g, "%s", "");
}

static void sides_add_fact(struct grid *g, const struct fleet_sides *s, const struct sides_fact *f,
                           int node)
{
    enum { HAS = 4 };
    grid_cell(g, "%s", f->is_class ? "hardware" : "config");
    grid_cell(g, "%s", f->name);
    grid_cell(g, "%s", side_name(s, node));
    grid_cell(g, "%s", f->value[node] ? f->value[node] : "");
    sides_add_empty(g, COUNT_OF(sides_rows) - HAS);
}

static void sides_add_metric(struct grid *g, const struct fleet_sides *s,
                             const struct sides_metric *m, int node)
{
    enum { OF_PAIR = 4 };
    const struct fleet_rank *r = &m->of[node];
    grid_cell(g, "%s", "metric");
    grid_cell(g, "%s", m->metric);
    grid_cell(g, "%s", side_name(s, node));
    grid_cell(g, "%s", "");
    grid_number(g, r->runs ? r->value : (double)NAN);
    grid_number(g, r->runs ? r->lo : (double)NAN);
    grid_number(g, r->runs ? r->hi : (double)NAN);
    grid_cell(g, "%d", r->runs);
    grid_cell(g, "%s", m->unit);
    grid_cell(g, "%s", m->benchmark);
    grid_cell(g, "%s", m->variant);
    if (s->nodes != 2 || node == 0) {
        sides_add_empty(g, OF_PAIR);
        return;
    }
    grid_number(g, m->pair.percent);
    grid_number(g, m->pair.lo);
    grid_number(g, m->pair.hi);
    grid_cell(g, "%s", run_pair_verdict(&m->pair));
}

static void sides_print_rows(const struct cli *c, const struct fleet_sides *s)
{
    CLEANUP_GRID struct grid g;
    grid_init(&g, sides_rows, COUNT_OF(sides_rows));
    for (int i = 0; i < s->n_facts * s->nodes; i++)
        sides_add_fact(&g, s, &s->facts[i / s->nodes], i % s->nodes);
    for (int i = 0; i < s->n * s->nodes; i++)
        sides_add_metric(&g, s, &s->list[i / s->nodes], i % s->nodes);
    grid_print(&g, c);
}

static void sides_print_json(struct gather *g, const struct fleet_sides *s)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    fleet_sides_write_json(s, &w);
    gather_write_missing(g, &w);
    jsonw_end(&w);
    buf_char(&text, '\n');
    print_buf(&text);
}

// ---- The command --------------------------------------------------------------------------------

// Before thousands of nodes are contacted for nothing.
static int sides_check_named(const struct cli *c, struct err *err)
{
    CLEANUP_NODESET struct nodeset names = {0};
    if (!fleet_nodes_named(c))
        return 0;
    return fleet_nodes(c, &names, err) < 0 ? -1 : fleet_sides_check(names.n, err);
}

static int sides_status(const struct fleet_sides *s)
{
    bool judged = s->nodes > 2 && s->n;
    for (int i = 0; i < s->n && s->nodes == 2; i++)
        judged = judged || s->list[i].pair.verdict != PAIR_UNKNOWN;
    return !judged ? CLI_EXIT_INCONCLUSIVE : s->slower ? CLI_EXIT_SLOWER : CLI_EXIT_SUCCESS;
}

int fleet_compare_sides(struct cli *c, struct err *err)
{
    CLEANUP_GATHER struct gather g = {0};
    struct fleet_sides s;
    if (sides_check_named(c, err) < 0 || gather_all(&g, c, NEWEST_RUNS, err) < 0)
        return -1;
    if (gather_is_empty(&g))
        return gather_end(&g, CLI_EXIT_INCONCLUSIVE);
    if (fleet_sides_make(&s, g.fleet, err) < 0) {
        gather_end(&g, 0);
        return -1;
    }
    int status = sides_status(&s);
    if (c->output == OUTPUT_JSON) {
        sides_print_json(&g, &s);
    } else if (c->output == OUTPUT_TABLE) {
        sides_print_facts(c, &s);
        sides_print_metrics(c, &s);
    } else {
        sides_print_rows(c, &s);
    }
    fleet_sides_fini(&s);
    return gather_end(&g, status);
}

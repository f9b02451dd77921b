// SPDX-License-Identifier: Apache-2.0
// numaprobe fleet ranking, compare and history: a metric over the nodes of a class, over groups of
// them, and over time.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/peers/fleet_history.h"
#include "analysis/peers/fleet_json.h"
#include "analysis/peers/fleet_view.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/jsonw.h"
#include "base/str.h"
#include "client/exits.h"
#include "client/fleet/fleet.h"
#include "client/fleet/gather.h"
#include "client/print.h"

struct view_flags {
    char class[65];
    char group_by[64]; // of compare
    int64_t limit;     // of ranking
};

#define OF_CLASS                                                                                   \
    PARAM_TEXT_ROW(struct view_flags, class, .filled = true, .metavar = "HASH",                    \
                   .help = "The class of nodes, by the beginning of its hash as fleet status "     \
                           "prints it. Default: the one with most nodes.")

static const struct param ranking_params[] = {
    OF_CLASS,
    {.name = "limit",
     .kind = PARAM_INT,
     .offset = offsetof(struct view_flags, limit),
     .min = 1,
     .max = 65536,
     .def = "20",
     .help = "Number of nodes in the table, the worst first. Other formats have all."},
};
const struct param_table fleet_ranking_options = {ranking_params, COUNT_OF(ranking_params)};

static const struct param compare_params[] = {
    OF_CLASS,
    PARAM_TEXT_ROW(
        struct view_flags, group_by, .filled = true, .metavar = "FACT",
        .help =
            "Compare the nodes by this fact, such as microcode. Default: every node by itself."),
};
const struct param_table fleet_compare_options = {compare_params, COUNT_OF(compare_params)};

// A number that may be missing.
static void percent_cell(struct grid *g, double v)
{
    if (isfinite(v))
        grid_cell(g, "%+.1f", percent_written(v));
    else
        grid_cell(g, "%s", "");
}

// An unknown class, or one that is several: those that there are.
static int classes_say(const struct fleet *f, struct err *err)
{
    enum { SHOWN = 6 };
    CLEANUP_BUF struct buf list = BUF_INIT;
    int n = 0;
    for (int class = 0; class < f->classes.n; class ++) {
        int nodes = fleet_class_nodes(f, class);
        if (nodes && n++ < SHOWN)
            buf_fmt(&list, "%s%.12s (%d node%s)", n > 1 ? ", " : "", f->classes.list[class], nodes,
                    str_plural(nodes));
    }
    if (n > SHOWN)
        buf_fmt(&list, ", %d more", n - SHOWN);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, "; there are %s", buf_text(&list));
    return -1;
}

// The class and the metric of the command line, opened. Closed by fleet_view_close.
static int view_open(struct fleet_view *v, int *metric, const struct gather *g,
                     const struct view_flags *f, const char *name, struct err *err)
{
    int class = fleet_class_find(g->fleet, f->class, err);
    if (class < 0)
        return *f->class ? classes_say(g->fleet, err) : -1;
    if (fleet_view_open(v, g->fleet, class, err) < 0)
        return -1;
    *metric = fleet_view_metric(v, name, err);
    if (*metric >= 0)
        return 0;
    fleet_view_close(v);
    return -1;
}

// What a view is made of. The caller says what became of the nodes (gather_end).
struct opened_view {
    struct gather g;
    struct fleet_view v;
    int metric;
};

// 0; -1; 1: there is nothing to judge, and the exit status is that of gather_end.
static int view_begin(struct opened_view *o, const struct cli *c, const struct invocation *i,
                      struct err *err)
{
    *o = (struct opened_view){0};
    if (gather_all(&o->g, c, NEWEST_RUNS, err) < 0)
        return -1;
    if (gather_is_empty(&o->g))
        return 1;
    if (view_open(&o->v, &o->metric, &o->g, i->options, i->operands[0], err) == 0)
        return 0;
    gather_end(&o->g, 0);
    return -1;
}

static void view_fini(struct opened_view *o)
{
    fleet_view_close(&o->v);
    gather_fini(&o->g);
}

// "class 62204bddacdc, latency.local.dram.median_ns in ns, more is worse"
static void view_print_head(const struct cli *c, const struct fleet_view *v, int metric, bool more)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    const char *unit = fleet_table_unit(&v->table, v->f, metric);
    if (c->output != OUTPUT_TABLE)
        return;
    buf_fmt(&line, "class %.12s, %s%s%s; %s is better", v->f->classes.list[v->table.class],
            fleet_table_metric(&v->table, v->f, metric), *unit ? " in " : "", unit,
            more ? "more" : "less");
    print_paragraph(c, buf_text(&line), 4);
}

// ---- Ranking ------------------------------------------------------------------------------------

static void print_others_left_out(const struct cli *c, int n)
{
    if (c->output == OUTPUT_TABLE && n)
        printf("%d node%s with another method or version of the metrics: not compared\n", n,
               str_plural(n));
}

static void ranking_print(const struct cli *c, const struct fleet_view *v,
                          const struct fleet_ranking *r, int metric, int64_t limit)
{
    const char *unit = fleet_table_unit(&v->table, v->f, metric);
    static const struct column columns[] = {
        {"rank", "RANK", true},
        {"node", "NODE", false, true},
        {.name = "value", .title = "VALUE", .number = true, .rounded = true},
        {.name = "lo", .title = "FROM", .number = true, .rounded = true},
        {.name = "hi", .title = "TO", .number = true, .rounded = true},
        {"percent", "DIFFERENCE %", true},
        {"runs", "RUNS", true},
        {.name = "unit"}, // the line above a table has it
    };
    CLEANUP_GRID struct grid g;
    grid_init(&g, columns, COUNT_OF(columns));
    for (int i = 0; i < r->n && (c->output != OUTPUT_TABLE || i < limit); i++) {
        const struct fleet_rank *k = &r->list[i];
        grid_cell(&g, "%d", i + 1);
        grid_cell(&g, "%s", v->f->nodes.list[k->node]);
        grid_number(&g, k->value);
        grid_number(&g, k->lo);
        grid_number(&g, k->hi);
        percent_cell(&g, k->percent);
        grid_cell(&g, "%d", k->runs);
        grid_cell(&g, "%s", unit);
    }
    grid_print(&g, c);
    if (c->output == OUTPUT_TABLE && r->n > limit)
        printf("%lld more node%s\n", (long long)(r->n - limit), str_plural(r->n - limit));
    if (c->output == OUTPUT_TABLE)
        printf("median %s, spread %.1f %% of %d node%s\n",
               figures_text(r->median, 6, (char[FIGURES_ROOM]){0}), r->spread, r->n,
               str_plural(r->n));
    print_others_left_out(c, r->others);
}

static void ranking_print_json(struct opened_view *o, const struct fleet_ranking *r)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    fleet_ranking_write_json(r, &o->v, &(struct fleet_ranking_part){.limit = r->n}, &w);
    gather_write_missing(&o->g, &w);
    jsonw_end(&w);
    buf_char(&text, '\n');
    print_buf(&text);
}

int cmd_fleet_ranking(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct view_flags *f = i->options;
    struct opened_view o CLEANUP(view_fini);
    struct fleet_ranking r = {0};
    int begun = view_begin(&o, c, i, err);
    if (begun)
        return begun < 0 ? -1 : gather_end(&o.g, CLI_EXIT_INCONCLUSIVE);
    int rc = fleet_ranking_make(&r, &o.v, o.metric, err);
    if (rc == 0 && c->output == OUTPUT_JSON) {
        ranking_print_json(&o, &r);
    } else if (rc == 0) {
        view_print_head(c, &o.v, o.metric, r.more);
        ranking_print(c, &o.v, &r, o.metric, f->limit);
    }
    fleet_ranking_fini(&r);
    return rc < 0 ? -1 : gather_end(&o.g, CLI_EXIT_SUCCESS);
}

// ---- Groups -------------------------------------------------------------------------------------

static void shares_print(const struct cli *c, const struct fleet_view *v,
                         const struct fleet_shares *s, int metric, const char *fact)
{
    const struct column columns[] = {
        {"value", fact, false, true},
        {"nodes", "NODES", true},
        {.name = "median", .title = "MEDIAN", .number = true, .rounded = true},
        {.name = "lo", .title = "FROM", .number = true, .rounded = true},
        {.name = "hi", .title = "TO", .number = true, .rounded = true},
        {"percent", "DIFFERENCE %", true},
        {"percent_lo", "FROM", true},
        {"percent_hi", "TO", true},
        {"verdict", "VERDICT", false},
        {.name = "unit"},
    };
    const char *unit = fleet_table_unit(&v->table, v->f, metric);
    CLEANUP_GRID struct grid g;
    view_print_head(c, v, metric, s->more);
    grid_init(&g, columns, COUNT_OF(columns));
    for (int i = 0; i < s->n; i++) {
        const struct fleet_share *k = &s->list[i];
        grid_cell(&g, "%s", k->value ? k->value : "not known");
        grid_cell(&g, "%d", k->nodes);
        grid_number(&g, k->median);
        grid_number(&g, k->lo);
        grid_number(&g, k->hi);
        percent_cell(&g, k->percent);
        percent_cell(&g, k->percent_lo);
        percent_cell(&g, k->percent_hi);
        grid_cell(&g, "%s", fleet_share_verdict(s, i));
        grid_cell(&g, "%s", unit);
    }
    grid_print(&g, c);
    print_others_left_out(c, s->others);
}

static void shares_print_json(struct opened_view *o, const struct fleet_shares *s, const char *fact)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    fleet_shares_write_json(s, &o->v, o->metric, fact, &w);
    gather_write_missing(&o->g, &w);
    jsonw_end(&w);
    buf_char(&text, '\n');
    print_buf(&text);
}

static bool any_slower(const struct fleet_shares *s)
{
    for (int i = 1; i < s->n; i++)
        if (s->list[i].differs && (s->more ? s->list[i].percent < 0 : s->list[i].percent > 0))
            return true;
    return false;
}

// Without a fact to group by, each node is its own group: that is the ranking. Without a metric,
// all of them are compared.
int cmd_fleet_compare(struct cli *c, const struct invocation *i, struct err *err)
{
    const struct view_flags *f = i->options;
    struct opened_view o CLEANUP(view_fini) = {0};
    struct fleet_shares s = {0};
    int status = CLI_EXIT_SUCCESS;
    if (!i->n)
        return *f->group_by || *f->class ? err_set(err, ERR_USAGE, "",
                                                   "--%s needs a METRIC; without METRIC the nodes "
                                                   "of -w are compared side by side",
                                                   *f->group_by ? "group-by" : "class")
                                         : fleet_compare_sides(c, err);
    if (!*f->group_by) {
        struct view_flags all = *f;
        struct invocation ranking = *i;
        all.limit = 1 << 16;
        ranking.options = &all;
        return cmd_fleet_ranking(c, &ranking, err);
    }
    int begun = view_begin(&o, c, i, err);
    if (begun)
        return begun < 0 ? -1 : gather_end(&o.g, CLI_EXIT_INCONCLUSIVE);
    int rc = fleet_shares_make(&s, &o.v, o.metric, f->group_by, err);
    if (rc == 0) {
        if (c->output == OUTPUT_JSON)
            shares_print_json(&o, &s, f->group_by);
        else
            shares_print(c, &o.v, &s, o.metric, f->group_by);
        if (s.n < 2 && c->output == OUTPUT_TABLE)
            puts("all nodes have the same value: there is nothing to compare");
        status = s.n < 2 ? CLI_EXIT_INCONCLUSIVE : any_slower(&s) ? CLI_EXIT_SLOWER : status;
    }
    fleet_shares_fini(&s);
    return rc < 0 ? -1 : gather_end(&o.g, status);
}

// ---- History ------------------------------------------------------------------------------------

// "+3.1 % from here on; the set-up changed 1 run earlier", or what there is of it.
static void point_note(const struct fleet_point *p, char *out, size_t room)
{
    char text[SETUP_CHANGE_TEXT], percent[40] = "";
    const char *shift = p->change_percent != 0 ? setup_change_text(&p->cause, text) : "";
    const char *here = p->setup_changed ? "set-up changed" : shift;
    if (p->change_percent != 0)
        snprintf(percent, sizeof percent, "%+.1f %% from here on",
                 percent_written(p->change_percent));
    snprintf(out, room, "%s%s%s", percent, *percent && *here ? "; " : "", here);
}

static void history_print_points(const struct cli *c, const struct fleet_history *h)
{
    static const struct column columns[] = {
        {"measured", "MEASURED", false},
        {"run", "RUN", true},
        {.name = "value", .title = "VALUE", .number = true, .rounded = true},
        {.name = "class_low", .title = "CLASS FROM", .number = true, .rounded = true},
        {.name = "class_median", .title = "MEDIAN", .number = true, .rounded = true},
        {.name = "class_high", .title = "TO", .number = true, .rounded = true},
        {"note", "NOTE", false, true},
        {.name = "unit"},
    };
    CLEANUP_GRID struct grid g;
    grid_init(&g, columns, COUNT_OF(columns));
    for (int i = 0; i < h->n; i++) {
        const struct fleet_point *p = &h->list[i];
        char time[32], note[120];
        clock_rfc3339(p->measured_ms, time);
        point_note(p, note, sizeof note);
        grid_cell(&g, "%.19sZ", time);
        grid_cell(&g, "%lld", (long long)p->run);
        grid_number(&g, p->value);
        grid_number(&g, p->low);
        grid_number(&g, p->median);
        grid_number(&g, p->high);
        grid_cell(&g, "%s", note);
        grid_cell(&g, "%s", h->unit);
    }
    grid_print(&g, c);
}

static void history_print_head(const struct cli *c, const struct fleet_history *h, const char *node)
{
    CLEANUP_BUF struct buf line = BUF_INIT;
    buf_fmt(&line, "%s of %s%s%s; %s is better; the class: 95 %% of its nodes on that day",
            h->metric, node, *h->unit ? " in " : "", h->unit, h->more ? "more" : "less");
    if (h->n >= GATHER_ALL_RUNS)
        buf_fmt(&line, "; the newest %d runs", h->n);
    if (h->others)
        buf_fmt(&line, "; %d run%s with another method or version of the metrics left out",
                h->others, str_plural(h->others));
    print_paragraph(c, buf_text(&line), 4);
}

static void history_print_json(struct gather *g, const struct fleet_history *h, const char *node)
{
    enum { DIGITS = 6, PERCENT_DIGITS = 1 };
    CLEANUP_BUF struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_object(&w, NULL);
    jsonw_text(&w, "node", node);
    jsonw_text(&w, "metric", h->metric);
    jsonw_text(&w, "unit", h->unit);
    jsonw_text(&w, "better", h->more ? "more" : "less");
    jsonw_i64(&w, "other_method_runs", h->others);
    jsonw_array(&w, "points");
    for (int i = 0; i < h->n; i++) {
        const struct fleet_point *p = &h->list[i];
        jsonw_object(&w, NULL);
        jsonw_time(&w, "measured", p->measured_ms);
        jsonw_i64(&w, "run", p->run);
        jsonw_digits(&w, "value", p->value, DIGITS);
        jsonw_digits(&w, "class_low", p->low, DIGITS);
        jsonw_digits(&w, "class_median", p->median, DIGITS);
        jsonw_digits(&w, "class_high", p->high, DIGITS);
        jsonw_bool(&w, "setup_changed", p->setup_changed);
        if (p->change_percent != 0) {
            jsonw_fixed(&w, "change_percent", p->change_percent, PERCENT_DIGITS);
            setup_change_write_json(&p->cause, &w);
        }
        jsonw_end(&w);
    }
    jsonw_end(&w);
    gather_write_missing(g, &w);
    jsonw_end(&w);
    buf_char(&text, '\n');
    print_buf(&text);
}

// The node is the first operand; the others of its class, for the band, are those of --nodes.
int cmd_fleet_history(struct cli *c, const struct invocation *i, struct err *err)
{
    CLEANUP_GATHER struct gather g = {0};
    struct fleet_history h = {0};
    if (gather_all(&g, c, GATHER_ALL_RUNS, err) < 0)
        return -1;
    if (gather_is_empty(&g))
        return gather_end(&g, CLI_EXIT_INCONCLUSIVE);
    if (fleet_nodes_named(c) && !nodeset_has(&g.names, i->operands[0])) {
        gather_end(&g, 0);
        return err_set(err, ERR_NOT_FOUND, "node",
                       "%.64s is not among the nodes that are named (--nodes)", i->operands[0]);
    }
    if (fleet_history_make(&h, g.fleet, i->operands[0], i->operands[1], err) < 0) {
        gather_end(&g, 0);
        return -1;
    }
    if (c->output == OUTPUT_TABLE)
        history_print_head(c, &h, i->operands[0]);
    if (c->output == OUTPUT_JSON)
        history_print_json(&g, &h, i->operands[0]);
    else
        history_print_points(c, &h);
    fleet_history_fini(&h);
    return gather_end(&g, CLI_EXIT_SUCCESS);
}
